use super::*;

/// The work items that a test's handler has run, by key and number.
type Log = Arc<Mutex<Vec<(u64, u64)>>>;

/// Records work items. Those of key 0 block their threads until the gate is opened, regardless of cancellation.
#[derive(Clone, Default)]
struct Recorder {
    done: Log,
    given_up: Log,
    gate: Arc<(Mutex<usize>, Condvar)>,
    /// Whether work items of key 0 end when they are cancelled.
    is_cooperative: bool,
}

impl Recorder {
    fn open(&self, count: usize) {
        *self.gate.0.lock() += count;
        self.gate.1.notify_all();
    }

    fn pass_gate(&self) {
        let mut open = self.gate.0.lock();
        while *open == 0 {
            self.gate.1.wait(&mut open);
        }
        *open -= 1;
    }

    fn done(&self, key: u64) -> Vec<u64> {
        self.done.lock().iter().filter(|(of, _)| *of == key).map(|(_, n)| *n).collect()
    }
}

/// The work that panics.
const PANICS: (u64, u64) = (7, 0);

impl Handler for Recorder {
    type Work = (u64, u64);

    fn seq(work: &Self::Work) -> u64 {
        work.1 + 1
    }

    async fn run(&self, work: &Self::Work, deadline: &Deadline) -> Outcome {
        assert!(*work != PANICS, "the first one fails");
        if work.0 == 0 && self.is_cooperative {
            deadline.over().await;
            return Outcome::Cancelled;
        }
        if work.0 == 0 {
            self.pass_gate();
        }
        self.done.lock().push(*work);
        Outcome::Ended
    }

    async fn give_up(&self, work: &Self::Work, _: GiveUpCause) -> bool {
        self.given_up.lock().push(*work);
        true
    }
}

const BOUNDS: Bounds = Bounds {
    workers: 1,
    waiting: 200,
    detached: 8,
    detach: Duration::from_secs(60),
    deadline: Duration::from_secs(600),
};
const SOON: Duration = Duration::from_millis(30);

fn start(recorder: &Recorder, bounds: Bounds) -> (WorkerQueue<Recorder>, Arc<Mutex<Progress>>) {
    let progress: Arc<Mutex<Progress>> = Arc::default();
    (WorkerQueue::new(recorder.clone(), bounds, Arc::clone(&progress)), progress)
}

async fn put(queue: &WorkerQueue<Recorder>, progress: &Mutex<Progress>, works: &[(u64, u64)]) {
    for (key, n) in works {
        progress.lock().record_read(n + 1);
        queue.push(*key, (*key, *n)).await;
    }
}

