//! Requests of unauthenticated peers.

use std::time::{Duration, Instant};

use brine_value::{Map, Value, list, map, msgpack};
use brine_wire::{Envelope, PublishRequest};
use brine_zmtp::{Limits, RequestClient};

use crate::cve::{REFUSED, ask, error_of, send};
use crate::support::{System, TIMEOUT, stdout};

/// Commands of minions, of Salt's masters, and names of methods that Salt's dispatcher exposed.
const COMMANDS: &[&str] = &[
    "_prep_auth_info",
    "_send_pub",
    "_send_ssh_pub",
    "_update_aes",
    "__init__",
    "__class__",
    "__getattribute__",
    "destroy",
    "get_method",
    "run_func",
    "connect",
    "cmd",
    "_handle_clear",
    "_handle_aes",
    "_auth_worker",
    "wheel_async",
    "runner_async",
    "mk_token",
    "get_token",
    "_master_opts",
    "_master_tops",
    "_ext_nodes",
    "_mine",
    "_mine_get",
    "_mine_delete",
    "_mine_flush",
    "_file_envs",
    "_file_find",
    "_file_hash",
    "_file_hash_and_stat",
    "_file_list",
    "_file_list_emptydirs",
    "_dir_list",
    "_symlink_list",
    "_serve_file",
    "_file_recv",
    "_pillar",
    "_minion_event",
    "_return",
    "_syndic_return",
    "minion_runner",
    "minion_pub",
    "minion_publish",
    "pub_ret",
    "revoke_auth",
    "_register_resources",
    "verify_minion",
    "_cluster",
    "",
];

/// Whether a reply is an authentication error: in Salt publishes and calls have different ones.
fn is_denied(answer: &Value) -> bool {
    ["AuthenticationError", "UserAuthenticationError"].contains(&error_of(answer).as_str())
}

fn holds(answer: &[u8], secret: &str) -> bool {
    answer.windows(secret.len()).any(|window| window == secret.as_bytes())
}

/// Every method of `ClearFuncs` could be called without authentication, and revealed the root key.
#[tokio::test(flavor = "multi_thread")]
async fn cve_2020_11651_clear_commands_have_no_effect_and_leak_nothing() {
    let mut system = System::start("").await;
    system.start_minion("web1").await;
    let root_key = system.root_key();
    let target = system.path("owned").display().to_string();
    for cmd in COMMANDS {
        let load = map! {
            "cmd" => *cmd, "id" => "web1", "fun" => "cmd.run", "arg" => list![format!("touch {target}")], "tgt" => "*",
            "tgt_type" => "glob", "ret" => "", "user" => "root", "kwarg" => map! {}, "jid" => "20261120235852025555",
            "tag" => "forged", "data" => map! {}, "path" => "x", "saltenv" => "base", "return" => 1, "grains" => map! {},
        };
        let answer = send(&system, Envelope::clear(load)).await;
        assert_eq!(msgpack::unpack(&answer).unwrap(), REFUSED.into(), "{cmd}");
        assert!(!holds(&answer, &root_key), "{cmd}");
    }
    let mut publish = PublishRequest::new("*", "cmd.run", "root");
    publish.arg = vec![format!("touch {target}").into()];
    for key in
        [Value::Nil, "".into(), "x".repeat(root_key.len()).into(), 0.into(), true.into(), list![], map! {}.into()]
    {
        let call = |cmd: &str| map! {"cmd" => cmd, "fun" => "key.list_all", "arg" => list![]};
        for mut load in [publish.to_map(), call("runner"), call("wheel")] {
            load.insert("key".into(), key.clone());
            let answer = send(&system, Envelope::clear(load.clone())).await;
            let said = msgpack::unpack(&answer).unwrap();
            assert!(said == REFUSED.into() || is_denied(&said), "{load:?}: {said}");
            assert!(!holds(&answer, &root_key) && !said.to_string().contains("minions"), "{said}");
        }
    }
    assert_eq!(system.salt_json(&["web1", "test.ping"]), map! {"web1" => true}.into());
    assert!(!system.path("owned").exists());
}

