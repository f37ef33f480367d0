use brine_value::{list, map};

use super::*;

/// A schedule that is polled every second, with its inputs.
struct Fixture {
    schedule: Schedule,
    pillar: Map,
    grains: Map,
    running: u64,
}

impl Fixture {
    fn new(schedule: Map) -> Self {
        let schedule = Schedule { random: |_, to| to, ..Schedule::new(schedule) };
        Fixture { schedule, pillar: map! {}, grains: map! {}, running: 0 }
    }

    /// Creates a schedule of one job `j`, which runs `test.ping`.
    fn of(mut options: Map) -> Self {
        options.insert("function".into(), "test.ping".into());
        Fixture::new(map! {"j" => options})
    }

    fn poll(&mut self, now: &str) -> Vec<String> {
        let running = self.running;
        let context = ScheduleContext { pillar: &self.pillar, grains: &self.grains, running: &|_| running };
        let due = self.schedule.due_jobs(now.parse().unwrap(), SignedDuration::from_secs(1), &context);
        due.into_iter().map(|job| format!("{} {}", job.name, job.function)).collect()
    }

    /// Returns those of these times at which a job runs. Times without a date are on one day.
    fn runs(&mut self, times: &[&str]) -> Vec<String> {
        let whole = |time: &str| if time.contains('T') { time.to_owned() } else { format!("2026-11-21T{time}") };
        let due = times.iter().filter(|time| !self.poll(&whole(time)).is_empty());
        due.map(|time| (*time).to_owned()).collect()
    }

    fn skip_reason(&self) -> Option<String> {
        self.schedule.status("j").get("_skip_reason").map(ToString::to_string)
    }

    fn next(&self) -> String {
        self.schedule.next_time("j").map(|next| next.to_string()).unwrap_or_default()
    }
}

#[test]
fn a_job_runs_at_the_start_and_then_at_its_interval() {
    let times = ["12:00:00.1", "12:00:01.1", "12:00:02.05", "12:00:03.1", "12:00:04.1", "12:00:05.1"];
    let mut fixture = Fixture::of(map! {"seconds" => 2});
    assert_eq!(fixture.runs(&times), ["12:00:00.1", "12:00:02.05", "12:00:04.1"]);
    assert_eq!(fixture.next(), "2026-11-21T12:00:06.1");
    let mut later = Fixture::of(map! {"seconds" => 2, "run_on_start" => false});
    assert_eq!(later.runs(&times), ["12:00:02.05", "12:00:04.1"]);
    let mut late = Fixture::of(map! {"minutes" => 1});
    assert_eq!(late.runs(&["12:00:00", "12:05:00", "12:05:01"]), ["12:00:00", "12:05:00"]);
}

#[test]
fn when_accepts_times_of_the_day_weekdays_and_names() {
    let day = ["16:59:59.5", "17:00:00.5", "17:00:01.5", "18:00:00.2", "2026-11-22T17:00:00", "2026-11-23T17:00:00"];
    for (when, expected) in [
        (Value::from("5:00pm"), vec!["17:00:00.5", "2026-11-22T17:00:00", "2026-11-23T17:00:00"]),
        (list!["5:00pm", "18:00"], vec!["17:00:00.5", "18:00:00.2", "2026-11-22T17:00:00", "2026-11-23T17:00:00"]),
        (list!["Monday 5:00pm"], vec!["2026-11-23T17:00:00"]),
        ("2026-11-21T18:00:00".into(), vec!["18:00:00.2"]),
        // Names of times in the pillar, and in the grains.
        ("tea".into(), vec!["17:00:00.5", "2026-11-22T17:00:00", "2026-11-23T17:00:00"]),
        ("dinner".into(), vec!["18:00:00.2"]),
    ] {
        let mut fixture = Fixture::of(map! {"when" => when.clone()});
        fixture.pillar = map! {"whens" => map! {"tea" => "5pm"}};
        fixture.grains = map! {"whens" => map! {"dinner" => "6pm"}};
        assert_eq!(fixture.runs(&day), expected, "{when}");
    }
    // A missed time is skipped.
    let mut fixture = Fixture::of(map! {"when" => "5:00pm"});
    assert!(fixture.runs(&["16:00:00", "17:30:00"]).is_empty());
    assert_eq!(fixture.next(), "2026-11-22T17:00:00");
}

#[test]
fn once_runs_once_and_cron_repeats() {
    let times = ["11:59:59", "12:00:00.9", "12:00:01.9", "12:05:00", "12:05:01", "12:10:02"];
    assert_eq!(Fixture::of(map! {"once" => "2026-11-21T12:00:00"}).runs(&times), ["12:00:00.9"]);
    assert!(Fixture::of(map! {"once" => "2026-11-20T12:00:00"}).runs(&times).is_empty());
    let mut cron = Fixture::of(map! {"cron" => "*/5 * * * *"});
    assert_eq!(cron.runs(&times), ["12:00:00.9", "12:05:00", "12:10:02"]);
    assert_eq!(cron.next(), "2026-11-21T12:15:00");
}

