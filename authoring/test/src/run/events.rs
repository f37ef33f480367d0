//! The reactions to the event of a test.

use std::sync::Arc;

use brine_context::template_host::MinionHost;
use brine_reactor::Entries;
use brine_value::{Map, Value};

use super::Compiled;
use crate::format::Given;
use crate::host::Opened;

/// Plans the reactions to an event.
pub(super) fn plan(world: &Opened, given: &Given, compiled: &mut Compiled, tag: &str, data: &Map) {
    let reactor = if given.reactor.is_nil() {
        given.opts.get("reactor").cloned().unwrap_or_default()
    } else {
        given.reactor.clone()
    };
    let entries = match Entries::from_config(&reactor) {
        Ok(entries) => entries,
        Err(error) => {
            compiled.errors.push(error.to_string());
            return;
        }
    };
    let opts = Arc::new(given.opts.clone());
    let host = MinionHost::new(world.context.for_template()).host();
    let preview = brine_reactor::preview(&entries, &opts, &world.context.grains(), host, (tag, data.clone()));
    compiled.errors = preview.errors;
    let one = |key: String, value: Value| Value::Map([(Value::from(key), value)].into_iter().collect());
    compiled.reactions = preview.reactions.iter().map(|reaction| one(reaction.name(), reaction.to_value())).collect();
}
