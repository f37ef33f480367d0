//! Third-party modules, from the packages `saltext-*` of PyPI, loaded by Brine's loader and by Salt's: both find the
//! same functions with the same parameters and documentation, and their calls have the same results.

use crate::support::salt;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Stdio;

use crate::support::{System, stderr, stdout, within_limit};
use brine_value::{Map, Value, json};

const PACKAGES: [&str; 17] = [
    "saltext-pagerduty==1.0.0",
    "saltext-grafana==1.0.0",
    "saltext-mattermost==1.0.0",
    "saltext-namecheap==1.0.0",
    "saltext-splunk==1.0.0",
    "saltext-helm==1.0.0",
    "saltext-haproxy==1.0.0",
    "saltext-consul==1.1.0",
    "saltext-zabbix==1.0.0",
    "saltext-influxdb==1.0.0",
    "saltext-telegram==1.0.0",
    "saltext-pushover==2.0.0",
    "saltext-mongodb==1.0.0",
    "saltext-redis==1.0.2",
    "saltext-servicenow==1.0.0",
    "saltext-apcups==1.0.0",
    "saltext-freebsd==1.0.0",
];

/// The files whose functions are called, with arguments `x` and without arguments. All are clients of web services;
/// clients of servers that may run on this host, and functions that change the host, are excluded.
const CALLED: &str = "consul consul_mod zabbix zabbix_mod pagerduty pagerduty_util mattermost mattermost_mod namecheap_domains \
                      namecheap_domains_dns namecheap_domains_ns namecheap_ssl namecheap_users splunk splunk_search telegram \
                      telegram_mod pushover_notify pushover pushover_mod servicenow grafana4 grafana4_mod";

/// Describes and calls the functions of custom modules, with either loader: loaded as an execution module it handles
/// execution functions, as a state module states.
const PROBE: &str = r#"
import inspect
import json
import re
import threading

CALLED = "@CALLED@".split()
TIMEOUT = 20


def _stem(function):
    name = getattr(inspect.unwrap(function), "__module__", "") or ""
    own = re.fullmatch(r"brine_custom_(?:modules|states)_(.*)|salt\.loaded\.ext\.(?:module|states)s?\.(.*)", name)
    return own and (own.group(1) or own.group(2))


def _plain(value):
    text = json.dumps(value, default=repr, sort_keys=True)
    return re.sub(r"0x[0-9a-f]{6,}", "0x", re.sub(r"brine_custom_(modules|states)_|salt\.loaded\.ext\.\w+\.", "", text))


def _call(function, words, into, key):
    try:
        into[key] = _plain(function(*words))
    except BaseException as error:
        into[key] = _plain([type(error).__name__, str(error)])


def _probe(functions):
    found, threads = {}, []
    for name in sorted(functions):
        try:
            function = functions[name]
        except KeyError:
            continue
        stem = _stem(function)
        if not stem or stem == "loader_probe":
            continue
        parameters = inspect.signature(inspect.unwrap(function)).parameters.values()
        about = found[name] = {
            "file": stem, "parameters": [str(one) for one in parameters], "doc": inspect.getdoc(inspect.unwrap(function)),
        }
        if stem not in CALLED:
            continue
        needed = sum(one.default is one.empty and one.kind is one.POSITIONAL_OR_KEYWORD for one in parameters)
        for key, words in (("called", ["x"] * needed), ("without", [])):
            thread = threading.Thread(target=_call, args=(function, words, about, key), daemon=True)
            thread.start()
            thread.join(TIMEOUT)
    return json.dumps(found)


def functions():
    return _probe(__salt__)


def run(name):
    return {"name": name, "result": True, "changes": {}, "comment": _probe(__states__)}
"#;

/// Copies the modules of installed packages below a directory, by type. Returns their number.
fn copy_modules(packages: &Path, own: &Path) -> usize {
    let mut count = 0;
    for package in fs::read_dir(packages).unwrap().flatten() {
        for kind in ["modules", "states"] {
            fs::create_dir_all(own.join(kind)).unwrap();
            for file in fs::read_dir(package.path().join(kind)).into_iter().flatten().flatten() {
                let name = file.file_name();
                if Path::new(&name).extension().is_some_and(|extension| extension == "py") && name != "__init__.py" {
                    fs::copy(file.path(), own.join(kind).join(name)).unwrap();
                    count += 1;
                }
            }
        }
    }
    count
}

