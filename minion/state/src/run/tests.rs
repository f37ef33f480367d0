use brine_function::Args;

use super::*;
use crate::testing::{self, Alone};

#[test]
fn results_of_states_are_published_to_the_master() {
    let sls = "a: {test.nop: [fire_event: True]}\nb: {test.nop: [fire_event: my/tag]}\nc: {test.nop: [name: z]}\nd: test.nop\n";
    for (keyword, masterless, tags) in [
        (map! {}, false, &["salt/state_result/J/test-minion/a", "salt/state_result/J/test-minion/my/tag"][..]),
        (
            map! {"state_events" => true},
            false,
            &[
                "salt/state_result/J/test-minion/a",
                "salt/state_result/J/test-minion/my/tag",
                "salt/job/J/prog/test-minion/2",
                "salt/job/J/prog/test-minion/3",
            ],
        ),
        (map! {"state_events" => true}, true, &[]),
    ] {
        let master = std::sync::Arc::new(Alone { masterless, ..Alone::default() });
        let context = testing::context_of(testing::minion_with(&[("t.sls", sls)], std::sync::Arc::clone(&master) as _));
        context.call("state.apply", Args { positional: vec!["t".into()], keyword }).unwrap();
        let events = master.fired.lock();
        let report: Vec<String> = events.iter().map(|event| event.tag.replace(&context.job.jid, "J")).collect();
        assert_eq!(report, tags);
        for event in events.iter() {
            assert_eq!(event.extra_fields, Some(map! {"jid" => &context.job.jid}), "{}", event.tag);
            let total = event.tag.starts_with("salt/job/").then(|| Value::from(4));
            assert_eq!(event.data.get("len"), total.as_ref(), "{}", event.tag);
            assert_eq!(event.data.get("ret").and_then(|ret| ret.get("result")), Some(&true.into()));
        }
    }
}

#[test]
fn only_states_that_can_run_now_are_aggregated() {
    let sls = "a: pkg.installed\nb: pkg.installed\nnot_me: {pkg.installed: [aggregate: False]}\n\
               asks: {pkg.installed: [unless: 'true']}\nwaits: {pkg.installed: [require: [test: t]]}\nt: test.nop\n";
    let context = testing::context(&[("t.sls", sls)]);
    let run = crate::StateRun::new(&context, crate::Options::default()).unwrap();
    let low = run.compile(run.sls(vec!["t".into()]).unwrap()).unwrap();
    for (aggregate, pkgs) in [
        (Value::Bool(true), Some(brine_value::list!["a", "b"])),
        (brine_value::list!["pkg"], Some(brine_value::list!["a", "b"])),
        (brine_value::list!["file"], None),
        (Value::Bool(false), None),
    ] {
        let settings = Settings { aggregate, ..Settings::default() };
        let index = low.chunks.iter().position(|chunk| chunk.id == "a").unwrap();
        let merged = std::thread::scope(|scope| {
            let caller = Caller { context: &context, settings: &settings, chunks: &low.chunks, number: 0 };
            let mut run = Run {
                low: &low,
                caller,
                dry_runs: HashMap::new(),
                done: IndexMap::new(),
                more: Map::new(),
                parallel: ParallelStates::new(scope, 0),
                waiting: Vec::new(),
                aggregated: HashSet::new(),
                is_continued_elsewhere: false,
            };
            let merged = run.aggregated_chunk(index);
            assert_eq!(run.aggregated_chunk(index), None, "once is enough");
            merged
        });
        assert_eq!(merged.and_then(|chunk| chunk.args.get("pkgs").cloned()), pkgs);
    }
}
