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
        let result = roster::hosts(&options, &"web*".into(), TargetKind::Glob, &functions);
        match (result, expected) {
            (Ok(hosts), Ok(count)) => assert_eq!(hosts.len(), count),
            (Err(error), Err(part)) => assert!(error.to_string().contains(part), "{error}"),
            (result, _) => panic!("{result:?}"),
        }
        let unknown = RosterOptions { roster: "none".into(), ..options };
        let error = roster::hosts(&unknown, &"web*".into(), TargetKind::Glob, &functions).unwrap_err();
        assert!(matches!(error, RosterError::Unknown(_)));
    }
}
