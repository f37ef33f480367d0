//! `event`: firing events on the master's bus and on the minion's own.

use brine_core::function::CallError;
use brine_core::{Map, Value, functions};

use crate::context::Context;

functions! {
    module "event", context Context;

    /// Fires an event on the master's bus, with data and keyword arguments as its body, of which data counts
    /// first. `with_grains` and `with_pillar` add those: all, or the ones of a list; `with_env` adds the
    /// environment, `with_env_opts` saltenv and pillarenv. `preload` are fields beside the data. Without a
    /// master it goes to the minion's own bus.
    ///
    /// CLI Example:
    ///
    ///     salt-call event.send myco/mytag foo=Foo bar=Bar
    ///     salt-call event.send 'myco/mytag' '{foo: Foo, bar: Bar}'
    fn send(context, tag: String, data: Option<Map> = None, preload: Option<Map> = None, with_env: Value = false.into(), with_grains: Value = false.into(), with_pillar: Value = false.into(), with_env_opts: bool = false, **kwargs) {
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
        if with_env_opts {
            let config = context.config();
            body.insert("saltenv".into(), config.saltenv.clone().unwrap_or_else(|| "base".into()).into());
            body.insert("pillarenv".into(), config.pillarenv.clone().into());
        }
        body.extend(kwargs.into_iter().filter(|(key, _)| !key.as_str().is_some_and(|key| key.starts_with("__pub_"))));
        body.extend(data.unwrap_or_default());
        if context.config().file_client == "local" {
            return fire(context, body, tag, 60.0);
        }
        fire_master(context, body, tag, preload, 60.0)
    }

    /// Fires an event on the minion's own bus. Gives false if no minion runs here.
    ///
    /// CLI Example:
    ///
    ///     salt '*' event.fire '{"data": "my event data"}' 'tag'
    fn fire(context, data: Map, tag: String, timeout: f64 = 60.0) {
        _ = timeout;
        let mut data = data;
        data.extend(caused(context));
        let fired = context.minion.upstream.fire_local(&tag, data);
        if let Err(error) = &fired {
            tracing::error!(tag, error, "an event could not be fired");
        }
        Ok(Value::Bool(fired.is_ok()))
    }

    /// Fires an event on the master's bus, with the fields of `preload` beside its data. Gives true when the
    /// master has it, false without a master.
    ///
    /// CLI Example:
    ///
    ///     salt '*' event.fire_master '{"data": "my event data"}' 'tag'
    fn fire_master(context, data: Map, tag: String, preload: Option<Map> = None, timeout: f64 = 60.0) {
        _ = timeout;
        if context.config().file_client == "local" {
            tracing::warn!("Local mode detected. Event with tag {tag} will NOT be sent.");
            return Ok(Value::Bool(false));
        }
        let mut data = data;
        mark(context, &mut data);
        let beside = preload.unwrap_or_default();
        context.minion.upstream.fire_master(&tag, data, &beside).map_err(CallError::Execution)?;
        Ok(Value::Bool(true))
    }
}

/// Adds to an event for the master what led to the job that it is fired in.
pub(crate) fn mark(context: &Context, data: &mut Map) {
    data.extend(caused(context));
    if context.job.load.contains_key("tgt") {
        // The master knows what led to the job.
        data.insert("_jid".into(), context.job.jid.as_str().into());
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
