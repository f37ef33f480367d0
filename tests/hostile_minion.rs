//! Forbidden requests of an accepted minion are refused, logged and counted.

use crate::support;

use std::sync::Arc;

use crate::support::{System, stdout};
use brine_agent::channel::Channel;
use brine_value::{Map, Value, list, map};

const SECRET: &str = "nobody's business";

/// Starts a master with a secret beside its file roots, and a minion with each cipher.
async fn world(extra: &str) -> (System, Vec<Arc<Channel>>) {
    let system = System::start(extra).await;
    system.write("srv/secret", SECRET);
    system.write("srv/salt/open.txt", "open");
    system.write("srv/salt/sub/one.txt", "one");
    std::os::unix::fs::symlink(system.path("srv"), system.path("srv/salt/out")).unwrap();
    std::os::unix::fs::symlink(system.path("srv/secret"), system.path("srv/salt/leak.txt")).unwrap();
    let mut channels = Vec::new();
    for cipher in ["aes-256-gcm", "aes-192-cbc-hmac"] {
        let channel = system.channel(&format!("rogue-{cipher}"), cipher);
        channel.authenticate().await.unwrap();
        channels.push(channel);
    }
    (system, channels)
}

#[tokio::test(flavor = "multi_thread")]
async fn no_request_for_files_leaves_the_file_roots() {
    let (system, channels) = world("fileserver_followsymlinks: False\n").await;
    let root = system.path("").display().to_string();
    let absolute = format!("{root}/srv/secret");
    let paths = [
        "../secret",
        "sub/../../secret",
        &absolute,
        "out/secret",
        "leak.txt",
        "./../secret",
        "..\\secret",
        "x\0/../../secret",
        "|../secret",
    ];
    let environments = ["base", "../..", "..", "/", "__env__", "\0"];
    for channel in &channels {
        for command in ["_serve_file", "_file_hash", "_file_hash_and_stat", "_file_find"] {
            for (path, saltenv) in paths.iter().flat_map(|path| environments.iter().map(move |env| (path, env))) {
                let load = map! {"cmd" => command, "path" => *path, "saltenv" => *saltenv, "loc" => 0};
                // No reply is as acceptable as an empty one.
                let Ok(answer) = channel.request(load).await else { continue };
                let text = answer.to_string();
                assert!(!text.contains(SECRET) && !text.contains("hsum"), "{command} {path} {saltenv}: {text}");
                let file = answer.get("path").map(ToString::to_string).unwrap_or_default();
                assert!(command != "_file_find" || file.is_empty(), "{path} {saltenv}: {file}");
            }
        }
        for command in ["_file_list", "_dir_list", "_file_list_emptydirs", "_symlink_list"] {
            for prefix in ["..", "../..", "/", &absolute, "out", "\0"] {
                for saltenv in environments {
                    let load = map! {"cmd" => command, "prefix" => prefix, "saltenv" => saltenv};
                    let Ok(answer) = channel.request(load).await else { continue };
                    assert!(
                        !answer.to_string().contains("secret") || command == "_symlink_list",
                        "{command} {prefix} {saltenv}: {answer}"
                    );
                }
            }
        }
        let good = map! {"cmd" => "_serve_file", "path" => "open.txt", "saltenv" => "base", "loc" => 0};
        let answer = channel.request(good).await.unwrap();
        assert_eq!(answer.get("data").and_then(Value::as_bytes), Some(&b"open"[..]), "{answer}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn files_pushed_by_minions_stay_in_their_directory() {
    let (system, channels) = world("file_recv: True\n").await;
    for channel in &channels {
        for path in [
            list!["..", "..", "escaped"],
            list!["/etc", "escaped"],
            list!["a/../../../escaped"],
            list!["a", "", "..", "escaped"],
            list!["a\0b"],
            list!["."],
            Value::from("../escaped"),
        ] {
            let load =
                map! {"cmd" => "_file_recv", "path" => path.clone(), "loc" => 0, "data" => b"x".to_vec(), "size" => 1};
            let answer = channel.request(load).await;
            assert!(!matches!(answer, Ok(Value::Bool(true))), "{path}: {answer:?}");
        }
        let load = map! {"cmd" => "_file_recv", "path" => list!["etc", "mine"], "loc" => 0, "data" => b"mine".to_vec(), "size" => 4};
        assert_eq!(channel.request(load).await.unwrap(), Value::Bool(true));
    }
    let mut escaped = Vec::new();
    for entry in walk(&system.path("")) {
        if entry.ends_with("escaped") {
            escaped.push(entry);
        }
    }
    assert_eq!(escaped, Vec::<String>::new());
    assert!(system.counter("brine_requests_refused_total") >= 12);
    assert!(system.master_log().contains("pushed file refused"));
}

fn walk(directory: &std::path::Path) -> Vec<String> {
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        paths.push(entry.path().display().to_string());
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            paths.extend(walk(&entry.path()));
        }
    }
    paths
}

