//! People's own modules of the types that few use: authentication, rosters, databases of values, outputters and executors.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use brine_value::json::from_json;
use brine_value::{Value, list, map};
use support::{System, stderr, stdout};

const AUTH: &str = r#"
def auth(username, password):
    if username == "crash":
        raise ValueError("no directory")
    return (username, password) in (("fred", "one"), ("ann", "two"), ("max", "three"))

def groups(username):
    return ["ops"] if username == "ann" else []

def acl(username, **kwargs):
    return ["test.echo"] if username == "max" else None
"#;

const SDB: &str = r#"
import os

def _path(key, profile):
    return os.path.join(profile["directory"], key)

def get(key, profile=None):
    if not os.path.exists(_path(key, profile)):
        return None
    with open(_path(key, profile)) as file:
        return file.read()

def set_(key, value, profile=None):
    with open(_path(key, profile), "w") as file:
        file.write(str(value))
    return value

__func_alias__ = {"set_": "set"}
"#;

const OUTPUT: &str = r#"
def output(data, **kwargs):
    if data == {"m1": "raise"}:
        raise ValueError("cannot be shown")
    return "<%s %s %s>\n" % (sorted(data.items()), kwargs.get("_retcode"), __opts__["color"])
"#;

const EXECUTORS: &[(&str, &str)] = &[
    (
        "srv/salt/_executors/noted.py",
        "def execute(opts, data, func, args, kwargs):\n    \
         answer = func(*args, **kwargs)\n    \
         return {'id': opts['id'], 'fun': data['fun'], 'options': data.get('executor_opts'), 'answer': answer}\n",
    ),
    ("srv/salt/_executors/passing.py", "def execute(opts, data, func, args, kwargs):\n    return None\n"),
    (
        "srv/salt/_executors/any_function.py",
        "def allow_missing_func(function):\n    return function.startswith('far.')\n\n\
         def execute(opts, data, func, args, kwargs):\n    \
         return 'far: %s %s' % (func, args) if isinstance(func, str) else func(*args, **kwargs)\n",
    ),
];

