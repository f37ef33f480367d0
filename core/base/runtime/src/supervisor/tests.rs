use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use parking_lot::Mutex;

use super::*;

#[tokio::test]
async fn tasks_stop_in_reverse_order_and_late_ones_are_aborted() {
    let order = Arc::new(Mutex::new(Vec::new()));
    let mut supervisor = Supervisor::new();
    for name in ["first", "second"] {
        let order = Arc::clone(&order);
        supervisor.start(name, |shutdown| async move {
            shutdown.cancelled().await;
            order.lock().push(name);
        });
    }
    supervisor.start("deaf", |_| std::future::pending());
    let failed = supervisor.failed();
    assert_eq!(supervisor.stop(Duration::from_millis(50)).await, ["deaf"]);
    tokio::task::yield_now().await;
    assert_eq!(*order.lock(), ["second", "first"]);
    assert!(!failed.is_cancelled());
}

#[tokio::test]
async fn a_task_that_panics_is_restarted() {
    let runs = Arc::new(AtomicU32::new(0));
    let (counted, (third, mut reached)) = (Arc::clone(&runs), tokio::sync::mpsc::channel(1));
    let mut supervisor = Supervisor::new();
    supervisor.start_restarting("shaky", move |shutdown| {
        let (runs, third) = (Arc::clone(&counted), third.clone());
        async move {
            match runs.fetch_add(1, Ordering::Relaxed) {
                0 => panic!("a defect"),
                // Ending by itself is a failure, too.
                1 => {}
                _ => {
                    _ = third.send(()).await;
                    shutdown.cancelled().await;
                }
            }
        }
    });
    reached.recv().await.unwrap();
    assert_eq!(supervisor.stop(Duration::from_secs(1)).await, [""; 0]);
    assert_eq!(runs.load(Ordering::Relaxed), 3);
}

#[tokio::test]
async fn background_tasks_end_with_their_owner() {
    let background = Background::default();
    let (ended, end) = tokio::sync::oneshot::channel::<()>();
    background.spawn("defect", async { panic!("a defect") });
    background.spawn("waiting", async move {
        let _ended = ended;
        std::future::pending::<()>().await;
    });
    background.stop(Duration::from_secs(1)).await;
    assert!(end.await.is_err());
}

#[tokio::test]
async fn the_failure_of_a_task_that_cannot_be_restarted_is_reported() {
    let mut supervisor = Supervisor::new();
    supervisor.start("socket", |_| async { panic!("a defect") });
    supervisor.failed().cancelled().await;
}
