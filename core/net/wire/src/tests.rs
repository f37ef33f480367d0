//! Tests with valid and invalid messages.

use brine_crypt::{Cipher, EncryptionAlgorithm, SignatureAlgorithm};
use brine_value::msgpack::{self, Budget};
use brine_value::{Map, Value, list, map};
use bytes::Bytes;
use proptest::prelude::*;

use super::*;

#[test]
fn an_auth_request_round_trips() {
    let request = AuthRequest {
        id: "web1".parse().unwrap(),
        public_key: "PEM".into(),
        nonce: "n".into(),
        encryption: EncryptionAlgorithm::default(),
        signature: SignatureAlgorithm::default(),
        token: Some(vec![1, 2]),
        is_token_optional: true,
        ciphers: vec![Cipher::Aes256Gcm],
        autosign_grains: map! {"role" => "web"},
    };
    assert_eq!(AuthRequest::from_map(&request.to_map()), Ok(request));
}

#[test]
fn returners_of_a_job_are_a_name_or_a_list() {
    let empty = || Value::from("");
    for (returners, expected) in [
        ("redis".into(), "redis"),
        ("redis,smtp".into(), "redis,smtp"),
        (list!["redis", "smtp"], "redis,smtp"),
        (empty(), ""),
        (list![], ""),
        (Value::Nil, ""),
    ] {
        let load =
            map! {"tgt" => "*", "fun" => "test.ping", "ret" => returners.clone(), "jid" => "20261128120000000000"};
        assert_eq!(PublishRequest::from_map(&load).unwrap().ret, expected, "{returners}");
        assert_eq!(Publication::from_map(load).unwrap().ret, expected, "{returners}");
    }
}

#[test]
fn an_auth_reply_must_be_to_the_request_that_was_sent() {
    let replies = [
        AuthReply::Refused(AuthRefusal::Pending),
        AuthReply::Refused(AuthRefusal::Rejected),
        AuthReply::Refused(AuthRefusal::Full),
        AuthReply::Refused(AuthRefusal::NoCipher),
        AuthReply::Accepted(Box::new(Accepted {
            public_key: "PEM".into(),
            public_key_signature: Some("c2lnbmVk".into()),
            publish_port: 4505,
            publish_key: vec![1],
            token: Some(vec![4]),
            session_key: vec![2],
            signature: vec![3],
            cipher: Cipher::Aes256Gcm,
        })),
    ];
    for reply in replies {
        let of = |request: Map| Binding::of(&request).unwrap();
        let mine = of(map! {"nonce" => "mine", "ciphers" => list!["aes-256-gcm"]});
        let mut map = reply.to_map(&mine);
        assert_eq!(AuthReply::from_map(&map, &mine), Ok(reply.clone()));
        let other = of(map! {"nonce" => "other", "ciphers" => list!["aes-256-gcm"]});
        assert!(matches!(AuthReply::from_map(&map, &other), Err(WireError::Field { field: "nonce", .. })));
        assert_eq!(AuthReply::from_map(&map, &of(map! {"nonce" => "mine"})), Err(WireError::Altered));
        // Salt's masters send no digest and use no other cipher.
        map.shift_remove("request");
        let unbound = AuthReply::from_map(&map, &mine);
        match reply {
            AuthReply::Accepted(_) => assert_eq!(unbound, Err(WireError::Missing("request"))),
            reply @ AuthReply::Refused(_) => assert_eq!(unbound, Ok(reply)),
        }
    }
}

#[test]
fn an_offer_of_only_unknown_ciphers_is_refused() {
    let request = |ciphers: Value| map! {"id" => "m", "pub" => "PEM", "nonce" => "n", "ciphers" => ciphers};
    let read = |ciphers| AuthRequest::from_map(&request(ciphers)).map(|request| request.ciphers);
    assert_eq!(read(list!["next", "aes-256-gcm"]), Ok(vec![Cipher::Aes256Gcm]));
    assert_eq!(read(list![]), Ok(vec![]));
    assert!(matches!(read(list!["next"]), Err(WireError::Field { field: "ciphers", .. })));
}

