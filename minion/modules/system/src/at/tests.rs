use brine_value::list;

use super::*;
use crate::testing::{Scripted, answers, context_with};

// As written by at 3.2.5.
const JOBS: &str = "
        $ atq
        | 2\tTue Nov  9 09:09:00 2027 a root
        | 1\tThu Nov 26 06:05:00 2026 a ada
        $ at -c 1
        | echo hi
        $ at -c 2
        | ### SALT: love
        | echo x
    ";

#[test]
fn jobs_are_listed_with_their_tags() {
    let context = context_with(map! {"os_family" => "Debian"}, Scripted::new(JOBS));
    insta::assert_snapshot!(answers(&context, &[
        ("at.atq", list![], map! {}),
        ("at.atq", list!["love"], map! {}),
        ("at.atq", list![1], map! {}),
        ("at.atq", list!["none"], map! {}),
        ("at.jobcheck", list![], map! {}),
        ("at.jobcheck", list![], map! {"day" => 26, "month" => "11", "year" => 26, "hour" => 6, "runas" => "ada"}),
        ("at.jobcheck", list![], map! {"tag" => "love", "minute" => "09"}),
        ("at.jobcheck", list![], map! {"day" => 27}),
        ("at.atc", list![1], map! {}),
    ]), @r#"
        at.atq: {"jobs": [{"job": 2, "date": "2027-11-09", "time": "09:09:00", "queue": "a", "user": "root", "tag": "love"}, {"job": 1, "date": "2026-11-26", "time": "06:05:00", "queue": "a", "user": "ada", "tag": ""}]}
        at.atq: {"jobs": [{"job": 2, "date": "2027-11-09", "time": "09:09:00", "queue": "a", "user": "root", "tag": "love"}]}
        at.atq: {"jobs": [{"job": 1, "date": "2026-11-26", "time": "06:05:00", "queue": "a", "user": "ada", "tag": ""}]}
        at.atq: {"jobs": []}
        at.jobcheck: {"error": "You have given a condition"}
        at.jobcheck: {"jobs": [{"job": 1, "date": "2026-11-26", "time": "06:05:00", "queue": "a", "user": "ada", "tag": ""}]}
        at.jobcheck: {"jobs": [{"job": 2, "date": "2027-11-09", "time": "09:09:00", "queue": "a", "user": "root", "tag": "love"}]}
        at.jobcheck: {"jobs": [], "note": "No match jobs or time format error"}
        at.atc: "echo hi"
        "#);
}

#[test]
fn jobs_are_added_and_removed() {
    let programs = Scripted::new(&format!(
        "{JOBS}
            $ at '9:09 11/09/27'
            ! warning: commands will be executed using /bin/sh
            ! job 2 at Tue Nov  9 09:09:00 2027
            ! Can't open /run/atd.pid to signal atd. No atd running?
            $ at 'foo bar'
            ! syntax error. Last token seen: f
            ! Garbled time
            = 1
            $ at noon
            ! You do not have permission to use at.
            = 1
            $ at -c 99
            ! Cannot find jobid 99
            = 1
            $ at -d 2 1
            $ at -d 2
            "
    ));
    let context = context_with(map! {"os_family" => "Debian"}, programs.clone());
    insta::assert_snapshot!(answers(&context, &[
        ("at.at", list!["9:09 11/09/27", "echo", "x"], map! {"tag" => "love"}),
        ("at.at", list!["foo bar", "x"], map! {}),
        ("at.at", list!["noon", "x"], map! {}),
        ("at.at", list!["-f/etc/shadow", "x"], map! {}),
        ("at.at", list!["noon"], map! {}),
        ("at.atc", list![99], map! {}),
        ("at.atrm", list![], map! {}),
        ("at.atrm", list!["all"], map! {}),
        ("at.atrm", list!["all", "love"], map! {}),
        ("at.atrm", list![2, 77], map! {}),
    ]), @r#"
        at.at: {"jobs": [{"job": 2, "date": "2027-11-09", "time": "09:09:00", "queue": "a", "user": "root", "tag": "love"}]}
        at.at: {"jobs": [], "error": "invalid timespec"}
        at.at: ERROR: adding a job failed: You do not have permission to use at.
        at.at: ERROR: '-f/etc/shadow' cannot be used: it starts with '-' or is empty
        at.at: {"jobs": []}
        at.atc: {"error": "invalid job id '99'"}
        at.atrm: {"jobs": {"removed": [], "tag": null}}
        at.atrm: {"jobs": {"removed": ["2", "1"], "tag": null}}
        at.atrm: {"jobs": {"removed": ["2"], "tag": "love"}}
        at.atrm: {"jobs": {"removed": ["2"], "tag": null}}
        "#);
}

#[test]
fn both_forms_of_times_are_parsed() {
    let job = parsed("7\t2026-11-26 06:05 a root").unwrap();
    assert_eq!((job.job, &*job.date, &*job.time, &*job.user), (7, "2026-11-26", "06:05:00", "root"));
    assert_eq!(parsed("no job"), None);
}
