//! Calls of hosts by ssh through the master: the runner function `ssh.cmd` and the client `ssh` of the REST API, with a real
//! `sshd`.

use crate::support;

use crate::support::api::Api;
use crate::support::sshd::Sshd;
use brine_value::{Value, list, map};

const CONFIG: &str = "api_pidfile: api.pid
api_logfile: ''
netapi_enable_clients: [local, runner, ssh]
ssh_control_persist: 0
ignore_host_keys: True
publisher_acl_blacklist: {modules: [test.version]}
external_auth:
  file:
    ^filename: ROOT/users
    ann: ['test.*']
    bob: [{'web*': ['.*']}]
    eve: ['@runner']
    gus: ['@runner', '.*']
    fay: [{'*': [{test.echo: {args: [good]}}]}]
rest_cherrypy: {host: 127.0.0.1, port: PORT, disable_ssl: True}
";

async fn start(config: &str) -> (Api, Sshd) {
    let api = Api::start(config, &[("users", "ann:one\nbob:one\neve:one\nfay:one\ngus:one\n")], &[]).await;
    let sshd = Sshd::start(&api.system, "sshd", "", "").await;
    let entry = |id: &str| sshd.entry(id, ", ssh_options: [UserKnownHostsFile=/dev/null]");
    api.system.write("etc/roster", &[entry("web1"), entry("db1")].concat());
    (api, sshd)
}

/// Returns the result of a runner function.
fn run_json(api: &Api, words: &[&str]) -> Value {
    let output = api.system.tool("salt-run", &[&["--out=json"], words].concat());
    let text = support::stdout(&output);
    brine_value::json::from_json(&text).unwrap_or_else(|_| panic!("{text}{}", support::stderr(&output)))
}

fn chunk(fun: &str, more: brine_value::Map) -> Value {
    let mut chunk = map! {"client" => "ssh", "tgt" => "web*", "fun" => fun};
    chunk.extend(more);
    chunk.into()
}

#[tokio::test(flavor = "multi_thread")]
async fn hosts_answer_through_the_api_and_the_runner() {
    let (api, _sshd) = start(CONFIG).await;
    let token = api.login("ann", "one");
    let called =
        api.post("/", &token, &list![chunk("test.arg", map! {"arg" => list!["x", "a=1"], "kwarg" => map! {"b" => 2}})]);
    assert_eq!(called.status, 200, "{called:?}");
    let returned = called.first();
    let web1 = returned.get("web1").unwrap_or_else(|| panic!("{returned}"));
    let field = |name: &str| web1.get(name).cloned().unwrap_or_default();
    let (positional, keyword) = (field("return").get("args").cloned(), field("return").get("kwargs").cloned().unwrap());
    assert_eq!(positional, Some(list!["x"]), "{web1}");
    assert_eq!((keyword.get("a"), keyword.get("b")), (Some(&1.into()), Some(&2.into())), "{web1}");
    assert_eq!((field("fun"), field("id"), field("retcode")), ("test.arg".into(), "web1".into(), 0.into()));
    assert!(field("_stamp").as_str().is_some() && returned.get("db1").is_none(), "{returned}");
    // The return is in the job cache.
    let jid = field("jid").to_string();
    let looked_up = || run_json(&api, &["jobs.lookup_jid", &jid]);
    support::until("the return is stored", || looked_up().get("web1").is_some()).await;
    // The runner, as an orchestration or the reactor would call it.
    let ran = run_json(&api, &["ssh.cmd", "*", "test.echo", "arg=[hello]"]);
    for id in ["web1", "db1"] {
        assert_eq!(ran.get(id).and_then(|one| one.get("return")), Some(&"hello".into()), "{ran}");
    }
    assert_eq!(run_json(&api, &["ssh.cmd", "none", "test.ping"]), map! {}.into());
}

#[tokio::test(flavor = "multi_thread")]
async fn users_need_the_right_to_call_a_function_on_all_minions() {
    let (api, _sshd) = start(CONFIG).await;
    let echo = |text: &str| chunk("test.echo", map! {"arg" => list![text]});
    let runner = |more: brine_value::Map| {
        let mut chunk = map! {"client" => "runner", "fun" => "ssh.cmd"};
        chunk.extend(more);
        Value::from(chunk)
    };
    let shell = chunk("id -u", map! {"raw_shell" => true});
    let named = runner(map! {"kwarg" => map! {"tgt" => "web1", "fun" => "test.ping"}});
    for (user, chunk, status) in [
        ("ann", chunk("test.ping", map! {}), 200),
        ("ann", chunk("cmd.run", map! {"arg" => list!["id"]}), 401),
        ("ann", chunk("test.version", map! {}), 401),
        // An entry for a target of minions does not permit calls of hosts in the roster, whatever their names are.
        ("bob", chunk("test.ping", map! {}), 401),
        // The runner function alone permits no function of hosts.
        ("eve", chunk("cmd.run", map! {"arg" => list!["id"]}), 401),
        ("gus", chunk("cmd.run", map! {"arg" => list!["id"]}), 200),
        ("eve", chunk("test.version", map! {}), 401),
        ("gus", shell.clone(), 401),
        ("gus", chunk("test.version", map! {}), 401),
        ("ann", shell, 401),
        ("fay", echo("good"), 200),
        ("fay", echo("bad"), 401),
        ("ann", named.clone(), 200),
        ("bob", named, 401),
        // The permitted function and arguments are exactly the called ones.
        ("ann", runner(map! {"arg" => list!["web1", "cmd.run"], "kwarg" => map! {"fun" => "test.ping"}}), 401),
        ("fay", runner(map! {"kwarg" => map! {"tgt" => "web1", "fun" => "test.echo", "arg" => "bad"}}), 401),
        ("ann", chunk("test.ping", map! {"ssh_options" => list!["ProxyCommand=true"]}), 400),
        ("ann", chunk("test.ping", map! {"tgt_type" => "nonsense"}), 400),
    ] {
        let token = api.login(user, "one");
        let response = api.post("/", &token, &list![chunk.clone()]);
        assert_eq!(response.status, status, "{user} {chunk} {response:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_of_the_shell_need_the_option_and_the_runner_function() {
    let (api, _sshd) = start(&format!("netapi_allow_raw_shell: True\n{CONFIG}")).await;
    let shell = chunk("echo $((1+1))", map! {"raw_shell" => true});
    for (user, status) in [("gus", 200), ("eve", 401), ("ann", 401)] {
        let token = api.login(user, "one");
        let response = api.post("/", &token, &list![shell.clone()]);
        assert_eq!(response.status, status, "{user} {response:?}");
        if status == 200 {
            let returned = response.first();
            let stdout = returned.get("web1").and_then(|one| one.get("return")).and_then(|one| one.get("stdout"));
            assert_eq!(stdout, Some(&"2\n".into()), "{returned}");
        }
    }
}
