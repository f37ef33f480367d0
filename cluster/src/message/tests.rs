use super::*;

fn item(seq: u64, size: usize) -> Item {
    Item { seq, frame: vec![u8::try_from(seq).unwrap(); size].into(), cause: (seq > 1).then(|| ("m2".into(), seq - 1)) }
}

#[test]
fn messages_round_trip() {
    let message = Message {
        incarnation: "i".into(),
        items: vec![item(1, 3), item(2, 5)],
        part: None,
        handled: vec![("m1".into(), 7)],
    };
    assert_eq!(Message::unpack(&message.pack()), Some(message.clone()));
    for packed in [&b""[..], b"\x80", &message.pack()[..9]] {
        assert_eq!(Message::unpack(packed), None);
    }
    let part = |part, of| Message { part: Some((part, of)), ..Message::default() }.pack();
    assert!(Message::unpack(&part(0, 2)).is_some());
    assert_eq!((Message::unpack(&part(2, 2)), Message::unpack(&part(0, MAX_PARTS + 1))), (None, None));
}

#[test]
fn large_events_are_split_into_parts() {
    let items = vec![item(1, 100), item(2, 2 * MAX_PAYLOAD + 1), item(3, MAX_PAYLOAD), item(4, 1)];
    let sent = messages("i", items.clone());
    let shapes: Vec<_> = sent.iter().map(|message| (message.items.len(), message.part)).collect();
    assert_eq!(shapes, [(1, None), (1, Some((0, 3))), (1, Some((1, 3))), (1, Some((2, 3))), (1, None), (1, None)]);
    let mut parts = Parts::default();
    let (mut received, mut incomplete) = (Vec::new(), Vec::new());
    for (number, message) in (10..).zip(&sent) {
        received.extend(parts.reassemble(number, message.items.clone(), message.part));
        incomplete.push(parts.incomplete());
    }
    assert_eq!(received, items);
    // After a restart the stream is read again from the first part.
    assert_eq!(incomplete, [None, Some(11), Some(11), None, None, None]);
    // A lost part loses its own event only.
    let received: Vec<u64> = [0, 1, 3, 4, 5]
        .iter()
        .flat_map(|at: &usize| parts.reassemble(0, sent[*at].items.clone(), sent[*at].part))
        .map(|item| item.seq)
        .collect();
    assert_eq!(received, [1, 3, 4]);
    // A repeated part, and a message whose events are all known, interrupt no event.
    let mut parts = Parts::default();
    let repeated = [(1, false), (1, false), (2, true), (2, false), (1, false), (3, false)];
    let received: Vec<u64> = repeated
        .iter()
        .flat_map(|(at, is_known)| {
            let items = if *is_known { Vec::new() } else { sent[*at as usize].items.clone() };
            parts.reassemble(0, items, sent[*at as usize].part)
        })
        .map(|item| item.seq)
        .collect();
    assert_eq!(received, [2]);
}
