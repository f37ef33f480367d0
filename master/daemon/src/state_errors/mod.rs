//! Publishes events of failed states in a return of `state.highstate` or `state.sls`: two for each state, one in the
//! old style and one below the tags of the job.

use brine_value::{Map, Value};

/// The functions whose returns hold states. As in Salt, `state.apply` is not among them.
const FUNCTIONS: &[&str] = &["state.highstate", "state.sls"];

/// The maximum number of failed states of one return for which events are published. The return itself contains all of
/// them.
const MAX_STATES: usize = 1000;

/// Returns the events of a return in order, each with its tag.
pub(crate) fn of_return(load: &Map) -> Vec<(String, Map)> {
    let field = |name: &str| load.get(name).cloned().unwrap_or_default();
    let (jid, id) = (field("jid"), field("id"));
    let mut events = Vec::new();
    for (fun, states, retcode) in functions(&field("fun"), &field("return"), &field("retcode")) {
        let Some(states) = states.as_map() else { continue };
        for (key, state) in states {
            let (key, Some(state)) = (key.to_string(), state.as_map()) else { continue };
            if state.get("result").and_then(Value::as_bool) != Some(false) {
                continue;
            }
            if events.len() >= 2 * MAX_STATES {
                tracing::warn!(minion = %id, %jid, "more than {MAX_STATES} failed states in one return: the others have no events of their own");
                brine_bus::metrics::EVENTS_REFUSED.add(1);
                return events;
            }
            let mut parts = key.split("_|-");
            let module = parts.next().unwrap_or_default();
            let function = parts.last().unwrap_or(module);
            // The name becomes part of a tag, and the minion chooses it: it must be a valid name of a state function.
            if !is_identifier(module) || !is_identifier(function) {
                tracing::warn!(minion = %id, %jid, state = %key, "state error not published: the key of the state is invalid: expected module_|-id_|-name_|-function");
                continue;
            }
            let name = format!("{module}.{function}");
            let mut body = state.clone();
            body.insert("retcode".into(), retcode.clone());
            events.push((name.clone(), body.clone()));
            body.insert("jid".into(), jid.clone());
            body.insert("id".into(), id.clone());
            body.insert("success".into(), false.into());
            body.insert("return".into(), format!("Error: {name}").into());
            body.insert("fun".into(), fun.as_str().into());
            body.extend(load.get("user").map(|user| ("user".into(), user.clone())));
            events.push((format!("salt/job/{jid}/sub/{id}/error/{fun}"), body));
        }
    }
    events
}

/// Whether a string is a Python identifier, as names of modules and functions are.
fn is_identifier(text: &str) -> bool {
    let mut chars = text.chars();
    chars.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// Returns the failed state functions of a return, each with name, return and retcode.
fn functions(fun: &Value, returned: &Value, retcode: &Value) -> Vec<(String, Value, Value)> {
    let nth = |value: &Value, at: usize, name: &Value| match value {
        Value::List(all) => all.get(at).cloned().unwrap_or_default(),
        Value::Map(all) => all.get(name).cloned().unwrap_or_default(),
        _ => Value::Nil,
    };
    let all: Vec<(String, Value, Value)> = match fun {
        Value::List(names) => {
            let one = |(at, name): (usize, &Value)| (name.to_string(), nth(returned, at, name), nth(retcode, at, name));
            names.iter().enumerate().map(one).collect()
        }
        one => vec![(one.to_string(), returned.clone(), retcode.clone())],
    };
    all.into_iter().filter(|(name, _, retcode)| FUNCTIONS.contains(&name.as_str()) && retcode.is_truthy()).collect()
}

#[cfg(test)]
mod tests;
