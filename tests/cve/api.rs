//! CVEs of the REST API. Most concern its ssh client: a request must not execute a command with it on this host.

use brine_value::{Map, Value, list, map};

use crate::support::api::Api;

const CONFIG: &str = "api_pidfile: api.pid
api_logfile: ''
netapi_enable_clients: [local, runner, wheel, ssh]
netapi_allow_raw_shell: True
external_auth:
  file:
    ^filename: ROOT/users
    fred: ['.*', '@runner', '@wheel']
rest_cherrypy: {host: 127.0.0.1, port: PORT, disable_ssl: True}
";

/// Starts an API with logins in a file. Returns the API, and the path of a file that only an executed command would
/// create.
async fn api() -> (Api, String) {
    let roster = format!("host1: {{host: 127.0.0.1, port: {}}}\n", crate::support::free_port());
    let api = Api::start(CONFIG, &[("users", "fred:one\n"), ("etc/roster", &roster)], &[]).await;
    let canary = api.system.path("canary").display().to_string();
    (api, canary)
}

fn ssh(more: Map) -> Value {
    let mut chunk = map! {"client" => "ssh", "tgt" => "host1", "fun" => "test.ping"};
    chunk.extend(more);
    chunk.into()
}

/// Sends a chunk with a session, and without one to `/run`; both are refused, and no command is executed.
fn assert_refused(api: &Api, canary: &str, chunk: &Value) {
    assert_harmless(api, canary, chunk, 400);
}

/// Sends a chunk with a session, which must be answered with this status, and without one to `/run`, which must be
/// refused. No command may be executed.
fn assert_harmless(api: &Api, canary: &str, chunk: &Value, status: u16) {
    let token = api.login("fred", "one");
    let with = api.post("/", &token, &list![chunk.clone()]);
    assert_eq!(with.status, status, "{chunk}: {with:?}");
    let without = api.post("/run", "", &list![chunk.clone()]);
    assert!([400, 401].contains(&without.status), "{chunk}: {without:?}");
    assert!(!std::path::Path::new(canary).exists(), "{chunk} ran a command");
}

/// `raw_shell` without a login.
#[tokio::test(flavor = "multi_thread")]
async fn cve_2019_17361_the_api_runs_no_raw_shell() {
    let (api, canary) = api().await;
    let shell = map! {"raw_shell" => true, "fun" => format!("touch {canary}"), "roster" => "flat"};
    assert_refused(&api, &canary, &ssh(shell));
}

/// A shell in the options of the ssh client.
#[tokio::test(flavor = "multi_thread")]
async fn cve_2020_16846_the_ssh_client_has_no_shell() {
    let (api, canary) = api().await;
    for (option, status) in [
        ("tgt", 200),
        ("fun", 200),
        ("arg", 200),
        ("kwarg", 400),
        ("ssh_user", 400),
        ("ssh_port", 400),
        ("ssh_priv", 400),
        ("ssh_options", 400),
        ("roster_file", 400),
    ] {
        let injected = Value::from(format!("|touch {canary}; $(touch {canary}) `touch {canary}`"));
        assert_harmless(&api, &canary, &ssh([(option.into(), injected)].into_iter().collect()), status);
    }
}

/// Any value of `eauth` and `token` counted as a login.
#[tokio::test(flavor = "multi_thread")]
async fn cve_2020_25592_every_client_needs_a_login() {
    let (api, canary) = api().await;
    let local = map! {"client" => "local", "tgt" => "*", "fun" => "cmd.run", "arg" => list![format!("touch {canary}")]};
    let runner = map! {"client" => "runner", "fun" => "jobs.list_jobs"};
    let wheel = map! {"client" => "wheel", "fun" => "key.list_all"};
    for client in [local, runner, wheel, map! {"client" => "ssh", "tgt" => "*", "fun" => "test.ping"}] {
        for login in [
            map! {},
            map! {"token" => ""},
            map! {"token" => "0".repeat(64)},
            map! {"token" => 1},
            map! {"eauth" => "nosuch", "username" => "fred", "password" => "one"},
            map! {"eauth" => "file", "username" => "fred", "password" => ""},
            map! {"eauth" => "file", "username" => "fred"},
        ] {
            let mut chunk = client.clone();
            chunk.extend(login);
            let answer = api.post("/run", "", &list![Value::from(chunk.clone())]);
            let is_refused = answer.status == 401 || (answer.status == 400 && chunk["client"] == "ssh".into());
            assert!(is_refused, "{}: {answer:?}", Value::from(chunk));
        }
    }
}

/// `ProxyCommand` in the options of the ssh client.
#[tokio::test(flavor = "multi_thread")]
async fn cve_2021_3197_the_ssh_client_takes_no_proxy_command() {
    let (api, canary) = api().await;
    let command = format!("ProxyCommand=touch {canary}");
    for (more, status) in [
        (map! {"ssh_options" => list![command.clone()]}, 400),
        (map! {"tgt" => format!("-o{command}")}, 200),
        (map! {"arg" => list![format!("-o {command}")]}, 200),
    ] {
        assert_harmless(&api, &canary, &ssh(more), status);
    }
}
