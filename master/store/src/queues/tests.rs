use brine_bus::store::Store;
use brine_runtime::executors::MayBlock;
use brine_value::map;

use super::*;

fn queues(directory: &tempfile::TempDir) -> Queues {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let (store, _) = Store::open(&directory.path().join("store"), 1 << 20).unwrap();
    let store = store.blocking(&MayBlock::on_dedicated_thread(runtime.handle().clone()));
    Queues::new(store, Sealing::open(directory.path()).unwrap())
}

#[test]
fn calls_in_a_queue_are_sealed() {
    let directory = tempfile::tempdir().unwrap();
    let queues = queues(&directory);
    let call = Value::from(map! {"fun" => "test.arg", "kwargs" => map! {"password" => "MARKER-4711"}});
    queues.insert("q", vec![call.clone(), "text".into()]).unwrap();
    let stored: Vec<Vec<u8>> = queues.store.scan(ITEMS, b"", 9).unwrap().into_iter().map(|(_, value)| value).collect();
    assert!(!stored.iter().any(|value| value.windows(11).any(|part| part == b"MARKER-4711")));
    assert_eq!(queues.head("q", 9).unwrap().items, [call, "text".into()]);
}

#[test]
fn items_leave_a_queue_in_their_order_and_survive_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let queues_of = || queues(&directory);
    let first = queues_of();
    let call = Value::from(map! {"fun" => "test.arg"});
    assert_eq!(first.insert("q", vec!["b".into(), "a".into(), call.clone()]).unwrap(), Vec::<Value>::new());
    assert_eq!(first.insert("q", vec!["a".into(), call.clone(), "c".into()]).unwrap(), vec![Value::from("a")]);
    first.insert("q2", vec!["x".into()]).unwrap();
    drop(first);
    let queues = queues_of();
    assert_eq!(queues.names().unwrap(), ["q", "q2"]);
    assert_eq!((queues.len("q").unwrap(), queues.len("q2").unwrap(), queues.len("none").unwrap()), (5, 1, 0));
    let head = queues.head("q", 2).unwrap();
    assert_eq!(head.items, ["b", "a"].map(Value::from));
    drop(head);
    let head = queues.head("q", 2).unwrap();
    head.remove().unwrap();
    queues.delete("q", &[call]).unwrap();
    assert_eq!(queues.head("q", usize::MAX).unwrap().items, [Value::from("c")]);
    queues.delete("q", &["c".into()]).unwrap();
    assert_eq!(queues.names().unwrap(), ["q2"]);
}

#[test]
fn names_and_sizes_are_bounded() {
    let directory = tempfile::tempdir().unwrap();
    let queues = queues(&directory);
    let long = "x".repeat(MAX_NAME + 1);
    for name in ["", "a\0b", &long] {
        assert!(matches!(queues.insert(name, vec!["a".into()]), Err(QueueError::Name)), "{name}");
    }
    let large = Value::from("x".repeat(MAX_ITEM));
    assert!(matches!(queues.insert("q", vec!["a".into(), large]), Err(QueueError::LargeItem { .. })));
    let many = (0..=MAX_ITEMS as i64).map(Value::from).collect();
    assert!(matches!(queues.insert("q", many), Err(QueueError::Full(_))));
    assert_eq!(queues.len("q").unwrap(), 0);
}

/// Returns the sizes by counting the items.
fn counted(queues: &Queues, queue: &str) -> Size {
    let mut size = Size::default();
    for (_, packed) in queues.rows(&prefix(queue).unwrap(), usize::MAX).unwrap() {
        size.add(&packed);
    }
    size
}

#[test]
fn sizes_and_the_index_follow_every_change() {
    let directory = tempfile::tempdir().unwrap();
    let first = queues(&directory);
    let call = || Value::from(map! {"fun" => "test.arg"});
    let check = |queues: &Queues| {
        for queue in ["q", "q2", "r"] {
            let size = counted(queues, queue);
            assert_eq!((queues.size(queue).unwrap(), queues.len(queue).unwrap() as u64), (size, size.items), "{queue}");
            // Only strings are stored unsealed.
            let is_string = |(_, stored): &Pair| msgpack::unpack(stored).is_ok_and(|item| item.as_str().is_some());
            let strings =
                queues.rows(&prefix(queue).unwrap(), usize::MAX).unwrap().iter().filter(|row| is_string(row)).count();
            assert_eq!(queues.store.scan_prefix(INDEX, &prefix(queue).unwrap()).unwrap().len(), strings, "{queue}");
        }
    };
    // A queue follows whose items must not be read or counted.
    first.insert("q2", (0..50).map(Value::from).collect()).unwrap();
    for _ in 0..3 {
        let items = vec!["a".into(), call(), "b".into(), "a".into()];
        let duplicates = first.insert("q", items).unwrap();
        assert!(duplicates.contains(&"a".into()));
        check(&first);
    }
    assert_eq!(first.len("q").unwrap(), 5);
    assert_eq!(first.head("q", usize::MAX).unwrap().items.len(), 5);
    first.delete("q", &["a".into(), "a".into(), "none".into(), call()]).unwrap();
    check(&first);
    assert_eq!(first.head("q", usize::MAX).unwrap().items, [Value::from("b")]);
    // The string may be inserted again.
    assert_eq!(first.insert("q", vec!["a".into()]).unwrap(), Vec::<Value>::new());
    first.head("q", 1).unwrap().remove().unwrap();
    check(&first);
    assert_eq!(first.drain("q").unwrap(), [Value::from("a")]);
    check(&first);
    assert_eq!((first.names().unwrap(), first.head("r", 9).unwrap().items.len()), (vec!["q2".to_owned()], 0));
    assert_eq!(first.totals.lock().unwrap().queues, 1);
}

#[test]
fn queues_of_an_earlier_version_are_indexed() {
    let directory = tempfile::tempdir().unwrap();
    let old = queues(&directory);
    let mut batch = Batch::new();
    for (number, item) in [Value::from("a"), map! {"fun" => "test.arg"}.into(), "b".into()].iter().enumerate() {
        batch.put(ITEMS, key(&prefix("q").unwrap(), number as u64), msgpack::pack(item));
    }
    old.store.write(batch).durable_blocking().unwrap();
    drop(old);
    let queues = queues(&directory);
    assert_eq!(queues.insert("q", vec!["b".into(), "c".into()]).unwrap(), [Value::from("b")]);
    assert_eq!((queues.len("q").unwrap(), queues.names().unwrap()), (4, vec!["q".to_owned()]));
    assert_eq!(queues.size("q").unwrap(), counted(&queues, "q"));
}

#[test]
fn the_number_and_the_size_of_all_queues_are_bounded() {
    let directory = tempfile::tempdir().unwrap();
    let queues = queues(&directory);
    queues.insert("q", vec!["a".into()]).unwrap();
    queues.totals.lock().as_mut().unwrap().queues = MAX_QUEUES;
    assert!(matches!(queues.insert("r", vec!["a".into()]), Err(QueueError::TooMany)));
    queues.insert("q", vec!["b".into()]).unwrap();
    queues.totals.lock().as_mut().unwrap().bytes = MAX_TOTAL;
    assert!(matches!(queues.insert("q", vec!["c".into()]), Err(QueueError::AllFull)));
    assert_eq!(queues.drain("q").unwrap().len(), 2);
    queues.insert("r", vec!["a".into()]).unwrap();
}
