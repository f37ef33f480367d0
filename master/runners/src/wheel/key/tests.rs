//! Tests of `wheel.key`: results and events.

use std::sync::Arc;

use brine_function::{Args, Registry};
use brine_master_store::keys::KeyStore;
use brine_master_testing::PEM;
use brine_value::list;
use parking_lot::Mutex;

use super::*;
use crate::wheel::{MODULES, WheelHost};

#[derive(Default)]
struct Recorder(Mutex<Vec<String>>);

impl WheelHost for Recorder {
    fn fire(&self, tag: &str, body: &Map) {
        let text = format!("{tag} {}", Value::from(body.clone()));
        self.0.lock().push(text.replace(&brine_value::python::repr(&PEM.trim_end().into()), "the key"));
    }

    fn rotate_key(&self) {
        self.0.lock().push("rotate".into());
    }

    fn actor(&self) -> String {
        "a test".into()
    }

    fn set_retcode(&self, retcode: i64) {
        self.0.lock().push(format!("retcode {retcode}"));
    }
}

struct Fixture {
    _directory: tempfile::TempDir,
    context: WheelContext,
    host: Arc<Recorder>,
}

/// Creates a fixture with web1 and web2 pending, db1 accepted, db2 rejected, and a denied key of web1.
fn fixture() -> Fixture {
    let directory = tempfile::tempdir().unwrap();
    let store = KeyStore::open(directory.path().join("pki")).unwrap();
    for (id, state) in [
        ("web1", KeyState::Pending),
        ("web2", KeyState::Pending),
        ("db1", KeyState::Accepted),
        ("db2", KeyState::Rejected),
        ("web1", KeyState::Denied),
    ] {
        store.set(&id.parse().unwrap(), state, PEM).unwrap();
    }
    let host = Arc::new(Recorder::default());
    let context = WheelContext { keys: Arc::new(store), host: host.clone(), attended: true };
    Fixture { _directory: directory, context, host }
}

impl Fixture {
    fn call(&self, name: &str, arguments: Map) -> Value {
        self.try_call(name, arguments).unwrap()
    }

    fn try_call(&self, name: &str, arguments: Map) -> Result<Value, CallError> {
        Registry::new(MODULES).call(&self.context, name, Args::keyword(arguments))
    }

    fn reported(&self) -> Vec<String> {
        std::mem::take(&mut self.host.0.lock())
    }

    fn keys(&self) -> &KeyStore {
        &self.context.keys
    }
}

#[test]
fn key_lists_have_the_form_of_salt() {
    let fixture = fixture();
    for (word, expected) in [
        ("acc", map! {"minions" => list!["db1"]}),
        ("un", map! {"minions_pre" => list!["web1", "web2"]}),
        ("rejected", map! {"minions_rejected" => list!["db2"]}),
        ("den", map! {"minions_denied" => list!["web1"]}),
        ("bogus", Map::new()),
    ] {
        assert_eq!(fixture.call("key.list", map! {"match" => word}), expected.into(), "{word}");
    }
    let all = Value::from(map! {
        "minions_pre" => list!["web1", "web2"], "minions_rejected" => list!["db2"], "minions" => list!["db1"],
        "minions_denied" => list!["web1"], "local" => list![],
    });
    assert_eq!(fixture.call("key.list_all", Map::new()), all);
    assert_eq!(fixture.call("key.list", map! {"match" => "all"}), all);
}

#[test]
fn a_match_is_one_or_more_globs() {
    let fixture = fixture();
    let expected = Value::from(map! {"minions_pre" => list!["web2"], "minions" => list!["db1"]});
    for pattern in [Value::from("web2,db1"), list!["d*1", "web2"]] {
        assert_eq!(fixture.call("key.name_match", map! {"match" => pattern}), expected);
    }
}

#[test]
fn changes_that_no_key_undergoes_fail() {
    for (function, id, more, fails) in [
        ("accept", "nobody", "", true),
        ("accept", "web1", "", false),
        ("accept", "db1", "", false),
        ("accept", "db2", "", true),
        ("accept", "db2", "include_rejected", false),
        ("reject", "db1", "", true),
        ("reject", "db1", "include_accepted", false),
        ("reject", "db2", "", false),
        ("delete", "nobody", "", false),
    ] {
        let fixture = fixture();
        let mut arguments = map! {"match" => id};
        if !more.is_empty() {
            arguments.insert(more.into(), true.into());
        }
        fixture.call(&format!("key.{function}"), arguments);
        assert_eq!(fixture.reported().contains(&"retcode 1".to_owned()), fails, "{function} {id} {more}");
    }
}

