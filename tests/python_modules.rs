//! Custom Python modules: synced from the file server, called by the daemon, by `salt-call` and by states.

use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use crate::support::{BRINE, System, stderr, stdout};
use brine_value::{Value, list};

const FILES: [(&str, &str); 9] = [
    (
        "srv/salt/_modules/web.py",
        "'''Our web servers.'''\nimport logging\nlog = logging.getLogger(__name__)\n\n\
         def greet(name, greeting='hello', *more, **kwargs):\n    '''\n    Greet somebody.\n    '''\n\
         \x20   log.warning('greeting %s', name)\n    return '%s %s of %s' % (greeting, name, __grains__['id'])\n\n\
         def echo(text):\n    return __salt__['test.echo'](text)\n\n\
         def shell(command):\n    return __salt__['cmd.run'](command, python_shell=True)\n\n\
         def secret():\n    return __pillar__['secret']\n\n\
         def fails():\n    from salt.exceptions import CommandExecutionError\n    raise CommandExecutionError('no such site')\n\n\
         def breaks():\n    return {}['key']\n\n\
         def leaves():\n    raise SystemExit(3)\n\n\
         def dies():\n    import os\n    os._exit(9)\n\n\
         def prints():\n    print('to standard output')\n    return True\n\n\
         def odd():\n    return {'set': {1}, 'object': object}\n\n\
         def again(count):\n    return count if count == 0 else __salt__['web.again'](count - 1)\n",
    ),
    // A module whose virtual name differs from the file's, and one that overrides a built-in function.
    (
        "srv/salt/_modules/mine_test.py",
        "__virtualname__ = 'test'\n\ndef __virtual__():\n    return __virtualname__\n\ndef ping():\n    return 'pong'\n",
    ),
    (
        "srv/salt/_modules/unwilling.py",
        "def __virtual__():\n    return (False, 'there is no site')\n\ndef run():\n    return 1\n",
    ),
    ("srv/salt/_modules/broken.py", "import no_such_package\n\ndef run():\n    return 1\n"),
    ("srv/salt/_modules/notes.txt", "not a module\n"),
    (
        "srv/salt/_states/site.py",
        "def present(name, port=80):\n    ret = {'name': name, 'changes': {}, 'result': True, 'comment': __env__}\n\
         \x20   if __opts__['test']:\n        ret['result'] = None\n        ret['comment'] = 'would change'\n        return ret\n\
         \x20   ret['changes'] = {'port': port}\n\
         \x20   done = __states__['file.managed'](name, contents=__salt__['web.echo'](str(port)))\n\
         \x20   ret['result'] = done['result']\n    return ret\n\n\
         def mod_watch(name, sfun=None, **kwargs):\n    return {'name': name, 'changes': {'watched': sfun}, 'result': True, 'comment': ''}\n\n\
         def wrong(name):\n    return 'text'\n",
    ),
    (
        "srv/salt/_grains/rack.py",
        "def rack(grains):\n    return {'rack': 'r1', 'rack_of': grains['id']}\n\ndef fails():\n    raise ValueError('no rack')\n",
    ),
    (
        "srv/salt/web.sls",
        "ROOT/site:\n  site.present:\n    - port: 8080\n    - watch:\n      - test: change\nchange:\n  test.succeed_with_changes: []\n\
         {{ salt['web.greet']('sls') | replace(' ', '_') }}:\n  test.nop: []\nrun:\n  module.run:\n    - web.greet:\n      - name: module\n",
    ),
    ("srv/salt/top.sls", "base:\n  '*':\n    - web\n"),
];

async fn fleet() -> System {
    let mut system = System::start("").await;
    let root = system.path("").display().to_string();
    for (path, text) in FILES {
        system.write(path, &text.replace("ROOT", root.trim_end_matches('/')));
    }
    system.write("srv/pillar/top.sls", "base: {'*': [data]}\n");
    system.write("srv/pillar/data.sls", "secret: of the pillar\n");
    system.start_minion("m1").await;
    system
}

