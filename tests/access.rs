//! Users with limited rights: passwords and tokens of `external_auth`, keys of `publisher_acl`.

use crate::support;

use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Output, Stdio};

use crate::support::{BRINE, System, stderr, stdout, text, within_limit};
use brine_value::Value;
use brine_wire::{Envelope, Proof, PublishRequest, TokenRequest};
use brine_zmtp::{Limits, RequestClient};
use nix::unistd::{Group, User};

const CONFIG: &str = "token_file: ROOT/token
external_auth:
  file:
    ^filename: ROOT/users
    fred: ['test.*', '@jobs']
    ann: [{'web*': [test.ping]}, {'@wheel': [key.list_all]}, {events: ['salt/job/*']}]
    kim: [{'@wheel': [key.list, key.glob_match, key.accept, key.finger]}, {'@runner': [jobs.*]}]
    max: ['@runner']
    opt: [{'@options': [metadata, {ret: redis}, {ret_kwargs: {db: '[0-9]'}}]}]
    '*': [sys.doc]
publisher_acl_blacklist:
  modules: ['test.echo']
";

const NOT_PERMITTED: &str = "Authorization error occurred.";
const NOT_KNOWN: &str = "Authentication error occurred.";

async fn system() -> System {
    let mut system = System::new(&format!("auto_accept: True\n{CONFIG}"));
    system.write("users", "fred:one\nann:two\neve:thr33\nkim:four\nmax:five\n");
    system.start_master().await;
    for id in ["web1", "db1"] {
        system.start_minion(id).await;
    }
    system
}

fn output_of(output: &Output) -> (String, Option<i32>) {
    (format!("{}{}", stdout(output), stderr(output)).trim().to_owned(), output.status.code())
}

fn by_password(system: &System, tool: &str, user: &str, password: &str, words: &[&str]) -> Output {
    let who = ["-a", "file", "--username", user, "--password", password];
    system.tool(tool, &[&who, words].concat())
}

