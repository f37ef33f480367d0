//! The link to the master: events and pillar.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use brine_config::{MinionConfig, template_opts};
use brine_context::masterless::LocalUpstream;
use brine_context::{Grains, MasterEvent, Upstream, UpstreamError};
use brine_ids::MinionId;
use brine_value::{Map, Value, map, merge_deep};
use brine_zmtp::Endpoint;
use parking_lot::Mutex;
use tokio::runtime::Handle;

use crate::channel::Channel;
use crate::outbox::Outbox;

/// The queues of events for the other masters that a minion is connected to at once, set once all of them exist.
pub type Others = Arc<OnceLock<Vec<Arc<Outbox>>>>;

/// The commands that are sent to all masters, as in Salt: each master has its own mine.
const FOR_ALL_MASTERS: &[&str] = &["_mine", "_mine_delete", "_mine_flush"];

/// The link of a minion to one of its masters. Events and mine data are also sent to the other ones.
pub struct MasterUpstream {
    pub id: MinionId,
    pub config: Arc<MinionConfig>,
    pub channel: Arc<Channel>,
    pub runtime: Handle,
    pub grains: Arc<Grains>,
    /// The generation of a session with a Salt master, and whether the master's version masks the pillar; `None` until
    /// known.
    pub masks: Mutex<Option<(u64, bool)>>,
    /// The other masters.
    pub others: Others,
    /// The pillar and `master_tops` of this host, with `file_client: local`.
    pub local: Option<Arc<LocalUpstream>>,
    /// Whether the pillar is that of this host.
    pub has_local_pillar: bool,
    /// Whether the minion connects to no master.
    pub is_alone: bool,
}

impl Upstream for MasterUpstream {
    fn has_master(&self) -> bool {
        !self.is_alone
    }

    fn fire_master(&self, event: MasterEvent) -> Result<(), UpstreamError> {
        if let Some(local) = self.local.as_ref().filter(|_| self.is_alone) {
            return local.fire_master(event);
        }
        self.send_to_others(&event.tag, || event.request(self.id.as_str()));
        self.runtime.block_on(send_event(&self.channel, &self.id, &event))
    }

    fn pillar(&self, saltenv: Option<&str>, pillarenv: Option<&str>, over: &Map) -> Result<Map, UpstreamError> {
        if let Some(local) = self.local_pillar() {
            return local.pillar(saltenv, pillarenv, over);
        }
        self.ask_pillar(pillar_load(&self.config, &self.grains.get(), saltenv, pillarenv, over))
    }

    fn pillar_with(&self, external: &Map, over: &Map) -> Result<Map, UpstreamError> {
        if let Some(local) = self.local_pillar() {
            return local.pillar_with(external, over);
        }
        let mut load = pillar_load(&self.config, &self.grains.get(), None, None, over);
        load.insert("ext".into(), external.clone().into());
        self.ask_pillar(load)
    }

    fn refreshed_pillar(&self, saltenv: Option<&str>, pillarenv: Option<&str>) -> Result<Map, UpstreamError> {
        if let Some(local) = self.local_pillar() {
            return local.refreshed_pillar(saltenv, pillarenv);
        }
        let mut load = pillar_load(&self.config, &self.grains.get(), saltenv, pillarenv, &Map::new());
        load.insert("clean_cache".into(), true.into());
        self.ask_pillar(load)
    }

    fn publish_port(&self) -> Option<u16> {
        match self.channel.publish_endpoint()? {
            Endpoint::Tcp(_, port) => Some(port),
            Endpoint::Ipc(_) => None,
        }
    }

    fn master_tops(&self, opts: Map) -> Result<Map, UpstreamError> {
        if let Some(local) = &self.local {
            return local.master_tops(opts);
        }
        match self.ask(map! {"cmd" => "_master_tops", "opts" => opts})? {
            Value::Map(assigned) => Ok(assigned),
            _ => Ok(Map::new()),
        }
    }

    fn masks_pillar(&self) -> bool {
        if self.channel.is_brine() || self.is_alone {
            return true;
        }
        // An upgraded master begins a new session.
        let session = self.channel.generation();
        if let Some((_, masks)) = self.masks.lock().filter(|(asked, _)| *asked == session) {
            return masks;
        }
        // Salt 3008 minions send this at their start. Masters before 3008 do not support the command, and their reply
        // is empty.
        let load = map! {"cmd" => "_register_resources", "resources" => Map::new(), "resource_grains" => Map::new()};
        match self.ask(load) {
            Ok(answer) => {
                let masks = answer.is_truthy();
                tracing::debug!(masks, "queried the version of the Salt master");
                *self.masks.lock() = Some((session, masks));
                masks
            }
            Err(error) => {
                tracing::warn!(%error, "querying the version of the Salt master failed: the pillar is masked");
                true
            }
        }
    }

