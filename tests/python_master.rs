//! Custom Python on the master: runner and wheel modules, external pillar, tops, and `#!py` files of the reactor.

use crate::support;

use crate::support::{System, stderr, stdout};
use brine_value::json::from_json;
use brine_value::{Value, list, map};

const CONFIG: &str = "\
runner_dirs: [ROOT/own]
shop: {name: Books}
ext_pillar:
  - sites: {count: 2}
  - sites: [3, last]
  - broken_site: x
master_tops: {classes: {default: web}, ext_nodes: ROOT/nodes}
reactor:
  - 'shop/*': [ROOT/reactor/shop.sls]
";

const RUNNER: &str = r#"
import salt.client
import salt.utils.event
from salt.exceptions import SaltInvocationError

def open_(name, size=1):
    """
    Open a shop.
    """
    __jid_event__.fire_event({"half": name}, "progress")
    return "%s of %s, %s, %s" % (name, __opts__["shop"]["name"], size, __user__ != "")

__func_alias__ = {"open_": "open"}

def minions():
    return sorted(salt.client.LocalClient(__opts__["conf_file"]).cmd("*", "test.ping"))

def through():
    return [__salt__["test.arg"](1)["args"], __salt__["salt.cmd"]("test.echo", "here")]

def tell(tag):
    with salt.utils.event.get_event("master") as bus:
        return bus.fire_event({"a": 1}, tag)

def misuse():
    raise SaltInvocationError("no name")

def fail():
    return {}["key"]

def failure():
    __context__["retcode"] = 1
    return True

def note(path, text):
    with open(path, "a") as file:
        file.write(text + "\n")
    return True
"#;

const FILES: &[(&str, &str)] = &[
    ("own/shop.py", RUNNER),
    ("own/broken.py", "import no_such_package\n"),
    ("srv/salt/_runners/synced.py", "def run():\n    return 'synced'\n"),
    (
        "srv/salt/_wheel/tidy.py",
        "def up(name):\n    return [name, __opts__['__role'], __salt__['test.echo']('x')]\n\
         def failure():\n    __context__['retcode'] = 1\n    return True\n",
    ),
    (
        "srv/salt/_pillar/sites.py",
        "def ext_pillar(minion_id, pillar, count, suffix=''):\n    \
         key = 'sites' + str(suffix)\n    \
         return {key: [minion_id, count, __opts__['id'], __opts__['shop']['name'], __salt__['test.echo'](1),\n    \
                 pillar.get('plain'), __grains__['id']]}\n",
    ),
    (
        "srv/salt/_pillar/broken_site.py",
        "def ext_pillar(minion_id, pillar, arg):\n    if minion_id == 'bad':\n        raise ValueError('no site')\n    return {}\n",
    ),
    (
        "srv/salt/_tops/classes.py",
        "def top(**kwargs):\n    \
         assert kwargs['grains']['id'] == kwargs['opts']['id']\n    \
         return {'base': [__opts__['master_tops']['classes']['default']]}\n",
    ),
    ("srv/salt/top.sls", "base: {'*': [common]}\n"),
    ("srv/salt/common.sls", "common: test.nop\n"),
    ("srv/salt/web.sls", "web: test.nop\n"),
    ("srv/salt/db.sls", "db: test.nop\n"),
    ("srv/pillar/top.sls", "base: {'*': [data]}\n"),
    ("srv/pillar/data.sls", "plain: 1\n"),
    ("nodes", "#!/bin/sh\necho \"classes: [web, db]\"\n"),
    (
        "reactor/shop.sls",
        "#!py\ndef run():\n    \
         return {'note': {'runner.shop.note': [{'path': 'ROOT/noted'}, {'text': tag + ' ' + data['goods']}]}}\n",
    ),
    (
        "srv/salt/orch.sls",
        "#!py\ndef run():\n    \
         return {'opened': {'salt.runner': [{'name': 'shop.open'}, {'arg': ['orchestrated']}]}}\n",
    ),
];

