//! `service`: services as states.

use brine_core::function::CallError;
use brine_core::{Value, functions, map};

use super::{StateContext, StateReturn};
use crate::context::Context;
use crate::modules::service::Init;

functions! {
    module "service", context StateContext;

    /// A service that runs, and with `enable` starts with the host or does not.
    fn running(context, name: String, enable: Option<bool> = None, init_delay: Option<f64> = None, **_kwargs) {
        let host = Host { init: Init::of_host(), call: &context.call };
        if offline(context) {
            return Ok(StateReturn::ok(&name, "Running in OFFLINE mode. Nothing to do").into());
        }
        let delay = std::time::Duration::from_secs_f64(init_delay.unwrap_or(0.0).clamp(0.0, 3600.0));
        told(&name, be(&host, context, &name, true, enable, delay))
    }

    /// A service that does not run, and with `enable` starts with the host or does not.
    fn dead(context, name: String, enable: Option<bool> = None, **_kwargs) {
        let host = Host { init: Init::of_host(), call: &context.call };
        if offline(context) {
            return Ok(StateReturn::ok(&name, "Running in OFFLINE mode. Nothing to do").into());
        }
        told(&name, be(&host, context, &name, false, enable, std::time::Duration::ZERO))
    }

    /// A service that starts with the host.
    fn enabled(context, name: String, **_kwargs) {
        let host = Host { init: Init::of_host(), call: &context.call };
        told(&name, enable_state(&host, context, &name, true))
    }

    /// A service that does not start with the host.
    fn disabled(context, name: String, **_kwargs) {
        let host = Host { init: Init::of_host(), call: &context.call };
        told(&name, enable_state(&host, context, &name, false))
    }

    /// What is done when something watched has changed: the service is restarted, or with `reload`
    /// reads its configuration again; one that should be dead is stopped.
    fn mod_watch(context, name: String, sfun: String = "running".into(), reload: bool = false, **_kwargs) {
        let host = Host { init: Init::of_host(), call: &context.call };
        told(&name, watched(&host, context, &name, &sfun, reload))
    }
}

/// What a service can be asked and told.
trait Services {
    fn is_available(&self, name: &str) -> Result<bool, CallError>;
    fn is_running(&self, name: &str) -> Result<bool, CallError>;
    fn is_enabled(&self, name: &str) -> Result<bool, CallError>;
    fn act(&self, action: &str, name: &str) -> Result<bool, CallError>;
}

/// The services of this host.
struct Host<'c> {
    init: Init,
    call: &'c Context,
}

impl Services for Host<'_> {
    fn is_available(&self, name: &str) -> Result<bool, CallError> {
        self.init.is_available(self.call, name)
    }

    fn is_running(&self, name: &str) -> Result<bool, CallError> {
        self.init.is_running(self.call, name)
    }

    fn is_enabled(&self, name: &str) -> Result<bool, CallError> {
        self.init.is_enabled(self.call, name)
    }

    fn act(&self, action: &str, name: &str) -> Result<bool, CallError> {
        self.init.act(self.call, action, name)
    }
}

/// Without an init, as in most containers, there is nobody to start services.
fn offline(context: &StateContext) -> bool {
    context.call.grains().get("init").and_then(Value::as_str) == Some("unknown")
}

fn told(name: &str, done: Result<StateReturn, CallError>) -> Result<Value, CallError> {
    match done {
        Ok(done) => Ok(done.into()),
        Err(CallError::Execution(message)) => Ok(StateReturn::failed(name, message).into()),
        Err(error) => Err(error),
    }
}

