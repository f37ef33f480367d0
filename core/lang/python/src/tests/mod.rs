//! Calls of a real `python3`.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use brine_function::{Args, CallError, CallResult};
use brine_value::{Map, Value, list, map};
use tempfile::TempDir;

use super::*;

mod processes;

/// The services for tested functions: `test.echo`, and `nest.again`, which calls Python.
struct Brine<'a> {
    fixture: Option<&'a Fixture>,
    /// The file whose existence cancels the job.
    ends_with: Option<PathBuf>,
    retcode: AtomicI64,
}

impl Services for Brine<'_> {
    fn call(&self, kind: &str, function: &str, args: Args) -> CallResult {
        match (kind, function) {
            ("modules", "test.echo") => Ok(args.positional.into_iter().next().unwrap_or_default()),
            ("modules", "nest.again") => {
                let fixture = self.fixture.ok_or_else(|| CallError::execution("no fixture"))?;
                fixture.call("own.nested", Args::default()).map_err(CallError::execution)
            }
            _ => Err(CallError::Execution(format!("{function} cannot"))),
        }
    }

    fn is_cancelled(&self) -> bool {
        self.ends_with.as_ref().is_some_and(|path| path.exists())
    }

    fn set_retcode(&self, retcode: i64) {
        self.retcode.store(retcode, Ordering::Relaxed);
    }
}

const OWN: &str = r#"
import os, time, sys, threading, signal, subprocess
import salt.utils.files
from salt.exceptions import CommandExecutionError
import salt.utils.dictupdate as dictupdate

__virtualname__ = "own"
__func_alias__ = {"list_": "list"}

def __virtual__():
    return __virtualname__

def __init__(opts):
    __context__["init"] = opts["id"]

def echo(value, *args, times=1, **kwargs):
    """Return a value."""
    return [value, list(args), times, kwargs]

def ask(value):
    return __salt__["test.echo"](value) + __salt__.test.echo("!") + __salt__["own.list"]()[0]

def list_():
    return ("a", 2)

def dunders():
    return [__opts__["id"], __grains__.get("os"), __pillar__["a"], __context__["init"], "test.echo" in __salt__]

def missing():
    return __salt__["no.such"]()

def refused():
    return __salt__["test.refuse"]()

def fails():
    raise CommandExecutionError("no disk")

def divides():
    return 1 / 0

def leaves():
    sys.exit(3)

def prints():
    print("printed")
    os.write(1, b"raw")
    subprocess.run(["echo", "child"])
    return True

def unsendable():
    return object()

def loop():
    one = []
    one.append(one)
    return one

def recurses():
    return recurses()

def crashes():
    os._exit(7)

def dies():
    os.kill(os.getpid(), signal.SIGKILL)

def hangs(path):
    while True:
        try:
            open(path, "w").close()
            time.sleep(600)
        except BaseException:
            pass

def spins():
    while True:
        pass

def asks():
    while True:
        __salt__["test.echo"](1)

def forks():
    pid = os.fork()
    if pid == 0:
        return "child"
    os.waitpid(pid, 0)
    return "parent"

def nested():
    return __salt__["nest.again"]()

def changes():
    __pillar__["a"] = 5
    return __pillar__["a"]

def pid():
    return os.getpid()

def stdin():
    return sys.stdin.read()

def huge():
    return "x" * (65 << 20)

def waits(path):
    open(path + ".started", "w").close()
    while not os.path.exists(path):
        time.sleep(0.01)
    return os.getpid()

def retcodes(how, value=None):
    if how == "item":
        __context__["retcode"] = value
    elif how == "update":
        __context__.update(retcode=value)
    elif how == "default":
        __context__.setdefault("retcode", value)
    return __context__.get("retcode", "none")

def generated():
    yield 1
    yield 2
"#;

