//! Benchmarks the replay of events against two configurations whose files differ: one event in a hundred matches, or
//! each, with a template whose renderings may be used again, and one that is rendered for each event.
//!
//!     cargo bench -p brine-reactor --bench replay
#![allow(clippy::unwrap_used, missing_docs)]

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use brine_event::Event;
use brine_jinja::Host;
use brine_reactor::{
    Cause, Configured, DETACH, Dispatch, DispatchError, Dispatched, Entries, Options, Reaction, Reactor, ReplayLimits,
};
use brine_runtime::executors::Executor;
use brine_value::{Map, Value, list, map};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use futures::future::BoxFuture;

const EVENTS: u64 = 100_000;

struct Nothing;

impl Dispatch for Nothing {
    fn check(&self, _: &Reaction) -> Result<(), DispatchError> {
        Ok(())
    }

    fn dispatch(&self, _: Reaction, _: Cause) -> BoxFuture<'_, Result<Dispatched, DispatchError>> {
        Box::pin(async { Ok(Dispatched::Done) })
    }
}

fn reactor() -> Arc<Reactor> {
    let options = Options {
        workers: 1,
        waiting: 1,
        detach: DETACH,
        deadline: Duration::from_secs(60),
        retries: 0,
        max_depth: 16,
        strict_data: true,
        user: "Reactor",
        renderer: "jinja|yaml".into(),
        opts: Arc::default(),
        grains: Arc::new(Arc::default),
        host: Host::new(),
        group_size: Arc::new(|_| Box::pin(async { None })),
        disk: Executor::new("disk", 1, 16),
        store: None,
        dead_letter_bytes: 0,
        gate: None,
    };
    Reactor::new(Entries::from_config(&Value::List(Vec::new())).unwrap(), options, Nothing).unwrap()
}

fn events(matching_every: u64) -> Vec<Event> {
    let event = |seq: u64| {
        let tag =
            if seq.is_multiple_of(matching_every) { "deploy/web" } else { "salt/job/20261130000000000001/ret/web1" };
        let data: Map = map! {"id" => format!("web{}", seq % 500), "text" => "x".repeat(100), "n" => seq};
        let stamp = brine_event::stamp_of(jiff::Timestamp::from_millisecond(1_700_000_000_000 + seq as i64).unwrap());
        Event::from_map(tag, &data).unwrap().stamped(seq, &stamp).unwrap()
    };
    (1..=EVENTS).map(event).collect()
}

fn configured(directory: &Path, name: &str, text: &str) -> Configured {
    let path = directory.join(name);
    #[expect(clippy::disallowed_methods, reason = "a file of the bench in its own directory")]
    std::fs::write(&path, text).unwrap();
    Configured {
        entries: Some(list![map! {"deploy/*" => path.display().to_string()}]),
        rules: Some(Vec::new()),
        tree: None,
    }
}

fn replay(criterion: &mut Criterion) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let _within = runtime.enter();
    let reactor = reactor();
    let directory = tempfile::tempdir().unwrap();
    let template = "a:\n  local.state.apply:\n    - tgt: {{ data.id }}\n    - arg: [web]\n";
    let each = "a:\n  local.state.apply:\n    - tgt: {{ data.id }}\n    - arg: [{{ data.n }}]\n";
    let before = configured(directory.path(), "before.sls", "a:\n  local.test.ping:\n    - tgt: {{ data.id }}\n");
    let limits = ReplayLimits { time: Duration::from_secs(3600), examples: 3, any_file: true };
    let mut group = criterion.benchmark_group("replay");
    group.sample_size(10).throughput(Throughput::Elements(EVENTS));
    for (name, every, text) in [
        ("1 in 100 matches", 100, template),
        ("each matches, 500 different inputs", 1, template),
        ("each matches, each input differs", 1, each),
    ] {
        let events = events(every);
        let after = configured(directory.path(), "after.sls", text);
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                let mut replay = runtime.block_on(reactor.replay(&before, &after, limits)).unwrap();
                for event in &events {
                    assert!(replay.event(event));
                }
                replay.finish()
            });
        });
    }
    group.finish();
}

criterion_group!(benches, replay);
criterion_main!(benches);
