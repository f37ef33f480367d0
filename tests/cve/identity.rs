//! A peer can only act under its authenticated identity.

use brine_crypt::{Cipher, PrivateKey};
use brine_value::{Map, list, map, msgpack};
use brine_wire::purpose;

use crate::cve::{REFUSED, SECRET, ask, assert_nothing_escaped, is_refusal};
use crate::support::raw::Raw;
use crate::support::{System, TIMEOUT, stdout};

const JID: &str = "20261120235852025555";

/// Returns a command of each kind that acts or returns data in the name of its minion.
fn commands() -> Vec<Map> {
    vec![
        map! {"cmd" => "_return", "jid" => JID, "fun" => "test.ping", "return" => "forged", "retcode" => 0},
        map! {"cmd" => "_minion_event", "tag" => "forged", "data" => map! {}},
        map! {"cmd" => "_pillar", "grains" => map! {"id" => "web1"}, "saltenv" => "base"},
        map! {"cmd" => "_mine", "data" => map! {"forged" => 1}},
        map! {"cmd" => "_mine_delete", "fun" => "test.ping"},
        map! {"cmd" => "_mine_flush"},
        map! {"cmd" => "_file_recv", "path" => list!["forged"], "loc" => 0, "data" => b"x".to_vec(), "size" => 1},
        map! {"cmd" => "_register_resources", "resources" => map! {"forged" => list!["x"]}},
        map! {"cmd" => "minion_pub", "fun" => "test.ping", "arg" => list![], "tgt" => "*", "ret" => ""},
        map! {"cmd" => "minion_publish", "fun" => "test.ping", "arg" => list![], "tgt" => "*", "ret" => ""},
        map! {"cmd" => "minion_runner", "fun" => "manage.up", "arg" => list![]},
        map! {"cmd" => "pub_ret", "jid" => JID},
        map! {"cmd" => "revoke_auth"},
    ]
}

/// Many methods did not check the minion's token: one minion could impersonate another.
#[tokio::test(flavor = "multi_thread")]
async fn cve_2024_38822_commands_in_the_name_of_another_minion_are_refused() {
    let mut system = System::start("file_recv: True\npeer: {web1: [test.ping]}\npeer_run: {web1: ['.*']}\n").await;
    system.start_minion("web1").await;
    let other = PrivateKey::generate(2048).unwrap();
    for cipher in Cipher::ALL {
        let mut rogue = Raw::join(&system, &format!("rogue-{cipher}"), *cipher).await;
        for command in commands() {
            for token in [Some(rogue.key.sign_x931(b"salt").unwrap()), Some(other.sign_x931(b"salt").unwrap()), None] {
                let mut load = rogue.proven(command.clone());
                load.extend(map! {"id" => "web1", "tok" => token});
                // Its own session; then with the other minion's name on the envelope.
                assert_eq!(rogue.send(&rogue.sealed(&load), "").await, REFUSED.into(), "{cipher} {command:?}");
                let sealed =
                    rogue.session.seal(&msgpack::pack_map(&load), None, &purpose::request(&"web1".parse().unwrap()));
                let mut envelope = rogue.sealed(&load);
                envelope.extend(map! {"id" => "web1", "load" => sealed});
                assert_eq!(rogue.send(&envelope, "").await, REFUSED.into(), "{cipher} {command:?}");
            }
        }
    }
    assert!(!system.path("cache/minions/web1/files").exists());
    assert!(stdout(&system.tool("salt-key", &["-l", "acc"])).contains("web1"));
    assert_eq!(system.salt_json(&["web1", "test.ping"]), map! {"web1" => true}.into());
}

/// A minion's pillar is its own, whatever its grains claim (Salt sets `grains.id` in `_pillar`).
#[tokio::test(flavor = "multi_thread")]
async fn grains_choose_no_other_minions_pillar() {
    let system = System::start("").await;
    system.write("srv/pillar/top.sls", "base: {'*': [secrets]}\n");
    system.write(
        "srv/pillar/secrets.sls",
        &format!("{{% if grains['id'] == 'web1' %}}secret: {SECRET}{{% endif %}}\nid: {{{{ grains['id'] }}}}\n"),
    );
    let mut rogue = Raw::join(&system, "rogue", Cipher::AesCbcHmac).await;
    let mut victim = Raw::join(&system, "web1", Cipher::AesCbcHmac).await;
    for (minion, secret) in [(&mut rogue, false), (&mut victim, true)] {
        let pillar = minion.private(map! {"cmd" => "_pillar", "grains" => map! {"id" => "web1"}, "saltenv" => "base", "pillar_override" => map! {}}).await;
        assert_eq!(pillar.to_string().contains(SECRET), secret, "{}: {pillar}", minion.id);
        assert_eq!(pillar.get("id").map(ToString::to_string), Some(minion.id.to_string()));
    }
    let targets = stdout(&system.tool("salt-run", &["manage.targets", "id:web1", "grain", "--out=json"]));
    assert!(!targets.contains("rogue"), "{targets}");
}

