use brine_config::MinionConfig;
use brine_ids::Jid;
use brine_value::{list, map};

use super::*;

async fn connected(directory: &std::path::Path) -> Arc<Connected> {
    let config = MinionConfig {
        id: Some("web1".into()),
        pki_dir: directory.join("pki"),
        cachedir: directory.join("cache"),
        master: vec!["127.0.0.1".into()],
        master_port: 1,
        ..MinionConfig::default()
    };
    Arc::new(Connected::open(config).await.unwrap())
}

fn job(jid: &Jid, tgt: &str) -> Value {
    map! {"jid" => jid, "fun" => "test.ping", "arg" => list![], "tgt" => tgt, "tgt_type" => "glob", "ret" => "", "user" => "root"}.into()
}

#[tokio::test(flavor = "multi_thread")]
async fn missed_jobs_run_once_and_only_here() {
    let directory = tempfile::tempdir().unwrap();
    let connected = connected(directory.path()).await;
    let jids: Vec<Jid> = (0..3).map(|_| Jid::new()).collect();
    assert!(connected.seen.lock().insert(jids[0].as_str()));
    let answer = list![job(&jids[0], "*"), job(&jids[1], "web1"), job(&jids[2], "db1"), 5, map! {}, job(&jids[1], "*")];
    take(&connected, answer).await;
    take(&connected, Value::map()).await;
    // There is no master: the return of the only started job stays in the queue.
    while connected.returns.len() == 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(connected.pool.finish(Duration::from_secs(60)).await, 0);
    let packed = std::fs::read(brine_context::jobs::cached_return(&connected.minion, jids[1].as_str())).unwrap();
    let job_return = brine_value::msgpack::unpack_map(&packed).unwrap();
    assert_eq!(job_return.get("return"), Some(&true.into()));
    assert_eq!(connected.seen.lock().last(), Some(jids[1].as_str()));
    assert_eq!(connected.returns.len(), 1);
}

#[tokio::test]
async fn a_salt_master_receives_no_catch_up_request() {
    let directory = tempfile::tempdir().unwrap();
    let connected = connected(directory.path()).await;
    let master = connected.master().unwrap();
    connected.received.lock().joined(&master, Instant::now());
    connected.received.lock().job(&master, Jid::new().as_str());
    assert_eq!(request(&connected, &master), None);
}
