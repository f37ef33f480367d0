//! Catches up on jobs that were published while the minion was disconnected: requests them after each connection, and
//! runs them as if they had been published again. Brine masters only.

use std::sync::Arc;
use std::time::{Duration, Instant};

use brine_value::{Map, Value};
use brine_wire::Publication;

use super::Connected;
use super::intake::handle_job;
use super::received::CatchUpOptions;
use crate::masters::Address;

/// The timeout of the reply: jobs that are published meanwhile wait too.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Fetches the jobs that the minion has missed at this master. The publish stream must be subscribed already, so that no
/// job is missed in between.
pub(super) async fn run(connected: &Arc<Connected>, master: &Address) {
    let load = request(connected, master);
    connected.received.lock().joined(master, Instant::now());
    let Some(load) = load else { return };
    match tokio::time::timeout(TIMEOUT, connected.channel.request(load)).await {
        Ok(Ok(answer)) => take(connected, answer).await,
        Ok(Err(error)) => tracing::debug!(%error, "fetching missed jobs failed"),
        Err(_) => tracing::warn!(timeout = ?TIMEOUT, "fetching missed jobs timed out"),
    }
}

/// Returns the request, if one is necessary.
fn request(connected: &Connected, master: &Address) -> Option<Map> {
    let config = &connected.minion.config;
    if config.publish_catch_up == 0 || !connected.channel.is_brine() {
        return None;
    }
    let options = CatchUpOptions {
        max_age: Duration::from_secs(config.publish_catch_up),
        detection_time: Duration::from_secs(config.master_alive_interval.saturating_mul(2)),
        are_several: !connected.is_only,
    };
    connected.received.lock().request(master, options, Instant::now())
}

/// Runs those jobs that target this minion and that it has not received.
pub(super) async fn take(connected: &Arc<Connected>, answer: Value) {
    // A master that does not know the command answers with an empty mapping.
    let Value::List(loads) = answer else {
        tracing::debug!("the master does not support catch-up");
        return;
    };
    for load in loads {
        let Value::Map(load) = load else {
            brine_wire::metrics::REQUESTS_REFUSED.add(1);
            tracing::warn!("a missed job is invalid: expected a mapping");
            continue;
        };
        match Publication::from_map(load) {
            Ok(publication) => handle_job(connected, publication).await,
            Err(error) => {
                brine_wire::metrics::REQUESTS_REFUSED.add(1);
                tracing::warn!(%error, "a missed job is invalid");
            }
        }
    }
}

#[cfg(test)]
mod tests {
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
        let answer =
            list![job(&jids[0], "*"), job(&jids[1], "web1"), job(&jids[2], "db1"), 5, map! {}, job(&jids[1], "*")];
        take(&connected, answer).await;
        take(&connected, Value::map()).await;
        // There is no master: the return of the only started job stays in the queue.
        while connected.returns.len() == 0 {
            tokio::task::yield_now().await;
        }
        assert_eq!(connected.pool.finish(Duration::from_secs(60)).await, 0);
        let kept = std::fs::read(brine_context::jobs::cached_return(&connected.minion, jids[1].as_str())).unwrap();
        let kept = brine_value::msgpack::unpack_map(&kept).unwrap();
        assert_eq!(kept.get("return"), Some(&true.into()));
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
}
