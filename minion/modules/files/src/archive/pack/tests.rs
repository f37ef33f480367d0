use brine_function::Args;
use brine_value::{Map, list};

use super::*;

#[test]
fn archives_are_written_and_read_again() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    fs::create_dir_all(root.join("in/deep")).unwrap();
    fs::write(root.join("in/a.txt"), "one").unwrap();
    fs::write(root.join("in/deep/b.txt"), "two").unwrap();
    fs::set_permissions(root.join("in/a.txt"), fs::Permissions::from_mode(0o640)).unwrap();
    std::os::unix::fs::symlink("deep", root.join("in/loop")).unwrap();
    let zip = root.join("in/all.zip").to_string_lossy().into_owned();
    let context = crate::testing::context(&[]);
    let call = |fun: &str, positional: Vec<Value>, keyword: Map| {
        context.call(&format!("archive.{fun}"), Args { positional, keyword })
    };
    let cwd = || map! {"cwd" => root.to_str().unwrap()};
    let archived = call("zip", vec![zip.as_str().into(), "in".into()], cwd()).unwrap();
    assert_eq!(archived, list!["in/", "in/a.txt", "in/deep/", "in/deep/b.txt"]);
    let out = root.join("out");
    call("unzip", vec![zip.as_str().into(), out.to_str().unwrap().into()], map! {}).unwrap();
    assert_eq!(fs::read_to_string(out.join("in/deep/b.txt")).unwrap(), "two");
    assert_eq!(out.join("in/a.txt").metadata().unwrap().permissions().mode() & 0o777, 0o640);

    for (sources, keyword, expected) in [
        ("in", map! {}, "Relative paths require the 'cwd' parameter"),
        ("in", map! {"cwd" => "x"}, "cwd must be absolute"),
        ("/x", map! {"runas" => "ada"}, "use archive.cmd_zip"),
    ] {
        let error = call("zip", vec![zip.as_str().into(), sources.into()], keyword).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    let missing = call("zip", vec!["/nosuch/x.zip".into(), "/nosuch".into()], map! {}).unwrap_err().to_string();
    assert!(missing.contains("Exception encountered creating zipfile"), "{missing}");
}
