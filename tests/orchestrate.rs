//! Orchestrations: states on the master that act on minions, from the command line and from the reactor.

use crate::support::{System, stdout, text};
use brine_value::json::from_json;
use brine_value::{Map, Value};

const ORCH: &str = "{% set up = salt['saltutil.runner']('manage.up') %}
last:
  salt.function:
    - name: test.arg
    - tgt: '*'
    - arg: [{{ pillar.get('version', 'none') }}, {{ up | length }}]
    - kwarg: {a: b}
    - require: [{salt: states}]
states:
  salt.state:
    - tgt: web1
    - sls: good
unchanged:
  salt.state:
    - tgt: 'web*'
    - sls: [quiet]
    - batch: 1
keys:
  salt.wheel:
    - name: key.list_all
up:
  salt.runner:
    - name: manage.up
side:
  salt.parallel_runners:
    - runners: {one: [{name: test.arg}], two: [{name: manage.up}]}
";

const BAD: &str = "states:
  salt.state:
    - tgt: '*'
    - sls: bad
    - fail_minions: web2
gone:
  salt.function:
    - name: test.ping
    - tgt: [web1, web9]
    - tgt_type: list
nobody:
  salt.function:
    - name: test.ping
    - tgt: nobody
after:
  test.nop:
    - require: [{salt: nobody}]
unknown:
  salt.runner:
    - name: no.such
";

async fn system(extra: &str) -> System {
    let mut system = System::start(extra).await;
    for (name, content) in [
        ("orch", ORCH),
        ("bad_orch", BAD),
        ("good", "one: test.succeed_with_changes\n"),
        ("quiet", "one: test.nop\n"),
        ("bad", "one: test.fail_without_changes\n"),
    ] {
        system.write(&format!("srv/salt/{name}.sls"), content);
    }
    for id in ["web1", "web2"] {
        system.start_minion(id).await;
    }
    system
}

/// Returns the results of an orchestration by id, and its exit status.
fn orchestrate(system: &System, words: &[&str]) -> (Map, i32) {
    let all: Vec<&str> = [&["--out=json", "state.orchestrate"], words].concat();
    let output = system.tool("salt-run", &all);
    let document = from_json(&stdout(&output)).unwrap_or_else(|_| panic!("{output:?}"));
    let results = document.get("data").unwrap().as_map().unwrap().values().next().unwrap().as_map().unwrap().clone();
    let id = |tag: &Value| tag.to_string().split("_|-").nth(1).unwrap().into();
    (results.into_iter().map(|(tag, result)| (id(&tag), result)).collect(), output.status.code().unwrap())
}

fn report(results: &Map, id: &str) -> (Value, String) {
    let result = results.get(id).unwrap_or_else(|| panic!("{id} is not in {results:?}"));
    (result.get("result").unwrap().clone(), result.get("comment").unwrap().to_string())
}

