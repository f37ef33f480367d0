//! `master_tops`: the SLS files that modules assign to a minion in addition to the top file. The master evaluates them
//! for its minions; a minion with local files (`file_client: local`) evaluates its own modules.

use brine_config::opts::shared;
use brine_function::{Args, CallError};
use brine_jinja::{CustomCall, Host, Role};
use brine_text::shell;
use brine_value::{Map, Value, map};

/// Returns the lists of SLS files by environment that the modules of the option `master_tops` assign to a minion.
/// `minion` are its options, with its `id` and `grains`.
///
/// As in Salt, a module that fails is logged and assigns nothing.
pub fn assigned(opts: &Map, minion: &Map, functions: &Host) -> Map {
    let mut all = Map::new();
    for (name, configured) in shared::master_tops(opts) {
        let name = name.to_string();
        let tops = custom(&name, minion, functions).or_else(|| match name.as_str() {
            "ext_nodes" => Some(external_nodes(&configured, minion, functions)),
            _ => None,
        });
        match tops {
            Some(Ok(Value::Map(tops))) => add(&mut all, tops),
            Some(Ok(Value::Nil)) => {}
            Some(Ok(other)) => {
                tracing::error!(name, "a module of master_tops returned {}, not a mapping", other.type_name());
            }
            Some(Err(error)) => tracing::error!(name, error = error.message(), "a module of master_tops failed"),
            None => tracing::error!(
                name,
                "the module of master_tops is not there: copy it with `salt-run saltutil.sync_tops`; built in is ext_nodes"
            ),
        }
    }
    all
}

/// Calls `top` of the custom module of this name, if there is one.
fn custom(name: &str, minion: &Map, functions: &Host) -> Option<Result<Value, CallError>> {
    let args = || {
        let grains = minion.get("grains").cloned().unwrap_or_else(Value::map);
        Args::keyword(map! {"opts" => minion.clone(), "grains" => grains})
    };
    functions.custom(&CustomCall { kind: "tops", function: &format!("{name}.top"), args: &args, opts: Map::new() })
}

/// Runs a command with the minion's id as its last argument. Its output is YAML with `classes`, the SLS files as a list
/// or as the keys of a mapping, and `environment` (default: `base`).
fn external_nodes(command: &Value, minion: &Map, functions: &Host) -> Result<Value, CallError> {
    let Some(id) = minion.get("id").map(ToString::to_string) else { return Ok(Value::Nil) };
    let run = functions.name_of(Role::Run).ok_or_else(|| CallError::execution("commands are not available here"))?;
    let args = Args {
        positional: vec![format!("{command} {}", shell::quote(&id)).into()],
        keyword: map! {"python_shell" => false, "raise_err" => true},
    };
    let output = functions.call(run, args)?.to_string();
    let data = brine_yaml::load(&output)
        .map_err(|error| CallError::Execution(format!("the output of '{command}' is not YAML: {error}")))?;
    let environment = data.get("environment").map_or_else(|| "base".to_owned(), ToString::to_string);
    let classes: Value = match data.get("classes") {
        Some(Value::Map(classes)) => classes.keys().cloned().collect(),
        Some(Value::List(classes)) => classes.clone().into(),
        _ => return Ok(Value::Nil),
    };
    Ok(map! {environment => classes}.into())
}

/// Adds SLS files to those of the same environment, each once.
fn add(all: &mut Map, tops: Map) {
    for (environment, names) in tops {
        let Value::List(names) = names else {
            tracing::error!(%environment, "master_tops assigned {}, not a list of SLS files", names.type_name());
            continue;
        };
        match all.entry(environment).or_insert_with(|| Value::List(Vec::new())) {
            Value::List(have) => {
                let new: Vec<Value> = names.into_iter().filter(|name| !have.contains(name)).collect();
                have.extend(new);
            }
            other => *other = names.into(),
        }
    }
}

#[cfg(test)]
mod tests;
