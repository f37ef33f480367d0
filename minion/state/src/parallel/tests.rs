use brine_function::Args;

use super::*;
use crate::{Options, Settings, StateRun, run, testing};

#[test]
fn states_run_in_parallel_up_to_a_limit() {
    // Each state waits for a file of the other: in sequence they would never end.
    let directory = tempfile::tempdir().unwrap();
    let meet = |mine: &str, other: &str| {
        let path = |name: &str| directory.path().join(name).display().to_string();
        format!(
            "{mine}: {{cmd.run: [name: 'touch {}; until test -e {}; do sleep 0.01; done', parallel: True, timeout: 60]}}\n",
            path(mine),
            path(other)
        )
    };
    let sls = meet("a", "b") + &meet("b", "a") + "c: {test.nop: [require: [cmd: a]]}\n";
    let context = testing::context(&[("t.sls", &sls)]);
    let report = context.call("state.apply", Args::positional(["t".into()])).unwrap();
    let results: Vec<_> = report
        .as_map()
        .unwrap()
        .values()
        .map(|one| (one.get("result").cloned(), one.get("__run_num__").cloned()))
        .collect();
    assert_eq!(results, [0, 1, 2].map(|number| (Some(true.into()), Some(Value::from(number)))));

    let nops = "nops: {test.nop: [parallel: True, names: [a, b, c, d, e]]}\n";
    let context = testing::context(&[("t.sls", nops)]);
    let prepared = StateRun::new(&context, Options::default()).unwrap();
    let low = prepared.compile(prepared.sls(vec!["t".into()]).unwrap()).unwrap();
    let report = run(&context, &low, &Settings { max_parallel: 2, ..Settings::default() }).unwrap();
    assert!(
        report.len() == 5 && report.values().all(|one| one.get("__parallel__") == Some(&true.into())),
        "{report:?}"
    );
}

/// As in Salt, a parallel state that waits for another one does not hold up the states behind it, and gets the number of
/// its start.
#[test]
fn waiting_parallel_states_do_not_hold_up_others() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).display().to_string();
    let until = |name: &str| format!("until test -e {}; do sleep 0.01; done", path(name));
    // `b` ends after `d`, and `a` after `e`.
    let sls = format!(
        "a: {{cmd.run: [name: '{}', parallel: True, timeout: 60]}}\n\
         b: {{cmd.run: [name: '{}', parallel: True, timeout: 60, require: [a]]}}\n\
         c: {{test.nop: [parallel: True, require: [b]]}}\n\
         d: {{cmd.run: [name: 'touch {}', parallel: True, require: [a]]}}\n\
         e: {{cmd.run: [name: 'touch {}']}}\n\
         f: {{test.nop: [require: [c]]}}\n\
         x: {{test.fail_without_changes: [parallel: True]}}\n\
         g: {{test.nop: [parallel: True, require: [x]]}}\n",
        until("e"),
        until("d"),
        path("d"),
        path("e"),
    );
    let context = testing::context(&[("t.sls", &sls)]);
    let report = context.call("state.apply", Args::positional(["t".into()])).unwrap();
    let results: Vec<String> = report
        .as_map()
        .unwrap()
        .values()
        .map(|one| {
            let word = |key: &str| one.get(key).map(ToString::to_string).unwrap_or_default();
            format!("{} {} {}", word("__run_num__"), word("__id__"), word("result"))
        })
        .collect();
    let expected = ["0 a True", "1 e True", "2 b True", "3 d True", "4 c True", "5 f True", "6 x False", "7 g False"];
    assert_eq!(results, expected);
}

#[test]
fn fields_keep_the_order_of_their_creation() {
    let sls = "tried: {test.fail_without_changes: [parallel: True, retry: {attempts: 1, interval: 0}]}\n\
               checked: {test.nop: [parallel: True, check_cmd: ['true']]}\n\
               skipped: {test.nop: [parallel: True, unless: 'true']}\n";
    let context = testing::context(&[("t.sls", sls)]);
    let report = context.call("state.apply", Args::positional(["t".into()])).unwrap();
    let report = |tag: &str| {
        let keys = report.get(tag).unwrap().as_map().unwrap().keys().map(ToString::to_string);
        keys.collect::<Vec<_>>().join(" ")
    };
    for (tag, keys) in [
        (
            "test_|-tried_|-tried_|-fail_without_changes",
            "name result changes comment __sls__ __run_num__ start_time duration __id__",
        ),
        (
            "test_|-checked_|-checked_|-nop",
            "name result changes comment __sls__ __id__ __run_num__ start_time duration __parallel__",
        ),
        (
            "test_|-skipped_|-skipped_|-nop",
            "result name changes comment __sls__ __id__ skip_watch __run_num__ start_time duration",
        ),
    ] {
        assert_eq!(report(tag), keys, "{tag}");
    }
}
