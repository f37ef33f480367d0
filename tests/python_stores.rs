//! Custom stores in Python: of tokens (`eauth_tokens`) and of data by bank and key (`cache`).

use crate::support;

use std::path::Path;
use std::process::Output;

use crate::support::{System, stderr, stdout};
use brine_value::json::{from_json, to_json};
use brine_value::{Map, Value, list};

/// A store in JSON files, by token, as Salt's modules have it.
const TOKENS: &str = r#"
import json
import os

def _path(opts, tok):
    return os.path.join(opts["shelf"], tok)

def mk_token(opts, tdata):
    tok = "tok-%d" % len(os.listdir(opts["shelf"]))
    tdata["token"] = tok
    with open(_path(opts, tok), "w") as file:
        json.dump(tdata, file)
    return tdata

def get_token(opts, tok):
    try:
        with open(_path(opts, tok)) as file:
            return json.load(file)
    except FileNotFoundError:
        return {}

def rm_token(opts, tok):
    os.remove(_path(opts, tok))
    return {}

def list_tokens(opts):
    for name in os.listdir(opts["shelf"]):
        yield name
"#;

/// A driver that stores each key in a JSON file, and fails while the file `away` exists.
const CACHE: &str = r#"
import json
import os
import shutil

__func_alias__ = {"list_": "list"}

def init_kwargs(kwargs):
    return {"base": os.path.join(kwargs["cachedir"], "..", "shelf")}

def _path(base, *names):
    if os.path.exists(os.path.join(base, "away")):
        raise ValueError("the shelf is away")
    return os.path.join(base, *names)

def store(bank, key, data, base):
    path = _path(base, bank, key)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path + ".part", "w") as file:
        json.dump(data, file)
    os.rename(path + ".part", path)

def fetch(bank, key, base):
    try:
        with open(_path(base, bank, key)) as file:
            return json.load(file)
    except FileNotFoundError:
        return {}

def list_(bank, base):
    path = _path(base, bank)
    return sorted(os.listdir(path)) if os.path.isdir(path) else []

def flush(bank, key=None, base=None):
    path = _path(base, bank, *([key] if key else []))
    if not os.path.exists(path):
        return False
    shutil.rmtree(path) if os.path.isdir(path) else os.remove(path)
    return True
"#;

fn all_output(output: &Output) -> String {
    format!("{}{}", stdout(output), stderr(output)).trim().to_owned()
}

fn run(system: &System, words: &[&str]) -> Value {
    let output = system.tool("salt-run", &[&["--out=json"], words].concat());
    from_json(&stdout(&output)).unwrap_or_else(|_| panic!("{words:?}: {}", all_output(&output)))
}

fn json_file(path: &Path) -> Option<Map> {
    from_json(&std::fs::read_to_string(path).ok()?).ok()?.as_map().cloned()
}

