//! The blackout of a minion, as by Salt 3008.5: jobs, scheduled jobs and reactions call no function that is not allowed.

use brine_value::{Value, json};

use crate::support::{System, stderr, stdout, until};

/// The message of Salt 3008.5 after the function's name.
const MESSAGE: &str = "Minion in blackout mode. Set 'minion_blackout' to False in pillar or grains to resume operations. \
                       Only saltutil.refresh_pillar allowed in blackout mode.";

const MINION: &str = "schedule:
  often: {function: cmd.run, seconds: 1, args: ['echo scheduled >> ROOT/ran'], return_job: False}
  mine: {function: test.ping, seconds: 1}
reactor:
  - 'try/react': [ROOT/react.sls]
start_event: True
";

/// Returns what `salt` shows of a call, and its exit status.
fn call(system: &System, words: &[&str]) -> (Value, Option<i32>) {
    let all = [&["--out=json", "web1"], words].concat();
    let output = system.tool("salt", &all);
    let text = stdout(&output);
    let value = json::from_json(&text).unwrap_or_else(|_| panic!("{text}{}", stderr(&output)));
    (value.get("web1").cloned().unwrap_or_default(), output.status.code())
}

fn refused(function: &str) -> (Value, Option<i32>) {
    (format!("ERROR executing '{function}': {MESSAGE}").into(), Some(1))
}

/// Sets the pillar of the minion, and waits until it has it.
fn set_pillar(system: &System, pillar: &str) {
    system.write("srv/pillar/b.sls", pillar);
    assert_eq!(call(system, &["saltutil.refresh_pillar", "wait=True"]), (true.into(), Some(0)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_blackout_refuses_all_but_the_allowed_functions() {
    let mut system = System::start("").await;
    system.write("srv/pillar/top.sls", "base: {'*': [b]}\n");
    system.write("srv/pillar/b.sls", "{}\n");
    system.write("srv/salt/s.sls", "a:\n  cmd.run:\n    - name: echo state >> ROOT/ran\n");
    system.write("react.sls", "r:\n  caller.cmd.run:\n    - args:\n      - cmd: echo reaction >> ROOT/ran\n");
    system.configure_minion("web1", MINION);
    let mut events = system.events("salt/minion/").await;
    system.spawn_minion("web1");
    events.until("salt/minion/web1/start").await;
    let ran = || std::fs::read_to_string(system.path("ran")).unwrap_or_default();
    until("the schedule runs", || ran().contains("scheduled")).await;
    assert_eq!(call(&system, &["event.fire", "{}", "try/react"]).1, Some(0));
    until("the reaction runs", || ran().contains("reaction")).await;

    set_pillar(&system, "minion_blackout: True\n");
    std::fs::write(system.path("ran"), "").unwrap();
    for function in [
        "test.ping",
        "state.apply",
        "saltutil.find_job",
        "saltutil.refresh_grains",
        "sys.list_functions",
        "mine.update",
    ] {
        let words: &[&str] = if function == "saltutil.find_job" { &[function, "1"] } else { &[function] };
        assert_eq!(call(&system, words), refused(function));
    }
    // A function that does not exist has Salt's message; with an executor it is refused.
    assert_eq!(call(&system, &["no.such"]).0, "'no.such' is not available.".into());
    assert_eq!(call(&system, &["--module-executors=[direct_call]", "test.ping"]), refused("test.ping"));
    // Each of several functions by itself.
    let (several, _) = call(&system, &["saltutil.refresh_pillar,test.ping", ",", ""]);
    assert_eq!(several.get("test.ping"), Some(&refused("test.ping").0), "{several}");
    assert_eq!(several.get("saltutil.refresh_pillar"), Some(&true.into()), "{several}");
    // `salt-call` is not affected, as in Salt; its event reaches the minion's reactor, which calls nothing.
    let etc = system.path("web1/etc").display().to_string();
    let output = System::command("salt-call", &["-c", &etc, "event.fire", "{}", "try/react"]);
    assert!(output.status.success(), "{}", stderr(&output));
    until("the schedule and the reaction are refused", || {
        let log = system.minion_log("web1");
        let refused = log.lines().filter(|line| line.contains("the minion is in blackout mode"));
        refused.filter(|line| line.contains("cmd.run")).count() >= 3
    })
    .await;
    assert_eq!(ran(), "");

    // Names are exact.
    for (allowed, runs) in
        [("[test.ping, state.apply]", true), ("['test.*']", false), ("test.ping", true), ("{test.ping: 1}", true)]
    {
        set_pillar(&system, &format!("minion_blackout: True\nminion_blackout_whitelist: {allowed}\n"));
        let expected = if runs { (true.into(), Some(0)) } else { refused("test.ping") };
        assert_eq!(call(&system, &["test.ping"]), expected, "{allowed}");
    }
    set_pillar(&system, "minion_blackout: True\nminion_blackout_whitelist: [test.ping, state.apply, grains.setval]\n");
    // What an allowed function calls is allowed.
    assert_eq!(call(&system, &["state.apply", "s"]).1, Some(0));
    assert_eq!(ran(), "state\n");
    // Pillar and grains must both allow a function.
    assert_eq!(call(&system, &["grains.setval", "minion_blackout", "True"]).1, Some(0));
    assert_eq!(call(&system, &["test.ping"]), refused("test.ping"));
    set_pillar(&system, "{}\n");
    assert_eq!(call(&system, &["test.ping"]), refused("test.ping"));
    let output = System::command("salt-call", &["-c", &etc, "grains.delval", "minion_blackout", "destructive=True"]);
    assert!(output.status.success(), "{}", stderr(&output));
    // The daemon collects its grains when it starts.
    system.stop_minion("web1");
    system.spawn_minion("web1");
    events.until("salt/minion/web1/start").await;
    until("the blackout ends", || call(&system, &["test.ping"]) == (true.into(), Some(0))).await;
}