#[test]
fn a_splay_delays_runs() {
    // The random delay is always the maximum here.
    let mut often = Fixture::of(map! {"seconds" => 10, "splay" => 3, "run_on_start" => false});
    let times = ["12:00:00", "12:00:10", "12:00:12", "12:00:13", "12:00:14", "12:00:23", "12:00:26"];
    assert_eq!(often.runs(&times), ["12:00:13", "12:00:26"]);
    let mut when = Fixture::of(map! {"when" => "5pm", "splay" => map! {"start" => 1, "end" => 5}});
    assert_eq!(when.runs(&["17:00:00", "17:00:01", "17:00:05", "17:00:06"]), ["17:00:05"]);
    let mut all = Fixture::new(map! {"splay" => 2, "j" => map! {"function" => "test.ping", "cron" => "0 * * * *"}});
    assert_eq!(all.runs(&["12:59:59", "13:00:00", "13:00:02", "13:00:03"]), ["13:00:02"]);
}

#[test]
fn ranges_and_conditions_also_apply_to_the_run_at_the_start() {
    let span = |start: &str, end: &str| map! {"start" => start, "end" => end};
    let inverted = map! {"start" => "12:00:00", "end" => "12:00:05", "invert" => true};
    let at = ["12:00:01", "12:00:05", "12:00:06", "12:01:05", "12:01:06"];
    for (name, value, runs) in [
        ("range", Value::from(span("12:00:05", "12:00:09")), vec!["12:00:05"]),
        ("range", span("12:00:00", "12:00:09").into(), vec!["12:00:01"]),
        ("range", span("09:00:00", "10:00:00").into(), vec![]),
        ("range", inverted.into(), vec!["12:01:05"]),
        ("skip_during_range", span("12:00:00", "12:00:05").into(), vec!["12:01:05"]),
        ("until", "2020-01-01T00:00:00".into(), vec![]),
        ("after", "2090-01-01T00:00:00".into(), vec![]),
        ("enabled", false.into(), vec![]),
        ("return_job", false.into(), vec!["12:00:01", "12:01:05"]),
    ] {
        let mut fixture = Fixture::of(map! {"seconds" => 60, name => value.clone()});
        assert_eq!(fixture.runs(&at), runs, "{name} {value}");
    }
}

#[test]
fn ranges_and_conditions_skip_runs() {
    let span = || map! {"start" => "12:00:05", "end" => "12:00:07"};
    let inverted = map! {"start" => "12:00:05", "end" => "12:00:07", "invert" => true};
    let at = ["12:00:04", "12:00:05", "12:00:07", "12:00:08"];
    for (name, value, runs, why) in [
        ("range", Value::from(span()), vec!["12:00:05", "12:00:07"], Some("not_in_range")),
        ("range", inverted.into(), vec!["12:00:04", "12:00:08"], None),
        ("skip_during_range", span().into(), vec!["12:00:04", "12:00:08"], None),
        ("until", "12:00:07".into(), vec!["12:00:04", "12:00:05"], Some("until_passed")),
        ("after", "12:00:04".into(), vec!["12:00:05", "12:00:07", "12:00:08"], None),
        ("enabled", false.into(), vec![], Some("disabled")),
        (
            "skip_explicit",
            list![map! {"time" => "2026-11-21T12:00:05"}],
            vec!["12:00:04", "12:00:07", "12:00:08"],
            None,
        ),
    ] {
        let mut fixture = Fixture::of(map! {"seconds" => 1, "run_on_start" => false, name => value.clone()});
        fixture.poll("2026-11-21T12:00:02");
        assert_eq!(
            (fixture.runs(&at), fixture.skip_reason().as_deref()),
            (runs.into_iter().map(str::to_owned).collect(), why),
            "{name} {value}"
        );
    }
}

#[test]
fn skipped_runs_are_made_up_with_run_after_skip_range() {
    let range = map! {"start" => "12:00", "end" => "13:00"};
    let options = map! {"cron" => "30 12 * * *", "skip_during_range" => range, "run_after_skip_range" => true};
    let mut fixture = Fixture::of(options);
    assert_eq!(fixture.runs(&["12:29:00", "12:30:00", "13:00:00", "13:00:01", "13:00:02"]), ["13:00:01"]);
}

