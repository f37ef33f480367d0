//! States that refuse a file, as Salt does, and leave it unchanged.

use super::links::in_directory;
use super::*;

/// Each row: the content of `F/f`, a state, the end of its comment. The state fails in test mode, too.
#[test]
fn files_that_a_state_cannot_change_stay_as_they_are() {
    let merging = |dataset: Value, serializer: &str| map! {"dataset" => dataset, "serializer" => serializer, "merge_if_exists" => true};
    let mapping = || Value::from(map! {"a" => 1});
    let json_option = map! {"deserializer_opts" => list![map! {"nope" => 1}]};
    for (have, function, arguments, comment) in [
        (&b"x\0y\n"[..], "file.replace", map! {"pattern" => "x", "repl" => "z"}, "on a binary file: F/f"),
        (
            b"S\0\nE\n",
            "file.blockreplace",
            map! {"marker_start" => "S", "marker_end" => "E", "content" => "c"},
            "on a binary file: F/f",
        ),
        (
            b"x\n",
            "file.replace",
            map! {"pattern" => "x", "repl" => "z", "flags" => list!["IGNORECASEX"]},
            "Invalid re flag given: IGNORECASEX",
        ),
        (b"[1, 2]\n", "file.serialize", merging(mapping(), "json"), "both must be mappings"),
        (b"- 1\n", "file.serialize", merging(mapping(), "yaml"), "both must be mappings"),
        (b"word\n", "file.serialize", merging(mapping(), "yaml"), "both must be mappings"),
        (b"{\"a\": 2}\n", "file.serialize", merging(list![1], "json"), "both must be mappings"),
        (b"\xff\xfe\n", "file.serialize", merging(mapping(), "json"), ""),
        (
            b"{}\n",
            "file.serialize",
            merging(mapping(), "json").into_iter().chain(json_option).collect(),
            "expected strict, got nope",
        ),
    ] {
        for test in [true, false] {
            let directory = tempfile::tempdir().unwrap();
            std::fs::write(directory.path().join("f"), have).unwrap();
            let mut all = map! {"name" => "F/f"};
            all.extend(arguments.clone());
            let (result, actual, changes) = run(function, in_directory(&all, directory.path()), test);
            let comment = comment.replace("F/", &format!("{}/", directory.path().display()));
            assert_eq!((result, changes), (Some(false), Map::new()), "{function} {arguments:?}: {actual}");
            assert!(actual.ends_with(&comment), "{function} {arguments:?}: {actual}");
            assert_eq!(std::fs::read(directory.path().join("f")).unwrap(), have, "{function} {arguments:?}");
        }
    }
}

#[test]
fn hard_links_never_replace_directories() {
    for (name, target, comment) in [
        ("F/d", "F/t", "Unable to hard link to directory F/d"),
        ("F/x", "F/d", "Unable to hard link from directory F/d"),
    ] {
        for (test, force) in [(true, true), (true, false), (false, true), (false, false)] {
            let directory = tempfile::tempdir().unwrap();
            std::fs::create_dir(directory.path().join("d")).unwrap();
            std::fs::write(directory.path().join("d/kept"), "k").unwrap();
            std::fs::write(directory.path().join("t"), "t").unwrap();
            let args = map! {"name" => name, "target" => target, "force" => force};
            let outcome = run("file.hardlink", in_directory(&args, directory.path()), test);
            let comment = comment.replace("F/", &format!("{}/", directory.path().display()));
            assert_eq!((outcome.0, outcome.1, outcome.2), (Some(false), comment, Map::new()), "{test} {force}");
            assert_eq!(std::fs::read_to_string(directory.path().join("d/kept")).unwrap(), "k");
        }
    }
}

#[test]
fn a_directory_without_files_and_directories_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let args = map! {"name" => "F/d", "user" => "root", "recurse" => list!["user", "ignore_files", "ignore_dirs"]};
    let outcome = run("file.directory", in_directory(&args, directory.path()), false);
    assert_eq!(outcome.0, Some(false), "{}", outcome.1);
    assert!(outcome.1.starts_with("Must not specify"), "{}", outcome.1);
    assert!(!directory.path().join("d").exists());
}

/// The words of a check command are no text for a shell.
#[test]
fn check_commands_run_without_a_shell() {
    for (command, result) in [
        ("test -f", true),
        ("", true),
        ("test -f; true", false),
        ("test -n $NOPE -o -f", true),
        ("sh -c 'test -s \"$0\"'", true),
        ("grep -q 'no such'", false),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let args = map! {"name" => "F/f", "contents" => "x", "check_cmd" => command};
        let outcome = run("file.managed", in_directory(&args, directory.path()), false);
        assert_eq!(outcome.0, Some(result), "{command}: {}", outcome.1);
        assert_eq!(directory.path().join("f").exists(), result, "{command}");
    }
}