/// The load of a job belongs to the master: a forged one reveals no returns (Salt stores it in files of its own).
#[tokio::test(flavor = "multi_thread")]
async fn returns_are_visible_only_to_the_publisher_of_the_job() {
    let system = System::start("peer: {rogue: [test.ping]}\n").await;
    let mut victim = Raw::join(&system, "web1", Cipher::Aes256Gcm).await;
    let mut rogue = Raw::join(&system, "rogue", Cipher::Aes256Gcm).await;
    let report = stdout(&system.tool("salt", &["--async", "web1", "test.echo", "x"]));
    let jid = report.trim().rsplit(' ').next().unwrap().to_owned();
    let returned = map! {"cmd" => "_return", "jid" => &jid, "fun" => "test.echo", "return" => SECRET, "retcode" => 0};
    assert!(!is_refusal(&victim.ask(returned).await));
    let load = map! {"jid" => &jid, "id" => "rogue", "fun" => "test.echo", "tgt" => "*", "minions" => list!["rogue"]};
    for tag in ["salt/job/1.2/new".to_owned(), format!("salt/job/{jid}/new")] {
        rogue.ask(map! {"cmd" => "_minion_event", "tag" => tag.as_str(), "data" => load.clone()}).await;
        rogue.ask(map! {"cmd" => "_minion_event", "events" => list![map! {"tag" => tag.as_str(), "data" => load.clone()}]}).await;
        let (module, function) = tag.split_once('.').unwrap_or((tag.as_str(), "x"));
        let mut state = load.clone();
        state.insert("result".into(), false.into());
        let states = map! {format!("{module}_|-a_|-a_|-{function}") => state};
        rogue
            .ask(map! {"cmd" => "_return", "jid" => JID, "fun" => "state.sls", "return" => states, "retcode" => 2})
            .await;
    }
    let report = rogue.ask(map! {"cmd" => "pub_ret", "jid" => &jid}).await;
    assert!(!report.to_string().contains(SECRET), "{report}");
}

/// The cache of a syndic was a path derived from its id.
#[tokio::test(flavor = "multi_thread")]
async fn cve_2024_22231_ids_of_syndics_are_no_paths() {
    let system = System::start("order_masters: True\n").await;
    let key = PrivateKey::generate(2048).unwrap().public().to_pem();
    let absolute = system.path("escaped").display().to_string();
    let mut syndic = Raw::join(&system, "syndic", Cipher::Aes256Gcm).await;
    for id in ["../escaped", "../../escaped", &absolute, "a/../../escaped", "escaped\0", "..\\escaped"] {
        assert_eq!(
            ask(&system, map! {"cmd" => "_auth", "id" => id, "pub" => &key, "nonce" => "n"}).await,
            REFUSED.into(),
            "{id:?}"
        );
        let load = map! {"id" => id, "jid" => JID, "fun" => "test.ping", "return" => map! {id => true}, "retcode" => 0};
        for form in [map! {"load" => list![load.clone()]}, load.clone()] {
            let mut request = map! {"cmd" => "_syndic_return"};
            request.extend(form);
            request.shift_remove("id");
            _ = syndic.ask(request).await;
        }
    }
    assert_nothing_escaped(&system);
}

/// A new key under an old id inherited the cached data of the previous minion.
#[tokio::test(flavor = "multi_thread")]
async fn cve_2016_9639_a_new_key_inherits_nothing() {
    let system = System::start("").await;
    let mut reader = Raw::join(&system, "reader", Cipher::Aes256Gcm).await;
    let mut old = Raw::join(&system, "web1", Cipher::Aes256Gcm).await;
    assert!(!is_refusal(&old.ask(map! {"cmd" => "_mine", "data" => map! {"test.secret" => SECRET}}).await));
    let query = || map! {"cmd" => "_mine_get", "tgt" => "web1", "fun" => "test.secret", "tgt_type" => "glob"};
    assert!(reader.ask(query()).await.to_string().contains(SECRET));
    assert!(system.tool_async("salt-key", &["-y", "-d", "web1"]).await.status.success());
    let start = std::time::Instant::now();
    // The master is notified by an event.
    while reader.ask(query()).await.to_string().contains(SECRET) {
        assert!(start.elapsed() < TIMEOUT, "the data of the old minion stays");
    }
    assert!(is_refusal(&old.ask(map! {"cmd" => "_mine", "data" => map! {"test.secret" => SECRET}}).await));
    let mut new = Raw::join(&system, "web1", Cipher::Aes256Gcm).await;
    assert!(!is_refusal(&new.ask(map! {"cmd" => "_mine", "data" => map! {"test.own" => "x"}}).await));
    let mine = reader.ask(query()).await.to_string();
    assert!(!mine.contains(SECRET), "{mine}");
}
