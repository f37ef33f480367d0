use brine_context::schedule::file;

use super::*;
use crate::testing;

#[test]
fn events_query_and_change_the_schedule() {
    let minion = testing::minion(&[]);
    let ping = || map! {"function" => "test.ping", "seconds" => 60};
    let with = |option: &str, value: Value| {
        let mut job = ping();
        job.insert(option.into(), value);
        job
    };
    *minion.pillar.write() = Arc::new(map! {"schedule" => map! {"p" => ping()}});
    let p = |more: Map| [("p".into(), ping().into())].into_iter().chain(more).collect::<Map>();
    let on = || with("enabled", true.into());
    for (question, tag, schedule) in [
        (map! {"func" => "list"}, "list_complete", p(map! {})),
        (map! {"func" => "list", "where" => "opts"}, "list_complete", map! {}),
        (map! {"func" => "add", "schedule" => map! {"j" => ping()}}, "add_complete", p(map! {"j" => on()})),
        // Jobs of the pillar must be changed there.
        (map! {"func" => "add", "schedule" => map! {"p" => on()}}, "add_complete", p(map! {"j" => on()})),
        (map! {"func" => "disable_job", "name" => "p"}, "disabled_job_complete", p(map! {"j" => on()})),
        (
            map! {"func" => "disable_job", "name" => "j"},
            "disabled_job_complete",
            p(map! {"j" => with("enabled", false.into())}),
        ),
        (
            map! {"func" => "modify", "name" => "j", "schedule" => with("args", list![1])},
            "delete_complete",
            p(map! {"j" => with("args", list![1])}),
        ),
        (map! {"func" => "delete", "name" => "j"}, "delete_complete", p(map! {})),
        (map! {"func" => "disable"}, "disabled_complete", p(map! {"enabled" => false})),
    ] {
        let fields = map! {"complete" => true, "schedule" => schedule};
        let expected = Some((format!("/salt/minion/minion_schedule_{tag}"), fields));
        assert_eq!(answer(&minion, &question).reply, expected, "{question:?}");
    }
}

#[test]
fn a_job_is_run_postponed_and_queried() {
    let minion = testing::minion(&[]);
    let ping = map! {"function" => "test.ping", "when" => "5pm"};
    minion.schedule.lock().config_mut().insert("j".into(), ping.into());
    assert_eq!(answer(&minion, &map! {"func" => "run_job", "name" => "j"}).run.unwrap().function, "test.ping");
    assert!(answer(&minion, &map! {"func" => "run_job", "name" => "none"}).run.is_none());
    let (from, to) = ("2026-11-21T17:00:00", "2026-11-21T18:00:00");
    answer(&minion, &map! {"func" => "postpone_job", "name" => "j", "time" => from, "new_time" => to});
    let own = minion.schedule.lock().config().get("j").cloned().unwrap();
    let time = |time: &str| list![map! {"time" => time, "time_fmt" => "%Y-%m-%dT%H:%M:%S"}];
    assert_eq!((own.get("skip_explicit"), own.get("run_explicit")), (Some(&time(from)), Some(&time(to))));
    let now = "2026-11-21T12:00:00".parse().unwrap();
    assert!(super::super::tests::due(&minion, now, jiff::SignedDuration::from_secs(1)).is_empty());
    // Jobs of the pillar are unchanged, and the time of their next run is kept.
    *minion.pillar.write() = Arc::new(map! {"schedule" => map! {"p" => map! {"function" => "f", "when" => "6pm"}}});
    super::super::tests::due(&minion, now, jiff::SignedDuration::from_secs(1));
    answer(&minion, &map! {"func" => "delete", "name" => "p"});
    let (_, fields) = answer(&minion, &map! {"func" => "get_next_fire_time", "name" => "p"}).reply.unwrap();
    assert_eq!(fields.get("next_fire_time"), Some(&to.into()));
    let (_, fields) = answer(&minion, &map! {"func" => "get_next_fire_time", "name" => "j"}).reply.unwrap();
    assert_eq!(fields.get("next_fire_time"), Some(&from.into()));
    let (_, fields) = answer(&minion, &map! {"func" => "job_status", "name" => "j"}).reply.unwrap();
    assert_eq!(fields.get("data").unwrap().get("_next_fire_time"), Some(&from.into()));
}

#[test]
fn a_change_is_saved_on_request() {
    let directory = tempfile::tempdir().unwrap();
    let mut minion = testing::minion(&[]);
    let inner = Arc::get_mut(&mut minion).unwrap();
    let mut config = (*inner.config).clone();
    config.config_dir = directory.path().to_owned();
    inner.config = Arc::new(config);
    let job = map! {"function" => "test.ping", "seconds" => 60};
    answer(&minion, &map! {"func" => "add", "schedule" => map! {"a" => job.clone()}});
    assert!(!file(&minion.config).exists());
    answer(&minion, &map! {"func" => "add", "schedule" => map! {"b" => job}, "persist" => true});
    let text = std::fs::read_to_string(file(&minion.config)).unwrap();
    insta::assert_snapshot!(text, @r"
        schedule:
          a:
            enabled: true
            function: test.ping
            seconds: 60
          b:
            enabled: true
            function: test.ping
            seconds: 60
        ");
}
