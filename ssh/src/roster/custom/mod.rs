//! Custom rosters: the function `targets(tgt, tgt_type)` in `_roster/NAME.py` returns the hosts of a target.

use brine_function::Args;
use brine_jinja::{CustomCall, Host as Functions};
use brine_target::TargetKind;
use brine_value::{Map, Value, map};

use super::{Fields, MAX_HOSTS, RosterError, RosterOptions};

/// Returns the fields of the hosts of a target.
pub(super) fn hosts(
    name: &str,
    options: &RosterOptions,
    tgt: &Value,
    kind: TargetKind,
    functions: &Functions,
) -> Result<Fields, RosterError> {
    let args = || Args::positional([tgt.clone(), kind.name().into()]);
    let opts = map! {"roster" => name, "roster_file" => options.file.clone(), "tgt" => tgt.clone(), "selected_target_option" => kind.name()};
    let function = format!("{name}.targets");
    let called = functions.custom(&CustomCall { kind: "roster", function: &function, args: &args, opts });
    let failed = |reason: String| RosterError::Program(format!("the roster '{name}' failed: {reason}"));
    let result = called.ok_or_else(|| RosterError::Unknown(name.to_owned()))?;
    let hosts = match result.map_err(|error| failed(error.to_string()))? {
        Value::Map(hosts) => hosts,
        Value::Nil => Map::new(),
        other => return Err(failed(format!("its result is invalid: expected a mapping, got {}", other.type_name()))),
    };
    if hosts.len() > MAX_HOSTS {
        return Err(failed(format!("it returned {} hosts, the limit is {MAX_HOSTS}", hosts.len())));
    }
    hosts
        .into_iter()
        .map(|(id, fields)| match fields {
            Value::Map(fields) => Ok((id.to_string(), fields)),
            Value::Str(host) => Ok((id.to_string(), map! {"host" => host})),
            other => Err(failed(format!("'{id}' is invalid: expected a mapping, got {}", other.type_name()))),
        })
        .collect()
}

#[cfg(test)]
mod tests;
