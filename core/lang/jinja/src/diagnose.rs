//! Diagnosis of templates that fail with an undefined value. minijinja's errors only name the expression, Jinja's also
//! the type of the value that lacks the attribute. So the template is rendered once more, with the recorded results of
//! functions, and failed lookups are recorded.

use std::collections::VecDeque;
use std::sync::Arc;

use brine_function::{Args, CallError};
use brine_value::{Value, python};
use minijinja::value::Value as JinjaValue;
use minijinja::{Environment, Error};
use parking_lot::Mutex;

use super::behaviour::{Behaviour, Role};
use super::data::{Tree, from_jinja, type_name_in_errors};
use super::environment::ENVIRONMENT;
use super::host::{Functions, Host};

type CallResult = Result<Value, CallError>;

/// The functions of a host whose results are recorded or, in a second render, replayed. Clones share the results.
#[derive(Clone)]
pub(super) struct RecordedResults {
    host: Host,
    replays: bool,
    results: Arc<Mutex<VecDeque<CallResult>>>,
}

impl RecordedResults {
    /// Creates functions whose results are recorded.
    pub(super) fn record(host: &Host) -> Self {
        RecordedResults { host: host.clone(), replays: false, results: Arc::default() }
    }

    /// Returns functions that replay the recorded results, and then fail.
    pub(super) fn replay(&self) -> Self {
        let results = Arc::new(Mutex::new(std::mem::take(&mut *self.results.lock())));
        RecordedResults { host: self.host.clone(), replays: true, results }
    }
}

impl Functions for RecordedResults {
    fn call(&self, function: &str, args: Args) -> CallResult {
        if self.host.behaviour(function).is_lookup {
            return self.host.call(function, args);
        }
        if self.replays {
            let result = self.results.lock().pop_front();
            return result.unwrap_or_else(|| Err(CallError::NotAvailable(function.to_owned())));
        }
        let result = self.host.call(function, args);
        self.results.lock().push_back(result.clone());
        result
    }

    fn has(&self, function: &str) -> bool {
        self.host.has(function)
    }

    fn has_module(&self, module: &str) -> bool {
        self.host.has_module(module)
    }

    fn tree(&self, function: &str) -> Option<&Tree> {
        self.host.tree(function)
    }

    fn pillar(&self) -> Option<&Tree> {
        self.host.pillar()
    }

    fn behaviour(&self, function: &str) -> Behaviour {
        self.host.behaviour(function)
    }

    fn name_of(&self, role: Role) -> Option<&'static str> {
        self.host.name_of(role)
    }
}

/// A failed lookup.
#[derive(Debug, Clone)]
pub(super) enum Missing {
    /// Of a key or an attribute.
    Entry {
        /// Jinja's name for the type of the container.
        of: String,
        key: Value,
    },
    /// Of an item of an empty sequence, by the filter `first`, `last` or `random`.
    Item(&'static str),
}

impl Missing {
    /// Returns Jinja's message.
    pub(super) fn message(&self) -> String {
        match self {
            Missing::Entry { of, key: Value::Str(name) } => {
                format!("'{of}' has no attribute {}", python::repr(&name.as_str().into()))
            }
            Missing::Entry { of, key } => format!("{of} has no element {}", python::repr(key)),
            Missing::Item(filter) => format!("No {filter} item, sequence was empty."),
        }
    }

    /// Returns the message of Jinja's sandbox, if it refuses the name.
    pub(super) fn refused(&self) -> Option<String> {
        let Missing::Entry { of, key } = self else { return None };
        let name = key.as_str().filter(|name| name.starts_with("__"))?;
        let of = of.trim_end_matches(" object").rsplit('.').next().unwrap_or_default();
        Some(format!("Jinja syntax error: access to attribute '{name}' of '{of}' object is unsafe."))
    }

    /// Whether an expression that ends with this name or literal looks it up.
    pub(super) fn is(&self, name: &str) -> bool {
        matches!(self, Missing::Entry { key, .. } if key.to_string() == name)
    }
}

/// The failed lookups, in order.
#[derive(Debug, Clone, Default)]
pub(super) struct Lookups(Arc<Mutex<Vec<Missing>>>);

impl Lookups {
    /// Adds functions that record lookups.
    pub(super) fn add_to(&self, environment: &mut Environment<'static>) {
        let lookups = self.clone();
        environment.add_function("__attribute__", move |of: JinjaValue, name: String| {
            lookups.record(of.get_attr(&name), &of, || name.as_str().into())
        });
        let lookups = self.clone();
        environment.add_function("__item__", move |of: JinjaValue, key: JinjaValue| {
            // Reported is the key, which is undefined itself, not the item.
            if key.is_undefined() {
                return of.get_item(&key);
            }
            lookups.record(of.get_item(&key), &of, || from_jinja(&key))
        });
        let lookups = self.clone();
        environment.add_filter("attr", move |of: JinjaValue, name: String| {
            let attribute = ENVIRONMENT.empty_state().apply_filter("attr", &[of.clone(), name.as_str().into()]);
            lookups.record(attribute, &of, || name.as_str().into())
        });
        for filter in ["first", "last", "random"] {
            let lookups = self.clone();
            environment.add_filter(filter, move |value: JinjaValue| {
                let output = ENVIRONMENT.empty_state().apply_filter(filter, &[value])?;
                if output.is_undefined() {
                    lookups.0.lock().push(Missing::Item(filter));
                }
                Ok::<_, Error>(output)
            });
        }
    }

    fn record(
        &self,
        item: Result<JinjaValue, Error>,
        of: &JinjaValue,
        key: impl Fn() -> Value,
    ) -> Result<JinjaValue, Error> {
        if item.as_ref().is_ok_and(JinjaValue::is_undefined) {
            self.0.lock().push(Missing::Entry { of: type_name_in_errors(of), key: key() });
        }
        item
    }

    pub(super) fn take(self) -> Vec<Missing> {
        std::mem::take(&mut self.0.lock())
    }
}
