//! Renderers that run in Python (`pyobjects`, `pydsl`, `mako`, ...), custom renderers, and `stateconf` in state runs,
//! pillar and `file.managed`.

use std::path::Path;
use std::process::{Command, Output};

use brine_value::json::from_json;
use brine_value::{Value, list, map, msgpack};
use tempfile::TempDir;

/// A masterless minion with a tree of files, whose Python has the packages of the renderers.
struct Minion(TempDir);

impl Minion {
    fn new(files: &[(&str, &str)]) -> Self {
        let directory = TempDir::new().unwrap();
        let root = directory.path();
        let python =
            std::env::var("BRINE_TEST_PYTHON").expect("run the tests by tests/run, which installs the packages");
        let venv = Path::new(&python).parent().unwrap().parent().unwrap().display();
        let config = format!(
            "id: m1\nroot_dir: {0}\ncachedir: {0}/cache\nfile_roots:\n  base: [{0}/tree]\npillar_roots:\n  base: [{0}/pillar]\n\
             log_file: ''\npython_host: {{venv: {venv}}}\ngrains: {{os_family: Debian, role: web}}\n",
            root.display()
        );
        std::fs::write(root.join("minion"), config).unwrap();
        for (path, text) in files {
            let path = root.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text.replace("ROOT", &root.display().to_string())).unwrap();
        }
        Minion(directory)
    }

    fn run(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_brine"));
        command.args(["salt-call", "--local", "--out=json", "-c"]).arg(self.0.path()).args(arguments);
        command.output().unwrap()
    }

    fn call(&self, arguments: &[&str]) -> Value {
        let output = self.run(arguments);
        let text = String::from_utf8_lossy(&output.stdout);
        let value: Value = from_json(&text).unwrap_or_else(|error| {
            panic!("{arguments:?}: {error}: {text}{}", String::from_utf8_lossy(&output.stderr))
        });
        value.get("local").cloned().unwrap()
    }

    fn rendered(&self, file: &str) -> Value {
        self.call(&["slsutil.renderer", &format!("salt://{file}")])
    }

    fn error(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert!(!output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stdout));
        String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
    }
}

const PYOBJECTS: &str = r#"#!pyobjects
include('http', 'ssh')
with Pkg.installed("nginx"):
    Service.running("nginx", enable=True)
    with Service("nginx", "watch_in"):
        File.managed("/etc/x.conf", user='root', mode='0444', source='salt://nginx/mysite.conf')
Service.running(extend('apache'), watch=[File('/etc/httpd.conf')])
User.present("u", require=Pkg("a"), watch_in=[Cmd("z"), {"file": "q"}])
Group.present("g", name="staff")
"#;

const CHOICE: &str = r"#!pyobjects
from salt://map.sls import A as B, f
import salt://map.sls

class Samba(Map):
    merge = 'web'
    priority = ('os_family', 'role')
    class Web:
        __grain__ = 'role'
        __match__ = 'web'
        service = 'smbd'
    class Debian:
        server = 'samba'
        service = 'samba'
    class RHEL:
        __match__ = 'RedHat'
        server = 'other'

Cmd.run(B.name, cwd=f(2), x=map.A.name, s=Samba.service, v=Samba.server, p=Samba.port, e=salt.test.echo('hi'),
        g=grains('role'), d=pillar('no:such', 'default'))
";

const PYDSL: &str = r"#!pydsl
include('plain', delayed=True)
extend(state('apache').service.watch(file='/etc/httpd.conf'))
__pydsl__.set(ordered=True)
helper = include('shared')
web = state('web')
web.pkg.installed()
web.service('running', 'nginx', enable=True).require(web.pkg, pkg='php')
helper.greet('there')
";

