use super::*;
use crate::testing::applied;

#[test]
fn jobs_are_added_and_removed() {
    let queue = "
            $ atq
            | 1\tThu Nov 26 06:05:00 2026 a ada
            | 2\tTue Nov  9 09:09:00 2027 a root
            $ at -c 1
            | echo hi
            $ at -c 2
            | ### SALT: love
            $ at noon
            ! warning: commands will be executed using /bin/sh
            ! job 2 at Tue Nov  9 09:09:00 2027
            $ at never
            ! Garbled time
            = 1
            $ at -d 1
            $ at -d 2
            $ at -d 1 2
        ";
    let noon = || map! {"name" => "echo x", "timespec" => "noon", "tag" => "love"};
    let with = |mut map: Map, key: &str, value: Value| {
        map.insert(key.into(), value);
        map
    };
    let named = |key: &str, value: Value| map! {"name" => "n", key => value};
    for (function, keyword, test, result, comment, changed) in [
        ("at.present", noon(), false, Some(true), "job echo x added and will run on noon", "tag"),
        ("at.present", noon(), true, None, "job echo x added and will run on noon", ""),
        ("at.present", with(noon(), "job", "ls".into()), false, Some(true), "job ls added and will run on noon", "tag"),
        (
            "at.present",
            with(noon(), "user", "root".into()),
            false,
            Some(true),
            "job echo x added and will run as root on noon",
            "tag",
        ),
        ("at.present", with(noon(), "user", "no-such".into()), false, Some(false), "user no-such does not exists", ""),
        ("at.present", with(noon(), "timespec", "never".into()), false, Some(false), "invalid timespec", ""),
        (
            "at.present",
            with(noon(), "unique_tag", true.into()),
            false,
            Some(true),
            "atleast one job with tag love exists.",
            "",
        ),
        ("at.watch", noon(), false, Some(true), "", ""),
        (
            "at.mod_watch",
            with(noon(), "sfun", "watch".into()),
            false,
            Some(true),
            "job echo x added and will run on noon",
            "tag",
        ),
        ("at.absent", map! {"name" => "n"}, false, Some(true), "removed 2 job(s)", "removed"),
        ("at.absent", map! {"name" => "n"}, true, None, "removed ? job(s)", ""),
        ("at.absent", named("tag", "love".into()), false, Some(true), "removed 1 job(s)", "removed"),
        ("at.absent", named("tag", "rose".into()), false, Some(true), "removed 0 job(s)", ""),
        ("at.absent", named("jobid", 1.into()), false, Some(true), "job with id 1 was removed", "removed"),
        ("at.absent", named("jobid", 9.into()), false, Some(true), "job with id 9 not present", ""),
        ("at.absent", named("limit", 1.into()), false, Some(false), "limit parameter not supported n", ""),
    ] {
        let report = applied(function, keyword, test, queue);
        assert_eq!((report.result, &*report.comment), (result, comment), "{function}");
        assert!(!test || report.ran.is_empty(), "{}", report.ran);
        let has = report.changes.get(changed).is_some() || (changed.is_empty() && !report.changes.is_truthy());
        assert!(has, "{function} {comment}: {}", report.changes);
    }
}
