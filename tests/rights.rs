//! Rights cover everything that a request carries: returners, their options, executors and metadata need a permission
//! by every door. Events are closed to users without a permission for them.

use std::path::Path;

use crate::api::Lines;
use crate::support::api::{Api, fire};
use crate::support::raw::Raw;
use crate::support::{self, System, stderr, stdout, text, until};
use brine_crypt::Cipher;
use brine_value::{Map, Value, list, map, msgpack};
use brine_wire::{Envelope, Proof, PublishRequest, TokenRequest};
use brine_zmtp::{Limits, RequestClient};

const CONFIG: &str = "external_auth:
  file:
    ^filename: ROOT/users
    bob: [test.ping]
    kim: [test.ping, {'@options': [metadata, {ret: [rawfile_json]}, {ret_kwargs: {filename: 'ROOT/permitted.*'}}]}]
    web: [{'web*': [test.ping]}]
    run: ['@jobs']
    src: ['@jobs', {'@options': [{ext_source: sqlite3}]}]
    all: [test.ping, {events: '*'}]
    tim: ['schedule.*', 'mine.*', test.ping, {'web*': [test.echo]}, '@runner']
publisher_acl:
  daemon: [test.ping]
peer:
  web1: [test.ping]
  web2: [test.ping, {'@options': [{ret: local}]}]
peer_run:
  .*: ['jobs\\.list_jobs']
api_pidfile: ROOT/api.pid
rest_cherrypy: {port: PORT, host: 127.0.0.1, disable_ssl: True}
netapi_enable_clients: [local, local_async, local_batch, local_subset, runner]
";

const USERS: &str = "bob:one\nkim:two\nweb:three\nrun:four\nsrc:five\nall:six\ntim:seven\n";

const DENIED: &str = "Authorization error occurred.";

async fn start() -> Api {
    Api::start(CONFIG, &[("users", USERS)], &["web1", "db1"]).await
}

/// Options that need a permission, each with a way to carry it.
fn options(file: &Path) -> Vec<(&'static str, Map)> {
    let kwargs = map! {"filename" => file.display().to_string()};
    vec![
        ("ret", map! {"ret" => "rawfile_json", "ret_kwargs" => kwargs.clone(), "metadata" => map! {"x" => "$(id)"}}),
        ("ret", map! {"ret" => "local"}),
        ("ret_kwargs", map! {"ret_kwargs" => kwargs}),
        ("ret_config", map! {"ret_config" => "other"}),
        ("metadata", map! {"metadata" => map! {"x" => "$(id)"}}),
        ("module_executors", map! {"module_executors" => list!["sudo"]}),
        ("executor_opts", map! {"executor_opts" => map! {"splay" => 1}}),
        ("start_event", map! {"start_event" => true}),
        ("timeout", map! {"timeout" => 1_000_000}),
        ("gather_job_timeout", map! {"gather_job_timeout" => 1_000_000}),
    ]
}

/// Returns a publish request that carries options.
fn request(options: &Map) -> PublishRequest {
    let mut request = PublishRequest { kwargs: options.clone(), ..PublishRequest::new("*", "test.ping", "root") };
    request.ret = request.kwargs.shift_remove("ret").map(|ret| ret.to_string()).unwrap_or_default();
    request
}

async fn ask(system: &System, load: Map) -> Value {
    let client = RequestClient::new(system.request_endpoint(), Limits::default());
    msgpack::unpack(&client.request(Envelope::clear(load), support::TIMEOUT).await.unwrap()).unwrap()
}

fn password(user: &str, password: &str) -> Proof {
    Proof::Password { eauth: "file".into(), username: user.into(), password: password.into() }
}