#[tokio::test(flavor = "multi_thread")]
async fn users_may_do_what_their_entries_permit() {
    let system = system().await;
    let mut denied = system.events("brine/access/denied").await;
    for (user, password, words, reported, code) in [
        ("fred", "one", &["--out=txt", "--static", "*", "test.ping"][..], "web1: True", 0),
        ("fred", "one", &["*", "cmd.run", "id"], NOT_PERMITTED, 1),
        ("fred", "one", &["*", "test.ping,cmd.run", ",id"], NOT_PERMITTED, 1),
        ("fred", "one", &["*", "test.echo", "x"], NOT_PERMITTED, 1),
        ("fred", "gu3ssed", &["*", "test.ping"], NOT_KNOWN, 1),
        ("fred", "", &["*", "test.ping"], NOT_KNOWN, 1),
        ("nobody", "one", &["*", "test.ping"], NOT_KNOWN, 1),
        ("ann", "two", &["--out=txt", "web1", "test.ping"], "web1: True", 0),
        ("ann", "two", &["*", "test.ping"], NOT_PERMITTED, 1),
        ("ann", "two", &["web1", "test.arg"], NOT_PERMITTED, 1),
        ("eve", "thr33", &["--out=txt", "web1", "sys.doc", "test.ping"], "test.ping", 0),
        ("eve", "thr33", &["web1", "test.ping"], NOT_PERMITTED, 1),
    ] {
        let output = by_password(&system, "salt", user, password, words);
        let (text, status) = output_of(&output);
        assert!(text.contains(reported) && status == Some(code), "{user} {words:?}: {status:?} {text}");
    }
    let (_, event) = denied.next().await;
    assert_eq!((text(&event, "user"), text(&event, "request")), ("fred".into(), "cmd.run".into()));
    assert!(
        !system.master_log().contains("thr33") && !system.master_log().contains("gu3ssed"),
        "no password is logged"
    );

    let failure = |user| format!("Authentication failure of type \"eauth\" occurred for user {user}.");
    for (user, password, words, reported) in [
        ("fred", "one", &["jobs.active", "--out=json"][..], "{}".to_owned()),
        ("fred", "one", &["manage.up"], failure("fred")),
        ("ann", "two", &["jobs.active"], failure("ann")),
        ("ann", "gu3ssed", &["jobs.active"], failure("ann")),
    ] {
        let (text, _) = output_of(&by_password(&system, "salt-run", user, password, words));
        assert!(text.contains(&reported), "{user} {words:?}: {text}");
    }
    // Jobs record the user who published them.
    let jobs = stdout(&system.tool("salt-run", &["jobs.list_jobs", "--out=json"]));
    let jobs = brine_value::json::from_json(&jobs).unwrap();
    let users: Vec<String> = jobs.as_map().unwrap().values().map(|job| job.get("User").unwrap().to_string()).collect();
    assert!(users.contains(&"fred".to_owned()) && users.contains(&"ann".to_owned()), "{users:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_replace_passwords_until_they_are_revoked() {
    let system = system().await;
    let ping = ["--out=txt", "--static", "web1", "test.ping"];
    let output = by_password(&system, "salt", "fred", "one", &[&["-T"][..], &ping].concat());
    assert_eq!(output_of(&output), ("web1: True".to_owned(), Some(0)));
    let file = system.path("token");
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    // With the token, `salt` asks for no name or password.
    assert_eq!(
        output_of(&system.tool("salt", &[&["-a", "file"][..], &ping].concat())),
        ("web1: True".to_owned(), Some(0))
    );
    let (text, code) = output_of(&system.tool("salt", &["-a", "file", "web1", "cmd.run", "id"]));
    assert!(text.contains("Authorization error occurred.") && code == Some(1), "{text}");

    let listed = || {
        let listed = stdout(&system.tool("salt-run", &["auth.list_tokens", "--out=json"]));
        brine_value::json::from_json(&listed).unwrap().as_map().unwrap().clone()
    };
    let tokens = listed();
    let (digest, token) = tokens.iter().next().unwrap();
    assert_eq!((tokens.len(), token.get("name"), token.get("eauth")), (1, Some(&"fred".into()), Some(&"file".into())));
    let secret = std::fs::read_to_string(&file).unwrap();
    assert_ne!(digest.to_string(), secret);
    let revoked = system.tool("salt-run", &["auth.del_token", &digest.to_string(), "--out=json"]);
    assert_eq!(stdout(&revoked).trim(), "true");
    assert!(listed().is_empty());
    let (text, code) = output_of(&system.tool("salt", &[&["-a", "file"][..], &ping].concat()));
    assert!(text.contains("Authentication error occurred.") && code == Some(1), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn passwords_are_read_from_the_input_and_rights_explained() {
    let system = system().await;
    let mut child = within_limit(BRINE)
        .args(["salt", "-c", &system.etc(), "-a", "file", "--out=txt", "web1", "test.ping"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"fred\none\n").unwrap();
    assert_eq!(stdout(&child.wait_with_output().unwrap()).trim(), "web1: True");

    for (words, permitted) in [
        (&["fred", "*", "test.ping", "eauth=file"][..], true),
        (&["fred", "*", "cmd.run", "eauth=file"], false),
        (&["ann", "web*", "test.ping", "eauth=file"], true),
        (&["ann", "*", "test.ping", "eauth=file"], false),
        (&["fred", "*", "runner.jobs.active", "eauth=file"], true),
        (&["ann", "*", "wheel.key.list_all", "eauth=file"], true),
        (&["ann", "*", "wheel.key.accept", "eauth=file"], false),
        (&["fred", "*", "test.echo", "x", "eauth=file"], false),
        (&["fred", "*", "test.ping"], false),
        (&["fred", "*", "events", "salt/auth", "eauth=file"], false),
        (&["max", "*", "events", "salt/auth", "eauth=file"], true),
        (&["fred", "*", "options", "metadata=x", "eauth=file"], false),
        (&["fred", "*", "options", "delimiter=x", "timeout=60", "eauth=file"], true),
        (&["opt", "*", "options", "ret=redis", "ret_kwargs={db: 3}", "metadata=x", "eauth=file"], true),
        (&["opt", "*", "options", "ret=redis,mysql", "eauth=file"], false),
        (&["opt", "*", "options", "ret_kwargs={host: evil}", "eauth=file"], false),
        (&["opt", "*", "options", "auth_list=[x]", "eauth=file"], false),
        (&["ann", "*", "events", "salt/job/1/new", "eauth=file"], true),
        (&["ann", "*", "events", "salt/job/1/new", "salt/auth", "eauth=file"], false),
        (&["fred", "*", "events", "salt/auth"], false),
    ] {
        let output = system.tool("salt-run", &[&["auth.test", "--out=json"][..], words].concat());
        let explained = brine_value::json::from_json(&stdout(&output)).unwrap_or_default();
        assert_eq!(explained.get("permitted"), Some(&Value::Bool(permitted)), "{words:?} {}", output_of(&output).0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn batches_of_users_reach_every_part() {
    let system = system().await;
    let output =
        by_password(&system, "salt", "fred", "one", &["-b", "1", "--static", "--out=json", "*", "test.echo", "x"]);
    assert!(output_of(&output).0.contains(NOT_PERMITTED), "{}", output_of(&output).0);
    let words = ["-b", "1", "--static", "--out=json", "*", "test.arg", "x"];
    let (text, code) = output_of(&by_password(&system, "salt", "fred", "one", &words));
    assert!(text.contains("web1") && text.contains("db1") && code == Some(0), "{code:?} {text}");
    // Only its own user may continue a job.
    let jobs = stdout(&system.tool("salt-run", &["jobs.list_jobs", "search_function=test.arg", "--out=json"]));
    let jobs = brine_value::json::from_json(&jobs).unwrap();
    let jid = jobs.as_map().unwrap().keys().next().unwrap().to_string();
    for (user, password, permitted) in [("fred", "one", true), ("ann", "two", false)] {
        let mut request = PublishRequest::new("web1", "test.ping", "root");
        request.jid = Some(jid.parse().unwrap());
        let (username, password) = (user.to_owned(), password.to_owned());
        request.proof = Some(Proof::Password { eauth: "file".to_owned(), username, password });
        let client = RequestClient::new(system.request_endpoint(), Limits::default());
        let answer = client.request(Envelope::clear(request.to_map()), support::TIMEOUT).await.unwrap();
        let answer = brine_value::msgpack::unpack(&answer).unwrap().to_string();
        assert_eq!(answer.contains("AuthorizationError"), !permitted, "{user}: {answer}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn users_manage_keys_and_read_documentation_with_a_token() {
    let mut system = System::new(CONFIG);
    system.write("users", "kim:four\nmax:five\nann:two\n");
    system.start_master().await;
    system.configure_minion("web1", "");
    system.spawn_minion("web1");
    support::until("the key is pending", || system.path("pki/minions_pre/web1").exists()).await;
    let by = |user: &str, password: &str, words: &[&str]| {
        let who = ["--auth", "file", "--username", user, "--password", password];
        output_of(&system.tool("salt-key", &[&who, words].concat()))
    };
    let (text, code) = by("kim", "four", &["--out=json"]);
    let listed = brine_value::json::from_json(&text).unwrap_or_else(|_| panic!("{text}"));
    assert_eq!((listed.get("minions_pre"), code), (Some(&brine_value::list!["web1"]), Some(0)), "{text}");
    assert!(listed.get("local").is_none(), "{text}");
    assert!(by("kim", "four", &["-f", "web1"]).0.contains("web1"));
    for (user, password, words, reported, code) in [
        ("kim", "wr0ng", &["-L"][..], "Authentication failure of type \"eauth\" occurred for user kim.", 1),
        ("ann", "two", &["-y", "-a", "web1"], "Authentication failure of type \"eauth\" occurred for user ann.", 1),
        ("kim", "four", &["-y", "-d", "web1"], "Authentication failure of type \"eauth\" occurred for user kim.", 1),
        ("kim", "four", &["-y", "-a", "db*"], "The key glob 'db*' does not match any unaccepted keys.", 1),
        ("kim", "four", &["-y", "-a", "web*"], "Key for minion web1 accepted.", 0),
    ] {
        let (text, status) = by(user, password, words);
        assert!(text.contains(reported) && status == Some(code), "{user} {words:?}: {status:?} {text}");
    }
    assert!(system.path("pki/minions/web1").exists());

    for (user, password, reported) in
        [("max", "five", "jobs.active"), ("kim", "four", "'jobs.activ' is not available.")]
    {
        _ = std::fs::remove_file(system.path("token"));
        let made = by_password(&system, "salt-run", user, password, &["-T", "jobs.active"]);
        assert!(made.status.success(), "{}", output_of(&made).0);
        // With the token only, without a key of the master.
        let (text, code) = output_of(&system.tool("salt-run", &["-a", "file", "jobs.activ"]));
        assert!(text.contains(reported) && code == Some(1), "{user}: {code:?} {text}");
    }
    let listed =
        |words: &[&str]| stdout(&system.tool("salt-run", &[words, &["--out=json"]].concat())).trim().to_owned();
    assert!(listed(&["auth.list_tokens", "user=max"]).contains("max"));
    assert!(!listed(&["auth.list_tokens", "user=max"]).contains("kim"));
    assert_eq!(listed(&["auth.del_tokens", "max"]), "1");
    assert_eq!(listed(&["auth.list_tokens", "user=max"]), "{}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hanging_directory_delays_no_other_backend() {
    // This server accepts connections and never answers.
    let silent = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = silent.local_addr().unwrap().port();
    let mut system = System::new(&format!(
        "auth.ldap.port: {port}\nauth.ldap.server: 127.0.0.1\nauth.ldap.binddn: 'uid={{{{ username }}}},dc=example'\n\
         external_auth:\n  ldap: {{'*': ['@jobs']}}\n  file:\n    ^filename: ROOT/users\n    fred: ['@jobs']\n"
    ));
    system.write("users", "fred:one\n");
    system.start_master().await;
    for client in 0..10 {
        let client = std::sync::Arc::new((client, RequestClient::new(system.request_endpoint(), Limits::default())));
        for number in 0..100 {
            let client = std::sync::Arc::clone(&client);
            let username = format!("user{}-{number}", client.0);
            let proof = Proof::Password { eauth: "ldap".to_owned(), username, password: "hunter2".to_owned() };
            let request = Envelope::clear(TokenRequest { proof, expire: None }.to_map());
            tokio::spawn(async move { client.1.request(request, support::TIMEOUT).await });
        }
    }
    let outcomes = |outcome: &str| {
        let text = stdout(&system.tool("salt-run", &["metrics.show", "--out=json"]));
        let metrics = brine_value::json::from_json(&text).unwrap_or_default();
        let name = format!("brine_logins_total{{system=\"ldap\",outcome=\"{outcome}\"}}");
        metrics.get(&name).and_then(Value::as_i64).unwrap_or_default()
    };
    support::until("the queue is full", || outcomes("busy") > 500).await;
    let begun = std::time::Instant::now();
    let output = by_password(&system, "salt-run", "fred", "one", &["jobs.active", "--out=json"]);
    assert_eq!(stdout(&output).trim(), "{}", "{}", stderr(&output));
    assert!(begun.elapsed() < std::time::Duration::from_secs(20), "{:?}", begun.elapsed());
    support::until("the request to the directory has timed out", || outcomes("failed") > 0).await;
    assert!(!system.master_log().contains("hunter2"));
}

#[tokio::test(flavor = "multi_thread")]
async fn users_of_sudo_may_do_what_their_entries_permit_if_that_is_configured() {
    for (limited, permitted) in [("True", false), ("False", true)] {
        let system = System::start(&format!("sudo_acl: {limited}\npublisher_acl: {{fred: ['test.*']}}\n")).await;
        let ask = |user: &str, words: &str| {
            let mut command = within_limit(BRINE);
            command.args(["salt", "-c", &system.etc(), "--async", "*"]).args(words.split(' ')).env("SUDO_USER", user);
            let output = command.stdin(Stdio::null()).output().unwrap();
            !format!("{}{}", stdout(&output), stderr(&output)).contains(NOT_PERMITTED)
        };
        for (user, words, expected) in [
            ("fred", "test.ping", true),
            ("fred", "cmd.run", permitted),
            ("fred", "test.ping --return local", permitted),
            ("fred", "test.ping --metadata x", permitted),
            ("ann", "test.ping", permitted),
            ("", "cmd.run", true),
        ] {
            assert_eq!(ask(user, words), expected, "sudo_acl: {limited}, {user} {words}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn local_users_follow_events_by_a_group_of_their_own() {
    let (Ok(Some(user)), true) = (User::from_name("nobody"), nix::unistd::geteuid().is_root()) else { return };
    let own = Group::from_gid(user.gid).unwrap().unwrap().name;
    for (group, may_follow) in [(own.as_str(), true), ("daemon", false)] {
        let options = format!("publisher_acl: {{nobody: [test.ping]}}\nsock_group: {group}\n");
        // Without a minion, which would make the directory of the sockets, that of both here, private again.
        let system = System::start(&options).await;
        // The directory of the test is private.
        std::fs::set_permissions(system.path(""), std::fs::Permissions::from_mode(0o755)).unwrap();
        let mut command = within_limit(BRINE);
        command.args(["salt", "-c", &system.etc(), "m1", "test.ping"]).env("HOME", "/nonexistent");
        command.uid(user.uid.as_raw()).gid(user.gid.as_raw()).stdin(Stdio::null());
        let (said, code) = output_of(&command.output().unwrap());
        let (expected, status) =
            if may_follow { ("No minions matched", 2) } else { ("`usermod --append --groups daemon nobody`", 1) };
        assert!(said.contains(expected), "{group}: {said}");
        assert_eq!(code, Some(status), "{group}: {said}");
    }
}
