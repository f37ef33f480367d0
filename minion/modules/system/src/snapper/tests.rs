use std::fs;
use std::path::Path;
use std::sync::Arc;

use brine_value::{list, map};

use super::*;
use crate::testing::{Scripted, answers, context_with};

/// A list of snapshots, as printed by snapper 0.10.4 with D-Bus.
const LIST: &str = r#"
    $ snapper -c root --jsonout --utc --iso list ...
    | {
    |   "root": [
    |     {
    |       "number": 0,
    |       "type": "single",
    |       "pre-number": null,
    |       "date": "",
    |       "user": "root",
    |       "cleanup": "",
    |       "description": "current",
    |       "userdata": null
    |     },
    |     {
    |       "number": 1,
    |       "type": "single",
    |       "pre-number": null,
    |       "date": "2026-11-27 20:51:37",
    |       "user": "root",
    |       "cleanup": "number",
    |       "description": "salt job 1",
    |       "userdata": {
    |         "baseline_tag": "mine",
    |         "salt_jid": "1"
    |       }
    |     },
    |     {
    |       "number": 2,
    |       "type": "pre",
    |       "pre-number": null,
    |       "date": "2026-11-27 20:51:37",
    |       "user": "root",
    |       "cleanup": "",
    |       "description": "-x",
    |       "userdata": {
    |         "salt_jid": "2"
    |       }
    |     },
    |     {
    |       "number": 3,
    |       "type": "post",
    |       "pre-number": 2,
    |       "date": "2026-11-27 20:51:38",
    |       "user": "root",
    |       "cleanup": "",
    |       "description": " a, \"b\"",
    |       "userdata": {
    |         "salt_jid": "2"
    |       }
    |     }
    |   ]
    | }
"#;

fn minion(transcript: &str) -> (Context, Arc<Scripted>) {
    let programs = Scripted::new(transcript);
    let context = context_with(map! {}, programs.clone());
    (context, programs)
}

