use brine_function::Args;
use brine_testing::Scripted;

use crate::testing::context_with;

use super::*;

fn run(
    function: &str,
    name: &str,
    keyword: Map,
    test: bool,
    transcript: &str,
) -> (Option<bool>, String, Value, String) {
    let programs = Scripted::new(transcript);
    let call = context_with(map! {}, programs.clone());
    let context = brine_testing::state_context(test, call.clone());
    let mut keyword = keyword;
    keyword.insert("name".into(), name.into());
    let report = call.minion.states.call(&context, function, Args { keyword, ..Args::default() }).unwrap();
    let result = report.get("result").and_then(Value::as_bool);
    let text = report.get("comment").unwrap().to_string();
    (result, text, report.get("changes").cloned().unwrap(), programs.ran())
}

const STATUS: &str =
    "$ supervisorctl status\n| web RUNNING pid 5\n| jobs:a STOPPED Not started\n| jobs:b RUNNING pid 6\n";

#[test]
fn processes_are_started_restarted_and_stopped() {
    for (function, name, keyword, test, more, result, comment, last) in [
        (
            "supervisord.running",
            "web",
            map! {},
            false,
            "",
            Some(true),
            "Not starting already running service: web",
            "supervisorctl status",
        ),
        (
            "supervisord.running",
            "web",
            map! {"restart" => true},
            false,
            "$ supervisorctl restart web\n| web: started",
            Some(true),
            "Restarting service: web",
            "supervisorctl restart web",
        ),
        (
            "supervisord.mod_watch",
            "web",
            map! {},
            false,
            "$ supervisorctl restart web\n| web: ERROR (spawn error)\n= 7",
            Some(false),
            "web: ERROR (spawn error)",
            "supervisorctl restart web",
        ),
        (
            "supervisord.running",
            "jobs:*",
            map! {},
            false,
            "$ supervisorctl start jobs:\n| jobs:a: started\n| jobs:b: ERROR (already started)",
            Some(true),
            "Starting group: jobs:",
            "supervisorctl start jobs:",
        ),
        (
            "supervisord.running",
            "new",
            map! {},
            false,
            "$ supervisorctl reread\n| new: available\n$ supervisorctl add new\n| new: added process group\n$ supervisorctl start new\n| new: ERROR (already started)",
            Some(true),
            "Starting: new",
            "supervisorctl start new",
        ),
        (
            "supervisord.running",
            "jobs:",
            map! {},
            true,
            "",
            None,
            "The following services will be started: jobs:a",
            "supervisorctl status",
        ),
        (
            "supervisord.running",
            "new",
            map! {},
            true,
            "",
            None,
            "Service new will be added and started",
            "supervisorctl status",
        ),
        (
            "supervisord.dead",
            "web",
            map! {},
            false,
            "$ supervisorctl stop web\n| web: stopped",
            Some(true),
            "Stopping service: web",
            "supervisorctl stop web",
        ),
        (
            "supervisord.dead",
            "none",
            map! {},
            false,
            "",
            Some(true),
            "Service none doesn't exist",
            "supervisorctl status",
        ),
        ("supervisord.dead", "web", map! {}, true, "", None, "Service web is set to be stopped", ""),
    ] {
        let (got, text, changes, ran) = run(function, name, keyword, test, &format!("{STATUS}{more}"));
        assert_eq!((got, text.as_str()), (result, comment), "{function} {name}");
        assert_eq!(ran.lines().last().unwrap_or_default(), last, "{function} {name}");
        let is_change = result == Some(true) && !last.ends_with("status");
        assert_eq!(changes.is_truthy(), is_change, "{function} {name}: {changes}");
    }
}
