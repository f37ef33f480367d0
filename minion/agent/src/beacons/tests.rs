use brine_value::list;

use super::*;
use crate::testing;

/// Returns the error of a configuration.
pub fn wrong(name: &str, config: &Value) -> String {
    check(name, config).unwrap_err()
}

/// Returns the data of a beacon's first poll on this host.
pub fn poll_once(name: &str, config: &Value) -> Result<Vec<Map>, String> {
    let (_, mut beacon) = start(name, config, None)?;
    beacon.poll(&PollContext { context: &testing::context(&[]), now: &brine_clock::now() })
}

fn poller(configured: Map, pillar: Map) -> Poller {
    let minion = testing::minion(&[]);
    minion.beacons.replace(configured);
    *minion.pillar.write() = Arc::new(map! {"beacons" => pillar});
    Poller::new(&minion)
}

/// Returns the tags of the events that are due this many seconds after the start.
fn tags(poller: &mut Poller, seconds: f64) -> Vec<String> {
    let events = poller.poll(Duration::from_secs_f64(seconds), Duration::from_millis(500), &brine_clock::now());
    let mut tags: Vec<String> = events.iter().map(|event| event.get("tag").unwrap().to_string()).collect();
    tags.sort();
    tags
}

/// A process of this name never runs.
fn stopped(more: Map) -> Value {
    list![map! {"processes" => map! {"no-such" => "stopped"}}, more]
}

macro_rules! ps {
    ($($option:literal => $value:expr),*) => { stopped(map! {"beacon_module" => "ps" $(, $option => $value)*}) };
}

#[test]
fn every_beacon_is_documented() {
    assert!(KINDS.is_sorted_by_key(|kind| kind.name));
    for kind in KINDS {
        let own = match &kind.options {
            Options::Named(own) => *own,
            Options::Keyed(key) => std::slice::from_ref(key),
        };
        let docs = own.iter().chain(kind.fields).map(|entry| entry.doc);
        assert!(docs.chain([kind.doc]).all(|doc| doc.ends_with('.')), "{}", kind.name);
        assert!(!kind.fields.is_empty(), "{}", kind.name);
    }
}

#[test]
fn beacons_are_polled_at_their_interval() {
    let configured = map! {"ps" => stopped(map! {}), "slow" => ps!("interval" => 3), "off" => ps!("enabled" => false)};
    let mut poller = poller(configured, map! {});
    let (fast, slow) = ("salt/beacon/test-minion/ps/".to_owned(), "salt/beacon/test-minion/slow/".to_owned());
    for (seconds, expected) in [
        (0.0, vec![&fast]),
        (1.0, vec![&fast]),
        // Slightly early counts; otherwise the poll would be late by a whole loop.
        (2.99, vec![&fast, &slow]),
        (4.0, vec![&fast]),
        (6.01, vec![&fast, &slow]),
        // Missed polls are not made up for.
        (20.0, vec![&fast, &slow]),
        (21.0, vec![&fast]),
        (23.0, vec![&fast, &slow]),
    ] {
        assert_eq!(tags(&mut poller, seconds).iter().collect::<Vec<_>>(), expected, "{seconds}");
    }
}

#[test]
fn events_contain_the_data_of_the_beacon_and_the_minion_id() {
    let mut poller = poller(map! {"mine" => ps!()}, map! {});
    let events = poller.poll(Duration::ZERO, Duration::ZERO, &brine_clock::now());
    let data = map! {"no-such" => "Stopped", "id" => "test-minion"};
    let event = map! {"tag" => "salt/beacon/test-minion/mine/", "data" => data, "beacon_name" => "ps"};
    assert_eq!(events, [Value::from(event)]);
}

#[test]
fn an_invalid_beacon_does_not_affect_the_others() {
    let configured = map! {"none" => list![], "load" => 5, "ps" => stopped(map! {})};
    let mut poller = poller(configured, map! {"of_pillar" => ps!()});
    let expected = ["salt/beacon/test-minion/of_pillar/", "salt/beacon/test-minion/ps/"];
    assert_eq!(tags(&mut poller, 0.0), expected);
    let error = wrong("none", &list![]);
    assert!(error.starts_with("unknown beacon 'none': expected one of "), "{error}");
}

#[test]
fn a_repeated_error_is_reported_once() {
    let mut poller = poller(map! {"log" => list![map! {"file" => "/nonexistent/log"}]}, map! {});
    let events = poller.poll(Duration::ZERO, Duration::ZERO, &brine_clock::now());
    let error = "reading /nonexistent/log failed: No such file or directory (os error 2)";
    let data = map! {"id" => "test-minion", "_error" => error};
    let event =
        map! {"tag" => "salt/beacon/test-minion/log/", "data" => data, "beacon_name" => "log", "error" => error};
    assert_eq!(events, [Value::from(event)]);
    assert!(tags(&mut poller, 1.0).is_empty());
}

#[test]
fn beacons_can_be_disabled_run_once_and_pause_during_state_runs() {
    let mut all_off = poller(map! {"ps" => stopped(map! {}), "enabled" => false}, map! {});
    assert!(tags(&mut all_off, 0.0).is_empty());
    let mut once = poller(map! {"ps" => stopped(map! {"run_once" => true})}, map! {});
    assert_eq!((tags(&mut once, 0.0).len(), tags(&mut once, 1.0).len()), (1, 0));
    let mut of_pillar = poller(map! {}, map! {"ps" => stopped(map! {"run_once" => true})});
    assert_eq!((tags(&mut of_pillar, 0.0).len(), tags(&mut of_pillar, 1.0).len()), (1, 0));
    let mut resting = poller(map! {"ps" => stopped(map! {"disable_during_state_run" => true})}, map! {});
    let job = Arc::new(Job::local(&Jid::new(), "state.apply", &Args::default()));
    resting.context.minion.jobs.lock().insert("1".into(), job);
    assert!(tags(&mut resting, 0.0).is_empty());
    resting.context.minion.jobs.lock().clear();
    assert_eq!(tags(&mut resting, 1.0).len(), 1);
}
