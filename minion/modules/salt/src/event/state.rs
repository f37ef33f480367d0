//! `event`: states that publish events.

use brine_context::{StateContext, StateReturn};
use brine_function::{Args, CallError, CallResult, Functions, function, registry};
use brine_value::{Map, Value, map};

/// State functions of `event`.
pub static FUNCTIONS: Functions<StateContext> = registry!("event", [send, fire_master, wait, mod_watch]);

/// The arguments of `event.send`.
#[derive(Args)]
pub struct SendArgs {
    /// Tag of the event.
    name: String,
    #[args]
    content: super::ContentArgs,
    /// Whether the event is reported as the change.
    #[default(true)]
    show_changed: bool,
    /// Further fields of the body.
    #[keywords]
    kwargs: Map,
}

/// Fire an event on the master's bus, as the execution function `event.send`; `name` is its tag. The event is
/// reported as the change, unless `show_changed` is false.
///
/// SLS Example:
///
///     app/deployed:
///       event.send:
///         - data:
///             version: '1.2'
///         - with_grains:
///           - id
///         - onchanges:
///           - file: /srv/app
#[function]
pub fn send(context: &StateContext, #[args] args: SendArgs) -> CallResult {
    let changes = if args.show_changed {
        map! {"tag" => &args.name, "data" => args.content.data.clone()}
    } else {
        Map::new()
    };
    if context.test {
        return Ok(StateReturn::predicted(&args.name, "Event would have been fired").with_changes(changes).into());
    }
    let mut keyword = map! {
        "data" => args.content.data,
        "preload" => args.content.preload,
        "with_env" => args.content.with_env,
        "with_grains" => args.content.with_grains,
        "with_pillar" => args.content.with_pillar,
    };
    keyword.extend(args.kwargs);
    let sent = context.call.call("event.send", Args { positional: vec![args.name.as_str().into()], keyword });
    let mut outcome = StateReturn::ok(&args.name, "Event fired").with_changes(changes);
    match sent {
        Ok(sent) => outcome.result = Some(sent.is_truthy()),
        Err(CallError::Execution(message)) => outcome = StateReturn::failed(&args.name, message),
        Err(error) => return Err(error),
    }
    Ok(outcome.into())
}

/// Fire an event on the master's bus, as `event.send`.
///
/// SLS Example:
///
///     app/deployed:
///       event.fire_master:
///         - data:
///             version: '1.2'
#[function]
pub fn fire_master(
    context: &StateContext,
    /// Tag of the event.
    name: String,
    /// Data of the event, and further arguments of `event.send`.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    call_send(context, name, kwargs)
}

/// Fire an event only when a watched state has changes.
///
/// SLS Example:
///
///     app/config/changed:
///       event.wait:
///         - data:
///             app: web
///         - watch:
///           - file: /etc/app.conf
#[function]
pub fn wait(
    _context: &StateContext,
    /// Tag of the event.
    name: String,
    /// Data of the event, and further arguments of `event.send`.
    #[keywords]
    _kwargs: Map,
) -> CallResult {
    Ok(StateReturn::ok(&name, "").into())
}

/// Fire the event when a watched state has changes.
///
/// SLS Example:
///
///     app/config/changed:
///       event.wait:
///         - watch:
///           - file: /etc/app.conf
#[function]
pub fn mod_watch(
    context: &StateContext,
    /// Tag of the event.
    name: String,
    /// The arguments of the watching state, and `sfun`, its function.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    let mut kwargs = kwargs;
    kwargs.shift_remove("sfun");
    call_send(context, name, kwargs)
}

fn call_send(context: &StateContext, name: String, mut kwargs: Map) -> Result<Value, CallError> {
    kwargs.insert("name".into(), name.into());
    context.call.minion.states.call(context, "event.send", Args::keyword(kwargs))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use brine_context::MasterEvent;

    use super::*;
    use crate::testing::{self, Alone};

    #[test]
    fn event_is_fired_except_in_test_mode() {
        let (fired, would) = ((Value::Bool(true), "Event fired"), (Value::Nil, "Event would have been fired"));
        let data = || map! {"a" => 1};
        let expected_changes = || map! {"tag" => "my/tag", "data" => data()};
        for (fun, test, show, (result, comment), changes) in [
            ("send", false, true, fired.clone(), expected_changes()),
            ("send", false, false, fired.clone(), map! {}),
            ("send", true, true, would, expected_changes()),
            ("fire_master", false, true, fired.clone(), expected_changes()),
            ("mod_watch", false, true, fired, expected_changes()),
        ] {
            let master = Arc::new(Alone::default());
            let mut context = testing::state_context(test, &[]);
            context.call = testing::context_of(testing::minion_with(&[], Arc::clone(&master) as _));
            let args = map! {"name" => "my/tag", "data" => data(), "show_changed" => show, "foo" => "bar"};
            let outcome =
                context.call.minion.states.call(&context, &format!("event.{fun}"), Args::keyword(args)).unwrap();
            assert_eq!(
                (outcome.get("result"), outcome.get("comment")),
                (Some(&result), Some(&comment.into())),
                "{fun}"
            );
            assert_eq!(outcome.get("changes"), Some(&changes.into()), "{fun}");
            let events = master.fired.lock();
            let sent = (!test).then(|| MasterEvent {
                extra_fields: Some(Map::new()),
                timeout: Some(std::time::Duration::from_secs(60)),
                ..MasterEvent::new("my/tag", map! {"foo" => "bar", "a" => 1})
            });
            assert_eq!(events.first(), sent.as_ref(), "{fun}");
        }
    }
}
