use std::os::unix::fs::symlink;
use std::path::PathBuf;

use brine_value::list;

use super::*;

struct Fixture {
    directory: tempfile::TempDir,
    roots: Roots,
}

fn fixture() -> Fixture {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    for directory in ["root/sub", "other", "outside"] {
        fs::create_dir_all(path(directory)).unwrap();
    }
    fs::write(path("root/top.sls"), "a: é\n").unwrap();
    fs::write(path("root/sub/data"), b"\x00\x01").unwrap();
    fs::write(path("other/top.sls"), "b\n").unwrap();
    fs::write(path("outside/secret"), "secret").unwrap();
    symlink(path("outside"), path("root/out")).unwrap();
    symlink(path("outside/secret"), path("root/link")).unwrap();
    symlink(path("outside/new"), path("root/broken")).unwrap();
    let roots = [("base".to_owned(), vec![path("root"), path("other")])].into_iter().collect();
    Fixture { directory, roots }
}

impl Fixture {
    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn path_text(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }
}

#[test]
fn files_are_found_and_read_in_every_root() {
    let fixture = fixture();
    let (one, two) = (fixture.path_text("root/top.sls"), fixture.path_text("other/top.sls"));
    let files = find(&fixture.roots, "top.sls", "base").unwrap();
    assert_eq!(files, list![map! {one.clone() => "txt"}, map! {two.clone() => "txt"}]);
    let content = read(&fixture.roots, "./top.sls", "base").unwrap();
    assert_eq!(content, list![map! {one => "a: é\n"}, map! {two => "b\n"}]);
    let binary = fixture.path_text("root/sub/data");
    assert_eq!(find(&fixture.roots, "sub/data", "base").unwrap(), list![map! {binary => "bin"}]);
    for (path, saltenv) in [("sub/data", "base"), ("top.sls", "dev"), ("none", "base"), ("sub", "base")] {
        assert_eq!(read(&fixture.roots, path, saltenv).unwrap(), list![], "{path} {saltenv}");
    }
}

#[test]
fn environments_are_listed_as_trees_without_following_links() {
    let fixture = fixture();
    let tree = list_env(&fixture.roots, "base").unwrap();
    let root = map! {"broken" => "f", "link" => "f", "out" => map! {}, "sub" => map! {"data" => "f"}, "top.sls" => "f"};
    let expected = map! {fixture.path_text("root") => root, fixture.path_text("other") => map! {"top.sls" => "f"}};
    assert_eq!(tree, expected.into());
    assert_eq!(list_roots(&fixture.roots).unwrap(), map! {"base" => list![tree]}.into());
    assert_eq!(list_env(&fixture.roots, "dev").unwrap(), Value::map());
}

#[test]
fn no_path_leads_out_of_a_root() {
    let fixture = fixture();
    let absolute = fixture.path_text("outside/secret");
    let outside = ["../outside/secret", "sub/../../outside/secret", &absolute, "out/secret", "link", "a\0b", ""];
    for path in outside.into_iter().chain(["broken", "out/new", "../outside/new", "..", "/"]) {
        assert_eq!(find(&fixture.roots, path, "base").unwrap(), list![], "{path}");
        assert_eq!(read(&fixture.roots, path, "base").unwrap(), list![], "{path}");
        let answer = write(&fixture.roots, "x", (path, "base", 0), true).unwrap().to_string();
        let is_refusal = answer == format!("Invalid path: {path}") || answer.contains("is not relative");
        assert!(is_refusal, "{path}: {answer}");
    }
    assert_eq!(fs::read_to_string(fixture.path("outside/secret")).unwrap(), "secret");
    assert!(!fixture.path("outside/new").exists());
}

#[test]
fn files_are_written_into_the_chosen_root() {
    let fixture = fixture();
    let put = |path: &str, saltenv: &str, index| {
        write(&fixture.roots, "new", (path, saltenv, index), false).unwrap().to_string()
    };
    let path = fixture.path_text("root/a/b.sls");
    assert_eq!(put("a/b.sls", "base", 0), format!("Wrote data to file {path}"));
    assert_eq!(fs::read_to_string(path).unwrap(), "new");
    put("top.sls", "base", 1);
    assert_eq!(fs::read_to_string(fixture.path("other/top.sls")).unwrap(), "new");
    assert_eq!(put("top.sls", "dev", 0), "Named environment dev is not present");
    assert_eq!(put("top.sls", "base", 2), "Specified index 2 in environment base is not present");
    assert_eq!(put("../x", "base", 0), "Invalid path");
    assert!(put("/x", "base", 0).starts_with("The path passed in /x is not relative"));
}
