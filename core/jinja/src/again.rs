//! A second look at a template that has failed of something undefined. minijinja's errors name the expression alone, and
//! Jinja's also the type of what lacked something. So the template is rendered once more, with the answers that functions
//! gave the first time, and notes are taken of what is looked up in what.

use std::collections::VecDeque;
use std::sync::Arc;

use brine_function::{Args, CallError};
use brine_value::{Value, python};
use minijinja::value::{Value as JinjaValue, ValueKind};
use minijinja::{Environment, Error};
use parking_lot::Mutex;

use super::containers::Tree;
use super::host::Host;
use super::operators::type_name;
use super::rewrite::Look;

/// Modules whose functions only look something up: they are asked once more.
const ASKED_AGAIN: [&str; 2] = ["pillar.", "grains."];

type Answer = Result<Value, CallError>;

/// A host that remembers what it has answered, or gives what another has answered once more.
pub(super) struct Remembering {
    host: Arc<dyn Host>,
    look: Look,
    answers: Mutex<VecDeque<Answer>>,
}

impl Remembering {
    pub(super) fn new(host: &Arc<dyn Host>) -> Self {
        Remembering { host: Arc::clone(host), look: Look::First, answers: Mutex::default() }
    }

    /// A host that gives the same answers once more, and then no more.
    pub(super) fn again(&self) -> Self {
        let answers = Mutex::new(std::mem::take(&mut *self.answers.lock()));
        Remembering { host: Arc::clone(&self.host), look: Look::Again, answers }
    }
}

fn is_asked_again(function: &str) -> bool {
    ASKED_AGAIN.iter().any(|module| function.starts_with(module)) && function != "grains.set"
}

impl Host for Remembering {
    fn call(&self, function: &str, args: Args) -> Answer {
        if is_asked_again(function) {
            return self.host.call(function, args);
        }
        match self.look {
            Look::First => {
                let answer = self.host.call(function, args);
                self.answers.lock().push_back(answer.clone());
                answer
            }
            Look::Again => {
                let answer = self.answers.lock().pop_front();
                answer.unwrap_or_else(|| Err(CallError::NotAvailable(function.to_owned())))
            }
        }
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

    fn template(&self, path: &str, saltenv: &str) -> Result<Option<String>, String> {
        self.host.template(path, saltenv)
    }
}

/// Something that was looked up and not found.
#[derive(Debug, Clone)]
pub(super) struct Missing {
    /// What Jinja calls the type of what it was looked up in.
    of: String,
    /// What was looked up.
    key: Value,
}

impl Missing {
    /// What Jinja says of it.
    pub(super) fn told(&self) -> String {
        match &self.key {
            Value::Str(name) => format!("'{}' has no attribute {}", self.of, python::repr(&name.as_str().into())),
            key => format!("{} has no element {}", self.of, python::repr(key)),
        }
    }

    /// What Jinja's sandbox says of it, if it keeps it from templates.
    pub(super) fn refused(&self) -> Option<String> {
        let name = self.key.as_str().filter(|name| name.starts_with("__"))?;
        let of = self.of.trim_end_matches(" object").rsplit('.').next().unwrap_or_default();
        Some(format!("Jinja syntax error: access to attribute '{name}' of '{of}' object is unsafe."))
    }

    /// Whether it is what an expression that ends with this name or literal looks up.
    pub(super) fn is(&self, name: &str) -> bool {
        self.key.to_string() == name
    }
}

/// What was looked up and not found, in this order.
#[derive(Debug, Clone, Default)]
pub(super) struct Notes(Arc<Mutex<Vec<Missing>>>);

impl Notes {
    /// Adds the functions that look something up, and take notes.
    pub(super) fn add_to(&self, environment: &mut Environment<'static>) {
        let notes = self.clone();
        environment.add_function("__attribute__", move |of: JinjaValue, name: String| {
            notes.note(of.get_attr(&name), &of, || name.as_str().into())
        });
        let notes = self.clone();
        environment.add_function("__item__", move |of: JinjaValue, key: JinjaValue| {
            notes.note(of.get_item(&key), &of, || super::value::from_jinja(&key))
        });
    }

    fn note(
        &self,
        found: Result<JinjaValue, Error>,
        of: &JinjaValue,
        key: impl Fn() -> Value,
    ) -> Result<JinjaValue, Error> {
        if found.as_ref().is_ok_and(JinjaValue::is_undefined) {
            self.0.lock().push(Missing { of: type_told(of), key: key() });
        }
        found
    }

    pub(super) fn take(self) -> Vec<Missing> {
        std::mem::take(&mut self.0.lock())
    }
}

/// What Jinja calls the type of a value when it lacks something.
pub(super) fn type_told(value: &JinjaValue) -> String {
    let name = match value.kind() {
        ValueKind::None => return "None".to_owned(),
        _ => match type_name(value) {
            "LoadedMod" => "salt.loader.lazy.LoadedMod",
            "LoadedFunc" => "salt.loader.lazy.LoadedFunc",
            "AliasedLoader" => "salt.utils.templates.AliasedLoader",
            "Macro" => "jinja2.runtime.Macro",
            "LoopContext" => "jinja2.runtime.LoopContext",
            "Namespace" => "jinja2.utils.Namespace",
            "Cycler" => "jinja2.utils.Cycler",
            "TemplateModule" => "jinja2.environment.TemplateModule",
            name => name,
        },
    };
    format!("{name} object")
}