async fn until(is_so: impl Fn() -> bool) {
    while !is_so() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

#[tokio::test]
async fn work_of_a_key_runs_in_order_and_keys_run_in_parallel() {
    let recorder = Recorder::default();
    let (queue, progress) = start(&recorder, Bounds { workers: 4, ..BOUNDS });
    for n in 0..50 {
        put(&queue, &progress, &[(0, n), (1, n)]).await;
    }
    until(|| recorder.done(1).len() == 50).await;
    assert!(recorder.done(0).is_empty());
    recorder.open(50);
    queue.finish().await;
    for key in 0..2 {
        assert_eq!(recorder.done(key), (0..50).collect::<Vec<_>>());
    }
}

#[tokio::test]
async fn detached_work_holds_the_cursor_and_blocks_its_key() {
    let recorder = Recorder::default();
    let (queue, progress) = start(&recorder, Bounds { detach: SOON, ..BOUNDS });
    put(&queue, &progress, &[(0, 0), (0, 1), (1, 2), (1, 3)]).await;
    until(|| recorder.done(1).len() == 2).await;
    assert_eq!((recorder.done(0).len(), queue.shared.queues.lock().detached), (0, 1));
    assert_eq!(progress.lock().reached(), 0, "the cursor passes work that runs");
    assert_eq!(queue.shared.queues.lock().running.len(), 1, "a work overtakes the detached one of its key");
    recorder.open(1);
    until(|| recorder.done(0) == [0]).await;
    until(|| progress.lock().reached() == 1).await;
    recorder.open(1);
    queue.finish().await;
    assert_eq!((recorder.done(0), progress.lock().reached()), (vec![0, 1], 4));
    let queues = queue.shared.queues.lock();
    assert!(queues.workers <= 1 && queues.detached == 0, "{} {}", queues.workers, queues.detached);
}

#[tokio::test]
async fn overdue_work_is_given_up_and_its_thread_replaced() {
    let recorder = Recorder::default();
    let (queue, progress) = start(&recorder, Bounds { deadline: SOON, ..BOUNDS });
    put(&queue, &progress, &[(0, 0), (0, 1), (1, 2)]).await;
    until(|| recorder.given_up.lock().len() == 2).await;
    until(|| progress.lock().reached() == 3).await;
    assert_eq!((recorder.done(0).len(), recorder.done(1)), (0, vec![2]));
    assert_eq!(queue.shared.queues.lock().detached, 2);
    // The lost threads return; nothing is ended twice.
    recorder.open(2);
    until(|| queue.shared.queues.lock().detached == 0).await;
    put(&queue, &progress, &[(1, 3)]).await;
    queue.finish().await;
    assert_eq!((*recorder.given_up.lock()).clone(), [(0, 0), (0, 1)]);
    assert_eq!((recorder.done(1), progress.lock().reached()), (vec![2, 3], 4));
    assert_eq!(queue.shared.room.available_permits(), BOUNDS.waiting);
}

#[tokio::test]
async fn work_that_ends_when_cancelled_is_given_up_once() {
    let recorder = Recorder { is_cooperative: true, ..Recorder::default() };
    let (queue, progress) = start(&recorder, Bounds { deadline: SOON, ..BOUNDS });
    put(&queue, &progress, &[(0, 0), (0, 1), (1, 2)]).await;
    queue.finish().await;
    until(|| progress.lock().reached() == 3).await;
    assert_eq!((*recorder.given_up.lock()).clone(), [(0, 0), (0, 1)]);
    assert_eq!(queue.shared.room.available_permits(), BOUNDS.waiting);
}

#[tokio::test]
async fn detached_threads_are_bounded() {
    let recorder = Recorder::default();
    let bounds = Bounds { workers: 1, detached: 3, detach: SOON, ..BOUNDS };
    // Each work item of key 0 blocks, and is pushed with a queue key of its own here.
    let (queue, progress) = start(&recorder, bounds);
    for n in 0..10 {
        progress.lock().record_read(n + 1);
        queue.push(100 + n, (0, n)).await;
    }
    until(|| queue.shared.queues.lock().is_full).await;
    {
        let queues = queue.shared.queues.lock();
        assert_eq!((queues.detached, queues.workers, queues.running.len()), (3, 1, 4));
    }
    recorder.open(10);
    queue.finish().await;
    assert_eq!((recorder.done(0).len(), progress.lock().reached()), (10, 10));
    assert_eq!(queue.shared.queues.lock().detached, 0);
}

#[tokio::test]
async fn the_queue_stops_within_two_seconds_and_unfinished_work_stays_open() {
    let recorder = Recorder::default();
    let (queue, progress) = start(&recorder, Bounds { workers: 2, ..BOUNDS });
    put(&queue, &progress, &[(1, 0), (0, 1), (0, 2), (1, 3)]).await;
    until(|| recorder.done(1).len() == 2).await;
    let started = Instant::now();
    queue.stop().await;
    drop(queue);
    assert!(started.elapsed() < Duration::from_secs(2), "{:?}", started.elapsed());
    assert_eq!(progress.lock().reached(), 1);
    recorder.open(2);
}

#[tokio::test]
async fn stopping_gives_up_no_work() {
    let recorder = Recorder { is_cooperative: true, ..Recorder::default() };
    let (queue, progress) = start(&recorder, BOUNDS);
    put(&queue, &progress, &[(0, 0), (1, 1)]).await;
    queue.stop().await;
    assert!(recorder.given_up.lock().is_empty());
    assert_eq!(progress.lock().reached(), 0);
}

#[tokio::test]
async fn panicked_work_is_given_up_and_later_work_runs() {
    let recorder = Recorder::default();
    let (queue, progress) = start(&recorder, BOUNDS);
    put(&queue, &progress, &[(7, 0), (7, 1), (7, 2)]).await;
    queue.finish().await;
    assert_eq!((*recorder.given_up.lock()).clone(), [PANICS]);
    assert_eq!((recorder.done(7), progress.lock().reached()), (vec![1, 2], 3));
}

#[tokio::test]
async fn workers_beyond_the_processors_are_started_for_blocking_work_alone() {
    let recorder = Recorder::default();
    let (queue, progress) = start(&recorder, Bounds { workers: 100, ..BOUNDS });
    let processors = queue.shared.processors;
    {
        let mut queues = queue.shared.queues.lock();
        queues.ready.extend(0..processors as u64 + 20);
        queue.shared.wake_workers(&mut queues);
        assert_eq!(queues.workers, processors);
    }
    for n in 0..processors as u64 + 10 {
        progress.lock().record_read(n + 1);
        queue.push(100 + n, (0, n)).await;
    }
    until(|| queue.shared.queues.lock().running.len() == processors + 10).await;
    recorder.open(processors + 10);
    queue.finish().await;
    let queues = queue.shared.queues.lock();
    assert_eq!((queues.blocking, queues.waking), (0, 0));
}