fn unpack(bytes: Vec<u8>) -> Result<Envelope, WireError> {
    Envelope::unpack(&Bytes::from(bytes), Budget::UNAUTHENTICATED)
}

#[test]
fn input_quoted_in_errors_is_cut_and_escaped() {
    let forged = "x\n2026-11-22 00:00:00 forged line \u{1b}[31m".to_owned();
    let long = "y".repeat(60 << 10);
    for (field, text) in [("enc", &forged), ("enc", &long), ("id", &forged), ("id", &long), ("enc_algo", &forged)] {
        let mut envelope = map! {"enc" => "aes", "id" => "web1", "load" => vec![0u8]};
        envelope.insert(field.into(), text.into());
        let error = unpack(msgpack::pack_map(&envelope)).unwrap_err().to_string();
        assert!(error.chars().count() < 400 && !error.contains(char::is_control), "{field}: {error}");
    }
    let error = MinionCommand::from_map(map! {"cmd" => forged}).unwrap_err().to_string();
    assert!(!error.contains(char::is_control), "{error}");
}

#[test]
fn a_sealed_load_is_not_copied_and_unknown_fields_are_not_decoded() {
    let mut envelope = map! {"enc" => "aes", "id" => "web1", "load" => vec![7u8; 100_000], "version" => 3};
    envelope.insert("more".into(), Value::List(vec![Value::Nil; 1000]));
    let packed = Bytes::from(msgpack::pack_map(&envelope));
    let Ok(Envelope::Sealed { load, version: 3, .. }) = Envelope::unpack(&packed, Budget(0)) else { panic!("sealed") };
    assert!(load.len() == 100_000 && packed.as_ptr_range().contains(&load.as_ptr()));
    let clear = Bytes::from(Envelope::clear(map! {"cmd" => "ping"}));
    assert!(matches!(Envelope::unpack(&clear, Budget(0)), Err(WireError::Unpack(_))));
}

#[test]
fn invalid_envelopes_are_refused() {
    let pack = |map: Map| msgpack::pack_map(&map);
    for (bytes, error) in [
        (b"garbage".to_vec(), "the message is not msgpack: msgpack is not a map"),
        (pack(map! {"load" => map!{}}), "the message has no field 'enc'"),
        (pack(map! {"enc" => "clear"}), "the message has no field 'load'"),
        (pack(map! {"enc" => "clear", "load" => 5}), "the message's field 'load' is invalid: expected a mapping"),
        (
            pack(map! {"enc" => "rot13", "load" => map!{}}),
            "the message's field 'enc' is invalid: expected clear or aes, got 'rot13'",
        ),
        (pack(map! {"enc" => "aes", "load" => vec![0u8]}), "the message has no field 'id'"),
    ] {
        assert_eq!(unpack(bytes).unwrap_err().to_string(), error);
    }
    let evil = pack(map! {"enc" => "aes", "id" => "../x", "load" => vec![0u8]});
    assert!(unpack(evil).unwrap_err().to_string().contains("cannot be a minion id"));
}

#[test]
fn unknown_commands_are_refused() {
    for cmd in ["_prep_auth_info", "__getattribute__", "_send_pub", "", "publish"] {
        let error = MinionCommand::from_map(map! {"cmd" => cmd}).unwrap_err();
        assert_eq!(error, WireError::UnknownCommand(cmd.into()));
    }
    for cmd in ["_prep_auth_info", "_send_pub", "_return", "_minion_event", "_pillar"] {
        let error = ClientCommand::from_map(&map! {"cmd" => cmd}).unwrap_err();
        assert_eq!(error, WireError::UnknownCommand(cmd.into()));
    }
    assert_eq!(ClientCommand::from_map(&map! {}), Err(WireError::Missing("cmd")));
}