/// As in Salt, templates of an orchestration see the options of the master, and its id.
#[tokio::test(flavor = "multi_thread")]
async fn templates_see_the_options_of_the_master() {
    let system = System::start("gather_job_timeout: 61\nid: boss\nown: {deep: yes it is}\n").await;
    let all = "{{ [opts.gather_job_timeout, opts['__role'], opts.id, grains.id, salt['config.get']('own:deep'), \
               salt['grains.get']('id'), opts.interface, salt['config.option']('gather_job_timeout')] | json }}";
    system.write("srv/salt/orch.sls", &format!("a:\n  salt.runner:\n    - name: test.arg\n    - arg: [{all}]\n"));
    let (results, code) = orchestrate(&system, &["orch"]);
    assert_eq!(code, 0, "{results:?}");
    let returned = results.get("a").and_then(|result| result.get("changes")?.get("return")?.get("args")).unwrap();
    assert_eq!(returned.to_string(), "[[61, 'master', 'boss', 'boss', 'yes it is', 'boss', '127.0.0.1', 61]]");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_kind_of_state_acts_on_the_master_or_its_minions() {
    let system = system("").await;
    let (results, code) = orchestrate(&system, &["orch", "pillar={version: 3}"]);
    assert_eq!(code, 0, "{results:?}");
    for (id, comment) in [
        ("last", "Function ran successfully. Function test.arg ran on web1, web2."),
        ("states", "States ran successfully. Updating web1."),
        ("unchanged", "States ran successfully. No changes made to web1, web2."),
        ("keys", "Wheel function 'key.list_all' executed."),
        ("up", "Runner function 'manage.up' executed."),
        ("side", "All runner functions executed successfully."),
    ] {
        assert_eq!(report(&results, id), (true.into(), comment.into()), "{id}");
    }
    let last = results.get("last").unwrap();
    let args = last.get("changes").and_then(|changes| changes.get("ret")?.get("web2")?.get("args")).unwrap();
    assert_eq!(args.to_string(), "[3, 2]", "pillar and the runner in the template");
    assert!(last.get("__jid__").is_some());
    let number = |id: &str| results.get(id).unwrap().get("__run_num__").and_then(Value::as_i64).unwrap();
    assert!(number("last") > number("states"), "its requisite comes first");

    // Test mode changes nothing.
    let (results, _) = orchestrate(&system, &["orch", "test=True"]);
    let comment = "Function test.arg would be executed on target *";
    assert_eq!(report(&results, "last"), (Value::Nil, comment.into()));
    assert_eq!(report(&results, "up"), (Value::Nil, "Runner function 'manage.up' would be executed.".into()));
}

#[tokio::test(flavor = "multi_thread")]
async fn failures_are_reported_and_set_the_exit_status() {
    let system = system("").await;
    let (results, code) = orchestrate(&system, &["bad_orch"]);
    assert_eq!(code, 1);
    for (id, comment) in [
        ("states", "Run failed on minions: web1"),
        ("gone", "Running function test.ping failed on minions: web9 Function test.ping ran on web1, web9."),
        ("nobody", "No minions responded"),
        ("after", "One or more requisite failed: bad_orch.nobody"),
        ("unknown", "Runner function 'no.such' failed."),
    ] {
        assert_eq!(report(&results, id), (false.into(), comment.into()), "{id}");
    }
    // An argument that nobody has given has no warning.
    let single = ["--out=json", "state.orchestrate_single", "fun=salt.function", "name=test.ping", "tgt=web1"];
    let text = stdout(&system.tool("salt-run", &single));
    assert!(text.contains("Function test.ping ran on web1.") && !text.contains("warnings"), "{text}");
    let output = system.tool("salt-run", &["state.orch", "nope"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stdout(&output).contains("No matching sls found for 'nope' in env 'base'"), "{output:?}");
    let output = system.tool("salt-call", &["--local", "state.single", "salt.runner", "name=manage.up"]);
    assert!(stdout(&output).contains("salt.runner works on the master"), "{output:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_reactor_orchestrates_and_stops_orchestrations() {
    let config = "reactor:\n  - 'go': [ROOT/go.sls]\n  - 'stop': [ROOT/stop.sls]\n";
    let system = system(config).await;
    system.write("go.sls", "go:\n  runner.state.orchestrate:\n    - args: [{mods: waits}]\n");
    system.write("stop.sls", "stop:\n  runner.state.soft_kill:\n    - args: [{jid: '{{ data.jid }}'}]\n");
    let waits = "first:\n  salt.wait_for_event:\n    - name: seen/*\n    - id_list: [a, b]\n    - event_id: who\nsecond: test.nop\n";
    system.write("srv/salt/waits.sls", waits);
    for stopped in [false, true] {
        let mut events = system.events("").await;
        system.tool_async("salt-run", &["event.send", "go"]).await;
        let (_, new) = events.until("salt/run/*/new").await;
        let (_, new) = if text(&new, "fun") == "runner.event.send" {
            events.until("salt/run/*/new").await
        } else {
            (String::new(), new)
        };
        assert_eq!(text(&new, "fun"), "runner.state.orchestrate");
        let jid = text(&new, "jid");
        if stopped {
            system.tool_async("salt-run", &["event.send", "stop", &format!("{{jid: '{jid}'}}")]).await;
            loop {
                let (_, data) = events.until("salt/run/*/ret").await;
                if text(&data, "fun") == "runner.state.soft_kill" {
                    break;
                }
            }
        }
        for who in ["a", "[b, c]"] {
            system.tool_async("salt-run", &["event.send", "seen/it", &format!("{{who: {who}}}")]).await;
        }
        let (_, returned) = events.until(&format!("salt/run/{jid}/ret")).await;
        let data = returned.get("return").and_then(|value| value.get("data")).unwrap();
        let results = data.as_map().unwrap().values().next().unwrap().as_map().unwrap();
        assert_eq!(results.len(), if stopped { 1 } else { 2 }, "{results:?}");
        let first = results.values().next().unwrap();
        assert_eq!(first.get("changes").unwrap().get("minions_seen").unwrap().to_string(), "['a', 'b']");
    }
}

/// The orchestration has the only thread of `jobs`, and waits for a minion that waits for its runner function.
#[tokio::test(flavor = "multi_thread")]
async fn runner_functions_of_minions_run_within_an_orchestration_and_beside_logins() {
    let options = "auto_accept: True\nrunner_threads: 1\npeer_run: {'.*': ['.*']}\nexternal_auth:\n  file: {^filename: ROOT/users, fred: [test.*]}\n";
    let mut system = System::new(options);
    system.write("users", "fred:one\n");
    let outer = "peer:\n  salt.function:\n    - name: publish.runner\n    - tgt: web1\n    - arg: [state.orchestrate, inner]\n    - kwarg: {timeout: 60}\n";
    let inner =
        "go:\n  salt.wait_for_event:\n    - name: go\n    - id_list: [x]\n    - event_id: who\n    - timeout: 60\n";
    system.write("srv/salt/outer.sls", outer);
    system.write("srv/salt/inner.sls", inner);
    system.start_master().await;
    system.start_minion("web1").await;
    let system = std::sync::Arc::new(system);
    let (etc, mut events) = (system.path("web1/etc").display().to_string(), system.events("salt/run/").await);
    let running = tokio::task::spawn_blocking({
        let system = std::sync::Arc::clone(&system);
        move || orchestrate(&system, &["outer"])
    });
    for _ in ["outer", "inner"] {
        assert_eq!(text(&events.until("salt/run/*/new").await.1, "fun"), "runner.state.orchestrate");
    }
    let login = ["-a", "file", "--username", "fred", "--password", "one", "--out=txt", "--static", "web1", "test.ping"];
    let pinged = system.tool("salt", &login);
    assert_eq!(stdout(&pinged).trim(), "web1: True", "{pinged:?}");
    assert!(!running.is_finished(), "the orchestration waits for the event");
    while !running.is_finished() {
        System::command("salt-call", &["-c", &etc, "event.send", "go", "{who: x}"]);
    }
    let (results, code) = running.await.unwrap();
    assert_eq!(code, 0, "{results:?}");
    assert_eq!(report(&results, "peer").0, true.into(), "{results:?}");
}