#[test]
fn accepting_returns_the_new_states_and_publishes_events() {
    let fixture = fixture();
    let after = fixture.call("key.accept", map! {"match" => "web*"});
    assert_eq!(after, map! {"minions" => list!["web1", "web2"], "minions_denied" => list!["web1"]}.into());
    assert_eq!(
        fixture.reported(),
        [
            "salt/key {'result': True, 'act': 'accepted', 'id': 'web1', 'pub': the key}",
            "salt/key {'result': True, 'act': 'accepted', 'id': 'web2', 'pub': the key}"
        ]
    );
    let unchanged = fixture.call("key.accept", map! {"match" => "db2"});
    assert_eq!(unchanged, map! {"minions_rejected" => list!["db2"]}.into());
    let included = fixture.call("key.accept", map! {"match" => "db2", "include_rejected" => true});
    assert_eq!(included, map! {"minions" => list!["db2"]}.into());
}

#[test]
fn rejecting_and_deleting_rotate_the_publish_key_once() {
    let fixture = fixture();
    let after =
        fixture.call("key.reject", map! {"match" => "*", "include_accepted" => true, "include_denied" => false});
    let rejected = list!["db1", "db2", "web1", "web2"];
    assert_eq!(after, map! {"minions_rejected" => rejected, "minions_denied" => list!["web1"]}.into());
    let reported = fixture.reported();
    assert_eq!((reported.len(), reported.last().map(String::as_str)), (4, Some("rotate")));
    assert!(reported[0].contains("'act': 'rejected'"), "{reported:?}");

    assert_eq!(fixture.call("key.delete", map! {"match" => "web1"}), Value::map());
    assert_eq!(
        fixture.reported(),
        [
            "salt/key {'result': True, 'act': 'delete', 'id': 'web1'}",
            "salt/key {'result': True, 'act': 'delete', 'id': 'web1'}",
            "rotate"
        ]
    );
    fixture.call("key.delete", map! {"match" => "nobody"});
    assert!(fixture.reported().is_empty());
}

#[test]
fn keys_are_selected_by_state() {
    let fixture = fixture();
    let named = map! {"minions_pre" => list!["web1", "gone"], "minions" => list!["db1"]};
    let after = fixture.call("key.accept_dict", map! {"match" => named.clone()});
    assert_eq!(after, map! {"minions" => list!["db1", "web1"], "minions_denied" => list!["web1"]}.into());
    let after = fixture.call("key.reject_dict", map! {"match" => map! {"minions_pre" => list!["web2"]}});
    assert_eq!(after, map! {"minions_rejected" => list!["web2"]}.into());
    // web1 is already accepted, so the pending entry does not match it.
    let after = fixture.call("key.delete_dict", map! {"match" => named});
    assert_eq!(after, map! {"minions" => list!["web1"], "minions_denied" => list!["web1"]}.into());
    let bad = map! {"match" => map! {"minions" => list!["../../etc/passwd"]}};
    assert!(fixture.try_call("key.delete_dict", bad).is_err());
}

#[test]
fn invalid_keys_stay_pending() {
    let fixture = fixture();
    std::fs::write(fixture.keys().pki_dir().join("minions_pre/bad"), "garbage").unwrap();
    assert_eq!(fixture.call("key.accept", map! {"match" => "bad"}), map! {"minions_pre" => list!["bad"]}.into());
    assert_eq!(fixture.reported(), ["retcode 1"]);
}

#[test]
fn keys_and_fingerprints_are_returned_by_state_and_id() {
    let fixture = fixture();
    assert_eq!(fixture.call("key.print", map! {"match" => "db1"}), map! {"minions" => map! {"db1" => PEM}}.into());
    let pair = PrivateKey::load_or_generate(fixture.keys().pki_dir(), "master", 2048).unwrap();
    let master = pair.public().fingerprint();
    assert_eq!(fixture.call("key.finger_master", Map::new()), map! {"local" => map! {"master.pub" => &master}}.into());
    let db1 = PublicKey::from_pem(PEM).unwrap().fingerprint();
    assert_eq!(
        fixture.call("key.finger", map! {"match" => "db1,master.pub", "hash_type" => "sha256"}),
        map! {"minions" => map! {"db1" => db1}, "local" => map! {"master.pub" => &master}}.into()
    );
    assert!(fixture.try_call("key.finger", map! {"match" => "*", "hash_type" => "md5"}).is_err());
    let text = fixture.call("key.master_key_str", Map::new());
    assert_eq!(text, map! {"local" => map! {"master.pub" => pair.public().to_pem()}}.into());
}

#[test]
fn pairs_are_generated_and_accepted_once() {
    let fixture = fixture();
    let pair = fixture.call("key.gen_accept", map! {"id_" => "new", "keysize" => 1024});
    let public = pair.get("pub").and_then(Value::as_str).unwrap();
    let key = fixture.keys().current(&"new".parse().unwrap()).unwrap();
    assert_eq!(key, Some((KeyState::Accepted, public.to_owned())));
    let private = PrivateKey::from_pem(pair.get("priv").and_then(Value::as_str).unwrap()).unwrap();
    assert_eq!(private.public().to_pem(), public);
    assert_eq!(fixture.call("key.gen_accept", map! {"id_" => "new"}), Value::map());
    assert!(fixture.try_call("key.gen_accept", map! {"id_" => "a/b"}).is_err());
}
