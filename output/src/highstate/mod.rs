//! The outputter of state runs: a block or a line for each state, and a summary for each minion.
//!
//! `state` formats one state, `summary` the summary, `compress` merges states with the same id, `wrap` wraps warnings.

mod compress;
mod state;
mod summary;
mod wrap;

use brine_value::{Map, Value};
use state::State;
use summary::Counts;

use super::text::lines;
use super::{OutputOptions, pprint};
use crate::escape::escape_control;
use crate::{Colour, Colours};

/// The indentation of the values in a state block.
const MARGIN: usize = 14;

/// Formats `{id: return}`; `None` if the value does not have this form.
pub fn render(value: &Value, options: &OutputOptions) -> Option<String> {
    document(value, options, 1)
}

/// Formats a document at this nesting of state runs: an orchestration within another one is indented further.
fn document(value: &Value, options: &OutputOptions, depth: usize) -> Option<String> {
    let mut hosts = value.as_map()?;
    // Unwraps the result of a runner function (`data`, `outputter`, `retcode`).
    if let Some(data) = hosts.get("data") {
        hosts = data.as_map()?;
    }
    let is_master = |id: &&Value| id.as_str().is_some_and(|id| id.ends_with("_master"));
    let orchestration = hosts.keys().filter(is_master).count() == 1;
    let blocks: Option<Vec<String>> = hosts
        .iter()
        .filter(|(id, _)| !(orchestration && id.as_str() == Some("retcode")))
        .map(|(id, data)| host(&id.to_string(), data, options, depth).map(|host| host.text))
        .collect();
    Some(blocks?.join("\n"))
}

/// The formatted return of a minion.
struct Host {
    text: String,
    changed: bool,
}

fn host(id: &str, data: &Value, options: &OutputOptions, depth: usize) -> Option<Host> {
    let colours = options.colours;
    let mut body = Vec::new();
    let (colour, changed) = match data {
        // A scalar, such as the result of a function in an orchestration, always counts as a change.
        Value::Str(_) | Value::Bool(_) | Value::Int(_) | Value::UInt(_) | Value::Big(_) => {
            for line in lines(&data.to_string()) {
                body.push(colours.paint(Colour::Green, &format!("    {}", escape_control(line))));
            }
            (Colour::Cyan, true)
        }
        Value::List(errors) => {
            compile_errors(errors, colours, &mut body);
            (Colour::LightRed, false)
        }
        Value::Map(states) => {
            let (colour, counts) = run(states, options, depth, &mut body)?;
            let changed = counts.changed > 0;
            counts.write(id, options, &mut body);
            (colour, changed)
        }
        Value::Nil | Value::Float(_) | Value::Bytes(_) => (Colour::Green, false),
    };
    body.insert(0, colours.paint(colour, &format!("{}:", escape_control(id))));
    Some(Host { text: body.join("\n"), changed })
}

fn compile_errors(errors: &[Value], colours: Colours, body: &mut Vec<String>) {
    body.push(format!("    {}", colours.paint(Colour::LightRed, "Data failed to compile:")));
    for error in errors {
        let error = error.to_string();
        body.push(colours.paint(Colour::LightRed, &format!("----------\n    {}", escape_control(&error))));
    }
}

/// Formats the states of a run in order. Returns the counts for the summary, and the colour of the minion's line, which
/// is that of the last failed or pending state.
fn run(states: &Map, options: &OutputOptions, depth: usize, body: &mut Vec<String>) -> Option<(Colour, Counts)> {
    for (key, data) in states {
        let unordered = data.as_map().is_some_and(|data| !data.is_empty() && !data.contains_key("__run_num__"));
        if unordered && key.as_str() != Some("changes") {
            body.insert(0, pprint::render(data));
            body.insert(
                0,
                "The State execution failed to record the order in which all states were executed. \
                 The state return missing data is:"
                    .into(),
            );
        }
    }
    let mut rows = Vec::new();
    for (key, data) in states {
        if let Some(data) = data.as_map().filter(|data| data.contains_key("result")) {
            rows.push(State::read(key.as_str()?, data)?);
        }
    }
    rows.sort_by_key(|state| state.run_number);
    if options.state_compress_ids {
        rows = compress::compress(rows);
    }
    let mut colour = Colour::Green;
    let mut counts = Counts::default();
    for state in &rows {
        let changes = state.changes(options, depth)?;
        counts.add(state, changes.changed);
        if state.is_success() && !changes.changed && (options.state_output_diff || !options.state_verbose) {
            continue;
        }
        match state.result {
            Value::Bool(false) => colour = Colour::Red,
            Value::Nil => colour = Colour::LightYellow,
            _ => {}
        }
        if let Some(text) = state.show(&changes, options) {
            counts.warnings += usize::from(text.has_warnings_block);
            body.push(text.text);
        }
    }
    Some((colour, counts))
}

#[cfg(test)]
mod tests;
