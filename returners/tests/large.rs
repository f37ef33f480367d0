//! Times of the job cache with a million returns. Ignored: they depend on the machine and take minutes.
//!
//!     cargo test --release -p brine-returners --test servers large -- --ignored --nocapture

use std::time::{Duration, Instant};

use brine_bus::store::Store;
use brine_ids::Jid;
use brine_job::{Load, Return};
use brine_returners::{JobOutline, Options, open};
use brine_runtime::executors::MayBlock;
use brine_value::{Map, map};

/// Jobs, and minions of each.
const JOBS: usize = 20_000;
const MINIONS: usize = 50;

#[test]
#[ignore = "takes minutes, and depends on the machine"]
fn a_million_returns_are_looked_up_quickly() {
    let directory = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let (store, _) = Store::open(&directory.path().join("brine.redb"), 64 << 20).unwrap();
    let blocking = store.blocking(&MayBlock::on_dedicated_thread(runtime.handle().clone()));
    let cache = open("local_cache", &Options::new(&Map::new(), Some(blocking))).unwrap();
    let minions: Vec<String> = (0..MINIONS).map(|number| format!("minion{number:04}.example.org")).collect();
    let jids: Vec<Jid> = (0..JOBS).map(|number| format!("20261120{number:012}").parse().unwrap()).collect();
    for (number, jid) in jids.iter().enumerate() {
        let fun = if number % 100 == 0 { "state.apply" } else { "test.ping" };
        let load = map! {"jid" => jid, "fun" => fun, "tgt" => "*", "tgt_type" => "glob", "user" => "root", "minions" => minions.clone()};
        cache.save_load(&Load::from_map(load).unwrap()).unwrap();
        let one = |id: &String| {
            Return::from_map(
                map! {"jid" => jid, "id" => id, "fun" => fun, "return" => true, "retcode" => 0, "success" => true},
            )
        };
        cache.save_returns(&minions.iter().map(|id| one(id).unwrap()).collect::<Vec<_>>()).unwrap();
    }
    cache.flush().unwrap();
    println!("{JOBS} jobs of {MINIONS} minions: {} MiB", store.disk_bytes() >> 20);
    let time = |what: &str, limit: u64, run: &dyn Fn() -> usize| {
        // The first run fills the caches.
        run();
        let start = Instant::now();
        let count = run();
        let took = start.elapsed();
        println!("{what}: {count} in {took:?}");
        assert!(cfg!(debug_assertions) || took < Duration::from_millis(limit), "{what} took {took:?}");
    };
    time("returns of a job", 10, &|| cache.get_jid(&jids[JOBS / 2]).unwrap().len());
    time("the newest 100 jobs", 100, &|| cache.get_jids(Some(100)).unwrap().len());
    let is_apply = |job: &JobOutline<'_>| job.functions().any(|fun| fun == "state.apply");
    time("jobs of a function", 100, &|| cache.find_jobs(None, &is_apply).unwrap().len());
    time("all jobs", 1000, &|| cache.get_jids(None).unwrap().len());
    let start = Instant::now();
    // All returns are late ones, since their jobs are of another day.
    cache.clean_old_jobs(Duration::from_secs(1)).unwrap();
    println!("removed in {:?}", start.elapsed());
    // The check that the removal requested, and another one.
    store.reclaim().durable_blocking().unwrap();
    println!("given back in {:?}: {} MiB", start.elapsed(), store.disk_bytes() >> 20);
    assert!(store.disk_bytes() < 16 << 20);
}
