//! Paths, ids and names chosen by peers cannot leave their directories.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::Command;

use brine_crypt::{Cipher, PrivateKey};
use brine_value::{Map, Value, list, map};

use crate::cve::{REFUSED, SECRET, ask, assert_nothing_escaped, is_refusal, salt_call, walk};
use crate::support::raw::Raw;
use crate::support::{System, TIMEOUT, stderr, stdout};

/// Returns names that traverse directories in different ways.
fn traversals(system: &System) -> Vec<String> {
    let absolute = system.path("escaped").display().to_string();
    let fixed = [
        "../escaped",
        "../../escaped",
        "../../../../../../../../escaped",
        "a/../../escaped",
        "./../escaped",
        "..\\escaped",
        "%2e%2e/escaped",
        "..%2fescaped",
        "escaped\0",
        "a\0/../../escaped",
        "|../escaped",
        "\u{2024}\u{2024}/escaped",
        "\u{ff0e}\u{ff0e}/escaped",
        "~/escaped",
        "-escaped",
        "$(touch escaped)",
        "`touch escaped`",
        ";touch escaped",
    ];
    let mut all: Vec<String> = fixed.iter().map(ToString::to_string).collect();
    all.extend([absolute.clone(), format!("/{absolute}"), format!("{}escaped", "../".repeat(100)), "x".repeat(300)]);
    all
}

/// `salt://` URLs and `_serve_file` could leave the file roots.
#[tokio::test(flavor = "multi_thread")]
async fn cve_2024_22232_the_file_server_stays_in_its_roots() {
    let system = System::start("fileserver_followsymlinks: False\n").await;
    system.write("srv/secret", SECRET);
    system.write("srv/salt/open.txt", "open");
    std::os::unix::fs::symlink(system.path("srv"), system.path("srv/salt/out")).unwrap();
    let mut rogue = Raw::join(&system, "rogue", Cipher::Aes256Gcm).await;
    let absolute = system.path("srv/secret").display().to_string();
    for path in [
        "../secret",
        "a/../../secret",
        &absolute,
        "out/secret",
        "..\\secret",
        "|../secret",
        "%2e%2e/secret",
        "../secret\0",
        "?/../../secret",
    ] {
        for saltenv in ["base", "../..", "..", "/", "__env__", "base/../.."] {
            for cmd in ["_serve_file", "_file_hash", "_file_hash_and_stat", "_file_find"] {
                for loc in [Value::from(0), (-1).into(), "0".into()] {
                    let answer = rogue
                        .ask(map! {"cmd" => cmd, "path" => path, "saltenv" => saltenv, "loc" => loc})
                        .await
                        .to_string();
                    assert!(!answer.contains(SECRET) && !answer.contains("hsum"), "{cmd} {path} {saltenv}: {answer}");
                }
            }
        }
    }
    let answer = rogue.ask(map! {"cmd" => "_serve_file", "path" => "open.txt", "saltenv" => "base", "loc" => 0}).await;
    assert_eq!(answer.get("data").and_then(Value::as_bytes), Some(&b"open"[..]));
}

/// `_file_recv` wrote into the master's cache.
#[tokio::test(flavor = "multi_thread")]
async fn cve_2024_38824_pushed_files_stay_in_their_directory() {
    for (config, is_on) in [("", false), ("file_recv: True\nfile_recv_max_size: 1\n", true)] {
        let system = System::start(config).await;
        let mut rogue = Raw::join(&system, "rogue", Cipher::Aes256Gcm).await;
        let piece = |path: Value, loc: i64, data: &[u8]| map! {"cmd" => "_file_recv", "path" => path, "loc" => loc, "data" => data.to_vec(), "size" => data.len()};
        let mut paths: Vec<Value> = traversals(&system).into_iter().map(|path| list![path]).collect();
        paths.extend([
            list!["..", "..", "escaped"],
            list!["a", "..", "..", "escaped"],
            list!["/", "escaped"],
            list!["", "escaped", ".."],
            "../escaped".into(),
            list![],
        ]);
        for path in paths {
            rogue.ask(piece(path, 0, b"x")).await;
        }
        let good = rogue.ask(piece(list!["mine"], 0, b"x")).await;
        assert_eq!(!is_refusal(&good), is_on, "{good}");
        let large = rogue.ask(piece(list!["large"], 1 << 21, b"x")).await;
        assert!(is_refusal(&large), "{large}");
        for path in walk(&system.path("cache")) {
            let inside = path.starts_with(system.path("cache/minions/rogue/files"));
            assert!(inside || !path.to_string_lossy().contains("escaped"), "{}", path.display());
        }
        assert!(!system.path("escaped").exists() && !system.path("../escaped").exists());
    }
}

