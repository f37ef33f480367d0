use brine_crypt::EncryptionAlgorithm;
use brine_master_testing::{Fixture, PEM};
use brine_wire::ClientCommand;

use super::*;

fn admission(fixture: &Fixture) -> Arc<Admission> {
    let identity = Arc::new(Identity::load_or_generate(&fixture.config).unwrap());
    let secrets = Secrets { identity, sessions: Arc::new(Sessions::new()) };
    Arc::new(Admission::new(
        Arc::clone(&fixture.config),
        ciphers(&fixture.config.ciphers).unwrap().into(),
        fixture.storage.clone(),
        fixture.events.clone(),
        secrets,
    ))
}

async fn ask(admission: &Arc<Admission>, id: &str, public_key: &str, more: Map) -> Value {
    let mut request = map! {"cmd" => "_auth", "id" => id, "pub" => public_key, "nonce" => "n"};
    request.extend(more);
    let Ok(ClientCommand::Auth(request, binding)) = ClientCommand::from_map(&request) else { panic!() };
    let open = Arc::new(());
    let peer = Peer::new("10.0.0.1:1", Arc::downgrade(&open));
    let reply = msgpack::unpack_map(&admission.authenticate(&peer, *request, binding).await).unwrap();
    match reply.get("load") {
        Some(Value::Bytes(signed)) => msgpack::unpack(signed).unwrap(),
        other => other.cloned().unwrap(),
    }
}

#[tokio::test]
async fn only_accepted_minions_get_keys_and_every_decision_is_published() {
    let fixture = Fixture::new(&["web1"], |_| {});
    let (admission, mut events) = (admission(&fixture), fixture.subscribe());
    for (id, key, act, has_keys) in
        [("web1", PEM, "accept", true), ("web2", PEM, "pend", false), ("web3", "no key", "error", false)]
    {
        let reply = ask(&admission, id, key, Map::new()).await;
        assert_eq!(reply.get("aes").is_some(), has_keys, "{id}: {reply}");
        let event = events.recv().await.unwrap();
        assert_eq!((event.tag(), event.data().get("act")), ("salt/auth", Some(&act.into())), "{id}");
    }
    assert_eq!(admission.sessions().count(), 1);
}

#[tokio::test]
async fn tokens_are_returned_unless_the_signature_suffices() {
    let fixture = Fixture::new(&["web1"], |_| {});
    let admission = admission(&fixture);
    let token = admission.identity().private_key.public().encrypt(b"secret", EncryptionAlgorithm::default()).unwrap();
    for (optional, is_returned) in [(None, true), (Some(false), true), (Some(true), false)] {
        let mut more = map! {"token" => Value::Bytes(token.clone())};
        more.extend(optional.map(|optional| ("token_optional".into(), Value::from(optional))));
        let reply = ask(&admission, "web1", PEM, more).await;
        assert_eq!(reply.get("token").is_some(), is_returned, "{optional:?}: {reply}");
        // The reply is bound to the request by its signature instead.
        assert!(AuthReply::is_bound(reply.as_map().unwrap()));
    }
}