#[test]
fn a_message_holds_one_event_or_a_list() {
    let one = map! {"cmd" => "_minion_event", "id" => "m", "tag" => "t", "data" => map!{"a" => 1}, "nonce" => "n"};
    let body = map! {"cmd" => "_minion_event", "id" => "m", "tag" => "t", "data" => map!{"a" => 1}};
    assert_eq!(
        MinionCommand::from_map(one),
        Ok(MinionCommand::Events(MinionEvents { events: vec![("t".into(), body)], pretag: None }))
    );
    let many = map! {
        "cmd" => "_minion_event",
        "pretag" => "beacon",
        "events" => list![map!{"tag" => "a", "data" => map!{"x" => 1}}, map!{"tag" => "b"}],
    };
    let events = vec![("a".into(), map! {"x" => 1}), ("b".into(), map! {"tag" => "b"})];
    let pretag = Some("beacon".to_owned());
    assert_eq!(MinionCommand::from_map(many), Ok(MinionCommand::Events(MinionEvents { events, pretag })));
}

#[test]
fn events_and_returns_are_not_copied() {
    let text = "x".repeat(1000);
    let place = text.as_ptr();
    let returned = map! {"cmd" => "_return", "return" => text};
    let list = map! {"cmd" => "_return", "load" => vec![Value::from(returned)]};
    let Ok(MinionCommand::Returns(loads)) = MinionCommand::from_map(list) else { panic!("returns") };
    let Ok(MinionCommand::Returns(mut loads)) = MinionCommand::from_map(loads.into_iter().next().unwrap()) else {
        panic!("a return")
    };
    let text = loads.remove(0).shift_remove("return").unwrap();
    let event = map! {"tag" => "t", "data" => map! {"text" => text}};
    let list = map! {"cmd" => "_minion_event", "events" => vec![Value::from(event)]};
    let Ok(MinionCommand::Events(mut events)) = MinionCommand::from_map(list) else { panic!("events") };
    let (tag, mut body) = events.events.remove(0);
    body.extend(map! {"cmd" => "_minion_event", "tag" => tag});
    let Ok(MinionCommand::Events(mut events)) = MinionCommand::from_map(body) else { panic!("an event") };
    let text = events.events.remove(0).1.shift_remove("text").unwrap();
    let of_syndic = map! {"cmd" => "_syndic_return", "jid" => "1", "return" => map! {"m" => map! {"return" => text}}};
    let Ok(MinionCommand::SyndicReturns { loads, .. }) = MinionCommand::from_map(of_syndic) else {
        panic!("returns of a syndic")
    };
    assert_eq!(loads[0]["return"].as_str().unwrap().as_ptr(), place);
}

#[test]
fn a_job_id_with_path_separators_is_refused() {
    let load = map! {"fun" => "test.ping", "tgt" => "*", "jid" => "../../etc/passwd"};
    assert!(Publication::from_map(load.clone()).is_err());
    assert!(PublishRequest::from_map(&load).is_err());
}

proptest! {
    #[test]
    fn any_bytes_are_parsed_or_refused(bytes: Vec<u8>) {
        let _ = unpack(bytes);
    }
}

#[test]
fn salts_clients_pass_arguments_in_kwarg_or_in_further_fields() {
    let call = |map: Map| match ClientCommand::from_map(&map).unwrap() {
        ClientCommand::Runner(call) | ClientCommand::Wheel(call) => call,
        other => panic!("{other:?}"),
    };
    let arg = map! {"arg" => list!["x"], "kwarg" => map! {"y" => 1}};
    for (load, positional, keyword, is_salt) in [
        (map! {"cmd" => "runner", "fun" => "a.b", "kwarg" => arg.clone()}, vec!["x".into()], map! {"y" => 1}, true),
        (map! {"cmd" => "runner", "fun" => "a.b", "kwarg" => map! {"arg" => 1}}, vec![], map! {"arg" => 1}, true),
        (map! {"cmd" => "runner", "fun" => "a.b", "match" => "x"}, vec![], map! {}, true),
        (
            map! {
                "cmd" => "wheel", "fun" => "key.accept", "match" => "x", "token" => "t", "key" => "k", "__jid__" => 1,
                "client" => "wheel", "full_return" => true
            },
            vec![],
            map! {"match" => "x"},
            true,
        ),
        (
            map! {"cmd" => "wheel", "fun" => "key.accept", "match" => "x", "kwarg" => arg.clone(), "async" => false},
            vec![],
            arg,
            false,
        ),
    ] {
        let call = call(load);
        assert_eq!((call.args.positional, call.args.keyword), (positional, keyword));
        assert_eq!(call.is_salt, is_salt);
    }
}
