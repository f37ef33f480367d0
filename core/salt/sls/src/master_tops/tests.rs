use brine_jinja::Functions;
use brine_value::list;

use super::*;

/// A host with a command, and with the module `own`.
struct OneHost;

impl Functions for OneHost {
    fn call(&self, _: &str, args: Args) -> Result<Value, CallError> {
        match args.positional[0].as_str() {
            Some("classify 'a b'") => Ok("{environment: dev, classes: {web: {}, db: {}}}".into()),
            Some("classify web1") => Ok("classes: [web]".into()),
            other => Err(CallError::Execution(format!("{other:?}"))),
        }
    }

    fn has(&self, function: &str) -> bool {
        function == "cmd.run"
    }

    fn has_module(&self, _: &str) -> bool {
        false
    }

    fn name_of(&self, _: Role) -> Option<&'static str> {
        Some("cmd.run")
    }

    fn custom(&self, call: &CustomCall<'_>) -> Option<Result<Value, CallError>> {
        let args = (call.args)();
        let os = args.keyword.get("grains").and_then(|grains| grains.get("os")).cloned();
        (call.function == "own.top").then(|| Ok(map! {"base" => list!["web", os.unwrap_or_default()]}.into()))
    }
}

#[test]
fn modules_assign_files_by_environment() {
    let host = Host::new().with_functions(OneHost);
    let opts = |id: &str| map! {"id" => id, "grains" => map! {"os" => "Debian"}};
    for (configured, id, expected) in [
        (map! {"ext_nodes" => "classify"}, "a b", map! {"dev" => list!["web", "db"]}),
        (map! {"ext_nodes" => "classify", "own" => 1}, "web1", map! {"base" => list!["web", "Debian"]}),
        (map! {"ext_nodes" => "fails"}, "web1", map! {}),
        (map! {"cobbler" => true}, "web1", map! {}),
        (map! {}, "web1", map! {}),
    ] {
        let master = map! {"master_tops" => configured.clone()};
        assert_eq!(assigned(&master, &opts(id), &host), expected, "{configured:?} {id}");
    }
}
