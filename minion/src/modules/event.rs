//! `event`: firing events on the master's bus and on the minion's own.

use brine_core::function::CallError;
use brine_core::{Map, Value, functions};

use crate::context::Context;

functions! {
    module "event", context Context;

    /// Fires an event on the master's bus, with data and keyword arguments as its body. `with_grains` and
    /// `with_pillar` add those: all, or the ones of a list; `with_env` adds the environment.
    ///
    /// CLI Example:
    ///
    ///     salt-call event.send myco/mytag foo=Foo bar=Bar
    fn send(context, tag: String, data: Map = Map::new(), with_grains: Value = false.into(), with_pillar: Value = false.into(), with_env: Value = false.into(), **kwargs) {
        let mut body = Map::new();
        if with_env.is_truthy() {
            let env: Map = std::env::vars().map(|(name, value)| (name.into(), value.into())).collect();
            body.insert("environ".into(), chosen(&env, &with_env).into());
        }
        if with_grains.is_truthy() {
            body.insert("grains".into(), chosen(&context.grains(), &with_grains).into());
        }
        if with_pillar.is_truthy() {
            body.insert("pillar".into(), chosen(&context.pillar(), &with_pillar).into());
        }
        body.extend(data);
        body.extend(kwargs.into_iter().filter(|(key, _)| !key.as_str().is_some_and(|key| key.starts_with("__pub_"))));
        fire_master(context, body, tag)
    }

    /// Fires an event on the minion's own bus.
    ///
    /// CLI Example:
    ///
    ///     salt '*' event.fire '{"data": "my event data"}' 'tag'
    fn fire(context, data: Map, tag: String) {
        let mut data = data;
        data.extend(caused(context));
        context.minion.upstream.fire_local(&tag, data).map_err(CallError::Execution)?;
        Ok(Value::Bool(true))
    }

    /// Fires an event on the master's bus. Gives true when the master has it.
    ///
    /// CLI Example:
    ///
    ///     salt '*' event.fire_master '{"data": "my event data"}' 'tag'
    fn fire_master(context, data: Map, tag: String) {
        let mut data = data;
        data.extend(caused(context));
        if context.job.load.contains_key("tgt") {
            // The master knows what led to the job.
            data.insert("_jid".into(), context.job.jid.as_str().into());
        }
        context.minion.upstream.fire_master(&tag, data).map_err(CallError::Execution)?;
        Ok(Value::Bool(true))
    }
}

/// What a reaction says of itself in the events that it fires.
fn caused(context: &Context) -> Map {
    let fields = context.job.load.iter().filter(|(name, _)| name.as_str().is_some_and(|name| name.starts_with('_')));
    fields.map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// All of a mapping, or the entries of a list of names.
fn chosen(all: &Map, wanted: &Value) -> Map {
    let Some(names) = wanted.as_list() else { return all.clone() };
    let found = names.iter().map(|name| (name.clone(), all.get(name).cloned().unwrap_or_default()));
    found.collect()
}