fn returned(system: &System, words: &[&str]) -> Value {
    system.salt_json(&[&["m1"], words].concat()).get("m1").cloned().unwrap_or_else(|| panic!("{words:?}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn modules_of_the_file_server_are_synced_and_called() {
    let system = fleet().await;
    let run = |words: &[&str]| returned(&system, words);
    assert_eq!(run(&["web.greet", "you"]), "'web.greet' is not available.".into());
    assert_eq!(run(&["test.ping"]), true.into());

    assert_eq!(
        run(&["saltutil.sync_modules"]),
        list!["modules.broken", "modules.mine_test", "modules.unwilling", "modules.web"]
    );
    assert_eq!(run(&["saltutil.sync_modules"]), list![]);
    assert_eq!(run(&["saltutil.list_extmods"]).get("modules"), Some(&list!["broken", "mine_test", "unwilling", "web"]));

    for (words, expected) in [
        (&["web.greet", "you"][..], Value::from("hello you of m1")),
        (&["web.greet", "you", "greeting=bye"], "bye you of m1".into()),
        (&["web.echo", "text"], "text".into()),
        (&["web.shell", "echo a | tr a b"], "b".into()),
        (&["web.secret"], "of the pillar".into()),
        (&["web.prints"], true.into()),
        (&["web.again", "6"], 0.into()),
        // This function replaces the built-in one of its name; the module's other functions stay.
        (&["test.ping"], "pong".into()),
        (&["test.echo", "text"], "text".into()),
        (&["web.fails"], "ERROR: no such site".into()),
        (
            &["web.greet"],
            "Passed invalid arguments to web.greet: greet() missing 1 required positional argument: 'name'".into(),
        ),
    ] {
        let got = run(words);
        assert!(got == expected || got.to_string().starts_with(&expected.to_string()), "{words:?}: {got}");
    }
    for (words, part) in [
        (&["web.breaks"][..], "KeyError: 'key' (web.py:"),
        (&["web.leaves"], "ended Python with the status 3"),
        (&["web.dies"], "the Python process ended during the call"),
        (&["unwilling.run"], "'unwilling' __virtual__ returned False: there is no site"),
        (&["broken.run"], "No module named 'no_such_package'"),
        (&["web.gret", "you"], "Did you mean 'web.greet'?"),
    ] {
        let got = run(words).to_string();
        assert!(got.contains(part), "{words:?}: {got}");
    }
    // When the Python process has ended, the next call starts a new one.
    assert_eq!(run(&["web.greet", "you"]), "hello you of m1".into());

    assert!(run(&["sys.list_functions", "web"]).as_list().unwrap().contains(&"web.echo".into()));
    assert!(run(&["sys.list_modules"]).as_list().unwrap().contains(&"web".into()));
    assert!(stdout(&system.tool("salt", &["m1", "sys.doc", "web.greet"])).contains("Greet somebody."));
    let spec = run(&["sys.argspec", "web.greet"]).get("web.greet").cloned().unwrap();
    assert_eq!(spec.get("args"), Some(&list!["name", "greeting"]));
    assert_eq!(spec.get("defaults"), Some(&list!["hello"]));

    // A changed file is loaded again, and the functions of a removed one are gone.
    system.write("srv/salt/_modules/web.py", "def greet(name):\n    return 'changed'\n");
    std::fs::remove_file(system.path("srv/salt/_modules/mine_test.py")).unwrap();
    assert_eq!(run(&["saltutil.sync_modules"]), list!["modules.web"]);
    assert_eq!(run(&["web.greet", "you"]), "changed".into());
    assert_eq!(run(&["test.ping"]), true.into());
    assert!(system.minion_log("m1").contains("greeting you"), "the log contains the messages of modules");
}

#[tokio::test(flavor = "multi_thread")]
async fn states_and_grains_are_synced_by_a_highstate() {
    let system = fleet().await;
    let run = |words: &[&str]| returned(&system, words);
    let site = |states: &Value| {
        states
            .as_map()
            .unwrap()
            .iter()
            .find(|(key, _)| key.to_string().starts_with("site_"))
            .map(|(_, one)| one.clone())
    };
    let field = |state: &Value, name: &str| state.get(name).cloned().unwrap();

    // The state itself changes nothing, so the change of the watched state makes it run `mod_watch`.
    let tested = run(&["state.highstate", "test=True"]);
    let state = site(&tested).unwrap_or_else(|| panic!("{tested}"));
    assert_eq!(field(&state, "changes"), brine_value::map! {"watched" => "present"}.into(), "{tested}");
    assert!(!system.path("site").exists());
    let tested = run(&["state.single", "site.present", "/nonexistent/a", "test=True"]);
    let state = site(&tested).unwrap_or_else(|| panic!("{tested}"));
    assert_eq!((field(&state, "result"), field(&state, "comment")), (Value::Nil, "would change".into()), "{tested}");
    let applied = run(&["state.highstate"]);
    let state = site(&applied).unwrap_or_else(|| panic!("{applied}"));
    assert_eq!(field(&state, "result"), true.into(), "{applied}");
    assert_eq!(field(&state, "comment"), "base".into());
    assert_eq!(field(&state, "changes"), brine_value::map! {"port" => 8080}.into());
    assert_eq!(std::fs::read_to_string(system.path("site")).unwrap(), "8080\n");
    let text = applied.to_string();
    for part in ["hello_sls_of_m1", "hello module of m1"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    // The highstate has also synced the grains.
    assert_eq!(run(&["grains.get", "rack"]), "r1".into());
    assert_eq!(run(&["grains.get", "rack_of"]), "m1".into());
    let output = system.tool("salt", &["-G", "rack:r1", "test.ping", "--out=txt"]);
    assert_eq!(stdout(&output), "m1: pong\n", "{}", stderr(&output));
    assert!(system.minion_log("m1").contains("no rack"), "the function that fails is logged");

    let wrong = run(&["state.single", "site.wrong", "x"]).to_string();
    assert!(wrong.contains("Data must be a dictionary type"), "{wrong}");
    assert!(run(&["sys.list_state_functions", "site"]).as_list().unwrap().contains(&"site.present".into()));
}

/// Writes a file below a directory, and creates its parent directories.
fn write_below(directory: &std::path::Path, path: &str, text: &str) {
    let path = directory.join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

/// Runs `salt-call --local` with files below the directory, and returns its output.
fn call(directory: &std::path::Path, words: &[&str]) -> String {
    let mut command = Command::new(BRINE);
    command.args(["salt-call", "--local", "--out=txt", "-c"]).arg(directory).args(words);
    let output = command.output().unwrap();
    format!("{}{}", stdout(&output), stderr(&output))
}

#[test]
fn salt_call_runs_modules_of_its_directories() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().display();
    let write = |path: &str, text: &str| write_below(directory.path(), path, text);
    let minion =
        |more: &str| write("minion", &format!("id: m1\nroot_dir: {root}\nfile_roots: {{base: [{root}/srv]}}\n{more}"));
    write("own/app.py", "def version():\n    return __opts__['id'] + ' 1'\n");
    write(
        "own/states/app.py",
        "def ran(name):\n    return {'name': name, 'result': True, 'changes': {}, 'comment': 'ran'}\n",
    );
    minion(&format!("module_dirs: [{root}/own]\n"));
    assert_eq!(call(directory.path(), &["app.version"]), "local: m1 1\n");
    assert!(call(directory.path(), &["state.single", "app.ran", "x"]).contains("ran"));

    // Without Python, Brine's functions work, and functions of files fail with an error that names `python_host`.
    minion(&format!("module_dirs: [{root}/own]\npython_host: /nonexistent/python3\n"));
    assert_eq!(call(directory.path(), &["test.ping"]), "local: True\n");
    let refused = call(directory.path(), &["app.version"]);
    assert!(refused.contains("install Python 3.9 or later, or name it in 'python_host'"), "{refused}");

    // Files that others can write are not loaded.
    minion(&format!("module_dirs: [{root}/own]\n"));
    let file = directory.path().join("own/app.py");
    std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o666)).unwrap();
    let refused = call(directory.path(), &["app.version"]);
    assert!(refused.contains("not available") && refused.contains("others than its user can write it"), "{refused}");
}

#[test]
fn file_server_names_cannot_traverse_directories() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().display();
    let write = |path: &str, text: &str| write_below(directory.path(), path, text);
    write("minion", &format!("id: m1\nroot_dir: {root}\nfile_roots: {{base: [{root}/srv]}}\n"));
    write("srv/_modules/sub/deep.py", "");
    write("srv/_modules/run.sh", "#!/bin/sh\n");
    assert_eq!(call(directory.path(), &["saltutil.sync_modules"]), "local: ['modules.sub.deep']\n");
    let synced = directory.path().join("var/cache/salt/minion/extmods/modules");
    assert!(synced.join("sub/deep.py").is_file() && !synced.join("run.sh").exists());
    std::fs::remove_dir_all(directory.path().join("srv/_modules")).unwrap();
    call(directory.path(), &["saltutil.sync_modules"]);
    assert!(!synced.join("sub").exists());
}

