use brine_value::list;

use super::*;
use crate::testing;

fn results(states: &[(&str, Map)], test: bool) -> String {
    let context = testing::state_context(test, &[("s.sh", "echo script $*; exit 3\n")]);
    let report = states.iter().map(|(fun, args)| {
        let outcome = context.call.minion.states.call(&context, fun, Args::keyword(args.clone())).unwrap();
        let mut changes = outcome.get("changes").and_then(Value::as_map).cloned().unwrap();
        changes.shift_remove("pid");
        let changes = brine_value::json::to_json(&changes.into());
        format!("{}: {} | {changes}", outcome.get("result").unwrap(), outcome.get("comment").unwrap())
    });
    report.collect::<Vec<_>>().join("\n")
}

fn states() -> Vec<(&'static str, Map)> {
    vec![
        ("cmd.run", map! {"name" => "echo out; echo err >&2; exit 3"}),
        ("cmd.run", map! {"name" => "exit 3", "success_retcodes" => list![3]}),
        ("cmd.run", map! {"name" => "echo $A", "env" => list![map! {"A" => "1"}], "hide_output" => true}),
        ("cmd.run", map! {"name" => "pwd", "cwd" => "/nope"}),
        ("cmd.run", map! {"name" => "pwd", "runas" => "nobody_here"}),
        ("cmd.run", map! {"name" => "echo changed=yes comment=good", "stateful" => true}),
        ("cmd.run", map! {"name" => r#"echo '{"changed": false, "comment": "same"}'"#, "stateful" => true}),
        ("cmd.run", map! {"name" => "echo words alone", "stateful" => true}),
        ("cmd.wait", map! {"name" => "echo waited"}),
        ("cmd.watch", map! {"name" => "echo waited"}),
        ("cmd.mod_watch", map! {"name" => "echo waited", "sfun" => "watch"}),
        ("cmd.script", map! {"name" => "salt://s.sh", "args" => "a b"}),
        ("cmd.script", map! {"name" => "other", "source" => "salt://s.sh"}),
        ("cmd.script", map! {"name" => "salt://nope.sh"}),
        ("cmd.script", map! {"name" => "other"}),
        ("cmd.mod_watch", map! {"name" => "s x", "source" => "salt://s.sh", "sfun" => "wait_script"}),
    ]
}

#[test]
fn results_of_commands_match_salt() {
    insta::assert_snapshot!(results(&states(), false), @r#"
        False: Command "echo out; echo err >&2; exit 3" run | {"retcode": 3, "stdout": "out", "stderr": "err"}
        True: Command "exit 3" run | {"retcode": 0, "stdout": "", "stderr": ""}
        True: Command "echo $A" run | {"retcode": 0, "stdout": "", "stderr": ""}
        False: Desired working directory "/nope" is not available | {}
        False: User 'nobody_here' is not available | {}
        True: good | {"changed": "yes", "retcode": 0, "stdout": "changed=yes comment=goo", "stderr": ""}
        True: same | {}
        False: Failed parsing script output! Stdout must be JSON or a line of name=value pairs. | {"retcode": 0, "stdout": "words alone", "stderr": ""}
        True:  | {}
        True:  | {}
        True: Command "echo waited" run | {"retcode": 0, "stdout": "waited", "stderr": ""}
        False: Command 'salt://s.sh' run | {"retcode": 3, "stdout": "script a b", "stderr": ""}
        False: Command 'other' run | {"retcode": 3, "stdout": "script", "stderr": ""}
        False: Unable to cache script salt://nope.sh from saltenv 'base' | {"retcode": 1, "stdout": "", "stderr": "", "cache_error": true}
        False: Path 'other' is not absolute | {}
        False: Command 's x' run | {"retcode": 3, "stdout": "script x", "stderr": ""}
        "#);
}

#[test]
fn nothing_runs_in_test_mode() {
    let states = [states().remove(0), states().remove(11)];
    insta::assert_snapshot!(results(&states, true), @r#"
        None: Command "echo out; echo err >&2; exit 3" would have been executed | {"cmd": "echo out; echo err >&2; exit 3"}
        None: Command 'salt://s.sh' would have been executed | {}
        "#);
}
