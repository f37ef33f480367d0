//! `file.pruned`: removes empty directories.

use brine_context::{StateContext, StateReturn};
use brine_function::{Args, CallError};
use brine_value::{Map, Value, map};

pub(super) fn state(
    context: &StateContext,
    name: &str,
    recurse: bool,
    ignore_errors: bool,
    older_than: Option<u64>,
) -> Result<Value, CallError> {
    if !std::path::Path::new(name).is_dir() {
        return Ok(StateReturn::ok(name, format!("Directory {name} is not present")).into());
    }
    if context.test {
        let comment = format!("Directory {name} is set for removal");
        return Ok(StateReturn::predicted(name, comment).with_changes(map! {"deleted" => name}).into());
    }
    let keyword: Map = map! {"recurse" => recurse, "verbose" => true, "older_than" => older_than.map(Value::from)};
    let result = context.call.call("file.rmdir", Args { positional: vec![name.into()], keyword })?;
    let mut report = result.as_map().cloned().unwrap_or_default();
    let result = report.shift_remove("result").is_some_and(|result| result.is_truthy());
    let deleted = report.get("deleted").and_then(Value::as_list).unwrap_or_default();
    let mut deleted: Vec<String> = deleted.iter().map(ToString::to_string).collect();
    deleted.sort();
    if !result && (!ignore_errors || deleted.is_empty()) {
        return Ok(StateReturn::failed(name, format!("Failed to remove directory {name}")).with_changes(report).into());
    }
    let outcome = match (recurse, deleted.is_empty()) {
        (true, true) => StateReturn::ok(name, ""),
        (true, false) => StateReturn::ok(name, format!("Recursively removed empty directories under {name}"))
            .with_changes(map! {"deleted" => deleted}),
        (false, _) => StateReturn::ok(name, format!("Removed directory {name}")).with_changes(map! {"deleted" => name}),
    };
    Ok(outcome.into())
}