    fn ask(&self, mut load: Map) -> Result<Value, UpstreamError> {
        if let Some(local) = self.local.as_ref().filter(|_| self.is_alone) {
            return local.ask(load);
        }
        load.insert("id".into(), (&self.id).into());
        if let Some(command) =
            load.get("cmd").and_then(Value::as_str).filter(|command| FOR_ALL_MASTERS.contains(command))
        {
            self.send_to_others(command, || load.clone());
        }
        Ok(self.runtime.block_on(self.channel.request(load))?)
    }
}

impl MasterUpstream {
    /// Returns the pillar of this host, unless the minion has that of the master.
    fn local_pillar(&self) -> Option<&Arc<LocalUpstream>> {
        self.local.as_ref().filter(|_| self.has_local_pillar)
    }

    /// Queues a load for the other masters; a master that is not connected receives it later.
    fn send_to_others(&self, label: &str, load: impl Fn() -> Map) {
        for other in self.others.get().into_iter().flatten() {
            other.push(label, &load());
        }
    }

    fn ask_pillar(&self, load: Map) -> Result<Map, UpstreamError> {
        let answer = self.runtime.block_on(self.channel.request(load))?;
        answer.as_map().cloned().ok_or(UpstreamError::NoPillar { peer: "the master" })
    }
}

/// Whether a reply accepts an event: a Brine master replies `True`, a Salt master nothing.
pub fn is_accepted(answer: &Value) -> bool {
    matches!(answer, Value::Bool(true) | Value::Nil)
}

/// Sends an event to the master.
pub async fn send_event(channel: &Arc<Channel>, id: &MinionId, event: &MasterEvent) -> Result<(), UpstreamError> {
    let sent = channel.request(event.request(id.as_str()));
    let within = event.timeout.unwrap_or(Duration::MAX);
    match tokio::time::timeout(within, sent).await {
        Ok(Ok(answer)) if is_accepted(&answer) => Ok(()),
        Ok(Ok(_)) => Err(UpstreamError::RefusedEvent { tag: event.tag.clone() }),
        Ok(Err(error)) => Err(error.into()),
        Err(_) => Err(UpstreamError::TimedOut { tag: event.tag.clone(), within }),
    }
}

/// Returns the request for a pillar.
pub fn pillar_load(
    config: &MinionConfig,
    grains: &Map,
    saltenv: Option<&str>,
    pillarenv: Option<&str>,
    over: &Map,
) -> Map {
    let mut load = map! {
        "cmd" => "_pillar",
        "grains" => grains.clone(),
        "saltenv" => saltenv,
        "pillarenv" => pillarenv,
        "pillar_override" => over.clone(),
        "ver" => "2",
    };
    let extra = extra_minion_data(config);
    if !extra.is_empty() {
        load.insert("extra_minion_data".into(), extra.into());
    }
    load
}

/// Returns the options for `ext_pillar` (`pass_to_ext_pillars`), each inside of the mappings that lead to it.
fn extra_minion_data(config: &MinionConfig) -> Map {
    let mut extra = Map::new();
    if config.pass_to_ext_pillars.is_empty() {
        return extra;
    }
    let opts = template_opts(config);
    for path in &config.pass_to_ext_pillars {
        let keys: Vec<&str> = path.split(':').collect();
        let (first, rest) = keys.split_first().map_or(("", &[][..]), |(first, rest)| (*first, rest));
        let value = rest.iter().try_fold(opts.get(first), |value, key| Some(value?.get(key)));
        let Some(value) = value.flatten() else { continue };
        let whole = keys.iter().rev().fold(value.clone(), |value, key| map! {*key => value}.into());
        if let Value::Map(whole) = whole {
            merge_deep(&mut extra, &whole, true);
        }
    }
    extra
}

#[cfg(test)]
mod tests {
    use super::*;
    use brine_value::list;

    #[test]
    fn options_for_external_pillars_are_sent_with_their_paths() {
        let opts = map! {"site" => map! {"name" => "b", "racks" => list![1]}, "plain" => 1};
        let paths = ["site:name", "site:racks", "plain", "plain:deeper", "nothing:at:all"];
        let config =
            MinionConfig { opts, pass_to_ext_pillars: paths.map(str::to_owned).into(), ..MinionConfig::default() };
        let load = pillar_load(&config, &Map::new(), None, None, &Map::new());
        let sent = map! {"site" => map! {"name" => "b", "racks" => list![1]}, "plain" => 1};
        assert_eq!(load.get("extra_minion_data"), Some(&sent.into()));
        let silent = pillar_load(&MinionConfig::default(), &Map::new(), None, None, &Map::new());
        assert_eq!(silent.get("extra_minion_data"), None);
    }
}
