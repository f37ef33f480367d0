//! The bus in process: the throughput of one publisher and one subscriber, with and without the journal.
//!
//!     cargo bench -p brine-bus --bench bus
#![allow(clippy::unwrap_used, missing_docs)]

use brine_bus::store::Store;
use brine_bus::{Bus, BusLimits, Filter, JournalLimits, Start};
use brine_event::Event;
use brine_runtime::executors::Executor;
use brine_value::map;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

const EVENTS: u64 = 200_000;

/// Publishes events in one task and receives them in another until all have arrived.
async fn pass(bus: Bus) {
    let mut follower = bus.subscribe(Filter::All, Start::Now).unwrap();
    let event = Event::from_map("bench/x", &map! {"data" => "x".repeat(100)}).unwrap();
    let firing = tokio::spawn(async move {
        for n in 0..EVENTS {
            bus.fire_event(event.clone()).await.unwrap();
            // A publisher without pauses would starve the other tasks of its thread.
            if n % 256 == 0 {
                tokio::task::yield_now().await;
            }
        }
        bus
    });
    let mut seen = 0;
    while seen < EVENTS {
        seen += follower.recv_many().await.unwrap().len() as u64;
    }
    firing.await.unwrap();
}

fn bus(criterion: &mut Criterion) {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let mut group = criterion.benchmark_group("bus");
    group.throughput(Throughput::Elements(EVENTS)).sample_size(10);
    let limits = BusLimits { ring_events: 1 << 19, ring_bytes: 1 << 28, ..BusLimits::default() };
    group.bench_function("in memory, one subscriber", |bencher| {
        bencher.to_async(&runtime).iter(|| pass(Bus::in_memory(limits)));
    });
    let directory = tempfile::tempdir().unwrap();
    let (store, opened) = Store::open(&directory.path().join("brine.redb"), 4 << 20).unwrap();
    let journaled_bus = runtime.block_on(async {
        let disk = Executor::new("disk", 4, 64);
        Bus::with_journal(BusLimits::default(), store, opened, JournalLimits::default(), &disk).await.unwrap()
    });
    group.bench_function("with the journal, one subscriber", |bencher| {
        bencher.to_async(&runtime).iter(|| pass(journaled_bus.clone()));
    });
    group.finish();
}

criterion_group!(benches, bus);
criterion_main!(benches);
