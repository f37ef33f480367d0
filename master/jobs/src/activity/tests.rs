use brine_bus::BusLimits;
use brine_value::{Map, list, map};
use tokio::runtime::Handle;

use super::*;

async fn counted(events: &[(&str, Map)]) -> (Activity, Bus, u64) {
    let bus = Bus::in_memory(BusLimits::default());
    for (tag, data) in events {
        bus.fire(tag, data).await.unwrap();
    }
    let now = u64::try_from(jiff::Timestamp::now().as_microsecond()).unwrap();
    (Activity::default(), bus, now)
}

fn read(activity: &Activity, bus: &Bus, now: u64) -> Tally {
    let thread = MayBlock::on_dedicated_thread(Handle::current());
    let mut state = activity.read(&thread, bus, now).unwrap();
    assert!(state.is_complete);
    std::mem::take(&mut state.tally)
}

fn state(result: brine_value::Value, changes: Map) -> Map {
    map! {"result" => result, "changes" => changes, "comment" => "no such file", "__id__" => "motd", "__sls__" => "site"}
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_are_counted_by_outcome() {
    let jid = "20261120235852025555";
    let tag = |rest: &str| format!("salt/job/{jid}/{rest}");
    let new = map! {"fun" => "test.ping", "tgt" => "web*", "minions" => list!["web1", "web2", "web3"]};
    let good = map! {"fun" => "test.ping", "return" => true, "retcode" => 0};
    let bad = map! {"fun" => "test.ping", "return" => "no", "retcode" => 1};
    let (activity, bus, now) = counted(&[
        (&tag("new"), new),
        (&tag("ret/web1"), good),
        (&tag("ret/web2"), bad),
        ("salt/run/20261120235852025556/ret", map! {"fun" => "runner.state.orchestrate", "success" => false}),
        ("salt/run/20261120235852025557/ret", map! {"fun" => "runner.jobs.active", "success" => true}),
    ])
    .await;
    let tally = read(&activity, &bus, now);
    let job = &tally.jobs()[jid];
    assert_eq!((job.asked, job.done, job.failed, job.missing()), (3, 1, 1, 1));
    assert_eq!((job.function.as_str(), job.target.as_str()), ("test.ping", "web*"));
    assert_eq!(tally.jobs().len(), 2);
    assert!(tally.minion("web1").unwrap().seen > 0 && tally.minion("web3").is_none());
    assert_eq!(tally.minutes().map(|minute| minute.events).sum::<u64>(), 5);
    // Only later events are counted by the next view.
    assert!(read(&activity, &bus, now).jobs().is_empty());
    let next = map! {"fun" => "test.ping", "return" => true};
    bus.fire(&tag("ret/web3"), &next).await.unwrap();
    assert_eq!(read(&activity, &bus, now).jobs()[jid].done, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn highstates_and_failed_states_are_known_by_minion() {
    let key = |name: &str| format!("file_|-{name}_|-/etc/motd_|-managed");
    let changed = map! {"diff" => "-a"};
    let highstate = map! {
        key("motd") => state(false.into(), Map::new()),
        key("a") => state(true.into(), changed.clone()),
        key("b") => state(true.into(), Map::new()),
    };
    let drift = map! {key("a") => state(brine_value::Value::Nil, changed)};
    let of = |fun: &str, args: brine_value::Value, value: Map, code: i64| map! {"fun" => fun, "fun_args" => args, "return" => value, "retcode" => code};
    let test = map! {"__kwarg__" => true, "test" => true};
    let (activity, bus, now) = counted(&[
        ("salt/job/20261120235852000001/ret/web1", of("state.apply", list![], highstate.clone(), 2)),
        ("salt/job/20261120235852000002/ret/web2", of("state.highstate", list![test], drift, 0)),
        ("salt/job/20261120235852000003/ret/web3", of("state.apply", list!["site"], highstate, 2)),
    ])
    .await;
    let tally = read(&activity, &bus, now);
    let run = tally.minion("web1").unwrap().highstate.clone().unwrap();
    assert_eq!((run.states, run.failed, run.changed, run.pending, run.is_test), (3, 1, 1, 0, false));
    let run = tally.minion("web2").unwrap().highstate.clone().unwrap();
    assert_eq!((run.pending, run.is_test, run.is_good), (1, true, true));
    assert_eq!(tally.minion("web3").unwrap().highstate, None);
    let failed = tally.failed_states();
    assert_eq!((failed.len(), failed[0].minions), (1, 2));
    assert_eq!((failed[0].id.as_str(), failed[0].function.as_str()), ("motd", "file.managed"));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_older_than_a_day_is_forgotten() {
    let jid = "salt/job/20261120235852000001/ret/web1";
    let (activity, bus, now) = counted(&[(jid, map! {"fun" => "test.ping", "return" => true})]).await;
    let tally = read(&activity, &bus, now + 2 * DAY);
    assert!(tally.jobs().is_empty() && tally.minutes().next().is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn events_that_minions_forge_are_not_jobs() {
    let id = "web1".parse().unwrap();
    let forged =
        brine_event::Event::from_minion("salt/job/20261120235852000001/new", map! {"fun" => "x"}, &id).unwrap();
    let bus = Bus::in_memory(BusLimits::default());
    bus.fire_event(forged).await.unwrap();
    assert!(read(&Activity::default(), &bus, 0).jobs().is_empty());
}

#[test]
fn what_is_kept_is_bounded() {
    let mut tally = Tally::default();
    let event = |tag: &str, data: Map| {
        let event = brine_event::Event::from_map(tag, &data).unwrap();
        event.stamped(1, "2026-11-20T23:58:52.000000+00:00").unwrap()
    };
    for number in 0..25_000 {
        let good = map! {"fun" => "mine.update", "return" => true};
        tally.count(&event(&format!("salt/job/202611202358520{number:05}/ret/web1"), good));
    }
    assert_eq!(tally.jobs().len(), 10_000);
    for number in 0..25_000 {
        let bad = map! {"fun" => "test.false", "return" => false, "retcode" => 1};
        tally.count(&event(&format!("salt/job/202611202359520{number:05}/ret/web1"), bad));
    }
    assert_eq!(tally.jobs().len(), 20_000);
    assert!(tally.jobs().values().all(|job| job.failed == 1));
}