#[tokio::test(flavor = "multi_thread")]
async fn custom_token_stores_store_user_tokens() {
    let mut system = System::new(
        "auto_accept: True\nmodule_dirs: [ROOT/own]\neauth_tokens: shelf\nshelf: ROOT/shelf\ntoken_file: ROOT/token\n\
         external_auth:\n  file:\n    ^filename: ROOT/users\n    fred: ['test.*']\n    ann: ['test.*']\n",
    );
    system.write("own/tokens/shelf.py", TOKENS);
    system.write("shelf/keep", "{}");
    system.write("users", "fred:one\nann:two\n");
    system.start_master().await;
    system.start_minion("m1").await;
    let ping = ["--out=txt", "m1", "test.ping"];
    let log_in = |user: &str, password: &str| {
        let who = ["-T", "-a", "file", "--username", user, "--password", password];
        all_output(&system.tool("salt", &[&who[..], &ping].concat()))
    };
    let by_token = || all_output(&system.tool("salt", &[&["-a", "file"][..], &ping].concat()));
    assert_eq!(log_in("fred", "one"), "m1: True", "{}", system.master_log());
    let token = std::fs::read_to_string(system.path("token")).unwrap();
    assert_eq!(token, "tok-1");
    let stored = json_file(&system.path("shelf/tok-1")).unwrap();
    for (name, expected) in [("name", "fred".into()), ("eauth", "file".into()), ("token", Value::from("tok-1"))] {
        assert_eq!(stored.get(name), Some(&expected), "{name}");
    }
    assert_eq!(by_token(), "m1: True");

    // The digest names a token without being one.
    let listed = run(&system, &["auth.list_tokens"]).as_map().unwrap().clone();
    let (digest, about) = listed.iter().next().unwrap();
    assert_eq!((listed.len(), about.get("name")), (1, Some(&"fred".into())));
    assert_eq!(run(&system, &["auth.del_token", &digest.to_string()]), true.into());
    assert!(!system.path("shelf/tok-1").exists());
    let unknown = "Authentication error occurred.";
    assert!(by_token().contains(unknown));

    assert_eq!(log_in("ann", "two"), "m1: True");
    assert_eq!(run(&system, &["auth.del_tokens", "fred"]), 0.into());
    // A token that has expired is refused, and removed.
    let path = system.path("shelf/tok-1");
    let mut expired = json_file(&path).unwrap();
    expired.insert("expire".into(), 1.5.into());
    std::fs::write(&path, to_json(&expired.into())).unwrap();
    assert!(by_token().contains(unknown));
    assert!(!path.exists());

    // Tokens that name other files, or none, are refused. A store that fails authenticates nobody, and its error does
    // not show the token.
    for token in ["../users", "keep", "tok-9"] {
        system.write("token", token);
        assert!(by_token().contains(unknown), "{token}");
    }
    system.write("shelf/tok-bad", "{");
    system.write("token", "tok-bad");
    assert!(by_token().contains(unknown));
    let log = system.master_log();
    assert!(log.contains("the token store of eauth_tokens failed") && !log.contains("tok-bad"), "{log}");
    assert!(
        !log.contains("modules in '_tokens' have no effect") && !log.contains("'eauth_tokens' has no effect"),
        "{log}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn cache_drivers_store_user_tokens() {
    // The second driver removes expired data by itself.
    let second = CACHE
        .replace("def store(bank, key, data, base)", "def store(bank, key, data, base, expires)")
        .replace("json.dump(data, file)", "json.dump(dict(data, for_seconds=expires), file)")
        .replace("\"shelf\")", "\"shelf\", kwargs[\"cluster_id\"])");
    for (driver, more, bank) in
        [("shelf", "", "shelf/tokens"), ("second", "eauth_tokens.cluster_id: blue\n", "shelf/blue/tokens")]
    {
        let mut system = System::new(&format!(
            "auto_accept: True\nmodule_dirs: [ROOT/own]\neauth_tokens.cache_driver: {driver}\n{more}token_file: ROOT/token\n\
             external_auth:\n  file:\n    ^filename: ROOT/users\n    fred: ['test.*']\n",
        ));
        system.write("own/cache/shelf.py", CACHE);
        system.write("own/cache/second.py", &second);
        system.write("users", "fred:one\n");
        std::fs::create_dir(system.path("shelf")).unwrap();
        system.start_master().await;
        system.start_minion("m1").await;
        let ping = ["--out=txt", "m1", "test.ping"];
        let log_in = || {
            let who = ["-T", "-a", "file", "--username", "fred", "--password", "one"];
            all_output(&system.tool("salt", &[&who[..], &ping].concat()))
        };
        let by_token = || all_output(&system.tool("salt", &[&["-a", "file"][..], &ping].concat()));
        assert_eq!(log_in(), "m1: True", "{}", system.master_log());
        let token = std::fs::read_to_string(system.path("token")).unwrap();
        let file = system.path(bank).join(&token);
        let stored = json_file(&file).unwrap();
        let data = if driver == "shelf" {
            let expires = stored.get("_expires").and_then(Value::as_i64).unwrap();
            let data = stored.get("data").and_then(Value::as_map).unwrap().clone();
            assert!(
                matches!(data.get("expire"), Some(Value::Float(at)) if (at - expires as f64).abs() < 2.0),
                "{stored:?}"
            );
            data
        } else {
            assert!(matches!(stored.get("for_seconds"), Some(Value::Int(43_199..=43_200))), "{stored:?}");
            stored.clone()
        };
        for (name, expected) in
            [("name", "fred".into()), ("eauth", "file".into()), ("token", Value::from(token.as_str()))]
        {
            assert_eq!(data.get(name), Some(&expected), "{name}");
        }
        assert_eq!(by_token(), "m1: True");
        assert_eq!(run(&system, &["auth.list_tokens"]).as_map().unwrap().len(), 1);
        // A failing driver authenticates nobody, and its error does not show the token.
        let unknown = "Authentication error occurred.";
        system.write("shelf/blue/away", "");
        system.write("shelf/away", "");
        assert!(by_token().contains(unknown));
        for away in ["shelf/blue/away", "shelf/away"] {
            std::fs::remove_file(system.path(away)).unwrap();
        }
        let log = system.master_log();
        assert!(log.contains("the token store of eauth_tokens failed: ValueError: the shelf is away"), "{log}");
        assert!(!log.contains(&token), "{log}");
        // A token that has expired is refused, and removed; others are revoked.
        let mut expired = data;
        expired.insert("expire".into(), 1.5.into());
        std::fs::write(&file, to_json(&expired.into())).unwrap();
        assert!(by_token().contains(unknown));
        assert!(!file.exists());
        assert_eq!(log_in(), "m1: True");
        assert_eq!(run(&system, &["auth.del_tokens", "fred"]), 1.into());
        assert!(by_token().contains(unknown));
        for token in ["../shelf", "nosuch"] {
            system.write("token", token);
            assert!(by_token().contains(unknown), "{token}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_store_modules_are_logged_and_the_defaults_used() {
    let mut system = System::new(
        "auto_accept: True\neauth_tokens: shelf\ncache: shelf\ntoken_file: ROOT/token\n\
         external_auth:\n  file:\n    ^filename: ROOT/users\n    fred: ['test.*']\n",
    );
    system.write("users", "fred:one\n");
    system.start_master().await;
    system.start_minion("m1").await;
    let words = ["-T", "-a", "file", "--username", "fred", "--password", "one", "--out=txt", "m1", "test.ping"];
    assert_eq!(all_output(&system.tool("salt", &words)), "m1: True");
    let log = system.master_log();
    for (option, kind) in [("eauth_tokens", "_tokens"), ("cache", "_cache")] {
        assert!(log.contains(&format!("option '{option}': there is no module 'shelf' in '{kind}'")), "{log}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn cache_drivers_store_banks_and_copies_of_minion_data() {
    let mut system = System::new("auto_accept: True\nmodule_dirs: [ROOT/own]\ncache: shelf\n");
    system.write("own/cache/shelf.py", CACHE);
    system.write("srv/pillar/top.sls", "base:\n  '*': [app]\n");
    system.write("srv/pillar/app.sls", "port: 80\n");
    std::fs::create_dir(system.path("shelf")).unwrap();
    system.start_master().await;
    system.start_minion("m1").await;
    let shelf = system.path("shelf");
    let copy = |bank: &str| json_file(&shelf.join(bank).join("m1")).unwrap_or_default();
    support::until("the copies of grains and pillar", || {
        copy("grains").get("id") == Some(&"m1".into()) && copy("pillar").get("port") == Some(&80.into())
    })
    .await;
    system.tool("salt", &["m1", "mine.send", "test.echo", "here"]);
    support::until("the copy of the mine", || copy("mine").get("test.echo") == Some(&"here".into())).await;

    assert_eq!(run(&system, &["cache.store", "apps/web", "color", "blue"]), Value::Nil);
    assert_eq!(std::fs::read_to_string(shelf.join("apps/web/color")).unwrap(), "\"blue\"");
    assert_eq!(run(&system, &["cache.fetch", "apps/web", "color"]), "blue".into());
    assert_eq!(run(&system, &["cache.list", "apps"]), list!["web"]);
    assert_eq!(run(&system, &["cache.flush", "apps/web", "color"]), true.into());
    assert_eq!(run(&system, &["cache.flush", "apps/web", "color"]), false.into());
    assert_eq!(run(&system, &["cache.fetch", "apps/web", "color"]), Value::map());
    for words in [&["cache.fetch", "../own/cache", "shelf.py"][..], &["cache.flush", "apps", "../../users"]] {
        let output = all_output(&system.tool("salt-run", words));
        assert!(output.contains("is invalid"), "{words:?}: {output}");
    }

    // A failing driver delays the copies; deleted data is removed from it, too.
    system.write("shelf/away", "");
    system.tool("salt", &["m1", "mine.flush"]);
    let output = all_output(&system.tool("salt-run", &["cache.list", "apps"]));
    assert!(output.contains("the driver of 'cache' failed: ValueError: the shelf is away"), "{output}");
    support::until("the failure is logged", || system.master_log().contains("writing minion data to the driver")).await;
    std::fs::remove_file(system.path("shelf/away")).unwrap();
    support::until("the mine is removed", || !shelf.join("mine/m1").exists()).await;
    assert_eq!(copy("grains").get("id"), Some(&"m1".into()));
}
