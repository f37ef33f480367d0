//! Tests of the states of `file` on real files.

use brine_value::{Map, Value, list, map};

use crate::testing;

mod contents;
mod hard_links;
mod links;
mod refusals;

fn run(fun: &str, args: Map, test: bool) -> (Option<bool>, String, Map) {
    let context = testing::state_context(test, &[("a.txt", "hello\n"), ("t.j2", "x={{ x }} {{ grains.id }}\n")]);
    let result = context.call.minion.states.call(&context, fun, brine_function::Args::keyword(args)).unwrap();
    let comment = result.get("comment").unwrap().to_string();
    (
        result.get("result").and_then(Value::as_bool),
        comment,
        result.get("changes").and_then(Value::as_map).cloned().unwrap(),
    )
}

#[test]
fn a_managed_file_is_created_kept_and_updated() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("f").display().to_string();
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
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("sub/f").display().to_string();
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
fn logins_in_urls_are_not_shown() {
    let directory = tempfile::tempdir().unwrap();
    let name = directory.path().join("f").display().to_string();
    for source in ["https://me:hidden@127.0.0.1:1/a.tar", "ftp://me:hidden@127.0.0.1/a.tar"] {
        for (function, args) in [
            ("file.managed", map! {"name" => &name, "source" => source}),
            ("file.managed", map! {"name" => &name, "source" => source, "skip_verify" => true}),
            ("file.managed", map! {"name" => &name, "source" => source, "source_hash" => format!("{source}.sha256")}),
            ("file.managed", map! {"name" => &name, "source" => source, "source_hash" => source}),
            ("file.cached", map! {"name" => source, "skip_verify" => true}),
            ("file.cached", map! {"name" => source, "source_hash" => format!("{source}.sha256")}),
            ("archive.extracted", map! {"name" => &name, "source" => source, "skip_verify" => true}),
            ("archive.extracted", map! {"name" => &name, "source" => source, "source_hash" => source}),
        ] {
            let (result, comment, _) = run(function, args.clone(), false);
            assert_eq!(result, Some(false), "{function} {args:?}: {comment}");
            assert!(!comment.contains("hidden"), "{function} {args:?}: {comment}");
        }
    }
}

#[test]
fn unmanageable_files_report_the_cause() {
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
        let (result, reported, _) = run("file.managed", args, false);
        assert_eq!((result, reported.as_str()), (Some(false), comment));
    }
}

#[test]
fn directories_are_created_and_removed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a/b").display().to_string();
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

/// Runs states in sequence in a temporary directory, which `F` stands for, and returns each result as `result: comment
/// | changes`.
fn results(states: &[(&str, Map)], test: bool) -> String {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().display().to_string();
    let full = |value: &Value| match value {
        Value::Str(text) => Value::from(text.replace("F/", &format!("{root}/"))),
        other => other.clone(),
    };
    let report = states.iter().map(|(fun, args)| {
        let args = args.iter().map(|(key, value)| (key.clone(), full(value))).collect();
        let (result, comment, changes) = run(fun, args, test);
        format!("{}: {comment} | {}", Value::from(result), brine_value::json::to_json(&changes.into()))
    });
    report.collect::<Vec<_>>().join("\n").replace(&root, "F")
}