#[test]
fn pyobjects_and_pydsl_declare_states() {
    let minion = Minion::new(&[
        ("tree/objects.sls", PYOBJECTS),
        ("tree/choice.sls", CHOICE),
        ("tree/map.sls", "class A(Map):\n    name = 'nn'\ndef f(x):\n    return '/%s' % x\n"),
        ("tree/dsl.sls", PYDSL),
        ("tree/shared.sls", "#!pydsl\ndef greet(name):\n    state('hi').cmd.run('echo %s' % name)\n"),
        ("tree/wrong.sls", "#!pyobjects\nFile.nosuch('a')\n"),
        ("tree/raises.sls", "#!py\ndef run():\n    raise ValueError('no such thing')\n"),
        ("tree/twice.sls", "#!pydsl\nstate('a').file.managed()\nstate('a').file.absent()\n"),
        ("tree/run.sls", "#!pyobjects\nTest.nop('a')\nwith Test.succeed_with_changes('b'):\n    Test.nop('c')\n"),
        ("pillar/top.sls", "base:\n  '*': [web]\n"),
        ("pillar/web.sls", "web: {port: 9}\n"),
    ]);
    let expected = r#"{"nginx": {"pkg.installed": [], "service.running": [{"enable": true}, {"require": [{"pkg": "nginx"}]}]},
        "/etc/x.conf": {"file.managed": [{"mode": "0444"}, {"require": [{"pkg": "nginx"}]},
            {"source": "salt://nginx/mysite.conf"}, {"user": "root"}, {"watch_in": [{"service": "nginx"}]}]},
        "u": {"user.present": [{"require": [{"pkg": "a"}]}, {"watch_in": [{"cmd": "z"}, {"file": "q"}]}]},
        "g": {"group.present": [{"name": "staff"}]},
        "include": ["http", "ssh"], "extend": {"apache": {"service.running": [{"watch": [{"file": "/etc/httpd.conf"}]}]}}}"#;
    assert_eq!(minion.rendered("objects.sls"), from_json(expected).unwrap());
    let expected = r#"{"nn": {"cmd.run": [{"cwd": "/2"}, {"d": "default"}, {"e": "hi"}, {"g": "web"}, {"p": 9},
        {"s": "smbd"}, {"v": "samba"}, {"x": "nn"}]}}"#;
    assert_eq!(minion.rendered("choice.sls"), from_json(expected).unwrap());
    let expected = r#"{"include": [{"base": "plain"}], "extend": {"apache": {"service": [{"watch": [{"file": "/etc/httpd.conf"}]}]}},
        "web": {"pkg": ["installed"], "service": ["running", {"require": [{"pkg": "web"}]}, {"name": "nginx"}, {"enable": true},
            {"require": [{"pkg": "web"}]}, {"require": [{"pkg": "php"}]}]},
        "hi": {"cmd": ["run", {"require": [{"service": "web"}]}, {"name": "echo there"}]}}"#;
    assert_eq!(minion.rendered("dsl.sls"), from_json(expected).unwrap());
    let results = minion.call(&["state.sls", "run"]);
    assert_eq!(results.as_map().unwrap().len(), 3, "{results}");
    for (file, part) in [
        ("wrong", "no function 'nosuch'"),
        ("twice", "has two functions of file"),
        ("raises", "'base:raises' failed: ValueError: no such thing"),
    ] {
        let error = minion.error(&["state.sls", file]);
        assert!(error.contains(part), "{error}");
    }
}

/// `cmd.call` of functions of the file, with results of each kind.
const CALLS: &str = r"#!pydsl
def add(a, b=0):
    return __salt__['test.echo'](a + b)
def fail():
    raise ValueError('no such thing')
def state_of():
    return {'result': True, 'changes': {'did': 'it'}, 'comment': 'done'}
state('sum').cmd.call(add, 1, b=2)
state('nothing').cmd.call(add, 0)
state('text').cmd.call(add, 'a', b='b')
state('mapping').cmd.call(state_of)
state('error').cmd.call(fail)
state('waits').cmd.wait_call(add, 1).watch(cmd='sum')
state('idle').cmd.wait_call(add, 1)
";

#[test]
fn cmd_call_calls_functions_of_python_sls_files() {
    let minion = Minion::new(&[
        ("tree/calls.sls", CALLS),
        (
            "tree/py.sls",
            "#!py\ndef run():\n    return {'p': {'cmd.call': [{'func': lambda x: x * 2}, {'args': [4]}]}}\n",
        ),
        ("tree/plain.sls", "q:\n  cmd.call:\n    - func: os.system\n    - args: [x]\n"),
        ("tree/forged.sls", "q:\n  cmd.call:\n    - func: {__python_function__: '00'}\n"),
    ]);
    let results = minion.call(&["state.sls", "calls"]);
    let of = |results: &Value, id: &str| {
        let states = results.as_map().unwrap_or_else(|| panic!("{results}"));
        let state = states.iter().find(|(key, _)| key.to_string().contains(&format!("_|-{id}_|-")));
        state.unwrap_or_else(|| panic!("{id}: {results}")).1.clone()
    };
    for (id, result, changes, comment) in [
        ("sum", true, map! {"retval" => 3}, ""),
        ("nothing", false, map! {"retval" => 0}, ""),
        ("text", true, map! {"retval" => "ab"}, "ab"),
        ("mapping", true, map! {"did" => "it"}, "done"),
        ("waits", true, map! {"retval" => 1}, ""),
        ("idle", true, map! {}, ""),
    ] {
        let state = of(&results, id);
        let actual = ["result", "changes", "comment"].map(|field| state.get(field).cloned().unwrap_or_default());
        assert_eq!(actual, [result.into(), changes.into(), comment.into()], "{id}: {state}");
    }
    let failed = of(&results, "error").to_string();
    assert!(failed.contains("ValueError: no such thing"), "{failed}");
    let doubled = of(&minion.call(&["state.sls", "py"]), "p");
    assert_eq!(doubled.get("changes"), Some(&map! {"retval" => 8}.into()), "{doubled}");
    let tested = of(&minion.call(&["state.sls", "py", "test=True"]), "p");
    assert_eq!((tested.get("result"), tested.get("changes")), (Some(&Value::Nil), Some(&Value::map())), "{tested}");
    for (file, part) in [("plain", "func is invalid: expected a function"), ("forged", "the function no longer exists")]
    {
        let refused = of(&minion.call(&["state.sls", file]), "q").to_string();
        assert!(refused.contains(part), "{refused}");
    }
}

