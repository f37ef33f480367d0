//! The output of runner functions in `salt-run`.

use crate::support::{System, stderr, stdout};
use brine_value::json::from_json;

#[tokio::test(flavor = "multi_thread")]
async fn static_output_is_one_document() {
    let mut system = System::start("").await;
    system.start_minion("web1").await;
    for (words, expected) in [
        (&["-v", "web1", "test.ping"][..], "{\n    \"web1\": true\n}\n"),
        (&["--show-jid", "web1", "test.ping"], "{\n    \"web1\": true\n}\n"),
        (&["-L", "gone", "test.ping", "-t", "1"], "{}\n"),
    ] {
        let output = system.tool("salt", &[words, &["--static", "--out=json"]].concat());
        let text = stdout(&output);
        assert!(text.ends_with(expected), "{words:?}: {text}{}", stderr(&output));
        assert!(text == expected || words.contains(&"gone"), "{words:?}: {text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn runner_functions_of_a_fleet() {
    let mut system = System::start("owner: {name: ops}\ngather_job_timeout: 61\npeer_run: {'.*': [mine.get]}\n").await;
    system.write("srv/pillar/top.sls", "base: {'web1': [web], 'role:db': [{match: grain}, db]}\n");
    system.write("srv/pillar/web.sls", "port: 80\n");
    system.start_minion("web1").await;
    system.configure_minion("db1", "grains: {role: db}\n");
    let mut events = system.events("salt/minion/").await;
    system.spawn_minion("db1");
    events.until("salt/minion/db1/start").await;
    assert!(system.tool("salt", &["*", "mine.send", "test.echo", "hello"]).status.success());
    assert!(
        system
            .tool("salt", &["*", "mine.send", "secret", "mine_function=test.echo", "x", "allow_tgt=db1"])
            .status
            .success()
    );
    let output = system.tool("salt-run", &["jobs.list_jobs_filter", "1", "--out=json"]);
    let jobs = from_json(&stdout(&output)).unwrap();
    assert_eq!(jobs.as_list().unwrap()[0].get("Function"), Some(&"mine.send".into()), "{jobs}");
    assert!(jobs.as_list().unwrap()[0].get("JID").is_some(), "{jobs}");
    // A minion reads as itself, whatever it says.
    let read_as = |id: &str, arguments: &str| {
        let etc = system.path(id).join("etc").display().to_string();
        let words = ["-c", &etc, "--out=raw", "publish.runner", "mine.get", &format!("arg={arguments}")];
        stdout(&System::command("salt-call", &words)).trim().to_owned()
    };
    assert_eq!(read_as("web1", "['*', secret]"), "{'local': {}}");
    assert_eq!(read_as("db1", "['*', secret]"), "{'local': {'db1': 'x', 'web1': 'x'}}");
    let other = read_as("web1", "['*', secret, glob, db1]");
    assert!(!other.contains("'x'"), "{other}");
    for (words, expected) in [
        (&["manage.present"][..], r#"["db1", "web1"]"#),
        (&["manage.alived", "subset=[web1, none]"], r#"["web1"]"#),
        (&["manage.not_present"], "[]"),
        (&["cache.grains", "role:db", "tgt_type=grain"], r#"{"db1": {"role": "db"}}"#),
        (&["pillar.show_top"], r#"{"base": {"web1": ["web"], "role:db": [{"match": "grain"}, "db"]}}"#),
        (&["cache.pillar", "tgt=web1"], r#"{"web1": {"port": 80}}"#),
        (&["mine.get", "*", "test.echo"], r#"{"db1": "hello", "web1": "hello"}"#),
        (&["mine.get", "web*", "test.echo,secret"], r#"{"test.echo": {"web1": "hello"}, "secret": {"web1": "x"}}"#),
        (&["mine.update", "web1", "mine_functions={test.ping: []}"], r#"{"web1": true}"#),
        (&["cache.clear_mine_func", "tgt=web1", "clear_mine_func_flag=secret"], "true"),
        (&["mine.get", "*", "[secret]"], r#"{"secret": {"db1": "x"}}"#),
        (&["cache.clear_mine", "tgt=*"], "true"),
        (&["cache.mine"], r#"{"db1": {}, "web1": {}}"#),
        (&["config.get", "owner:name"], r#""ops""#),
        (&["config.get", "nosuch", "none"], r#""none""#),
        (&["salt.cmd", "test.echo", "text=hi"], r#""hi""#),
        (&["salt.cmd", "config.get", "gather_job_timeout"], "61"),
        (&["salt.cmd", "config.get", "owner:name"], r#""ops""#),
        (&["salt.cmd", "nosuch.func"], r#""'nosuch.func' is not available.""#),
        (&["salt.execute", "web*", "test.echo", "arg=[hi]"], r#"{"web1": "hi"}"#),
        (&["salt.execute", "web*", "test.echo", "kwarg={text: hi}"], r#"{"web1": "hi"}"#),
        (&["survey.hash", "*", "test.echo", "text=hi"], r#"[{"pool": ["db1", "web1"], "result": "hi"}]"#),
    ] {
        let output = system.tool("salt-run", &[words, &["--out=json"]].concat());
        let (text, expected) = (stdout(&output), from_json(expected).unwrap());
        let mut value = from_json(&text).unwrap_or_else(|_| panic!("{words:?}: {text}{}", stderr(&output)));
        if words[0] == "cache.grains" {
            value.as_map_mut().unwrap()["db1"].as_map_mut().unwrap().retain(|name, _| name.to_string() == "role");
        }
        assert_eq!(value, expected, "{words:?}");
    }
}

/// Runs `salt-run` and returns its result.
fn run(system: &System, words: &[&str]) -> brine_value::Value {
    let output = system.tool("salt-run", &[words, &["--out=json"]].concat());
    from_json(&stdout(&output)).unwrap_or_else(|_| panic!("{words:?}: {}{}", stdout(&output), stderr(&output)))
}

#[tokio::test(flavor = "multi_thread")]
async fn runner_functions_without_minions() {
    let mut system = System::new(
        "runner_queue: {queue: runners}\nosenv: {driver: env}\nvalues: {driver: yaml, files: [ROOT/values.yaml]}\n\
         wanted: sdb://values/db:user\n",
    );
    system.write("values.yaml", "db: {user: me}\n");
    system.write("srv/salt/_modules/own.py", "def hello():\n    return 'hi'\n");
    system.start_master().await;
    for (words, expected) in [
        (&["queue.list_queues"][..], "[]"),
        (&["queue.insert", "q", "one"], "true"),
        (&["queue.insert", "q", "[two, three, one]"], r#""Item already exists: one""#),
        (&["queue.list_queues"], r#"["q"]"#),
        (&["queue.list_length", "q"], "3"),
        (&["queue.list_items", "q"], r#"["one", "two", "three"]"#),
        (&["queue.delete", "q", "two"], "true"),
        (&["queue.pop", "q"], r#"["one"]"#),
        (&["queue.process_queue", "q", "all"], r#"{"items": ["three"], "backend": "sqlite", "queue": "q"}"#),
        (&["queue.list_length", "q"], "0"),
        (&["queue.insert_runner", "queue.insert", "args=made,item"], "true"),
        (&["queue.process_runner"], "null"),
        (&["queue.list_items", "made"], r#"["item"]"#),
        (&["cache.store", "own/bank", "key", "{a: [1]}"], "null"),
        (&["cache.fetch", "own/bank", "key"], r#"{"a": [1]}"#),
        (&["cache.fetch", "own/bank", "none"], "{}"),
        (&["cache.list", "own"], r#"["bank"]"#),
        (&["cache.list", "grains"], "[]"),
        (&["cache.flush", "own"], "true"),
        (&["cache.list", "own/bank"], "[]"),
        (&["cache.clear_all"], "false"),
        (&["cache.clear_git_lock", "gitfs"], r#""No locks were removed""#),
        (&["fileserver.clear_file_list_cache"], "{}"),
        (&["fileserver.lock"], r#""No locks were set""#),
        (&["fileserver.clear_lock"], r#""No locks were removed""#),
        (&["match.compound_matches", "G@os:*", "web1"], r#"{"res": false}"#),
        (&["manage.reaped"], "[]"),
        (&["manage.not_reaped"], "[]"),
        (&["manage.present", "show_ip=True"], "{}"),
        (&["network.wolmatch", "*"], "[]"),
        (&["error.error"], "{}"),
        (&["sdb.get", "sdb://values/db:user"], r#""me""#),
        (&["sdb.get", "plain"], r#""plain""#),
        (&["sdb.set", "plain", "x"], "false"),
        (&["config.get", "wanted"], r#""me""#),
        (&["test.raw_arg", "1", "a=2"], r#"{"args": [1], "kwargs": {"a": 2}}"#),
        (&["test.metasyntactic", "locality=uk"], r#"["wibble", "wobble", "wubble", "flob"]"#),
        (&["test.stdout_print"], r#""bar""#),
        (&["doc.execution"], "{}"),
        (&["survey.diff", "*", "test.ping"], "[]"),
        (&["saltutil.sync_modules"], r#"["modules.own"]"#),
    ] {
        assert_eq!(run(&system, words), from_json(expected).unwrap(), "{words:?}");
    }
    for (words, expected) in [
        (&["queue.insert", "q", "x", "backend=redis"][..], "queue backend 'redis' is not supported"),
        (&["queue.pop", "q", "some"], "quantity is invalid: expected a number or \"all\", got some"),
        (&["cache.store", "grains", "web1", "x"], "the bank grains is the master's own"),
        (&["cache.clear_git_lock", "other"], "Invalid role 'other'"),
        (&["error.error", "name=Own", "message=why"], "Exception occurred in runner error.error: Own: why"),
        (&["git_pillar.update"], "No git_pillar remotes are configured"),
        (&["manage.bootstrap", "hosts=a"], "install the package of the minion"),
        (&["manage.safe_accept", "web1"], "compare the fingerprint"),
        (&["network.wol", "nonsense"], "MAC address 'nonsense' is invalid"),
        (&["jobs.rerun", "20261120235852025555"], "is not in the job cache"),
    ] {
        let output = system.tool("salt-run", words);
        let text = format!("{}{}", stdout(&output), stderr(&output));
        assert!(!output.status.success() && text.contains(expected), "{words:?}: {text}");
    }
    // As in Salt, the call lists itself.
    let running = run(&system, &["jobs.master"]);
    let [brine_value::Value::Map(own)] = running.as_list().unwrap() else { panic!("{running}") };
    assert_eq!(own.get("fun"), Some(&"runner.jobs.master".into()));
    let mut keys: Vec<_> = own.keys().map(ToString::to_string).collect();
    keys.sort();
    assert_eq!(keys, ["_stamp", "fun", "fun_args", "jid", "pid", "user"]);
    let opts = run(&system, &["test.get_opts"]);
    assert_eq!(opts.get("runner_queue").and_then(|queue| queue.get("queue")), Some(&"runners".into()));
    // Queues are in the store.
    run(&system, &["queue.insert", "kept", "item"]);
    system.stop_master();
    system.start_master().await;
    assert_eq!(run(&system, &["queue.list_items", "kept"]), from_json(r#"["item"]"#).unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn processing_a_queue_publishes_an_event() {
    let system = System::start("").await;
    run(&system, &["queue.insert", "reboots", "[web1, web2]"]);
    let mut events = system.events("salt/queue/").await;
    run(&system, &["queue.process_queue", "reboots", "2"]);
    let (tag, data) = events.next().await;
    assert_eq!(tag, "salt/queue/reboots/process");
    assert_eq!(data.get("items"), Some(&brine_value::list!["web1", "web2"]));
    assert_eq!((data.get("queue"), data.get("backend")), (Some(&"reboots".into()), Some(&"sqlite".into())));
}

#[tokio::test(flavor = "multi_thread")]
async fn runner_functions_about_a_minion() {
    let mut system = System::start("").await;
    system.start_minion("web1").await;
    let output = system.tool("salt", &["web1", "test.retcode", "3", "--show-jid"]);
    let jid = stdout(&output).lines().find_map(|line| line.strip_prefix("jid: ").map(str::to_owned)).unwrap();
    assert_eq!(
        run(&system, &["jobs.rerun", &jid, "missing=True"]),
        from_json(r#"{"jid": null, "minions": []}"#).unwrap()
    );
    let mut events = system.events("salt/job/").await;
    let again = run(&system, &["jobs.rerun", &jid, "failed=True"]);
    assert_eq!(again.get("minions"), Some(&brine_value::list!["web1"]), "{again}");
    let (_, data) = events.until(&format!("salt/job/{}/ret/web1", again.get("jid").unwrap())).await;
    assert_eq!((data.get("fun"), data.get("return")), (Some(&"test.retcode".into()), Some(&true.into())));
    for (words, expected) in [
        (&["match.compound_matches", "G@id:web1 or web1", "web1"][..], r#"{"res": "web1"}"#),
        (&["match.compound_matches", "not web1", "web1"], r#"{"res": false}"#),
        (&["match.compound_matches", "web2", "web2"], r#"{"res": false}"#),
        (&["manage.present", "show_ip=True"], r#"{"web1": "127.0.0.1"}"#),
        (&["manage.reaped"], r#"["web1"]"#),
        (&["cache.list", "grains"], r#"["web1"]"#),
        (&["cache.clear_grains", "web1"], "true"),
        (&["cache.list", "grains"], "[]"),
        (&["cache.clear_all", "web1"], "true"),
        (&["salt.execute", "web1", "test.ping", "jid=20261120235852025555"], r#"{"web1": true}"#),
        (&["survey.diff", "web1", "test.echo", "x"], r#"[{"pool": ["web1"], "result": "x"}]"#),
        (&["doc.execution", "test.ping"], "null"),
    ] {
        let value = run(&system, words);
        if words[0] == "doc.execution" {
            assert!(value.get("test.ping").is_some() && value.as_map().unwrap().len() == 1, "{value}");
        } else {
            assert_eq!(value, from_json(expected).unwrap(), "{words:?}");
        }
    }
    system.kill_minion("web1");
    assert_eq!(run(&system, &["manage.down", "removekeys=True", "timeout=1"]), from_json(r#"["web1"]"#).unwrap());
    assert!(!system.path("pki/minions/web1").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn progress_events_are_shown_before_the_result() {
    let system = System::start("").await;
    let output_lines = |words: &[&str]| {
        let output = system.tool("salt-run", &[words, &["--out=json", "--out-indent=-1"]].concat());
        let text = stdout(&output);
        let lines = text.lines().map(|line| from_json(line).unwrap_or_else(|_| panic!("{text}{}", stderr(&output))));
        lines.collect::<Vec<_>>()
    };
    let message = |event: &brine_value::Value| {
        assert_eq!(event.get("suffix"), Some(&"progress".into()), "{event}");
        event.get("event").and_then(|event| event.get("message")).cloned().unwrap_or_default().to_string()
    };
    for (words, messages, result) in [
        (&["jobs.list_jobs", "search_function=no.such"][..], &["Querying returner local_cache for jobs."][..], "{}"),
        (&["jobs.last_run", "function=no.such"], &["Querying returner local_cache for jobs."], "false"),
        (&["jobs.lookup_jid", "20260101000000000000"], &["Querying returner: local_cache"], "{}"),
        (&["jobs.active"], &["Attempting to contact minions: []"], "{}"),
    ] {
        let lines = output_lines(&[words, &["display_progress=True"]].concat());
        let (last, events) = lines.split_last().unwrap();
        assert_eq!(events.iter().map(message).collect::<Vec<_>>(), messages, "{words:?}");
        assert_eq!(*last, from_json(result).unwrap(), "{words:?}");
        assert_eq!(output_lines(words).len(), 1, "{words:?}");
    }
    // All progress events, in order, although the last ones arrive together with the result.
    let lines = output_lines(&["test.stream"]);
    let expected: Vec<_> = (1..100).map(|percent| format!("Runner is {percent}% done")).collect();
    assert_eq!(lines[..99].iter().map(message).collect::<Vec<_>>(), expected);
    assert_eq!(lines[99..], [true.into()]);
    assert!(output_lines(&["jobs.list_jobs", "display_progress=True", "--quiet"]).is_empty());
    // For these functions the result is published as a progress event, too.
    let lines = output_lines(&["state.orchestrate_single", "fun=salt.runner", "name=test.arg"]);
    let [progress, result] = &lines[..] else { panic!("{lines:?}") };
    assert_eq!(progress.get("event").unwrap().get("data"), Some(result));
    let addresses = output_lines(&["network.wollist", "/nosuch"]);
    assert!(addresses[0].get("event").unwrap().get("error").unwrap().to_string().contains("/nosuch"), "{addresses:?}");
    assert_eq!(addresses[1..], [brine_value::list![]]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_job_id_of_a_call_can_be_chosen() {
    let system = System::start("").await;
    let jid = "20260101000000000001";
    let mut events = system.events("salt/run/").await;
    assert_eq!(run(&system, &["--jid", jid, "test.arg", "1"]).get("args"), Some(&brine_value::list![1]));
    let (tag, _) = events.until("salt/run/*/ret").await;
    assert_eq!(tag, format!("salt/run/{jid}/ret"));
    let output = system.tool("salt-run", &["--jid=20260101000000000002", "--async", "test.arg"]);
    assert!(stderr(&output).contains("salt/run/20260101000000000002"), "{}", stderr(&output));
    events.until("salt/run/20260101000000000002/ret").await;
    let output = system.tool("salt-run", &["--jid=none", "test.arg"]);
    assert_eq!(output.status.code(), Some(64));
    assert!(stderr(&output).ends_with("salt-run: error: 'none' is not a valid JID\n"), "{}", stderr(&output));
}
