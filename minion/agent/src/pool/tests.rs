use std::sync::Arc;
use std::sync::mpsc;

use tokio::runtime::Handle;

use super::*;

fn pool(limit: i64) -> Arc<JobPool> {
    Arc::new(JobPool::new(&MinionConfig { process_count_max: limit, ..MinionConfig::default() }))
}

#[tokio::test]
async fn jobs_beyond_the_limit_wait_and_control_functions_do_not() {
    let pool = pool(1);
    let (release, held) = mpsc::channel::<()>();
    let first = pool.start("test.sleep", move || held.recv().is_ok()).unwrap();
    let second = pool.start("test.ping", || 6).unwrap().result();
    tokio::pin!(second);
    assert!(futures::poll!(&mut second).is_pending());
    assert_eq!(pool.start("saltutil.kill_job", || 5).unwrap().result().await.unwrap(), 5);
    assert!(futures::poll!(&mut second).is_pending());
    release.send(()).unwrap();
    assert!(first.result().await.unwrap());
    assert_eq!(second.await.unwrap(), 6);
}

#[tokio::test]
async fn too_many_waiting_jobs_are_refused() {
    let pool = pool(1);
    let (release, held) = mpsc::channel::<()>();
    let held = std::sync::Mutex::new(held);
    let taken = pool.start("a", move || held.lock().unwrap().recv().is_ok()).unwrap();
    let mut waiting = Vec::new();
    let refused = loop {
        match pool.start("a", || ()) {
            Ok(job) => waiting.push(job),
            Err(error) => break error,
        }
    };
    assert!(matches!(refused, PoolError::Full(1)));
    assert_eq!(waiting.len(), 4096);
    release.send(()).unwrap();
    assert!(taken.result().await.unwrap());
    for job in waiting {
        job.result().await.unwrap();
    }
}

#[tokio::test]
async fn waiting_jobs_are_refused_at_shutdown() {
    let pool = pool(1);
    let (release, held) = mpsc::channel::<()>();
    let (begun, begins) = tokio::sync::oneshot::channel();
    let taken = pool.start("a", move || {
        begun.send(()).unwrap();
        held.recv().is_ok()
    });
    begins.await.unwrap();
    let waiting = pool.start("a", || ()).unwrap();
    assert_eq!(pool.finish(Duration::ZERO).await, 0);
    assert!(matches!(waiting.result().await, Err(PoolError::Stopping)));
    assert!(matches!(pool.start("a", || ()).map(|_| ()), Err(PoolError::Stopping)));
    release.send(()).unwrap();
    assert!(taken.unwrap().result().await.unwrap());
}

#[tokio::test]
async fn a_panic_ends_only_its_job() {
    let pool = pool(1);
    let error = pool.start("a", || -> u8 { panic!("no {}", 1) }).unwrap().result().await.unwrap_err();
    assert_eq!(error.to_string(), "the function panicked: no 1");
    assert_eq!(pool.start("a", || 7).unwrap().result().await.unwrap(), 7);
}

#[tokio::test]
async fn more_waiting_calls_than_blocking_threads_do_not_deadlock() {
    const JOBS: usize = 600;
    let pool = pool(-1);
    let (sender, mut all) = tokio::sync::mpsc::channel(JOBS);
    for n in 0..JOBS {
        let (running, sender) = (Arc::clone(&pool), sender.clone());
        pool.spawn(async move {
            let waits = || Handle::current().block_on(tokio::task::spawn_blocking(|| 1)).unwrap();
            sender.send(running.start("a", waits).unwrap().result().await.unwrap() + n).await.unwrap();
        });
    }
    drop(sender);
    let mut count = 0;
    while all.recv().await.is_some() {
        count += 1;
    }
    assert_eq!(count, JOBS);
    assert_eq!(pool.finish(Duration::from_secs(10)).await, 0);
}
