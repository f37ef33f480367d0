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
    let found = called.ok_or_else(|| RosterError::Unknown(name.to_owned()))?;
    let found = match found.map_err(|error| failed(error.to_string()))? {
        Value::Map(hosts) => hosts,
        Value::Nil => Map::new(),
        other => return Err(failed(format!("its result is invalid: expected a mapping, got {}", other.type_name()))),
    };
    if found.len() > MAX_HOSTS {
        return Err(failed(format!("it returned {} hosts, the limit is {MAX_HOSTS}", found.len())));
    }
    found
        .into_iter()
        .map(|(id, fields)| match fields {
            Value::Map(fields) => Ok((id.to_string(), fields)),
            Value::Str(host) => Ok((id.to_string(), map! {"host" => host})),
            other => Err(failed(format!("'{id}' is invalid: expected a mapping, got {}", other.type_name()))),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use brine_function::CallError;

    use super::*;
    use crate::roster;
    use crate::roster::tests::options;

    /// A stub module that returns this value for every target.
    struct Module(Value);

    impl brine_jinja::Functions for Module {
        fn call(&self, function: &str, _args: Args) -> Result<Value, CallError> {
            Err(CallError::NotAvailable(function.to_owned()))
        }

        fn has(&self, _function: &str) -> bool {
            false
        }

        fn has_module(&self, _module: &str) -> bool {
            false
        }

        fn custom(&self, call: &CustomCall<'_>) -> Option<Result<Value, CallError>> {
            assert_eq!((call.args)().positional, ["web*".into(), "glob".into()]);
            (call.kind == "roster" && call.function == "racks.targets").then(|| Ok(self.0.clone()))
        }
    }

    #[test]
    fn hosts_of_a_custom_module_are_checked_like_those_of_files() {
        for (returned, expected) in [
            (map! {"db1" => map! {"host" => "10.0.0.1", "port" => 2222}, "db2" => "10.0.0.2"}.into(), Ok(2)),
            (Value::Nil, Ok(0)),
            (map! {"db1" => map! {"host" => "-oProxyCommand=touch /x"}}.into(), Err("'host' of db1")),
            (map! {"../x" => map! {"host" => "a"}}.into(), Err("the id '../x'")),
            (map! {"db1" => 1}.into(), Err("'db1' is invalid: expected a mapping")),
            ("text".into(), Err("its result is invalid: expected a mapping")),
        ] {
            let functions = Functions::new().with_functions(Module(returned));
            let options = RosterOptions { roster: "racks".into(), ..options("".into()) };
            let found = roster::hosts(&options, &"web*".into(), TargetKind::Glob, &functions);
            match (found, expected) {
                (Ok(hosts), Ok(count)) => assert_eq!(hosts.len(), count),
                (Err(error), Err(part)) => assert!(error.to_string().contains(part), "{error}"),
                (found, _) => panic!("{found:?}"),
            }
            let unknown = RosterOptions { roster: "none".into(), ..options };
            let error = roster::hosts(&unknown, &"web*".into(), TargetKind::Glob, &functions).unwrap_err();
            assert!(matches!(error, RosterError::Unknown(_)));
        }
    }
}