/// SLS files in Python, of pillar and states, and a template in Python.
const IN_PYTHON: [(&str, &str); 6] = [
    ("srv/pillar/top.sls", "base: {'*': [own]}\n"),
    (
        "srv/pillar/own.sls",
        "#!py\ndef run():\n    return {'of': __grains__['id'], 'shell': __salt__['cmd.run']('echo out')}\n",
    ),
    (
        "srv/salt/site.sls",
        r"#!py
def run():
    states = {}
    for name in ('a', 'b'):
        title = ' '.join([sls, pillar['of'], pillar['shell'], salt['test.echo']('x')])
        states['ROOT/' + name] = {'file.managed': [
            {'source': 'salt://page'}, {'template': 'py'}, {'context': {'title': title}}]}
    return states
",
    ),
    ("srv/salt/page", "def run():\n    return '%s of %s\\n' % (title, grains['id'])\n"),
    ("srv/salt/failing.sls", "#!py\ndef run():\n    raise ValueError('no data')\n"),
    ("srv/salt/both.sls", "include: [site]\nlast:\n  test.nop:\n    - require: [{file: ROOT/b}]\n"),
];

#[tokio::test(flavor = "multi_thread")]
async fn files_in_python_are_rendered() {
    let mut system = System::start("").await;
    let root = system.path("").display().to_string();
    for (path, text) in IN_PYTHON {
        system.write(path, &text.replace("ROOT", root.trim_end_matches('/')));
    }
    system.start_minion("m1").await;
    let run = |words: &[&str]| returned(&system, words);
    let applied = run(&["state.apply", "both"]);
    let states = applied.as_map().unwrap_or_else(|| panic!("{applied}"));
    assert!(states.len() == 3 && states.values().all(|state| state.get("result") == Some(&true.into())), "{applied}");
    assert_eq!(std::fs::read_to_string(system.path("b")).unwrap(), "site m1 out x of m1\n");
    let failing = run(&["state.apply", "failing"]).to_string();
    assert!(failing.contains("Rendering SLS 'base:failing' failed") && failing.contains("no data"), "{failing}");
}

