//! Benchmarks the lookup of an event's entries, among few and among many.
//!
//!     cargo bench -p brine-reactor --bench entries
#![allow(clippy::unwrap_used, missing_docs)]

use std::hint::black_box;

use brine_reactor::Entries;
use brine_value::{Value, list, map};
use criterion::{Criterion, criterion_group, criterion_main};

/// Creates this many entries, of which only the last matches the tag below.
fn entries_of(count: usize) -> Entries {
    let others = (1..count).map(|n| format!("bench/no/{n}/*"));
    let patterns = others.chain(["bench/go/*".to_owned()]);
    let option = patterns.map(|pattern| map! {pattern => list!["/srv/reactor/go.sls"]}.into()).collect();
    Entries::from_config(&Value::List(option)).unwrap()
}

fn matching(criterion: &mut Criterion) {
    for count in [1, 100, 5000] {
        let entries = entries_of(count);
        for (name, tag) in [("one matches", "bench/go/1"), ("none matches", "salt/run/20260101000000000000/ret")] {
            criterion.bench_function(&format!("{count} entries, {name}"), |bencher| {
                bencher.iter(|| entries.matching(black_box(tag)));
            });
        }
    }
}

criterion_group!(benches, matching);
criterion_main!(benches);
