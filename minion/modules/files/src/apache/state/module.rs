//! `apache_module`: states of Apache modules on Debian; states of sites and configurations share the code.

use brine_context::{StateContext, StateReturn};
use brine_function::{Args, CallError};
use brine_value::{Value, map};

/// Defines the states `enabled` and `disabled` of a type of items.
macro_rules! states {
    ($module:literal, $parts:expr; $(#[$enabled_doc:meta])* enabled; $(#[$disabled_doc:meta])* disabled;) => {
        /// State functions of this module.
        pub static FUNCTIONS: ::brine_function::Functions<::brine_context::StateContext> =
            ::brine_function::registry!($module, [enabled, disabled]);

        $(#[$enabled_doc])*
        #[::brine_function::function]
        pub fn enabled(
            context: &::brine_context::StateContext,
            /// Name of the item.
            name: String,
        ) -> ::brine_function::CallResult {
            $parts.set(context, &name, true)
        }

        $(#[$disabled_doc])*
        #[::brine_function::function]
        pub fn disabled(
            context: &::brine_context::StateContext,
            /// Name of the item.
            name: String,
        ) -> ::brine_function::CallResult {
            $parts.set(context, &name, false)
        }
    };
}
pub(crate) use states;

states! {
    "apache_module", Parts { word: "module", short: "mod" };
    /// Ensure that an Apache module is enabled.
    ///
    /// SLS Example:
    ///
    ///     rewrite:
    ///       apache_module.enabled: []
    enabled;
    /// Ensure that an Apache module is disabled.
    ///
    /// SLS Example:
    ///
    ///     rewrite:
    ///       apache_module.disabled: []
    disabled;
}

/// A type of item: modules, sites or configurations.
pub(crate) struct Parts {
    /// Name of the type in messages.
    pub(crate) word: &'static str,
    /// Name of the type in names of functions.
    pub(crate) short: &'static str,
}

impl Parts {
    /// Enables or disables an item.
    pub(crate) fn set(&self, context: &StateContext, name: &str, enable: bool) -> Result<Value, CallError> {
        let Parts { word, short } = self;
        let (verb, participle, prefix) =
            if enable { ("enable", "enabled", "a2en") } else { ("disable", "disabled", "a2dis") };
        let call = |function: String| context.call.call(&function, Args::positional([name.into()]));
        if call(format!("apache.check_{short}_enabled"))?.is_truthy() == enable {
            return Ok(StateReturn::ok(name, format!("{name} already {participle}.")).into());
        }
        let changes = if enable {
            map! {"old" => Value::Nil, "new" => name}
        } else {
            map! {"old" => name, "new" => Value::Nil}
        };
        if context.test {
            let message = format!("Apache {word} {name} is set to be {participle}.");
            return Ok(StateReturn::predicted(name, message).with_changes(changes).into());
        }
        let status = match call(format!("apache.{prefix}{short}")) {
            Ok(message) => message.get("Status").and_then(Value::as_str).map(str::to_owned),
            Err(CallError::Execution(error)) => Some(error),
            Err(error) => return Err(error),
        };
        if status.as_ref().is_some_and(|status| status.ends_with(participle)) {
            return Ok(StateReturn::ok(name, "").with_changes(changes).into());
        }
        let why = status.map(|status| format!(" ({status})")).unwrap_or_default();
        Ok(StateReturn::failed(name, format!("Failed to {verb} {name} Apache {word}{why}")).into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    /// The result depends on the host, so the test uses names that exist on no host.
    #[test]
    fn missing_items_are_disabled_and_cannot_be_enabled() {
        for (word, state) in [("module", "apache_module"), ("site", "apache_site"), ("conf", "apache_conf")] {
            let report = |fun: &str, test: bool| {
                let context = testing::state_context(test, &[]);
                let args = Args::keyword(map! {"name" => "brine-golden-never"});
                let outcome = context.call.minion.states.call(&context, &format!("{state}.{fun}"), args).unwrap();
                format!("{}: {}", outcome.get("result").unwrap(), outcome.get("comment").unwrap())
            };
            assert_eq!(report("disabled", false), "True: brine-golden-never already disabled.");
            let would = format!("None: Apache {word} brine-golden-never is set to be enabled.");
            assert_eq!(report("enabled", true), would);
            let failed = format!("False: Failed to enable brine-golden-never Apache {word}");
            assert!(report("enabled", false).starts_with(&failed));
        }
    }
}
