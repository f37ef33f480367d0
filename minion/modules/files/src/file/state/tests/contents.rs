//! Tests of contents, sources, copies and directories, with the results of Salt.

use std::os::unix::fs::PermissionsExt;

use brine_value::{Value, list, map};

use super::run;
use crate::testing;

#[test]
fn inline_contents_are_lines() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("f").display().to_string();
    for (contents, with_newline, without) in [
        (Value::from("COOKIE\n"), "COOKIE\n", "COOKIE"),
        ("a".into(), "a\n", "a"),
        ("a\n\n".into(), "a\n\n", "a"),
        ("\n".into(), "\n", ""),
        ("".into(), "", ""),
        ("a\r\nb\rc".into(), "a\nb\nc\n", "a\nb\nc"),
        (list!["a\n", "b"], "a\nb\n", "a\nb"),
        (list!["a", 1, true, "\n"], "a\n1\nTrue\n\n", "a\n1\nTrue"),
        (list!["a", "", "b"], "a\nb\n", "a\nb"),
        (false.into(), "False\n", "False"),
    ] {
        for (newline, expected) in [(true, with_newline), (false, without)] {
            let args = map! {"name" => &path, "contents" => contents.clone(), "contents_newline" => newline};
            assert_eq!(run("file.managed", args, false).0, Some(true));
            assert_eq!(std::fs::read_to_string(&path).unwrap(), expected, "{contents} {newline}");
        }
    }
    let grains = map! {"name" => &path, "contents_grains" => list!["id", "id"]};
    assert_eq!(run("file.managed", grains, false).0, Some(true));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "test-minion\ntest-minion\n");
    let empty = map! {"name" => &path, "contents" => list![]};
    assert_eq!(run("file.managed", empty, false).0, Some(false));
}

#[test]
fn the_next_source_of_a_list_follows_one_that_cannot_be_reached() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("f").display().to_string();
    // No server listens on a port that was just closed.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let url = format!("http://127.0.0.1:{port}/x");
    let none = "Unable to manage file: none of the specified sources were found";
    for (sources, comment) in [
        (list![&url, "salt://a.txt"], None),
        (list!["/nope", "salt://nope", "salt://a.txt"], None),
        (list![&url, "salt://nope"], Some(none)),
        (list![&url], Some(none)),
    ] {
        _ = std::fs::remove_file(&path);
        let (result, reported, _) = run("file.managed", map! {"name" => &path, "source" => sources.clone()}, false);
        assert_eq!(result, Some(comment.is_none()), "{sources:?}: {reported}");
        assert_eq!(comment.unwrap_or(&reported), reported);
    }
}

#[test]
fn a_template_is_not_rendered_onto_itself() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("f").display().to_string();
    std::fs::write(&path, "{{ 1 }}\n").unwrap();
    for source in [path.clone(), format!("file://{path}")] {
        let args = map! {"name" => &path, "source" => source, "template" => "jinja"};
        let (result, comment, _) = run("file.managed", args, false);
        let refusal = "Unable to manage file: Source file cannot be the same as destination";
        assert_eq!((result, comment.as_str()), (Some(false), refusal));
    }
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "{{ 1 }}\n");
}

#[test]
fn added_texts_of_sources_are_templates() {
    let variables = || map! {"source" => "salt://t.j2", "defaults" => map! {"x" => 5}};
    let block = map! {"marker_start" => "S", "marker_end" => "E", "append_if_not_found" => true};
    for (fun, more, text) in [
        ("file.append", map! {}, "have\nx=5 test-minion\n"),
        ("file.prepend", map! {}, "x=5 test-minion\nhave\n"),
        ("file.blockreplace", block, "have\nS\nx=5 test-minion\nE\n"),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("f").display().to_string();
        std::fs::write(&path, "have\n").unwrap();
        let mut args = variables();
        args.extend(more);
        args.insert("name".into(), (&path).into());
        assert_eq!(run(fun, args, false).0, Some(true), "{fun}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text, "{fun}");
    }
}

#[test]
fn an_append_ends_the_last_line() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("f").display().to_string();
    std::fs::write(&path, "a\nb").unwrap();
    let (_, _, changes) = run("file.append", map! {"name" => &path, "text" => "c"}, false);
    assert_eq!(changes, map! {"diff" => "--- \n\n+++ \n\n@@ -1,2 +1,3 @@\n\n a\n b\n+c"});
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "a\nb\nc\n");
}

