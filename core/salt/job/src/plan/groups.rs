//! Groups of equal dry runs: the minions that would change in the same way, those that would not change, those whose dry
//! run failed, and those that did not answer.

use brine_value::{Map, Value, map};
use indexmap::IndexMap;

use super::states::Outcome;

/// The dry runs of many minions. Holds the changes of each group once.
#[derive(Debug, Clone, Default)]
pub struct Groups {
    /// The minions and the states, by digest.
    changed: IndexMap<String, (Vec<String>, Value)>,
    unchanged: Vec<String>,
    /// The minions, by the messages of the failure.
    failed: IndexMap<Vec<String>, Vec<String>>,
    silent: Vec<String>,
}

impl Groups {
    /// Adds the return of a minion's dry run.
    pub fn add(&mut self, id: &str, returned: &Value, jid: &str) {
        match Outcome::read(returned, jid) {
            Outcome::Planned(states) if states.is_empty() => self.unchanged.push(id.to_owned()),
            Outcome::Planned(states) => {
                let group = self.changed.entry(states.digest());
                group.or_insert_with(|| (Vec::new(), states.to_value())).0.push(id.to_owned());
            }
            Outcome::Failed(messages) => self.failed.entry(messages).or_default().push(id.to_owned()),
        }
    }

    /// Adds a minion that did not answer.
    pub fn add_silent(&mut self, id: &str) {
        self.silent.push(id.to_owned());
    }

    /// Returns whether nothing was added.
    pub fn is_empty(&self) -> bool {
        self.changed.is_empty() && self.unchanged.is_empty() && self.failed.is_empty() && self.silent.is_empty()
    }

    /// Returns whether a minion failed or did not answer.
    pub fn has_failures(&self) -> bool {
        !self.failed.is_empty() || !self.silent.is_empty()
    }

    /// Returns the minions that would change, with the digest of their changes: minions by digest.
    pub fn digests(&self) -> Map {
        self.changed.iter().map(|(digest, (minions, _))| (digest.as_str().into(), sorted(minions))).collect()
    }

    /// Returns the groups, the unusual ones (the smallest) first: `groups` with `digest`, `minions` and `states`, `failed`
    /// with `minions` and `errors`, `silent` and `unchanged`.
    pub fn to_value(&self) -> Map {
        let mut groups: Vec<_> = self.changed.iter().collect();
        groups.sort_by_key(|(_, (minions, _))| (minions.len(), minions.iter().min()));
        let group = |(digest, (minions, states)): (&String, &(Vec<String>, Value))| {
            Value::from(map! {"digest" => digest.as_str(), "minions" => sorted(minions), "states" => states.clone()})
        };
        let mut failed: Vec<_> = self.failed.iter().collect();
        failed.sort_by_key(|(_, minions)| (minions.len(), minions.iter().min()));
        let failure = |(errors, minions): (&Vec<String>, &Vec<String>)| {
            Value::from(map! {"minions" => sorted(minions), "errors" => errors.clone()})
        };
        map! {
            "groups" => groups.into_iter().map(group).collect::<Value>(),
            "failed" => failed.into_iter().map(failure).collect::<Value>(),
            "silent" => sorted(&self.silent),
            "unchanged" => sorted(&self.unchanged),
        }
    }
}

fn sorted(ids: &[String]) -> Value {
    let mut ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    ids.sort_unstable();
    ids.into_iter().collect()
}
