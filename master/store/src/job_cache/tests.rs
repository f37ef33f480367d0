use brine_bus::store::Store;
use brine_runtime::executors::MayBlock;
use brine_value::map;

use super::*;

#[test]
fn master_calls_are_stored_as_jobs_of_the_master() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let directory = tempfile::tempdir().unwrap();
    let (store, _) = Store::open(&directory.path().join("store"), 1 << 20).unwrap();
    let store = store.blocking(&MayBlock::on_dedicated_thread(runtime.handle().clone()));
    let cache: Arc<dyn Returner> =
        brine_returners::open("local_cache", &brine_returners::Options::new(&Map::new(), Some(store))).unwrap().into();
    let job_cache = JobCache {
        cache: Arc::clone(&cache),
        id: "host_master".parse().unwrap(),
        runner_returns: true,
        end_times: false,
    };
    let body = |fun: &str| map! {"fun" => fun, "fun_args" => list!["orch.web"], "user" => "root", "return" => 1, "success" => true};
    let event = |tag: &str, body: &Map| Event::from_map(tag, body).unwrap();
    let store = |cache: &JobCache, event| assert!(cache.store_all(&[event]).is_ok());
    let jids: Vec<Jid> = (0..6).map(|_| Jid::new()).collect();
    let fire = |n: usize, kind: &str, body: &Map| {
        store(&job_cache, event(&format!("salt/{kind}/{}/ret", jids[n]), body));
    };
    fire(0, "run", &body("runner.state.orchestrate"));
    fire(1, "wheel", &body("wheel.key.accept"));
    // An unknown function, a forged event, and an event that is not a return.
    fire(2, "run", &map! {"fun" => "runner.no.such", "return" => "x", "retcode" => 254});
    let forged = Event::from_minion(&format!("salt/run/{}/ret", jids[3]), body("x"), &"web1".parse().unwrap());
    store(&job_cache, forged.unwrap().stamped(1, "now").unwrap());
    store(&job_cache, event(&format!("salt/run/{}/progress", jids[4]), &body("x")));
    let without = JobCache { runner_returns: false, ..job_cache.clone() };
    store(&without, event(&format!("salt/run/{}/ret", jids[5]), &body("runner.jobs.active")));
    let actual: Vec<_> = cache.get_jids(None).unwrap().iter().map(|load| load.jid().clone()).collect();
    assert_eq!(actual, [jids[1].clone(), jids[0].clone()]);
    let summary = cache.get_load(&jids[0]).unwrap().unwrap().summary();
    for (name, is) in [
        ("Function", Value::from("runner.state.orchestrate")),
        ("Arguments", list![]),
        ("Target", "host_master".into()),
        ("Target-type", "list".into()),
        ("User", "root".into()),
    ] {
        assert_eq!(summary.get(name), Some(&is), "{name}");
    }
    let returns = cache.get_jid(&jids[0]).unwrap();
    assert_eq!(returns, map! {"host_master" => map! {"return" => body("runner.state.orchestrate")}});
}

/// Rejects returns of the minion `bad`, and whole batches that contain one.
#[derive(Default)]
struct RefusingReturner {
    stored: parking_lot::Mutex<Vec<String>>,
    batches: bool,
    /// Whether end times and calls are refused, too, whatever they are of.
    refuses_all: bool,
    /// The number of flushes that fail because the store does.
    failing: std::sync::atomic::AtomicUsize,
}

impl RefusingReturner {
    fn take(&self, ids: &[String]) -> Result<(), ReturnerError> {
        if ids.iter().any(|id| id == "bad") {
            return Err(ReturnerError::NoStore);
        }
        self.stored.lock().extend_from_slice(ids);
        Ok(())
    }
}

impl Returner for RefusingReturner {
    fn name(&self) -> &'static str {
        "picky"
    }

    fn save_returns(&self, returns: &[Return]) -> Result<(), ReturnerError> {
        self.take(&returns.iter().map(|one| one.id().to_string()).collect::<Vec<_>>())
    }

    fn save_calls(&self, calls: &[Call]) -> Result<(), ReturnerError> {
        let jids: Vec<_> = calls.iter().map(|call| call.jid().to_string()).collect();
        if self.refuses_all { Err(ReturnerError::NoStore) } else { self.take(&jids) }
    }

    fn flush(&self) -> Result<(), ReturnerError> {
        use std::sync::atomic::Ordering;
        let failing = self.failing.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
        if failing.is_ok() { Err(ReturnerError::Store(brine_bus::store::StoreError::Busy)) } else { Ok(()) }
    }

    fn stores_events_together(&self) -> bool {
        self.batches
    }

    fn event_return(&self, events: &[Event]) -> Result<(), ReturnerError> {
        self.take(&events.iter().map(|event| event.tag().to_owned()).collect::<Vec<_>>())
    }
}

#[test]
fn a_refused_return_does_not_block_the_others() {
    let picky = Arc::new(RefusingReturner::default());
    let cache =
        JobCache { cache: picky.clone(), id: "host_master".parse().unwrap(), runner_returns: true, end_times: false };
    let jid = Jid::new();
    let events = ["a", "b", "bad", "c"].map(|id| {
        Event::from_map(&format!("salt/job/{jid}/ret/{id}"), &map! {"fun" => "test.ping", "return" => true}).unwrap()
    });
    let unstored = cache.store_all(&events).err().unwrap();
    assert_eq!((unstored.handled, unstored.count), (2, 1));
    assert!(cache.store_all(&events[3..]).is_ok());
    assert_eq!(*picky.stored.lock(), ["a", "b", "c"]);
}

