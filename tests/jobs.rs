//! Jobs from the command line to minions and back.

use crate::support;

use crate::support::{System, stderr, stdout, text};
use brine_value::map;

async fn two_minions() -> System {
    let mut system = System::start("nodegroups: {all: 'web* or db*'}\n").await;
    system.write("srv/salt/ok.sls", "ok: test.nop\n");
    system.write("srv/salt/bad.sls", "bad: test.fail_without_changes\n");
    for (id, grains) in [("web1", "grains: {role: web}\n"), ("db1", "grains: {role: db}\nipv4_note: x\n")] {
        system.configure_minion(id, grains.lines().next().unwrap());
        let mut events = system.events("salt/minion/").await;
        system.spawn_minion(id);
        events.until(&format!("salt/minion/{id}/start")).await;
    }
    system
}

#[tokio::test(flavor = "multi_thread")]
async fn targets_arguments_outputs_and_exit_codes() {
    let system = two_minions().await;
    for (words, ids) in [
        (&["*", "test.ping"][..], &["db1", "web1"][..]),
        (&["web?", "test.ping"], &["web1"]),
        (&["-L", "web1,db1", "test.ping"], &["db1", "web1"]),
        (&["-E", "(web|db)1", "test.ping"], &["db1", "web1"]),
        (&["-G", "role:web", "test.ping"], &["web1"]),
        (&["-C", "G@role:db or ( web* and not db* )", "test.ping"], &["db1", "web1"]),
        (&["-C", "not web*", "test.ping"], &["db1"]),
        (&["-N", "all", "test.ping"], &["db1", "web1"]),
    ] {
        let answer = system.salt_json(words);
        let mut answered: Vec<String> = answer.as_map().unwrap().keys().map(ToString::to_string).collect();
        answered.sort();
        assert_eq!(answered, ids, "{words:?}");
    }
    for (words, code, said) in [
        (&["web1", "test.ping"][..], 0, "web1:\n    True\n"),
        (&["web1", "test.false"], 0, "web1:\n    False\n"),
        (&["web1", "cmd.run", "echo a; exit 3"], 1, "web1:\n    a\n"),
        (&["web1", "no.such"], 1, "web1:\n    'no.such' is not available.\n"),
        (
            &["web1", "test.ping", "badkw=1"],
            1,
            "web1:\n    ERROR executing 'test.ping': The following keyword arguments are not valid: badkw=1\n",
        ),
        (&["nobody", "test.ping"], 2, "No minions matched the target. No command was sent, no jid was assigned.\n"),
        (&["web1", "test.echo", "0644", "--out=txt"], 0, "web1: 644\n"),
        (&["web1", "test.arg", "1", "k=v", "--out=quiet"], 0, ""),
        (&["web1", "test.echo", "{a: [1, x]}", "--out=yaml"], 0, "web1:\n  a:\n  - 1\n  - x\n"),
        (&["web1", "test.echo", "text", "--out=raw"], 0, "{'web1': 'text'}\n"),
        // Variables set by a job end with it.
        (&["web1", "environ.setval", "BRINE_SET", "one"], 0, "web1:\n    one\n"),
        (&["web1", "cmd.run", "echo ${BRINE_SET-gone}"], 0, "web1:\n    gone\n"),
    ] {
        let output = system.tool("salt", words);
        assert_eq!(
            (output.status.code(), stdout(&output)),
            (Some(code), said.to_owned()),
            "{words:?} {}",
            stderr(&output)
        );
    }
    let output = system.tool("salt", &["web1", "state.apply", "bad"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stdout(&output).contains("Failed:    1"), "{}", stdout(&output));
    let output = system.tool("salt", &["*", "test.ping", "-b", "1"]);
    assert_eq!(output.status.code(), Some(0));
    // As in Salt, the next publish is shown before the return that made room for it.
    let start = "\nExecuting run on ['db1']\n\n\nExecuting run on ['web1']\n\ndb1:\n    True\njid:\n";
    assert!(stdout(&output).starts_with(start), "{}", stdout(&output));
    let several = system.salt_json(&["web1", "test.echo,test.ping", "hi", ","]);
    assert_eq!(several, map! {"web1" => map!{"test.echo" => "hi", "test.ping" => true}}.into());
}

#[tokio::test(flavor = "multi_thread")]
async fn past_jobs_are_listed_and_looked_up() {
    let system = two_minions().await;
    let output = system.tool("salt", &["*", "test.echo", "hello", "--async"]);
    let jid = stdout(&output).trim().strip_prefix("Executed command with job ID: ").unwrap().to_owned();
    let mut events = system.events("salt/job/").await;
    system.tool_async("salt", &["web1", "test.ping"]).await;
    events.until("salt/job/*/ret/web1").await;
    let text = stdout(&system.tool("salt-run", &["jobs.lookup_jid", &jid]));
    assert_eq!(text, "db1:\n    hello\nweb1:\n    hello\n");
    let listed = stdout(&system.tool("salt-run", &["jobs.list_job", &jid, "--out=json"]));
    let listed = brine_value::json::from_json(&listed).unwrap();
    assert_eq!(listed.get("Function"), Some(&"test.echo".into()));
    assert_eq!(listed.get("Minions").and_then(|minions| minions.as_list().map(<[_]>::len)), Some(2));
    assert_eq!(stdout(&system.tool("salt-run", &["jobs.exit_success", &jid])), "db1:\n    True\nweb1:\n    True\n");
    assert!(stdout(&system.tool("salt-run", &["jobs.last_run", "function=test.ping"])).contains("test.ping"));
    let as_json = stdout(&system.tool("salt-run", &["jobs.last_run", "function=test.ping", "outputter=json"]));
    assert!(as_json.starts_with('{') && as_json.contains("\"Function\": \"test.ping\""), "{as_json}");
    assert!(
        stdout(&system.tool("salt-run", &["jobs.list_jobs"]))
            .contains(&format!("{jid}:\n    ----------\n    Arguments:\n        - hello"))
    );
    assert_eq!(stdout(&system.tool("salt-run", &["manage.up"])), "- db1\n- web1\n");
    let cached = system.salt_json(&["web1", "saltutil.find_cached_job", &jid]);
    assert_eq!(cached.get("web1").and_then(|job| job.get("return")), Some(&"hello".into()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_running_job_is_listed_and_killed() {
    let system = two_minions().await;
    let marker = system.path("pid");
    let command = format!("sleep 600 & echo $! > {}; wait", marker.display());
    let output = system.tool("salt", &["web1", "cmd.run", &command, "--async"]);
    let jid = stdout(&output).trim().rsplit(' ').next().unwrap().to_owned();
    let mut events = system.events("salt/job/").await;
    // The job has started once its file exists.
    let pid = || std::fs::read_to_string(&marker).unwrap_or_default().trim().parse::<i32>();
    support::until("the job runs", || pid().is_ok()).await;
    let child = pid().unwrap();
    let running = system.salt_json(&["web1", "saltutil.running"]);
    let job = running.get("web1").unwrap().as_list().unwrap()[0].clone();
    assert_eq!((job.get("jid"), job.get("fun")), (Some(&jid.as_str().into()), Some(&"cmd.run".into())));
    assert!(system.path(&format!("web1/cache/proc/{jid}")).exists());
    let active = stdout(&system.tool("salt-run", &["jobs.active", "--out=json"]));
    assert!(active.contains(&jid), "{active}");
    let jobs = system.salt_json(&["*", "saltutil.find_job", &jid]);
    assert_eq!(jobs.get("db1"), Some(&map! {}.into()));
    assert_eq!(jobs.get("web1").and_then(|job| job.get("jid")), Some(&jid.as_str().into()));
    system.tool("salt", &["web1", "saltutil.kill_job", &jid]);
    let (_, data) = events.until(&format!("salt/job/{jid}/ret/web1")).await;
    assert_ne!(text(&data, "retcode"), "0");
    let status = || std::fs::read_to_string(format!("/proc/{child}/status")).unwrap_or_default();
    let gone = || status().is_empty() || status().contains("Z (zombie)") || status().contains("X (dead)");
    support::until("the child of the command ends", gone).await;
    assert!(!system.path(&format!("web1/cache/proc/{jid}")).exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn returns_also_go_to_a_returner() {
    let mut system = System::start("event_return: [rawfile_json]\nrawfile_json.filename: ROOT/events.json\n").await;
    system.configure_minion("web1", "sqlite3.database: ROOT/returns.db\n");
    let mut events = system.events("salt/").await;
    system.spawn_minion("web1");
    events.until("salt/minion/web1/start").await;
    assert_eq!(system.salt_json(&["web1", "test.echo", "kept", "--return", "sqlite3"]), map! {"web1" => "kept"}.into());
    let options = brine_returners::Options::new(
        &map! {"sqlite3.database" => system.path("returns.db").display().to_string()},
        None,
    );
    let returner = brine_returners::open("sqlite3", &options).unwrap();
    let is_stored =
        || returner.get_fun("test.echo").unwrap().get("web1").and_then(|one| one.get("return")) == Some(&"kept".into());
    support::until("the returner has the return", is_stored).await;
    let events = || std::fs::read_to_string(system.path("events.json")).unwrap_or_default();
    support::until("the event returner has the return", || events().contains("/ret/web1")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pillar_and_salt_call_work_with_the_master() {
    let mut system = System::start("").await;
    system.write("srv/pillar/top.sls", "base:\n  'web*': [web]\n  'db*': [db]\n");
    system.write("srv/pillar/web.sls", "port: 80\nwho: {{ grains.id }}\n");
    system.write("srv/pillar/db.sls", "secret: for the database\n");
    system.write(
        "srv/salt/port.sls",
        "ROOT/port:\n  file.managed:\n    - contents: port={{ pillar['port'] }} {{ salt['pillar.get']('who') }}\n",
    );
    system.start_minion("web1").await;
    assert_eq!(system.salt_json(&["web1", "pillar.raw"]), map! {"web1" => map!{"port" => 80, "who" => "web1"}}.into());
    assert_eq!(system.tool("salt", &["web1", "state.apply", "port"]).status.code(), Some(0));
    assert_eq!(std::fs::read_to_string(system.path("port")).unwrap(), "port=80 web1\n");
    let etc = system.path("web1/etc").display().to_string();
    let output =
        support::within_limit(support::BRINE).args(["salt-call", "-c", &etc, "pillar.raw", "port"]).output().unwrap();
    assert_eq!(stdout(&output), "local:\n    80\n");
    let mut events = system.events("my/").await;
    let send = ["salt-call", "-c", &etc, "event.send", "my/tag", "{a: 1}"];
    let output = tokio::task::spawn_blocking({
        let send: Vec<String> = send.iter().map(ToString::to_string).collect();
        move || support::within_limit(support::BRINE).args(send).output().unwrap()
    });
    let (_, data) = events.until("my/tag").await;
    let sent = data.get("data").and_then(|sent| sent.get("a")).map(ToString::to_string);
    assert_eq!((text(&data, "id"), sent.as_deref()), ("web1".into(), Some("1")));
    assert_eq!(stdout(&output.await.unwrap()), "local:\n    True\n");
}

/// Returns the JSON output of a runner function.
fn runner(system: &System, words: &[&str]) -> brine_value::Value {
    let output = system.tool("salt-run", &[&["--out=json"], words].concat());
    let text = stdout(&output);
    brine_value::json::from_json(&text).unwrap_or_else(|_| panic!("{words:?}: {text}{}", stderr(&output)))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_return_beyond_max_event_size_is_stored_whole_and_its_event_trimmed() {
    let mut system = System::start("max_event_size: 100000\nlarge_returns_size: 2\n").await;
    system.start_minion("web1").await;
    let mut events = system.events("salt/job/").await;
    let large = |size: usize| format!("head -c {size} /dev/zero | tr '\\0' x");
    let output = system.tool_async("salt", &["web1", "cmd.run", &large(300_000)]).await;
    assert_eq!((stdout(&output).as_str(), output.status.code()), ("web1:\n    VALUE_TRIMMED\n", Some(0)));
    let (tag, data) = events.until("salt/job/*/ret/web1").await;
    assert_eq!((text(&data, "return"), text(&data, "retcode")), ("VALUE_TRIMMED".into(), "0".into()));
    let jid = tag.split('/').nth(2).unwrap();
    let length = |jid: &str| runner(&system, &["jobs.lookup_jid", jid]).get("web1").unwrap().to_string().len();
    assert_eq!(length(jid), 300_000);
    let job = runner(&system, &["jobs.list_job", jid]);
    let result = job.get("Result").and_then(|result| result.get("web1")).unwrap();
    assert_eq!((result.get("retcode"), result.get("success")), (Some(&0.into()), Some(&true.into())));
    // Only the large string of a mapping is trimmed.
    system.write(
        "srv/salt/big.sls",
        &format!("a:\n  test.configurable_test_state:\n    - comment: {}\n    - warnings: few\n", "y".repeat(200_000)),
    );
    let answer = system.salt_json(&["web1", "state.apply", "big"]);
    let state = answer.get("web1").and_then(brine_value::Value::as_map).unwrap().values().next().unwrap();
    assert_eq!((state.get("comment"), state.get("result")), (Some(&"VALUE_TRIMMED".into()), Some(&true.into())));
    // A minion may use a quarter of 2 MiB: the next return is stored trimmed, and counted.
    let output = system.tool_async("salt", &["web1", "cmd.run", &large(300_000), "--show-jid"]).await;
    let text = stdout(&output);
    let jid = text.lines().next().unwrap().strip_prefix("jid: ").unwrap();
    assert_eq!(length(jid), "VALUE_TRIMMED".len(), "{}", system.master_log());
    assert_eq!(
        (system.counter("brine_returns_trimmed_total") >= 3, system.counter("brine_returns_lost_total")),
        (true, 1)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_of_runner_functions_are_jobs() {
    let system = System::start("id: host_master\njob_cache_store_endtime: True\n").await;
    system.write("srv/salt/orch.sls", "a:\n  test.fail_without_changes: []\n");
    let mut events = system.events("salt/run/").await;
    let output = system.tool_async("salt-run", &["state.orchestrate", "orch"]).await;
    assert_eq!(output.status.code(), Some(1));
    let (tag, _) = events.until("salt/run/*/ret").await;
    let jid = tag.split('/').nth(2).unwrap().to_owned();
    let listed = runner(&system, &["jobs.list_jobs", "search_function=runner.state.*"]);
    let job = listed.get(&jid).unwrap_or_else(|| panic!("{listed}"));
    for (name, is) in [
        ("Function", "runner.state.orchestrate"),
        ("Target", "host_master"),
        ("Target-type", "list"),
        ("User", "root"),
        ("Arguments", "[]"),
    ] {
        assert_eq!(job.get(name).map(ToString::to_string).as_deref(), Some(is), "{name}: {job}");
    }
    for job in [job, &runner(&system, &["jobs.list_job", &jid])] {
        let time = |name: &str| job.get(name).map(ToString::to_string).unwrap_or_default();
        assert!(time("EndTime") > time("StartTime"), "{job}");
    }
    let returned = runner(&system, &["jobs.lookup_jid", &jid]);
    let returned = returned.get("host_master").unwrap();
    assert_eq!((returned.get("success"), returned.get("jid")), (Some(&false.into()), Some(&jid.as_str().into())));
    let outputter = returned.get("return").and_then(|value| value.get("outputter")).cloned();
    assert_eq!(outputter, Some("highstate".into()), "{returned}");
    assert_eq!(runner(&system, &["jobs.exit_success", &jid]), map! {"host_master" => false}.into());
    for fun in ["jobs.list_job", "jobs.print_job"] {
        let text = stdout(&system.tool("salt-run", &[fun, &jid]));
        assert!(text.contains("runner.state.orchestrate") && !text.contains("Minions:"), "{fun}: {text}");
    }
    let last = runner(&system, &["jobs.last_run", "function=runner.jobs.print_job"]);
    assert_eq!(last.as_map().map(indexmap::IndexMap::len), Some(1));
    let unknown = "20200101000000000000";
    let job = runner(&system, &["jobs.list_job", unknown]);
    assert_eq!(job.get("Error"), Some(&"Cannot contact returner or no job with this jid".into()));
    assert_eq!(
        (job.get("Result"), job.get("StartTime")),
        (Some(&map! {}.into()), Some(&"2020, Jan 01 00:00:00.000000".into()))
    );
    drop(system);
    let system = System::start("runner_returns: False\n").await;
    system.tool_async("salt-run", &["test.arg"]).await;
    assert_eq!(runner(&system, &["jobs.list_jobs"]), map! {}.into());
    let output = system.tool_async("salt-run", &["jobs.list_jobs", "start_time=yesterday"]).await;
    assert!(stdout(&output).contains("expected a form such as"), "{}", stdout(&output));
}

#[tokio::test(flavor = "multi_thread")]
async fn returners_get_their_options() {
    let mut system = System::start("").await;
    system.configure_minion("web1", "sqlite3.database: ROOT/own.db\nother.sqlite3.database: ROOT/other.db\n");
    let mut events = system.events("salt/").await;
    system.spawn_minion("web1");
    events.until("salt/minion/web1/start").await;
    let options = format!("{{database: {}}}", system.path("given.db").display());
    for (file, text, options) in [
        ("own.db", "one", &["--return", "sqlite3"][..]),
        ("other.db", "two", &["--return", "sqlite3", "--return_config", "other"]),
        ("given.db", "three", &["--return", "rawfile_json,sqlite3", "--return_kwargs", &options]),
    ] {
        system.salt_json(&[&["web1", "test.echo", text], options].concat());
        let database = system.path(file).display().to_string();
        let options = brine_returners::Options::new(&map! {"sqlite3.database" => database}, None);
        let returner = brine_returners::open("sqlite3", &options).unwrap();
        let is_stored = || {
            let newest = returner.get_fun("test.echo").ok();
            newest.and_then(|newest| newest.get("web1")?.get("return").cloned()) == Some(text.into())
        };
        support::until(&format!("{file} has the return"), is_stored).await;
    }
}

/// As in Salt, a job with a retcode has failed, also one whose function completed, and so has a result of `false`, null or 0
/// in `result` or `success`.
#[tokio::test(flavor = "multi_thread")]
async fn the_success_of_a_return_is_that_of_its_retcode() {
    let mut system = System::start("").await;
    system.start_minion("web1").await;
    system.write("srv/salt/fails.sls", "a:\n  test.fail_without_changes: []\n");
    let mut events = system.events("salt/job/").await;
    for (words, retcode) in [
        (&["cmd.run", "exit 3"][..], 3),
        (&["cmd.run", "exit 0"], 0),
        (&["test.retcode", "5"], 5),
        (&["state.apply", "fails"], 2),
        (&["test.echo", "{result: null}"], 1),
        (&["test.echo", "{success: 0}"], 1),
        (&["test.echo", "{success: ''}"], 1),
        (&["test.echo", "{result: false}"], 1),
        (&["test.echo", "{result: [1], success: 1}"], 0),
        (&["test.echo", "{other: null}"], 0),
    ] {
        let output = system.tool_async("salt", &[&["web1"], words].concat()).await;
        assert_eq!(output.status.code(), Some(i32::from(retcode != 0)), "{words:?}");
        let (tag, data) = events.until("salt/job/*/ret/web1").await;
        let is = (data.get("retcode"), data.get("success"));
        assert_eq!(is, (Some(&retcode.into()), Some(&(retcode == 0).into())), "{words:?}");
        let job = runner(&system, &["jobs.list_job", tag.split('/').nth(2).unwrap()]);
        let stored = job.get("Result").and_then(|result| result.get("web1")?.get("success"));
        assert_eq!(stored, Some(&(retcode == 0).into()), "{words:?}");
    }
    system.tool_async("salt", &["web1", "test.ping,cmd.run", ",exit 3"]).await;
    let (_, data) = events.until("salt/job/*/ret/web1").await;
    assert_eq!(data.get("success"), Some(&map! {"test.ping" => true, "cmd.run" => false}.into()), "{data:?}");
}

/// Functions that accept every keyword get the fields of the publish: signing policies check `__pub_id`.
#[tokio::test(flavor = "multi_thread")]
async fn functions_get_the_fields_of_the_publish() {
    let mut system = System::start("peer: {web1: [test.arg]}\n").await;
    for id in ["web1", "db1"] {
        system.start_minion(id).await;
    }
    let field = |answer: &brine_value::Value, id: &str, name: &str| {
        answer.get(id).and_then(|answer| answer.get("kwargs")?.get(name)).cloned()
    };
    let output = system.tool_async("salt", &["--out=json", "db1", "test.arg", "--metadata", "{q: 1}"]).await;
    let answer = brine_value::json::from_json(&stdout(&output)).unwrap();
    assert_eq!(field(&answer, "db1", "__pub_metadata"), Some(map! {"q" => 1}.into()), "{answer}");
    let output = system.tool_async("salt", &["--out=json", "web1", "publish.publish", "db1", "test.arg"]).await;
    let answer = brine_value::json::from_json(&stdout(&output)).unwrap();
    let published = answer.get("web1").cloned().unwrap_or_default();
    assert_eq!(field(&published, "db1", "__pub_id"), Some("web1".into()), "{answer}");
}
