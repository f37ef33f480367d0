//! Users with rights of their own: passwords and tokens of `external_auth`, keys of `publisher_acl`.
#![allow(clippy::unwrap_used)]

mod support;

use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Output, Stdio};

use brine_value::Value;
use support::{BRINE, System, stderr, stdout, text, within_limit};

const CONFIG: &str = "token_file: ROOT/token
external_auth:
  file:
    ^filename: ROOT/users
    fred: ['test.*', '@jobs']
    ann: [{'web*': [test.ping]}, {'@wheel': [key.list_all]}, {events: ['salt/job/*']}]
    '*': [sys.doc]
publisher_acl_blacklist:
  modules: ['test.echo']
";

const NOT_PERMITTED: &str = "Authorization error occurred.";
const NOT_KNOWN: &str = "Authentication error occurred.";

async fn system() -> System {
    let mut system = System::new(&format!("auto_accept: True\n{CONFIG}"));
    system.write("users", "fred:one\nann:two\neve:thr33\n");
    system.start_master().await;
    for id in ["web1", "db1"] {
        system.start_minion(id).await;
    }
    system
}

fn said(output: &Output) -> (String, Option<i32>) {
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
    for (user, password, words, told, code) in [
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
        let (text, status) = said(&output);
        assert!(text.contains(told) && status == Some(code), "{user} {words:?}: {status:?} {text}");
    }
    let (_, event) = denied.next().await;
    assert_eq!((text(&event, "user"), text(&event, "request")), ("fred".into(), "cmd.run".into()));
    assert!(
        !system.master_log().contains("thr33") && !system.master_log().contains("gu3ssed"),
        "no password is logged"
    );

    let failure = |user| format!("Authentication failure of type \"eauth\" occurred for user {user}.");
    for (user, password, words, told) in [
        ("fred", "one", &["jobs.active", "--out=json"][..], "{}".to_owned()),
        ("fred", "one", &["manage.up"], failure("fred")),
        ("ann", "two", &["jobs.active"], failure("ann")),
        ("ann", "gu3ssed", &["jobs.active"], failure("ann")),
    ] {
        let (text, _) = said(&by_password(&system, "salt-run", user, password, words));
        assert!(text.contains(&told), "{user} {words:?}: {text}");
    }
    // The jobs are those of the users.
    let jobs = stdout(&system.tool("salt-run", &["jobs.list_jobs", "--out=json"]));
    let jobs = brine_value::json::from_json(&jobs).unwrap();
    let users: Vec<String> = jobs.as_map().unwrap().values().map(|job| job.get("User").unwrap().to_string()).collect();
    assert!(users.contains(&"fred".to_owned()) && users.contains(&"ann".to_owned()), "{users:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_stand_for_passwords_until_they_are_revoked() {
    let system = system().await;
    let ping = ["--out=txt", "--static", "web1", "test.ping"];
    let output = by_password(&system, "salt", "fred", "one", &[&["-T"][..], &ping].concat());
    assert_eq!(said(&output), ("web1: True".to_owned(), Some(0)));
    let file = system.path("token");
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    // Nobody is asked for a name or password any more.
    assert_eq!(said(&system.tool("salt", &[&["-a", "file"][..], &ping].concat())), ("web1: True".to_owned(), Some(0)));
    let (text, code) = said(&system.tool("salt", &["-a", "file", "web1", "cmd.run", "id"]));
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
    let (text, code) = said(&system.tool("salt", &[&["-a", "file"][..], &ping].concat()));
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
        (&["fred", "*", "events", "salt/auth", "eauth=file"], true),
        (&["ann", "*", "events", "salt/job/1/new", "eauth=file"], true),
        (&["ann", "*", "events", "salt/job/1/new", "salt/auth", "eauth=file"], false),
        (&["fred", "*", "events", "salt/auth"], false),
    ] {
        let output = system.tool("salt-run", &[&["auth.test", "--out=json"][..], words].concat());
        let explained = brine_value::json::from_json(&stdout(&output)).unwrap_or_default();
        assert_eq!(explained.get("permitted"), Some(&Value::Bool(permitted)), "{words:?} {}", said(&output).0);
    }
}