/// Banks and keys of minion data were used as paths.
#[tokio::test(flavor = "multi_thread")]
async fn cve_2025_22238_names_of_stored_data_are_no_paths() {
    let system = System::start("").await;
    let mut rogue = Raw::join(&system, "rogue", Cipher::Aes256Gcm).await;
    for name in traversals(&system) {
        rogue.ask(map! {"cmd" => "_mine", "data" => map! {name.as_str() => "x"}}).await;
        rogue.ask(map! {"cmd" => "_mine_get", "id" => "rogue", "tgt" => name.as_str(), "fun" => name.as_str(), "tgt_type" => "glob"}).await;
        rogue.ask(map! {"cmd" => "_mine_delete", "fun" => name.as_str()}).await;
        rogue
            .ask(map! {"cmd" => "_register_resources", "resources" => map! {name.as_str() => list![name.as_str()]}})
            .await;
        rogue.private(map! {"cmd" => "_pillar", "grains" => map! {name.as_str() => name.as_str()}, "saltenv" => name.as_str(), "pillarenv" => name.as_str()}).await;
    }
    rogue.ask(map! {"cmd" => "_mine_flush"}).await;
    assert_nothing_escaped(&system);
}

/// An unchecked id selected the file of a key.
#[tokio::test(flavor = "multi_thread")]
async fn cve_2025_22241_ids_choose_no_files() {
    let system = System::start("autosign_grains_dir: ROOT/autosign\nautosign_file: ROOT/autosign.conf\n").await;
    system.write("autosign/uuid", "good\n");
    let key = PrivateKey::generate(2048).unwrap().public().to_pem();
    let mut rogue = Raw::join(&system, "rogue", Cipher::Aes256Gcm).await;
    let count_keys = || walk(&system.path("pki")).len();
    let before = count_keys();
    for id in traversals(&system).into_iter().filter(|id| id.contains(['/', '\\', '\0']) || id.len() > 255) {
        let grains = map! {id.as_str() => id.as_str(), "uuid" => id.as_str()};
        let answer = ask(
            &system,
            map! {"cmd" => "_auth", "id" => id.as_str(), "pub" => &key, "nonce" => "n", "autosign_grains" => grains},
        )
        .await;
        assert_eq!(answer, REFUSED.into(), "{id:?}");
        for field in ["id", "minion_id", "virt"] {
            let mut load = map! {"cmd" => "_pillar", "grains" => map! {"id" => id.as_str()}, "saltenv" => "base", "ext" => map! {"virtkey" => id.as_str()}};
            if field != "id" {
                load.insert(field.into(), id.as_str().into());
            }
            rogue.private(load).await;
        }
    }
    assert_eq!(count_keys(), before, "no key file appeared");
    assert_nothing_escaped(&system);
}

/// `pub_ret` built a path from the job id, and blocked on a pipe.
#[tokio::test(flavor = "multi_thread")]
async fn cve_2025_22242_job_ids_open_no_files() {
    let system = System::start("").await;
    let mut rogue = Raw::join(&system, "rogue", Cipher::Aes256Gcm).await;
    let pipe = system.path("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let pipe = pipe.display().to_string();
    let up = "../".repeat(20);
    let mut jids = traversals(&system);
    jids.extend([
        pipe.clone(),
        format!("{up}{pipe}"),
        "../../pipe".into(),
        "2026112023585202555".into(),
        "20261120235852025555/../../pipe".into(),
    ]);
    for jid in jids {
        for cmd in ["pub_ret", "_return"] {
            let load = map! {"cmd" => cmd, "jid" => jid.as_str(), "fun" => "test.ping", "return" => true};
            let answer = tokio::time::timeout(TIMEOUT, rogue.ask(load)).await.expect("the master replies");
            assert!(is_refusal(&answer), "{cmd} {jid}: {answer}");
        }
    }
    assert_nothing_escaped(&system);
}

/// A URL selected the destination of a downloaded file, as root.
#[tokio::test(flavor = "multi_thread")]
async fn cve_2021_21996_urls_choose_no_paths() {
    let system = System::new("");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let mut request = [0; 4096];
            _ = stream.read(&mut request);
            _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: close\r\n\r\nevil");
        }
    });
    for path in [
        "../../../../../../../../escaped",
        "..%2f..%2f..%2f..%2f..%2f..%2f..%2fescaped",
        "a?b=/../../../../../../../escaped",
        "%2e%2e/%2e%2e/%2e%2e/%2e%2e/escaped",
        "x#/../../../../escaped",
        "..\\..\\escaped",
        "x;/../../../../../escaped",
        "%00/../../escaped",
    ] {
        for fun in ["cp.cache_file", "cp.get_file_str"] {
            salt_call(&system, &[fun, &format!("http://127.0.0.1:{port}/{path}")]);
            salt_call(&system, &[fun, &format!("http://127.0.0.1:{port}@127.0.0.1:{port}/{path}")]);
        }
    }
    let cache = system.path("local/var/cache/salt/minion");
    for path in walk(&system.path("")) {
        assert!(path.starts_with(&cache) || !path.to_string_lossy().contains("escaped"), "{}", path.display());
    }
    for outside in ["/escaped", "/tmp/escaped"] {
        assert!(!std::path::Path::new(outside).exists(), "{outside}");
    }
}

