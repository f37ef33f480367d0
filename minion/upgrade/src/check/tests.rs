use brine_x509::PrivateKey;

use super::*;

#[test]
fn a_checksum_is_of_the_named_file() {
    let digest = "0123456789abcdef".repeat(4);
    for (text, is_valid) in [
        (format!("{digest}  brine\n"), true),
        (format!("{} *brine", digest.to_uppercase()), true),
        (format!("{digest}  other\n"), false),
        (format!("{digest}  brine\n{digest}  brine\n"), false),
        (format!("{}  brine\n", &digest[1..]), false),
        (digest.clone(), false),
        (String::new(), false),
    ] {
        let result = checksum(text.as_bytes(), "brine");
        assert_eq!(result.is_ok_and(|actual| actual == digest), is_valid, "{text}");
    }
}

#[test]
fn signatures_are_of_the_key_and_the_text() {
    for (algorithm, digest) in [("ed25519", None), ("ec", Some(Digest::Sha256)), ("rsa", Some(Digest::Sha256))] {
        let key = PrivateKey::generate(algorithm, None).unwrap();
        let public = key.public().unwrap().to_pem();
        let made = key.sign(b"text", digest).unwrap();
        let accepts = |text: &[u8], made: &[u8]| signature(public.as_bytes(), text, made).is_ok();
        assert!(accepts(b"text", &made), "{algorithm}");
        assert!(accepts(b"text", format!("{}\n", STANDARD.encode(&made)).as_bytes()), "{algorithm}");
        assert!(!accepts(b"texT", &made), "{algorithm}");
        assert!(!accepts(b"text", b""), "{algorithm}");
        let other = PrivateKey::generate(algorithm, None).unwrap().public().unwrap().to_pem();
        assert!(signature(other.as_bytes(), b"text", &made).is_err(), "{algorithm}");
    }
    assert!(signature(b"no key", b"text", b"").unwrap_err().to_string().contains("upgrade_pubkey"));
}

#[test]
fn only_programs_of_this_architecture_are_accepted() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("brine");
    let own = std::fs::read(RUNNING).unwrap();
    let result = |bytes: &[u8]| {
        std::fs::write(&path, bytes).unwrap();
        architecture(&path).map_err(|error| error.to_string())
    };
    let changed = |at: usize, value: u8| {
        let mut bytes = own[..own.len().min(100_000)].to_vec();
        bytes[at] = value;
        bytes
    };
    assert_eq!(result(&own), Ok(()));
    assert!(result(&changed(18, 8)).unwrap_err().contains("another architecture"));
    assert!(result(b"#!/bin/sh\n").unwrap_err().contains("expected an ELF executable"));
    assert!(result(&own[..40]).unwrap_err().contains("expected an ELF executable"));
    // A core dump is no program.
    assert!(result(&changed(16, 4)).unwrap_err().contains("expected an ELF executable"));
    if let Some(loader) = Header::parse(&own).unwrap().loader {
        let loader = loader.to_str().unwrap().as_bytes().to_vec();
        let at = own.windows(loader.len()).position(|window| window == loader).unwrap();
        assert!(result(&changed(at + 1, b'X')).unwrap_err().contains("needs the loader"));
    }
}

#[test]
fn headers_of_any_bytes_are_refused_without_a_panic() {
    let own = std::fs::read(RUNNING).unwrap();
    for at in 0..64 {
        for value in [0, 1, 0x7f, 0xff] {
            let mut head = own[..4096.min(own.len())].to_vec();
            head[at] = value;
            _ = Header::parse(&head);
            _ = Header::parse(&head[..at]);
        }
    }
}

#[test]
fn versions_are_compared_by_their_numbers() {
    for (one, other, order) in [
        ("1.10.0", "1.9.9", Ordering::Greater),
        ("1.0", "1.0.0", Ordering::Equal),
        ("1.0.0-rc1", "1.0.0", Ordering::Equal),
        ("0.1.0", "0.2.0", Ordering::Less),
    ] {
        assert_eq!(compare(one, other), order, "{one} {other}");
    }
}
