//! Benchmarks the grouping of the dry runs of a fleet: 10,000 returns of 50 states each, of which two would change.
//!
//!     cargo bench -p brine-job --bench plan
#![allow(clippy::unwrap_used, missing_docs)]

use std::hint::black_box;

use brine_job::plan::Groups;
use brine_value::{Map, Value, map};
use criterion::{Criterion, criterion_group, criterion_main};

const JID: &str = "20261130000000000001";

/// Returns the dry run of a minion: one of `kinds` ways to change.
fn returned(minion: usize, kinds: usize) -> Value {
    let diff = format!("--- \n+++ \n@@ -1,3 +1,3 @@\n a\n-b\n+{}\n c\n", minion % kinds);
    let state = |number: usize| {
        let (result, changes) = match number {
            10 | 20 => (Value::Nil, map! {"diff" => diff.as_str()}),
            _ => (true.into(), Map::new()),
        };
        let result = map! {
            "result" => result, "changes" => changes, "comment" => "The file is in the correct state",
            "__run_num__" => number, "duration" => 0.1, "start_time" => "10:00:00.000001", "name" => "/etc/a",
            "__sls__" => "web", "__id__" => format!("file{number}"),
        };
        (Value::from(format!("file_|-file{number}_|-/etc/file{number}_|-managed")), Value::from(result))
    };
    Value::Map((0..50).map(state).collect())
}

fn grouping(criterion: &mut Criterion) {
    for kinds in [3, 10_000] {
        let returns: Vec<(String, Value)> =
            (0..10_000).map(|minion| (format!("web{minion}"), returned(minion, kinds))).collect();
        criterion.bench_function(&format!("10,000 returns, {kinds} groups"), |bencher| {
            bencher.iter(|| {
                let mut groups = Groups::default();
                for (id, returned) in &returns {
                    groups.add(id, black_box(returned), JID);
                }
                groups.to_value()
            });
        });
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(10);
    targets = grouping
}
criterion_main!(benches);
