use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;

use brine_value::map;
use flate2::Compression;
use flate2::write::GzEncoder;

use super::*;
use crate::testing;

fn packed(plain: &[u8]) -> Value {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(plain).unwrap();
    BASE64_STANDARD.encode(encoder.finish().unwrap()).into()
}

#[test]
fn small_files_go_to_a_path_or_into_a_directory() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).display().to_string();
    fs::create_dir(path("sub")).unwrap();
    for (dest, target) in [
        (path("b.txt"), Some(path("b.txt"))),
        (path("sub"), Some(path("sub/a.txt"))),
        (path("sub/"), Some(path("sub/a.txt"))),
        (path("no/such/x"), None),
        (path("new/"), None),
        (path("a.txt/"), None),
    ] {
        let returned = recv(&testing::context(&[]), map! {"/from/a.txt" => "text"}, dest).unwrap();
        match target {
            Some(target) => {
                assert_eq!(returned, Value::from(map! {target.as_str() => true}));
                assert_eq!(fs::read_to_string(target).unwrap(), "text");
            }
            None => assert_eq!(returned, Value::from("Destination unavailable")),
        }
    }
}

#[test]
fn chunks_make_a_file_with_its_mode_and_directories() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("new/deep/file");
    let context = testing::context(&[]);
    let call = |chunk: Value, append: bool, compressed: bool, mode: Option<u32>| {
        recv_chunked(&context, path.display().to_string(), chunk, append, compressed, mode).unwrap()
    };
    assert_eq!(call(packed(b"one "), false, true, Some(0o640)), Value::from(true));
    assert_eq!(call(BASE64_STANDARD.encode("two").into(), true, false, None), Value::from(true));
    assert_eq!(fs::read_to_string(&path).unwrap(), "one two");
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o640);
    // The first chunk replaces the file.
    assert_eq!(call(packed(b"x"), false, true, None), Value::from(true));
    assert_eq!(fs::read_to_string(&path).unwrap(), "x");
    let made = directory.path().join("empty/dir");
    let returned = recv_chunked(&context, made.display().to_string(), Value::Nil, false, true, None).unwrap();
    assert!(returned.is_truthy() && made.is_dir());
    // A file in the place of a directory.
    let below = path.join("x").display().to_string();
    let returned = recv_chunked(&context, below, packed(b""), false, true, None).unwrap();
    assert!(returned.as_str().is_some_and(|error| error.contains("Not a directory")), "{returned}");
}

#[test]
fn chunks_that_are_invalid_or_too_large_are_refused() {
    let large = packed(&vec![0; CHUNK_MAX as usize + 1]);
    for (chunk, compressed, expected) in [
        (Value::from("***"), false, "Invalid symbol"),
        (BASE64_STANDARD.encode("no gzip").into(), true, "decompressing a chunk failed"),
        (large, true, "larger than"),
    ] {
        let error = content(&chunk, compressed).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}
