//! Decoding of typical messages: a small event, a job return, a large one.
#![allow(missing_docs, clippy::unwrap_used)]

use brine_value::{Value, map, msgpack};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

/// Returns the return of a state run with this many states.
fn highstate(states: usize) -> Vec<u8> {
    let one = |n: usize| {
        let id = format!("pkg_|-package-{n}_|-package-{n}_|-installed");
        let state = map! {
            "name" => format!("package-{n}"), "result" => true, "comment" => "All specified packages are installed",
            "changes" => map! {}, "__run_num__" => n, "duration" => 12.5, "start_time" => "12:00:00.000000",
        };
        (Value::from(id), Value::from(state))
    };
    let states: brine_value::Map = (0..states).map(one).collect();
    msgpack::pack_map(&map! {"cmd" => "_return", "id" => "web1", "jid" => "20261120235852025555", "return" => states})
}

fn decode(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("msgpack");
    let event = msgpack::pack_map(&map! {"cmd" => "_minion_event", "tag" => "x", "data" => map! {"n" => 1}});
    for (name, packed) in [("event", event), ("40 states", highstate(40)), ("10000 states", highstate(10_000))] {
        group.throughput(Throughput::Bytes(packed.len() as u64));
        group.bench_function(name, |bencher| bencher.iter(|| msgpack::unpack(&packed).unwrap()));
    }
}

criterion_group!(benches, decode);
criterion_main!(benches);