#[test]
fn snapshots_are_created_and_changed() {
    let transcript = format!(
        "{LIST}
        $ snapper -c nosuch ...
        ! Unknown config.
        = 1
        $ snapper -c root create --print-number --type single --description 'salt job ...
        | 4
        $ snapper -c root create --print-number --type post --description d --pre-number 9 ...
        ! Snapshot '9' not found.
        = 1
        $ snapper -c root create --print-number --type single --description 'baseline snapshot' ...
        | 5
        $ snapper -c root delete 1 2
        $ snapper -c root modify --description new --userdata a=b,baseline_tag=,salt_jid= 1
        $ snapper -c root modify --cleanup-algorithm '' 1
    "
    );
    let (context, programs) = minion(&transcript);
    insta::assert_snapshot!(answers(&context, &[
        ("snapper.get_snapshot", list![1], map! {}),
        ("snapper.get_snapshot", list![3], map! {}),
        ("snapper.get_snapshot", list![99], map! {}),
        ("snapper.list_snapshots", list!["nosuch"], map! {}),
        ("snapper.list_snapshots", list!["-x"], map! {}),
        ("snapper.create_snapshot", list![], map! {"userdata" => map! {"a" => "b"}}),
        ("snapper.create_snapshot", list!["root", "post", 9, "d"], map! {}),
        ("snapper.create_snapshot", list!["root", "post"], map! {}),
        ("snapper.create_snapshot", list!["root", "other"], map! {}),
        ("snapper.create_snapshot", list![], map! {"userdata" => map! {"a" => "b,c"}}),
        ("snapper.create_baseline", list!["mine"], map! {}),
        ("snapper.delete_snapshot", list![list![1, 2]], map! {}),
        ("snapper.delete_snapshot", list![list![1, 98, "--sync"]], map! {}),
        ("snapper.delete_snapshot", list![list![0, 1]], map! {}),
        ("snapper.delete_snapshot", list![], map! {}),
        ("snapper.modify_snapshot", list![1, "new", map! {"a" => "b"}], map! {}),
        ("snapper.modify_snapshot", list![1], map! {"cleanup" => ""}),
        ("snapper.modify_snapshot", list![99, "new"], map! {}),
        ("snapper.modify_snapshot", list![], map! {}),
        ("snapper.status_to_string", list![24], map! {}),
        ("snapper.status_to_string", list![0b1_0000_0001], map! {}),
    ]), @r#"
    snapper.get_snapshot: {"id": 1, "type": "single", "timestamp": 1795812697, "user": "root", "description": "salt job 1", "cleanup": "number", "userdata": {"baseline_tag": "mine", "salt_jid": "1"}}
    snapper.get_snapshot: {"id": 3, "type": "post", "pre": 2, "timestamp": 1795812698, "user": "root", "description": " a, \"b\"", "cleanup": "", "userdata": {"salt_jid": "2"}}
    snapper.get_snapshot: ERROR: Error encountered while retrieving snapshot: Invalid snapshot
    snapper.list_snapshots: ERROR: Error encountered while listing snapshots: Unknown configuration 'nosuch'
    snapper.list_snapshots: ERROR: '-x' cannot be used: it starts with '-' or is empty
    snapper.create_snapshot: 4
    snapper.create_snapshot: ERROR: Error encountered while creating the snapshot: Invalid snapshot
    snapper.create_snapshot: ERROR: pre snapshot number 'pre_number' needs to be specified for snapshots of the 'post' type
    snapper.create_snapshot: ERROR: Invalid snapshot type 'other'
    snapper.create_snapshot: ERROR: userdata is invalid: keys and values must not be empty or contain ',', '=' or control characters
    snapper.create_baseline: 5
    snapper.delete_snapshot: {"root": {"ids": [1, 2], "status": "deleted"}}
    snapper.delete_snapshot: ERROR: Error: Snapshots '98, --sync' not found
    snapper.delete_snapshot: ERROR: Error: Snapshots '0' not found
    snapper.delete_snapshot: ERROR: Error: No snapshot ID has been provided
    snapper.modify_snapshot: {"id": 1, "type": "single", "timestamp": 1795812697, "user": "root", "description": "salt job 1", "cleanup": "number", "userdata": {"baseline_tag": "mine", "salt_jid": "1"}}
    snapper.modify_snapshot: {"id": 1, "type": "single", "timestamp": 1795812697, "user": "root", "description": "salt job 1", "cleanup": "number", "userdata": {"baseline_tag": "mine", "salt_jid": "1"}}
    snapper.modify_snapshot: ERROR: Error encountered while retrieving snapshot: Invalid snapshot
    snapper.modify_snapshot: ERROR: Error: No snapshot ID has been provided
    snapper.status_to_string: ["modified", "permission changed"]
    snapper.status_to_string: ["created", "ACL info changed"]
    "#);
    let ran = programs.ran();
    let created: Vec<&str> = ran.lines().filter(|line| line.contains(" create ")).collect();
    insta::assert_snapshot!(created.join("\n").replace(&context.job.jid, "JID"), @r#"
    snapper -c root create --print-number --type single --description 'salt job JID' --cleanup-algorithm number --userdata a=b,salt_jid=JID
    snapper -c root create --print-number --type post --description d --pre-number 9 --cleanup-algorithm number --userdata salt_jid=JID
    snapper -c root create --print-number --type single --description 'baseline snapshot' --cleanup-algorithm number --userdata baseline_tag=mine,salt_jid=JID
    "#);
}

#[test]
fn configurations_are_created_and_changed() {
    // As printed by snapper 0.10.4, without some settings.
    let transcript = r#"
        $ snapper --jsonout list-configs
        | {
        |   "configs": [
        |     {
        |       "config": "root",
        |       "subvolume": "/mnt"
        |     }
        |   ]
        | }
        $ snapper -c root --jsonout get-config
        | {
        |   "ALLOW_GROUPS": "",
        |   "FREE_LIMIT": "0.2",
        |   "SUBVOLUME": "/mnt",
        |   "SYNC_ACL": "no"
        | }
        $ snapper -c nosuch --jsonout get-config
        ! Unknown config.
        = 1
        $ snapper -c root set-config SYNC_ACL=yes 'ALLOW_USERS=a b'
        $ snapper -c root set-config BAD=1
        ! Invalid configdata.
        = 1
        $ snapper -c root create-config --fstype btrfs --template default /mnt
        $ snapper -c root set-config FREE_LIMIT=0.2
        $ snapper -c second create-config --fstype btrfs /mnt
        ! Creating config failed (subvolume already covered).
        = 1
    "#;
    let (context, _) = minion(transcript);
    insta::assert_snapshot!(answers(&context, &[
        ("snapper.list_configs", list![], map! {}),
        ("snapper.get_config", list!["nosuch"], map! {}),
        ("snapper.set_config", list![], map! {"sync_acl" => true, "allow_users" => "a b", "__id__" => "x"}),
        ("snapper.set_config", list![], map! {"bad" => 1}),
        ("snapper.set_config", list![], map! {"a=b" => 1}),
        ("snapper.set_config", list![], map! {"a" => "b\nc"}),
        ("snapper.set_config", list![], map! {}),
        ("snapper.create_config", list!["root", "/mnt", "btrfs", "default", map! {"free_limit" => 0.2}], map! {}),
        ("snapper.create_config", list!["second", "/mnt", "btrfs"], map! {}),
        ("snapper.create_config", list!["second", "/mnt"], map! {}),
        ("snapper.create_config", list!["second", "--help", "btrfs"], map! {}),
    ]), @r#"
    snapper.list_configs: {"root": {"ALLOW_GROUPS": "", "FREE_LIMIT": "0.2", "SUBVOLUME": "/mnt", "SYNC_ACL": "no"}}
    snapper.get_config: ERROR: Error encountered while retrieving configuration: Unknown configuration 'nosuch'
    snapper.set_config: true
    snapper.set_config: ERROR: Error encountered while setting configuration root: Invalid configdata.
    snapper.set_config: ERROR: "A=B" and its value "1" are not a setting of snapper
    snapper.set_config: ERROR: "A" and its value "b\nc" are not a setting of snapper
    snapper.set_config: true
    snapper.create_config: {"ALLOW_GROUPS": "", "FREE_LIMIT": "0.2", "SUBVOLUME": "/mnt", "SYNC_ACL": "no"}
    snapper.create_config: ERROR: Error encountered while creating the new configuration: Creating config failed (subvolume already covered).
    snapper.create_config: ERROR: You must provide a "fstype" for the new configuration
    snapper.create_config: ERROR: '--help' cannot be used: it starts with '-' or is empty
    "#);
}

#[test]
fn changes_are_listed_and_undone() {
    let transcript = format!(
        "{LIST}
        $ snapper -c root status 2..3
        | +..... /mnt/bin
        | c..... /mnt/f
        $ snapper -c root status 3..0
        $ snapper -c root status 2..99
        ! Snapshot '99' not found.
        = 1
        $ snapper -c root undochange 2..3
        | create:0 modify:1 delete:1
        $ snapper -c root undochange 2..3 /mnt/f
        | create:0 modify:1 delete:0
        $ snapper -c root undochange 2..3 /mnt/bin
        | Something unexpected
        $ snapper -c root create --print-number --type pre --description 'snapper.run[test.ping]' ...
        | 8
        $ snapper -c root create --print-number --type post --description 'snapper.run[test.ping]' --pre-number 8 ...
        | 9
        $ snapper -c root create --print-number --type pre --description d ...
        | 10
        $ snapper -c root create --print-number --type post --description d --pre-number 10 ...
        | 11
    "
    );
    let (context, programs) = minion(&transcript);
    insta::assert_snapshot!(answers(&context, &[
        ("snapper.status", list!["root", 2, 3], map! {}),
        ("snapper.status", list![], map! {}),
        ("snapper.status", list!["root", 2, 99], map! {}),
        ("snapper.changed_files", list!["root", 2, 3], map! {}),
        ("snapper.undo", list!["root", Value::Nil, 2, 3], map! {}),
        ("snapper.undo", list!["root", list!["/mnt/f"], 2, 3], map! {}),
        ("snapper.undo", list!["root", list!["/mnt/bin"], 2, 3], map! {}),
        ("snapper.undo", list!["root", list!["--help"], 2, 3], map! {}),
        ("snapper.undo", list![], map! {}),
        ("snapper.undo_jid", list![2], map! {}),
        ("snapper.undo_jid", list!["1"], map! {}),
        ("snapper.run", list!["none.such"], map! {}),
        ("snapper.run", list!["file.read", "/nonexistent"], map! {"description" => "d"}),
    ]), @r#"
    snapper.status: {"/mnt/bin": {"status": ["created"]}, "/mnt/f": {"status": ["modified"]}}
    snapper.status: {}
    snapper.status: ERROR: Error encountered while listing changed files: Invalid snapshot
    snapper.changed_files: ["/mnt/bin", "/mnt/f"]
    snapper.undo: {"create": "0", "modify": "1", "delete": "1"}
    snapper.undo: {"create": "0", "modify": "1", "delete": "0"}
    snapper.undo: ERROR: Error while processing Snapper response: Something unexpected
    snapper.undo: ERROR: Given file list contains files that are not present in the changed filelist: --help
    snapper.undo: {}
    snapper.undo_jid: {"create": "0", "modify": "1", "delete": "1"}
    snapper.undo_jid: ERROR: Jid '1' snapshots not found
    snapper.run: ERROR: function "none.such" does not exist
    snapper.run: "/nonexistent: No such file or directory (os error 2)"
    "#);
    assert!(!programs.ran().contains("undochange 2..3 --help"));
}

/// Creates two versions of a subvolume, and returns the transcript of snapper about them.
fn versions(root: &Path) -> String {
    let (before, after) = (root.join(".snapshots/2/snapshot"), root.join(".snapshots/3/snapshot"));
    for (directory, files) in [
        (&before, vec![("text", "a\nb\n"), ("gone", "a\n"), ("bin", "\0a")]),
        (&after, vec![("text", "a\nc\n"), ("new", "n"), ("bin", "\0b")]),
    ] {
        fs::create_dir_all(directory).unwrap();
        for (name, content) in files {
            fs::write(directory.join(name), content).unwrap();
        }
    }
    std::os::unix::fs::symlink("/etc/shadow", after.join("link")).unwrap();
    fs::create_dir(root.join("dir")).unwrap();
    let transcript = r#"
        $ snapper -c root --jsonout get-config
        | {"SUBVOLUME": "ROOT"}
        $ snapper -c root status 2..3
        | c..... ROOT/bin
        | +..... ROOT/dir
        | -..... ROOT/gone
        | +..... ROOT/link
        | +..... ROOT/new
        | c..... ROOT/text
        $ snapper -c root mount 2
        $ snapper -c root mount 3
        $ snapper -c root umount 2
        $ snapper -c root umount 3
    "#;
    transcript.replace("ROOT", &root.display().to_string())
}

#[test]
fn differences_are_those_of_text_files() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().display().to_string();
    let (context, programs) = minion(&(LIST.to_owned() + &versions(directory.path())));
    let answers = answers(
        &context,
        &[
            ("snapper.diff_jid", list![2], map! {}),
            ("snapper.diff", list!["root", format!("{root}/gone"), 2, 3], map! {}),
            ("snapper.diff", list!["root", "/none", 2, 3], map! {}),
        ],
    );
    insta::assert_snapshot!(answers.replace(&root, "ROOT").replace("}, ", "},\n"), @r#"
    snapper.diff_jid: {"ROOT/bin": {"comment": "binary file changed", "old_sha256_digest": "022a6979e6dab7aa5ae4c3e5e45f7e977112a7e63593820dbec1ec738a24f93c", "new_sha256_digest": "57eb35615d47f34ec714cacdf5fd74608a5e8e102724e80b24b287c0c27b6a31"},
    "ROOT/gone": {"comment": "text file deleted", "diff": "--- ROOT/.snapshots/2/snapshot/gone\n+++ ROOT/.snapshots/3/snapshot/gone\n@@ -1 +0,0 @@\n-a\n"},
    "ROOT/link": {"comment": "binary file changed"},
    "ROOT/new": {"comment": "text file created", "diff": "--- ROOT/.snapshots/2/snapshot/new\n+++ ROOT/.snapshots/3/snapshot/new\n@@ -0,0 +1 @@\n+n"},
    "ROOT/text": {"comment": "text file changed", "diff": "--- ROOT/.snapshots/2/snapshot/text\n+++ ROOT/.snapshots/3/snapshot/text\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n"}}
    snapper.diff: {"ROOT/gone": {"comment": "text file deleted", "diff": "--- ROOT/.snapshots/2/snapshot/gone\n+++ ROOT/.snapshots/3/snapshot/gone\n@@ -1 +0,0 @@\n-a\n"}}
    snapper.diff: {}
    "#);
    let ran = programs.ran();
    assert_eq!((ran.matches(" mount ").count(), ran.matches(" umount ").count()), (6, 6));
}

#[test]
fn the_state_undoes_changes() {
    let status = "$ snapper -c root status 0..1\n| c..... /mnt/f\n| -..... /mnt/log/a\n| -..... /mnt/logs\n";
    let diff = "$ snapper -c root --jsonout get-config\n| {\"SUBVOLUME\": \"/nonexistent\"}\n$ snapper -c root mount 1\n\
                $ snapper -c root umount 1\n";
    let undo = "$ snapper -c root status 1..0\n| c..... /mnt/f\n| +..... /mnt/log/a\n| +..... /mnt/logs\n\
                $ snapper -c root undochange 1..0 /mnt/f /mnt/logs\n| create:0 modify:1 delete:1\n";
    let failed = undo.replace("| create:0 modify:1 delete:1", "! Undoing failed.\n= 1");
    let all = format!("{LIST}{status}{diff}{undo}");
    for (args, test, transcript, result, comment) in [
        (map! {}, false, "", Some(false), "Snapshot tag or number must be specified"),
        (
            map! {"number" => 1, "tag" => "a"},
            false,
            "",
            Some(false),
            "Cannot use snapshot tag and number at the same time",
        ),
        (map! {"tag" => "none"}, true, LIST, Some(false), "Baseline tag \"none\" not found"),
        (map! {"number" => 1}, true, "$ snapper -c root status 0..1", Some(true), "Nothing to be done"),
        (map! {"number" => 1}, false, "$ snapper -c root status 0..1", Some(true), "No changes were done"),
        (map! {"number" => 1, "ignore" => list!["/mnt"]}, false, status, Some(true), "No changes were done"),
        (map! {"number" => 1}, true, &all, None, "3 files changes are set to be undone"),
        (
            map! {"tag" => "mine", "ignore" => list!["/mnt/log"]},
            true,
            &all,
            None,
            "2 files changes are set to be undone",
        ),
        (map! {"number" => 1, "ignore" => list!["/mnt/log"]}, false, &all, Some(true), ""),
        (
            map! {"number" => 1, "ignore" => list!["/mnt/log"], "include_diff" => false},
            false,
            &format!("{status}{failed}"),
            Some(false),
            "Error while processing Snapper response: Undoing failed.",
        ),
    ] {
        let (call, programs) = minion(transcript);
        let mut args = args;
        args.insert("name".into(), "baseline".into());
        let context = brine_testing::state_context(test, call.clone());
        let report =
            call.minion.states.call(&context, "snapper.baseline_snapshot", brine_function::Args::keyword(args));
        let (got, changed) = match &report {
            Ok(report) => (
                (report.get("result").and_then(Value::as_bool), report.get("comment").unwrap().to_string()),
                report.get("changes").unwrap().is_truthy(),
            ),
            Err(error) => ((Some(false), error.clone().message()), false),
        };
        assert_eq!(got, (result, comment.to_owned()), "{comment}");
        assert_eq!(changed, comment.is_empty() || comment.ends_with("undone"), "{comment}");
        assert_eq!(
            programs.ran().contains("undochange"),
            comment.is_empty() || comment.contains("Undoing"),
            "{comment}"
        );
    }
}