/// Creates a repository with one file.
fn repository(system: &System, directory: &str, file: &str) -> String {
    let path = system.path(directory);
    std::fs::create_dir_all(&path).unwrap();
    let command =
        format!("git init -q --initial-branch=master . && echo {file} > {file} && git add . && git commit -qm x");
    let who =
        ["GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"].map(|key| (key, "t"));
    assert!(Command::new("sh").args(["-c", &command]).current_dir(&path).envs(who).status().unwrap().success());
    path.display().to_string()
}

/// Environments of minions selected directories of gitfs to create and delete.
#[tokio::test(flavor = "multi_thread")]
async fn cve_2025_22240_environments_choose_no_directories() {
    let mut system =
        System::new("auto_accept: True\nfileserver_backend: [gitfs]\ngitfs_remotes: ['file://ROOT/repo']\n");
    repository(&system, "repo", "one.txt");
    system.start_master().await;
    system.tool_async("salt-run", &["fileserver.update"]).await;
    system.write("victim/keep", "keep");
    let mut rogue = Raw::join(&system, "rogue", Cipher::Aes256Gcm).await;
    let mut environments = traversals(&system);
    environments.push(format!("../../../../{}", system.path("victim").display()));
    for saltenv in environments {
        for cmd in ["_file_find", "_serve_file", "_file_hash", "_file_list", "_dir_list"] {
            let load = map! {"cmd" => cmd, "path" => "one.txt", "saltenv" => saltenv.as_str(), "tgt_env" => saltenv.as_str(), "loc" => 0};
            let answer = rogue.ask(load).await.to_string();
            assert!(!answer.contains("one.txt"), "{cmd} {saltenv}: {answer}");
        }
    }
    let served = rogue.ask(map! {"cmd" => "_serve_file", "path" => "one.txt", "saltenv" => "base", "loc" => 0}).await;
    assert_eq!(served.get("data").and_then(Value::as_bytes), Some(&b"one.txt\n"[..]));
    assert!(system.path("victim/keep").exists());
    assert_nothing_escaped(&system);
}

/// Remotes with the same name shared one cache.
#[tokio::test(flavor = "multi_thread")]
async fn cve_2023_20898_repositories_share_no_cache() {
    let mut system = System::new(
        "auto_accept: True\nfileserver_backend: [gitfs]\ngitfs_remotes: ['file://ROOT/a/repo', 'file://ROOT/b/repo']\n",
    );
    repository(&system, "a/repo", "one.txt");
    repository(&system, "b/repo", "two.txt");
    system.start_master().await;
    let update = system.tool_async("salt-run", &["fileserver.update"]).await;
    assert!(update.status.success(), "{}", stderr(&update));
    let mut minion = Raw::join(&system, "web1", Cipher::Aes256Gcm).await;
    for file in ["one.txt", "two.txt"] {
        let load = map! {"cmd" => "_serve_file", "path" => file, "saltenv" => "base", "loc" => 0};
        let served = minion.ask(load).await;
        assert_eq!(served.get("data").and_then(Value::as_bytes), Some(format!("{file}\n").as_bytes()), "{served}");
    }
}