#[test]
fn literal_backslashes_are_added_once() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("f").display().to_string();
    std::fs::write(&path, "a\n").unwrap();
    let args = map! {"name" => &path, "pattern" => "^x.*", "repl" => r"x \K\d", "backslash_literal" => true,
    "append_if_not_found" => true, "backup" => false};
    for is_changed in [true, false] {
        assert_eq!(run("file.replace", args.clone(), false).2.is_empty(), !is_changed);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "a\nx \\K\\d\n");
    }
}

#[test]
fn an_argument_of_another_state_is_a_warning() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("f").display().to_string();
    let context = testing::state_context(false, &[]);
    let args = brine_function::Args::keyword(map! {"name" => &path, "contents" => "x", "file_mode" => "0600"});
    let outcome = context.call.minion.states.call(&context, "file.managed", args).unwrap();
    let warning = "The 'file_mode' argument will be ignored.  Please use 'mode' instead to set file permissions.";
    assert_eq!(outcome.get("warnings"), Some(&list![warning]));
}

#[test]
fn hard_links_give_new_directories_the_owner() {
    use std::os::unix::fs::MetadataExt;
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name).display().to_string();
    std::fs::write(at("t"), "x").unwrap();
    let args = map! {"name" => at("a/b/l"), "target" => at("t"), "makedirs" => true, "user" => "nobody",
    "group" => "nogroup"};
    let (result, comment, _) = run("file.hardlink", args, false);
    // Only root may give directories to others.
    if std::fs::metadata(directory.path()).unwrap().uid() != 0 {
        return;
    }
    assert_eq!(result, Some(true), "{comment}");
    let owner = std::fs::metadata(at("a/b")).unwrap().uid();
    assert_ne!(owner, 0);
    assert_eq!([owner, owner], ["a", "a/b"].map(|name| std::fs::metadata(at(name)).unwrap().uid()));
    assert_eq!(std::fs::metadata(at("t")).unwrap().uid(), 0, "the file itself keeps its owner");
}

#[test]
fn texts_in_latin_1_are_compared_by_line() {
    for (have, new_content, diff) in [
        (&b"r\xe4k\n"[..], &b"x\n"[..], "--- \n+++ \n@@ -1 +1 @@\n-r\u{e4}k\n+x\n"),
        (b"x\n", b"\x89PNG\xff\xfe", "Replace text file with binary file"),
        (b"a\0", b"r\xe4k\n", "Replace binary file with text file"),
    ] {
        assert_eq!(super::super::difference(Some(have), new_content, true), map! {"diff" => diff});
    }
}

#[test]
fn copies_and_moves_go_into_a_directory_named_with_a_slash() {
    for (fun, args, result, there) in [
        ("file.copy", map! {"makedirs" => true}, true, "new/t"),
        ("file.copy", map! {"makedirs" => true, "subdir" => true}, true, "new/t"),
        ("file.copy", map! {}, false, "t"),
        ("file.rename", map! {"makedirs" => true}, true, "new/t"),
        ("file.rename", map! {}, false, "t"),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        std::fs::write(at("t"), "x").unwrap();
        let name = at("new/").display().to_string();
        let mut all = map! {"name" => &name, "source" => at("t").display().to_string()};
        all.extend(args);
        let (actual, comment, changes) = run(fun, all, false);
        assert_eq!(actual, Some(result), "{fun}: {comment}");
        assert!(at(there).is_file(), "{fun} {there}");
        assert!(!result || comment.ends_with(&format!("to \"{name}\"")), "{comment}");
        assert_eq!(changes.is_empty(), !result);
    }
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name).display().to_string();
    std::fs::write(at("t"), "x").unwrap();
    std::fs::create_dir_all(at("d/full")).unwrap();
    let args = map! {"name" => at("d"), "source" => at("t"), "force" => true, "preserve" => true, "mode" => "0600"};
    assert_eq!(run("file.copy", args, false).0, Some(true));
    let mode = |path: String| std::os::unix::fs::MetadataExt::mode(&std::fs::metadata(path).unwrap());
    assert_eq!(mode(at("d")), mode(at("t")), "a directory is replaced by a copy that keeps the mode");
}

#[test]
fn times_are_integers_also_before_1970() {
    use std::os::unix::fs::MetadataExt;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("f").display().to_string();
    let (result, comment, _) = run("file.touch", map! {"name" => &path, "atime" => "abc"}, false);
    assert_eq!((result, comment.as_str()), (Some(false), "atime and mtime must be integers"));
    let args = map! {"name" => &path, "atime" => "7", "mtime" => -5};
    assert_eq!(run("file.touch", args.clone(), false).0, Some(true));
    let status = std::fs::metadata(&path).unwrap();
    assert_eq!((status.atime(), status.mtime()), (7, -5));
    assert_eq!(run("file.touch", args, true).1, format!("File {path} exists and has the correct times"));
}