#[test]
fn results_of_links_and_touch_match_salt() {
    let states = [
        ("file.touch", map! {"name" => "F/new"}),
        ("file.touch", map! {"name" => "F/new"}),
        ("file.touch", map! {"name" => "F/no/t"}),
        ("file.symlink", map! {"name" => "F/l", "target" => "F/new"}),
        ("file.symlink", map! {"name" => "F/l", "target" => "F/new"}),
        ("file.symlink", map! {"name" => "F/l", "target" => "F/other"}),
        ("file.symlink", map! {"name" => "F/new", "target" => "F/l"}),
        ("file.symlink", map! {"name" => "F/new", "target" => "F/x", "force" => true}),
        ("file.symlink", map! {"name" => "F/no/l", "target" => "F/new"}),
        ("file.symlink", map! {"name" => "F/no/l", "target" => "F/new", "makedirs" => true}),
        ("file.symlink", map! {"name" => "F/no", "target" => "F/new"}),
    ];
    insta::assert_snapshot!(results(&states, false), @r#"
    True: Created empty file F/new | {"new": "F/new"}
    True: Updated times on file F/new | {"touched": "F/new"}
    False: Directory not present to touch file F/no/t | {}
    True: Created new symlink F/l -> F/new | {"new": "F/l"}
    True: Symlink F/l is present and owned by root:root | {}
    True: Created new symlink F/l -> F/other | {"new": "F/l"}
    False: File exists where the symlink F/new should be | {}
    True: Created new symlink F/new -> F/x | {"new": "F/new"}
    False: Directory F/no for symlink is not present | {}
    True: Created new symlink F/no/l -> F/new | {"new": "F/no/l"}
    False: Directory exists where the symlink F/no should be | {}
    "#);
    insta::assert_snapshot!(results(&states[2..9], true), @r#"
    None: File F/no/t is set to be created | {"new": "F/no/t"}
    None: Symlink F/l to F/new is set for creation | {"new": "F/l"}
    None: Symlink F/l to F/new is set for creation | {"new": "F/l"}
    None: Symlink F/l to F/other is set for creation | {"new": "F/l"}
    None: Symlink F/new to F/l is set for creation | {"new": "F/new"}
    None: Symlink F/new to F/x is set for creation | {"new": "F/new"}
    None: Symlink F/no/l to F/new is set for creation
    Directory F/no for symlink is not present | {"new": "F/no/l"}
    "#);
}

#[test]
fn results_of_copies_and_moves_match_salt() {
    let states = [
        ("file.managed", map! {"name" => "F/a", "contents" => "text"}),
        ("file.copy", map! {"name" => "F/b", "source" => "F/a"}),
        ("file.copy", map! {"name" => "F/b", "source" => "F/a"}),
        ("file.copy", map! {"name" => "F/b", "source" => "F/a", "force" => true}),
        ("file.copy", map! {"name" => "F/b", "source" => "F/none"}),
        ("file.rename", map! {"name" => "F/c", "source" => "F/b"}),
        ("file.rename", map! {"name" => "F/c", "source" => "F/b"}),
        ("file.rename", map! {"name" => "F/c", "source" => "F/a"}),
    ];
    insta::assert_snapshot!(results(&states, false), @r#"
    True: File F/a updated | {"diff": "New file"}
    True: Copied "F/a" to "F/b" | {"F/b": "F/a"}
    True: The target file "F/b" exists and will not be overwritten | {}
    True: Copied "F/a" to "F/b" - files are identical but force flag is set | {"F/b": "F/a"}
    False: Source file "F/none" is not present | {}
    True: Moved "F/b" to "F/c" | {"F/c": "F/b"}
    True: Source file "F/b" has already been moved out of place | {}
    True: The target file "F/c" exists and will not be overwritten | {}
    "#);
}

#[test]
fn links_inherit_user_and_group_on_request() {
    use std::os::unix::fs::MetadataExt;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("l");
    for (inherits, owner) in [(true, (12, 34)), (false, (0, 0))] {
        brine_system::user_files::replace_symlink("/old", &path).unwrap();
        std::os::unix::fs::lchown(&path, Some(12), Some(34)).unwrap();
        let arguments =
            map! {"name" => path.display().to_string(), "target" => "/new", "inherit_user_and_group" => inherits};
        assert_eq!(run("file.symlink", arguments, false).0, Some(true));
        let status = path.symlink_metadata().unwrap();
        assert_eq!((status.uid(), status.gid()), owner, "{inherits}");
    }
}

#[test]
fn links_belong_to_the_user_of_the_minion_and_groups_to_the_user() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("l");
    let name = path.display().to_string();
    for (extra, owner) in [
        (map! {}, "root:root"),
        (map! {"user" => "daemon"}, "daemon:daemon"),
        (map! {"group" => "bin"}, "root:bin"),
        (map! {"user" => "nobody", "group" => "bin"}, "nobody:bin"),
    ] {
        let mut arguments = map! {"name" => &name, "target" => "/x"};
        arguments.extend(extra);
        brine_system::user_files::replace_symlink("/x", &path).unwrap();
        std::os::unix::fs::lchown(&path, Some(2), Some(3)).unwrap();
        let comment = format!(
            "The symlink {name} is present, but the ownership of the symlink would be changed from bin:sys to {owner}"
        );
        assert_eq!(
            run("file.symlink", arguments.clone(), true),
            (None, comment, map! {"ownership" => "bin:sys"}),
            "{owner}"
        );
        let comment = format!("Set ownership of symlink {name} to {owner}");
        let first = run("file.symlink", arguments.clone(), false);
        assert_eq!(first, (Some(true), comment, map! {"ownership" => owner}), "{owner}");
        let comment = format!("Symlink {name} is present and owned by {owner}");
        assert_eq!(run("file.symlink", arguments, false), (Some(true), comment, map! {}), "{owner}");
    }
}

#[test]
fn replace_keeps_the_encoding_of_the_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("f").display().to_string();
    let utf16 = b"\xff\xfea\0b\0\n\0";
    let new = b"\xff\xfea\0\xf6\0\n\0";
    for (function, encoding, before, after) in [
        ("state", "utf-16", &utf16[..], &new[..]),
        ("execution", "utf-16", utf16, new),
        ("state", "latin-1", b"\xe4b\n", b"\xe4\xf6\n"),
        ("execution", "latin-1", b"\xe4b\r\n", b"\xe4\xf6\r\n"),
        ("state", "ascii", b"ab\n", b"ab\n"),
        ("execution", "ascii", b"ab\n", b"ab\n"),
        ("state", "ebcdic", b"ab\n", b"ab\n"),
        ("execution", "utf-32", utf16, utf16),
    ] {
        std::fs::write(&path, before).unwrap();
        let arguments = map! {"pattern" => "b", "repl" => "\u{f6}", "backup" => false, "encoding" => encoding};
        let is_done = if function == "state" {
            let mut arguments = arguments;
            arguments.insert("name".into(), (&path).into());
            run("file.replace", arguments, false).0 == Some(true)
        } else {
            let args = brine_function::Args { positional: vec![(&path).into()], keyword: arguments };
            testing::context(&[]).call("file.replace", args).is_ok()
        };
        assert_eq!(is_done, before != after, "{function} {encoding}");
        assert_eq!(std::fs::read(&path).unwrap(), after, "{function} {encoding}");
    }
}

#[test]
fn results_of_edits_match_salt() {
    let states = [
        ("file.append", map! {"name" => "F/f", "text" => "x y"}),
        ("file.append", map! {"name" => "F/f", "text" => brine_value::list!["x   y", "z w"]}),
        ("file.append", map! {"name" => "F/f", "text" => "z w"}),
        ("file.append", map! {"name" => "F/no/f", "text" => "z w"}),
        ("file.prepend", map! {"name" => "F/f", "text" => brine_value::list!["h1", "h2"]}),
        ("file.replace", map! {"name" => "F/f", "pattern" => "^(h)(\\d)$", "repl" => "\\2\\1", "backup" => false}),
        (
            "file.replace",
            map! {"name" => "F/f", "pattern" => "^k=", "repl" => "k=1", "append_if_not_found" => true, "backup" => false},
        ),
        ("file.replace", map! {"name" => "F/f", "pattern" => "^q=", "repl" => "k=1", "append_if_not_found" => true}),
        ("file.replace", map! {"name" => "F/none", "pattern" => "a", "repl" => "b"}),
        ("file.replace", map! {"name" => "F/none", "pattern" => "a", "repl" => "b", "ignore_if_missing" => true}),
        ("file.comment", map! {"name" => "F/f", "regex" => "^x", "backup" => false}),
        ("file.comment", map! {"name" => "F/f", "regex" => "^x"}),
        ("file.comment", map! {"name" => "F/f", "regex" => "^nope"}),
        ("file.uncomment", map! {"name" => "F/f", "regex" => "^x", "backup" => false}),
        ("file.uncomment", map! {"name" => "F/f", "regex" => "^x"}),
        ("file.blockreplace", map! {"name" => "F/f", "content" => "c"}),
        (
            "file.blockreplace",
            map! {"name" => "F/f", "content" => "c", "prepend_if_not_found" => true, "backup" => ".old"},
        ),
    ];
    insta::assert_snapshot!(results(&states, false), @r#"
    True: Appended 1 lines | {"diff": "--- \n\n+++ \n\n@@ -0,0 +1 @@\n\n+x y"}
    True: Appended 1 lines | {"diff": "--- \n\n+++ \n\n@@ -1 +1,2 @@\n\n x y\n+z w"}
    True: File F/f is in correct state | {}
    False: F/no/f: file not found | {}
    True: Prepended 2 lines | {"diff": "--- \n+++ \n@@ -1,2 +1,4 @@\n+h1\n+h2\n x y\n z w\n"}
    True: Changes were made | {"diff": "--- \n+++ \n@@ -1,4 +1,4 @@\n-h1\n-h2\n+1h\n+2h\n x y\n z w\n"}
    True: Changes were made | {"diff": "--- \n+++ \n@@ -2,3 +2,4 @@\n 2h\n x y\n z w\n+k=1\n"}
    True: No changes needed to be made | {}
    False: F/none: file not found | {}
    True: No changes needed to be made | {}
    True: Commented lines successfully | {"diff": "--- \n+++ \n@@ -1,5 +1,5 @@\n 1h\n 2h\n-x y\n+#x y\n z w\n k=1\n"}
    True: Pattern already commented | {}
    False: nope: Pattern not found | {}
    True: Uncommented lines successfully | {"diff": "--- \n+++ \n@@ -1,5 +1,5 @@\n 1h\n 2h\n-#x y\n+x y\n z w\n k=1\n"}
    True: Pattern already uncommented | {}
    False: Encountered error managing block: Cannot edit marked block. Markers were not found in file.. See the log for details. | {}
    True: Changes were made | {"diff": "--- \n+++ \n@@ -1,3 +1,6 @@\n+#-- start managed zone --\n+c\n+#-- end managed zone --\n 1h\n 2h\n x y\n"}
    "#);
}

#[test]
fn a_tree_matches_its_source_and_is_cleaned() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().join("tree");
    let mut context =
        testing::state_context(false, &[("t/a", "one"), ("t/sub/b", "two"), ("t/x.bak", ""), ("tt/c", "")]);
    let mut call = |args: Map, required: &[&str]| {
        context.required =
            required.iter().map(|name| ("file".to_owned(), root.join(name).display().to_string())).collect();
        let mut args = args;
        args.insert("name".into(), root.display().to_string().into());
        let fun = if args.contains_key("source") { "file.recurse" } else { "file.directory" };
        let result = context.call.minion.states.call(&context, fun, brine_function::Args::keyword(args)).unwrap();
        let message = format!(
            "{}: {}",
            result.get("result").unwrap(),
            brine_value::json::to_json(result.get("changes").unwrap())
        );
        message.replace(&root.display().to_string(), "T")
    };
    let tree = map! {"source" => "salt://t", "exclude_pat" => "*.bak"};
    insta::assert_snapshot!(call(tree.clone(), &[]), @r#"True: {"T/sub": {"T/sub": {"directory": "new"}}, "T/a": {"diff": "New file", "mode": "0644"}, "T/sub/b": {"diff": "New file", "mode": "0644"}}"#);
    insta::assert_snapshot!(call(tree.clone(), &[]), @r#"True: {}"#);
    std::fs::write(root.join("sub/own"), "").unwrap();
    std::fs::write(root.join("old"), "").unwrap();
    std::fs::write(root.join("kept.bak"), "").unwrap();
    let mut clean = tree;
    clean.insert("clean".into(), true.into());
    insta::assert_snapshot!(call(clean, &["sub/own"]), @r#"True: {"removed": ["T/old"]}"#);
    insta::assert_snapshot!(call(map! {"dir_mode" => "750", "file_mode" => "600", "recurse" => "mode"}, &[]), @r#"True: {"T/a": {"mode": "0600"}, "T/kept.bak": {"mode": "0600"}, "T/sub": {"mode": "0750"}, "T/sub/b": {"mode": "0600"}, "T/sub/own": {"mode": "0600"}, "T": {"mode": "0750"}, "mode": "0600"}"#);
    insta::assert_snapshot!(call(map! {"clean" => true}, &["sub/own"]), @r#"True: {"T/a": {"removed": "Removed due to clean"}, "T/kept.bak": {"removed": "Removed due to clean"}, "T/sub/b": {"removed": "Removed due to clean"}, "removed": ["T/a", "T/kept.bak", "T/sub/b"]}"#);
    assert!(root.join("sub/own").exists() && !root.join("a").exists());
}

#[test]
fn drafts_are_checked_and_replaced_files_backed_up() {
    let states = [
        ("file.managed", map! {"name" => "F/f", "contents" => "good", "check_cmd" => "grep -q bad"}),
        ("file.managed", map! {"name" => "F/f", "contents" => "good", "check_cmd" => "grep -q good", "mode" => "0600"}),
        ("file.managed", map! {"name" => "F/f", "contents" => "other", "replace" => false}),
        ("file.managed", map! {"name" => "F/g", "source" => "salt://a.txt", "mode" => "keep", "user" => "nobody"}),
        ("file.managed", map! {"name" => "F/e"}),
        ("file.managed", map! {"name" => "F/o", "replace" => false, "mode" => 440, "user" => "nobody"}),
        ("file.managed", map! {"name" => "F/p", "contents" => "x", "template" => "", "source_hash" => list![]}),
        ("file.managed", map! {"name" => "F/z", "contents" => "x", "create" => false}),
    ];
    insta::assert_snapshot!(results(&states, false), @r#"
    False: check_cmd execution failed | {}
    True: File F/f updated | {"diff": "New file"}
    True: File F/f exists with proper permissions. No changes made. | {}
    True: File F/g updated | {"diff": "New file", "user": "nobody", "mode": "0644"}
    True: Empty file | {"new": "file F/e created"}
    True: Empty file | {"new": "file F/o created", "user": "nobody", "mode": "0440"}
    True: File F/p updated | {"diff": "New file"}
    True: File F/z is not present and is not set for creation | {}
    "#);
}

#[test]
fn data_is_serialized_and_merged() {
    let data = map! {"b" => brine_value::list![1, "x"], "a" => Value::Nil};
    let states = [
        ("file.serialize", map! {"name" => "F/y", "dataset" => data.clone()}),
        ("file.serialize", map! {"name" => "F/y", "dataset" => data.clone()}),
        ("file.serialize", map! {"name" => "F/j", "dataset" => data, "formatter" => "json"}),
        (
            "file.serialize",
            map! {"name" => "F/j", "dataset" => map! {"c" => 1}, "formatter" => "json", "merge_if_exists" => true},
        ),
        ("file.serialize", map! {"name" => "F/q", "dataset_pillar" => "secret", "formatter" => "q"}),
        ("file.serialize", map! {"name" => "F/q"}),
    ];
    insta::assert_snapshot!(results(&states, false), @r#"
    True: File F/y updated | {"diff": "New file"}
    True: File F/y is in the correct state | {}
    True: File F/j updated | {"diff": "New file"}
    True: File F/j updated | {"diff": {"c": {"old": "<_null_>", "new": 1}}}
    False: The q serializer could not be found. It either does not exist or its prerequisites are not installed. | {}
    False: Neither 'dataset' nor 'dataset_pillar' was defined | {}
    "#);
    insta::assert_snapshot!(results(&states[..1], true), @r#"None: Dataset will be serialized and stored into F/y | {"newfile": "F/y"}"#);
}

#[test]
fn a_patch_is_dry_run_before_it_is_applied() {
    if brine_host::programs::which("patch").is_none() {
        eprintln!("left out: the program patch is not installed");
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).display().to_string();
    std::fs::write(path("p"), "--- a\n+++ b\n@@ -1 +1 @@\n-one\n+two\n").unwrap();
    std::fs::write(path("f"), "one\n").unwrap();
    let args = map! {"name" => path("f"), "source" => path("p")};
    let (result, comment, changes) = run("file.patch", args.clone(), true);
    assert_eq!((result, comment.as_str()), (None, "The patch would be applied"));
    assert_eq!(changes.get("retcode"), Some(&0.into()));
    assert_eq!(std::fs::read_to_string(path("f")).unwrap(), "one\n");
    std::fs::write(path("f"), "other\n").unwrap();
    let (result, comment, _) = run("file.patch", args, false);
    assert_eq!(result, Some(false));
    let start = "Patch would not apply cleanly, no changes made. Results of dry-run are below. Run state again using \
                 the reject_file option to save rejects to a persistent file.\n\n";
    assert!(comment.starts_with(start) && comment.contains("1 out of 1 hunk FAILED"), "{comment}");
    assert_eq!(std::fs::read_to_string(path("f")).unwrap(), "other\n");
}
