use brine_value::{Value, list, map, msgpack};
use proptest::prelude::*;

use super::*;

/// Encodes a message as Salt does.
fn message(head: &Value, body: &Value) -> Vec<u8> {
    [START, &msgpack::pack(head), BODY, &msgpack::pack(body)].concat()
}

/// Decodes bytes that arrive in parts of these sizes. Overwrites the examined bytes, except those of the head.
fn decode(bytes: &[u8], parts: &[usize]) -> Result<Vec<(Bytes, Bytes)>, TransportError> {
    let (mut decoder, mut buffer, mut messages) = (Decoder::default(), BytesMut::new(), Vec::new());
    let mut rest = bytes;
    for size in parts.iter().copied().chain([bytes.len()]) {
        let (part, later) = rest.split_at(size.min(rest.len()));
        rest = later;
        buffer.extend_from_slice(part);
        while decoder.examine(&buffer)? {
            assert!(decoder.minimum() <= buffer.len() as u64);
            messages.push(decoder.take(&mut buffer));
        }
        assert!(decoder.at + 8 >= buffer.len(), "all but an incomplete header is examined");
    }
    Ok(messages)
}

fn bodies() -> Vec<Value> {
    vec![
        Value::Nil,
        true.into(),
        (-7).into(),
        70_000.into(),
        1.5.into(),
        "bad load".into(),
        "x".repeat(300).into(),
        "x".repeat(70_000).into(),
        Value::Bytes(vec![0xc1; 70_000]),
        list![],
        list![list![list![map! {}]], 1],
        (0..70_000).map(Value::from).collect::<Vec<_>>().into(),
        map! {"enc" => "aes", "load" => Value::Bytes(vec![7; 300]), "version" => 3}.into(),
    ]
}

#[test]
fn messages_are_found_wherever_they_are_split() {
    for body in bodies() {
        let head = map! {"mid" => "b0a1"}.into();
        let one = message(&head, &body);
        let expected = (Bytes::from(msgpack::pack(&head)), Bytes::from(msgpack::pack(&body)));
        let two = [&one[..], &one].concat();
        for parts in [vec![], vec![1; one.len().min(2000)], vec![one.len() - 1, 2], vec![5, 1, 7, 4000, 1]] {
            assert_eq!(decode(&two, &parts).unwrap(), [expected.clone(), expected.clone()], "{parts:?}");
        }
    }
}

#[test]
fn examined_bytes_are_not_examined_again() {
    let body = Value::Bytes(vec![7; 5000]);
    let bytes = message(&map! {}.into(), &list![body.clone(), body]);
    let (mut decoder, mut buffer) = (Decoder::default(), BytesMut::new());
    for part in bytes.chunks(100) {
        buffer.extend_from_slice(part);
        let is_complete = decoder.examine(&buffer).unwrap();
        assert_eq!(is_complete, buffer.len() == bytes.len());
        let examined = decoder.at;
        buffer[..examined].fill(0xc1);
    }
}

#[test]
fn an_announced_length_is_known_and_reserves_nothing() {
    const MOST: u64 = u32::MAX as u64;
    let start = [START, b"\x80", BODY].concat();
    let announced = |value: &[u8]| {
        let bytes = [&start[..], value].concat();
        let mut decoder = Decoder::default();
        assert!(!decoder.examine(&bytes).unwrap());
        decoder.minimum() - start.len() as u64
    };
    assert_eq!(announced(b"\xc6\xff\xff\xff\xff"), MOST + 5);
    assert_eq!(announced(b"\xdb\xff\xff\xff\xff12"), MOST + 5);
    assert_eq!(announced(b"\xc9\xff\xff\xff\xff"), MOST + 6);
    assert_eq!(announced(b"\xdd\xff\xff\xff\xff"), MOST + 5);
    assert_eq!(announced(b"\xdf\xff\xff\xff\xff"), 2 * MOST + 5);
    // Each of a thousand nested lists announces as much.
    assert_eq!(announced(&b"\xdd\xff\xff\xff\xff".repeat(1000)), 1000 * (MOST - 1) + 5001);
    assert_eq!(announced(&vec![0x91; 100_000]), 100_001);
}

#[test]
fn other_bytes_are_refused() {
    for bytes in [
        &b"GET / HTTP/1.1\r\n"[..],
        b"\x83\xa4head\x80\xa4body\xc0",
        b"\x82\xa4body\xc0\xa4head\x80",
        b"\x82\xa4head\x80\xa4tail\xc0",
        // The head is not a mapping.
        b"\x82\xa4head\xc0\xa4body\xc0",
        b"\x82\xa4head\x80\xa4body\xc1",
        b"\x82\xa4head\x81\xc1",
    ] {
        assert!(matches!(decode(bytes, &[]), Err(TransportError::Malformed(_))), "{bytes:?}");
    }
    assert!(matches!(decode(b"\xff\0\0\0", &[]), Err(TransportError::SpeaksZeroMq)));
    for head in [&b"\x81\xa3mid\xda\xff\xff"[..], b"\xdf\xff\xff\xff\xff", &[&b"\xdc\x04\0"[..], &[0; 1100]].concat()] {
        let bytes = [START, head].concat();
        let error = decode(&bytes, &[]).unwrap_err().to_string();
        assert!(error.contains("too large"), "{error}");
    }
}

#[test]
fn a_publish_is_encoded_as_bytes_in_the_body() {
    for content in [&b""[..], b"word", &vec![7; 70_000]] {
        let encoded = encode(content);
        let expected = map! {"head" => map! {}, "body" => Value::Bytes(content.to_vec())};
        assert_eq!(msgpack::unpack_map(&encoded), Ok(expected));
    }
}

fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Nil),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "[a-z]{0,40}".prop_map(Value::from),
        prop::collection::vec(any::<u8>(), 0..300).prop_map(Value::Bytes),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..20).prop_map(Value::List),
            prop::collection::vec((inner.clone(), inner), 0..20)
                .prop_map(|entries| Value::Map(entries.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn any_message_is_found(body in values(), parts in prop::collection::vec(1usize..50, 0..20)) {
        let bytes = message(&map! {}.into(), &body);
        prop_assert_eq!(decode(&bytes, &parts).unwrap(), [(NO_HEAD, Bytes::from(msgpack::pack(&body)))]);
    }

    #[test]
    fn any_bytes_are_messages_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200), parts in prop::collection::vec(1usize..50, 0..5)) {
        _ = decode(&bytes, &parts);
        _ = decode(&[START, b"\x80", BODY, &bytes].concat(), &parts);
    }
}
