//! The queue of state runs: one at a time, whatever their job ids, processes and ends.

#![allow(clippy::disallowed_methods, reason = "tests write as they like in their own directories")]

use std::path::Path;
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use brine_config::MinionConfig;
use brine_context::state_queue::Ticket;
use brine_context::{Context, Job, Minion};
use brine_function::Args;
use brine_ids::Jid;
use brine_value::{Map, Value, list, map};

use super::{call, report};
use crate::testing;

/// The job ids of a test: their order is not that in which the runs begin.
const JIDS: [&str; 12] = [
    "20260101000000000007",
    "20260101000000000003",
    "20260101000000000011",
    "20260101000000000001",
    "20990101000000000000",
    "20260101000000000009",
    "20260101000000000005",
    "20260101000000000010",
    "20200101000000000000",
    "20260101000000000002",
    "20260101000000000008",
    "20260101000000000004",
];

/// Returns a job of a minion of its own with this cache, as in another process.
fn context(cache: &Path, jid: &str) -> Context {
    let mut minion = testing::minion(&[("t.sls", "a: test.nop")]);
    let config = MinionConfig { cachedir: cache.to_owned(), ..MinionConfig::default() };
    Arc::get_mut(&mut minion).unwrap().config = Arc::new(config);
    job(&minion, jid)
}

fn job(minion: &Arc<Minion>, jid: &str) -> Context {
    let job = Job::local(&jid.parse::<Jid>().unwrap(), "state.apply", &Args::default());
    Context::new(Arc::clone(minion), Arc::new(job))
}

/// Takes a ticket for a run of the job.
fn ticket(context: &Context) -> Arc<Ticket> {
    let job = &context.job;
    Ticket::take(&context.config().cachedir, &job.state_ticket, &job.queued_run()).unwrap()
}

/// Every function that runs states, with arguments that run `state` there.
fn running_functions(command: &str) -> Vec<(&'static str, Map)> {
    let high = map! {"a" => map! {"cmd" => list!["run", map! {"name" => command}]}};
    let low = map! {"state" => "cmd", "fun" => "run", "name" => command};
    vec![
        ("state.single", map! {"fun" => "cmd.run", "name" => command}),
        ("state.high", map! {"data" => high.clone()}),
        ("state.low", map! {"data" => low}),
        ("state.template_str", map! {"tem" => brine_value::json::to_json(&high.into())}),
    ]
}

#[test]
fn runs_in_any_order_of_job_ids_never_overlap() {
    let directory = tempfile::tempdir().unwrap();
    let log = directory.path().join("log");
    let command = format!("echo begin >> {0}; sleep 0.02; echo end >> {0}", log.display());
    let begin = Barrier::new(JIDS.len() * 2);
    let functions = running_functions(&command);
    std::thread::scope(|scope| {
        for (number, jid) in JIDS.iter().enumerate() {
            let (begin, functions) = (&begin, &functions);
            // Two jobs in one process, beside those of others.
            let first = context(directory.path(), jid);
            let second = job(&first.minion, &format!("2026022200000000{number:04}"));
            for one in [first, second] {
                scope.spawn(move || {
                    begin.wait();
                    let (function, mut arguments) = functions[number % functions.len()].clone();
                    arguments.insert("queue".into(), true.into());
                    let ran = call(&one, function, &[], arguments).unwrap();
                    assert!(ran.as_map().is_some(), "{function}: {ran}");
                });
            }
        }
    });
    let log = std::fs::read_to_string(&log).unwrap();
    assert_eq!(log, "begin\nend\n".repeat(JIDS.len() * 2));
}

