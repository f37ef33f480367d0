//! Secrets among arguments and results: a marker goes in by every door, and is then looked for in events and their
//! streams, in all files of master and minion, in returners and logs of all levels, and in the command lines of processes.

mod tiers;

use crate::support;

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use crate::support::api::Api;
use crate::support::sshd::{Sshd, ssh};
use crate::support::{BRINE, Events, System, stderr, stdout, until, within_limit};
use brine_function::Args;
use brine_ids::Jid;
use brine_value::{Map, Value, json, list, map, msgpack};
use brine_wire::{Call, ClientCommand, Envelope, PublishRequest};
use brine_zmtp::{Limits, RequestClient};
use futures::{SinkExt, StreamExt};
use tokio_tungstenite::tungstenite::Message;

const MARKER: &str = "MARKER-58213";

fn is_in(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|part| part == text.as_bytes())
}

/// Watches events and the command lines of all processes for a marker.
struct Watch {
    found: Arc<Mutex<BTreeSet<String>>>,
    ends: Arc<AtomicBool>,
    tags: Arc<Mutex<Vec<String>>>,
}

impl Watch {
    async fn start(system: &System) -> Self {
        let (leaks, ends, tags) = (Arc::<Mutex<BTreeSet<String>>>::default(), Arc::default(), Arc::default());
        let watch = Watch { found: leaks, ends, tags };
        let mut events = Events::follow(&system.path("run"), "").await;
        let (leaks, tags) = (Arc::clone(&watch.found), Arc::clone(&watch.tags));
        tokio::spawn(async move {
            while let Some((tag, data)) = events.next_if_any().await {
                if is_in(&msgpack::pack_map(&data), MARKER) {
                    leaks.lock().unwrap().insert(format!("event {tag}: {}", Value::from(data)));
                }
                tags.lock().unwrap().push(tag);
            }
        });
        let (leaks, ends) = (Arc::clone(&watch.found), Arc::clone(&watch.ends));
        std::thread::spawn(move || {
            while !ends.load(Ordering::Relaxed) {
                for process in std::fs::read_dir("/proc").unwrap().flatten() {
                    let line = std::fs::read(process.path().join("cmdline")).unwrap_or_default();
                    // The words of salt-ssh, which reads none from stdin, are its caller's.
                    if is_in(&line, MARKER) && !is_in(&line, "\0salt-ssh\0") {
                        let line = String::from_utf8_lossy(&line).replace('\0', " ");
                        leaks.lock().unwrap().insert(format!("process {line}"));
                    }
                }
                std::thread::sleep(std::time::Duration::from_millis(5));
            }
        });
        watch
    }

    /// Watches the web sockets of the API, too.
    async fn follow_socket(&self, api: &Api, token: &str) {
        let address = format!("{}/all_events/{token}", api.url.replace("http://", "ws://"));
        let (mut socket, _) = tokio_tungstenite::connect_async(address).await.unwrap();
        socket.send(Message::text("websocket client ready")).await.unwrap();
        let (leaks, tags) = (Arc::clone(&self.found), Arc::clone(&self.tags));
        tokio::spawn(async move {
            while let Some(Ok(message)) = socket.next().await {
                if is_in(&message.into_data(), MARKER) {
                    leaks.lock().unwrap().insert("web socket".to_owned());
                }
                tags.lock().unwrap().push("web socket".to_owned());
            }
        });
    }

    fn saw(&self, pattern: &str) -> bool {
        self.tags.lock().unwrap().iter().any(|tag| brine_text::glob::fnmatch(pattern, tag))
    }

    /// Returns the places where the marker was seen.
    fn leaks(&self) -> Vec<String> {
        self.found.lock().unwrap().iter().cloned().collect()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
    }
}

/// Returns the files below a directory that contain a text, except for those that the test has written.
fn files_with(directory: &Path, text: &str, inputs: &[&str]) -> Vec<PathBuf> {
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap().flatten() {
        let path = entry.path();
        if inputs.iter().any(|input| path.ends_with(input)) {
            continue;
        }
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            paths.extend(files_with(&path, text, inputs));
        } else if kind.is_file() && is_in(&std::fs::read(&path).unwrap_or_default(), text) {
            paths.push(path);
        }
    }
    paths
}

