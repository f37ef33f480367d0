//! A state of a run: parses it and formats it as a block or on one line.

use std::borrow::Cow;
use std::fmt::Write;

use brine_value::{Map, Value};

use super::{MARGIN, document, host, wrap};
use crate::escape::escape_control;
use crate::text::{hang, lines};
use crate::{Colour, Colours};
use crate::{OutputOptions, StateMode, Tabular, nested};

/// The column at which warnings are wrapped.
const WARNINGS_END: usize = 80;

/// The runner functions whose return is a state run.
const ORCHESTRATIONS: [&str; 3] = ["state.orch", "state.orchestrate", "state.sls"];

/// The return of a state.
#[derive(Debug, Clone)]
pub struct State<'a> {
    pub module: &'a str,
    pub id: Cow<'a, str>,
    pub name: Cow<'a, str>,
    pub function: &'a str,
    pub result: &'a Value,
    pub changes: Cow<'a, Value>,
    pub duration: Option<Cow<'a, Value>>,
    pub run_number: i64,
    /// The number of merged states in this entry; 1 unless compressed.
    pub count: usize,
    /// The whole return.
    pub data: &'a Map,
}

/// The text after `Changes:`, and whether the state has changes.
pub struct Changes {
    pub text: String,
    pub changed: bool,
}

/// The formatted state.
pub struct FormattedState {
    pub text: String,
    /// Whether warnings are shown as a block. Only these are counted in the summary.
    pub has_warnings_block: bool,
}

impl<'a> State<'a> {
    /// Parses a key `module_|-id_|-name_|-function` and its data; `None` if a required field is missing.
    pub fn read(key: &'a str, data: &'a Map) -> Option<Self> {
        let mut parts = key.split("_|-");
        let (module, id, name, function) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        data.get("comment")?;
        let run_number = match data.get("__run_num__") {
            None => 0,
            Some(number) => number.as_i64()?,
        };
        Some(State {
            module,
            id: Cow::Borrowed(id),
            name: Cow::Borrowed(name),
            function,
            result: data.get("result")?,
            changes: Cow::Borrowed(data.get("changes")?),
            duration: data.get("duration").map(Cow::Borrowed),
            run_number,
            count: 1,
            data,
        })
    }

    /// Whether the result is true; a result of `None` (test mode) is not.
    pub fn is_success(&self) -> bool {
        self.result.is_truthy()
    }

    /// Returns the duration in milliseconds; Salt's older minions return a string with its unit.
    pub fn milliseconds(&self) -> f64 {
        match self.duration.as_deref() {
            Some(Value::Str(text)) => text.trim_end_matches(" ms").trim().parse().unwrap_or(0.0),
            Some(number) => number.as_f64().unwrap_or(0.0),
            None => 0.0,
        }
    }

    /// Formats the changes; `None` if they are invalid.
    pub fn changes(&self, options: &OutputOptions, depth: usize) -> Option<Changes> {
        let orchestration = self.data.get("name").and_then(Value::as_str).is_some_and(|n| ORCHESTRATIONS.contains(&n));
        if orchestration {
            let run = match self.changes.get("return") {
                Some(run) => document(run, options, depth + 1)?,
                None => String::new(),
            };
            return Some(Changes { text: hang_all(&format!("\n{run}"), MARGIN * depth), changed: true });
        }
        if !self.changes.is_truthy() {
            return Some(Changes { text: String::new(), changed: false });
        }
        let Some(map) = self.changes.as_map() else {
            return Some(Changes {
                text: format!("Invalid Changes data: {}", escape_control(&self.changes.to_string())),
                changed: true,
            });
        };
        if let Some(hosts) = map.get("ret").filter(|_| map.get("out").and_then(Value::as_str) == Some("highstate")) {
            let mut changes = Changes { text: String::new(), changed: false };
            for (id, data) in hosts.as_map()? {
                let host = host(&id.to_string(), data, options, depth)?;
                changes.changed |= host.changed;
                for line in lines(&host.text) {
                    _ = write!(changes.text, "\n{:MARGIN$}{line}", "");
                }
            }
            return Some(changes);
        }
        let text = nested::render_indented(&self.changes, MARGIN, options.colours);
        Some(Changes { text: format!("\n{}", text.trim_end()), changed: true })
    }

    /// Formats the state; `None` if the filter hides it.
    pub fn show(&self, changes: &Changes, options: &OutputOptions) -> Option<FormattedState> {
        let terse = match options.state_output.mode {
            StateMode::Full => false,
            StateMode::Terse => true,
            StateMode::Mixed => *self.result != Value::Bool(false),
            StateMode::Changes => self.is_success() && !changes.changed,
            StateMode::Filter => {
                let result = self.result.to_string();
                let terse = options.state_output_terse.contains(&result);
                if !terse && options.state_output_exclude.contains(&result) {
                    return None;
                }
                terse
            }
        };
        let colour = match self.result {
            Value::Bool(false) => Colour::Red,
            Value::Nil => Colour::LightYellow,
            _ if changes.changed => Colour::Cyan,
            _ => Colour::Green,
        };
        Some(if terse {
            FormattedState { text: self.terse(colour, options), has_warnings_block: false }
        } else {
            FormattedState {
                text: self.full(changes, colour, options),
                has_warnings_block: self.data.contains_key("warnings"),
            }
        })
    }