fn parsed(text: &str) -> Map {
    json::from_json(text).unwrap_or_else(|error| panic!("{error}: {text}")).as_map().unwrap().clone()
}

/// Returns the text of the only state in the result of `state.single`.
fn comment(result: &Value) -> String {
    let states = result.as_map().unwrap_or_else(|| panic!("{result}"));
    states.values().next().unwrap().get("comment").unwrap().to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn third_party_modules_behave_the_same_with_both_loaders() {
    let venv = salt::environment_with("saltext-loaders", "3008.5", &PACKAGES);
    let mut system = System::new("auto_accept: True\n");
    let libraries = fs::read_dir(venv.join("lib")).unwrap().flatten().next().unwrap().path();
    let files = copy_modules(&libraries.join("site-packages/saltext"), &system.path("own"));
    assert!(files >= 40, "{files} files");
    let probe = PROBE.replace("@CALLED@", CALLED);
    system.write("own/modules/loader_probe.py", &probe);
    system.write("own/states/loader_probe.py", &probe);
    // No request leaves the host: all go to a proxy that does not exist.
    let nowhere = "http://127.0.0.1:1";
    let python = venv.join("bin/python");
    let script = format!(
        "#!/bin/sh\nexport http_proxy={nowhere} https_proxy={nowhere} HTTPS_PROXY={nowhere}\nexec {} \"$@\"\n",
        python.display()
    );
    system.write("python", &script);
    fs::set_permissions(system.path("python"), fs::Permissions::from_mode(0o755)).unwrap();
    let own = system.path("own").display().to_string();
    let options = format!(
        "module_dirs: ['{own}']\nbackend: requests\nconsul.url: {nowhere}\nzabbix.url: {nowhere}\nzabbix.user: x\nzabbix.password: x\n"
    );
    system.start_master().await;
    system.configure_minion("m1", &format!("{options}python_host: {{path: ROOT/python}}\n"));
    let mut events = system.events("salt/minion/").await;
    system.spawn_minion("m1");
    events.until("salt/minion/m1/start").await;
    let brine = |words: &[&str]| {
        let words = [&["-t", "120", "m1"], words].concat();
        system.salt_json(&words).get("m1").cloned().unwrap_or_else(|| panic!("{words:?}"))
    };
    let own_functions = brine(&["loader_probe.functions"]).to_string();
    let own_states = comment(&brine(&["state.single", "loader_probe.run", "name=x"]));

    let at = system.path("salt").display().to_string();
    system.write(
        "salt/minion",
        &format!("id: m1\nroot_dir: {at}\nfile_client: local\nenable_gpu_grains: False\nenable_fqdns_grains: False\n{options}"),
    );
    let salt = |words: &[&str]| {
        let mut command = within_limit(&venv.join("bin/salt-call").display().to_string());
        command.args(["-c", &at, "--local", "--out=json"]).args(words).stdin(Stdio::null());
        command.envs([("http_proxy", nowhere), ("https_proxy", nowhere), ("HTTPS_PROXY", nowhere)]);
        let output = command.output().unwrap();
        let answer =
            json::from_json(&stdout(&output)).unwrap_or_else(|_| panic!("{}{}", stdout(&output), stderr(&output)));
        answer.get("local").cloned().unwrap_or_else(|| panic!("{answer}"))
    };
    for (kind, ours, theirs, least, least_called) in [
        ("modules", own_functions, salt(&["loader_probe.functions"]).to_string(), 200, 100),
        ("states", own_states, comment(&salt(&["state.single", "loader_probe.run", "name=x"])), 50, 5),
    ] {
        let (ours, theirs) = (parsed(&ours), parsed(&theirs));
        let called = theirs.values().filter(|about| about.get("called").is_some()).count();
        assert!(theirs.len() >= least && called >= least_called, "{kind}: {} functions, {called} called", theirs.len());
        let mut differ = BTreeMap::new();
        for name in ours.keys().chain(theirs.keys()) {
            if ours.get(name) != theirs.get(name) {
                let text_of = |of: &Map| of.get(name).map_or_else(|| "nothing".to_owned(), ToString::to_string);
                differ
                    .insert(name.to_string(), format!("\n  Brine: {}\n  Salt:  {}", text_of(&ours), text_of(&theirs)));
            }
        }
        assert!(differ.is_empty(), "{kind}: {} of {} differ: {differ:#?}", differ.len(), theirs.len());
    }
}