#[test]
fn skip_explicit_and_run_explicit_postpone_a_run() {
    let options = map! {
        "when" => "5pm",
        "skip_explicit" => list![map! {"time" => "2026-11-21T17:00:00", "time_fmt" => "%Y-%m-%dT%H:%M:%S"}],
        "run_explicit" => list![map! {"time" => "2026-11-21T18:00:00"}],
    };
    assert_eq!(Fixture::of(options).runs(&["16:00:00", "17:00:00", "18:00:00", "18:00:01"]), ["18:00:00"]);
}

#[test]
fn maxrunning_limits_concurrent_runs() {
    for (options, running, runs) in [
        (map! {"seconds" => 5}, 0, true),
        (map! {"seconds" => 5}, 1, false),
        (map! {"seconds" => 5, "maxrunning" => 2}, 1, true),
        (map! {"seconds" => 5, "jid_include" => false}, 9, true),
    ] {
        let mut fixture = Fixture { running, ..Fixture::of(options.clone()) };
        assert_eq!(!fixture.runs(&["12:00:00"]).is_empty(), runs, "{options:?}");
        assert_eq!(fixture.skip_reason().as_deref(), (!runs).then_some("maxrunning"), "{options:?}");
        assert!(*fixture.next() > *"2026-11-21T12:00:00");
    }
}

#[test]
fn schedule_options_apply_to_all_jobs() {
    let job = || map! {"function" => "test.ping", "seconds" => 1};
    let mut off = Fixture::new(map! {"enabled" => false, "j" => job()});
    assert!(off.runs(&["12:00:00", "12:00:01"]).is_empty());
    let range = map! {"start" => "12:00:01", "end" => "12:00:02"};
    let mut other = Fixture::new(map! {"skip_function" => "test.nop", "skip_during_range" => range, "j" => job()});
    let ran: Vec<_> =
        ["12:00:00", "12:00:01", "12:00:03"].iter().map(|time| other.poll(&format!("2026-11-21T{time}"))).collect();
    assert_eq!(ran, [["j test.ping"], ["j test.nop"], ["j test.ping"]]);
}

#[test]
fn jobs_of_pillar_and_configuration_run_despite_invalid_ones() {
    let job = |function: &str| map! {"function" => function, "seconds" => 60};
    let mut fixture = Fixture::new(map! {"both" => job("of.config"), "wrong" => map! {"seconds" => 1}});
    fixture.pillar = map! {"schedule" => map! {"both" => job("of.pillar"), "more" => job("of.pillar")}};
    let mut ran = fixture.poll("2026-11-21T12:00:00");
    ran.sort();
    assert_eq!(ran, ["both of.config", "more of.pillar"]);
    assert_eq!(fixture.schedule.status("wrong").get("_error"), Some(&"option 'function' is missing".into()));
}

#[test]
fn a_change_that_keeps_the_times_keeps_the_state() {
    let mut fixture = Fixture::of(map! {"seconds" => 60});
    assert_eq!(fixture.runs(&["12:00:00"]).len(), 1);
    let set = |fixture: &mut Fixture, name: &str, value: Value| {
        let job = fixture.schedule.config_mut().get_mut("j").and_then(Value::as_map_mut).unwrap();
        job.insert(name.into(), value);
    };
    set(&mut fixture, "enabled", false.into());
    set(&mut fixture, "args", list![1]);
    assert!(fixture.runs(&["12:00:01"]).is_empty());
    assert_eq!(fixture.next(), "2026-11-21T12:01:00");
    set(&mut fixture, "enabled", true.into());
    set(&mut fixture, "seconds", 30.into());
    assert_eq!(fixture.runs(&["12:00:02", "12:00:03"]), ["12:00:02"]);
    assert_eq!(fixture.next(), "2026-11-21T12:00:32");
}

#[test]
fn late_polls_miss_no_times_and_a_clock_set_back_delays_no_jobs() {
    let mut when = Fixture::of(map! {"when" => "5pm"});
    assert_eq!(when.runs(&["16:59:58", "16:59:59.9", "17:00:05.5", "17:00:06.5"]), ["17:00:05.5"]);
    // Two polls within one tick.
    let mut extra = Fixture::of(map! {"when" => "5am", "run_explicit" => list!["2026-11-21T17:00:00"]});
    assert_eq!(extra.runs(&["16:59:59", "17:00:00.1", "17:00:00.9"]), ["17:00:00.1"]);
    for (timing, value) in [("seconds", Value::from(5)), ("cron", "* * * * * */5".into())] {
        let mut back = Fixture::of(map! {timing => value, "run_on_start" => false});
        assert_eq!(
            back.runs(&["03:00:00", "03:00:05", "02:00:01", "02:00:06", "02:00:11"]),
            ["03:00:05", "02:00:06", "02:00:11"]
        );
    }
    let mut once = Fixture::of(map! {"when" => "2:30am"});
    assert_eq!(once.runs(&["02:30:00", "02:59:59", "02:00:00", "02:29:59", "02:30:00"]), ["02:30:00"]);
}