/// Between the calls, one state takes longer than the idle time of the Python process, and another one reloads modules.
const LATE: &str = r"#!pydsl
def pid():
    import os
    return str(os.getpid())
state('before').cmd.call(pid)
state('sleep 2.5').cmd.run()
state('modules').module.run(**{'saltutil.refresh_modules': []})
state('after').cmd.call(pid)
";

#[test]
fn functions_of_sls_files_exist_until_the_run_ends() {
    let minion = Minion::new(&[("tree/late.sls", LATE)]);
    let config = minion.0.path().join("minion");
    let text = std::fs::read_to_string(&config).unwrap().replace("{venv:", "{idle: 1, venv:");
    std::fs::write(&config, text).unwrap();
    let results = minion.call(&["state.sls", "late"]);
    let states = results.as_map().unwrap_or_else(|| panic!("{results}"));
    assert!(states.values().all(|state| state.get("result") == Some(&true.into())), "{results}");
    let pids: Vec<&Value> = states.values().filter_map(|state| state.get("changes")?.get("retval")).collect();
    assert!(pids.len() == 2 && pids[0] == pids[1], "{results}");
}

#[test]
fn python_packages_render_templates_and_data() {
    let minion = Minion::new(&[
        (
            "tree/mako.sls",
            "#!mako|yaml\n<%include file=\"part.mako\"/>\n<%namespace name=\"lib\" file=\"lib/names.mako\"/>\n\
             % for name in ['a', 'b']:\n${name}: ${grains['role']} ${lib.full(name)} ${salt['test.echo'](1)}\n% endfor\n",
        ),
        ("tree/part.mako", "part: ${sls}\n"),
        ("tree/lib/names.mako", "<%def name=\"full(name)\">${name}.example</%def>"),
        (
            "tree/genshi.xml",
            "<r xmlns:py=\"http://genshi.edgewall.org/\" py:attrs=\"{'a': grains['role']}\">${1 + 1}</r>",
        ),
        ("tree/cheetah.tmpl", "#for $i in [1, 2]\n$i $grains['role']\n#end for\n"),
        ("tree/wempy.tmpl", "{{for i in [1, 2]:}}{{=i}} {{=grains['role']}}\n{{pass}}"),
        ("tree/data.sls", "#!hjson\n{\n  a: text without quotes\n  b: [1, 2]\n}\n"),
        ("tree/mixed.sls", "#!jinja|hjson\n{a: {{ 1 + 1 }}\n}\n"),
        ("tree/undefined.sls", "#!mako|yaml\na: ${nothing}\n"),
        ("tree/unknown.sls", "#!nosuch|yaml\na: 1\n"),
        (
            "tree/files.sls",
            "ROOT/genshi:\n  file.managed: [{source: 'salt://genshi.xml'}, {template: genshi}]\n\
             ROOT/cheetah:\n  file.managed: [{source: 'salt://cheetah.tmpl'}, {template: cheetah}]\n\
             ROOT/wempy:\n  file.managed: [{source: 'salt://wempy.tmpl'}, {template: wempy}]\n\
             ROOT/mako:\n  file.managed: [{contents: '${more}'}, {template: mako}, {context: {more: given}}]\n\
             ROOT/py:\n  file.managed: [{source: 'salt://py.py'}, {template: py}, {context: {more: given}}]\n",
        ),
        ("tree/py.py", "def run():\n    return context['more'] + __grains__['role']\n"),
        ("pillar/top.sls", "base:\n  '*': [web]\n"),
        ("pillar/web.sls", "#!mako|yaml\nfrom_mako: ${grains['role']}\n"),
    ]);
    assert_eq!(
        minion.rendered("mako.sls"),
        map! {"part" => Value::Nil, "a" => "web a.example 1", "b" => "web b.example 1"}.into()
    );
    assert_eq!(minion.rendered("data.sls"), map! {"a" => "text without quotes", "b" => list![1, 2]}.into());
    assert_eq!(minion.rendered("mixed.sls"), map! {"a" => 2}.into());
    let compared = "string={{ pillar['from_mako'] == 'web' }}";
    assert_eq!(minion.call(&["slsutil.renderer", compared]), true.into());
    minion.call(&["state.sls", "files"]);
    for (file, text) in [
        ("genshi", "<r a=\"web\">2</r>"),
        ("cheetah", "1 web\n2 web\n"),
        ("wempy", "1 web\n2 web\n"),
        ("mako", "given"),
        ("py", "givenweb"),
    ] {
        let made = std::fs::read_to_string(minion.0.path().join(file)).unwrap();
        assert_eq!(made.trim_end(), text.trim_end(), "{file}");
    }
    for (file, part) in [("undefined", "'nothing' is not defined"), ("unknown", "nosuch|yaml")] {
        let error = minion.error(&["state.sls", file]);
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn msgpack_declares_states_and_pillar() {
    let minion = Minion::new(&[("pillar/top.sls", "base:\n  '*': [packed]\n")]);
    for (file, data) in [
        ("tree/packed.sls", map! {"id" => map! {"test.nop" => list![map! {"name" => "packed"}]}}),
        ("pillar/packed.sls", map! {"key" => "gr\u{fc}n"}),
    ] {
        let path = minion.0.path().join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, [b"#!msgpack\n", &msgpack::pack(&data.into())[..]].concat()).unwrap();
    }
    let results = minion.call(&["state.sls", "packed"]);
    let names: Vec<_> = results.as_map().unwrap().values().map(|result| result.get("name").cloned()).collect();
    assert_eq!(names, [Some("packed".into())]);
    assert_eq!(minion.call(&["slsutil.renderer", "string={{ pillar['key'] == 'gr\u{fc}n' }}"]), true.into());
    assert_eq!(minion.rendered("packed.sls").get("id").map(Value::is_truthy), Some(true));
}

#[test]
fn custom_renderers_work_in_a_pipe() {
    let minion = Minion::new(&[
        (
            "tree/_renderers/lines.py",
            "def render(template, saltenv='base', sls='', argline='', **kwargs):\n    text = template.read()\n\
             \x20   pairs = [line.split(argline or '=') for line in text.split('\\n') if line]\n\
             \x20   return {key: {'test.nop': [{'name': value + saltenv}]} for key, value in pairs}\n",
        ),
        ("tree/_renderers/broken.py", "import no_such_package\ndef render(template, **kwargs):\n    return {}\n"),
        ("tree/states.sls", "#!jinja|lines :\n{% for n in [1, 2] %}\ns{{ n }}:v{{ n }}\n{% endfor %}\n"),
        ("tree/other.sls", "#!broken\na\n"),
    ]);
    minion.call(&["saltutil.sync_renderers", "saltenv=base"]);
    let results = minion.call(&["state.sls", "states"]);
    let names: Vec<String> =
        results.as_map().unwrap().values().map(|result| result.get("name").unwrap().to_string()).collect();
    assert_eq!(names, ["v1base", "v2base"]);
    let error = minion.error(&["state.sls", "other"]);
    assert!(error.contains("No module named 'no_such_package'"), "{error}");
    let listed = minion.call(&["sys.list_renderers"]);
    for name in ["mako", "stateconf", "yamlex"] {
        assert!(listed.as_list().unwrap().contains(&name.into()), "{listed}");
    }
}

#[test]
fn stateconf_settings_pass_from_including_to_included_files() {
    let minion = Minion::new(&[
        (
            "tree/top_level.sls",
            "#!stateconf -o yaml . jinja\ninclude:\n  - web.nginx\nextend:\n  web.nginx::params:\n    stateconf.set:\n\
             \x20     - port: 8080\n.last:\n  test.nop:\n    - require:\n      - stateconf: web.nginx::goal\n",
        ),
        (
            "tree/web/nginx.sls",
            "#!stateconf\n.params:\n  stateconf.set:\n    - port: 80\n    - host: h\n# --- end of state config ---\n\
             .show:\n  test.succeed_with_changes:\n    - name: port {{ params.port }} of {{ params.host }}\n",
        ),
    ]);
    let results = minion.call(&["state.sls", "top_level"]);
    let results = results.as_map().unwrap();
    let mut names: Vec<(i64, String)> = results
        .values()
        .map(|result| (result.get("__run_num__").unwrap().as_i64().unwrap(), result.get("name").unwrap().to_string()))
        .collect();
    names.sort();
    let position = |part: &str| names.iter().position(|(_, name)| name == part).unwrap_or_else(|| panic!("{names:?}"));
    assert!(position("port 8080 of h") < position("last"), "{names:?}");
}
