use std::path::Path;

use brine_testing::{applied, state_context};
use brine_value::{list, map};

use super::*;
use crate::testing::{Scripted, answers, context_with};

const FILE: &str = "# kept
/srv *(ro,sync) 10.0.0.0/8(rw) # own
\"/srv/a b\" -ro,sync host @group(rw)
/media/storage /media/data *(ro)
/long \\
  one(rw) \\
  two()
/srv late(rw)
/c\\040d (rw)
/bare";

fn list(text: &str) -> String {
    brine_value::json::to_json(&Exports::parse(text).describe().into())
}

#[test]
fn files_are_parsed() {
    insta::assert_snapshot!(list(FILE).replace("], ", "],\n"), @r#"
    {"/srv": [{"hosts": "*", "options": ["ro", "sync"]}, {"hosts": "10.0.0.0/8", "options": ["rw"]}, {"hosts": "late", "options": ["rw"]}],
    "/srv/a b": [{"hosts": "host", "options": ["ro", "sync"]}, {"hosts": "@group", "options": ["ro", "sync", "rw"]}],
    "/media/storage": [{"hosts": "*", "options": ["ro"]}],
    "/media/data": [{"hosts": "*", "options": ["ro"]}],
    "/long": [{"hosts": "one", "options": ["rw"]}, {"hosts": "two", "options": []}],
    "/c d": [{"hosts": "", "options": ["rw"]}],
    "/bare": []}
    "#);
    for text in ["", "#", "\n\n", "\"", "\\", "/a \\", "-", "( ) (", "/a host(rw", "/a \\777", "\u{e9}\\\u{e9}"] {
        let exports = Exports::parse(text);
        assert_eq!(exports.text(), text);
        exports.describe();
    }
}

#[test]
fn edits_keep_other_lines() {
    let client = |hosts: &str, options: &[&str]| {
        Client::new(hosts, options.iter().map(|option| (*option).to_owned()).collect()).unwrap()
    };
    for (path, from, to) in [
        ("/srv", "/srv late(rw)\n", "/srv late(rw) new(rw,sync)\n"),
        ("/long", "/long \\\n  one(rw) \\\n  two()\n", "/long one(rw) two() new(rw,sync)\n"),
        (
            "/srv/a b",
            "\"/srv/a b\" -ro,sync host @group(rw)\n",
            "/srv/a\\040b host(ro,sync) @group(ro,sync,rw) new(rw,sync)\n",
        ),
        ("/bare", "/bare", "/bare new(rw,sync)\n"),
        ("/x#y", "/bare", "/bare\n/x\\043y new(rw,sync)\n"),
    ] {
        let mut exports = Exports::parse(FILE);
        exports.add(path, client("new", &["rw", "sync"])).unwrap();
        assert_eq!(exports.text(), FILE.replace(from, to), "{path}");
        let clients = Exports::parse(&exports.text()).clients(path).unwrap();
        assert_eq!(clients.last(), Some(&client("new", &["rw", "sync"])), "{path}");
    }
    let mut exports = Exports::parse(FILE);
    exports.add("/media/data", client("new", &[])).unwrap();
    let text = FILE.replace("/media/storage /media/data", "/media/storage") + "\n/media/data *(ro) new()\n";
    assert_eq!(exports.text(), text);
    for (path, from, to) in [
        ("/srv", "/srv *(ro,sync) 10.0.0.0/8(rw) # own\n", ""),
        ("/c d", "/c\\040d (rw)\n", ""),
        ("/media/storage", "/media/storage /media/data *(ro)", "/media/data *(ro)"),
    ] {
        let mut exports = Exports::parse(FILE);
        assert!(exports.remove(path));
        assert!(exports.clients(path).is_none());
        assert_eq!(
            exports.text(),
            FILE.replace(from, to).replace("/srv late(rw)\n", if path == "/srv" { "" } else { "/srv late(rw)\n" })
        );
    }
    assert!(!Exports::parse(FILE).remove("/none"));
}

#[test]
fn words_that_change_the_meaning_are_rejected() {
    for hosts in ["", "a b", "a\n/etc *", "-ro", "/etc", "a(rw)", "a#", "a\0", "\"a", "a\\"] {
        assert!(Client::new(hosts, Vec::new()).is_err(), "{hosts}");
    }
    for option in ["", "rw)", "rw\n", "rw,a b", "#"] {
        assert!(Client::new("host", vec![option.to_owned()]).is_err(), "{option}");
    }
    let client = Client::new("host", vec!["fsid=0,rw".to_owned()]).unwrap();
    for path in ["", "srv", "-a", "/a\n/etc", "/a\0"] {
        assert!(Exports::parse("").add(path, client.clone()).is_err(), "{path}");
    }
}

// As written by exportfs of nfs-utils 2.6.2.
const WARNING: &str = "$ exportfs -r
    ! exportfs: /etc/exports [1]: Neither 'subtree_check' or 'no_subtree_check' specified for export \"*:/srv\".
    !   Assuming default behaviour ('no_subtree_check').";
const FAILURE: &str = "$ exportfs -r\n! exportfs: /etc/exports:1: unknown keyword \"bogus\"\n= 1";

#[test]
fn exports_are_added_and_deleted() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("exports").display().to_string();
    std::fs::write(&file, "/srv *(ro)\n").unwrap();
    let path = |path: &str| map! {"exports" => file.as_str(), "path" => path};
    let more = |mut args: brine_value::Map, hosts: Value, options: Value| {
        args.extend(map! {"hosts" => hosts, "options" => options});
        args
    };
    let context = context_with(map! {}, Scripted::new(&format!("{WARNING}\n{FAILURE}")));
    insta::assert_snapshot!(answers(&context, &[
        ("nfs3.add_export", list![], more(path("/srv"), "127.0.0.1".into(), list!["rw", "sync"])),
        ("nfs3.add_export", list![], more(path("/new"), "*".into(), Value::Nil)),
        ("nfs3.add_export", list![], more(path("/new"), list!["a", "b"], Value::Nil)),
        ("nfs3.list_exports", list![file.as_str()], map! {}),
        ("nfs3.del_export", list![], path("/srv")),
        ("nfs3.del_export", list![], path("/none")),
        ("nfs3.list_exports", list!["/nonexistent"], map! {}),
        ("nfs3.reload_exports", list![], map! {}),
        ("nfs3.reload_exports", list![], map! {}),
    ]).replace(&file, "FILE"), @r#"
    nfs3.add_export: {"hosts": "127.0.0.1", "options": ["rw", "sync"]}
    nfs3.add_export: {"hosts": "*", "options": []}
    nfs3.add_export: ERROR: hosts is invalid: expected a string
    nfs3.list_exports: {"/srv": [{"hosts": "*", "options": ["ro"]}, {"hosts": "127.0.0.1", "options": ["rw", "sync"]}], "/new": [{"hosts": "*", "options": []}]}
    nfs3.del_export: {"/new": [{"hosts": "*", "options": []}]}
    nfs3.del_export: ERROR: /none is not exported by FILE
    nfs3.list_exports: ERROR: cannot read /nonexistent: No such file or directory (os error 2); create it, or correct the path in the configuration
    nfs3.reload_exports: {"stdout": "", "stderr": "exportfs: /etc/exports [1]: Neither 'subtree_check' or 'no_subtree_check' specified for export \"*:/srv\".\n  Assuming default behaviour ('no_subtree_check').", "result": true}
    nfs3.reload_exports: {"stdout": "", "stderr": "exportfs: /etc/exports:1: unknown keyword \"bogus\"", "result": false}
    "#);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "/new *()\n");
}

#[test]
fn states_compare_and_reload() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("exports");
    let ok = "$ exportfs -r";
    for (function, name, test, transcript, result, comment, text) in [
        ("present", "/srv", false, "", Some(true), "Export /srv already configured", None),
        ("present", "/old", true, "", None, "Export /old would be changed", None),
        ("present", "/new", true, "", None, "Export /new would be added", None),
        ("present", "/new", false, ok, Some(true), "", Some("/srv *(rw)\n/old *(ro)\n/new *(rw)\n")),
        ("present", "/old", false, ok, Some(true), "", Some("/srv *(rw)\n/old *(rw)\n")),
        (
            "present",
            "/new",
            false,
            FAILURE,
            Some(false),
            "exportfs: /etc/exports:1: unknown keyword \"bogus\"",
            Some("/srv *(rw)\n/old *(ro)\n/new *(rw)\n"),
        ),
        ("absent", "/none", false, "", Some(true), "Export /none already absent", None),
        ("absent", "/old", true, "", None, "Export /old would be removed", None),
        ("absent", "/old", false, ok, Some(true), "Export /old removed", Some("/srv *(rw)\n")),
        (
            "absent",
            "/old",
            false,
            FAILURE,
            Some(false),
            "exportfs: /etc/exports:1: unknown keyword \"bogus\"",
            Some("/srv *(rw)\n"),
        ),
    ] {
        let before = "/srv *(rw)\n/old *(ro)\n";
        std::fs::write(&file, before).unwrap();
        let programs = Scripted::new(transcript);
        let call = context_with(map! {}, programs.clone());
        let mut args = map! {"name" => name, "exports" => Path::new(&file).to_path_buf()};
        if function == "present" {
            args.extend(map! {"hosts" => "*", "options" => list!["rw"]});
        }
        let report = applied(&call, &programs, &format!("nfs_export.{function}"), args, test);
        assert_eq!((report.result, report.comment.as_str()), (result, comment), "{function} {name}");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), text.unwrap_or(before), "{function} {name}");
        assert_eq!(report.changes.is_truthy(), text.is_some() || test, "{function} {name}");
    }
}

#[test]
fn clients_are_checked() {
    let call = context_with(map! {}, Scripted::new(""));
    for (args, message) in [
        (map! {}, "Either 'clients' or 'hosts' must be defined"),
        (map! {"clients" => "*"}, "clients is invalid: expected a list of mappings"),
        (map! {"clients" => list!["*"]}, "hosts is invalid: expected a string"),
        (map! {"clients" => list![map! {"hosts" => "a b"}]}, "\"a b\" is not a host, network or pattern of hosts"),
    ] {
        let mut args = args;
        args.insert("name".into(), "/srv".into());
        let args = brine_function::Args::keyword(args);
        let answer = match call.minion.states.call(&state_context(false, call.clone()), "nfs_export.present", args) {
            Ok(report) => report.get("comment").unwrap().to_string(),
            Err(error) => error.message(),
        };
        assert_eq!(answer, message);
    }
}