/// A pillar request could name a repository, and thereby execute commands on the master.
#[tokio::test(flavor = "multi_thread")]
async fn cve_2025_22237_minions_choose_no_pillar_sources() {
    let system = System::start("").await;
    let mut rogue = Raw::join(&system, "rogue", Cipher::Aes256Gcm).await;
    let touch = format!("touch {}", system.path("escaped").display());
    let remotes = [
        format!("main --upload-pack={touch}"),
        format!("main ext::sh -c {touch}"),
        format!("main -c core.sshCommand='{touch}' ssh://x/y"),
        format!("main file://{}", system.path("").display()),
    ];
    for remote in remotes {
        let git = map! {"git" => list![remote.as_str()]};
        let command = map! {"cmd_yaml" => touch.as_str()};
        for (name, value) in [
            ("ext", git.clone()),
            ("ext", command.clone()),
            ("extra_minion_data", map! {"ext_pillar" => list![git.clone(), command.clone()]}),
        ] {
            let over = map! {"ext_pillar" => list![git.clone(), command.clone()], "on_demand_ext_pillar" => list!["git", "cmd_yaml"]};
            let load = map! {"cmd" => "_pillar", "grains" => over.clone(), "saltenv" => "base", "pillar_override" => over, name => value};
            rogue.private(load).await;
        }
    }
    assert_nothing_escaped(&system);
    assert!(stdout(&system.tool("salt-key", &["-l", "acc"])).contains("rogue"));
}

/// Wheel functions read and wrote files of the master outside of `file_roots`, `pillar_roots` and the configuration.
async fn assert_wheel_stays_inside(functions: &[&str]) {
    let system = System::start("").await;
    system.write("srv/secret", SECRET);
    system.write("srv/salt/open.txt", "open");
    system.write("srv/pillar/open.txt", "open");
    for (target, link) in [("srv", "srv/salt/out"), ("srv", "srv/pillar/out"), ("escaped", "srv/salt/broken")] {
        std::os::unix::fs::symlink(system.path(target), system.path(link)).unwrap();
    }
    let call = async |fun: &str, path: &str| {
        let arguments = map! {"path" => path, "file_name" => path, "data" => "x", "yaml_contents" => map! {"x" => 1}};
        let takes: &[&str] = match fun.split_once('.').unwrap().1 {
            "write" => &["path", "data"],
            "update_config" => &["file_name", "yaml_contents"],
            _ => &["path"],
        };
        let kwarg: Map = arguments.into_iter().filter(|(name, _)| takes.contains(&name.as_str().unwrap())).collect();
        ask(&system, map! {"cmd" => "wheel", "fun" => fun, "key" => system.root_key(), "kwarg" => kwarg})
            .await
            .to_string()
    };
    let mut paths = traversals(&system);
    let secret = system.path("srv/secret").display().to_string();
    paths
        .extend(["../secret", "out/secret", "./out/../../secret", &secret, "out/escaped", "broken"].map(str::to_owned));
    for fun in functions {
        for path in &paths {
            let answer = call(fun, path).await;
            assert!(!answer.contains(SECRET), "{fun} {path:?}: {answer}");
        }
    }
    // Names without a separator are files inside; they are no traversals.
    for directory in ["srv/salt", "srv/pillar", "etc/master.d"] {
        for path in walk(&system.path(directory)) {
            let is_plain = path.parent() == Some(&system.path(directory)) && !path.is_symlink();
            if is_plain && path.to_string_lossy().contains("escaped") {
                std::fs::remove_file(path).unwrap();
            }
        }
    }
    std::fs::remove_file(system.path("srv/salt/broken")).unwrap();
    for directory in ["srv/salt", "srv/pillar"] {
        for below in ["%2e%2e", "..%2fescaped", "~", "|..", "\u{2024}\u{2024}", "\u{ff0e}\u{ff0e}"] {
            _ = std::fs::remove_dir_all(system.path(directory).join(below));
        }
    }
    assert_nothing_escaped(&system);
    assert_eq!(std::fs::read_to_string(system.path("srv/secret")).unwrap(), SECRET);
    for fun in functions.iter().filter(|fun| fun.split('.').next_back() == Some("read")) {
        let answer = call(fun, "open.txt").await;
        assert!(answer.contains("'open'"), "{fun}: {answer}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn cve_2020_11652_wheel_functions_leave_no_directory() {
    let functions =
        ["file_roots.find", "file_roots.read", "file_roots.write", "pillar_roots.read", "config.update_config"];
    assert_wheel_stays_inside(&functions).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn cve_2021_25282_pillar_roots_write_stays_inside() {
    assert_wheel_stays_inside(&["pillar_roots.write", "pillar_roots.find"]).await;
}