#[tokio::test(flavor = "multi_thread")]
async fn peers_cannot_exceed_their_permissions() {
    let (mut system, channels) = world("allow_minion_key_revoke: False\n").await;
    system.start_minion("web1").await;
    let target = system.path("owned").display().to_string();
    let jid = {
        let report = stdout(&system.tool("salt", &["--async", "web1", "test.echo", SECRET]));
        report.trim().rsplit(' ').next().unwrap().to_owned()
    };
    for channel in &channels {
        let publish = |cmd: &str| {
            map! {"cmd" => cmd, "fun" => "cmd.run", "arg" => list![format!("touch {target}")], "tgt" => "*", "tgt_type" => "glob", "ret" => "", "tmo" => 1, "form" => "clean"}
        };
        let requests: Vec<Map> = vec![
            publish("minion_pub"),
            publish("minion_publish"),
            map! {"cmd" => "minion_runner", "fun" => "key.list_all", "arg" => list![]},
            map! {"cmd" => "pub_ret", "jid" => &jid},
            map! {"cmd" => "_mine_get", "tgt" => "*", "fun" => "test.ping", "tgt_type" => "glob"},
            map! {"cmd" => "revoke_auth", "id" => "web1"},
        ];
        for request in requests {
            let answer = channel.request(request.clone()).await;
            let nothing = |value: &Value| !value.is_truthy();
            assert!(answer.as_ref().is_err() || answer.as_ref().is_ok_and(nothing), "{request:?}: {answer:?}");
        }
        // Unknown commands, and those reserved for the master's own tools.
        for cmd in [
            "_prep_auth_info",
            "_send_pub",
            "_send_ssh_pub",
            "__init__",
            "publish",
            "runner",
            "wheel",
            "mk_token",
            "run_func",
            "",
        ] {
            let answer = channel.request(map! {"cmd" => cmd, "fun" => "key.list_all"}).await;
            assert!(
                answer.as_ref().is_err() || answer.as_ref().is_ok_and(|value| !value.is_truthy()),
                "{cmd}: {answer:?}"
            );
        }
        for jid in ["../../../owned", "/owned", "20261121\0", "..", ""] {
            let load = map! {"cmd" => "_return", "jid" => jid, "fun" => "test.ping", "return" => true, "retcode" => 0};
            let answer = channel.request(load).await;
            assert!(!matches!(answer, Ok(Value::Bool(true))), "{jid}: {answer:?}");
        }
    }
    assert!(!system.path("owned").exists());
    assert!(stdout(&system.tool("salt-key", &["-l", "acc"])).contains("web1"), "its key is where it was");
    assert_eq!(system.salt_json(&["web1", "test.ping"]), map! {"web1" => true}.into());
    assert!(system.counter("brine_requests_refused_total") >= 20);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_belongs_to_the_minion_that_began_it() {
    let (mut system, channels) = world("").await;
    system.start_minion("web1").await;
    system.write("srv/pillar/top.sls", "base: {web1: [own]}\n");
    system.write("srv/pillar/own.sls", &format!("word: \"{SECRET}\"\n"));
    for channel in &channels {
        let load = map! {"cmd" => "_pillar", "id" => "web1", "grains" => map! {"id" => "web1"}, "saltenv" => "base"};
        let answer = channel.request(load).await.unwrap();
        assert!(!answer.to_string().contains(SECRET), "{answer}");
    }
    // The minion that owns the pillar still gets it.
    assert!(system.tool("salt", &["web1", "saltutil.refresh_pillar"]).status.success());
    assert_eq!(system.salt_json(&["web1", "pillar.ls"]), map! {"web1" => list!["word"]}.into());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_master_with_one_cipher_refuses_the_other() {
    let system = System::start("ciphers: [aes-256-gcm]\n").await;
    let channel = system.channel("old", "aes-192-cbc-hmac");
    assert!(channel.authenticate().await.is_err());
    assert!(channel.cipher().is_none());
    support::until("the refusal is logged", || system.master_log().contains("offers no cipher")).await;
}
