use brine_function::Args;
use brine_value::list;

use super::*;
use crate::testing;

#[test]
fn digests_are_hex() {
    for (kind, expected) in [
        ("md5", Some("0cc175b9c0f1b6a831c399e269772661")),
        ("sha256", Some("ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb")),
        ("crc32", None),
    ] {
        assert_eq!(hash(b"a", kind).ok(), expected.map(Value::from), "{kind}");
    }
}

#[test]
fn signatures_and_files_match_salt() {
    let context = testing::context(&[]);
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("data").display().to_string();
    for (fun, args, expected) in [
        (
            "hmac_compute",
            list!["get salted", "shared secret"],
            "78159ff5bb2d5e0f8d88fe403b0a690791ccbd989830fcc433d5b960c9bf0264".into(),
        ),
        (
            "hmac_signature",
            list!["get salted", "shared secret", "eBWf9bstXg+NiP5AOwppB5HMvZiYMPzEM9W5YMm/AmQ="],
            true.into(),
        ),
        ("hmac_signature", list!["get salted", "shared secret", "eBW"], false.into()),
        ("github_signature", list!["abc", "key", "sha1=4fd0b215276ef12f2b3e4c8ecac2811498b656fc"], true.into()),
        ("github_signature", list!["abd", "key", "sha1=4fd0b215276ef12f2b3e4c8ecac2811498b656fc"], false.into()),
        ("base64_decodefile", list![format!("{}\n{}", "YWJj".repeat(19), "YWJj"), &file], true.into()),
        ("base64_encodefile", list![&file], format!("{}\nYWJj\n", "YWJj".repeat(19)).into()),
    ] {
        let called = Args::positional(args.as_list().unwrap().iter().cloned());
        assert_eq!(context.call(&format!("hashutil.{fun}"), called), Ok(expected), "{fun} {args}");
    }
    let unsigned = Args::positional(["abc".into(), "key".into(), "nothing".into()]);
    assert!(context.call("hashutil.github_signature", unsigned).is_err());
}
