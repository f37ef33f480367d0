//! `mine.get` of a host: hosts cannot send data to a mine, so the function is called on the hosts of the roster that the request
//! names. With `regular_minions` the mine of a running master is read, too.
//!
//! A host is not trusted with others: it gets the results of functions that are among their `mine_functions`, and of the
//! master's mine what its own id may read. Nor does it choose where `salt-ssh` logs in: the roster is that of the run, and one
//! that takes its hosts from the target (`scan`, people's own) has no data.

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use brine_ids::MinionId;
use brine_value::{FromValue, Map, Value, json, map};
use futures::stream::{self, StreamExt};
use parking_lot::Mutex;
use tokio::sync::OnceCell;

use crate::roster::{self, Host, RosterOptions};
use crate::session::{Call, Caller};

/// The maximum number of different requests of a run, each of which may call all hosts.
const REQUESTS: usize = 100;
/// The timeout of a function for the mine, including the push of the program.
const CALL_TIME: Duration = Duration::from_secs(300);
/// The rosters that list their hosts, whatever the target.
const LISTS: &[&str] = &["flat", "ansible", "sshconfig", "cache", "dir", "sshknownhosts"];

/// Asks the running master for mine data: `tgt`, `fun`, `tgt_type`, and the `id` that asks.
pub type Regular = Box<dyn Fn(Map) -> Pin<Box<dyn Future<Output = Map> + Send>> + Send + Sync>;

/// The sources of mine data.
pub struct Mine {
    /// The roster of the run.
    pub roster: RosterOptions,
    /// The mine of the running master.
    pub regular: Regular,
    /// The number of hosts that are called at the same time for one request.
    pub at_once: usize,
    /// The results of hosts, by request: the same for all that ask.
    pub found: Mutex<HashMap<String, Arc<OnceCell<Map>>>>,
}

impl Mine {
    /// Answers a request of this host, whose call has these options.
    pub(crate) async fn get(&self, caller: &Caller, id: &MinionId, opts: &Map, load: &Map) -> Map {
        let flag = |name: &str, otherwise: bool| load.get(name).and_then(bool::from_value).unwrap_or(otherwise);
        let part = |name: &str| load.get(name).cloned().unwrap_or_default();
        let mut found = Map::new();
        if flag("regular_minions", false) {
            let query = map! {"tgt" => part("tgt"), "fun" => part("fun"), "tgt_type" => part("tgt_type"), "id" => id};
            found.extend((self.regular)(query).await);
        }
        if flag("ssh_minions", true) {
            found.extend(self.of_hosts(caller, opts, load).await);
        }
        found
    }

    async fn of_hosts(&self, caller: &Caller, opts: &Map, load: &Map) -> Map {
        let text = |name: &str| load.get(name).and_then(Value::as_str).map(str::to_owned);
        let (Some(fun), Some(tgt)) = (text("fun"), load.get("tgt").cloned()) else { return Map::new() };
        if !LISTS.contains(&self.roster.roster.as_str()) {
            tracing::error!(roster = self.roster.roster, "mine.get needs a roster that lists its hosts");
            return Map::new();
        }
        let kind = text("tgt_type").unwrap_or_else(|| "glob".to_owned());
        let key = json::to_json(&map! {"fun" => fun.as_str(), "tgt" => tgt.clone(), "kind" => kind.as_str()}.into());
        let cell = {
            let mut kept = self.found.lock();
            if kept.len() >= REQUESTS && !kept.contains_key(&key) {
                tracing::error!(fun, "mine.get is refused: hosts have made {REQUESTS} different requests");
                return Map::new();
            }
            Arc::clone(kept.entry(key).or_default())
        };
        let call = async {
            let options = self.roster.clone();
            let answers = Arc::clone(&caller.answers);
            let hosts = caller
                .blocking
                .run(move |_| {
                    let kind = kind.parse().map_err(|error: brine_target::TargetError| error.to_string())?;
                    roster::hosts(&options, &tgt, kind, &answers.functions(None)).map_err(|error| error.to_string())
                })
                .await;
            match hosts.map_err(|error| error.to_string()).and_then(|hosts| hosts) {
                Ok(hosts) => {
                    self.called(caller, &Call::Mine { fun, opts: opts.clone() }, hosts.into_iter().collect()).await
                }
                Err(error) => {
                    tracing::error!(error, "finding the hosts of mine.get failed");
                    Map::new()
                }
            }
        };
        cell.get_or_init(|| call).await.clone()
    }

    /// Returns the results of hosts that have the function and return something.
    async fn called(&self, caller: &Caller, call: &Call, hosts: Vec<(MinionId, Host)>) -> Map {
        let calls = hosts.into_iter().map(|(id, host)| async move {
            // A call asks for data of the mine, and this one does not.
            let reply = tokio::time::timeout(CALL_TIME, Box::pin(caller.call(&id, &host, call))).await.ok();
            let result = match reply {
                Some(reply) if reply.retcode == 0 => return Some((Value::from(&id), reply.value)),
                reply => reply.map_or_else(|| "it timed out".into(), |reply| reply.value),
            };
            tracing::error!(host = %id, %result, "the host has no data for mine.get: is the function in its mine_functions?");
            None
        });
        stream::iter(calls).buffer_unordered(self.at_once.max(1)).filter_map(std::future::ready).collect().await
    }
}