#[test]
fn a_run_refuses_to_begin_beside_one_with_a_later_job_id() {
    let directory = tempfile::tempdir().unwrap();
    let running = context(directory.path(), "20260202000000000000");
    let ticket = ticket(&running);
    let pid = std::process::id();
    let text = format!(
        "The function \"state.apply\" is running as PID {pid} and was started at 2026, Feb 02 00:00:00.000000 with jid 20260202000000000000"
    );
    for jid in ["20260101000000000000", "20260303000000000000"] {
        let one = context(directory.path(), jid);
        let functions = [
            ("state.apply", map! {"mods" => "t"}),
            ("state.sls", map! {"mods" => "t"}),
            ("state.sls_id", map! {"id_" => "a", "mods" => "t"}),
            ("state.highstate", Map::new()),
            ("state.top", map! {"topfn" => "top.sls"}),
            ("state.test", map! {"mods" => "t"}),
            ("state.template", map! {"tem" => "/nonexistent.sls"}),
        ];
        for (function, arguments) in functions.into_iter().chain(running_functions("true")) {
            let refused = call(&one, function, &[], arguments).unwrap();
            // `state.low` returns the first part of the result.
            assert_eq!(refused, vec![text.clone()].into(), "{function}");
        }
        assert_eq!(call(&one, "state.running", &[], Map::new()), Ok(vec![text.clone()].into()));
        let ran = call(&one, "state.apply", &["t"], map! {"concurrent" => true}).unwrap();
        assert_eq!(report(&ran), "0 a True -: Success!\n");
        // A waiting run gives up when its own job is ended.
        one.job.cancel.cancel();
        let waited = call(&one, "state.apply", &["t"], map! {"queue" => true}).unwrap();
        assert_eq!(waited, list!["The job was ended while it waited for another state run"]);
    }
    assert_eq!(call(&running, "state.running", &[], Map::new()), Ok(Value::List(Vec::new())));
    // A run inside of a run, as by `module.run`, has its turn.
    assert_eq!(report(&call(&running, "state.apply", &["t"], Map::new()).unwrap()), "0 a True -: Success!\n");
    drop(ticket);
    let one = context(directory.path(), "20260101000000000000");
    assert_eq!(report(&call(&one, "state.apply", &["t"], Map::new()).unwrap()), "0 a True -: Success!\n");
    assert_eq!(call(&one, "state.running", &[], Map::new()), Ok(Value::List(Vec::new())));
}

#[test]
fn a_job_that_comes_to_one_host_twice_runs_twice() {
    let directory = tempfile::tempdir().unwrap();
    let log = directory.path().join("log");
    let command = format!("echo begin >> {0}; sleep 0.05; echo end >> {0}", log.display());
    std::thread::scope(|scope| {
        for _ in 0..4 {
            // Another process with the same job.
            let one = context(directory.path(), "20260202000000000000");
            let command = command.clone();
            scope.spawn(move || {
                let ran = call(&one, "state.single", &[], map! {"fun" => "cmd.run", "name" => command}).unwrap();
                assert!(ran.as_map().is_some(), "{ran}");
            });
        }
    });
    assert_eq!(std::fs::read_to_string(&log).unwrap(), "begin\nend\n".repeat(4));
}

#[test]
fn waiting_runs_begin_in_the_order_in_which_they_asked() {
    let directory = tempfile::tempdir().unwrap();
    let running = context(directory.path(), "20260202000000000000");
    let ticket = ticket(&running);
    let log = directory.path().join("log");
    std::thread::scope(|scope| {
        for (number, jid) in JIDS.iter().enumerate() {
            let one = context(directory.path(), jid);
            let command = format!("echo {number} >> {}", log.display());
            let until = Instant::now() + Duration::from_secs(60);
            let watching = context(directory.path(), "20260303000000000000");
            scope.spawn(move || {
                let arguments = map! {"fun" => "cmd.run", "name" => command, "queue" => true};
                call(&one, "state.single", &[], arguments).unwrap();
            });
            let waiting =
                || call(&watching, "state.running", &[], Map::new()).unwrap().as_list().map_or(0, <[Value]>::len);
            while waiting() < number + 2 {
                assert!(Instant::now() < until, "run {number} does not wait");
                std::thread::yield_now();
            }
        }
        drop(ticket);
    });
    let expected: String = (0..JIDS.len()).map(|number| format!("{number}\n")).collect::<Vec<_>>().concat();
    assert_eq!(std::fs::read_to_string(&log).unwrap(), expected);
}

#[test]
fn the_ticket_of_an_ended_process_is_removed() {
    let directory = tempfile::tempdir().unwrap();
    let queue = directory.path().join("state_queue");
    std::fs::create_dir(&queue).unwrap();
    for left in ["1", "7", "18446744073709551000"] {
        std::fs::write(queue.join(left), "").unwrap();
    }
    let one = context(directory.path(), "20260101000000000000");
    assert_eq!(call(&one, "state.running", &[], Map::new()), Ok(Value::List(Vec::new())));
    std::fs::write(queue.join("4"), "half a descr").unwrap();
    assert_eq!(report(&call(&one, "state.apply", &["t"], Map::new()).unwrap()), "0 a True -: Success!\n");
    let left = std::fs::read_dir(&queue).unwrap().map(|entry| entry.unwrap().file_name());
    assert_eq!(left.collect::<Vec<_>>(), ["lock"]);
}

#[test]
fn a_run_that_cannot_be_queued_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("state_queue"), "").unwrap();
    let one = context(directory.path(), "20260101000000000000");
    let refused = call(&one, "state.apply", &["t"], Map::new()).unwrap().to_string();
    assert!(refused.contains("The state run is refused: ") && refused.contains("concurrent=True"), "{refused}");
    let ran = call(&one, "state.apply", &["t"], map! {"concurrent" => true}).unwrap();
    assert_eq!(report(&ran), "0 a True -: Success!\n");
}
