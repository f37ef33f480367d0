//! Tests of the functions of `file` on real files.

use brine_function::Args;
use brine_value::json::to_json;

use super::*;
use crate::testing;

#[test]
fn files_are_queried_and_changed() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().display().to_string();
    let context = testing::context(&[]);
    let call = |fun: &str, args: &[&str]| {
        let args = args.iter().map(|arg| Value::from(arg.replace('F', &root)));
        match context.call(&format!("file.{fun}"), Args::positional(args)) {
            Ok(value) => to_json(&value).replace(&root, "F"),
            Err(error) => error.to_string().replace(&root, "F"),
        }
    };
    for (fun, args, reported) in [
        ("write", &["F/a", "one", "two"][..], r#""Wrote 2 lines to \"F/a\"""#),
        ("append", &["F/a", "three"], r#""Wrote 1 lines to \"F/a\"""#),
        ("read", &["F/a"], r#""one\ntwo\nthree\n""#),
        ("file_exists", &["F/a"], "true"),
        ("directory_exists", &["F/a"], "false"),
        ("path_exists_glob", &["F/?"], "true"),
        ("path_exists_glob", &["F/?/x*"], "false"),
        ("contains", &["F/a", "two"], "true"),
        ("search", &["F/a", "^t.o$"], "true"),
        ("search", &["F/none", "x"], "ERROR executing 'file.search': File not found: F/none"),
        ("touch", &["F/a", "12", "-3"], "true"),
        ("touch", &["F/a", "0", "0"], "true"),
        ("touch", &["F/a", ""], "ERROR executing 'file.touch': atime and mtime must be integers"),
        ("touch", &["F/a", "noon"], "ERROR executing 'file.touch': atime and mtime must be integers"),
        ("touch", &["F/none", "1", "1.5"], "ERROR executing 'file.touch': atime and mtime must be integers"),
        ("set_mode", &["F/a", "0600"], r#""0600""#),
        ("set_mode", &["F/none", "0600"], "ERROR: F/none: File not found"),
        ("get_mode", &["F/a"], r#""0600""#),
        ("get_mode", &["F/none"], "ERROR: Path not found: F/none"),
        ("chown", &["F/a", "root", "root"], "null"),
        ("chown", &["F/none", "root", "root"], r#""File not found""#),
        ("chown", &["F/a", "nobody_here", ""], "\"User does not exist\\n\""),
        ("get_user", &["F/a"], r#""root""#),
        ("symlink", &["F/a", "F/l"], "true"),
        ("readlink", &["F/l"], r#""F/a""#),
        ("readlink", &["F/a"], "ERROR executing 'file.readlink': A valid link was not specified: F/a"),
        ("is_link", &["F/l"], "true"),
        ("mkdir", &["F/d"], "true"),
        ("makedirs", &["F/e/f/g"], "null"),
        (
            "copy",
            &["F/a", "F/d"],
            "ERROR executing 'file.copy': Cannot copy overwriting a directory without recurse flag set to true!",
        ),
        ("copy", &["F/a", "F/d/a"], "true"),
        ("rename", &["F/d/a", "F/d/b"], "true"),
        ("touch", &["F/d/t"], "true"),
        ("readdir", &["F"], r#"[".", "..", "a", "d", "e", "l"]"#),
        ("find", &["F"], r#"["F", "F/a", "F/d", "F/d/b", "F/d/t", "F/e", "F/e/f", "F/l"]"#),
        ("get_hash", &["F/d/t"], r#""e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855""#),
        ("get_hash", &["F/d/t", "crc"], "ERROR: Invalid hash type: crc"),
        ("check_hash", &["F/d/t", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"], "true"),
        ("check_hash", &["F/d/t", "sha1=da39a3ee5e6b4b0d3255bfef95601890afd80709"], "true"),
        ("check_hash", &["F/d/t", "md5:00000000000000000000000000000000"], "false"),
        ("check_hash", &["F/d/t", "abc"], "ERROR: hash is invalid: expected hex digits or type=hash, got abc"),
        ("remove", &["F/d"], "true"),
        ("remove", &["F/d"], "false"),
        ("remove", &["/"], "ERROR: Refusing to remove /"),
        ("access", &["F/a", "r"], "true"),
        ("access", &["F/a", "q"], "ERROR executing 'file.access': Invalid mode specified."),
        ("stats", &["F/none"], "ERROR: Path not found: F/none"),
    ] {
        assert_eq!(call(fun, args), reported, "{fun} {args:?}");
    }
}

#[test]
fn arguments_that_would_be_ignored_are_refused() {
    let context = testing::context(&[]);
    for (function, positional, argument) in [
        ("file.get_source_sum", vec!["/f"], "source_hash_sig"),
        ("file.get_source_sum", vec!["/f"], "signed_by_all"),
        ("file.check_perms", vec!["/f", "", "root", "root", "0644"], "seuser"),
        ("file.get_diff", vec!["/f", "/g"], "source_hash_file1"),
        ("file.get_diff", vec!["/f", "/g"], "ignore_ordering"),
    ] {
        let positional = positional.into_iter().map(Value::from).collect();
        let args = Args { positional, keyword: map! {argument => "x"} };
        let error = context.call(function, args).unwrap_err().to_string();
        assert!(error.contains(&format!("the argument '{argument}' is not supported")), "{function}: {error}");
    }
}

#[test]
fn paths_are_split_and_joined_as_in_python() {
    let context = testing::context(&[]);
    for (fun, args, value) in [
        ("file.dirname", vec!["/a/b/"], "/a/b"),
        ("file.dirname", vec!["/a"], "/"),
        ("file.dirname", vec!["a"], ""),
        ("file.basename", vec!["/a/b"], "b"),
        ("file.basename", vec!["/a/"], ""),
        ("file.join", vec!["/", "a", "b"], "/a/b"),
        ("file.join", vec!["a/", "/b"], "/b"),
    ] {
        let args = Args::positional(args.into_iter().map(Value::from));
        assert_eq!(context.call(fun, args.clone()), Ok(value.into()), "{fun} {args:?}");
    }
}

#[test]
fn find_matches_all_criteria() {
    let directory = tempfile::tempdir().unwrap();
    for (name, text) in [("a.sh", "one"), ("B.SH", ""), ("sub/c.sh", "two\n"), ("sub/d.txt", &"x".repeat(2048))] {
        let path = directory.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    std::fs::File::open(directory.path().join("a.sh")).unwrap().set_modified(std::time::UNIX_EPOCH).unwrap();
    std::os::unix::fs::symlink("sub", directory.path().join("to-sub")).unwrap();
    std::os::unix::fs::symlink("none", directory.path().join("to-none")).unwrap();
    let context = testing::context(&[]);
    let start = directory.path().display().to_string();
    let find = |criteria: &str, print: &str| {
        let mut args = Args::positional([start.clone().into()]);
        for (name, value) in criteria.split_whitespace().map(|word| word.split_once('=').unwrap()) {
            args.keyword.insert(name.into(), value.into());
        }
        for depth in ["mindepth", "maxdepth"] {
            if let Some(number) = args.keyword.get_mut(depth) {
                *number = number.to_string().parse::<i64>().unwrap().into();
            }
        }
        if !print.is_empty() {
            args.keyword.insert("print".into(), print.into());
        }
        to_json(&context.call("file.find", args).unwrap()).replace(&start, "F")
    };
    for (criteria, print, expected) in [
        ("name=*.sh", "name", r#"["a.sh", "c.sh"]"#),
        ("name=a?.sh", "name", r#"["a.sh"]"#),
        ("iname=*.sh maxdepth=1", "name", r#"["B.SH", "a.sh"]"#),
        ("type=d mindepth=1", "name", r#"["sub", "to-sub"]"#),
        ("type=l", "", r#"["F/to-none"]"#),
        ("regex=[cd]", "name", r#"["c.sh", "d.txt"]"#),
        ("iregex=B type=f", "name", r#"["B.SH"]"#),
        ("size=+1k type=f", "name,size", r#"[["d.txt", 2048]]"#),
        ("size=-3 type=f", "size", "[0, 3]"),
        ("size=2k", "name", r#"["d.txt"]"#),
        ("mtime=1d type=f", "name mtime", r#"[["a.sh", 0]]"#),
        ("mtime=-1h name=?.sh", "name", r#"["c.sh"]"#),
        ("grep=t[w] type=f", "name", r#"["c.sh"]"#),
        ("owner=no-such", "", r#""error: no such user \"no-such\"""#),
        ("group=no-such", "", r#""error: no such group \"no-such\"""#),
        ("type=x", "", r#""error: invalid file type \"x\"""#),
        ("size=big", "", r#""error: invalid size: \"big\"""#),
        ("size=1\u{212a}", "", "\"error: invalid size: \\\"1\u{212a}\\\"\""),
        ("mtime=99999999999999999999w", "", r#""error: invalid time interval: '99999999999999999999w'""#),
        ("mtime=5", "", r#""error: invalid time interval: '5'""#),
        ("regex=(", "", r#""error: invalid regular expression: \"(\"""#),
        ("colour=red", "", r#""error: invalid option \"colour\"""#),
        ("name=a.sh", "type,mode,md5", r#"[["f", MODE, "f97c5d29941bfb1b2fdab0874906ab82"]]"#),
        ("delete=d mindepth=1 name=sub test=x", "", r#"["F/sub"]"#),
        ("delete=f name=a.sh", "", r#"["F/a.sh"]"#),
        ("delete=a mindepth=1 name=sub", "", r#"["F/sub"]"#),
        ("mindepth=1", "name", r#"["B.SH", "to-none", "to-sub"]"#),
    ] {
        let report = find(criteria, print).replace(", 420,", ", MODE,").replace(", 384,", ", MODE,");
        assert_eq!(report, expected, "{criteria} {print}");
    }
}

#[test]
fn find_reports_output_of_commands() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().display().to_string();
    std::fs::create_dir(directory.path().join("sub")).unwrap();
    std::fs::write(directory.path().join("a"), "one\n").unwrap();
    std::fs::write(directory.path().join("with space"), "x").unwrap();
    let context = testing::context(&[]);
    for (name, command, reported) in [
        ("a", "cat {}", "cat F/a:\none\n\n"),
        ("with space", "cat {}", "cat F/with space:\nx\n"),
        ("a", "false {}", "false F/a:\n\n"),
        ("a", "echo $HOME {}", "echo $HOME F/a:\n$HOME F/a\n\n"),
        ("a", "no-such-program {}", "F/a: Failed"),
        ("sub", "ls -d {}", "ls -d F/sub:\nF/sub\n\n"),
    ] {
        let mut args = Args::keyword(map! {"name" => name, "exec" => command});
        args.positional.push(root.as_str().into());
        let matches = context.call("file.find", args).unwrap();
        let texts: Vec<String> =
            matches.as_list().unwrap().iter().map(|text| text.to_string().replace(&root, "F")).collect();
        assert_eq!(texts, [reported], "{command}");
    }
}

#[test]
fn touch_sets_times_from_the_beginning_of_time() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a");
    let context = testing::context(&[]);
    for (times, expected) in
        [(map! {"atime" => 0, "mtime" => "0"}, (0, 0)), (map! {"atime" => 7, "mtime" => -7}, (7, -7))]
    {
        let mut keyword = times;
        keyword.insert("name".into(), path.display().to_string().into());
        assert_eq!(context.call("file.touch", Args::keyword(keyword)), Ok(true.into()));
        let status = std::fs::metadata(&path).unwrap();
        assert_eq!((status.atime(), status.mtime()), expected);
    }
}