struct Fixture {
    python: Python,
    directory: TempDir,
    data: Vec<(&'static str, Arc<Map>)>,
}

fn fixture() -> Fixture {
    with_settings(Settings::default())
}

fn with_settings(settings: Settings) -> Fixture {
    let directory = TempDir::new().unwrap();
    let modules = directory.path().join("modules");
    fs::create_dir(&modules).unwrap();
    fs::write(modules.join("own_file.py"), OWN).unwrap();
    fs::write(modules.join("broken.py"), "import no_such_thing\n").unwrap();
    fs::write(modules.join("unwilling.py"), "def __virtual__():\n    return False, 'no such program'\n").unwrap();
    let data = [("opts", map! {"id" => "m1"}), ("grains", map! {"os" => "Debian"}), ("pillar", map! {"a" => 1})];
    let data = data.into_iter().map(|(name, map)| (name, Arc::new(map))).collect();
    Fixture { python: Python::new(settings), directory, data }
}

fn brine() -> Brine<'static> {
    Brine { fixture: None, ends_with: None, retcode: AtomicI64::default() }
}

/// Waits until another process makes the condition true.
fn wait_until(condition: impl Fn() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < Duration::from_secs(60));
        std::thread::sleep(Duration::from_millis(5));
    }
}

impl Fixture {
    fn call(&self, function: &str, args: Args) -> Result<Value, PythonError> {
        self.call_in("modules", function, args, None, &Brine { fixture: Some(self), ..brine() })
    }