/// `wheel_async` required no login.
#[tokio::test(flavor = "multi_thread")]
async fn cve_2021_25281_asynchronous_calls_need_the_key() {
    let system = System::start("").await;
    for cmd in ["wheel", "runner", "wheel_async", "runner_async"] {
        for key in [None, Some(""), Some("wrong")] {
            let load = map! {"cmd" => cmd, "fun" => "key.gen_accept", "kwarg" => map! {"id_" => "forged"}, "async" => true, "key" => key};
            let answer = ask(&system, load).await;
            assert!(answer == REFUSED.into() || is_denied(&answer), "{cmd}: {answer}");
        }
    }
    assert!(!stdout(&system.tool("salt-key", &["-L"])).contains("forged"));
}

/// Packages of SUSE had an API without a login: Brine's defaults permit no user.
#[tokio::test(flavor = "multi_thread")]
async fn cve_2021_25315_defaults_permit_no_user() {
    let mut system = System::new("");
    system.start_master().await;
    let key = brine_crypt::PrivateKey::generate(2048).unwrap().public().to_pem();
    ask(&system, map! {"cmd" => "_auth", "id" => "outsider", "pub" => key, "nonce" => "n"}).await;
    assert!(stdout(&system.tool("salt-key", &["-l", "un"])).contains("outsider"), "it waits for an operator");
    for (load, error) in [
        (PublishRequest::new("*", "test.ping", "root").to_map(), "AuthenticationError"),
        (map! {"cmd" => "runner", "fun" => "jobs.list_jobs"}, "UserAuthenticationError"),
    ] {
        assert_eq!(error_of(&ask(&system, load).await), error);
    }
}

/// One bad packet per worker made the master unresponsive.
#[tokio::test(flavor = "multi_thread")]
async fn cve_2023_20897_bad_packets_do_not_stop_the_master() {
    const PEERS: usize = 4;
    const EACH: usize = 2500;
    let mut system = System::start("worker_threads: 2\n").await;
    system.start_minion("web1").await;
    let valid = Envelope::clear(map! {"cmd" => "ping"});
    let packets: Vec<Vec<u8>> = vec![
        b"".to_vec(),
        b"garbage".to_vec(),
        vec![0xc1; 16],
        vec![0xdf, 0xff, 0xff, 0xff, 0xff],
        vec![0xdd, 0xff, 0xff, 0xff, 0xff, 0x90],
        vec![0xc6, 0x7f, 0xff, 0xff, 0xff],
        vec![0x91; 10_000],
        valid[..valid.len() / 2].to_vec(),
        msgpack::pack_map(&map! {"enc" => "aes", "id" => "web1", "load" => vec![0u8; 64], "version" => 3}),
        msgpack::pack_map(&map! {"enc" => "clear", "load" => Map::new(), "version" => 3}),
        msgpack::pack(&list![1, 2, 3]),
    ];
    let mut floods = Vec::new();
    for peer in 0..PEERS {
        let client = RequestClient::new(system.request_endpoint(), Limits::default());
        let packets = packets.clone();
        floods.push(tokio::spawn(async move {
            for chunk in (0..EACH).collect::<Vec<_>>().chunks(50) {
                let all = chunk.iter().map(|number| {
                    client.request(packets[(number + peer) % packets.len()].clone(), Duration::from_secs(2))
                });
                // It does not matter whether a request is answered or its connection closed.
                futures::future::join_all(all).await;
            }
        }));
    }
    let client = RequestClient::new(system.request_endpoint(), Limits::default());
    while floods.iter().any(|flood| !flood.is_finished()) {
        let start = Instant::now();
        client.request(valid.clone(), TIMEOUT).await.unwrap();
        assert!(start.elapsed() < Duration::from_secs(5), "{:?} for an answer under load", start.elapsed());
    }
    let start = Instant::now();
    client.request(valid, TIMEOUT).await.unwrap();
    assert!(start.elapsed() < Duration::from_secs(1), "{:?} for an answer afterwards", start.elapsed());
    assert_eq!(system.salt_json(&["web1", "test.ping"]), map! {"web1" => true}.into());
}