/// A service that runs, or does not.
fn be(
    services: &impl Services,
    context: &StateContext,
    name: &str,
    wanted: bool,
    enable: Option<bool>,
    delay: std::time::Duration,
) -> Result<StateReturn, CallError> {
    if !services.is_available(name)? {
        if !wanted {
            return Ok(StateReturn::ok(name, format!("The named service {name} is not available")));
        }
        if context.test {
            let comment =
                format!("Service {name} not present; if created in this state run, it would have been started");
            return Ok(StateReturn::would(name, comment));
        }
        return Ok(StateReturn::failed(name, format!("The named service {name} is not available")));
    }
    let runs = services.is_running(name)?;
    let other = match enable {
        Some(enable) => services.is_enabled(name)? != enable,
        None => false,
    };
    let (state, now) = if wanted { ("running", "is running") } else { ("dead", "is dead") };
    if runs == wanted && !other {
        return Ok(StateReturn::ok(name, format!("The service {name} is already {state}")));
    }
    let word = if enable == Some(true) { "enabled" } else { "disabled" };
    if context.test {
        let comment = match (runs == wanted, wanted) {
            (true, _) => format!("Service {name} set to be {word}"),
            (false, true) => format!("Service {name} is set to start"),
            (false, false) => format!("Service {name} is set to be killed"),
        };
        return Ok(StateReturn::would(name, comment));
    }
    if other && !services.act(if enable == Some(true) { "enable" } else { "disable" }, name)? {
        return Ok(StateReturn::failed(name, format!("Failed when setting service {name} to be {word}")));
    }
    if runs != wanted {
        let acted = services.act(if wanted { "start" } else { "stop" }, name)?;
        if !delay.is_zero() && crate::process::cancelled_within(&context.call.job.cancel, delay) {
            return Ok(StateReturn::failed(name, "the job was ended"));
        }
        if !acted || services.is_running(name)? != wanted {
            let comment = if wanted {
                format!("Service {name} failed to start")
            } else {
                format!("Service {name} failed to die")
            };
            return Ok(StateReturn::failed(name, comment));
        }
    }
    let comment = match (enable, wanted) {
        (Some(_), _) if other => format!("Service {name} has been {word}, and {now}"),
        (Some(_), _) => format!("Service {name} is already {word}, and {now}"),
        (None, true) => format!("Started service {name}"),
        (None, false) => format!("Service {name} was killed"),
    };
    Ok(StateReturn::ok(name, comment).with_changes(map! {name => wanted}))
}

fn enable_state(
    services: &impl Services,
    context: &StateContext,
    name: &str,
    wanted: bool,
) -> Result<StateReturn, CallError> {
    let word = if wanted { "enabled" } else { "disabled" };
    if !services.is_available(name)? {
        return Ok(match (wanted, context.test) {
            (true, true) => StateReturn::would(
                name,
                format!("Service {name} not present; if created in this state run, it would have been enabled"),
            ),
            (true, false) => StateReturn::failed(name, format!("The named service {name} is not available")),
            (false, _) => StateReturn::ok(name, format!("The named service {name} is not available")),
        });
    }
    if services.is_enabled(name)? == wanted {
        return Ok(StateReturn::ok(name, format!("Service {name} is already {word}, and is in the desired state")));
    }
    if context.test {
        return Ok(StateReturn::would(name, format!("Service {name} set to be {word}")));
    }
    if !services.act(if wanted { "enable" } else { "disable" }, name)? {
        return Ok(StateReturn::failed(name, format!("Failed when setting service {name} to be {word}")));
    }
    Ok(StateReturn::ok(name, format!("Service {name} has been {word}, and is in the desired state"))
        .with_changes(map! {name => wanted}))
}