    fn shown_name(&self, options: &OutputOptions) -> &str {
        if options.state_output.by_id { &self.id } else { &self.name }
    }

    /// Returns the start time and the duration, if they are available and `state_output_profile` is set.
    fn profile(&self, options: &OutputOptions) -> Option<(String, String)> {
        let start = self.data.get("start_time").filter(|_| options.state_output_profile)?;
        let duration = match self.duration.as_deref() {
            None => String::new(),
            Some(Value::Str(text)) if text.is_empty() => String::new(),
            Some(duration) => format!("{duration} ms"),
        };
        Some((start.to_string(), duration))
    }

    fn warnings(&self) -> Option<String> {
        self.data.get("warnings").map(|warnings| match warnings {
            Value::List(items) => items.iter().map(Value::to_string).collect::<Vec<_>>().join("\n"),
            other => other.to_string(),
        })
    }

    fn terse(&self, colour: Colour, options: &OutputOptions) -> String {
        let colours = options.colours;
        let word = match self.result {
            Value::Bool(false) => "Failed",
            Value::Nil => "Differs",
            // Unlike the colour, the word ignores the changes of a nested run.
            _ if self.changes.is_truthy() => "Changed",
            _ => "Clean",
        };
        let (name, module, function) = (self.shown_name(options), &self.module, &self.function);
        let warnings = self.warnings().map_or_else(String::new, |warnings| {
            colours.paint(Colour::LightRed, &format!("Warnings:\n{}", escape_control(&warnings)))
        });
        let profile = self.profile(options);
        if let Tabular::Format(format) = &options.state_tabular {
            let [name, module, function] = [name, module, function].map(escape_control);
            return format.format([colours.start(colour), &name, &module, &function, word, colours.end()], self.data);
        }
        if options.state_tabular == Tabular::Table {
            let profile = profile.map_or_else(String::new, |(start, duration)| format!("{start} [{duration:>10}] "));
            let line = format!("{profile}{module:>10}.{function:<10} {word:7}   Name: {name}");
            let end = if warnings.is_empty() { "" } else { "\n" };
            return format!("{warnings}{end}{}", colours.paint(colour, &escape_control(&line)));
        }
        let mut line = format!(" Name: {name} - Function: {module}.{function} - Result: {word}");
        if let Some((start, duration)) = profile {
            _ = write!(line, " - Started: {start} - Duration: {duration}");
        }
        // No state has run, and the name says nothing. Salt prints no comment here.
        if (*module, *function) == ("no", "None") {
            let comment = self.data.get("comment").map(Value::to_string).unwrap_or_default();
            _ = write!(line, " - Comment: {comment}");
        }
        format!("{warnings} {}", colours.paint(colour, &escape_control(&line)))
    }

    fn full(&self, changes: &Changes, colour: Colour, options: &OutputOptions) -> String {
        let colours = options.colours;
        let mut out = vec![colours.paint(colour, "----------")];
        let mut field = |label: &str, text: &str| {
            out.push(format!("    {}", colours.paint(colour, &format!("{label:>8}: {}", escape_control(text)))));
        };
        field("ID", &self.id);
        field("Function", &format!("{}.{}", self.module, self.function));
        let name = self.shown_name(options);
        if name != self.id {
            field("Name", name);
        }
        field("Result", &self.result.to_string());
        field("Comment", &self.comment());
        if let Some((start, duration)) = self.profile(options) {
            field("Started", &start);
            field("Duration", &duration);
        }
        out.push(colours.paint(colour, &format!("     Changes:   {}", changes.text)));
        if let Some(warnings) = self.warnings() {
            out.push(warnings_block(&warnings, colours));
        }
        out.join("\n")
    }

    /// Returns the comment, followed by the field `data` that some states add.
    fn comment(&self) -> String {
        let text = self.data.get("comment").map(Value::to_string).unwrap_or_default();
        let mut comment = hang(text.trim(), MARGIN);
        match self.data.get("data") {
            None => {}
            Some(Value::List(items)) => {
                for item in items {
                    _ = write!(comment, " {item}");
                }
            }
            Some(Value::Map(map)) => {
                for (key, value) in map {
                    _ = write!(comment, "\n\t\t{key}: {value}");
                }
            }
            Some(other) => _ = write!(comment, " {other}"),
        }
        comment
    }
}

fn warnings_block(warnings: &str, colours: Colours) -> String {
    let lines = wrap::fill(escape_control(warnings).as_ref(), WARNINGS_END - MARGIN);
    let text = lines.join(&format!("\n{:MARGIN$}", ""));
    format!("   {}", colours.paint(Colour::LightRed, &format!(" Warnings: {}", text.trim_start())))
}

/// Indents every line.
fn hang_all(text: &str, blanks: usize) -> String {
    format!("{:blanks$}{}", "", hang(text, blanks))
}
