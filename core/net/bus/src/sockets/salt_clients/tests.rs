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

#[test]
fn the_package_of_a_client_is_found_by_its_modules_and_by_its_interpreter() {
    let root = tempfile::tempdir().unwrap();
    let make = |path: &str| std::fs::create_dir_all(root.path().join(path).join("transport")).unwrap();
    make("venv/lib/python3.11/site-packages/salt");
    make("usr/lib/python3/dist-packages/salt");
    make("opt/local/lib/python3.13/dist-packages/salt");
    std::fs::create_dir_all(root.path().join("empty/lib/python3.11/site-packages")).unwrap();
    let under = |path: &str| root.path().join(path);
    for (interpreter, expected) in [
        ("venv/bin/python3", Some("venv/lib/python3.11/site-packages/salt")),
        ("usr/bin/python3.11", Some("usr/lib/python3/dist-packages/salt")),
        ("opt/bin/python3", Some("opt/local/lib/python3.13/dist-packages/salt")),
        ("empty/bin/python3", None),
        ("venv/python3", None),
    ] {
        assert_eq!(package_of_interpreter(&under(interpreter)), expected.map(under), "{interpreter}");
    }
    assert_eq!(package_of_interpreter(Path::new("python3")), None);
    let maps = "7f00-7f01 r--p 00000000 fe:00 12 /usr/lib/libc.so\n\
                7f01-7f02 r--p 00000000 fe:00 13 /venv/lib/python3.11/site-packages/zmq/a.so\n";
    let expected = Some(under("venv/lib/python3.11/site-packages/salt"));
    assert_eq!(package_of_modules(maps, root.path()), expected);
    assert_eq!(package_of_modules("", root.path()), None);
}
