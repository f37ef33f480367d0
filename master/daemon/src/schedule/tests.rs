use brine_ids::Jid;
use brine_schedule::{FAILED, Job};
use brine_value::list;

use super::*;

#[test]
fn an_occurrence_runs_once_on_the_leader() {
    let every = Timing::Every(jiff::SignedDuration::from_secs(60));
    let by_clock = Timing::When(vec!["12:00".into()]);
    for (timing, last, due, expected) in [
        (&every, None, 100.0, true),
        (&every, Some(100.0), 159.2, true),
        // Another member, which polls at a different phase.
        (&every, Some(100.0), 105.0, false),
        (&every, Some(100.0), 165.0, true),
        (&every, Some(100.0), 99.0, false),
        (&every, Some(1e9), 100.0, true),
        (&by_clock, Some(100.0), 100.9, false),
        (&by_clock, Some(100.9), 100.0, false),
        (&by_clock, Some(100.0), 160.0, true),
    ] {
        assert_eq!(is_new(timing, last, due), expected, "{timing:?} {last:?} {due}");
    }
}

#[test]
fn a_return_has_the_result_or_the_error_of_the_job() {
    let options = map! {"function" => "test.arg", "args" => list![1], "kwargs" => map! {"a" => 2}};
    let run = Run { job: Job::read("often", &options.into()).unwrap(), jid: Jid::new() };
    let reported = |outcome: Result<Value, String>| {
        let load = return_of("m_master", &run, outcome);
        let mut event = run.complete(load, &brine_clock::now(), &[], |_, _| {}).unwrap();
        event.shift_remove("pid");
        event
    };
    let expected = map! {
        "cmd" => "_return", "id" => "m_master", "fun" => "test.arg", "fun_args" => list![1, map! {"a" => 2}],
        "schedule" => "often", "jid" => "req", "return" => "done", "retcode" => 0, "success" => true,
    };
    assert_eq!(reported(Ok("done".into())), expected);
    let failed = reported(Err("why".into()));
    let fields = ["return", "retcode", "success"].map(|name| failed.get(name).cloned().unwrap());
    assert_eq!(fields, ["why".into(), FAILED.into(), false.into()]);
}
