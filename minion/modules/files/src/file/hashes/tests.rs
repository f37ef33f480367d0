use super::*;

const MD5: &str = "499ae16dcae71eeb7c3a30c75ea7a1a6";
const OTHER: &str = "00000000000000000000000000000000";
const SHA1: &str = "da39a3ee5e6b4b0d3255bfef95601890afd80709";

#[test]
fn hashes_are_found_by_name() {
    let text = format!("# {OTHER}x\n{OTHER}  b.tar\n{MD5} *dir/a.tar\nSHA1 (a.tar) = {SHA1}\n");
    let cases = [
        ("", ["", "", ""], Some(OTHER)),
        ("", ["", "/tmp/a.tar", ""], Some(MD5)),
        ("", ["a.tar", "/tmp/b.tar", ""], Some(MD5)),
        ("", ["nosuch", "", "http://h/b.tar"], Some(OTHER)),
        ("sha1", ["", "a.tar", ""], Some(SHA1)),
        ("sha512", ["", "a.tar", ""], None),
    ];
    for (kind, names, expected) in cases {
        let names = names.map(str::to_owned);
        assert_eq!(found(&text, kind, &names).map(|hash| hash.hex).as_deref(), expected, "{kind} {names:?}");
    }
}

#[test]
fn sources_are_chosen_and_hashes_read() {
    let directory = tempfile::tempdir().unwrap();
    let archive = directory.path().join("a.tar");
    std::fs::write(&archive, "x").unwrap();
    let hashes = directory.path().join("hashes");
    std::fs::write(&hashes, format!("{MD5}  a.tar\n")).unwrap();
    let archive = archive.to_str().unwrap();
    let context = crate::testing::context(&[]);
    let call = |fun: &str, positional: Vec<Value>| {
        context.call(&format!("file.{fun}"), brine_function::Args { positional, ..Default::default() })
    };
    let sources = Value::List(vec!["/nosuch".into(), map! {archive => MD5}.into()]);
    let chosen = call("source_list", vec![sources, Value::Nil, "base".into()]).unwrap();
    assert_eq!(chosen, Value::List(vec![archive.into(), MD5.into()]));
    let none = call("source_list", vec![Value::List(vec!["/nosuch".into()]), Value::Nil, "base".into()]);
    assert!(none.unwrap_err().to_string().contains("none of the specified sources were found"));

    let expected: Value = map! {"hsum" => MD5, "hash_type" => "md5"}.into();
    let sum = |hash: &str| call("get_source_sum", vec!["/tmp/a.tar".into(), "".into(), hash.into()]);
    assert_eq!(sum(&format!("md5={MD5}")).unwrap(), expected);
    assert_eq!(sum(hashes.to_str().unwrap()).unwrap(), expected);
    assert!(sum("nohash").unwrap_err().to_string().contains("format is invalid"));
    assert!(sum("/nosuch").unwrap_err().to_string().contains("not found"));
    let extracted = call("extract_hash", vec![hashes.to_str().unwrap().into(), "md5".into()]).unwrap();
    assert_eq!(extracted, expected);
}
