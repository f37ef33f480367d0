//! Binds the arguments of a call to the parameters, with Salt's error messages; and structs of arguments.

use std::collections::VecDeque;

use brine_value::{FromValue, Map, Value};

use super::{Args, CallError, Order, Param, ParamKind, ParamList, Params};

/// The arguments of one call, bound parameter by parameter. Used by the code that [`#[function]`](super::function) and
/// `#[derive(Args)]` generate.
pub struct Binder {
    function: String,
    name: &'static str,
    positional: VecDeque<Value>,
    keyword: Map,
}

impl Binder {
    /// Checks the number and names of the arguments.
    pub fn new(module: &str, name: &'static str, params: &[Param], args: Args) -> Result<Self, CallError> {
        let function = format!("{module}.{name}");
        let wrong = |message| CallError::Arguments { function: function.clone(), message };
        let named = || params.iter().filter(|p| p.is_named());
        let takes_rest = params.iter().any(|p| matches!(p.kind, ParamKind::Rest));
        let takes_keywords = params.iter().any(Param::is_keywords);
        if !takes_keywords {
            // Functions without `**kwargs` accept and ignore the `__pub_*` arguments.
            let unknown: Vec<_> = args
                .keyword
                .iter()
                .filter(|(key, _)| {
                    key.as_str().is_none_or(|key| !key.starts_with("__pub_") && !named().any(|p| p.name == key))
                })
                .map(|(key, value)| format!("{key}={value}"))
                .collect();
            if !unknown.is_empty() {
                let message = format!("The following keyword arguments are not valid: {}", unknown.join(", "));
                return Err(CallError::Invocation { function: function.clone(), message });
            }
        }
        let positional = args.positional.len();
        if !takes_rest && positional > named().count() {
            let (most, are) = (named().count(), if positional == 1 { "was" } else { "were" });
            let least = named().filter(|p| p.is_required()).count();
            let takes = if least == most { most.to_string() } else { format!("from {least} to {most}") };
            let plural = if takes == "1" { "argument" } else { "arguments" };
            return Err(wrong(format!("{name}() takes {takes} positional {plural} but {positional} {are} given")));
        }
        let missing: Vec<_> = named()
            .skip(positional)
            .filter(|p| p.is_required() && !args.keyword.contains_key(p.name))
            .map(|p| format!("'{}'", p.name))
            .collect();
        if !missing.is_empty() {
            let plural = if missing.len() == 1 { "argument" } else { "arguments" };
            let list = match &missing[..] {
                [one] => one.clone(),
                [first, second] => format!("{first} and {second}"),
                [rest @ .., last] => format!("{}, and {last}", rest.join(", ")),
                [] => String::new(),
            };
            let count = missing.len();
            return Err(wrong(format!("{name}() missing {count} required positional {plural}: {list}")));
        }
        if let Some(twice) = named().take(positional).find(|p| args.keyword.contains_key(p.name)) {
            return Err(wrong(format!("{name}() got multiple values for argument '{}'", twice.name)));
        }
        Ok(Binder { function, name, positional: args.positional.into(), keyword: args.keyword })
    }

    /// Returns the full name of the function.
    pub fn function(&self) -> &str {
        &self.function
    }

    /// Returns the value of a named parameter.
    pub fn take<T: FromValue>(&mut self, name: &str, default: Option<T>) -> Result<T, CallError> {
        let value = self.keyword.shift_remove(name).or_else(|| self.positional.pop_front());
        match (value, default) {
            (Some(value), default) => T::try_from_value(&value)
                .or_else(|error| {
                    // An empty value counts as unset, as in Python's conditions.
                    let nothing = (!value.is_truthy()).then(|| T::from_value(&Value::Nil).or(default));
                    nothing.flatten().ok_or(error)
                })
                .map_err(|error| CallError::Arguments {
                    function: self.function.clone(),
                    message: format!("{}() argument '{name}': {error}", self.name),
                }),
            (None, Some(default)) => Ok(default),
            (None, None) => T::from_value(&Value::Nil).ok_or_else(|| CallError::Arguments {
                function: self.function.clone(),
                message: format!("{}() missing 1 required positional argument: '{name}'", self.name),
            }),
        }
    }

    /// Returns all remaining positional values.
    pub fn rest(&mut self) -> Vec<Value> {
        std::mem::take(&mut self.positional).into()
    }

    /// Returns all remaining keyword values.
    pub fn keywords(&mut self) -> Map {
        std::mem::take(&mut self.keyword)
    }
}

/// A struct of the arguments of a function, implemented by `#[derive(Args)]`.
pub trait Arguments: Sized {
    /// The permitted position of these parameters among others.
    #[doc(hidden)]
    const ORDER: Order;

    /// Describes the fields as parameters, in order.
    fn describe(params: &mut ParamList);

    /// Binds the arguments of a call to the fields.
    fn bind(bound: &mut Binder) -> Result<Self, CallError>;

    /// Checks the arguments of a call of `module.name`, and binds them to the fields.
    fn of_call(module: &str, name: &'static str, args: Args) -> Result<Self, CallError> {
        Self::bind(&mut Binder::new(module, name, Params::Declared(Self::describe).list(), args)?)
    }
}
