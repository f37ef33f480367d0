//! Queries of the mine, restricted to what the requesting minion may read.

use brine_function::CallError;
use brine_ids::MinionId;
use brine_master_store::storage::Storage;
use brine_target::{Pcre, Target, TargetError, TargetKind};
use brine_value::{Map, Value};
use brine_wire::MineQuery;

use super::Facts;
use crate::id_rules;

/// The field of a mine entry that restricts which minions may read it.
const ACL: &str = "__saltmine_acl__";
/// The field of a restricted mine entry that contains the data.
const DATA: &str = "__data__";

impl Facts {
    /// Returns the data in the mines of the targeted minions that `requester` may read. Pillar values in targets match
    /// exactly.
    pub fn mine_get(&self, storage: &Storage, requester: &MinionId, query: &MineQuery) -> Result<Map, CallError> {
        let mut mines = Map::new();
        let functions = self.mine_functions(requester, &query.functions);
        if functions.is_empty() {
            return Ok(mines);
        }
        let target = self.mine_target(query.tgt.clone(), &query.tgt_type).map_err(CallError::execution)?;
        for id in storage.accepted().map_err(CallError::execution)? {
            if !target.matches(&storage.minion_data.facts(&id)) {
                continue;
            }
            let mut mine = storage.mines.get(&id).map_err(CallError::execution)?;
            for function in &functions {
                let Some(entry) = mine.shift_remove(function.as_str()) else { continue };
                let Some(value) = self.mine_value(storage, requester, entry) else { continue };
                if !query.by_function {
                    mines.insert(id.as_str().into(), value);
                } else if let Value::Map(of_function) = mines.entry(function.as_str().into()).or_insert_with(Value::map)
                {
                    of_function.insert(id.as_str().into(), value);
                }
            }
        }
        Ok(mines)
    }

    /// Returns those functions that the option `mine_get` permits to a minion; all of them if it is not set.
    fn mine_functions<'a>(&self, requester: &MinionId, functions: &'a [String]) -> Vec<&'a String> {
        let Some(rules) = &self.config.mine_get else { return functions.iter().collect() };
        let allowed = id_rules::rules_for(rules, requester);
        let allowed: Vec<Pcre> = allowed.iter().filter_map(|rule| Pcre::parse(rule.as_str()?).ok()).collect();
        functions.iter().filter(|function| allowed.iter().any(|rule| rule.is_match(function))).collect()
    }

    fn mine_target(&self, tgt: Value, tgt_type: &str) -> Result<Target, TargetError> {
        let kind: TargetKind = tgt_type.to_lowercase().parse()?;
        Ok(self.target(kind, tgt, ":")?.with_exact_pillar())
    }

    /// Returns the data of a mine entry without its restriction; `None` if `requester` may not read it.
    fn mine_value(&self, storage: &Storage, requester: &MinionId, entry: Value) -> Option<Value> {
        let Value::Map(fields) = &entry else { return Some(entry) };
        if !fields.contains_key(ACL) {
            return Some(entry);
        }
        if let Some(allowed) = fields.get("allow_tgt").filter(|allowed| !allowed.is_nil()) {
            let kind = fields.get("allow_tgt_type").and_then(Value::as_str).unwrap_or("glob");
            let target = self.mine_target(allowed.clone(), kind).ok()?;
            if !target.matches(&storage.minion_data.facts(requester.as_str())) {
                tracing::debug!(minion = %requester, "mine data not returned: its allow_tgt excludes the minion");
                return None;
            }
        }
        result(entry)
    }
}

/// Returns the data of a mine entry without its restriction.
pub fn result(entry: Value) -> Option<Value> {
    match entry {
        Value::Map(mut fields) if fields.contains_key(ACL) => fields.swap_remove(DATA),
        entry => Some(entry),
    }
}