fn watched(
    services: &impl Services,
    context: &StateContext,
    name: &str,
    sfun: &str,
    reload: bool,
) -> Result<StateReturn, CallError> {
    let runs = services.is_running(name)?;
    let (action, done) = match (sfun, runs) {
        ("dead", false) => return Ok(StateReturn::ok(name, "Service is already stopped")),
        ("dead", true) => ("stop", "stopped"),
        ("running", false) => ("start", "started"),
        ("running", true) if reload => ("reload", "reloaded"),
        ("running", true) => ("restart", "restarted"),
        (other, _) => return Ok(StateReturn::failed(name, format!("Unable to trigger watch for service.{other}"))),
    };
    if context.test {
        return Ok(StateReturn::would(name, format!("Service is set to be {done}")));
    }
    let acted = services.act(action, name)?;
    let mut result = if acted {
        StateReturn::ok(name, format!("Service {done}"))
    } else {
        StateReturn::failed(name, format!("Failed to {action} the service"))
    };
    result.changes = map! {name => acted};
    Ok(result)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::testing;

    /// One service in memory, named `web`.
    struct Fake {
        runs: Cell<bool>,
        enabled: Cell<bool>,
        obeys: bool,
    }

    impl Services for Fake {
        fn is_available(&self, name: &str) -> Result<bool, CallError> {
            Ok(name == "web")
        }

        fn is_running(&self, _name: &str) -> Result<bool, CallError> {
            Ok(self.runs.get())
        }

        fn is_enabled(&self, _name: &str) -> Result<bool, CallError> {
            Ok(self.enabled.get())
        }

        fn act(&self, action: &str, _name: &str) -> Result<bool, CallError> {
            match action {
                _ if !self.obeys => {}
                "start" | "restart" => self.runs.set(true),
                "stop" => self.runs.set(false),
                "enable" => self.enabled.set(true),
                "disable" => self.enabled.set(false),
                _ => {}
            }
            Ok(self.obeys)
        }
    }

    fn story(test: bool, obeys: bool) -> String {
        let context = testing::state_context(test, &[]);
        let web = || Fake { runs: Cell::new(false), enabled: Cell::new(false), obeys };
        let up = || Fake { runs: Cell::new(true), ..web() };
        let none = std::time::Duration::ZERO;
        let states = [
            be(&web(), &context, "nosuch", true, None, none),
            be(&web(), &context, "nosuch", false, None, none),
            be(&web(), &context, "web", true, None, none),
            be(&web(), &context, "web", true, Some(true), none),
            be(&up(), &context, "web", true, None, none),
            be(&up(), &context, "web", true, Some(true), none),
            be(&up(), &context, "web", false, None, none),
            be(&up(), &context, "web", false, Some(false), none),
            be(&web(), &context, "web", false, None, none),
            enable_state(&web(), &context, "web", true),
            enable_state(&web(), &context, "web", false),
            enable_state(&web(), &context, "nosuch", true),
            enable_state(&web(), &context, "nosuch", false),
            watched(&up(), &context, "web", "running", false),
            watched(&up(), &context, "web", "running", true),
            watched(&web(), &context, "web", "running", false),
            watched(&up(), &context, "web", "dead", false),
            watched(&web(), &context, "web", "enabled", false),
        ];
        let told = states.into_iter().map(|done| {
            let done = done.unwrap();
            format!(
                "{}: {} | {}",
                Value::from(done.result),
                done.comment,
                brine_core::value::json::to_json(&done.changes.into())
            )
        });
        told.collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn services_are_told_as_salt_tells_them() {
        insta::assert_snapshot!(story(false, true), @r#"
        False: The named service nosuch is not available | {}
        True: The named service nosuch is not available | {}
        True: Started service web | {"web": true}
        True: Service web has been enabled, and is running | {"web": true}
        True: The service web is already running | {}
        True: Service web has been enabled, and is running | {"web": true}
        True: Service web was killed | {"web": false}
        True: Service web is already disabled, and is dead | {"web": false}
        True: The service web is already dead | {}
        True: Service web has been enabled, and is in the desired state | {"web": true}
        True: Service web is already disabled, and is in the desired state | {}
        False: The named service nosuch is not available | {}
        True: The named service nosuch is not available | {}
        True: Service restarted | {"web": true}
        True: Service reloaded | {"web": true}
        True: Service started | {"web": true}
        True: Service stopped | {"web": true}
        False: Unable to trigger watch for service.enabled | {}
        "#);
    }

    #[test]
    fn nothing_changes_in_test_mode() {
        insta::assert_snapshot!(story(true, true), @r#"
        None: Service nosuch not present; if created in this state run, it would have been started | {}
        True: The named service nosuch is not available | {}
        None: Service web is set to start | {}
        None: Service web is set to start | {}
        True: The service web is already running | {}
        None: Service web set to be enabled | {}
        None: Service web is set to be killed | {}
        None: Service web is set to be killed | {}
        True: The service web is already dead | {}
        None: Service web set to be enabled | {}
        True: Service web is already disabled, and is in the desired state | {}
        None: Service nosuch not present; if created in this state run, it would have been enabled | {}
        True: The named service nosuch is not available | {}
        None: Service is set to be restarted | {}
        None: Service is set to be reloaded | {}
        None: Service is set to be started | {}
        None: Service is set to be stopped | {}
        False: Unable to trigger watch for service.enabled | {}
        "#);
    }

    #[test]
    fn services_that_do_not_obey_are_failures() {
        insta::assert_snapshot!(story(false, false), @r#"
        False: The named service nosuch is not available | {}
        True: The named service nosuch is not available | {}
        False: Service web failed to start | {}
        False: Failed when setting service web to be enabled | {}
        True: The service web is already running | {}
        False: Failed when setting service web to be enabled | {}
        False: Service web failed to die | {}
        False: Service web failed to die | {}
        True: The service web is already dead | {}
        False: Failed when setting service web to be enabled | {}
        True: Service web is already disabled, and is in the desired state | {}
        False: The named service nosuch is not available | {}
        True: The named service nosuch is not available | {}
        False: Failed to restart the service | {"web": false}
        False: Failed to reload the service | {"web": false}
        False: Failed to start the service | {"web": false}
        False: Failed to stop the service | {"web": false}
        False: Unable to trigger watch for service.enabled | {}
        "#);
    }

    #[test]
    fn without_an_init_there_is_nothing_to_do() {
        let context = testing::state_context(false, &[]);
        *context.call.minion.grains.write() = std::sync::Arc::new(map! {"init" => "unknown"});
        let args = brine_core::function::Args::keyword(map! {"name" => "web"});
        let done = context.call.minion.states.call(&context, "service.running", args).unwrap();
        assert_eq!(done.get("comment"), Some(&"Running in OFFLINE mode. Nothing to do".into()));
    }
}
