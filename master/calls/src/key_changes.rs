//! Changes of minions' keys, for wheel functions and other parts of the master.

use brine_master_store::keys::{Act, Key, KeyError};
use brine_value::map;

use crate::WheelContext;

/// Applies an action to keys and publishes `salt/key` for each changed one. Rotates the publish key if a minion must
/// not decrypt further publishes. Returns the result for each key.
pub fn apply(context: &WheelContext, act: Act, keys: &[Key]) -> Vec<(Key, Result<(), KeyError>)> {
    let results = context.keys.apply(act, keys);
    let mut changed = false;
    for (key, _) in results.iter().filter(|(_, result)| result.is_ok()) {
        changed = true;
        let by = context.host.actor();
        tracing::info!(minion = %key.id, by, from = key.state.word(), "key {}", act.event_act());
        let mut body = map! {"result" => true, "act" => act.event_act(), "id" => &key.id};
        if let Some(Ok(Some(pem))) = act.new_state().map(|state| context.keys.get(state, &key.id)) {
            body.insert("pub".into(), pem.trim_end().into());
        }
        context.host.fire("salt/key", &body);
    }
    if changed && act != Act::Accept {
        context.host.rotate_key();
    }
    results
}