fn call(system: &System, words: &[&str]) -> Value {
    let words = [&["--out=json", "--static", "m1"], words].concat();
    let output = system.tool("salt", &words);
    let text = stdout(&output);
    let all = from_json(&text).unwrap_or_else(|_| panic!("{words:?}: {text}{}", stderr(&output)));
    all.get("m1").cloned().unwrap_or_else(|| panic!("{words:?}: {all}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn own_modules_authenticate_users_of_external_auth() {
    let mut system = System::new(
        "auto_accept: True\nmodule_dirs: [ROOT/own]\nexternal_auth:\n  staff:\n    fred: ['test.ping']\n    crash: ['.*']\n    max: ['.*']\n    ops%: ['test.arg']\n",
    );
    system.write("own/auth/staff.py", AUTH);
    system.start_master().await;
    system.start_minion("m1").await;
    let by = |user: &str, password: &str, fun: &str| {
        let words = ["-a", "staff", "--username", user, "--password", password, "--out=txt", "m1", fun, "x"];
        let output = system.tool("salt", if fun == "test.ping" { &words[..9] } else { &words });
        format!("{}{}", stdout(&output), stderr(&output)).trim().to_owned()
    };
    let (unknown, forbidden) = ("Authentication error occurred.", "Authorization error occurred.");
    for (user, password, fun, expected) in [
        ("fred", "one", "test.ping", "m1: True"),
        ("fred", "two", "test.ping", unknown),
        ("fred", "", "test.ping", unknown),
        ("crash", "one", "test.ping", unknown),
        ("fred", "one", "test.echo", forbidden),
        ("ann", "two", "test.arg", "'args'"),
        ("ann", "two", "test.ping", forbidden),
        ("max", "three", "test.echo", "m1: x"),
        ("max", "three", "test.ping", forbidden),
    ] {
        let shown = by(user, password, fun);
        assert!(shown.contains(expected), "{user} {fun}: {shown}{}", system.master_log());
    }
    assert!(system.master_log().contains("external_auth 'staff' failed: ValueError: no directory"));
    assert!(!system.master_log().contains("three"), "no password is logged");
}

#[tokio::test(flavor = "multi_thread")]
async fn values_of_sdb_are_those_of_own_modules_on_minions_and_the_master() {
    let profile = "own: {driver: shelf, directory: ROOT/values}\nbad: {driver: broken}\n";
    let mut system = System::new(&format!("auto_accept: True\n{profile}"));
    let profile = profile.replace("ROOT", &system.path("").display().to_string());
    system.write("values/color", "blue");
    system.write("srv/salt/_sdb/shelf.py", SDB);
    system.write("srv/salt/_sdb/broken.py", "import no_such_package\n");
    system.start_master().await;
    system.configure_minion("m1", &profile);
    let mut events = system.events("salt/minion/").await;
    system.spawn_minion("m1");
    events.until("salt/minion/m1/start").await;
    call(&system, &["saltutil.sync_sdb"]);
    assert_eq!(call(&system, &["sdb.get", "sdb://own/color"]), "blue".into());
    assert_eq!(call(&system, &["sdb.get", "sdb://own/none"]), Value::Nil);
    assert_eq!(call(&system, &["sdb.set", "sdb://own/size", "7"]), 7.into());
    assert_eq!(call(&system, &["sdb.get", "sdb://own/size"]), "7".into());
    assert_eq!(call(&system, &["config.get", "own:directory"]), system.path("values").display().to_string().into());
    let answer = call(&system, &["sdb.get", "sdb://bad/x"]).to_string();
    assert!(answer.contains("No module named 'no_such_package'"), "{answer}");
    let answer = call(&system, &["sdb.delete", "sdb://own/size"]).to_string();
    assert!(answer.contains("the SDB driver 'shelf' cannot do this"), "{answer}");
    let run = |words: &[&str]| stdout(&system.tool("salt-run", &[&["--out=json"], words].concat()));
    run(&["saltutil.sync_sdb"]);
    assert_eq!(run(&["sdb.get", "sdb://own/color"]).trim(), "\"blue\"", "{}", system.master_log());
}

#[tokio::test(flavor = "multi_thread")]
async fn results_are_shown_by_own_outputters() {
    let mut system = System::new("auto_accept: True\n");
    system.write("srv/salt/_output/angles.py", OUTPUT);
    system.start_master().await;
    system.start_minion("m1").await;
    call(&system, &["saltutil.sync_output"]);
    system.tool("salt-run", &["saltutil.sync_output"]);
    let shown = |tool: &str, words: &[&str]| {
        let output = system.tool(tool, &[&["--out=angles"], words].concat());
        format!("{}{}", stdout(&output), stderr(&output)).trim().to_owned()
    };
    assert_eq!(shown("salt", &["m1", "test.echo", "x"]), "<[('m1', 'x')] 0 False>");
    assert_eq!(shown("salt-run", &["test.arg", "x"]), "<[('args', ['x']), ('kwargs', {})] 0 False>");
    let failed = shown("salt", &["m1", "test.echo", "raise"]);
    assert!(failed.contains("an own outputter failed") && failed.contains("raise"), "{failed}");
    let unknown = stderr(&system.tool("salt", &["--out=none", "m1", "test.ping"]));
    assert!(unknown.contains("Invalid outputter none specified"), "{unknown}");
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_go_through_the_executors_that_they_name() {
    let mut system = System::new("auto_accept: True\n");
    for (path, text) in EXECUTORS {
        system.write(path, text);
    }
    system.start_master().await;
    system.start_minion("m1").await;
    call(&system, &["saltutil.sync_executors"]);
    let noted = |answer: Value, options: Value| {
        Value::from(map! {"id" => "m1", "fun" => "test.echo", "options" => options, "answer" => answer})
    };
    let by = |executors: &str, words: &[&str]| {
        call(&system, &[&[&format!("--module-executors={executors}")[..]], words].concat())
    };
    assert_eq!(by("[noted]", &["test.echo", "x"]), noted("x".into(), Value::Nil));
    assert_eq!(
        by("noted", &["--executor-opts={depth: 2}", "test.echo", "x"]),
        noted("x".into(), map! {"depth" => 2}.into())
    );
    assert_eq!(by("[passing, direct_call]", &["test.echo", "x"]), "x".into());
    assert_eq!(by("[passing, passing]", &["test.echo", "x"]), Value::Nil);
    assert_eq!(by("[any_function]", &["far.away", "1"]), "far: far.away [1]".into());
    for (executors, fun, part) in [
        ("[none]", "test.ping", "Executor 'none' is not available"),
        ("{a: 1}", "test.ping", "Wrong executors specification"),
        ("[any_function]", "near.by", "'near.by' is not available"),
        ("[noted]", "test.exception", "Exception"),
    ] {
        let answer = by(executors, &[fun]).to_string();
        assert!(answer.contains(part), "{executors} {fun}: {answer}");
    }
    assert_eq!(call(&system, &["test.echo", "x"]), "x".into());
}

#[test]
fn hosts_of_salt_ssh_are_those_of_own_rosters() {
    let system = System::new("module_dirs: [ROOT/own]\n");
    system.write(
        "own/roster/racks.py",
        "def targets(tgt, tgt_type='glob', **kwargs):\n    \
         return {'%s-%s' % (tgt, n): {'host': '127.0.0.%d' % n} for n in (1, 2)}\n",
    );
    let output = system.tool("salt-ssh", &["--roster=racks", "-H", "web"]);
    assert_eq!(stdout(&output), "web-1: 127.0.0.1\nweb-2: 127.0.0.2\n", "{}", stderr(&output));
    let unknown = stderr(&system.tool("salt-ssh", &["--roster=shelves", "-H", "web"]));
    assert!(unknown.contains("the roster 'shelves' is not supported"), "{unknown}");
}

#[tokio::test(flavor = "multi_thread")]
async fn types_without_effect_are_named_in_the_log() {
    let mut system = System::new("auto_accept: True\nmodule_dirs: [ROOT/own]\n");
    system.write("own/tokens/mine.py", "");
    system.write("srv/salt/_serializers/mine.py", "");
    system.start_master().await;
    system.start_minion("m1").await;
    assert_eq!(call(&system, &["saltutil.sync_serializers"]), list!["serializers.mine"]);
    support::until("the minion's log names them", || {
        system.minion_log("m1").contains("modules in '_serializers' have no effect")
    })
    .await;
    let log = system.master_log();
    assert!(log.contains("modules in '_tokens' have no effect") && !log.contains("'_cache'"), "{log}");
}
