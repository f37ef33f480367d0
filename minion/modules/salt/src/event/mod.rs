//! `event`: publishes events on the master's event bus and on the minion's own.

pub(crate) mod state;

use std::time::Duration;

use brine_context::local_bus::LocalBus;
use brine_context::{Context, MasterEvent, Module};
use brine_function::{Args, CallError, CallResult, Functions, function, registry};
use brine_value::levels::{self, MAX_LEVELS, TooDeep};
use brine_value::{Map, Value};

pub(super) static MODULE: Module = Module { functions: &[&FUNCTIONS], states: &[&state::FUNCTIONS], ..Module::EMPTY };

/// Execution functions of `event`.
pub static FUNCTIONS: Functions<Context> = registry!("event", [send, fire, fire_master]);

/// The arguments that describe the content of an event.
#[derive(Args)]
pub struct ContentArgs {
    /// Body of the event.
    #[default]
    pub(crate) data: Value,
    /// Fields next to the body.
    #[default]
    pub(crate) preload: Value,
    /// Whether the environment is added, or the list of variables to add.
    #[default(false.into())]
    pub(crate) with_env: Value,
    /// Whether the grains are added, or the list of grains to add.
    #[default(false.into())]
    pub(crate) with_grains: Value,
    /// Whether the pillar is added, or the list of keys to add.
    #[default(false.into())]
    pub(crate) with_pillar: Value,
}

/// The arguments of `event.send`.
#[derive(Args)]
pub struct SendArgs {
    /// Tag of the event.
    tag: String,
    #[args]
    content: ContentArgs,
    /// Whether `saltenv` and `pillarenv` of the minion are added.
    #[default(false.into())]
    with_env_opts: Value,
    /// Seconds to wait for the master.
    #[default(DEFAULT_TIMEOUT)]
    timeout: u64,
    /// Further fields of the body.
    #[keywords]
    kwargs: Map,
}

/// Fire an event on the master's bus, with data and keyword arguments as its body; without a master, on the
/// minion's own bus. `with_grains` and `with_pillar` add all grains or pillar keys, or those of a list; `with_env`
/// adds the environment, `with_env_opts` the minion's `saltenv` and `pillarenv`. Data takes precedence over keyword
/// arguments, and those over added values. `preload` has fields next to the data; `timeout` is the seconds to wait
/// for the master.
///
/// CLI Example:
///
///     salt-call event.send myco/mytag foo=Foo bar=Bar
///     salt-call event.send 'myco/mytag' '{foo: Foo, bar: Bar}'
#[function]
pub fn send(context: &Context, #[args] args: SendArgs) -> CallResult {
    let mut body = Map::new();
    if args.content.with_env.is_truthy() {
        let text = |text: std::ffi::OsString| Value::from(text.to_string_lossy().into_owned());
        let env: Map = std::env::vars_os().map(|(name, value)| (text(name), text(value))).collect();
        body.insert("environ".into(), chosen(&env, &args.content.with_env).into());
    }
    if args.content.with_grains.is_truthy() {
        body.insert("grains".into(), chosen(&context.grains(), &args.content.with_grains).into());
    }
    if args.content.with_pillar.is_truthy() {
        body.insert("pillar".into(), chosen(&context.pillar(), &args.content.with_pillar).into());
    }
    if args.with_env_opts.is_truthy() {
        body.insert("saltenv".into(), context.config().saltenv.clone().into());
        body.insert("pillarenv".into(), context.config().pillarenv.clone().into());
    }
    body.extend(args.kwargs);
    body.extend(args.content.data.as_map().cloned().unwrap_or_default());
    if has_master(context) {
        fire_master(context, body.into(), args.tag, args.content.preload, args.timeout)
    } else {
        fire(context, body.into(), args.tag, args.timeout)
    }
}

/// Fire an event on the minion's own bus. Returns false if the data is not a mapping or no minion is running. `timeout` is
/// without effect: a running minion accepts the event at once.
///
/// CLI Example:
///
///     salt '*' event.fire '{"data": "my event data"}' 'tag'
#[function]
pub fn fire(
    context: &Context,
    /// Data of the event, as a mapping.
    data: Value,
    /// Tag of the event.
    tag: String,
    /// Without effect: a running minion accepts the event at once.
    #[default(DEFAULT_TIMEOUT)]
    timeout: u64,
) -> CallResult {
    // A running minion accepts the event at once.
    _ = timeout;
    let Some(data) = data.as_map() else {
        tracing::warn!(tag, "event data is invalid: expected a mapping, got {}", data.type_name());
        return Ok(false.into());
    };
    levels::check(data).map_err(refused)?;
    let mut data = data.clone();
    data.extend(context.job.causes());
    let fired = context.minion.local.fire(&tag, &data);
    if let Err(error) = &fired {
        tracing::warn!(tag, %error, "publishing an event failed");
    }
    Ok(fired.is_ok().into())
}

/// Fire an event on the master's bus. Returns true if the master has accepted it, false if it does not within
/// `timeout` seconds or there is no master. `preload` has fields next to the data.
///
/// CLI Example:
///
///     salt '*' event.fire_master '{"data": "my event data"}' 'tag'
#[function]
pub fn fire_master(
    context: &Context,
    /// Data of the event, as a mapping.
    data: Value,
    /// Tag of the event.
    tag: String,
    /// Fields at the top of the event.
    #[default]
    preload: Value,
    /// Seconds to wait for the event to be published.
    #[default(DEFAULT_TIMEOUT)]
    timeout: u64,
) -> CallResult {
    if !has_master(context) {
        tracing::warn!("Local mode detected. Event with tag {tag} will NOT be sent.");
        return Ok(Value::Bool(false));
    }
    // The data is below the field `data` of the event's body.
    if levels::is_deeper(&data, MAX_LEVELS - 1) || levels::is_deeper(&preload, MAX_LEVELS) {
        return Err(refused(TooDeep));
    }
    let mut data = data;
    if let Value::Map(data) = &mut data {
        context.job.mark(data);
    }
    let extra_fields = match preload {
        Value::Map(fields) if !fields.is_empty() => Some(fields),
        // Salt's salt-call uses its own channel for its events, and adds no pretag.
        _ => matches!(context.minion.local, LocalBus::Sockets { .. }).then(Map::new),
    };
    let timeout = Some(Duration::from_secs(timeout));
    let fired = context.minion.upstream.fire_master(MasterEvent { tag, data, extra_fields, timeout });
    if let Err(error) = &fired {
        tracing::warn!(jid = context.job.jid, "{error}");
    }
    Ok(fired.is_ok().into())
}

/// Returns the error of an event that nests too deep.
fn refused(reason: TooDeep) -> CallError {
    CallError::execution(format!("the event is refused: {reason}"))
}

/// Whether events are sent to a master: as in Salt, with `file_client: local` only if `use_master_when_local` is set.
fn has_master(context: &Context) -> bool {
    context.minion.upstream.has_master() && !context.config().has_local_pillar()
}

/// Default timeout for the acceptance of an event, in seconds.
const DEFAULT_TIMEOUT: u64 = 60;

/// Returns the whole mapping, or its entries with the names of a list.
fn chosen(all: &Map, selection: &Value) -> Map {
    let Some(names) = selection.as_list() else { return all.clone() };
    names.iter().filter_map(|name| Some((name.clone(), all.get(name)?.clone()))).collect()
}

#[cfg(test)]
mod tests;