#[test]
fn calls_without_custom_modules_start_no_python() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    // An interpreter that leaves a trace, then runs the real one.
    let (trace, python) = (root.join("started"), root.join("python"));
    std::fs::write(&python, format!("#!/bin/sh\necho >> '{}'\nexec python3 \"$@\"\n", trace.display())).unwrap();
    std::fs::set_permissions(&python, std::fs::Permissions::from_mode(0o755)).unwrap();
    write_below(
        root,
        "tree/plain.sls",
        "a:\n  test.nop: []\n{{ salt['test.echo']('b') }}:\n  test.succeed_with_changes: []\n",
    );
    write_below(root, "tree/top.sls", "base:\n  '*': [plain]\n");
    let config = format!(
        "id: m1\nroot_dir: {0}\ncachedir: {0}/cache\nfile_roots: {{base: [{0}/tree]}}\nlog_file: ''\npython_host: {1}\n",
        root.display(),
        python.display()
    );
    std::fs::write(root.join("minion"), &config).unwrap();
    for words in [
        &["test.ping"][..],
        &["grains.items"],
        &["state.apply"],
        &["state.highstate", "test=True"],
        &["sys.list_functions", "test"],
        &["sys.doc", "test.ping"],
        &["cmd.run", "true"],
        &["no.such"],
        &["saltutil.sync_all"],
    ] {
        call(root, words);
        assert!(!trace.exists(), "{words:?} started Python");
    }
    // A call of a custom module leaves the trace, so the check above is effective.
    write_below(root, "own/modules/web.py", "def version():\n    return 7\n");
    std::fs::write(root.join("minion"), format!("{config}module_dirs: [{}/own]\n", root.display())).unwrap();
    call(root, &["test.ping"]);
    assert!(!trace.exists(), "a file that is not called started Python");
    assert!(call(root, &["web.version"]).contains('7') && trace.exists());
}