#[test]
fn directories_replace_links_and_give_files_their_mode() {
    use std::os::unix::fs::{MetadataExt, symlink};
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    std::fs::create_dir(at("target")).unwrap();
    let name = at("d").display().to_string();
    let backup = at("old").display().to_string();
    for (args, result, replaced) in [
        (map! {"allow_symlink" => false}, Some(false), false),
        (map! {}, Some(true), false),
        (map! {"allow_symlink" => false, "force" => true}, Some(true), true),
        (map! {"force" => true}, Some(true), true),
        (map! {"allow_symlink" => false, "backupname" => &backup}, Some(true), true),
    ] {
        _ = std::fs::remove_dir(at("d"));
        _ = std::fs::remove_file(at("d"));
        symlink("target", at("d")).unwrap();
        let mut all = map! {"name" => &name};
        all.extend(args.clone());
        let (actual, comment, _) = run("file.directory", all, false);
        assert_eq!((actual, !at("d").is_symlink()), (result, replaced), "{args:?}: {comment}");
    }
    assert!(at("old").is_symlink());
    std::fs::write(at("target/f"), "").unwrap();
    let target = at("target").display().to_string();
    let args = map! {"name" => &target, "dir_mode" => "750", "recurse" => list!["mode"]};
    assert_eq!(run("file.directory", args, false).0, Some(true));
    assert_eq!(std::fs::metadata(at("target/f")).unwrap().mode() & 0o777, 0o750);
    let both = map! {"name" => &target, "max_depth" => 1, "clean" => true};
    assert_eq!(run("file.directory", both, false).1, "Cannot specify both max_depth and clean");
}

#[test]
fn clean_matches_the_content_of_excluded_directories() {
    for (pattern, left) in
        [("keep", ["keep"].as_slice()), ("E@^stray(|/keep)$", &["stray", "stray/keep"]), ("keep*", &["keep", "keep/k"])]
    {
        let directory = tempfile::tempdir().unwrap();
        for path in ["keep", "stray"] {
            std::fs::create_dir(directory.path().join(path)).unwrap();
        }
        for path in ["keep/k", "stray/junk", "stray/keep"] {
            std::fs::write(directory.path().join(path), "").unwrap();
        }
        let name = directory.path().display().to_string();
        let args = map! {"name" => name, "clean" => true, "exclude_pat" => pattern};
        assert_eq!(run("file.directory", args, false).0, Some(true));
        let all = ["keep", "keep/k", "stray", "stray/junk", "stray/keep"];
        let there: Vec<&str> = all.into_iter().filter(|path| directory.path().join(path).exists()).collect();
        assert_eq!(there, left, "{pattern}");
    }
}

#[test]
fn binary_files_are_copied_instead_of_rendered() {
    let directory = tempfile::tempdir().unwrap();
    let [path, source] = ["f", "source"].map(|name| directory.path().join(name).display().to_string());
    for (content, result) in [(&b"\x89PNG\xff\xfe"[..], true), (b"a\0\xff{{ 1 }}", true), (b"r\xe4k {{ 1 }}\n", false)]
    {
        _ = std::fs::remove_file(&path);
        std::fs::write(&source, content).unwrap();
        let args = map! {"name" => &path, "source" => &source, "template" => "jinja"};
        assert_eq!(run("file.managed", args, false).0, Some(result), "{content:?}");
        assert_eq!(std::fs::read(&path).ok().as_deref(), result.then_some(content));
    }
}

#[test]
fn binary_serializations_are_written_as_they_are() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("f").display().to_string();
    for (dataset, bytes) in [(Value::from(10), &b"\x0a"[..]), (map! {"a" => "\r\n"}.into(), b"\x81\xa1a\xa2\r\n")] {
        let args = map! {"name" => &path, "dataset" => dataset, "formatter" => "msgpack"};
        assert_eq!(run("file.serialize", args, false).0, Some(true));
        assert_eq!(std::fs::read(&path).unwrap(), bytes);
    }
}

#[test]
fn merged_data_that_changes_nothing_leaves_the_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("f").display().to_string();
    std::fs::write(&path, "{\"a\": 1}\n").unwrap();
    let args = map! {"name" => &path, "dataset" => map! {"a" => 1}, "formatter" => "json", "merge_if_exists" => true};
    let (result, comment, changes) = run("file.serialize", args, false);
    assert_eq!((result, comment), (Some(true), format!("The file {path} is in the correct state")));
    assert_eq!((changes, std::fs::read_to_string(&path).unwrap()), (map! {}, "{\"a\": 1}\n".to_owned()));
}

