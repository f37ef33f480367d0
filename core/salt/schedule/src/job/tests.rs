use super::*;
use brine_value::{list, map};

fn with(mut options: Map) -> Result<Job, JobError> {
    options.entry("function".into()).or_insert_with(|| "test.ping".into());
    Job::read("mine", &options.into())
}

#[test]
fn a_job_is_read() {
    let job = with(map! {
        "minutes" => 1, "seconds" => "5", "args" => list![1], "kwargs" => map! {"a" => 2}, "maxrunning" => 3,
        "return_job" => "nocache", "returner" => "redis", "splay" => 10,
    })
    .unwrap();
    assert_eq!(job.timing, Timing::Every(SignedDuration::from_secs(65)));
    assert_eq!((job.run_on_start, job.max_running, job.enabled), (true, Some(3), true));
    assert_eq!((job.return_job, job.splay), (ReturnJob::NoCache, Some((1, 10))));
    assert_eq!(
        (job.returners.clone(), job.fun_args()),
        (vec!["redis".to_owned()], vec![1.into(), map! {"a" => 2}.into()])
    );
    let job = with(map! {"cron" => "@daily", "jid_include" => false, "return_job" => false}).unwrap();
    assert_eq!((job.run_on_start, job.max_running, job.return_job), (false, None, ReturnJob::No));
    let once = with(map! {"once" => "21.11.2026 17:00", "once_fmt" => "%d.%m.%Y %H:%M"}).unwrap();
    assert_eq!(once.timing, Timing::Once("2026-11-21T17:00:00".parse().unwrap()));
    let job = with(map! {"splay" => map! {"start" => 3, "end" => 5}, "name" => "other"}).unwrap();
    assert_eq!((job.splay, job.timing, &*job.name), (Some((3, 5)), Timing::Never, "other"));
}

#[test]
fn returns_go_to_every_returner_once_and_carry_their_time() {
    let job = with(map! {"returner" => list!["redis", "sqlite3"], "metadata" => map! {"who" => "me"}}).unwrap();
    assert_eq!(job.returners_with(&["sqlite3".to_owned(), "local".to_owned()]), ["redis", "sqlite3", "local"]);
    assert_eq!(job.returners_with(&["redis".to_owned()]), ["redis", "sqlite3"]);
    let metadata = job.metadata_at(&"2026-11-21T12:00:00+01:00[+01:00]".parse().unwrap()).unwrap();
    let expected = map! {"who" => "me", "_TOS" => "+0100", "_TS" => "Sat Nov 21 12:00:00 2026", "_TT" => "2026 November 21 Sat 11 11"};
    assert_eq!(metadata, expected);
}

#[test]
fn invalid_jobs_are_reported() {
    assert_eq!(Job::read("x", &map! {}.into()).unwrap_err().to_string(), "option 'function' is missing");
    assert_eq!(Job::read("x", &5.into()).unwrap_err().to_string(), "expected a mapping of options, got int");
    for (options, error) in [
        (map! {"seconds" => 5, "when" => "5pm"}, "of seconds, when only one can be used"),
        (map! {"cron" => "* * * * *", "when" => "5pm"}, "of when, cron only one can be used"),
        (map! {"seconds" => "often"}, "option 'seconds': expected an integer, got str"),
        (map! {"seconds" => -5}, "option 'seconds': expected a number that is not negative, got -5"),
        (map! {"cron" => "61 * * * *"}, "option 'cron': '61' is no number from 0 to 59"),
        (map! {"range" => "8am"}, "option 'range': expected start and end, got 8am"),
        (map! {"range" => map! {"start" => "8am"}}, "option 'range': it must have start and end"),
        (map! {"until" => "later"}, "option 'until': 'later' is no time: write it as 5:00pm or 2026-11-21T17:00:00"),
        (
            map! {"splay" => map! {"start" => 9, "end" => 5}},
            "option 'splay': expected seconds, or start and end, got {'start': 9, 'end': 5}",
        ),
        (map! {"kwargs" => list![1]}, "option 'kwargs': expected a mapping, got [1]"),
    ] {
        assert_eq!(with(options).unwrap_err().to_string(), error);
    }
    let error = with(map! {"once" => "soon"}).unwrap_err();
    assert!(matches!(&error, JobError::Option { option, .. } if option == "once"), "{error:?}");
    assert!(error.to_string().starts_with("option 'once': 'soon' is no time of the form "), "{error}");
}
