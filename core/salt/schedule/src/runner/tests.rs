use std::collections::HashMap;
use std::sync::Mutex;

use brine_value::{list, map};
use tokio::sync::{mpsc, oneshot};

use super::*;

/// A running job, which ends when its result is set.
struct Running {
    run: Run,
    end: oneshot::Sender<Result<Option<Map>, std::io::Error>>,
}

/// A daemon with a virtual clock, whose jobs end when the test sets their result.
struct Daemon {
    now: Mutex<Zoned>,
    schedule: Mutex<Schedule>,
    counts: Arc<Mutex<HashMap<String, u64>>>,
    started: Mutex<Vec<Running>>,
    published: mpsc::UnboundedSender<Map>,
    /// Receives a message at the end of each task.
    ended: mpsc::UnboundedSender<()>,
}

impl ScheduleHost for Daemon {
    type Error = std::io::Error;

    fn now(&self) -> Zoned {
        self.now.lock().unwrap().clone()
    }

    fn with_schedule<T>(&self, ask: impl FnOnce(&mut Schedule, &ScheduleContext<'_>) -> T) -> T {
        let running = |name: &str| self.counts.lock().unwrap().get(name).copied().unwrap_or(0);
        let none = Map::new();
        ask(&mut self.schedule.lock().unwrap(), &ScheduleContext { pillar: &none, grains: &none, running: &running })
    }

    fn start(self: &Arc<Self>, run: Run) -> impl Future<Output = Result<Option<Map>, std::io::Error>> + Send + 'static {
        let (end, ended) = oneshot::channel();
        let (name, counts) = (run.job.name.clone(), Arc::clone(&self.counts));
        *counts.lock().unwrap().entry(name.clone()).or_default() += 1;
        self.started.lock().unwrap().push(Running { run, end });
        async move {
            let ended = ended.await.unwrap();
            *counts.lock().unwrap().get_mut(&name).unwrap() -= 1;
            ended
        }
    }

    async fn publish(&self, event: Map) {
        self.published.send(event).unwrap();
    }

    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let ended = self.ended.clone();
        tokio::spawn(async move {
            task.await;
            ended.send(()).unwrap();
        });
    }
}

/// A daemon, with the receivers of its events and of the ends of its tasks.
struct Fixture {
    daemon: Arc<Daemon>,
    published: mpsc::UnboundedReceiver<Map>,
    ended: mpsc::UnboundedReceiver<()>,
}

impl Fixture {
    fn new(schedule: Map) -> Self {
        let (publish, published) = mpsc::unbounded_channel();
        let (end, ended) = mpsc::unbounded_channel();
        let daemon = Daemon {
            now: Mutex::new("2026-11-21T00:00:00[UTC]".parse().unwrap()),
            schedule: Mutex::new(Schedule::new(schedule)),
            counts: Arc::default(),
            started: Mutex::default(),
            published: publish,
            ended: end,
        };
        Fixture { daemon: Arc::new(daemon), published, ended }
    }

    /// Polls at a time of one day, and returns the names of the jobs that start.
    fn at(&self, time: &str) -> Vec<String> {
        *self.daemon.now.lock().unwrap() = format!("2026-11-21T{time}[UTC]").parse().unwrap();
        let before = self.daemon.started.lock().unwrap().len();
        poll(&self.daemon, SignedDuration::from_secs(1));
        let started = self.daemon.started.lock().unwrap();
        started[before..].iter().map(|running| running.run.job.name.clone()).collect()
    }

    /// Ends the oldest running job, and returns the event that is published.
    async fn end(&mut self, result: Result<Option<Map>, std::io::Error>) -> Option<Map> {
        let running = self.daemon.started.lock().unwrap().remove(0);
        running.end.send(result).unwrap();
        self.ended.recv().await.unwrap();
        self.published.try_recv().ok()
    }
}

fn job(options: Map) -> Job {
    Job::read("often", &options.into()).unwrap()
}

#[tokio::test]
async fn maxrunning_counts_the_jobs_that_have_not_ended() {
    let mut trial = Fixture::new(map! {
        "one" => map! {"function" => "f", "seconds" => 1},
        "two" => map! {"function" => "f", "seconds" => 1, "maxrunning" => 2},
        "any" => map! {"function" => "f", "seconds" => 1, "jid_include" => false},
    });
    assert_eq!(trial.at("12:00:00"), ["one", "two", "any"]);
    assert_eq!(trial.at("12:00:01"), ["two", "any"]);
    assert_eq!(trial.at("12:00:02"), ["any"]);
    assert_eq!(trial.end(Ok(None)).await, None);
    assert_eq!(trial.at("12:00:03"), ["one", "any"]);
    // A failed job no longer counts as running, either.
    assert_eq!(trial.end(Err(std::io::Error::other("no thread"))).await, None);
    assert_eq!(trial.at("12:00:04"), ["two", "any"]);
}

