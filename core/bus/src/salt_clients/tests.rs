use brine_value::map;

use super::*;

fn event(tag: &str) -> Event {
    Event::from_map(tag, &map! {"a" => 1}).unwrap()
}

#[test]
fn events_are_decoded_with_and_without_a_length_in_any_fragments() {
    for with_length in [true, false] {
        let mut sent = BytesMut::new();
        for tag in ["one", "two", "three"] {
            put_event(&mut sent, &event(tag), with_length);
        }
        for step in [1, 7, sent.len()] {
            let (mut buffer, mut received) = (BytesMut::new(), Vec::new());
            for part in sent.chunks(step) {
                buffer.extend_from_slice(part);
                while let Some(event) = next_event(&mut buffer, 1000).unwrap() {
                    received.push(Event::from_frame(event).unwrap().tag().to_owned());
                }
            }
            assert_eq!(received, ["one", "two", "three"], "{with_length} {step}");
            assert!(buffer.is_empty());
        }
    }
}

#[test]
fn oversized_and_invalid_messages_end_the_connection() {
    for (bytes, what) in [
        (&b"\x7f\xff\xff\xff"[..], "the limit is 1000"),
        (b"\x00\x00\x00\x03abc", "neither ZeroMQ's nor Salt's"),
        (b"\x00\x00\x00\x01\x80", "no 'body'"),
        (b"\x81\xa4body\xc1", "neither ZeroMQ's nor Salt's"),
        (b"GET / HTTP/1.1\r\n\r\n", "the limit is 1000"),
    ] {
        let error = next_event(&mut BytesMut::from(bytes), 1000).unwrap_err().to_string();
        assert!(error.contains(what), "{error}");
    }
    // Memory is bounded for an event without a length, too.
    let mut endless = BytesMut::from(&b"\x81\xa4body\xc6\x7f\xff\xff\xff"[..]);
    endless.resize(2000, 0);
    assert!(next_event(&mut endless, 1000).is_err());
}

#[test]
fn a_process_without_salt_expects_no_length() {
    assert!(!expects_length(std::process::id().cast_signed()));
    assert!(!expects_length(i32::MAX));
}
