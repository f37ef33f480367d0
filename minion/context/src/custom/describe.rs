//! Functions of people's own modules as Python describes them.

use std::collections::HashMap;
use std::sync::LazyLock;

use brine_function::{Args, Binder, CallResult, Function, Param, ParamKind};
use brine_python::Call;
use brine_value::{Map, Value, list};
use parking_lot::Mutex;

use super::{CustomModules, Errors};
use crate::{Context, Minion, StateContext};

/// The functions and the errors of the files.
#[derive(Default)]
pub struct Described {
    pub modules: Vec<&'static Function<Context>>,
    pub states: Vec<&'static Function<StateContext>>,
    errors: Errors,
    /// Why Python could not be asked.
    failure: Option<String>,
}

impl Described {
    /// Returns why a module with a file is not there.
    pub fn failure(&self, kind: &str, module: &str) -> Option<String> {
        let error = self.errors.get(kind).and_then(|errors| errors.get(module)).or(self.failure.as_ref())?;
        let error = error.strip_prefix("__virtual__ returned False").unwrap_or(error);
        let error = error.trim_start_matches(':').trim_start();
        let reason = if error.is_empty() { String::new() } else { format!(": {error}") };
        Some(format!("'{module}' __virtual__ returned False{reason}"))
    }
}

impl CustomModules {
    /// Asks Python for the functions in the files, and logs which files fail.
    pub(super) fn describe(&self, minion: &std::sync::Arc<Minion>) -> Described {
        let call = Call { kind: "describe", args: Args::positional([list!["modules", "states"]]), ..Call::default() };
        let answer = match self.run(minion, call) {
            Ok(answer) => answer,
            Err(error) => {
                tracing::error!(%error, "custom modules are not loaded");
                return Described { failure: Some(error.to_string()), ..Described::default() };
            }
        };
        let mut described = Described::default();
        for kind in ["modules", "states"] {
            let part = |name: &str| answer.get(kind).and_then(|of| of.get(name)).and_then(Value::as_map).cloned();
            for (name, about) in part("functions").unwrap_or_default() {
                let (Some((module, function)), Some(about)) =
                    (name.as_str().and_then(|name| name.split_once('.')), about.as_map())
                else {
                    continue;
                };
                match kind {
                    "modules" => described.modules.push(interned(&MODULES, module, function, about, call_module)),
                    _ => described.states.push(interned(&STATES, module, function, about, call_state)),
                }
            }
            for (file, error) in part("errors").unwrap_or_default() {
                let (file, error) = (file.to_string(), error.to_string());
                tracing::warn!(kind, file, error, "a custom module is not loaded");
                described.errors.entry(kind.to_owned()).or_default().insert(file, error);
            }
        }
        described
    }
}

/// Functions by their description. They live as long as the process, as the built-in ones do; a sync that changes nothing
/// of a function adds nothing.
type Interned<C> = LazyLock<Mutex<HashMap<String, &'static Function<C>>>>;

static MODULES: Interned<Context> = LazyLock::new(Mutex::default);
static STATES: Interned<StateContext> = LazyLock::new(Mutex::default);

fn interned<C>(
    known: &Interned<C>,
    module: &str,
    name: &str,
    about: &Map,
    code: fn(&C, &mut Binder) -> CallResult,
) -> &'static Function<C> {
    let key = format!("{module}.{name} {}", Value::Map(about.clone()));
    known.lock().entry(key).or_insert_with(|| Box::leak(Box::new(function(module, name, about, code))))
}

fn leaked(text: &str) -> &'static str {
    Box::leak(text.to_owned().into_boxed_str())
}

fn function<C>(module: &str, name: &str, about: &Map, code: fn(&C, &mut Binder) -> CallResult) -> Function<C> {
    let text = |key: &str| about.get(key).and_then(Value::as_str).unwrap_or_default();
    let list = |key: &str| about.get(key).and_then(Value::as_list).unwrap_or_default();
    let (names, defaults) = (list("args"), list("defaults"));
    let required = names.len().saturating_sub(defaults.len());
    let param = |name: &str, kind| Param { name: leaked(name), kind, expected: "anything", doc: &[] };
    let mut params = Vec::new();
    for (place, name) in names.iter().enumerate() {
        let kind = match place.checked_sub(required).and_then(|place| defaults.get(place)) {
            Some(default) => ParamKind::Given(Box::leak(Box::new(default.clone()))),
            None => ParamKind::Required,
        };
        params.push(param(&name.to_string(), kind));
    }
    if about.get("varargs").is_some_and(Value::is_truthy) {
        params.push(param("args", ParamKind::Rest));
    }
    if about.get("kwargs").is_some_and(Value::is_truthy) {
        params.push(param("kwargs", ParamKind::Keywords));
    }
    // A space in front, as `///` leaves one.
    let doc: Vec<&'static str> = text("doc").lines().map(|line| leaked(&format!(" {line}"))).collect();
    Function {
        module: leaked(module),
        name: leaked(name),
        doc: doc.leak(),
        params: params.leak(),
        out: Some(text("out")).filter(|out| !out.is_empty()).map(leaked),
        code,
    }
}

fn call_module(context: &Context, bound: &mut Binder) -> CallResult {
    let args = Args { positional: bound.rest(), keyword: bound.keywords() };
    context.minion.custom.call(context, bound.function(), args)
}

fn call_state(context: &StateContext, bound: &mut Binder) -> CallResult {
    let args = Args { positional: bound.rest(), keyword: bound.keywords() };
    context.call.minion.custom.call_state(context, bound.function(), args)
}
