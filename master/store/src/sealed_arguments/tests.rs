use brine_bus::store::Store;
use brine_runtime::executors::MayBlock;
use brine_value::map;
use tokio::runtime::Handle;

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn arguments_are_sealed_found_by_reference_and_removed_when_they_expire() {
    let directory = tempfile::tempdir().unwrap();
    let (store, _) = Store::open(&directory.path().join("store"), 1 << 20).unwrap();
    let store = store.blocking(&MayBlock::on_dedicated_thread(Handle::current()));
    let sealing = Sealing::open(directory.path()).unwrap();
    let of = |lifetime| SealedArguments { store: store.clone(), sealing: sealing.clone(), lifetime };
    let arguments = of(Duration::from_secs(60));
    let fields = map! {"arg" => "MARKER-4711"};
    let reference = arguments.store(&fields);
    let read_fields =
        |arguments: &SealedArguments, reference: &str| tokio::task::block_in_place(|| arguments.fields(reference));
    // At once, before they are committed.
    assert_eq!(read_fields(&arguments, &reference), Some(fields.clone()));
    assert_eq!(arguments.fields(&reference), Some(fields.clone()));
    let raw = store.get(TABLE, reference.as_bytes()).unwrap().unwrap();
    assert!(!raw.windows(11).any(|part| part == b"MARKER-4711"));

    // A row under another reference does not open.
    let other = format!("{}f", &reference[..31]);
    let mut batch = Batch::new();
    batch.put(TABLE, other.as_str(), raw);
    store.write(batch).durable().await.unwrap();
    assert!(other == reference || read_fields(&arguments, &other).is_none());
    assert!(arguments.put("../x", b"").is_none(), "references of other members are checked");

    tokio::task::block_in_place(|| arguments.expire().unwrap());
    assert!(read_fields(&arguments, &reference).is_some());
    tokio::task::block_in_place(|| of(Duration::ZERO).expire().unwrap());
    assert!(read_fields(&arguments, &reference).is_none());
}