#[test]
fn yaml_is_merged_with_data_as_in_salt() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("f").display().to_string();
    let more = || map! {"new" => 1, "over" => "2022-02-02", "in" => map! {"s" => "2020-01-01"}};
    for (have, expected) in [
        ("mode: 0644", "mode: 420"),
        ("mode: 0644\nmode: 0600", "mode: 384"),
        ("mode: '0644'", "mode: '0644'"),
        ("d: 2020-01-01", "d: 2020-01-01"),
        ("d: '2020-01-01'", "d: '2020-01-01'"),
        ("t: 2020-01-01T10:00:00+02:00", "t: 2020-01-01 10:00:00+02:00"),
        ("l: [2020-01-01, x]", "l:\n- 2020-01-01\n- x"),
        ("k: {2020-01-01: 2021-01-01}", "k:\n  2020-01-01: 2021-01-01"),
        ("over: 2020-01-01", ""),
        ("in: {s: 2020-01-01}", ""),
    ] {
        std::fs::write(&path, have).unwrap();
        let args = map! {"name" => &path, "dataset" => more(), "formatter" => "yaml", "merge_if_exists" => true};
        assert_eq!(run("file.serialize", args, false).0, Some(true), "{have}");
        let mut text = std::fs::read_to_string(&path).unwrap();
        for line in ["new: 1\n", "over: '2022-02-02'\n", "in:\n  s: '2020-01-01'\n"] {
            assert!(text.contains(line), "{have}: {text}");
            text = text.replacen(line, "", 1);
        }
        assert_eq!(text.trim_end(), expected, "{have}");
    }
}

#[test]
fn bytes_are_written_unchanged_as_utf_8() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("f");
    let bytes = b"\xff\x00\n".to_vec();
    let args = map! {"name" => path.display().to_string(), "contents" => bytes.clone(), "encoding" => "utf-8"};
    assert_eq!(run("file.managed", args, false).0, Some(true));
    assert_eq!(std::fs::read(path).unwrap(), bytes);
}

#[test]
fn line_keeps_a_backup_beside_the_file() {
    let directory = tempfile::tempdir().unwrap();
    let (path, link) = (directory.path().join("f"), directory.path().join("link"));
    std::os::unix::fs::symlink("f", &link).unwrap();
    for (name, backup, expected) in [(&path, true, 1), (&link, true, 1), (&path, false, 0)] {
        std::fs::write(&path, "a\nb\n").unwrap();
        let args = map! {
            "name" => name.display().to_string(), "content" => "new", "mode" => "ensure", "after" => "a",
            "backup" => backup,
        };
        assert_eq!(run("file.line", args, false).0, Some(true), "{name:?}");
        let names = std::fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().path());
        let backups: Vec<_> = names.filter(|file| *file != path && *file != link).collect();
        assert_eq!(backups.len(), expected, "{backups:?}");
        for backup in backups {
            let stamp = backup.display().to_string().replace(&format!("{}.", path.display()), "");
            let form: String = stamp.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
            assert_eq!(form, "0000-00-00-00-00-00");
            assert_eq!(std::fs::read_to_string(&backup).unwrap(), "a\nb\n");
            std::fs::remove_file(backup).unwrap();
        }
    }
}

#[test]
fn silent_recursion_reports_no_paths() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("d");
    let name = path.display().to_string();
    let silenced = || map! {"recursion" => "Changes silenced", "mode" => "0750"};
    for (mode_before, more, test, expected) in [
        (0o700, map! {}, false, silenced()),
        (0o750, map! {}, false, map! {}),
        (0o700, map! {"children_only" => true}, false, silenced()),
        (
            0o700,
            map! {},
            true,
            map! {&name => map! {"mode" => "0750"}, format!("{name}/in") => map! {"mode" => "0750"}},
        ),
        (0o700, map! {"clean" => true}, false, {
            let mut changes = silenced();
            changes.insert("removed".into(), list![format!("{name}/in")]);
            changes
        }),
    ] {
        std::fs::create_dir_all(path.join("in")).unwrap();
        for path in [&path, &path.join("in")] {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode_before)).unwrap();
        }
        let mut args = map! {"name" => &name, "dir_mode" => "0750", "recurse" => list!["mode", "silent"]};
        args.extend(more.clone());
        let (_, _, changes) = run("file.directory", args, test);
        assert_eq!(changes, expected, "{more:?} {test}");
    }
}
