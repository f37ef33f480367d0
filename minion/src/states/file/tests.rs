//! Files as states, with real files.

use brine_core::{Map, Value, map};

use crate::testing;

fn run(fun: &str, args: Map, test: bool) -> (Option<bool>, String, Map) {
    let context = testing::state_context(test, &[("a.txt", "hello\n"), ("t.j2", "x={{ x }} {{ grains.id }}\n")]);
    let result = context.call.minion.states.call(&context, fun, brine_core::function::Args::keyword(args)).unwrap();
    let comment = result.get("comment").unwrap().to_string();
    (
        result.get("result").and_then(Value::as_bool),
        comment,
        result.get("changes").and_then(Value::as_map).cloned().unwrap(),
    )
}

#[test]
fn a_managed_file_is_made_kept_and_updated() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("f").display().to_string();
    let args = |contents: &str| map! {"name" => &path, "contents" => contents, "mode" => "0640"};
    let would = run("file.managed", args("one"), true);
    assert_eq!((would.0, would.2), (None, map! {"newfile" => &path}));
    let (result, comment, changes) = run("file.managed", args("one"), false);
    assert_eq!((result, comment), (Some(true), format!("File {path} updated")));
    assert_eq!(changes, map! {"diff" => "New file", "mode" => "0640"});
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "one\n");
    assert_eq!(
        run("file.managed", args("one"), false),
        (Some(true), format!("File {path} is in the correct state"), Map::new())
    );
    assert_eq!(run("file.managed", args("one"), true).1, format!("The file {path} is in the correct state"));
    let (_, _, changes) = run("file.managed", args("two"), false);
    assert_eq!(changes, map! {"diff" => "--- \n+++ \n@@ -1 +1 @@\n-one\n+two\n"});
}

#[test]
fn sources_and_templates_are_used() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sub/f").display().to_string();
    let source = map! {"name" => &path, "source" => "salt://a.txt"};
    assert_eq!(run("file.managed", source.clone(), false).1, "Parent directory not present");
    let mut with = source;
    with.insert("makedirs".into(), true.into());
    assert_eq!(run("file.managed", with, false).0, Some(true));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "hello\n");
    let template =
        map! {"name" => &path, "source" => "salt://t.j2", "template" => "jinja", "defaults" => map!{"x" => 5}};
    assert_eq!(run("file.managed", template, false).0, Some(true));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "x=5 test-minion\n");
}

#[test]
fn what_cannot_be_managed_says_why() {
    for (args, comment) in [
        (map! {"name" => "relative"}, "Specified file relative is not an absolute path"),
        (map! {"name" => "/tmp"}, "Specified target /tmp is a directory"),
        (
            map! {"name" => "/tmp/zz9", "source" => "salt://nope"},
            "Unable to manage file: Source file salt://nope not found in saltenv 'base'",
        ),
        (
            map! {"name" => "/tmp/zz9", "source" => "salt://a.txt", "contents" => "x"},
            "'source' cannot be used in combination with 'contents', 'contents_pillar', or 'contents_grains'",
        ),
        (
            map! {"name" => "/tmp/zz9", "contents" => "x", "user" => "no_such_user"},
            "User no_such_user is not available ",
        ),
        (map! {"name" => "/tmp/zz9", "contents_pillar" => "no:such"}, "Pillar no:such does not exist"),
    ] {
        let (result, told, _) = run("file.managed", args, false);
        assert_eq!((result, told.as_str()), (Some(false), comment));
    }
}

#[test]
fn folders_are_made_and_removed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a/b").display().to_string();
    assert_eq!(run("file.directory", map! {"name" => &path}, false).1, format!("No directory to create {path} in"));
    let args = map! {"name" => &path, "makedirs" => true, "mode" => 700};
    assert_eq!(
        run("file.directory", args.clone(), true).1,
        format!("The following files will be changed:\n{path}: directory - new\n")
    );
    assert_eq!(run("file.directory", args.clone(), false).0, Some(true));
    assert_eq!(run("file.directory", args, false).1, format!("The directory {path} is in the correct state"));
    assert_eq!(run("file.absent", map! {"name" => &path}, true).1, format!("Directory {path} is set for removal"));
    assert_eq!(run("file.absent", map! {"name" => &path}, false).2, map! {"removed" => &path});
    assert_eq!(run("file.absent", map! {"name" => &path}, false).1, format!("File {path} is not present"));
    assert_eq!(run("file.absent", map! {"name" => "/"}, false).1, "Refusing to make \"/\" absent");
}
