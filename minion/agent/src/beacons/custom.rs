//! Custom beacons: Python files in `_beacons`, with the functions `beacon` and, optionally, `validate`.

use std::sync::Arc;

use brine_context::{Context, Job, Minion};
use brine_function::{Args, CallError};
use brine_ids::Jid;
use brine_value::{Map, Value, list, map};

use super::settings::Settings;
use super::{Beacon, PollContext};

/// The type of these custom modules.
const KIND: &str = "beacons";

/// A custom beacon.
struct Custom {
    module: String,
    /// The configuration, as in Salt a list of mappings.
    config: Value,
}

/// Returns whether a custom beacon of this name exists. Starts Python only if a file may define it.
pub(super) fn exists(minion: &Minion, module: &str) -> bool {
    minion.custom.has_other(KIND, &format!("{module}.beacon"))
}

/// Returns the names of the custom beacons' files.
pub(super) fn names(minion: &Minion) -> Vec<String> {
    let files = minion.custom.files(KIND);
    let stem = |path: &std::path::PathBuf| Some(path.file_stem()?.to_string_lossy().into_owned());
    files.iter().filter_map(stem).collect()
}

/// Returns the error that keeps the file of a beacon from being loaded; `None` if there is none.
pub(super) fn failure(minion: &Minion, module: &str) -> Option<String> {
    minion.custom.failure(KIND, module)
}

/// Validates the options with the module's own function, if it has one, and creates the beacon.
pub(super) fn start(context: &Context, settings: &Settings, config: &Value) -> Result<Box<dyn Beacon>, String> {
    let mut options = match config {
        Value::List(all) => all.clone(),
        Value::Nil => Vec::new(),
        other => vec![other.clone()],
    };
    options.push(map! {"_beacon_name" => settings.module.as_str()}.into());
    let beacon = Custom { module: settings.module.clone(), config: options.into() };
    match beacon.call(context, "validate") {
        Some(Err(error)) => return Err(error.to_string()),
        Some(Ok(Value::List(answer))) if !answer.first().is_some_and(Value::is_truthy) => {
            let reason = answer.get(1).map(ToString::to_string).unwrap_or_default();
            return Err(reason);
        }
        Some(Ok(Value::Bool(false))) => return Err("its function 'validate' refuses the configuration".to_owned()),
        None | Some(Ok(_)) => {}
    }
    Ok(Box::new(beacon))
}

/// Creates the context of a call outside a poll.
pub(super) fn context(minion: &Arc<Minion>) -> Context {
    let job = Job::local(&Jid::new(), "beacons", &Args::default());
    Context::new(Arc::clone(minion), Arc::new(job))
}

impl Custom {
    /// Calls a function of the module with the configuration; `None` if the module has no such function.
    fn call(&self, context: &Context, function: &str) -> Option<Result<Value, CallError>> {
        let name = format!("{}.{function}", self.module);
        context.minion.custom.call_of(context, KIND, &name, Args::positional([self.config.clone()]))
    }
}

impl Beacon for Custom {
    fn poll(&mut self, poll: &PollContext<'_>) -> Result<Vec<Map>, String> {
        let polled = self.call(poll.context, "beacon").unwrap_or_else(|| Ok(list![]));
        match polled.map_err(|error| error.to_string())? {
            Value::List(all) => {
                let wrong =
                    |other: &Value| format!("'{}.beacon' returned a list with {}", self.module, other.type_name());
                all.into_iter()
                    .map(|one| match one {
                        Value::Map(map) => Ok(map),
                        other => Err(wrong(&other)),
                    })
                    .collect()
            }
            Value::Nil => Ok(Vec::new()),
            other => Err(format!("'{}.beacon' returned {}, not a list of mappings", self.module, other.type_name())),
        }
    }
}