async fn master() -> System {
    let mut system = System::new(&format!("auto_accept: True\n{CONFIG}"));
    for (path, text) in FILES {
        system.write(path, text);
    }
    let nodes = system.path("nodes");
    std::fs::set_permissions(&nodes, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    system.start_master().await;
    system
}

fn run(system: &System, words: &[&str]) -> Value {
    let output = system.tool("salt-run", &[words, &["--out=json"]].concat());
    from_json(&stdout(&output)).unwrap_or_else(|_| panic!("{words:?}: {}{}", stdout(&output), stderr(&output)))
}

#[tokio::test(flavor = "multi_thread")]
async fn custom_runner_functions_are_called_like_built_in_ones() {
    let mut system = master().await;
    system.start_minion("m1").await;
    let mut events = system.events("salt/run/").await;
    for (words, expected) in [
        (&["shop.minions"][..], list!["m1"]),
        (&["shop.through"], list![list![1], "here"]),
        (&["shop.tell", "shop/opened"], true.into()),
    ] {
        assert_eq!(run(&system, words), expected, "{words:?}");
    }
    let output = system.tool("salt-run", &["shop.open", "Store", "size=4", "--out=json", "--out-indent=-1"]);
    let text = stdout(&output);
    let [progress, result] = text.lines().collect::<Vec<_>>()[..] else { panic!("{text}{}", stderr(&output)) };
    let progress = from_json(progress).unwrap();
    assert_eq!(progress.get("suffix"), Some(&"progress".into()));
    let event = progress.get("event").and_then(Value::as_map).unwrap();
    assert_eq!(event.keys().map(ToString::to_string).collect::<Vec<_>>(), ["half", "_stamp"]);
    assert_eq!(result, r#""Store of Books, 4, True""#);
    let (_, progress) = events.until("salt/run/*/progress").await;
    assert_eq!(progress.get("half"), Some(&"Store".into()));
    for (words, part) in [
        (&["shop.open"][..], "missing 1 required positional argument: 'name'"),
        (&["shop.misuse"], "no name"),
        (&["shop.fail"], "KeyError: 'key'"),
        (&["broken.run"], "'broken.run' is not available"),
    ] {
        let output = system.tool("salt-run", words);
        let text = format!("{}{}", stdout(&output), stderr(&output));
        assert!(text.contains(part), "{words:?}: {text}");
    }
    assert!(system.master_log().contains("No module named 'no_such_package'"));
    assert!(stdout(&system.tool("salt-run", &["-d", "shop.open"])).contains("Open a shop."));

    // Custom modules take precedence, and a changed file takes effect at the next call.
    system.write("own/test.py", "def arg(*args):\n    return 'own'\n");
    support::until("the new file is seen", || run(&system, &["test.arg", "1"]) == "own".into()).await;
    std::fs::remove_file(system.path("own/test.py")).unwrap();
    support::until("the file is gone", || run(&system, &["test.arg", "1"]) != "own".into()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn modules_are_copied_from_the_file_server_to_the_master() {
    let mut system = master().await;
    assert_eq!(run(&system, &["saltutil.sync_runners"]), list!["runners.synced"]);
    assert_eq!(run(&system, &["synced.run"]), "synced".into());
    let all = run(&system, &["saltutil.sync_all"]);
    for (kind, modules) in [
        ("runners", list![]),
        ("wheel", list!["wheel.tidy"]),
        ("pillar", list!["pillar.broken_site", "pillar.sites"]),
        ("tops", list!["tops.classes"]),
        ("roster", list![]),
    ] {
        assert_eq!(all.get(kind), Some(&modules), "{all}");
    }
    let wheel = run(&system, &["salt.cmd", "test.ping"]);
    assert_eq!(wheel, true.into());

    system.start_minion("m1").await;
    let pillar = run(&system, &["pillar.show_pillar", "m1"]);
    let sites = |count: i64| list!["m1", count, "m1", "Books", 1, 1, "m1"];
    assert_eq!(pillar.get("sites"), Some(&sites(2)), "{pillar}");
    assert_eq!(pillar.get("siteslast"), Some(&sites(3)), "{pillar}");
    let errors = run(&system, &["pillar.show_pillar", "bad"]).get("_errors").unwrap().to_string();
    assert!(errors.contains("Failed to load ext_pillar broken_site: ValueError: no site"), "{errors}");

    let top = system.salt_json(&["m1", "state.show_top"]);
    assert_eq!(top.get("m1"), Some(&map! {"base" => list!["common", "web", "db"]}.into()), "{top}");
}

#[tokio::test(flavor = "multi_thread")]
async fn files_of_the_reactor_and_orchestrations_may_be_python() {
    let system = master().await;
    assert_eq!(run(&system, &["event.send", "shop/delivery", "{goods: books}"]), true.into());
    let noted = system.path("noted");
    support::until("the reaction has run", || noted.exists()).await;
    support::until("the reaction has written", || {
        std::fs::read_to_string(&noted).is_ok_and(|text| text == "shop/delivery books\n")
    })
    .await;
    let output = system.tool("salt-run", &["state.orchestrate", "orch", "--out=json"]);
    assert!(output.status.success(), "{}{}", stdout(&output), stderr(&output));
    assert!(stdout(&output).contains("orchestrated of Books, 1"), "{}", stdout(&output));
}

#[tokio::test(flavor = "multi_thread")]
async fn custom_wheel_functions_are_called_by_reactions() {
    let system = master().await;
    run(&system, &["saltutil.sync_wheel"]);
    let mut events = system.events("salt/wheel/").await;
    system.write("srv/salt/call.sls", "up: {salt.wheel: [{name: tidy.up}, {arg: [room]}]}\n");
    let output = system.tool("salt-run", &["state.orchestrate", "call", "--out=json"]);
    assert!(output.status.success(), "{}{}", stdout(&output), stderr(&output));
    let (_, body) = events.until("salt/wheel/*/ret").await;
    assert_eq!(body.get("return"), Some(&list!["room", "master", "x"]), "{body:?}");
    // A retcode in the context is a failure.
    let failing = "r: {salt.runner: [{name: shop.failure}]}\nw: {salt.wheel: [{name: tidy.failure}]}\n\
                   after: {test.nop: [{require: [{salt: r}]}]}\n";
    system.write("srv/salt/failing.sls", failing);
    let output = system.tool("salt-run", &["state.orchestrate", "failing", "--out=json"]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    for comment in ["Runner function 'shop.failure' failed.", "Wheel function 'tidy.failure' failed.", "requisite"] {
        assert!(stdout(&output).contains(comment), "{comment}: {}", stdout(&output));
    }
}

const RETURNER: &str = r#"
import json

def _keep(kind, data):
    with open("ROOT/kept", "a") as out:
        out.write("%s %s\n" % (kind, json.dumps(data, default=str)))

def event_return(events):
    for event in events:
        if event["tag"].startswith("shop/"):
            if event["data"].get("fail"):
                raise Exception("no disk")
            _keep("event", [event["tag"], event["data"]["n"], __opts__["shop"]["name"]])

def save_load(jid, load, minions=None):
    _keep("load", [load["fun"], minions])

def returner(ret):
    _keep("return", [ret["id"], ret["fun"], ret["return"]])
"#;

#[tokio::test(flavor = "multi_thread")]
async fn custom_returners_receive_events_and_jobs_of_the_master() {
    let mut system = System::new(
        "auto_accept: True\nshop: {name: Books}\nevent_return: [ledger]\next_job_cache: ledger\nmodule_dirs: [ROOT/mods]\n",
    );
    let root = system.path("").display().to_string();
    system.write("mods/returners/ledger.py", &RETURNER.replace("ROOT", root.trim_end_matches('/')));
    system.start_master().await;
    let content = |path: std::path::PathBuf| std::fs::read_to_string(path).unwrap_or_default();
    let path = system.path("kept");
    for n in 0..3 {
        let sent = system.tool("salt-run", &["event.send", "shop/sold", &format!("{{n: {n}}}")]);
        assert!(sent.status.success(), "{}", stderr(&sent));
    }
    support::until("the events are kept in order", || {
        let numbers: Vec<String> =
            content(path.clone()).lines().filter(|line| line.starts_with("event")).map(str::to_owned).collect();
        numbers == [0, 1, 2].map(|n| format!("event [\"shop/sold\", {n}, \"Books\"]"))
    })
    .await;
    // As in Salt, the master stores the job and the minion its return.
    system.configure_minion("m1", "module_dirs: [ROOT/mods]\n");
    let mut events = system.events("salt/minion/").await;
    system.spawn_minion("m1");
    events.until("salt/minion/m1/start").await;
    assert_eq!(system.salt_json(&["m1", "test.echo", "kept"]).get("m1"), Some(&"kept".into()));
    support::until("the job is stored", || {
        let text = content(path.clone());
        text.contains("load [\"test.echo\", [\"m1\"]]") && text.contains("return [\"m1\", \"test.echo\", \"kept\"]")
    })
    .await;
    // A failure is logged with its reason.
    system.tool("salt-run", &["event.send", "shop/sold", "{n: 9, fail: True}"]);
    support::until("the failure is logged", || system.master_log().contains("no disk")).await;
}
