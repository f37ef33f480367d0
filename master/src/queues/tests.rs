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