/// Runs a tool whose further arguments are read from stdin, so that they are in no command line.
async fn tool(system: &System, tool: &str, words: &[&str], lines: &[&str]) -> String {
    let mut command = within_limit(BRINE);
    let etc = system.etc();
    command.arg(tool).args(["-c", &etc, "--args-stdin"]).args(words);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(lines.join("\n").as_bytes()).unwrap();
    let output = tokio::task::spawn_blocking(move || child.wait_with_output().unwrap()).await.unwrap();
    format!("{}{}", stdout(&output), stderr(&output))
}

async fn ask(system: &System, command: Map) -> Value {
    let client = RequestClient::new(system.request_endpoint(), Limits::default());
    let answer = client.request(Envelope::clear(command), support::TIMEOUT).await.unwrap();
    msgpack::unpack(&answer).unwrap()
}

fn keywords(more: Map) -> Value {
    let mut all = map! {"__kwarg__" => true};
    all.extend(more);
    all.into()
}

const CONFIG: &str = "api_pidfile: api.pid
api_logfile: ''
log_file: ROOT/master-all.log
log_level_logfile: all
netapi_enable_clients: [local, local_async, local_batch, runner, runner_async, wheel, wheel_async, ssh]
external_auth:
  file:
    ^filename: ROOT/users
    fred: ['.*', '@runner', '@wheel', '@jobs', {events: '*'}]
peer: {m1: ['.*']}
event_return: [rawfile_json, sqlite3]
ext_job_cache: sqlite3
rawfile_json.filename: ROOT/events.json
sqlite3.database: ROOT/jobs.db
ignore_host_keys: True
reactor:
  - 'test/react': [ROOT/etc/react.sls]
schedule:
  scheduled: {function: test.metasyntactic, seconds: 1, kwargs: {password: MARKER-58213}}
";

const INPUTS: &[&str] = &["etc", "srv", "users", "ran"];

async fn start() -> Api {
    let section = "rest_cherrypy:\n  host: 127.0.0.1\n  port: PORT\n  disable_ssl: True\n";
    let files = [
        ("users", "fred:MARKER-58213\n"),
        ("srv/salt/nothing.sls", "nothing:\n  test.nop\n"),
        (
            "srv/salt/orch.sls",
            "job:\n  salt.function:\n    - name: cmd.run\n    - tgt: m1\n    - arg: ['true']\n    - kwarg: {env: {DB_PASSWORD: MARKER-58213}}\n\
             generated:\n  salt.wheel:\n    - name: key.gen\n",
        ),
        (
            "etc/react.sls",
            "job:\n  local.cmd.run:\n    - tgt: m1\n    - args: [{cmd: 'true'}, {env: {DB_PASSWORD: MARKER-58213}}]\n\
             call:\n  runner.test.arg:\n    - args: [{password: MARKER-58213}]\n",
        ),
    ];
    let mut api = Api::start(&format!("{CONFIG}{section}"), &files, &[]).await;
    let more = "log_file: ROOT/m1-all.log\nlog_level_logfile: all\nsqlite3.database: ROOT/jobs.db\n\
                schedule:\n  own: {function: test.ping, seconds: 1, kwargs: {password: MARKER-58213}}\n";
    let mut events = api.system.events("salt/minion/").await;
    api.system.configure_minion("m1", more);
    api.system.spawn_minion("m1");
    events.until("salt/minion/m1/start").await;
    api
}

