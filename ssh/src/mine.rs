//! `mine.get` of a host. Hosts cannot send data to a mine, so the function is called on the hosts of the roster that
//! the request targets. With `regular_minions` the mine of a running master is read as well.
//!
//! A host is not trusted with the data of others: it receives only the results of functions that are in their
//! `mine_functions`, and from the master's mine only what its own id may read. Nor can it choose where `salt-ssh` logs
//! in: only the roster of the run is used, and a roster that derives its hosts from the target (`scan`, custom modules)
//! provides no data.

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use brine_ids::MinionId;
use brine_value::{FromValue, Map, Value, json, map};
use futures::future::BoxFuture;
use futures::stream::{self, StreamExt};
use parking_lot::Mutex;
use tokio::sync::OnceCell;

use crate::roster::{RosterHost, RosterOptions};

/// The maximum number of different requests of a run, each of which may call all hosts.
const MAX_REQUESTS: usize = 100;
/// The timeout of a mine function call, including the push of the program.
const CALL_TIMEOUT: Duration = Duration::from_secs(300);
/// The rosters that list their hosts independently of the target.
const LISTS: &[&str] = &["flat", "ansible", "sshconfig", "cache", "dir", "sshknownhosts"];

/// Requests mine data from the running master. The argument has `tgt`, `fun`, `tgt_type`, and the `id` of the
/// requester.
pub type MasterMine = Box<dyn Fn(Map) -> Pin<Box<dyn Future<Output = Map> + Send>> + Send + Sync>;

/// The sources of mine data.
pub struct Mine {
    /// The roster of the run.
    pub roster: RosterOptions,
    /// The mine of the running master.
    pub master: MasterMine,
    /// The maximum number of hosts that are called concurrently for one request.
    pub concurrency: usize,
    /// The results by request, shared by all requesters.
    pub results: Mutex<HashMap<String, Arc<OnceCell<Map>>>>,
}

/// Access to the hosts of the run that provide mine data.
pub(crate) trait MineHosts: Sync {
    /// Returns the hosts of a roster that a target of this type matches.
    fn matching<'a>(
        &'a self,
        roster: &'a RosterOptions,
        tgt: Value,
        tgt_type: String,
    ) -> BoxFuture<'a, Result<Vec<(MinionId, RosterHost)>, String>>;

    /// Calls a function among the `mine_functions` of a host, with these options. Returns its result.
    ///
    /// # Errors
    /// The function failed: its return, or the output of `ssh`.
    fn call_function<'a>(
        &'a self,
        id: &'a MinionId,
        host: &'a RosterHost,
        fun: &'a str,
        opts: &'a Map,
    ) -> BoxFuture<'a, Result<Value, Value>>;
}

impl Mine {
    /// Answers a `mine.get` request of this host. `opts` are the options of its call.
    pub(crate) async fn get(&self, hosts: &dyn MineHosts, id: &MinionId, opts: &Map, load: &Map) -> Map {
        let flag = |name: &str, otherwise: bool| load.get(name).and_then(bool::from_value).unwrap_or(otherwise);
        let part = |name: &str| load.get(name).cloned().unwrap_or_default();
        let mut results = Map::new();
        if flag("regular_minions", false) {
            let query = map! {"tgt" => part("tgt"), "fun" => part("fun"), "tgt_type" => part("tgt_type"), "id" => id};
            results.extend((self.master)(query).await);
        }
        if flag("ssh_minions", true) {
            results.extend(self.of_hosts(hosts, opts, load).await);
        }
        results
    }

    async fn of_hosts(&self, hosts: &dyn MineHosts, opts: &Map, load: &Map) -> Map {
        let text = |name: &str| load.get(name).and_then(Value::as_str).map(str::to_owned);
        let (Some(fun), Some(tgt)) = (text("fun"), load.get("tgt").cloned()) else { return Map::new() };
        if !LISTS.contains(&self.roster.roster.as_str()) {
            tracing::error!(roster = self.roster.roster, "mine.get needs a roster that lists its hosts");
            return Map::new();
        }
        let kind = text("tgt_type").unwrap_or_else(|| "glob".to_owned());
        let key = json::to_json(&map! {"fun" => fun.as_str(), "tgt" => tgt.clone(), "kind" => kind.as_str()}.into());
        let cell = {
            let mut results = self.results.lock();
            if results.len() >= MAX_REQUESTS && !results.contains_key(&key) {
                tracing::error!(fun, "mine.get is refused: hosts have made {MAX_REQUESTS} different requests");
                return Map::new();
            }
            Arc::clone(results.entry(key).or_default())
        };
        let call = async {
            match hosts.matching(&self.roster, tgt, kind).await {
                Ok(matching) => self.call(hosts, &fun, opts, matching).await,
                Err(error) => {
                    tracing::error!(error, "finding the hosts of mine.get failed");
                    Map::new()
                }
            }
        };
        cell.get_or_init(|| call).await.clone()
    }

    /// Calls the function on hosts, and returns the results of those that succeed.
    async fn call(&self, hosts: &dyn MineHosts, fun: &str, opts: &Map, matching: Vec<(MinionId, RosterHost)>) -> Map {
        let calls = matching.into_iter().map(|(id, host)| async move {
            let reason = match tokio::time::timeout(CALL_TIMEOUT, hosts.call_function(&id, &host, fun, opts)).await {
                Ok(Ok(result)) => return Some((Value::from(&id), result)),
                Ok(Err(reason)) => reason,
                Err(_) => "it timed out".into(),
            };
            tracing::error!(host = %id, result = %reason, "the host has no data for mine.get: is the function in its mine_functions?");
            None
        });
        stream::iter(calls).buffer_unordered(self.concurrency.max(1)).filter_map(std::future::ready).collect().await
    }
}