#[tokio::test(flavor = "multi_thread")]
async fn options_of_jobs_need_a_permission_by_every_door() {
    let api = start().await;
    let system = &api.system;
    let file = system.path("written.sh");
    let mut denied = system.events("brine/access/denied").await;
    let token = ask(system, TokenRequest { proof: password("bob", "one"), expire: None }.to_map()).await;
    let token = token.get("token").unwrap().to_string();
    let key = std::fs::read_to_string(system.path("cache/.daemon_key")).unwrap();
    let session = api.login("bob", "one");

    for (option, carried) in options(&file) {
        let plain = request(&carried);
        let mut below = request(&carried);
        below.kwargs.insert("auth_list".into(), list!["test.ping"]);
        for (door, asked) in [
            ("password", PublishRequest { proof: Some(password("bob", "one")), ..plain.clone() }),
            ("token", PublishRequest { proof: Some(Proof::Token(token.clone())), ..plain.clone() }),
            ("publisher_acl", PublishRequest { key: Some(key.clone()), ..plain.clone() }),
            ("syndic", PublishRequest { key: Some(system.root_key()), ..below }),
        ] {
            let answer = ask(system, asked.to_map()).await;
            assert!(answer.to_string().contains(DENIED), "{door}, {option}: {answer}");
        }
        for client in ["local", "local_async", "local_batch", "local_subset"] {
            let mut chunk = map! {"client" => client, "tgt" => "*", "fun" => "test.ping"};
            chunk.extend(carried.clone());
            let response = api.post("/", &session, &chunk.into());
            assert_eq!(response.status, 401, "{client}, {option}: {response:?}");
            assert!(response.body.contains(DENIED), "{client}, {option}: {response:?}");
            assert!(!response.body.contains("option"), "the client is not told the cause: {response:?}");
        }
    }
    // The event and the log name the option.
    let (_, event) = denied.next().await;
    assert_eq!((text(&event, "user"), text(&event, "option")), ("bob".into(), "ret: rawfile_json".into()));
    for (option, _) in options(&file) {
        assert!(system.master_log().contains(&format!("option '{option}")), "{option}: {}", system.master_log());
    }
    // Fields of the master's own tools are dropped: the user's job is limited and the user's own in any case.
    let forged = map! {"auth_list" => list![".*"], "master_id" => "x", "id" => "web2", "_cause" => 7, "unknown" => 1};
    let before = system.counter("brine_request_fields_dropped_total");
    let mut published = system.events("salt/job/").await;
    let asked = PublishRequest { proof: Some(password("bob", "one")), ..request(&forged) };
    let mut load = asked.to_map();
    load.insert("a_field_of_the_command".into(), 1.into());
    assert!(!ask(system, load).await.to_string().contains(DENIED));
    let (_, new) = published.until("salt/job/*/publish").await;
    assert_eq!(text(&new, "user"), "bob");
    for field in ["auth_list", "master_id", "id", "_cause", "unknown", "a_field_of_the_command"] {
        assert!(!new.contains_key(field), "{new:?}");
    }
    assert_eq!(system.counter("brine_request_fields_dropped_total") - before, 6);
    let asked = PublishRequest { proof: Some(password("bob", "one")), ..request(&map! {"auth_list" => list![".*"]}) };
    let escalated = PublishRequest { fun: "cmd.run".into(), arg: vec!["id".into()], ..asked };
    assert!(ask(system, escalated.to_map()).await.to_string().contains(DENIED));

    assert!(!file.exists(), "nothing was written");
    // Without options, or with harmless ones, the user's jobs work.
    let ping = map! {"client" => "local", "tgt" => "*", "fun" => "test.ping", "timeout" => 60, "full_return" => true};
    let response = api.post("/", &session, &ping.into());
    assert!(response.first().get("web1").is_some_and(|one| one.get("ret") == Some(&true.into())), "{response:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn permitted_options_have_their_effect_within_their_values() {
    let api = start().await;
    let system = &api.system;
    let session = api.login("kim", "two");
    let by = |kwargs: Map| {
        let mut chunk = map! {"client" => "local", "tgt" => "web1", "fun" => "test.ping", "ret" => "rawfile_json"};
        chunk.extend(kwargs);
        api.post("/", &session, &chunk.into())
    };
    let file = system.path("permitted.json");
    let kwargs = |path: &Path| -> Value { map! {"filename" => path.display().to_string()}.into() };
    let response = by(map! {"ret_kwargs" => kwargs(&file), "metadata" => map! {"ticket" => 5}});
    assert_eq!(response.status, 200, "{response:?}");
    until("the return is written", || std::fs::read_to_string(&file).is_ok_and(|text| text.contains("ticket"))).await;
    let other = system.path("other.json");
    for refused in [
        map! {"ret_kwargs" => kwargs(&other)},
        map! {"ret_kwargs" => map! {"filename" => file.display().to_string(), "other" => 1}},
        map! {"ret" => "rawfile_json,local"},
        map! {"ret_config" => "x"},
    ] {
        let response = by(refused.clone());
        assert_eq!(response.status, 401, "{refused:?}: {response:?}");
    }
    assert!(!other.exists());
    // The master's own user is not limited.
    let other = other.display().to_string();
    let words = ["web1", "test.ping", "--return", "rawfile_json", "--return_kwargs", &format!("{{filename: {other}}}")];
    let output = system.tool("salt", &words);
    assert!(output.status.success(), "{}{}", stdout(&output), stderr(&output));
    until("the return is written", || Path::new(&other).exists()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn returners_of_jobs_and_calls_of_minions_need_a_permission() {
    let system = System::start(&CONFIG.replace("PORT", "1")).await;
    let mut minions = Vec::new();
    for id in ["web1", "web2"] {
        minions.push(Raw::join(&system, id, Cipher::Aes256Gcm).await);
    }
    let publish = |cmd: &str, ret: &str| {
        map! {"cmd" => cmd, "fun" => "test.ping", "arg" => list![], "tgt" => "*", "tgt_type" => "glob", "ret" => ret, "tmo" => 1, "timeout" => 1, "form" => "clean"}
    };
    for (ret, permitted) in [
        ("", [true, true]),
        ("local", [false, true]),
        ("rawfile_json", [false, false]),
        ("local,rawfile_json", [false, false]),
    ] {
        for (minion, permitted) in minions.iter_mut().zip(permitted) {
            let answer = minion.ask(publish("minion_pub", ret)).await;
            assert_eq!(answer.get("jid").is_some(), permitted, "{} {ret}: {answer}", minion.id);
        }
    }
    let mut published = system.events("salt/job/").await;
    let mut load = publish("minion_publish", "rawfile_json");
    load.insert("ret_kwargs".into(), map! {"filename" => "/x"}.into());
    assert_eq!(minions[0].ask(load).await, Value::map());
    let mut load = publish("minion_pub", "");
    load.extend(map! {"ret_kwargs" => map! {"filename" => "/x"}, "metadata" => 1, "module_executors" => list!["sudo"]});
    minions[0].ask(load).await;
    let (_, new) = published.until("salt/job/*/publish").await;
    for field in ["ret_kwargs", "metadata", "module_executors"] {
        assert!(!new.contains_key(field), "{new:?}");
    }
    assert!(system.master_log().contains("unknown fields of a request are ignored"), "{}", system.master_log());

    for (arg, permitted) in
        [(list![], true), (list!["local_cache"], true), (list!["sqlite3"], false), (list!["ext_source=sqlite3"], false)]
    {
        let answer =
            minions[0].ask(map! {"cmd" => "minion_runner", "fun" => "jobs.list_jobs", "arg" => arg.clone()}).await;
        // A permitted call lists the jobs above.
        assert_eq!(answer.as_map().is_some_and(|jobs| !jobs.is_empty()), permitted, "{arg}: {answer}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sources_of_jobs_need_a_permission_in_calls_of_runner_functions() {
    let api = start().await;
    let failure = "occurred for user run.";
    let call = |session: &str, arguments: Map| {
        let mut chunk = map! {"client" => "runner", "fun" => "jobs.list_jobs"};
        chunk.extend(arguments);
        api.post("/", session, &chunk.into())
    };
    let (run, src) = (api.login("run", "four"), api.login("src", "five"));
    for arguments in [
        map! {"ext_source" => "sqlite3"},
        map! {"kwarg" => map! {"ext_source" => "sqlite3"}},
        map! {"arg" => list!["sqlite3"]},
        map! {"arg" => list!["ext_source=sqlite3"]},
        map! {"ext_source" => list!["sqlite3"]},
    ] {
        let response = call(&run, arguments.clone());
        assert_eq!((response.status, response.body.contains(failure)), (401, true), "{arguments:?}: {response:?}");
    }
    assert_eq!(call(&run, map! {}).status, 200);
    assert_eq!(call(&run, map! {"ext_source" => "local_cache"}).status, 200);
    // Permitted, and then it fails because the returner lacks its options.
    let response = call(&src, map! {"ext_source" => "sqlite3"});
    assert!(response.body.contains("sqlite3.database"), "{response:?}");
    assert_eq!(call(&src, map! {"ext_source" => "mysql"}).status, 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn functions_that_arguments_name_need_a_permission_by_every_door() {
    let api = start().await;
    let session = api.login("tim", "seven");
    let status = |chunk: Map| {
        let response = api.post("/", &session, &chunk.clone().into());
        (response.status, chunk, response.body)
    };
    let job = |tgt: &str, fun: &str, arg: Value, kwarg: Map| {
        map! {"client" => "local", "tgt" => tgt, "fun" => fun, "arg" => arg, "kwarg" => kwarg}
    };
    let scheduled = |tgt: &str, function: &str, more: Map| {
        let mut kwarg = map! {"function" => function, "seconds" => 3600};
        kwarg.extend(more);
        job(tgt, "schedule.add", list![function], kwarg)
    };
    let runner = |fun: &str, arg: Value| map! {"client" => "runner", "fun" => fun, "arg" => arg};
    let mut with_jid = runner("salt.execute", list!["web1", "test.ping"]);
    with_jid.insert("kwarg".into(), map! {"jid" => "20261129000000000000"}.into());
    let written = api.system.path("written.sh");
    let kwargs = map! {"filename" => written.display().to_string()};
    for (chunk, permitted) in [
        (scheduled("web1", "cmd.run", map! {"job_args" => list!["id"]}), false),
        (scheduled("*", "test.ping", map! {}), true),
        (scheduled("web1", "test.ping", map! {"returner" => "rawfile_json", "return_kwargs" => kwargs}), false),
        (scheduled("web1", "test.echo", map! {"job_args" => list!["x"]}), true),
        (scheduled("*", "test.echo", map! {"job_args" => list!["x"]}), false),
        (job("web1", "mine.send", list!["cmd.run", "id"], map! {}), false),
        (job("web1", "mine.send", list!["test.ping"], map! {}), true),
        (job("web1", "test.ping", list![], map! {}), true),
        (runner("salt.execute", list!["web1", "test.echo", list!["x"]]), true),
        (runner("salt.execute", list!["*", "test.echo", list!["x"]]), false),
        (runner("salt.execute", list!["db1", "test.ping"]), true),
        (runner("salt.execute", list!["web1", "cmd.run", list!["id"]]), false),
        (with_jid, false),
        (runner("batch.start", list!["web1", "cmd.run", list!["id"]]), false),
        (runner("salt.cmd", list!["cmd.run", "id"]), false),
        (runner("salt.cmd", list!["test.ping"]), true),
        (runner("queue.insert_runner", list!["salt.cmd", list!["cmd.run", "id"]]), false),
        (runner("mine.update", list!["web1", "glob", false, map! {"cmd.run" => "id"}]), false),
    ] {
        let (status, chunk, body) = status(chunk);
        assert_eq!(status, if permitted { 200 } else { 401 }, "{}: {body}", Value::from(chunk));
    }
    // By raw requests, also in a job with several functions.
    for (fun, arg) in [
        (Value::from("schedule.add"), vec!["j".into(), "function=cmd.run".into()]),
        (list!["test.ping", "schedule.add"], vec![list![], list!["j", "function=cmd.run"]]),
    ] {
        let request = PublishRequest {
            fun,
            arg,
            proof: Some(password("tim", "seven")),
            ..PublishRequest::new("web1", "", "tim")
        };
        let answer = ask(&api.system, request.to_map()).await;
        assert!(answer.to_string().contains(DENIED), "{answer}");
    }
    let explained =
        api.system.tool("salt-run", &["auth.test", "tim", "web1", "runner.salt.cmd", "cmd.run", "id", "eauth=file"]);
    assert!(stdout(&explained).contains("permitted:\n    False"), "{}", stdout(&explained));
    assert!(!written.exists());
}

/// Follows the events of a user, from the start of the journal.
async fn follow(api: &Api, user: &str, password: &str) -> Lines {
    Lines::follow(api, "/events?since=0", &[&format!("X-Auth-Token: {}", api.login(user, password))]).await
}

/// Returns the tags up to the first one that contains `last`.
async fn tags_until(lines: &mut Lines, last: &str) -> Vec<String> {
    let mut tags = Vec::new();
    loop {
        let tag = lines.until("tag: ").await["tag: ".len()..].to_owned();
        let is_last = tag.contains(last);
        tags.push(tag);
        if is_last {
            return tags;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn events_are_closed_to_users_without_an_entry_for_them() {
    let api = start().await;
    let root = |words: &[&str]| assert!(api.system.tool("salt", words).status.success(), "{words:?}");
    let jid = |client: &str, session: &str, tgt: &str| {
        let chunk = map! {"client" => client, "tgt" => tgt, "fun" => "test.ping"};
        let response = api.post("/", session, &chunk.into());
        response.first().get("jid").unwrap_or_else(|| panic!("{response:?}")).to_string()
    };
    fire(&api, "my/secret");
    root(&["*", "cmd.run", "echo secret"]);
    root(&["*", "test.ping"]);
    api.system.tool("salt-run", &["manage.up"]);
    let (bob, web) = (api.login("bob", "one"), api.login("web", "three"));
    // Of the user's own jobs all events are visible. This one has ended before the next one begins.
    let chunk = map! {"client" => "local", "tgt" => "db1", "fun" => "test.ping", "full_return" => true};
    let ended = api.post("/", &bob, &chunk.into());
    let own = ended.first().get("db1").unwrap().get("jid").unwrap_or_else(|| panic!("{ended:?}")).to_string();
    let webs = jid("local_async", &web, "web1");
    let mut by_bob = follow(&api, "bob", "one").await;
    let tags = tags_until(&mut by_bob, &format!("{webs}/ret/web1")).await;
    let has = |part: &str| tags.iter().any(|tag| tag.contains(part));
    for seen in [format!("{own}/new"), format!("{own}/publish"), format!("{own}/ret/db1"), format!("{webs}/ret/web1")] {
        assert!(has(&seen), "{seen}: {tags:?}");
    }
    assert!(has("salt/minion/web1/start"), "{tags:?}");
    let closed = ["my/", "salt/run/", "salt/wheel/", "salt/auth", "salt/key", "brine/", "salt/netapi", "minion_start"];
    for part in closed.into_iter().chain([&*format!("{webs}/publish")]) {
        assert!(!has(part), "{part}: {tags:?}");
    }
    // Users of some minions see returns of these minions alone.
    let mut by_web = follow(&api, "web", "three").await;
    let tags = tags_until(&mut by_web, &format!("{webs}/ret/web1")).await;
    assert!(tags.iter().any(|tag| tag.ends_with("/ret/web1")), "{tags:?}");
    assert!(!tags.iter().any(|tag| tag.contains("db1") || tag.contains(&own)), "{tags:?}");
    // Jobs of functions that the user may not use are invisible, also while they run.
    fire(&api, "my/secret");
    root(&["*", "cmd.run", "echo secret"]);
    let last = jid("local_async", &bob, "db1");
    let tags = tags_until(&mut by_bob, &format!("{last}/ret/db1")).await;
    let others: Vec<&String> = tags.iter().filter(|tag| !tag.contains(&last)).collect();
    assert!(others.is_empty(), "{others:?}");
    // An entry opens more.
    let mut by_all = follow(&api, "all", "six").await;
    let tags = tags_until(&mut by_all, &format!("{last}/ret/db1")).await;
    for part in ["my/secret", "salt/auth", "salt/run/"] {
        assert!(tags.iter().any(|tag| tag.contains(part)), "{part}: {tags:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn events_are_open_to_all_users_with_the_option() {
    let api = Api::start(&format!("{CONFIG}open_events: True\n"), &[("users", USERS)], &[]).await;
    fire(&api, "my/event");
    let mut lines = follow(&api, "bob", "one").await;
    assert_eq!(lines.event("my/event").await.1.get("a"), Some(&1.into()));
}

#[tokio::test(flavor = "multi_thread")]
async fn salt_says_that_a_user_may_not_follow_jobs() {
    if !nix::unistd::geteuid().is_root() {
        eprintln!("only root can run salt as another user");
        return;
    }
    let mut system = System::start(&CONFIG.replace("PORT", "1")).await;
    system.start_minion("web1").await;
    // The user must reach the configuration.
    for path in ["", "etc", "etc/master", "users"] {
        let mode =
            std::os::unix::fs::PermissionsExt::from_mode(if path.is_empty() || path == "etc" { 0o755 } else { 0o644 });
        _ = std::fs::set_permissions(system.path(path), mode);
    }
    let as_daemon = |words: &[&str]| {
        let mut command = support::within_limit("setpriv");
        command.args([
            "--reuid=daemon",
            "--regid=daemon",
            "--clear-groups",
            support::BRINE,
            "salt",
            "-c",
            &system.etc(),
        ]);
        command.args(words).env("HOME", "/nonexistent").output().unwrap()
    };
    let output = as_daemon(&["web1", "test.ping"]);
    let text = format!("{}{}", stdout(&output), stderr(&output));
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("reading the master's events failed") && text.contains("--async"), "{text}");
    assert!(!text.contains("could not be contacted"), "{text}");
    let output = as_daemon(&["--async", "web1", "test.ping"]);
    let text = format!("{}{}", stdout(&output), stderr(&output));
    assert!(output.status.success() && text.contains("Executed command with job ID: 2"), "{text}");
    let output = as_daemon(&["--async", "web1", "cmd.run", "id"]);
    let text = format!("{}{}", stdout(&output), stderr(&output));
    assert!(output.status.code() == Some(1) && text.contains(DENIED), "{text}");
}
