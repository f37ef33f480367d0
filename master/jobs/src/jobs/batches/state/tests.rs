use std::time::Duration;

use brine_job::{Action, Batch, Times};
use tokio::time::Instant;

use super::*;

fn state(size: usize, failhard: bool) -> State {
    let request = PublishRequest::new("*", "test.ping", "root");
    let batch = BatchRequest { request, size: size.to_string(), failhard, wait: 0.0, timeout: 5 };
    State::new(&Jid::new(), batch, ["a", "b", "c"].map(str::to_owned).to_vec(), size)
}

fn driver(state: &State) -> Driver {
    let (jid, minions) = (state.jid.clone(), state.pending.iter().cloned().collect());
    let batch = Batch { size: state.size, wait: Duration::ZERO, failhard: state.failhard };
    let times =
        Times { timeout: Duration::from_secs(5), gather: Duration::from_secs(10), find_job: "saltutil.find_job" };
    Driver::in_batches(jid, "root", minions, batch, times, Instant::now())
}

/// Publishes the next part to all of its minions.
fn publish(driver: &mut Driver) {
    let Action::Publish(minions) = driver.next(Instant::now()) else { panic!("no part is due") };
    driver.published(&minions, Instant::now());
}

#[test]
fn the_summary_counts_the_minions_of_the_driver() {
    let mut state = state(2, false);
    let mut driver = driver(&state);
    publish(&mut driver);
    driver.returned("b", &map! {"return" => true, "retcode" => 0}, Instant::now());
    state.minion_returned(false);
    publish(&mut driver);
    driver.returned("a", &map! {"retcode" => 1}, Instant::now());
    state.minions_failed(1);
    state.record(&driver);
    let summary = state.summary();
    for (name, is) in [("total", 3), ("completed", 2), ("active", 1), ("pending", 0), ("failed", 1)] {
        assert_eq!(summary.get(name), Some(&is.into()), "{name}");
    }
    assert_eq!(state.halted, None);
}

#[test]
fn the_event_of_a_halted_batch_names_reason_and_abandoned_minions() {
    let mut state = state(1, true);
    let mut driver = driver(&state);
    publish(&mut driver);
    driver.returned("a", &map! {"return" => false, "retcode" => 1}, Instant::now());
    state.record(&driver);
    let (word, body) = state.event(Stage::End);
    assert_eq!((word, body.get("reason")), ("halted", Some(&"failhard".into())));
    assert_eq!(body.get("abandoned_pending").map(ToString::to_string), Some("['b', 'c']".into()));
}

#[test]
fn a_stored_state_is_read_back() {
    let mut state = state(2, true);
    let mut driver = driver(&state);
    publish(&mut driver);
    state.record(&driver);
    state.minions_failed(1);
    assert_eq!(State::from_map(&state.to_map()), Some(state));
    assert_eq!(State::from_map(&map! {"jid" => "x"}), None);
}
