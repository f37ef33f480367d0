use brine_bus::{BusLimits, EventSockets};
use brine_value::{Value, map};
use tokio_util::sync::CancellationToken;

use super::*;

/// Answers every query, those of others first.
async fn answer(bus: Bus) {
    let mut questions = bus.subscribe(Filter::prefix("ask"), Start::Now).unwrap();
    while let Some(event) = questions.recv().await {
        let own = event.data().get(QUESTION).cloned().unwrap_or_default();
        for (question, n) in [(Value::from("another"), 1), (own, 2)] {
            bus.fire("answer", &map! {QUESTION => question, "n" => n}).await.unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replies_reach_their_query_in_and_across_processes() {
    let directory = tempfile::tempdir().unwrap();
    let bus = Bus::in_memory(BusLimits::default());
    let names = SocketNames::minion("web1");
    let sockets = EventSockets::bind(directory.path(), &names).await.unwrap();
    let shutdown = CancellationToken::new();
    tokio::spawn(sockets.serve(bus.clone(), shutdown.clone()));
    tokio::spawn(answer(bus.clone()));
    for local in [
        LocalBus::Own { bus: bus.clone(), runtime: Handle::current() },
        LocalBus::Sockets { directory: directory.path().to_owned(), names: names.clone() },
    ] {
        let asked = tokio::task::spawn_blocking(move || {
            local.fire("mine", &map! {"a" => 1}).unwrap();
            let none = local.ask("nobody", map! {}, "answer", Duration::from_millis(1)).unwrap();
            assert_eq!(none, None);
            local.ask("ask", map! {}, "answer", Duration::from_secs(60)).unwrap().unwrap()
        });
        assert_eq!(asked.await.unwrap().get("n"), Some(&2.into()));
    }
    let nobody = LocalBus::Sockets { directory: directory.path().join("none"), names };
    let fired = tokio::task::spawn_blocking(move || nobody.fire("mine", &map! {})).await.unwrap();
    assert!(matches!(fired, Err(LocalBusError::Unreachable(_))), "{fired:?}");
    shutdown.cancel();
}