    fn call_in(
        &self,
        kind: &str,
        function: &str,
        args: Args,
        deadline: Option<Instant>,
        services: &Brine,
    ) -> Result<Value, PythonError> {
        let setup = || {
            let files = Files::find(&[
                ("modules", self.path("modules")),
                ("grains", self.path("grains")),
                ("utils", self.path("utils")),
            ]);
            let functions = ["test.echo", "test.refuse", "nest.again"].map(ToOwned::to_owned).to_vec();
            Setup { files, functions: [("modules", functions)].into(), fallback: false, events: PathBuf::new() }
        };
        self.python.call(Call { kind, function, args, data: self.data.clone(), deadline }, setup, services)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn plain(&self, function: &str) -> Result<Value, PythonError> {
        self.call(function, Args::default())
    }

    fn error(&self, function: &str) -> String {
        self.plain(function).unwrap_err().to_string()
    }
}

#[test]
fn functions_see_the_globals_of_the_loader() {
    let fixture = fixture();
    assert!(!fixture.python.is_running());
    let args =
        Args { positional: list![1, "b"].as_list().unwrap().to_vec(), keyword: map! {"times" => 3, "z" => "ü"} };
    assert_eq!(fixture.call("own.echo", args), Ok(list![1, list!["b"], 3, map! {"z" => "ü"}]));
    for (function, value) in [
        ("own.list", list!["a", 2]),
        ("own.dunders", list!["m1", "Debian", 1, "m1", true]),
        ("own.changes", 5.into()),
        ("own.dunders", list!["m1", "Debian", 1, "m1", true]),
        ("own.prints", true.into()),
        ("own.stdin", "".into()),
        ("own.generated", list![1, 2]),
        ("own.forks", "parent".into()),
    ] {
        assert_eq!(fixture.plain(function), Ok(value), "{function}");
    }
    assert_eq!(fixture.call("own.ask", Args::positional(["x".into()])), Ok("x!a".into()));
    for value in [Value::Nil, (-129).into(), i64::MIN.into(), u64::MAX.into(), 1.5.into(), Value::Bytes(vec![0, 255])] {
        let echoed = fixture.call("own.echo", Args::positional([value.clone()])).unwrap();
        assert_eq!(echoed.as_list().unwrap()[0], value);
    }
}

#[test]
fn the_retcode_in_the_context_belongs_to_its_call() {
    let fixture = fixture();
    for (how, value, seen, retcode) in [
        ("item", 3.into(), Value::from(3), 3),
        ("none", Value::Nil, "none".into(), 0),
        ("update", 4.into(), 4.into(), 4),
        ("default", 5.into(), 5.into(), 5),
        ("item", true.into(), true.into(), 1),
        ("item", 0.into(), 0.into(), 0),
        ("none", Value::Nil, "none".into(), 0),
    ] {
        let services = brine();
        let args = Args::positional([how.into(), value]);
        assert_eq!(fixture.call_in("modules", "own.retcodes", args, None, &services), Ok(seen), "{how}");
        assert_eq!(services.retcode.into_inner(), retcode, "{how}");
    }
}

#[test]
fn functions_whose_dependencies_are_missing_are_left_out_or_replaced() {
    let fixture = fixture();
    let deco = r#"
import json
import salt.utils.decorators as decorators
from salt.utils.decorators import depends

HAS = True

def _fallback():
    return "fallback"

@depends("json")
def imported(): return "real"

@decorators.depends("HAS", "json")
def both(): return "real"

@depends("no_such_module")
def gone(): return "real"

@depends(True)
def always(): return "real"

@depends(False)
def never(): return "real"

@depends("json", "missing", fallback_function=_fallback)
def replaced(): return "real"

@depends("json", version="0.1")
def old(): return "real"

@depends("json", version="999")
def new(): return "real"

@depends("true", retcode=0)
def succeeds(): return "real"

@depends("false", retcode=0)
def fails(): return "real"

@depends("false", nonzero_retcode=True)
def nonzero(): return "real"

@depends("no-such-command", retcode=0)
def command(): return "real"

__func_alias__ = {"set_": "set"}

@depends("missing")
def set_(): return "real"
"#;
    fs::write(fixture.path("modules/deco.py"), deco).unwrap();
    for (name, expected) in [
        ("imported", Some("real")),
        ("both", Some("real")),
        ("gone", None),
        ("always", Some("real")),
        ("never", None),
        ("replaced", Some("fallback")),
        ("old", Some("real")),
        ("new", None),
        ("succeeds", Some("real")),
        ("fails", None),
        ("nonzero", Some("real")),
        ("command", None),
        ("set", None),
    ] {
        let actual = fixture.plain(&format!("deco.{name}"));
        assert_eq!(actual.clone().ok(), expected.map(Value::from), "{name}: {actual:?}");
    }
}

#[test]
fn modules_import_the_files_beside_them_and_those_of_utils() {
    let fixture = fixture();
    fs::create_dir_all(fixture.path("utils/pack")).unwrap();
    fs::write(
        fixture.path("utils/hlp.py"),
        "def t():
    return 'util'
",
    )
    .unwrap();
    fs::write(
        fixture.path("utils/pack/__init__.py"),
        "T = 'package'
",
    )
    .unwrap();
    fs::write(
        fixture.path("modules/beside_them.py"),
        "def t():
    return 'beside'
",
    )
    .unwrap();
    let module = "import hlp, pack, beside_them
def f():
    return [hlp.t(), pack.T, beside_them.t()]
";
    fs::write(fixture.path("modules/imports.py"), module).unwrap();
    assert_eq!(fixture.plain("imports.f"), Ok(list!["util", "package", "beside"]));
}

#[test]
fn exceptions_are_the_errors_of_their_calls() {
    let fixture = fixture();
    for (function, message) in [
        ("own.fails", "CommandExecutionError: no disk"),
        ("own.divides", "ZeroDivisionError: division by zero (own_file.py:39, in divides)"),
        ("own.leaves", "SystemExit: the function ended Python with the status 3"),
        ("own.missing", "KeyError: 'no.such'"),
        ("own.refused", "CommandExecutionError: test.refuse cannot"),
        ("own.unsendable", "TypeError: a value of the type 'object' cannot be sent"),
        ("own.loop", "TypeError: a value that nests deeper than 100 levels cannot be sent"),
        ("own.recurses", "RecursionError: maximum recursion depth exceeded"),
        ("own.huge", "TypeError: the value takes"),
        ("own.nosuch", "CommandNotFoundError: 'own.nosuch' is not available."),
        ("own.nested", "16 calls of Python are nested"),
    ] {
        let error = fixture.error(function);
        assert!(error.contains(message), "{function}: {error}");
    }
    assert_eq!(fixture.plain("own.list"), Ok(list!["a", 2]));
}

#[test]
fn errors_of_functions_and_files_are_reported() {
    let fixture = fixture();
    let described = fixture.call_in("describe", "", Args::positional([list!["modules"]]), None, &brine()).unwrap();
    let modules = described.get("modules").unwrap();
    let echo = modules.get("functions").and_then(|functions| functions.get("own.echo")).unwrap();
    let expected = map! {
        "doc" => "Return a value.", "args" => list!["value", "times"], "defaults" => list![1],
        "varargs" => true, "kwargs" => true,
    };
    assert_eq!(echo, &Value::from(expected));
    let errors = modules.get("errors").unwrap();
    let error = |stem: &str| errors.get(stem).unwrap().to_string();
    assert_eq!(error("broken"), "No module named 'no_such_thing'");
    assert!(error("unwilling").ends_with("__virtual__ returned False: no such program"));
}

#[test]
fn a_call_does_not_evict_its_own_data() {
    let mut fixture = fixture();
    let process = fixture.plain("own.pid").unwrap();
    for n in 0..40 {
        // Each call gets a new second mapping, and the same first one.
        fixture.data.truncate(1);
        fixture.data.push(("low", Arc::new(map! {"n" => n})));
        assert_eq!(fixture.plain("own.pid"), Ok(process.clone()));
    }
}

#[test]
fn grains_are_collected() {
    let fixture = fixture();
    fs::create_dir(fixture.path("grains")).unwrap();
    let own = "def rack():\n    return {'rack': 4}\ndef bad(grains):\n    return {'x': grains['os'] + 1}\n";
    fs::write(fixture.path("grains/own.py"), own).unwrap();
    let grains = fixture.call_in("grains", "", Args::default(), None, &brine()).unwrap();
    assert_eq!(grains.get("grains"), Some(&Value::from(map! {"rack" => 4})));
    assert!(
        grains.get("errors").and_then(|errors| errors.get("own.bad")).unwrap().to_string().starts_with("TypeError")
    );
}

#[test]
fn missing_interpreters_are_named() {
    let fixture = with_settings(Settings::read(&map! {"venv" => "/nonexistent"}.into()).unwrap());
    assert_eq!(
        fixture.error("own.list"),
        "Python modules cannot run: '/nonexistent/bin/python3' is not installed; install Python 3.9 or later, or name it \
         in 'python_host'"
    );
}

#[test]
fn files_writable_by_other_users_are_not_loaded() {
    use std::os::unix::fs::PermissionsExt;
    let fixture = fixture();
    let find = || Files::find(&[("modules", fixture.path("modules"))]).of("modules").len();
    assert_eq!(find(), 3);
    fs::set_permissions(fixture.path("modules/broken.py"), fs::Permissions::from_mode(0o666)).unwrap();
    assert_eq!(find(), 2);
    fs::set_permissions(fixture.path("modules"), fs::Permissions::from_mode(0o777)).unwrap();
    assert_eq!(find(), 0);
}

#[test]
fn the_option_is_validated() {
    for (option, message) in [
        (map! {"idle" => 0}, "expected 'idle' from 1 to 86400 seconds"),
        (map! {"vnv" => "/x"}, "expected 'path', 'venv' and 'idle', got 'vnv'"),
    ] {
        assert!(Settings::read(&option.into()).unwrap_err().to_string().ends_with(message));
    }
    assert_eq!(Settings::read(&"/x".into()).unwrap().interpreter, Path::new("/x"));
}
