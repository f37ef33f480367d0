use brine_bus::store::Store;
use brine_runtime::executors::MayBlock;
use brine_value::Map;
use tokio::runtime::Handle;

use super::*;

const LEASE: Duration = Duration::from_millis(200);

fn state(directory: &std::path::Path) -> State {
    let (store, _) = Store::open(&directory.join("store"), 1 << 20).unwrap();
    let store = store.blocking(&MayBlock::on_dedicated_thread(Handle::current()));
    std::thread::spawn(move || State::open("m1", LEASE, store).unwrap()).join().unwrap()
}

#[tokio::test]
async fn the_leader_reacts_and_others_wait_for_it() {
    let directory = tempfile::tempdir().unwrap();
    let state = state(directory.path());
    state.servers_answered();
    assert_eq!(state.decide("m2", 7), None);
    state.set_lead(Some(Instant::now() + Duration::from_secs(60)));
    assert_eq!(state.decide("m2", 7), Some(Admission::ThisMaster { term: 1 }));
    state.set_lead(Some(Instant::now() + Duration::from_secs(60)));
    assert_eq!(state.decide("m2", 8), Some(Admission::ThisMaster { term: 1 }), "the lease was renewed");
    state.servers_answered();
    state.set_lead(None);
    state.with_positions(|positions| positions.handled_elsewhere(&[("m2".into(), 8)]));
    assert_eq!((state.decide("m2", 8), state.decide("m2", 9)), (Some(Admission::OtherMaster), None));
    state.set_lead(Some(Instant::now() + Duration::from_secs(60)));
    assert_eq!(state.decide("m2", 9), Some(Admission::ThisMaster { term: 2 }));
}

#[tokio::test(start_paused = true)]
async fn without_the_servers_each_member_reacts_to_its_own_events() {
    let directory = tempfile::tempdir().unwrap();
    let state = state(directory.path());
    state.servers_answered();
    state.set_forwarded(4);
    tokio::time::sleep(LEASE * 3).await;
    assert!(state.is_isolated());
    assert_eq!(state.decide("m2", 1), Some(Admission::OtherMaster));
    assert_eq!(state.decide("m1", 4), Some(Admission::OtherMaster));
    assert_eq!(state.decide("m1", 5), Some(Admission::ThisMaster { term: 0 }));
    assert_eq!(state.handled_in_isolation(), 5);
    // The last leader also handles the events of other members that it has received.
    state.servers_answered();
    state.set_lead(Some(Instant::now() + LEASE));
    tokio::time::sleep(LEASE * 3).await;
    state.set_lead(None);
    assert_eq!(state.decide("m2", 1), Some(Admission::ThisMaster { term: 1 }));
}

#[tokio::test]
async fn the_gate_opens_when_the_decision_is_known() {
    let directory = tempfile::tempdir().unwrap();
    let state = std::sync::Arc::new(state(directory.path()));
    state.servers_answered();
    let frame = Event::from_map("t", &Map::new()).unwrap().frame().clone();
    let event = Event::from_member(frame, "m2", 3).unwrap().stamped(9, "now").unwrap();
    let waiting = std::sync::Arc::clone(&state);
    let waiting = tokio::spawn(async move { waiting.admit(&event).await });
    tokio::task::yield_now().await;
    assert!(!waiting.is_finished());
    state.with_positions(|positions| positions.handled_elsewhere(&[("m2".into(), 3)]));
    assert_eq!(waiting.await.unwrap(), Admission::OtherMaster);
}

#[tokio::test]
async fn positions_survive_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let first = state(directory.path());
    first.with_positions(|positions| {
        positions.note_incarnation("m2", "i", false);
        positions.received("m2", 4, 10);
        positions.handled_elsewhere(&[("m2".into(), 3)]);
    });
    first.store_positions(first.reached(77)).await.unwrap();
    let incarnation = first.incarnation().to_owned();
    drop(first);
    let again = state(directory.path());
    assert_eq!((again.stream_position(), again.incarnation()), (77, incarnation.as_str()));
    assert!(again.with_positions(|positions| positions.is_handled("m2", 3) && !positions.is_new("m2", 4)));
}
