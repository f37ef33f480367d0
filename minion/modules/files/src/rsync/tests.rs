use brine_testing::use_programs;
use brine_value::{Map, list};

use super::*;
use crate::testing::{Scripted, answers, context_of, minion};

const TRANSCRIPT: &str = "
        $ rsync --version
        | rsync  version 3.2.7  protocol version 31
        $ rsync ...
        | sent 5 bytes
        ! warned
        = 23
    ";

#[test]
fn options_become_arguments_of_rsync() {
    let programs = Scripted::new(TRANSCRIPT);
    let context = context_of(use_programs(minion(&[("a/f", "x")]), Map::new(), programs.clone()));
    let all = map! {
        "delete" => true, "force" => true, "update" => true, "dryrun" => true, "rsh" => "ssh -p 2",
        "passwordfile" => "/p", "exclude" => list!["a", "b c"], "additional_opts" => list!["--partial"],
    };
    let calls = [
        ("rsync.version", list![], Map::new()),
        ("rsync.rsync", list!["/a", "/b"], Map::new()),
        ("rsync.rsync", list!["/a", "/b"], all),
        ("rsync.rsync", list!["/a", "/b"], map! {"exclude" => "x", "excludefrom" => "/f"}),
        ("rsync.rsync", list!["/a"], Map::new()),
        ("rsync.rsync", list!["--rsh=reboot", "/b"], Map::new()),
        ("rsync.rsync", list!["salt://none", "/b"], Map::new()),
        ("rsync.config", list!["/nowhere"], Map::new()),
        ("rsync.config", list!["/"], Map::new()),
    ];
    insta::assert_snapshot!(answers(&context, &calls), @r#"
        rsync.version: "3.2.7"
        rsync.rsync: {"pid": 1, "retcode": 23, "stdout": "sent 5 bytes", "stderr": "warned"}
        rsync.rsync: {"pid": 1, "retcode": 23, "stdout": "sent 5 bytes", "stderr": "warned"}
        rsync.rsync: {"pid": 1, "retcode": 23, "stdout": "sent 5 bytes", "stderr": "warned"}
        rsync.rsync: ERROR: src and dst cannot be empty
        rsync.rsync: ERROR: '--rsh=reboot' cannot be used: it starts with '-' or is empty
        rsync.rsync: ERROR: salt://none does not exist
        rsync.config: ERROR: /nowhere does not exist
        rsync.config: ERROR: Unable to read /, path is a directory
        "#);
    insta::assert_snapshot!(programs.ran(), @r"
        rsync --version
        rsync -avz /a /b
        rsync -avz --delete --force --update '--rsh=ssh -p 2' --password-file /p --exclude a --exclude 'b c' --dry-run --partial /a /b
        rsync -avz --exclude-from /f /a /b
        ");
}

#[test]
fn files_of_the_master_are_fetched_and_removed() {
    let programs = Scripted::new(TRANSCRIPT);
    let context = context_of(use_programs(minion(&[("a/f", "x")]), Map::new(), programs.clone()));
    context.call("rsync.rsync", Args::positional(["salt://a/f".into(), "/b".into()])).unwrap();
    let ran = programs.ran();
    let path = ran.split(' ').nth(2).unwrap();
    assert!(path.ends_with("/f") && ran.ends_with(" /b"), "{ran}");
    assert!(!Path::new(path).exists(), "{path}");
}
