//! Custom Python modules on a minion, by `salt-call --local`: sync, calls, states, grains and errors.

use crate::support;

use std::path::Path;
use std::process::{Command, Output};

use tempfile::TempDir;

const MODULE: &str = r#"
import os, sys
from salt.exceptions import CommandExecutionError, SaltInvocationError

__func_alias__ = {"list_": "list"}

def hello(name, greeting="Hello"):
    """
    Greet somebody.

    CLI Example::

        salt '*' own.hello World
    """
    return "%s %s of %s" % (greeting, name, __grains__["id"])

def list_():
    return __salt__["test.echo"]("built in")

def grain(name):
    return __grains__.get(name)

def fails():
    raise CommandExecutionError("no disk")

def misused():
    raise SaltInvocationError("wrong word")

def divides():
    return 1 / 0

def leaves():
    sys.exit(3)

def crashes():
    os._exit(7)

def prints():
    print("printed")
    return "clean"

def unsendable():
    return object()

def recurses():
    return recurses()
"#;

const STATE: &str = r#"
def present(name, size=1):
    ret = {"name": name, "result": True, "changes": {}, "comment": ""}
    if __opts__["test"]:
        ret["result"] = None
        ret["comment"] = "would create"
        return ret
    ret["changes"] = {"new": __salt__["own.hello"](name), "size": size}
    ret["comment"] = ["created", __env__ + " " + __instance_id__]
    return ret

def quiet(name):
    return {"name": name, "result": True, "changes": {}, "comment": "in order"}

def malformed(name):
    return "nothing"

def mod_watch(name, sfun=None, **kwargs):
    return {"name": name, "result": True, "changes": {"watched": sfun}, "comment": "watched"}
"#;

const GRAINS: &str = r#"
def fixed():
    return {"rack": "r7", "os_copy_of": __grains__.get("id")}

def _hidden():
    return {"hidden": 1}

def broken():
    raise ValueError("no")

def from_grains(grains):
    return {"seen": grains["id"]}
"#;

/// A masterless minion with a tree of files.
struct Minion(TempDir);

