//! `event`: events as states.

use brine_core::function::{Args, CallError};
use brine_core::{Map, Value, functions, map};

use super::{StateContext, StateReturn};

functions! {
    module "event", context StateContext;

    /// Fires an event on the master's bus; `name` is its tag.
    fn send(context, name: String, data: Option<Map> = None, with_grains: Value = false.into(), with_pillar: Value = false.into(), with_env: Value = false.into(), **_kwargs) {
        let changes = map! {"tag" => &name, "data" => data.clone()};
        if context.test {
            return Ok(StateReturn::would(&name, "Event would have been fired").with_changes(changes).into());
        }
        let args = map! {
            "data" => data.unwrap_or_default(), "with_grains" => with_grains, "with_pillar" => with_pillar, "with_env" => with_env,
        };
        let sent = context.call.call("event.send", Args { positional: vec![name.as_str().into()], keyword: args });
        let mut done = StateReturn::ok(&name, "Event fired").with_changes(changes);
        match sent {
            Ok(sent) => done.result = Some(sent.is_truthy()),
            Err(CallError::Execution(message)) => done = StateReturn::failed(&name, message),
            Err(error) => return Err(error),
        }
        Ok(done.into())
    }

    /// Fires an event only when something watched has changed.
    fn wait(_context, name: String, **_kwargs) {
        Ok(StateReturn::ok(&name, "").into())
    }

    /// What is done when something watched has changed: the event is fired.
    fn mod_watch(context, name: String, **kwargs) {
        let mut kwargs = kwargs;
        kwargs.shift_remove("sfun");
        kwargs.insert("name".into(), name.into());
        context.call.minion.states.call(context, "event.send", Args::keyword(kwargs))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    #[test]
    fn an_event_is_fired_unless_this_is_a_test() {
        for (test, result, comment) in
            [(false, Value::Bool(true), "Event fired"), (true, Value::Nil, "Event would have been fired")]
        {
            let context = testing::state_context(test, &[]);
            let args = Args::keyword(map! {"name" => "my/tag", "data" => map! {"a" => 1}});
            let done = context.call.minion.states.call(&context, "event.send", args).unwrap();
            assert_eq!((done.get("result"), done.get("comment")), (Some(&result), Some(&comment.into())));
            assert_eq!(done.get("changes"), Some(&map! {"tag" => "my/tag", "data" => map! {"a" => 1}}.into()));
        }
    }
}
