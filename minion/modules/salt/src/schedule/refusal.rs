//! Refuses new jobs for the reasons for which the check of a configuration does: unknown options and functions.

use brine_context::suggest::not_available;
use brine_context::{Context, custom};
use brine_text::nearest::nearest;
use brine_value::{Map, Value};

use super::item::{COPIED_OPTIONS, UNITS};

/// The other arguments of `schedule.add` and `schedule.modify`.
const OTHER: &[&str] = &[
    "name",
    "function",
    "job_args",
    "job_kwargs",
    "return_job",
    "metadata",
    "maxrunning",
    "enabled",
    "jid_include",
    "splay",
    "test",
    "persist",
    "offline",
];

/// Returns why a job with these arguments is refused, if it is.
pub(super) fn reason(context: &Context, name: &str, kwargs: &Map) -> Option<String> {
    let options = || UNITS.iter().chain(COPIED_OPTIONS).chain(OTHER);
    for option in kwargs.keys().filter_map(Value::as_str).filter(|option| !option.starts_with("__")) {
        if !options().any(|candidate| *candidate == option) {
            let near = nearest(option, options()).map(|near| format!("; did you mean '{near}'?")).unwrap_or_default();
            return Some(format!("Schedule item {name} is invalid: unknown option '{option}'{near}"));
        }
    }
    let function = kwargs.get("function").and_then(Value::as_str)?;
    let (minion, module) = (&context.minion, function.split('.').next().unwrap_or_default());
    let is_known = minion.functions.get(function).is_some()
        || minion.config.python_fallback
        || custom::may_have(&minion.config, "modules", module);
    (!is_known).then(|| format!("Schedule item {name} is invalid: {}", not_available(minion, function)))
}