impl Minion {
    fn new(files: &[(&str, &str)]) -> Self {
        let directory = TempDir::new().unwrap();
        let root = directory.path();
        let config = format!(
            "id: m1\nroot_dir: {0}\ncachedir: {0}/cache\nfile_roots:\n  base: [{0}/tree]\nlog_file: ''\n",
            root.display()
        );
        std::fs::write(root.join("minion"), config).unwrap();
        std::fs::create_dir(root.join("tree")).unwrap();
        let minion = Minion(directory);
        for (path, text) in files {
            minion.write(path, text);
        }
        minion
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.0.path().join("tree").join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn run(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_brine"));
        command.args(["salt-call", "--local", "--out=json", "-c"]).arg(self.0.path()).args(arguments);
        command.output().unwrap()
    }

    fn call(&self, arguments: &[&str]) -> serde_json::Value {
        let output = self.run(arguments);
        let text = String::from_utf8_lossy(&output.stdout);
        let value: serde_json::Value = serde_json::from_str(&text).unwrap_or_else(|error| {
            panic!("{arguments:?}: {error}: {text}{}", String::from_utf8_lossy(&output.stderr))
        });
        value["local"].clone()
    }

    fn error(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert!(!output.status.success(), "{arguments:?}");
        String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
    }

    fn cache(&self) -> std::path::PathBuf {
        self.0.path().join("cache")
    }
}

fn full() -> Minion {
    let minion = Minion::new(&[
        ("_modules/own.py", MODULE),
        ("_modules/unwilling.py", "def __virtual__():\n    return False, 'no such program'\ndef f():\n    pass\n"),
        ("_modules/broken.py", "import no_such_thing\n"),
        ("_modules/renamed.py", "def __virtual__():\n    return 'test'\ndef ping():\n    return 'custom'\n"),
        ("_states/own.py", STATE),
        ("_grains/own.py", GRAINS),
    ]);
    let synced = minion.call(&["saltutil.sync_all", "saltenv=base"]);
    assert_eq!(synced["states"], serde_json::json!(["states.own"]));
    minion
}

#[test]
fn only_what_a_module_defines_and_names_is_a_function_of_it() {
    let minion = Minion::new(&[
        (
            "_modules/helper.py",
            "from subprocess import run, call\nfrom functools import partial, wraps\n\
             from salt.utils.decorators import memoize\n__virtualname__ = 'cmd'\n__virtual_aliases__ = ('helper',)\n\
             def __virtual__():\n    return __virtualname__\ndef hello():\n    return 1\n\
             @memoize\ndef kept(words):\n    return len(words)\nbound = partial(print)\n",
        ),
        ("_modules/all_.py", "__all__ = ['one']\ndef one():\n    return 1\ndef two():\n    return 2\n"),
        (
            "_modules/load_.py",
            "__load__ = ['one']\n__all__ = ['two']\ndef one():\n    return 1\ndef two():\n    pass\n",
        ),
        ("_modules/nothing.py", "__load__ = []\ndef one():\n    return 1\n"),
        (
            "_states/copies.py",
            "from shutil import copy\n__virtualname__ = 'file'\ndef __virtual__():\n    return 'file'\n",
        ),
    ]);
    minion.call(&["saltutil.sync_all", "saltenv=base"]);
    assert_eq!(minion.call(&["cmd.run", "echo built in"]), "built in");
    assert_eq!(minion.call(&["cmd.retcode", "/bin/true"]), 0);
    for (function, argument) in [("cmd.hello", None), ("helper.hello", None), ("all_.one", None), ("load_.one", None)] {
        let words: Vec<&str> = [function].into_iter().chain(argument).collect();
        assert_eq!(minion.call(&words), 1, "{function}");
    }
    // Kept by the text of its arguments, which need not be hashable.
    assert_eq!(minion.call(&["cmd.kept", "[a, b]"]), 2);
    for function in ["cmd.call", "helper.run", "cmd.partial", "cmd.bound", "all_.two", "load_.two", "nothing.one"] {
        let error = minion.error(&[function]);
        assert!(error.contains("is not available"), "{function}: {error}");
    }
    let (from, to) = (minion.0.path().join("minion"), minion.0.path().join("copy"));
    let name = format!("name={}", to.display());
    let copied = minion.call(&["state.single", "file.copy", &name, &format!("source={}", from.display())]);
    assert!(copied.to_string().contains(r#""result":true"#) && to.exists(), "{copied}");
}

#[test]
fn without_custom_modules_no_python_starts() {
    let minion = Minion::new(&[]);
    // An interpreter whose start would be noticed.
    let (python, trace) = (minion.0.path().join("python"), minion.0.path().join("started"));
    std::fs::write(&python, format!("#!/bin/sh\ntouch {}\n", trace.display())).unwrap();
    std::fs::set_permissions(&python, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
    let config = minion.0.path().join("minion");
    let text = std::fs::read_to_string(&config).unwrap() + &format!("python_host: {}\n", python.display());
    std::fs::write(&config, text).unwrap();
    assert_eq!(minion.call(&["test.ping"]), true);
    minion.call(&["saltutil.sync_all", "saltenv=base"]);
    minion.call(&["sys.list_functions"]);
    minion.call(&["state.single", "test.nop", "name=a"]);
    assert!(!trace.exists());
    minion.write("_modules/own.py", MODULE);
    minion.call(&["saltutil.sync_modules", "saltenv=base"]);
    minion.error(&["own.hello", "x"]);
    assert!(trace.exists(), "the test sees no start");
}

#[test]
fn a_module_of_the_whitelist_may_call_others() {
    let minion = Minion::new(&[("_modules/own.py", MODULE)]);
    minion.call(&["saltutil.sync_modules", "saltenv=base"]);
    let config = minion.0.path().join("minion");
    let text = std::fs::read_to_string(&config).unwrap() + "whitelist_modules: [own]\n";
    std::fs::write(&config, text).unwrap();
    assert_eq!(minion.call(&["own.list"]), "built in");
    let refused = minion.error(&["test.echo", "x"]);
    assert!(refused.contains("'test.echo' is not available."), "{refused}");
}

#[test]
fn custom_functions_are_called_listed_and_documented() {
    let minion = full();
    for (arguments, expected) in [
        (vec!["own.hello", "World"], serde_json::json!("Hello World of m1")),
        (vec!["own.hello", "World", "greeting=Bye"], "Bye World of m1".into()),
        (vec!["own.list"], "built in".into()),
        (vec!["own.prints"], "clean".into()),
        (vec!["test.ping"], "custom".into()),
        (vec!["test.echo", "a"], "a".into()),
        (vec!["sys.list_functions", "own.h*"], serde_json::json!(["own.hello"])),
        (vec!["sys.list_modules", "own"], serde_json::json!(["own"])),
        (vec!["sys.list_state_functions", "own.p*"], serde_json::json!(["own.present"])),
        (vec!["own.grain", "rack"], "r7".into()),
        (vec!["own.grain", "seen"], "m1".into()),
        (vec!["grains.get", "hidden"], "".into()),
        (vec!["slsutil.renderer", "string={{ salt['own.hello']('x') }}"], "Hello x of m1".into()),
    ] {
        assert_eq!(minion.call(&arguments), expected, "{arguments:?}");
    }
    let spec = minion.call(&["sys.argspec", "own.hello"]);
    assert_eq!(spec["own.hello"]["args"], serde_json::json!(["name", "greeting"]));
    assert!(minion.call(&["sys.doc", "own.hello"])["own.hello"].as_str().unwrap().starts_with("Greet somebody."));
}

#[test]
fn errors_of_custom_functions_are_those_of_salt() {
    let minion = full();
    for (function, part) in [
        ("own.fails", "Error running 'own.fails': no disk"),
        ("own.misused", "wrong word"),
        ("own.divides", "ZeroDivisionError: division by zero"),
        ("own.leaves", "ended Python with the status 3"),
        ("own.crashes", "the Python process ended during the call: exit status: 7"),
        ("own.unsendable", "a value of the type 'object' cannot be sent"),
        ("own.recurses", "RecursionError"),
        ("own.hello", "missing 1 required positional argument: 'name'"),
        ("own.nosuch", "'own.nosuch' is not available."),
        ("unwilling.f", "'unwilling' __virtual__ returned False: no such program"),
        ("broken.f", "No module named 'no_such_thing'"),
    ] {
        let error = minion.error(&[function]);
        assert!(error.contains(part), "{function}: {error}");
    }
}

#[test]
fn custom_states_run_and_their_results_are_checked() {
    let minion = full();
    minion.write(
        "s.sls",
        "web:\n  own.present:\n    - size: 3\n    - require_in:\n      - test: after\nafter:\n  test.nop: []\nwatcher:\n  own.quiet:\n    \
         - watch:\n      - test: changed\nchanged:\n  test.succeed_with_changes: []\ncalled:\n  module.run:\n    - own.hello:\n      - name: y\n",
    );
    let results = minion.call(&["state.apply", "s"]);
    let web = &results["own_|-web_|-web_|-present"];
    assert_eq!(web["changes"], serde_json::json!({"new": "Hello web of m1", "size": 3}), "{results:#}");
    assert_eq!(web["comment"], "created\nbase web");
    let watcher = &results["own_|-watcher_|-watcher_|-quiet"];
    assert_eq!(watcher["changes"], serde_json::json!({"watched": "quiet"}), "{results:#}");
    assert_eq!(results["module_|-called_|-called_|-run"]["changes"]["own.hello"], "Hello y of m1", "{results:#}");
    let dry = minion.call(&["state.apply", "s", "test=True"]);
    let web = &dry["own_|-web_|-web_|-present"];
    assert_eq!((&web["result"], web["comment"].as_str()), (&serde_json::Value::Null, Some("would create")));
    minion.write("bad.sls", "a:\n  own.malformed: []\nb:\n  unknown.state: []\n");
    let bad = minion.call(&["state.apply", "bad"]);
    let comment = bad["own_|-a_|-a_|-malformed"]["comment"].as_str().unwrap();
    assert!(comment.contains("Malformed state return. Data must be a dictionary type."), "{comment}");
}

#[test]
fn highstate_syncs_modules_first_and_removes_deleted_ones() {
    let minion = Minion::new(&[("top.sls", "base:\n  '*': [s]\n"), ("s.sls", "a:\n  own.present: []\n")]);
    minion.write("_states/own.py", STATE);
    minion.write("_modules/own.py", MODULE);
    let results = minion.call(&["state.highstate"]);
    assert_eq!(results["own_|-a_|-a_|-present"]["result"], true, "{results:#}");
    let copies = minion.cache().join("extmods");
    assert!(copies.join("modules/own.py").exists());
    std::fs::remove_file(minion.0.path().join("tree/_modules/own.py")).unwrap();
    minion.call(&["state.highstate"]);
    assert!(!copies.join("modules/own.py").exists());
    assert!(is_private(&copies.join("states/own.py")));
}

#[test]
fn missing_interpreter_is_reported_and_builtin_functions_work() {
    let minion = full();
    let config = minion.0.path().join("minion");
    let text = std::fs::read_to_string(&config).unwrap() + "python_host: /nonexistent/python\n";
    std::fs::write(&config, text).unwrap();
    assert_eq!(minion.call(&["test.echo", "a"]), "a");
    let error = minion.error(&["own.hello", "x"]);
    assert!(error.contains("'/nonexistent/python' is not installed; install Python 3.9 or later"), "{error}");
}

fn is_private(path: &Path) -> bool {
    std::os::unix::fs::PermissionsExt::mode(&path.metadata().unwrap().permissions()) & 0o777 == 0o600
}

#[tokio::test(flavor = "multi_thread")]
async fn a_minion_syncs_from_its_master_and_serves_calls_at_once() {
    let mut system = support::System::start("").await;
    system.write("srv/salt/_modules/own.py", MODULE);
    system.write("srv/salt/_grains/own.py", GRAINS);
    system.start_minion("web1").await;
    let call = |words: &[&str]| system.salt_json(&[&["web1"], words].concat()).get("web1").cloned().unwrap();
    assert!(call(&["own.list"]).to_string().contains("is not available"));
    let synced = call(&["saltutil.sync_all", "saltenv=base"]);
    assert_eq!(synced.get("modules"), Some(&brine_value::list!["modules.own"]));
    assert_eq!(call(&["grains.get", "rack"]), "r7".into());
    assert_eq!(call(&["own.hello", "World"]), "Hello World of web1".into());
    assert!(call(&["own.crashes"]).to_string().contains("the Python process ended during the call"));
    std::thread::scope(|scope| {
        let calls: Vec<_> = (0..20).map(|_| scope.spawn(|| call(&["own.list"]))).collect();
        for thread in calls {
            assert_eq!(thread.join().unwrap(), "built in".into());
        }
    });
    // A file replaced on the master takes effect at the next sync.
    system.write("srv/salt/_modules/own.py", "def list_():\n    return 'new'\n");
    assert_eq!(call(&["own.list"]), "built in".into());
    call(&["saltutil.sync_modules", "saltenv=base"]);
    assert_eq!(call(&["own.list_"]), "new".into());
}
