use std::sync::LazyLock;

use super::*;
use brine_value::map;

static KEY: LazyLock<PrivateKey> = LazyLock::new(|| PrivateKey::generate(2048).unwrap());
const ALGORITHM: SignatureAlgorithm = SignatureAlgorithm::Pkcs1v15Sha1;

fn is_valid(load: &Map) -> bool {
    Signed::of(load).unwrap().is_valid(&KEY.public(), ALGORITHM)
}

#[test]
fn a_signature_covers_all_fields_but_those_that_masters_remove() {
    let mut load = map! {"cmd" => "_return", "nonce" => "n", "id" => "web1", "tok" => vec![1u8], "return" => 1.5};
    assert!(Signed::of(&load).is_none());
    sign(&mut load, &KEY, ALGORITHM).unwrap();
    assert!(is_valid(&load));
    for (field, valid) in
        [("nonce", true), ("tok", true), ("cmd", false), ("id", false), ("return", false), ("sig", false)]
    {
        let mut changed = load.clone();
        changed.insert(field.into(), "changed".into());
        assert_eq!(is_valid(&changed), valid, "{field}");
    }
    let mut longer = load.clone();
    longer.insert("fun".into(), "test.ping".into());
    assert!(!is_valid(&longer));
    let other = PrivateKey::generate(2048).unwrap().public();
    assert!(!Signed::of(&load).unwrap().is_valid(&other, ALGORITHM));
    sign(&mut longer, &KEY, ALGORITHM).unwrap();
    assert!(is_valid(&longer));
}

/// Salt signs the load without `nonce` and `tok`, in the order of its fields, and sends strings of 32 to 255 bytes
/// in the older msgpack encoding.
#[test]
fn the_covered_bytes_do_not_depend_on_how_the_load_was_packed() {
    let text = "x".repeat(40);
    let whole = map! {"jid" => "1", "nonce" => "n", "return" => text.as_str(), "tok" => vec![2u8; 300]};
    let part = map! {"jid" => "1", "return" => text.as_str()};
    assert_eq!(covered(&whole), msgpack::pack_map(&part));
    let older = [&b"\x82\xa3jid\xa11\xa6return\xda\x00\x28"[..], text.as_bytes()].concat();
    assert_ne!(older, msgpack::pack_map(&part));
    assert_eq!(covered(&msgpack::unpack_map(&older).unwrap()), msgpack::pack_map(&part));
}
