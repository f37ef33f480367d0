//! The options of outputters, from the configuration and the command line.

use brine_value::{FromValue, Map, Value};

use crate::Colours;
use crate::line_format::LineFormat;
use crate::table::TableOptions;

/// The indentation of JSON and YAML (`output_indent`, `--out-indent`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Indent {
    /// The default of the outputter: 4 for JSON, 2 for YAML.
    #[default]
    Default,
    /// The number of columns; negative for one line.
    Columns(i64),
    /// The default of the outputter, with sorted keys (`pretty`).
    Pretty,
}

/// The selection of states shown in full and on one line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StateMode {
    /// All in full.
    #[default]
    Full,
    /// All on one line.
    Terse,
    /// Failures in full.
    Mixed,
    /// Failures and changes in full.
    Changes,
    /// Selected by `state_output_exclude` and `state_output_terse`.
    Filter,
}

/// `state_output`: the mode, and whether states are shown with their id instead of their name (`_id`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StateOutput {
    /// The selection of states shown in full.
    pub mode: StateMode,
    /// Whether the id is shown instead of the name.
    pub by_id: bool,
}

impl StateOutput {
    /// Parses Salt's names, ignoring case. Unknown names mean full, as in Salt.
    pub fn parse(word: &str) -> Self {
        let word = word.to_ascii_lowercase();
        let (mode, by_id) = word.strip_suffix("_id").map_or((word.as_str(), false), |mode| (mode, true));
        let mode = match mode {
            "terse" => StateMode::Terse,
            "mixed" => StateMode::Mixed,
            "changes" => StateMode::Changes,
            "filter" => StateMode::Filter,
            _ => StateMode::Full,
        };
        StateOutput { mode, by_id }
    }
}

/// The options of outputters.
#[derive(Debug, Clone, PartialEq)]
pub struct OutputOptions {
    /// `output_indent`.
    pub indent: Indent,
    /// The colours.
    pub colours: Colours,
    /// The retcode of the job; keys of nested output are red if it is not 0.
    pub retcode: i64,
    /// `state_output`.
    pub state_output: StateOutput,
    /// `state_verbose`: successful states without changes are shown too.
    pub state_verbose: bool,
    /// `state_output_diff`: only states with changes and failures are shown.
    pub state_output_diff: bool,
    /// `state_output_profile`: start, duration and total run time are shown.
    pub state_output_profile: bool,
    /// `state_output_pct`: the summary has percentages.
    pub state_output_pct: bool,
    /// `state_tabular`.
    pub state_tabular: Tabular,
    /// `state_compress_ids`: states of one id with the same result are merged into one entry.
    pub state_compress_ids: bool,
    /// `state_output_exclude`: results (`True`, `False`, `None`) that the filter mode hides.
    pub state_output_exclude: Vec<String>,
    /// `state_output_terse`: results that the filter mode shows on one line.
    pub state_output_terse: Vec<String>,
    /// `out.table.*`.
    pub table: TableOptions,
}

/// `state_tabular`: the layout of states on one line.
#[derive(Debug, Clone, PartialEq)]
pub enum Tabular {
    /// As a sentence.
    Off,
    /// As a row of a table.
    Table,
    /// With a custom format.
    Format(LineFormat),
}

impl Tabular {
    /// Parses the option; a malformed format falls back to the table.
    fn read(value: &Value) -> Self {
        match value {
            Value::Str(format) if format.contains('{') => {
                LineFormat::parse(format).map_or(Tabular::Table, Tabular::Format)
            }
            other if bool::from_value(other).unwrap_or_default() => Tabular::Table,
            _ => Tabular::Off,
        }
    }
}

impl Default for OutputOptions {
    fn default() -> Self {
        OutputOptions {
            indent: Indent::Default,
            colours: Colours::OFF,
            retcode: 0,
            state_output: StateOutput::default(),
            state_verbose: true,
            state_output_diff: false,
            state_output_profile: true,
            state_output_pct: false,
            state_tabular: Tabular::Off,
            state_compress_ids: false,
            state_output_exclude: Vec::new(),
            state_output_terse: Vec::new(),
            table: TableOptions::default(),
        }
    }
}

impl OutputOptions {
    /// Sets options from a configuration, or from the keyword arguments of a state call, by Salt's names. Values of a
    /// wrong type are ignored.
    pub fn set_all(&mut self, config: &Map) {
        for (key, value) in config {
            if let Some(key) = key.as_str() {
                self.set(key, value);
            }
        }
    }

    fn set(&mut self, key: &str, value: &Value) {
        match key {
            "output_indent" => match value {
                Value::Str(word) if word == "pretty" => self.indent = Indent::Pretty,
                value => self.indent = i64::from_value(value).map_or(Indent::Default, Indent::Columns),
            },
            "state_output" => self.state_output = StateOutput::parse(&value.to_string()),
            "state_verbose" => set_bool(&mut self.state_verbose, value),
            "state_output_diff" => set_bool(&mut self.state_output_diff, value),
            "state_output_profile" => set_bool(&mut self.state_output_profile, value),
            "state_output_pct" => set_bool(&mut self.state_output_pct, value),
            "state_tabular" => self.state_tabular = Tabular::read(value),
            "state_compress_ids" => set_bool(&mut self.state_compress_ids, value),
            // `exclude` and `terse` are keyword arguments of `state.apply` for the filter mode.
            "state_output_exclude" | "exclude" => self.state_output_exclude = results(value),
            "state_output_terse" | "terse" => self.state_output_terse = results(value),
            key => {
                if let Some(name) = key.strip_prefix("out.table.") {
                    self.table.set(name, value);
                }
            }
        }
    }
}

fn set_bool(field: &mut bool, value: &Value) {
    if let Some(value) = bool::from_value(value) {
        *field = value;
    }
}

/// Parses a list of results, or a string separated by commas.
fn results(value: &Value) -> Vec<String> {
    match value {
        Value::Str(text) => {
            text.split(',').map(|word| word.trim().to_owned()).filter(|word| !word.is_empty()).collect()
        }
        Value::List(items) => items.iter().map(Value::to_string).collect(),
        other => vec![other.to_string()],
    }
}

#[cfg(test)]
mod tests;