#[tokio::test]
async fn jobs_start_at_their_times() {
    let trial = Fixture::new(map! {
        "start" => map! {"function" => "f", "minutes" => 5, "run_on_start" => true},
        "cron" => map! {"function" => "f", "cron" => "1 12 * * *"},
        "once" => map! {"function" => "f", "once" => "2026-11-21T12:00:02"},
        "when" => map! {"function" => "f", "when" => "12:00:03pm"},
        "ended" => map! {"function" => "f", "seconds" => 1, "until" => "11am"},
        "later" => map! {"function" => "f", "seconds" => 1, "after" => "1pm", "run_on_start" => false},
        "late" => map! {"function" => "f", "seconds" => 2, "splay" => map! {"start" => 3, "end" => 3}, "run_on_start" => false},
        "dry" => map! {"function" => "f", "seconds" => 1, "dry_run" => true},
        "off" => map! {"function" => "f", "seconds" => 1, "enabled" => false},
    });
    let all = ["12:00:00", "12:00:01", "12:00:02", "12:00:03", "12:00:04", "12:00:05", "12:01:00"];
    let started: Vec<_> = all.iter().map(|time| trial.at(time).join(" ")).collect();
    // The first run of `late` has not ended at the time of the next one.
    assert_eq!(started, ["start", "", "once", "when", "", "late", "cron"]);
}

#[tokio::test]
async fn returns_are_published() {
    let mut trial = Fixture::new(map! {});
    start(&trial.daemon, job(map! {"function" => "f"}));
    let event = map! {"jid" => "req"};
    assert_eq!(trial.end(Ok(Some(event.clone()))).await, Some(event));
}

#[test]
fn a_return_has_the_fields_of_its_job() {
    let now: Zoned = "2026-11-21T12:00:00+01:00[+01:00]".parse().unwrap();
    let returned = |success: bool| map! {"jid" => "1", "out" => "nested", "success" => success, "retcode" => 0};
    let complete = |options: Map, success: bool| {
        let mut stored = Vec::new();
        let run = Run { job: job(options), jid: Jid::new() };
        let event = run.complete(returned(success), &now, &[], |names, _| stored = names.to_vec());
        (event, stored)
    };
    let options = map! {
        "function" => "f", "args" => list![1], "kwargs" => map! {"a" => 2}, "metadata" => map! {"who" => "me"},
        "return_config" => "alt", "return_kwargs" => map! {"b" => 3},
    };
    let metadata = map! {
        "who" => "me", "_TOS" => "+0100", "_TS" => "Sat Nov 21 12:00:00 2026", "_TT" => "2026 November 21 Sat 11 11",
    };
    let expected = map! {
        "jid" => "req", "success" => true, "retcode" => 0, "fun_args" => list![1, map! {"a" => 2}],
        "schedule" => "often", "pid" => std::process::id(), "metadata" => metadata, "ret_config" => "alt",
        "ret_kwargs" => map! {"b" => 3},
    };
    assert_eq!(complete(options, true), (Some(expected), vec![]));
    for (more, success, jid, stored) in [
        (map! {"return_job" => true}, true, Some("req"), &[][..]),
        (map! {"return_job" => "nocache"}, true, Some("nocache"), &[]),
        (map! {"return_job" => false}, true, None, &[]),
        (map! {"returner" => "redis"}, true, Some("1"), &["redis"]),
        (map! {"returner" => "redis", "return_job" => false}, true, None, &["redis"]),
        // Only a successful return is stored.
        (map! {"returner" => "redis"}, false, Some("1"), &[]),
    ] {
        let mut options = map! {"function" => "f"};
        options.extend(more.clone());
        let (event, names) = complete(options, success);
        let has = event.as_ref().and_then(|event| event.get("jid")).map(ToString::to_string);
        assert_eq!(
            (has.as_deref(), &names[..]),
            (jid, &*stored.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>()),
            "{more:?}"
        );
        let retcode = event.and_then(|event| event.get("retcode").cloned());
        assert_eq!(retcode, jid.map(|_| if success { 0.into() } else { FAILED.into() }), "{more:?}");
    }
}
