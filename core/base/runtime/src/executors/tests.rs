use std::sync::mpsc;

use super::*;

#[tokio::test]
async fn work_runs_and_returns_its_result() {
    let executor = Executor::new("test", 2, 8);
    assert_eq!(executor.run(|_| 5).await, Ok(5));
    let pending = executor.start(|_| std::thread::current().name().map(str::to_owned)).unwrap();
    assert_eq!(pending.result().await, Ok(Some("test".to_owned())));
}

#[tokio::test]
async fn work_can_use_the_runtime() {
    let executor = Executor::new("test", 1, 8);
    let slept = executor.run(|may_block| may_block.wait(tokio::time::sleep(Duration::ZERO)));
    assert_eq!(slept.await, Ok(()));
}

#[tokio::test]
async fn a_panic_is_an_error_and_the_thread_continues() {
    let executor = Executor::new("test", 1, 8);
    assert_eq!(executor.run(|_| panic!("a defect")).await, Err::<(), _>(ExecutorError::Panicked("test")));
    assert_eq!(executor.run(|_| 1).await, Ok(1));
}

#[tokio::test]
async fn threads_and_queue_are_bounded() {
    let executor = Executor::new("test", 1, 1);
    let (release, held) = mpsc::channel::<()>();
    let first = executor.start(move |_| held.recv().is_ok()).unwrap();
    let second = executor.start(|_| 2).unwrap();
    assert_eq!(executor.start(|_| 3).map(|_| ()).unwrap_err(), ExecutorError::Full("test"));
    let late = tokio::time::timeout(Duration::from_millis(10), executor.run(|_| 4)).await;
    assert!(late.is_err());
    release.send(()).unwrap();
    assert_eq!((first.result().await, second.result().await), (Ok(true), Ok(2)));
    assert_eq!(executor.run(|_| 5).await, Ok(5));
}

#[tokio::test]
async fn a_stopped_executor_refuses_and_drops() {
    let executor = Executor::new("test", 1, 8);
    let (release, held) = mpsc::channel::<()>();
    let (begun, begins) = oneshot::channel();
    let running = executor.start(move |_| {
        begun.send(()).unwrap();
        held.recv().is_ok()
    });
    begins.await.unwrap();
    let (running, waiting) = (running.unwrap(), executor.start(|_| 2).unwrap());
    executor.stop();
    assert_eq!(waiting.result().await, Err(ExecutorError::Stopped("test")));
    assert_eq!(executor.run(|_| 3).await, Err(ExecutorError::Stopped("test")));
    assert_eq!(executor.start(|_| 4).map(|_| ()).unwrap_err(), ExecutorError::Stopped("test"));
    release.send(()).unwrap();
    assert_eq!(running.result().await, Ok(true));
}

#[tokio::test]
async fn a_blocking_api_is_reachable_through_its_executor() {
    let api = Blocking::new(7, Executor::new("test", 1, 1));
    assert_eq!(api.run(|number| number + 1).await, Ok(8));
    assert_eq!(api.get(&MayBlock::on_dedicated_thread(Handle::current())), &7);
}
