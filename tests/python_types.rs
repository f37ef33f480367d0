//! Custom modules of rarely used types: authentication, rosters, `sdb` drivers, outputters, executors, matchers,
//! serializers and file servers.

use crate::support;

use crate::support::{System, stderr, stdout};
use brine_value::json::from_json;
use brine_value::{Value, list, map};

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
async fn custom_modules_authenticate_users_of_external_auth() {
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
        let text = by(user, password, fun);
        assert!(text.contains(expected), "{user} {fun}: {text}{}", system.master_log());
    }
    assert!(system.master_log().contains("external_auth 'staff' failed: ValueError: no directory"));
    assert!(!system.master_log().contains("three"), "no password is logged");
}

#[tokio::test(flavor = "multi_thread")]
async fn custom_sdb_modules_provide_values_on_minions_and_the_master() {
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
async fn custom_outputters_format_results() {
    let mut system = System::new("auto_accept: True\n");
    system.write("srv/salt/_output/angles.py", OUTPUT);
    system.start_master().await;
    system.start_minion("m1").await;
    call(&system, &["saltutil.sync_output"]);
    system.tool("salt-run", &["saltutil.sync_output"]);
    let display = |tool: &str, words: &[&str]| {
        let output = system.tool(tool, &[&["--out=angles"], words].concat());
        format!("{}{}", stdout(&output), stderr(&output)).trim().to_owned()
    };
    assert_eq!(display("salt", &["m1", "test.echo", "x"]), "<[('m1', 'x')] 0 False>");
    assert_eq!(display("salt-run", &["test.arg", "x"]), "<[('args', ['x']), ('kwargs', {})] 0 False>");
    let failed = display("salt", &["m1", "test.echo", "raise"]);
    assert!(failed.contains("a custom outputter failed") && failed.contains("raise"), "{failed}");
    let unknown = stderr(&system.tool("salt", &["--out=none", "m1", "test.ping"]));
    assert!(unknown.contains("Invalid outputter none specified"), "{unknown}");
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_run_through_their_module_executors() {
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
    let etc = system.path("m1/etc").display().to_string();
    let local =
        ["salt-call", "-c", &etc, "--local", "--out=json", "--module-executors=noted", "--executor-opts={depth: 3}"];
    let output = support::within_limit(support::BRINE).args(local).args(["test.echo", "x"]).output().unwrap();
    let expected = noted("x".into(), map! {"depth" => 3}.into());
    assert_eq!(from_json(&stdout(&output)).unwrap().get("local"), Some(&expected), "{}", stderr(&output));
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
fn custom_rosters_provide_the_hosts_of_salt_ssh() {
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

const RACK_MATCHER: &str = r#"
def match(tgt, opts=None, minion_id=None):
    if tgt == "raise":
        raise ValueError("no rack")
    return "%s-%s" % (minion_id, opts["grains"]["rack"]) == tgt
"#;

/// Replaces the built-in matcher, also in compound targets.
const GRAIN_MATCHER: &str = r#"
def match(tgt, delimiter=":", opts=None, minion_id=None):
    key, _, value = tgt.partition(delimiter)
    return str(opts["grains"].get(key)).startswith(value)
"#;

#[tokio::test(flavor = "multi_thread")]
async fn custom_matchers_match_targets_of_their_type() {
    let mut system = System::new("auto_accept: True\n");
    system.write("srv/salt/_matchers/rack_match.py", RACK_MATCHER);
    system.write("srv/salt/_matchers/grain_match.py", GRAIN_MATCHER);
    system.write("srv/salt/_matchers/pcre_match.py", "import no_such_package\n");
    system.write(
        "srv/salt/top.sls",
        "base:\n  m1-r7:\n  - match: rack\n  - one\n  m1-r8:\n  - match: rack\n  - two\n  raise:\n  - match: rack\n  - two\n",
    );
    system.start_master().await;
    system.configure_minion("m1", "grains: {rack: r7}\n");
    let mut events = system.events("salt/minion/").await;
    system.spawn_minion("m1");
    events.until("salt/minion/m1/start").await;
    assert_eq!(call(&system, &["match.grain", "rack:r"]), false.into());
    assert_eq!(call(&system, &["match.pcre", "m."]), true.into());
    let synced = list!["matchers.grain_match", "matchers.pcre_match", "matchers.rack_match"];
    assert_eq!(call(&system, &["saltutil.sync_matchers"]), synced);
    assert_eq!(call(&system, &["state.show_top"]), map! {"base" => list!["one"]}.into(), "{}", system.minion_log("m1"));
    for (fun, target, expected) in [
        ("match.grain", "rack:r", true),
        ("match.grain", "rack:7", false),
        ("match.compound", "G@rack:r and m*", true),
        ("match.compound", "G|@rack|r7 and not G@rack:r8", true),
        ("match.compound", "G@rack:7 or web*", false),
        // A matcher that is not loaded matches nothing: the built-in one would match more.
        ("match.pcre", "m.", false),
        ("match.compound", "E@m.", false),
        ("match.compound", "not E@m.", false),
        ("match.glob", "m*", true),
    ] {
        assert_eq!(call(&system, &[fun, target]), expected.into(), "{fun} {target}");
    }
    let log = system.minion_log("m1");
    assert!(log.contains("matching a target failed") && log.contains("no rack"), "{log}");
    // The minion also matches the targets of jobs; the master publishes a job to all minions that may match.
    let output = system.tool("salt", &["--out=txt", "-t", "2", "-E", "m.", "test.ping"]);
    assert!(!stdout(&output).contains("True"), "{}", stdout(&output));
    let output = system.tool("salt", &["--out=txt", "-G", "rack:r7", "test.ping"]);
    assert!(stdout(&output).contains("m1: True"), "{}", stdout(&output));
}

#[tokio::test(flavor = "multi_thread")]
async fn custom_matchers_match_targets_of_pillar_top_files() {
    let mut system = System::new("auto_accept: True\nmodule_dirs: [ROOT/own]\n");
    system.write("own/matchers/rack_match.py", RACK_MATCHER);
    system.write("srv/salt/_matchers/grain_match.py", GRAIN_MATCHER);
    system.write("own/matchers/pcre_match.py", "import no_such_package\n");
    system.write("own/matchers/pillar_match.py", "import os\ndef match(tgt, **kwargs):\n    os._exit(1)\n");
    let mut top = "base:\n".to_owned();
    for (name, kind, target) in [
        ("one", "rack", "m1-r7"),
        ("two", "rack", "m1-r8"),
        ("three", "rack", "raise"),
        ("four", "grain", "rack:r"),
        ("five", "compound", "G@rack:r and m*"),
        ("six", "compound", "not G@rack:r"),
        // A matcher that is not loaded, or crashes, matches nothing: otherwise secrets could reach other minions.
        ("seven", "pcre", "m."),
        ("eight", "compound", "not E@web."),
        ("nine", "pillar", "a:b"),
        ("ten", "glob", "m*"),
    ] {
        system.write(&format!("srv/pillar/{name}.sls"), &format!("{name}: True\n"));
        top.push_str(&format!("  '{target}':\n  - match: {kind}\n  - {name}\n"));
    }
    system.write("srv/pillar/top.sls", &top);
    system.start_master().await;
    let run = |words: &[&str]| stdout(&system.tool("salt-run", &[&["--out=json"], words].concat()));
    assert!(run(&["saltutil.sync_matchers"]).contains("matchers.grain_match"));
    system.configure_minion("m1", "grains: {rack: r7}\n");
    let mut events = system.events("salt/minion/").await;
    system.spawn_minion("m1");
    events.until("salt/minion/m1/start").await;
    let names = call(&system, &["pillar.ls"]);
    assert_eq!(names, list!["one", "four", "five", "ten"], "{}", system.master_log());
    assert!(system.master_log().contains("no rack") && system.master_log().contains("no_such_package"));
}

/// A serializer to lines of `key=value`; `sep` is an option of both functions.
const ROWS: &str = r#"
def serialize(obj, sep="=", **options):
    return "".join("%s%s%s\n" % (key, sep, obj[key]) for key in sorted(obj))

def deserialize(stream_or_string, sep="=", **options):
    if not isinstance(stream_or_string, str):
        stream_or_string = stream_or_string.read()
    return dict(line.split(sep, 1) for line in stream_or_string.splitlines())
"#;

#[tokio::test(flavor = "multi_thread")]
async fn custom_serializers_serialize_data() {
    let mut system = System::new("auto_accept: True\n");
    system.write("srv/salt/_serializers/rows.py", ROWS);
    system.write("srv/salt/_serializers/raw.py", "def serialize(obj, **options):\n    return obj['text'].encode()\n");
    system.write("srv/salt/_serializers/json.py", "def serialize(obj, **options):\n    return '<own json>'\n");
    system.write("srv/salt/_serializers/broken.py", "import no_such_package\n");
    system.start_master().await;
    system.start_minion("m1").await;
    let names = list!["serializers.broken", "serializers.json", "serializers.raw", "serializers.rows"];
    assert_eq!(call(&system, &["saltutil.sync_serializers"]), names);
    for (words, expected) in [
        (&["slsutil.serialize", "rows", "{b: 1, a: x}"][..], Value::from("a=x\nb=1\n")),
        (&["slsutil.serialize", "rows", "{a: x}", "sep=:"], "a:x\n".into()),
        (&["slsutil.deserialize", "rows", "stream_or_string=a=x"], map! {"a" => "x"}.into()),
        (&["slsutil.serialize", "json", "{a: x}"], "<own json>".into()),
        // Functions that the file does not define stay built in.
        (&["slsutil.deserialize", "json", "{\"a\": 1}"], map! {"a" => 1}.into()),
        (&["slsutil.serialize", "yaml", "{a: x}"], "{a: x}".into()),
    ] {
        assert_eq!(call(&system, words), expected, "{words:?}");
    }
    let answer = call(&system, &["slsutil.serialize", "broken", "{}"]).to_string();
    assert!(answer.contains("No module named 'no_such_package'"), "{answer}");
    let answer = call(&system, &["slsutil.serialize", "none", "{}"]).to_string();
    assert!(answer.contains("Unknown serializer 'none'"), "{answer}");

    let file = system.path("rows").display().to_string();
    let state = |more: &[&str]| {
        let name = format!("name={file}");
        let words = [&["state.single", "file.serialize", &name], more].concat();
        let all = call(&system, &words);
        let (_, state) = all.as_map().unwrap_or_else(|| panic!("{all}")).first().unwrap();
        state.clone()
    };
    let result = state(&["dataset={b: 1}", "serializer=rows", "serializer_opts=[{sep: ':'}]"]);
    assert_eq!(result.get("result"), Some(&true.into()), "{result}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "b:1\n");
    let options = ["serializer_opts=[{sep: ':'}]", "deserializer_opts=[{sep: ':'}]", "merge_if_exists=True"];
    state(&[&["dataset={a: 2}", "serializer=rows"], &options[..]].concat());
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "a:2\nb:1\n");
    // Bytes are written as they are, without a final newline.
    state(&["dataset={text: x}", "serializer=raw"]);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "x");
    let failed = state(&["dataset={text: x}", "serializer=raw", "merge_if_exists=True"]);
    assert_eq!(failed.get("comment"), Some(&"merge_if_exists is not supported for the raw serializer".into()));
}

/// A file server backend whose files are below `shelf_root` of the options: one directory an environment.
const SHELF: &str = r#"
import hashlib
import os

def envs():
    return sorted(os.listdir(__opts__["shelf_root"])) + ["../out"]

def file_list(load):
    root, found = os.path.join(__opts__["shelf_root"], load["saltenv"]), ["../../outside", "/etc/passwd"]
    for directory, _, names in os.walk(root):
        found.extend(os.path.relpath(os.path.join(directory, name), root) for name in names)
    return found

def find_file(path, saltenv="base", **kwargs):
    full = os.path.join(__opts__["shelf_root"], saltenv, path)
    if path == "refused":
        raise ValueError("not this one")
    return {"path": full, "rel": path} if os.path.isfile(full) else {"path": "", "rel": ""}

def file_hash(load, fnd):
    with open(fnd["path"], "rb") as file:
        return {"hsum": hashlib.sha1(file.read()).hexdigest(), "hash_type": "sha1"}

def serve_file(load, fnd):
    with open(fnd["path"], "rb") as file:
        file.seek(load["loc"])
        return {"data": file.read(1000), "dest": fnd["rel"]}
"#;

#[tokio::test(flavor = "multi_thread")]
async fn custom_file_server_backends_serve_files() {
    let mut system = System::new(
        "auto_accept: True\nmodule_dirs: [ROOT/own]\nfileserver_backend: [roots, shelf]\nshelf_root: ROOT/shelf\n",
    );
    system.write("own/fileserver/shelf.py", SHELF);
    system.write("srv/salt/both", "roots");
    system.write("shelf/base/both", "shelf");
    system.write("shelf/base/sub/large", &"line\n".repeat(1000));
    system.write("shelf/base/web.sls", "made:\n  test.nop: []\n");
    system.write("shelf/dev/only", "dev");
    system.write("shelf/outside", "secret");
    // A file that fails does not keep the others from being served.
    system.write("shelf/base/refused", "x");
    system.start_master().await;
    system.start_minion("m1").await;
    let update = || {
        let output = system.tool("salt-run", &["--out=json", "fileserver.update", "backend=shelf"]);
        let text = stdout(&output) + &stderr(&output);
        assert!(
            text.contains("copying refused failed") && text.contains("ValueError: not this one"),
            "{text}{}",
            system.master_log()
        );
    };
    let read = |path: &str| call(&system, &["cp.get_file_str", path]);
    update();
    assert_eq!(read("salt://sub/large"), "line\n".repeat(1000).into());
    assert_eq!(read("salt://both"), "roots".into(), "the first backend wins");
    assert_eq!(read("salt://only?saltenv=dev"), "dev".into());
    let files = call(&system, &["cp.list_master"]);
    assert_eq!(files, list!["both", "sub/large", "web.sls"]);
    let applied = call(&system, &["state.apply", "web"]).to_string();
    assert!(applied.contains("test_|-made_|-made_|-nop"), "{applied}");
    assert!(!system.path("cache/outside").exists() && system.master_log().contains("leads out of the environment"));

    system.write("shelf/base/web.sls", "changed:\n  test.nop: []\n");
    std::fs::remove_dir_all(system.path("shelf/dev")).unwrap();
    std::fs::remove_dir_all(system.path("shelf/base/sub")).unwrap();
    update();
    assert!(call(&system, &["state.show_sls", "web"]).get("changed").is_some());
    assert_eq!(read("salt://only?saltenv=dev"), false.into());
    assert_eq!(call(&system, &["cp.list_master"]), list!["both", "web.sls"]);

    // A failing backend does not remove the files that were copied before.
    system.write("own/fileserver/shelf.py", "def envs():\n    raise ValueError('no shelf')\n");
    support::until("the file is seen", || {
        let output = system.tool("salt-run", &["fileserver.update", "backend=shelf"]);
        format!("{}{}", stdout(&output), stderr(&output)).contains("ValueError: no shelf")
    })
    .await;
    assert_eq!(call(&system, &["cp.list_master"]), list!["both", "web.sls"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn module_types_without_effect_are_logged() {
    let mut system = System::new("auto_accept: True\nmodule_dirs: [ROOT/own]\n");
    system.write("own/thorium/mine.py", "");
    system.write("srv/salt/_log_handlers/mine.py", "");
    system.start_master().await;
    system.start_minion("m1").await;
    assert_eq!(call(&system, &["saltutil.sync_log_handlers"]), list!["log_handlers.mine"]);
    support::until("the minion's log names the modules", || {
        system.minion_log("m1").contains("modules in '_log_handlers' have no effect")
    })
    .await;
    assert_eq!(call(&system, &["saltutil.sync_log_handlers"]), list![]);
    assert_eq!(system.minion_log("m1").matches("modules in '_log_handlers' have no effect").count(), 1);
    let log = system.master_log();
    assert!(log.contains("modules in '_thorium' have no effect") && !log.contains("'_queues'"), "{log}");
}

#[test]
fn salt_call_loads_directories_of_custom_modules() {
    let system = System::new("");
    system.configure_minion("m1", "");
    system.write("own/modules/own.py", "def where():\n    return 'mine'\n");
    system.write(
        "own/states/own.py",
        "def done(name):\n    return {'name': name, 'result': True, 'changes': {}, 'comment': __salt__['own.where']()}\n",
    );
    let (etc, own) = (system.path("m1/etc"), system.path("own"));
    let call = |words: &[&str]| {
        let mut command = support::within_limit(support::BRINE);
        command.current_dir(&own).args([
            "salt-call",
            "--local",
            "--out=json",
            "-m",
            "modules",
            "--states-dir=states",
            "-c",
        ]);
        let output = command.arg(&etc).args(words).output().unwrap();
        from_json(&stdout(&output)).unwrap_or_else(|_| panic!("{}", stderr(&output))).get("local").cloned().unwrap()
    };
    assert_eq!(call(&["own.where"]), "mine".into());
    let state = call(&["state.single", "own.done", "x"]);
    assert_eq!(state.as_map().unwrap()[0].get("comment"), Some(&"mine".into()), "{state}");
}
