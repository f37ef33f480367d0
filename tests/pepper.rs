//! The REST API used by pepper, Salt's own command line and library for it, unmodified from PyPI.

use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use crate::support::api::Api;
use crate::support::{stderr, stdout, within_limit};
use regex::Regex;
use serde_json::Value;

const CONFIG: &str = "api_pidfile: api.pid
api_logfile: ''
nodegroups: {web: 'L@m1'}
netapi_enable_clients: [local, local_async, local_batch, local_subset, runner, runner_async, wheel, wheel_async]
external_auth:
  file:
    ^filename: ROOT/users
    fred: ['.*', '@runner', '@wheel', '@jobs']
    ann: [test.ping]
";

const FILES: [(&str, &str); 6] = [
    ("users", "fred:one\nann:two\n"),
    ("lows.json", r#"[{"client": "local", "tgt": "m1", "fun": "test.echo", "arg": ["from a file"]}]"#),
    (
        "srv/salt/mixed.sls",
        "it_works:\n  test.succeed_without_changes: []\nit_fails:\n  test.fail_without_changes: []\n",
    ),
    (
        "srv/salt/fails_on_m2.sls",
        "one:\n  test.configurable_test_state:\n    - changes: False\n    - result: {{ grains.id != 'm2' }}\n",
    ),
    ("srv/pillar/top.sls", "base: {'*': [data]}\n"),
    ("srv/pillar/data.sls", "colour: blue\n"),
];

/// A stand-in for the parts of Salt that pepper uses if Salt is installed: with it, pepper prints each part of an
/// answer by itself.
const OUTPUTTERS: [(&str, &str); 4] = [
    ("outputters/salt/__init__.py", ""),
    ("outputters/salt/loader.py", "def minion_mods(opts):\n    return {}\n"),
    ("outputters/salt/config.py", "def client_config(path):\n    return {'conf_file': path}\n"),
    (
        "outputters/salt/output.py",
        "import json\n\n\ndef display_output(data, out, opts):\n    print(json.dumps({'out': out, 'data': data}))\n",
    ),
];

async fn start(options: &str) -> Api {
    let config = format!("{CONFIG}rest_cherrypy:\n  host: 127.0.0.1\n  port: PORT\n{options}");
    Api::start(&config, &[&FILES[..], &OUTPUTTERS].concat(), &["m1", "m2"]).await
}

fn python() -> PathBuf {
    std::env::var_os("BRINE_TEST_PYTHON").expect("run the tests by tests/run, which installs salt-pepper").into()
}

/// Runs pepper in the system's directory, which is its home, with this environment.
fn pepper(api: &Api, words: &[&str], environment: &[(&str, &str)]) -> Output {
    let mut command = within_limit(python().with_file_name("pepper").to_str().unwrap());
    for name in ["SALTAPI_URL", "SALTAPI_USER", "SALTAPI_PASS", "SALTAPI_EAUTH", "PEPPERRC", "PEPPERCACHE"] {
        command.env_remove(name);
    }
    command.args(words).envs(environment.iter().copied());
    command.env("HOME", api.system.path("")).current_dir(api.system.path("")).stdin(Stdio::null());
    command.output().unwrap()
}

/// Returns the options that name the API and a user.
fn login(api: &Api) -> Vec<String> {
    let words =
        ["-u", &format!("{}/", api.url), "-a", "file", "--username=fred", "--password=one", "--non-interactive"];
    words.map(str::to_owned).to_vec()
}

/// Returns the output of a run, with the values masked that differ between runs.
fn printed(output: &Output) -> Value {
    let text = stdout(output);
    let text = Regex::new(r"\b\d{20}\b").unwrap().replace_all(&text, "<jid>");
    serde_json::from_str(&text).unwrap_or_else(|_| panic!("{text}{}", stderr(output)))
}

fn pong() -> Value {
    serde_json::json!({"return": [{"m1": {"jid": "<jid>", "ret": true, "retcode": 0}}]})
}

/// Variables of the environment of pepper.
type Variables = [(&'static str, &'static str)];

#[tokio::test(flavor = "multi_thread")]
async fn every_mode_of_the_command_line_works() {
    let api = start("  disable_ssl: True\n").await;
    let cases: Vec<Value> = serde_json::from_str(include_str!("pepper/cases.json")).unwrap();
    let outputters = api.system.path("outputters").display().to_string();
    let options = login(&api);
    for case in &cases {
        let words = case["words"].as_array().unwrap().iter().map(|word| word.as_str().unwrap());
        let words: Vec<&str> = options.iter().map(String::as_str).chain(words).collect();
        let environment = [("PYTHONPATH", outputters.as_str())];
        let output = pepper(&api, &words, if case["outputters"] == true { &environment } else { &[] });
        assert_eq!(output.status.code().map(i64::from), case["exit"].as_i64(), "{case} {output:?}");
        if let Some(part) = case["stderr"].as_str() {
            assert!(stderr(&output).contains(part), "{case} {output:?}");
        }
        if let Some(at) = case["at"].as_str() {
            let answer = printed(&output);
            assert_eq!(answer.pointer(at), Some(&case["is"]), "{case} {answer}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn logins_come_from_options_environment_files_and_the_cache() {
    let api = start("  disable_ssl: True\n").await;
    let url = format!("{}/", api.url);
    let file = |eauth: &str| {
        format!(
            "[main]\nSALTAPI_URL={url}\nSALTAPI_USER=fred\nSALTAPI_PASS=one\nSALTAPI_EAUTH={eauth}\n\
                 [weak]\nSALTAPI_URL={url}\nSALTAPI_USER=ann\nSALTAPI_PASS=two\nSALTAPI_EAUTH={eauth}\n"
        )
    };
    let environment =
        [("SALTAPI_URL", url.as_str()), ("SALTAPI_USER", "fred"), ("SALTAPI_PASS", "one"), ("SALTAPI_EAUTH", "file")];
    let ping = ["m1", "test.ping"];
    // Nothing names a user.
    let output = pepper(&api, &[&["--non-interactive"][..], &ping].concat(), &[]);
    assert_eq!((output.status.code(), stderr(&output).contains("SALTAPI_USER required")), (Some(1), true));
    assert_eq!(printed(&pepper(&api, &ping, &environment)), pong());
    let path = api.system.write(".pepperrc", &file("file"));
    assert_eq!(printed(&pepper(&api, &ping, &[])), pong());
    assert_eq!(printed(&pepper(&api, &[&["-p", "weak"][..], &ping].concat(), &[])), pong());
    let refused: [(&[&str], &Variables); 7] = [
        (&["-p", "weak", "m1", "test.version"], &[]),
        (&["--password=other", "m1", "test.ping"], &[]),
        (&["-a", "pam", "m1", "test.ping"], &[]),
        (&["m1", "test.ping"], &[("SALTAPI_PASS", "other")]),
        (&["-p", "weak", "--client=runner", "manage.up"], &[]),
        (&["-p", "weak", "--client=wheel", "key.list_all"], &[]),
        (&["-r", "--password=other", "m1", "test.ping"], &[]),
    ];
    for (words, environment) in refused {
        let output = pepper(&api, words, environment);
        assert_eq!(output.status.code(), Some(1), "{words:?} {output:?}");
        assert!(stderr(&output).contains("Pepper error: Authentication denied"), "{words:?} {output:?}");
    }
    std::fs::rename(&path, api.system.path("other.rc")).unwrap();
    assert_eq!(printed(&pepper(&api, &[&["-c", "other.rc"][..], &ping].concat(), &[])), pong());

    // A cached login is used instead of credentials, for sessions and for tokens.
    let caches: [(&[&str], &str); 2] = [(&[], "session.json"), (&["-r"], "token.json")];
    for (run, cache) in caches {
        let cached = [run, &["-T", "-x", cache, "-u", &url], &ping].concat();
        assert_eq!(printed(&pepper(&api, &cached, &environment)), pong());
        let token: Value = serde_json::from_slice(&std::fs::read(api.system.path(cache)).unwrap()).unwrap();
        assert!(token["expire"].as_f64().unwrap() > token["start"].as_f64().unwrap(), "{token}");
        assert_eq!(printed(&pepper(&api, &[&["--non-interactive"][..], &cached].concat(), &[])), pong());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn fail_if_incomplete_waits_for_every_minion() {
    let mut api = start("  disable_ssl: True\n").await;
    api.system.stop_minion("m2");
    let options = login(&api);
    let runs: [(&[&str], i32); 3] = [(&["*"], 1), (&["m1"], 0), (&["-r", "*"], 1)];
    for (words, exit) in runs {
        let mut all: Vec<&str> = options.iter().map(String::as_str).collect();
        all.extend(["-t", "5", "--fail-if-incomplete"]);
        all.extend(words);
        all.push("test.ping");
        let output = pepper(&api, &all, &[]);
        assert_eq!(output.status.code(), Some(exit), "{words:?} {output:?}");
        let text = stdout(&output);
        assert!(text.contains("\"m1\": true"), "{text}");
        assert_eq!(text.contains("Failed") && text.contains("\"m2\""), exit == 1, "{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn self_signed_certificate_is_usable() {
    let api = start("").await;
    let mut words = login(&api);
    words.extend(["m1", "test.ping"].map(str::to_owned));
    let mut words: Vec<&str> = words.iter().map(String::as_str).collect();
    words.insert(0, "--ignore-ssl-errors");
    assert_eq!(printed(&pepper(&api, &words, &[])), pong());
}

#[tokio::test(flavor = "multi_thread")]
async fn every_method_of_the_library_works() {
    let api = start("  disable_ssl: True\n").await;
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/pepper/library.py");
    let output = within_limit(python().to_str().unwrap()).arg(script).arg(format!("{}/", api.url)).output().unwrap();
    assert!(output.status.success(), "{}{}", stdout(&output), stderr(&output));
}
