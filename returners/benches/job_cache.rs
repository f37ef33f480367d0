//! The job cache of the master with 1,000,000 returns: 10,000 jobs, each returned by 100 minions.
//!
//!     cargo bench -p brine-returners --bench job_cache
//!
//! The stages: store all, look up a job, list the jobs of a function, of a target, of an hour and the newest ones, remove half
//! of the jobs. The size on disk is printed to standard error.
#![allow(clippy::unwrap_used, missing_docs)]

use std::time::Duration;

use brine_bus::store::{BlockingStore, Store};
use brine_ids::Jid;
use brine_job::{Load, Return};
use brine_returners::{JobOutline, Options, Returner, open};
use brine_runtime::executors::MayBlock;
use brine_text::glob::GlobSet;
use brine_value::{Map, Value, list, map};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

const JOBS: u32 = 10_000;
const MINIONS: u32 = 100;
/// The page cache of a master's store.
const CACHE: usize = 16 << 20;

/// Returns the id of a job: one every eight seconds of a day.
fn jid(job: u32) -> Jid {
    let second = job * 8 % 86_400;
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("20261120{hour:02}{minute:02}{second:02}{job:06}").parse().unwrap()
}

fn store_all(cache: &dyn Returner) {
    let ids: Value =
        (0..MINIONS).map(|minion| Value::from(format!("web{minion:04}.example.org"))).collect::<Vec<_>>().into();
    for job in 0..JOBS {
        let jid = jid(job);
        let fun = ["state.apply", "test.ping", "cmd.run", "pkg.install"][job as usize % 4];
        let tgt = format!("web{}*", job % 50);
        let load = map! {
            "jid" => &jid, "fun" => fun, "tgt" => tgt, "tgt_type" => "glob", "user" => "root", "arg" => list!["nginx"], "minions" => ids.clone(),
        };
        cache.save_load(&Load::from_map(load).unwrap()).unwrap();
        let returns: Vec<Return> = ids
            .as_list()
            .unwrap()
            .iter()
            .map(|id| {
                let data = map! {"jid" => &jid, "id" => id.clone(), "fun" => fun, "fun_args" => list!["nginx"], "return" => "x".repeat(100), "retcode" => 0, "success" => true};
                Return::from_map(data).unwrap()
            })
            .collect();
        cache.save_returns(&returns).unwrap();
    }
    cache.flush().unwrap();
}

fn opened(directory: &std::path::Path, runtime: &tokio::runtime::Runtime) -> (BlockingStore, Box<dyn Returner>) {
    let (store, _) = Store::open(&directory.join("brine.redb"), CACHE).unwrap();
    let store = store.blocking(&MayBlock::on_dedicated_thread(runtime.handle().clone()));
    (store.clone(), open("local_cache", &Options::new(&Map::new(), Some(store))).unwrap())
}

fn job_cache(criterion: &mut Criterion) {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let directory = tempfile::tempdir().unwrap();
    let (store, cache) = opened(directory.path(), &runtime);
    let mut group = criterion.benchmark_group("job cache");
    group.sample_size(10).throughput(Throughput::Elements(1));
    store_all(&*cache);
    eprintln!("disk: {} MiB", store.disk_bytes() >> 20);
    let mut job = 0;
    group.bench_function("a job with its 100 returns", |bencher| {
        bencher.iter(|| {
            // Each time another one.
            job = (job + 4_001) % JOBS;
            assert_eq!(cache.get_jid(&jid(job)).unwrap().len(), MINIONS as usize);
        });
    });
    let glob = |pattern: &str| GlobSet::new([pattern]).unwrap();
    let (target, fun) = (glob("web7[*]"), glob("state.*"));
    let mut list = |name: &str, count: usize, limit: Option<usize>, predicate: &dyn Fn(&JobOutline<'_>) -> bool| {
        group.bench_function(name, |bencher| {
            bencher.iter(|| assert_eq!(cache.find_jobs(limit, predicate).unwrap().len(), count));
        });
    };
    list("list of the 100 newest jobs", 100, Some(100), &|_| true);
    list("list of the jobs of a target", 200, None, &|job| job.targets().any(|one| target.is_match(one)));
    list("list of the jobs of an hour", 450, None, &|job| job.jid().starts_with("2026112010"));
    list("list of the jobs of a function", 2_500, None, &|job| job.functions().any(|one| fun.is_match(one)));
    list("list of all jobs", JOBS as usize, None, &|_| true);
    group.finish();
    let began = std::time::Instant::now();
    cache.clean_old_jobs(Duration::from_secs(60)).unwrap();
    eprintln!("all jobs removed: {:?}, disk: {} MiB", began.elapsed(), store.disk_bytes() >> 20);
}

criterion_group!(benches, job_cache);
criterion_main!(benches);