#[tokio::test(flavor = "multi_thread")]
async fn secrets_reach_the_minion_and_no_record() {
    let api = start().await;
    let system = &api.system;
    let watch = Watch::start(system).await;
    let sshd = Sshd::start(system, "sshd", "", "").await;
    let options = format!(", passwd: {MARKER}, ssh_options: [UserKnownHostsFile=/dev/null]");
    system.write("etc/roster", &sshd.entry("host1", &options));
    let environment = map! {"DB_PASSWORD" => MARKER, "FILE" => system.path("ran").display().to_string()};
    let writes = |word: &str| {
        let command = format!("echo {word} $DB_PASSWORD >> $FILE");
        vec![command.into(), keywords(map! {"env" => environment.clone()})]
    };

    // Raw requests: each kind of argument, options of returners, several functions, a refused publish.
    let set_password = |fun: &str, mut arg: Vec<Value>| {
        arg.push(list!["nobody-here", MARKER]);
        (Value::from(fun), arg, map! {})
    };
    let mine = ["kept", "nobody-here", MARKER, "mine_function=shadow.set_password"].map(Value::from);
    let scheduled = |more: Map| {
        let mut all = map! {"function" => "test.ping", "seconds" => 1, "return_job" => true};
        all.extend(more);
        keywords(all)
    };
    let mut jids = Vec::new();
    for (fun, arg, kwargs) in [
        (Value::from("cmd.run"), writes("raw"), map! {}),
        ("state.apply".into(), vec!["nothing".into(), keywords(map! {"pillar" => map! {"a" => MARKER}})], map! {}),
        (
            "test.ping".into(),
            vec![],
            map! {"ret_kwargs" => map! {"host" => MARKER}, "metadata" => map! {"token" => MARKER}},
        ),
        ("test.ping".into(), vec![keywords(map! {"password" => MARKER})], map! {}),
        ("test.ping".into(), vec![format!("api_key={MARKER}").into()], map! {}),
        ("test.ping".into(), vec![map! {"a" => list![map! {"secret" => MARKER}]}.into()], map! {}),
        ("shadow.set_password".into(), vec!["no-such-user".into(), MARKER.into()], map! {}),
        (list!["test.ping", "test.ping"], vec![list![], list![keywords(map! {"key" => MARKER})]], map! {}),
        // Texts with data.
        ("test.ping".into(), vec![format!("https://fred:{MARKER}@host/?token={MARKER}").into()], map! {}),
        ("test.ping".into(), vec![format!("a: 1\npassword: |\n  {MARKER}\n").into()], map! {}),
        ("test.ping".into(), vec![format!(r#"{{"sshkey": "\"{MARKER}"}}"#).into()], map! {}),
        // Arguments of other functions.
        set_password("publish.publish", vec!["m1".into(), "shadow.set_password".into()]),
        set_password("publish.full_data", vec!["m1".into(), "shadow.set_password".into()]),
        ("publish.publish".into(), vec!["m1".into(), "test.ping".into(), list![format!("password={MARKER}")]], map! {}),
        ("mine.send".into(), mine.to_vec(), map! {}),
        (
            "schedule.add".into(),
            vec!["one".into(), scheduled(map! {"job_kwargs" => map! {"password" => MARKER}})],
            map! {},
        ),
        (
            "schedule.add".into(),
            vec![
                "two".into(),
                scheduled(map! {"function" => "shadow.set_password", "job_args" => list!["nobody-here", MARKER]}),
            ],
            map! {},
        ),
    ] {
        let mut request = PublishRequest { fun, arg, kwargs, ..PublishRequest::new("m1", "", "root") };
        (request.key, request.jid) = (Some(system.root_key()), Some(Jid::new()));
        jids.push(request.jid.clone().unwrap());
        let answer = ask(system, request.to_map()).await;
        assert!(answer.to_string().contains("'m1'"), "{answer}");
        request.key = Some("wrong".to_owned());
        ask(system, request.to_map()).await;
    }
    // Runner and wheel functions.
    let call = |function: &str, args: Args| Call {
        fun: function.to_owned(),
        args,
        key: Some(system.root_key()),
        proof: None,
        user: "root".to_owned(),
        asynchronous: false,
        jid: None,
        is_salt: false,
    };
    let secret = || Args { positional: vec![list![map! {"token" => MARKER}]], keyword: map! {"password" => MARKER} };
    let echoed = ask(system, ClientCommand::call_map("runner", &call("test.arg", secret()))).await;
    assert!(echoed.to_string().matches(MARKER).count() == 2, "the caller gets the result: {echoed}");
    let misuse = Args::keyword(map! {"password" => MARKER});
    let refused = ask(system, ClientCommand::call_map("runner", &call("jobs.active", misuse.clone()))).await;
    assert!(refused.to_string().contains("password=**********"), "{refused}");
    ask(system, ClientCommand::call_map("wheel", &call("key.list_all", misuse))).await;
    let made = ask(system, ClientCommand::call_map("wheel", &call("key.gen", Args::default()))).await;
    assert!(made.to_string().contains("PRIVATE KEY"), "the caller gets the key: {made}");

    // The REST API.
    let login = api.curl_with_input("/login", &["-d", "@-"], &format!("username=fred&password={MARKER}&eauth=file"));
    let token = login.header("x-auth-token").unwrap_or_else(|| panic!("{login:?}")).to_owned();
    watch.follow_socket(&api, &token).await;
    let stream = std::fs::File::create(system.path("stream.txt")).unwrap();
    let header = format!("X-Auth-Token: {token}");
    let mut stream = within_limit("curl")
        .args(["-sSN", "-H", &header, &format!("{}/events?since=0", api.url)])
        .stdout(stream)
        .spawn()
        .unwrap();
    let post = |path: &str, body: Value| {
        let header = format!("X-Auth-Token: {token}");
        let words = ["-H", &header, "-H", "Content-Type: application/json", "-d", "@-"];
        api.curl_with_input(path, &words, &json::to_json(&body))
    };
    let by_rest = map! {"client" => "local", "tgt" => "m1", "fun" => "cmd.run", "arg" => list![writes("rest")[0].clone()],
    "kwarg" => map! {"env" => environment.clone()}};
    assert_eq!(post("/", by_rest.clone().into()).status, 200);
    let mut run = by_rest;
    run.extend(map! {"username" => "fred", "password" => MARKER, "eauth" => "file", "client" => "local_async"});
    assert_eq!(post("/run", list![run]).status, 200);
    let mut batch = map! {"client" => "local_batch", "batch" => "1", "tgt" => "m1", "fun" => "shadow.set_password"};
    batch.extend(map! {"arg" => list!["nobody-here", MARKER], "kwarg" => map! {"secret" => MARKER}});
    assert_eq!(post("/", batch.into()).status, 200);
    for (client, fun, kwarg) in [
        ("runner_async", "test.arg", map! {"password" => MARKER}),
        (
            "runner_async",
            "batch.start",
            map! {"tgt" => "m1", "fun" => "shadow.set_password", "arg" => list!["nobody-here", MARKER]},
        ),
        (
            "runner_async",
            "salt.execute",
            map! {"tgt" => "m1", "fun" => "shadow.set_password", "arg" => list!["nobody-here", MARKER]},
        ),
        ("runner_async", "salt.cmd", map! {"fun" => "test.arg", "token" => MARKER}),
        ("runner_async", "queue.insert_runner", map! {"fun" => "test.arg", "kwargs" => map! {"password" => MARKER}}),
        ("runner_async", "queue.process_runner", map! {}),
        ("wheel_async", "pillar_roots.write", map! {"data" => MARKER, "path" => "made.sls"}),
        ("wheel_async", "key.list_all", map! {"password" => MARKER}),
        ("ssh", "shadow.set_password", map! {"name" => "nobody-here", "password" => MARKER}),
    ] {
        let mut chunk = map! {"client" => client, "fun" => fun, "kwarg" => kwarg};
        if client == "ssh" {
            chunk.insert("tgt".into(), "host1".into());
        }
        let response = post("/", chunk.into());
        assert_eq!(response.status, 200, "{client} {fun}: {response:?}");
    }
    let orchestrated = map! {"client" => "runner", "fun" => "state.orchestrate", "arg" => list!["orch"],
    "kwarg" => map! {"pillar" => map! {"a" => MARKER}}};
    assert_eq!(post("/", orchestrated.into()).status, 200);
    let credentials = format!("mid=made&username=fred&password={MARKER}&eauth=file");
    let generated = api.curl_with_input("/keys", &["-d", "@-"], &credentials);
    assert!(generated.body.contains("PRIVATE KEY"), "{generated:?}");

    // Reactions, command lines with arguments from stdin, schedules, local calls.
    assert!(system.tool("salt-run", &["event.send", "test/react", "{a: 1}"]).status.success());
    let password = format!("password={MARKER}");
    tool(system, "salt", &["m1"], &["test.ping", &password]).await;
    tool(system, "salt", &["-b", "1", "m1"], &["test.ping", &password]).await;
    let set = ["shadow.set_password", "nobody-here", MARKER];
    tool(system, "salt", &["-b", "1", "m1"], &set).await;
    tool(system, "salt-run", &[], &["test.arg", &password]).await;
    tool(system, "salt-run", &[], &["batch.start", "m1", "shadow.set_password", &format!("[nobody-here, {MARKER}]")])
        .await;
    for words in [&["host1", "test.ping", &password][..], &["host1", "shadow.set_password", "nobody-here", MARKER]] {
        let called = ssh(system, words);
        assert!(stdout(&called).contains("host1"), "{called:?}");
    }
    let local = system.path("m1/etc").display().to_string();
    let mut command = within_limit(BRINE);
    command.args(["salt-call", "-c", &local, "--args-stdin"]).stdin(Stdio::piped()).stdout(Stdio::null());
    let mut child = command.stderr(Stdio::null()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(format!("test.ping\n{password}").as_bytes()).unwrap();
    child.wait().unwrap();

    until("the jobs have run", || {
        let ran = std::fs::read_to_string(system.path("ran")).unwrap_or_default();
        let of = |word: &str| ran.lines().filter(|line| *line == format!("{word} {MARKER}")).count();
        of("raw") == 1 && of("rest") == 2
    })
    .await;
    until("all kinds of events were published", || {
        let tags = [
            "salt/job/*/new",
            "salt/job/*/publish",
            "salt/job/*/ret/m1",
            "salt/job/*/error",
            "salt/run/*/new",
            "salt/run/*/ret",
            "salt/wheel/*/ret",
            "test/react",
            "__schedule_return",
            "salt/batch/*/complete",
            "web socket",
        ];
        tags.iter().all(|tag| watch.saw(tag))
    })
    .await;

    // Readers of the job cache do not get them, and a masked job cannot run again.
    for jid in &jids {
        let jid = jid.as_str();
        for words in [&["jobs.list_job", jid][..], &["jobs.lookup_jid", jid], &["jobs.print_job", jid]] {
            let text = stdout(&system.tool("salt-run", words));
            assert!(!text.contains(MARKER), "{words:?}: {text}");
        }
        let response = api.get(&format!("/jobs/{jid}"), &token);
        assert!(!response.body.contains(MARKER), "{response:?}");
    }
    let again = system.tool("salt-run", &["jobs.rerun", jids[0].as_str()]);
    assert!(format!("{}{}", stdout(&again), stderr(&again)).contains("had secret arguments"), "{again:?}");

    // What the returners and the stream have got.
    until("returners and stream have all", || {
        let has =
            |file: &str| is_in(&std::fs::read(system.path(file)).unwrap_or_default(), jids.last().unwrap().as_str());
        ["events.json", "stream.txt"].into_iter().all(has)
            && is_in(
                &[std::fs::read(system.path("jobs.db")), std::fs::read(system.path("jobs.db-wal"))]
                    .map(Result::unwrap_or_default)
                    .concat(),
                jids.last().unwrap().as_str(),
            )
    })
    .await;
    _ = stream.kill();
    _ = stream.wait();
    assert_eq!(watch.leaks(), Vec::<String>::new());
    assert_eq!(files_with(&system.path(""), MARKER, INPUTS), Vec::<PathBuf>::new());
    let schedule = std::fs::metadata(system.path("m1/etc/minion.d/_schedule.conf")).unwrap();
    assert_eq!(std::os::unix::fs::PermissionsExt::mode(&schedule.permissions()) & 0o777, 0o600, "it has the secrets");
    // The keys of the master and of the minion alone.
    let keys = files_with(&system.path(""), "PRIVATE KEY", &[INPUTS, &["sshd", "thin"]].concat());
    assert!(keys.iter().all(|path| path.extension().is_some_and(|end| end == "pem" || end == "key")), "{keys:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn minions_get_the_secrets_of_a_job_after_the_master_was_killed() {
    let mut system = System::start("publish_catch_up: 300\n").await;
    system.start_minion("m1").await;
    // The minion asks for the jobs after its last one.
    assert_eq!(system.salt_json(&["m1", "test.ping"]), map! {"m1" => true}.into());
    system.kill_minion("m1");
    let mut request = PublishRequest::new("m1", "cmd.run", "root");
    let environment = map! {"DB_PASSWORD" => MARKER, "FILE" => system.path("ran").display().to_string()};
    request.arg = vec!["echo $DB_PASSWORD >> $FILE".into(), keywords(map! {"env" => environment})];
    (request.key, request.jid) = (Some(system.root_key()), Some(Jid::new()));
    let mut events = system.events("salt/job/").await;
    ask(&system, request.to_map()).await;
    events.until("salt/job/*/publish").await;
    // The next persisted event is after it.
    assert!(system.tool("salt-run", &["event.send", "test/later", "{a: 1}"]).status.success());
    until("the journal has the event", || {
        stdout(&system.tool("salt-run", &["event_bus.since", "0", "--out=json"])).contains("test/later")
    })
    .await;
    system.kill_master();
    system.start_master().await;
    system.spawn_minion("m1");
    until("the job has run", || std::fs::read_to_string(system.path("ran")).is_ok_and(|text| text.trim() == MARKER))
        .await;
    assert_eq!(files_with(&system.path(""), MARKER, INPUTS), Vec::<PathBuf>::new());
}
