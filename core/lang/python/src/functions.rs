//! Functions of custom modules as [`Function`]s, so that they are found like built-in ones.

use std::collections::HashMap;
use std::sync::Arc;

use brine_function::{Binder, CallResult, Function, Others, Param, ParamKind, Params};
use brine_value::{Map, Value};
use parking_lot::Mutex;

use crate::library::Described;

/// The functions of one type of custom modules, for the context `C`.
///
/// A function is never freed, as it has the lifetime of built-in ones. A sync that does not change a function's
/// parameters and documentation allocates nothing.
pub struct Functions<C: 'static> {
    kind: &'static str,
    code: fn(&C, &mut Binder) -> CallResult,
    cache: Mutex<HashMap<String, &'static Function<C>>>,
    last: Mutex<Option<Converted<C>>>,
}

/// A description of custom modules, and the functions of this type in it.
type Converted<C> = (Arc<Described>, Vec<&'static Function<C>>);

impl<C> Functions<C> {
    /// Creates the functions of a type, which are called by `code`.
    pub fn new(kind: &'static str, code: fn(&C, &mut Binder) -> CallResult) -> Self {
        Functions { kind, code, cache: Mutex::default(), last: Mutex::default() }
    }

    /// Returns the type.
    pub fn kind(&self) -> &'static str {
        self.kind
    }

    /// Returns the functions in a description: those of a module, or of all modules.
    pub fn of(&self, described: &Arc<Described>, module: Option<&str>) -> Vec<&'static Function<C>> {
        let mut last = self.last.lock();
        let is_last = last.as_ref().is_some_and(|(previous, _)| Arc::ptr_eq(previous, described));
        if !is_last {
            let all = described.of(self.kind).iter().map(|(module, name, about)| self.convert(module, name, about));
            *last = Some((Arc::clone(described), all.collect()));
        }
        let all = last.iter().flat_map(|(_, all)| all).copied();
        all.filter(|one| module.is_none_or(|module| one.module == module)).collect()
    }

    fn convert(&self, module: &str, name: &str, about: &Map) -> &'static Function<C> {
        let key = format!("{module}.{name} {}", Value::Map(about.clone()));
        self.cache.lock().entry(key).or_insert_with(|| Box::leak(Box::new(function(module, name, about, self.code))))
    }
}

fn leaked(text: &str) -> &'static str {
    Box::leak(text.to_owned().into_boxed_str())
}

fn function<C>(module: &str, name: &str, about: &Map, code: fn(&C, &mut Binder) -> CallResult) -> Function<C> {
    let text = |key: &str| about.get(key).and_then(Value::as_str).unwrap_or_default();
    let list = |key: &str| about.get(key).and_then(Value::as_list).unwrap_or_default();
    let (names, defaults) = (list("args"), list("defaults"));
    let required = names.len().saturating_sub(defaults.len());
    let param = |name: &str, kind| Param { name: leaked(name), kind, expected: "anything", doc: "" };
    let mut params = Vec::new();
    for (index, name) in names.iter().enumerate() {
        let kind = match index.checked_sub(required).and_then(|index| defaults.get(index)) {
            Some(default) => ParamKind::Given(Box::leak(Box::new(default.clone()))),
            None => ParamKind::Required,
        };
        params.push(param(&name.to_string(), kind));
    }
    if about.get("varargs").is_some_and(Value::is_truthy) {
        params.push(param("args", ParamKind::Rest));
    }
    if about.get("kwargs").is_some_and(Value::is_truthy) {
        params.push(param("kwargs", ParamKind::Keywords(Others::Any)));
    }
    Function {
        module: leaked(module),
        name: leaked(name),
        doc: leaked(&text("doc").lines().collect::<Vec<_>>().join("\n")),
        params: Params::Found(params.leak()),
        is_secret: false,
        out: Some(text("out")).filter(|out| !out.is_empty()).map(leaked),
        code,
    }
}
