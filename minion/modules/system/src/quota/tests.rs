//! Transcripts of the quota tools 4.06 on Linux 6.1, with the file system ext4; lines with blanks in names and
//! `(enforced)` are invented.

use brine_value::{Value, list, map};

use crate::testing::{Scripted, answers, applied, context_with};

const USERS: &str = "
    $ repquota -vp -u /mnt/data
    | *** Report for user quotas on device /dev/ubdd
    | Block grace time: 7days; Inode grace time: 7days
    |                         Block limits                File limits
    | User            used    soft    hard  grace    used  soft  hard  grace
    | ----------------------------------------------------------------------
    | root      --      13       0       0      0       2     0     0      0
    | daemon    +-    1501    1000    2000 1796408623       2    10    20      0
    | #77777    --       0       0       0      0       0     5     5      0
    | EX\\domain users --       0       0       0      0       0     5     6      0
    |
    | Statistics:
    | Total blocks: 8
    | Data blocks: 1
    | Entries: 3
    | Used average: 3.000000
    ";

#[test]
fn quotas_are_reported() {
    let programs = Scripted::new(&format!(
        "{USERS}
        $ repquota -vp -g /mnt/data
        | *** Report for group quotas on device /dev/ubdd
        | Block grace time: 7days; Inode grace time: 7days
        |                         Block limits                File limits
        | Group           used    soft    hard  grace    used  soft  hard  grace
        | ----------------------------------------------------------------------
        | games     --       0       0       0      0       0     5     5      0
        $ repquota -vp -u /mnt/old
        ! repquota: Mountpoint (or device) /mnt/old not found or has no quota enabled.
        ! repquota: Not all specified mountpoints are using quota.
        = 1
        $ repquota -vp -g /mnt/old
        = 1
        $ quotaon -p /mnt/data
        | group quota on /mnt/data (/dev/ubdd) is on
        | user quota on /mnt/data (/dev/ubdd) is on (enforced)
        | project quota on /mnt/data (/dev/ubdd) is off
        = 2
        $ quotaon -p '/mnt/a (b) c'
        | user quota on /mnt/a (b) c (/dev/ubdc) is off
        $ quotaon -p /mnt/old
        ! quotaon: Mountpoint (or device) /mnt/old not found or has no quota enabled.
        $ quotaon -p /mnt/none
        ! quotaon: Cannot stat() given mountpoint /mnt/none: No such file or directory
        ! Skipping...
        ! quotaon: No correct mountpoint specified.
        = 1
        $ quotastats
        | Kernel quota version: 6.5.1
        | Number of dquot lookups: 20
        |
        | Number of in use dquot entries (user/group): 3
        $ warnquota
        ! /bin/sh: 1: /usr/sbin/sendmail: not found
        ! warnquota: Warning: Mailer exitted abnormally.
        $ quotaon /mnt/data
        ! quotaon: using . on /dev/ubdd [/mnt/data]: File exists
        = 2
        $ quotaoff /mnt/data
        "
    ));
    let context = context_with(map! {}, programs);
    insta::assert_snapshot!(answers(&context, &[
        ("quota.report", list!["/mnt/data"], map! {}),
        ("quota.report", list!["/mnt/old"], map! {}),
        ("quota.report", list!["-a"], map! {}),
        ("quota.get_mode", list!["/mnt/data"], map! {}),
        ("quota.get_mode", list!["/mnt/a (b) c"], map! {}),
        ("quota.get_mode", list!["/mnt/old"], map! {}),
        ("quota.get_mode", list!["/mnt/none"], map! {}),
        ("quota.stats", list![], map! {}),
        ("quota.warn", list![], map! {}),
        ("quota.on", list!["/mnt/data"], map! {}),
        ("quota.off", list!["/mnt/data"], map! {}),
        ("quota.off", list!["-a"], map! {}),
    ]), @r##"
    quota.report: {"/mnt/data": {"User Quotas": {"Users": {"root": {"block-used": "13", "block-soft-limit": "0", "block-hard-limit": "0", "block-grace": "0", "file-used": "2", "file-soft-limit": "0", "file-hard-limit": "0", "file-grace": "0"}, "daemon": {"block-used": "1501", "block-soft-limit": "1000", "block-hard-limit": "2000", "block-grace": "1796408623", "file-used": "2", "file-soft-limit": "10", "file-hard-limit": "20", "file-grace": "0"}, "#77777": {"block-used": "0", "block-soft-limit": "0", "block-hard-limit": "0", "block-grace": "0", "file-used": "0", "file-soft-limit": "5", "file-hard-limit": "5", "file-grace": "0"}, "EX\\domain users": {"block-used": "0", "block-soft-limit": "0", "block-hard-limit": "0", "block-grace": "0", "file-used": "0", "file-soft-limit": "5", "file-hard-limit": "6", "file-grace": "0"}}, "Block Grace Time": ["7days"], "Inode Grace Time": ["7days"]}, "Group Quotas": {"Groups": {"games": {"block-used": "0", "block-soft-limit": "0", "block-hard-limit": "0", "block-grace": "0", "file-used": "0", "file-soft-limit": "5", "file-hard-limit": "5", "file-grace": "0"}}, "Block Grace Time": ["7days"], "Inode Grace Time": ["7days"]}}}
    quota.report: {"/mnt/old": {"User Quotas": {"Users": {}}, "Group Quotas": {"Groups": {}}}}
    quota.report: ERROR: '-a' cannot be used: it starts with '-' or is empty
    quota.get_mode: {"/mnt/data": {"device": "/dev/ubdd", "group": "on", "user": "on", "project": "off"}}
    quota.get_mode: {"/mnt/a (b) c": {"device": "/dev/ubdc", "user": "off"}}
    quota.get_mode: {"/mnt/old": "disabled"}
    quota.get_mode: {"/mnt/none": "Not found"}
    quota.stats: {"Kernel quota version": "6.5.1", "Number of dquot lookups": "20", "Number of in use dquot entries (user/group)": "3"}
    quota.warn: null
    quota.on: false
    quota.off: true
    quota.off: ERROR: '-a' cannot be used: it starts with '-' or is empty
    "##);
}

#[test]
fn limits_that_are_not_given_are_kept() {
    for (keyword, transcript, ran, answer) in [
        (
            map! {"user" => "daemon", "block-soft-limit" => 1500},
            "",
            "setquota -u daemon 1500 2000 10 20 /mnt/data",
            r#"{"User: daemon": {"block-soft-limit": 1500, "block-hard-limit": 2000, "file-soft-limit": 10, "file-hard-limit": 20}}"#,
        ),
        (
            map! {"user" => 77777, "block-hard-limit" => "1G"},
            "",
            "setquota -u 77777 0 1G 5 5 /mnt/data",
            r#"{"User: 77777": {"block-soft-limit": 0, "block-hard-limit": "1G", "file-soft-limit": 5, "file-hard-limit": 5}}"#,
        ),
        (
            map! {"user" => "EX\\domain users", "file-soft-limit" => 1},
            "",
            "setquota -u 'EX\\domain users' 0 0 1 6 /mnt/data",
            r#"{"User: EX\\domain users": {"block-soft-limit": 0, "block-hard-limit": 0, "file-soft-limit": 1, "file-hard-limit": 6}}"#,
        ),
        (
            map! {"user" => "nosuch", "file-soft-limit" => 5, "file-hard-limit" => 5},
            "! setquota: user nosuch does not exist.\n= 1",
            "setquota -u nosuch 0 0 5 5 /mnt/data",
            "ERROR: Unable to set desired quota. Error follows: \nsetquota: user nosuch does not exist.",
        ),
        (
            map! {"user" => "daemon", "group" => "games"},
            "",
            "",
            "ERROR executing 'quota.set': Please specify a user or group, not both.",
        ),
        (map! {"file-soft-limit" => 5}, "", "", "ERROR: A valid user or group was not found"),
        (
            map! {"user" => "daemon", "block_soft_limit" => 5},
            "",
            "",
            "ERROR executing 'quota.set': block_soft_limit is not a limit: expected block-soft-limit, block-hard-limit, file-soft-limit, file-hard-limit",
        ),
        (
            map! {"user" => "--all", "file-soft-limit" => 5},
            "",
            "",
            "ERROR: '--all' cannot be used: it starts with '-' or is empty",
        ),
        (
            map! {"user" => "daemon", "file-soft-limit" => -5},
            "",
            "",
            "ERROR: '-5' cannot be used: it starts with '-' or is empty",
        ),
    ] {
        let programs = Scripted::new(&format!("{USERS}$ setquota ...\n{transcript}"));
        let context = context_with(map! {}, programs.clone());
        assert_eq!(answers(&context, &[("quota.set", list!["/mnt/data"], keyword)]), format!("quota.set: {answer}"));
        let commands = programs.ran();
        let last = commands.lines().rfind(|line| line.starts_with("setquota")).unwrap_or_default();
        assert_eq!(last, ran);
    }
    let failing = "$ repquota -vp -g /mnt/old\n! repquota: Not all specified mountpoints are using quota.\n= 1\n";
    let context = context_with(map! {}, Scripted::new(failing));
    let call = ("quota.set", list!["/mnt/old"], map! {"group" => "games", "file-soft-limit" => 1});
    assert_eq!(
        answers(&context, &[call]),
        "quota.set: ERROR: Unable to read the present limits. Error follows: \nrepquota: Not all specified mountpoints are using quota."
    );
    let limits =
        map! {"block-soft-limit" => 0, "block-hard-limit" => 0, "file-soft-limit" => 5, "file-hard-limit" => 6};
    let mut all = map! {"group" => "games"};
    all.extend(limits);
    let context = context_with(map! {}, Scripted::new("$ setquota -g games 0 0 5 6 /mnt/old\n"));
    let answer = answers(&context, &[("quota.set", list!["/mnt/old"], all)]);
    assert!(answer.starts_with("quota.set: {\"Group: games\""), "{answer}");
}

#[test]
fn quotas_are_enabled_and_disabled() {
    let modes = |state: &str| {
        format!(
            "$ quotaon -p /dev/ubdc\n| group quota on /mnt/old (/dev/ubdc) is off\n| user quota on /mnt/old (/dev/ubdc) is {state}\n"
        )
    };
    let on: Value = true.into();
    let off: Value = false.into();
    for (mode, quotatype, test, transcript, result, comment) in [
        (&on, "user", false, modes("on"), Some(true), "Quota for /dev/ubdc already set to on"),
        (&off, "group", false, modes("on"), Some(true), "Quota for /dev/ubdc already set to off"),
        (&on, "user", true, modes("off"), None, "Quota for /dev/ubdc needs to be set to on"),
        (
            &on,
            "user",
            false,
            format!("{}$ quotaon /dev/ubdc\n", modes("off")),
            Some(true),
            "Set quota for /dev/ubdc to on",
        ),
        (
            &off,
            "user",
            false,
            format!("{}$ quotaoff /dev/ubdc\n", modes("on")),
            Some(true),
            "Set quota for /dev/ubdc to off",
        ),
        (
            &"on".into(),
            "group",
            false,
            format!("{}$ quotaon /dev/ubdc\n! quotaon: Permission denied\n= 1\n", modes("on")),
            Some(false),
            "Failed to set quota for /dev/ubdc to on",
        ),
        (
            &on,
            "user",
            true,
            "$ quotaon -p /dev/ubdc\n! quotaon: Mountpoint (or device) /dev/ubdc not found or has no quota enabled.\n"
                .into(),
            Some(false),
            "Quota for /dev/ubdc cannot be set to on: disabled",
        ),
        (
            &on,
            "user",
            true,
            "$ quotaon -p /dev/ubdc\n= 1\n".into(),
            Some(false),
            "Quota for /dev/ubdc cannot be set to on: its mode is unknown",
        ),
        (&"never".into(), "user", false, String::new(), Some(false), "mode is invalid: expected on or off, got never"),
        (
            &on,
            "project",
            false,
            String::new(),
            Some(false),
            "quotatype is invalid: expected user or group, got project",
        ),
    ] {
        let keyword = map! {"name" => "/dev/ubdc", "mode" => mode.clone(), "quotatype" => quotatype};
        let report = applied("quota.mode", keyword, test, &transcript);
        assert_eq!((report.result, report.comment.as_str()), (result, comment));
        let changes = if comment.starts_with("Set") {
            map! {"quota" => "/dev/ubdc"}
        } else {
            map! {}
        };
        assert_eq!(report.changes, changes.into(), "{comment}");
    }
}

#[test]
fn states_need_the_program() {
    for (transcript, reason) in [("", Some("quota module could not be loaded")), ("$ setquota\n", None)] {
        let context = context_with(map! {}, Scripted::new(transcript));
        assert_eq!(super::unavailable(&context).as_deref(), reason);
    }
}
