//! The module `schedule` and its states.

use std::sync::Arc;

use brine_context::{Context, StateContext};
use brine_function::Args;
use brine_value::{Map, Value, list, map};

use crate::testing;

fn outcome(result: bool, comment: impl Into<String>, changes: Map) -> Value {
    map! {"comment" => comment.into(), "result" => result, "changes" => changes}.into()
}
fn call(context: &Context, fun: &str, keyword: Map) -> Value {
    context.call(&format!("schedule.{fun}"), Args::keyword(keyword)).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_are_listed_added_changed_and_deleted() {
    let directory = tempfile::tempdir().unwrap();
    let minion = testing::answering(directory.path());
    let ping = || map! {"function" => "test.ping", "seconds" => 60};
    *minion.pillar.write() = Arc::new(map! {"schedule" => map! {"p" => ping()}});
    let changed = |name: &str, to: &str| map! {name => to};
    let steps = [
        ("add", "j", ping(), true, "Added job: j to schedule.", changed("j", "added")),
        ("add", "j", ping(), false, "Job j already exists in schedule.", map! {}),
        ("add", "p", ping(), false, "Job p already exists in schedule.", map! {}),
        (
            "add",
            "k",
            map! {"function" => "test.arg", "test" => true},
            true,
            "Job: k would be added to schedule.",
            map! {},
        ),
        (
            "add",
            "k",
            map! {"function" => "f", "seconds" => 1, "when" => "5pm"},
            false,
            "Error: Unable to use \"seconds\", \"minutes\", \"hours\", or \"days\" with \"when\" or \"cron\" options.",
            map! {},
        ),
        ("modify", "j", map! {"seconds" => 60}, true, "Job j in correct state", map! {}),
        ("modify", "none", map! {"seconds" => 60}, false, "Job none does not exist in schedule.", map! {}),
        ("disable_job", "j", map! {}, true, "Disabled Job j in schedule.", changed("j", "disabled")),
        ("disable_job", "p", map! {}, false, "Failed to disable job p in schedule.", map! {}),
        ("enable_job", "j", map! {}, true, "Enabled Job j in schedule.", changed("j", "enabled")),
        ("enable_job", "none", map! {}, false, "Job none does not exist.", map! {}),
        ("delete", "p", map! {}, false, "Failed to delete job p from schedule.", map! {}),
        ("delete", "none", map! {}, false, "Job none does not exist.", map! {}),
        ("delete", "j", map! {"test" => true}, true, "Job: j would be deleted from schedule.", map! {}),
        ("delete", "j", map! {}, true, "Deleted Job j from schedule.", changed("j", "removed")),
    ];
    let called = tokio::task::spawn_blocking(move || {
        let context = testing::context_of(minion);
        for (fun, name, mut keyword, result, comment, changes) in steps {
            keyword.insert("name".into(), name.into());
            assert_eq!(call(&context, fun, keyword), outcome(result, comment, changes), "{fun} {name}");
        }
        for (job, reason) in [
            (map! {"function" => "test.pingg"}, "'test.pingg' is not available. Did you mean 'test.ping'?"),
            (map! {"function" => "test.ping", "secons" => 5}, "unknown option 'secons'; did you mean 'seconds'?"),
        ] {
            let keyword: Map = [map! {"name" => "k"}, job].into_iter().flatten().collect();
            let refused = map! {"comment" => format!("Schedule item k is invalid: {reason}"), "result" => false};
            assert_eq!(call(&context, "add", keyword), refused.into());
        }
    });
    called.await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_whole_schedule_is_listed_saved_and_switched() {
    let directory = tempfile::tempdir().unwrap();
    let minion = testing::answering(directory.path());
    let called = tokio::task::spawn_blocking(move || {
        let context = testing::context_of(minion);
        let job = map! {"name" => "j", "function" => "test.arg", "job_args" => list![1], "cron" => "0 0 * * *", "persist" => false};
        call(&context, "add", job);
        let listed = call(&context, "list", map! {});
        insta::assert_snapshot!(listed, @r"
        schedule:
          j:
            args:
            - 1
            cron: 0 0 * * *
            enabled: true
            function: test.arg
            jid_include: true
            maxrunning: 1
            name: j
            saved: false
        ");
        let report = call(&context, "modify", map! {"name" => "j", "cron" => "0 1 * * *"});
        assert_eq!(report.get("comment"), Some(&"Modified job: j in schedule.".into()));
        let new = report.get("changes").unwrap().get("j").unwrap().get("new").unwrap();
        assert_eq!(
            (new.get("cron"), new.get("function"), new.get("args")),
            (Some(&"0 1 * * *".into()), Some(&"test.arg".into()), None)
        );
        for (fun, keyword, result, comment) in [
            ("save", map! {}, true, "Schedule (non-pillar items) saved."),
            ("run_job", map! {"name" => "none"}, false, "Job none does not exist."),
            ("run_job", map! {"name" => "j"}, true, "Scheduling Job j on minion."),
            ("skip_job", map! {"name" => "j", "current_time" => "soon"}, false, "Date string could not be parsed."),
            (
                "skip_job",
                map! {"name" => "j", "current_time" => "2026-11-22T01:00:00"},
                true,
                "Added Skip Job j in schedule.",
            ),
            (
                "postpone_job",
                map! {"name" => "j", "current_time" => "2026-11-22T01:00:00", "new_time" => "2026-11-22T02:00:00"},
                true,
                "Postponed Job j in schedule.",
            ),
        ] {
            assert_eq!(call(&context, fun, keyword), map! {"comment" => comment, "result" => result}.into(), "{fun}");
        }
        assert!(call(&context, "list", map! {}).to_string().contains("saved: true"));
        let next = call(&context, "show_next_fire_time", map! {"name" => "j"});
        assert_eq!(next, map! {"result" => true, "next_fire_time" => Value::Nil}.into());
        assert_eq!(call(&context, "job_status", map! {"name" => "j"}).get("cron"), Some(&"0 1 * * *".into()));
        assert_eq!(call(&context, "is_enabled", map! {}), true.into());
        let off = outcome(true, "Disabled schedule on minion.", map! {"schedule" => "disabled"});
        assert_eq!(call(&context, "disable", map! {}), off);
        assert_eq!(call(&context, "is_enabled", map! {}), false.into());
        assert_eq!(call(&context, "is_enabled", map! {"name" => "j"}).get("cron"), Some(&"0 1 * * *".into()));
        let purged = call(&context, "purge", map! {});
        let comments = list!["Deleted job: j from schedule."];
        assert_eq!(purged, map! {"comment" => comments, "changes" => map! {"j" => "removed"}, "result" => true}.into());
    });
    called.await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn offline_only_the_file_is_changed() {
    let directory = tempfile::tempdir().unwrap();
    let minion = testing::answering(directory.path());
    let called = tokio::task::spawn_blocking(move || {
        let context = testing::context_of(minion);
        let job = |more: Map| {
            let mut job = map! {"name" => "j", "offline" => true, "function" => "test.ping"};
            job.extend(more);
            job
        };
        for (fun, more, comment) in [
            ("add", map! {"seconds" => 5}, "Added job: j to schedule."),
            ("add", map! {"seconds" => 5}, "Job j already exists in schedule."),
            ("modify", map! {"seconds" => 6}, "Modified job: j in schedule."),
            ("delete", map! {}, "Deleted Job j from schedule."),
            ("delete", map! {}, "Job j does not exist."),
        ] {
            let report = call(&context, fun, job(more));
            assert_eq!(report.get("comment"), Some(&comment.into()), "{fun}");
            assert_eq!(call(&context, "list", map! {"return_yaml" => false}), map! {}.into());
        }
    });
    called.await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn schedule_states_are_enforced() {
    let directory = tempfile::tempdir().unwrap();
    let minion = testing::answering(directory.path());
    let job = |seconds: i64| map! {"function" => "test.ping", "seconds" => seconds};
    let steps = [
        ("absent", false, map! {}, true, "Job j not present in schedule", false),
        ("enabled", false, map! {}, true, "Job j not present in schedule", false),
        ("present", true, job(5), true, "Job: j would be added to schedule.", true),
        ("present", false, map! {"seconds" => 5}, false, "Job function is required.", false),
        ("present", false, job(5), true, "Adding new job j to schedule", true),
        ("present", false, job(5), true, "Job j in correct state", false),
        ("present", true, job(6), true, "Job: j would be modified in schedule.", true),
        ("present", false, job(6), true, "Modifying job j in schedule", true),
        ("disabled", false, map! {}, true, "Disabled job j from schedule", false),
        ("enabled", true, map! {}, true, "Job: j would be enabled in schedule.", false),
        ("enabled", false, map! {}, true, "Enabled job j from schedule", false),
        ("absent", true, map! {}, true, "Job: j would be deleted from schedule.", false),
        ("absent", false, map! {}, true, "Removed job j from schedule", true),
    ];
    let called = tokio::task::spawn_blocking(move || {
        for (fun, test, mut options, result, comment, changed) in steps {
            options.insert("name".into(), "j".into());
            let context =
                StateContext { call: testing::context_of(minion.clone()), ..testing::state_context(test, &[]) };
            let outcome =
                context.call.minion.states.call(&context, &format!("schedule.{fun}"), Args::keyword(options)).unwrap();
            let report = (outcome.get("result").cloned(), outcome.get("comment").cloned());
            assert_eq!(report, (Some(result.into()), Some(comment.into())), "{fun}");
            assert_eq!(outcome.get("changes").unwrap().is_truthy(), changed, "{fun} {comment}");
        }
    });
    called.await.unwrap();
}