#[test]
fn a_refused_event_does_not_block_the_others() {
    let events = ["a", "b", "bad", "c"].map(|tag| Event::from_map(tag, &Map::new()).unwrap());
    for batches in [false, true] {
        let picky = RefusingReturner { batches, ..RefusingReturner::default() };
        let unstored = store_events(&picky, &events).err().unwrap();
        assert_eq!((unstored.handled, unstored.count), (2, 1));
        assert!(store_events(&picky, &events[3..]).is_ok());
        assert_eq!(*picky.stored.lock(), ["a", "b", "c"]);
    }
}

#[test]
fn loads_are_stored_whole_and_without_message_fields() {
    let load = without_piece(whole_load(map! {"jid" => "1", "fun" => "test.ping", MORE => map! {"ret" => "redis"}}));
    assert_eq!(load, map! {"jid" => "1", "fun" => "test.ping", "ret" => "redis"});
    let piece = without_piece(map! {"fun" => RECEIVE_CHUNK, "arg" => list!["/srv/x", "aGVsbG8=", true]});
    assert_eq!(piece.get("arg"), Some(&list!["/srv/x", "(8 bytes)", true]));
    let standalone = map! {"jid" => "20261121000000000000", "id" => "m", "fun" => "f", "arg" => list![1], "tgt" => "m", "return" => 1};
    let load = load_of_standalone(&Return::from_map(standalone.clone()).unwrap()).unwrap();
    assert_eq!((load.arg(), load.minions().len(), load.map().contains_key("return")), (&[1.into()][..], 1, false));
    let published = standalone.into_iter().filter(|(name, _)| name.as_str() != Some("tgt")).collect();
    assert_eq!(load_of_standalone(&Return::from_map(published).unwrap()), None);
    let one = map! {"jid" => "1", "cmd" => "_return", "ts" => 5, "return" => true};
    assert_eq!(without_envelope(one), map! {"jid" => "1", "return" => true});
}

#[test]
fn the_parts_of_a_job_are_one_job() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let directory = tempfile::tempdir().unwrap();
    let (store, _) = Store::open(&directory.path().join("store"), 1 << 20).unwrap();
    let store = store.blocking(&MayBlock::on_dedicated_thread(runtime.handle().clone()));
    let cache = brine_returners::open("local_cache", &brine_returners::Options::new(&Map::new(), Some(store))).unwrap();
    let parts = |parts: &[(Value, &str, Value)]| {
        let jid = Jid::new();
        for (tgt, tgt_type, minions) in parts {
            let part = map! {
                "fun" => "test.ping", "arg" => list![], "tgt" => tgt.clone(), "tgt_type" => *tgt_type,
                "minions" => minions.clone(), PART => true,
            };
            store_load(&*cache, jid.as_str(), part).unwrap();
        }
        let load = cache.get_load(&jid).unwrap().unwrap();
        (load.summary()["Target"].clone(), load.minions().len())
    };
    for (sent_parts, expected) in [
        (vec![(list!["a"], "list", list!["a"]), (list!["b", "a"], "list", list!["b"])], (list!["a", "b"], 2)),
        (vec![(list!["a"], "list", list!["a"]), ("b*".into(), "glob", list!["b"])], ("b*".into(), 2)),
        (vec![(list!["a"], "list", list!["a"])], (list!["a"], 1)),
    ] {
        assert_eq!(parts(&sent_parts), expected, "{sent_parts:?}");
    }
}

/// Delivers events as the subscriber does: a record that is refused is dropped with its event. Returns the indices of the
/// dropped events.
fn deliver_all(cache: &JobCache, events: &[Event]) -> Vec<usize> {
    let (mut at, mut dropped) = (0, Vec::new());
    while at < events.len() {
        match cache.store_all(&events[at..]) {
            Ok(()) => return dropped,
            Err(unstored) => {
                assert_eq!(unstored.count, 1);
                at += unstored.handled;
                if is_refused(&unstored.error) {
                    dropped.push(at);
                    at += 1;
                }
            }
        }
    }
    dropped
}

#[test]
fn a_refused_record_drops_one_event_and_a_refused_write_none() {
    let jid = Jid::new();
    let ret = |id: &str| (format!("salt/job/{jid}/ret/{id}"), map! {"fun" => "test.ping", "return" => true});
    let call = || (format!("salt/run/{}/ret", Jid::new()), map! {"fun" => "runner.test.arg", "user" => "root"});
    let events: Vec<Event> = [ret("a"), call(), ret("bad"), ret("b"), call(), ret("c")]
        .into_iter()
        .map(|(tag, body)| Event::from_map(&tag, &body).unwrap())
        .collect();
    for (name, returner, dropped, stored) in [
        ("a return", RefusingReturner::default(), &[2][..], 5),
        ("calls", RefusingReturner { refuses_all: true, ..RefusingReturner::default() }, &[1, 2, 4], 3),
        ("flushes", RefusingReturner { failing: 3.into(), ..RefusingReturner::default() }, &[2], 5),
    ] {
        let returner = Arc::new(returner);
        let cache = JobCache {
            cache: returner.clone(),
            id: "host_master".parse().unwrap(),
            runner_returns: true,
            end_times: false,
        };
        assert_eq!(deliver_all(&cache, &events), dropped, "{name}");
        let records: std::collections::BTreeSet<String> = returner.stored.lock().iter().cloned().collect();
        assert_eq!(records.len(), stored, "{name}: {records:?}");
    }
}
