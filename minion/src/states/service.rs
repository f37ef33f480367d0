//! `service`: services as states.

use brine_core::{Value, functions, map};

use super::{StateContext, StateReturn};
use crate::modules::service;

functions! {
    module "service", context StateContext;

    /// A service that runs, and starts with the host if `enable` says so.
    fn running(context, name: String, enable: Value = Value::Nil, **_kwargs) {
        bring(context, &name, true, &enable)
    }

    /// A service that does not run.
    fn dead(context, name: String, enable: Value = Value::Nil, **_kwargs) {
        bring(context, &name, false, &enable)
    }

    /// A service that starts with the host.
    fn enabled(context, name: String, **_kwargs) {
        only_enable(context, &name, true)
    }

    /// A service that does not start with the host.
    fn disabled(context, name: String, **_kwargs) {
        only_enable(context, &name, false)
    }

    /// What is done when something watched has changed: a restart, or a reload if `reload` says so.
    fn mod_watch(context, name: String, sfun: String = "running".into(), reload: bool = false, **_kwargs) {
        if sfun == "dead" {
            return bring(context, &name, false, &Value::Nil);
        }
        let word = if reload { "reload" } else { "restart" };
        if context.test {
            return Ok(StateReturn::would(&name, format!("Service is set to be {word}ed")).into());
        }
        let call = &context.call;
        let done = if reload { service::reload(call, name.clone())? } else { service::restart(call, name.clone())? };
        let good = done.is_truthy();
        let mut result = StateReturn::ok(&name, if good { format!("Service {word}ed") } else { format!("Failed to {word} the service") });
        result.result = Some(good);
        Ok(result.with_changes(map! {&name => good}).into())
    }
}

type Returned = Result<Value, brine_core::function::CallError>;

fn missing(name: &str) -> StateReturn {
    StateReturn::failed(name, format!("The named service {name} is not available"))
}

fn bring(context: &StateContext, name: &str, up: bool, enable: &Value) -> Returned {
    let call = &context.call;
    let own = || name.to_owned();
    if !service::available(call, own())?.is_truthy() {
        let absent_is_fine = StateReturn::ok(name, format!("The named service {name} is not available"));
        return Ok(if up { missing(name) } else { absent_is_fine }.into());
    }
    let runs = service::status(call, own())?.is_truthy();
    let wants_enable = enable.as_bool();
    let enable_differs = match wants_enable {
        Some(wanted) => service::enabled(call, own())?.is_truthy() != wanted,
        None => false,
    };
    if runs == up && !enable_differs {
        let word = if up { "running" } else { "dead" };
        return Ok(
            StateReturn::ok(name, format!("The service {name} is already {}", if up { word } else { "dead" })).into()
        );
    }
    if context.test {
        let word = if up { "start" } else { "be killed" };
        let comment = if runs == up {
            format!("Service {name} set to be {}abled", if wants_enable == Some(true) { "en" } else { "dis" })
        } else {
            format!("Service {name} is set to {word}")
        };
        return Ok(StateReturn::would(name, comment).into());
    }
    let mut good = true;
    if runs != up {
        good &= if up { service::start(call, own())? } else { service::stop(call, own())? }.is_truthy();
    }
    if let (true, Some(wanted)) = (enable_differs, wants_enable) {
        good &= if wanted { service::enable(call, own())? } else { service::disable(call, own())? }.is_truthy();
    }
    if !good {
        return Ok(
            StateReturn::failed(name, format!("Service {name} failed to {}", if up { "start" } else { "die" })).into()
        );
    }
    let comment = match (up, wants_enable) {
        (true, Some(true)) => format!("Service {name} has been enabled, and is running"),
        (true, _) => format!("Started service {name}"),
        (false, _) => format!("Service {name} was killed"),
    };
    Ok(StateReturn::ok(name, comment).with_changes(map! {name => true}).into())
}

fn only_enable(context: &StateContext, name: &str, wanted: bool) -> Returned {
    let call = &context.call;
    if !service::available(call, name.to_owned())?.is_truthy() {
        return Ok(missing(name).into());
    }
    let word = if wanted { "enabled" } else { "disabled" };
    if service::enabled(call, name.to_owned())?.is_truthy() == wanted {
        return Ok(
            StateReturn::ok(name, format!("Service {name} is already {word}, and is in the desired state")).into()
        );
    }
    if context.test {
        return Ok(StateReturn::would(name, format!("Service {name} set to be {word}")).into());
    }
    let own = name.to_owned();
    let good = if wanted { service::enable(call, own)? } else { service::disable(call, own)? }.is_truthy();
    if !good {
        return Ok(StateReturn::failed(name, format!("Service {name} could not be {word}")).into());
    }
    Ok(StateReturn::ok(name, format!("Service {name} has been {word}, and is in the desired state"))
        .with_changes(map! {name => true})
        .into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    #[test]
    fn a_service_that_is_not_there_is_told() {
        let context = testing::state_context(false, &[]);
        for (fun, result) in [("service.running", false), ("service.enabled", false), ("service.dead", true)] {
            let args = brine_core::function::Args::keyword(map! {"name" => "no-such-service"});
            let done = context.call.minion.states.call(&context, fun, args).unwrap();
            assert_eq!(done.get("result"), Some(&result.into()), "{fun}");
            assert_eq!(done.get("comment"), Some(&"The named service no-such-service is not available".into()));
        }
    }
}
