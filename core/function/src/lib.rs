//! What a callable function is: execution, runner, wheel and state functions are all declared with
//! [`functions!`](crate::functions), and found in a [`Registry`] by their Salt name.
//!
//! Names, argument types, defaults and documentation come from that one declaration: the check of
//! arguments, `sys.doc` and `sys.argspec` are derived from it.

use std::collections::HashMap;

use brine_value::{FromValue, Map, Value};

/// A function that can be called by its name, with a context `C` that its host provides.
pub struct Function<C: 'static> {
    /// Salt's module name, such as `test`.
    pub module: &'static str,
    /// The name inside the module, such as `ping`.
    pub name: &'static str,
    /// Documentation, line by line.
    pub doc: &'static [&'static str],
    /// Its parameters in order.
    pub params: &'static [Param],
    /// The outputter it asks for, such as `highstate`.
    pub out: Option<&'static str>,
    /// The code.
    pub call: fn(&C, Args) -> Result<Value, CallError>,
}

/// One parameter of a function.
pub struct Param {
    /// Its name.
    pub name: &'static str,
    /// How it takes values.
    pub kind: ParamKind,
    /// What is wanted, in words.
    pub expected: &'static str,
}

/// How a parameter takes values.
pub enum ParamKind {
    /// Must be given.
    Required,
    /// May be left out.
    Optional(fn() -> Value),
    /// `*args`: takes all further positional values.
    Rest,
    /// `**kwargs`: takes all further keyword values.
    Keywords,
}

/// What a function is called with.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Args {
    /// Values by position.
    pub positional: Vec<Value>,
    /// Values by name.
    pub keyword: Map,
}

impl Args {
    /// Only positional values.
    pub fn positional(values: impl IntoIterator<Item = Value>) -> Self {
        Args { positional: values.into_iter().collect(), keyword: Map::new() }
    }

    /// Only named values.
    pub fn keyword(values: Map) -> Self {
        Args { positional: Vec::new(), keyword: values }
    }

    /// Reads Salt's wire form: a list in which keyword arguments are a map with `__kwarg__: true`.
    pub fn from_wire(list: &[Value]) -> Self {
        let mut args = Args::default();
        for item in list {
            match item {
                Value::Map(map) if map.get("__kwarg__").is_some_and(Value::is_truthy) => {
                    args.keyword.extend(
                        map.iter()
                            .filter(|(key, _)| key.as_str() != Some("__kwarg__"))
                            .map(|(key, value)| (key.clone(), value.clone())),
                    );
                }
                other => args.positional.push(other.clone()),
            }
        }
        args
    }

    /// Writes Salt's wire form.
    pub fn to_wire(&self) -> Vec<Value> {
        let mut list = self.positional.clone();
        if !self.keyword.is_empty() {
            let mut map = self.keyword.clone();
            map.insert("__kwarg__".into(), true.into());
            list.push(Value::Map(map));
        }
        list
    }
}

/// Why a call gave no value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// No function of this name is registered.
    #[error("'{0}' is not available.")]
    NotAvailable(String),
    /// The arguments do not fit the function's parameters.
    #[error("Passed invalid arguments to {function}: {message}")]
    Arguments {
        /// The full name of the function.
        function: String,
        /// What does not fit.
        message: String,
    },
    /// Keyword arguments that the function does not have, or a call that makes no sense.
    #[error("ERROR executing '{function}': {message}")]
    Invocation {
        /// The full name of the function.
        function: String,
        /// What is wrong.
        message: String,
    },
    /// The function ran and could not do what it was asked to.
    #[error("ERROR: {0}")]
    Execution(String),
    /// The function ended in a way that nobody has foreseen.
    #[error("The minion function caused an exception: {0}")]
    Exception(String),
}

impl From<String> for CallError {
    fn from(message: String) -> Self {
        CallError::Execution(message)
    }
}

impl CallError {
    /// The message alone.
    pub fn message(self) -> String {
        match self {
            CallError::Execution(message) => message,
            other => other.to_string(),
        }
    }

    /// The function ran and failed.
    pub fn execution(error: impl std::fmt::Display) -> Self {
        CallError::Execution(error.to_string())
    }
}

impl<C> Function<C> {
    /// The full name: `test.ping`.
    pub fn full_name(&self) -> String {
        format!("{}.{}", self.module, self.name)
    }

    /// The documentation as one text, without the leading blank that `///` leaves on each line.
    pub fn docstring(&self) -> String {
        let lines: Vec<_> = self.doc.iter().map(|line| line.strip_prefix(' ').unwrap_or(line)).collect();
        lines.join("\n")
    }
}

/// All functions of one kind, by full name.
pub struct Registry<C: 'static> {
    functions: HashMap<String, &'static Function<C>>,
}

impl<C> Registry<C> {
    /// A registry of the functions of these modules.
    pub fn new(modules: &[&'static [Function<C>]]) -> Self {
        let all = modules.iter().flat_map(|module| module.iter());
        Registry { functions: all.map(|function| (function.full_name(), function)).collect() }
    }

    /// The function of this full name.
    pub fn get(&self, name: &str) -> Option<&'static Function<C>> {
        self.functions.get(name).copied()
    }

    /// Calls the function of this full name.
    pub fn call(&self, context: &C, name: &str, args: Args) -> Result<Value, CallError> {
        let function = self.get(name).ok_or_else(|| CallError::NotAvailable(name.to_owned()))?;
        (function.call)(context, args)
    }

    /// Returns the full name that a misspelt one is most similar to, if it differs in few characters.
    pub fn nearest(&self, name: &str) -> Option<&str> {
        if self.functions.contains_key(name) {
            return None;
        }
        let most = (name.len() / 6).min(3);
        let scored = self.functions.keys().map(|known| (strsim::damerau_levenshtein(known, name), known.as_str()));
        scored.filter(|(distance, _)| *distance <= most).min().map(|(_, known)| known)
    }

    /// All functions, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = &'static Function<C>> {
        let mut all: Vec<_> = self.functions.values().copied().collect();
        all.sort_by_key(|function| (function.module, function.name));
        all.into_iter()
    }
}

/// Hands out the arguments of one call, parameter by parameter; the code that
/// [`functions!`](crate::functions) writes uses it.
pub struct Binder {
    function: String,
    name: &'static str,
    positional: std::collections::VecDeque<Value>,
    keyword: Map,
}

impl Binder {
    /// Checks that the arguments fit the parameters as a whole.
    pub fn new(module: &str, name: &'static str, params: &[Param], args: Args) -> Result<Self, CallError> {
        let function = format!("{module}.{name}");
        let wrong = |message| CallError::Arguments { function: function.clone(), message };
        let named = || params.iter().filter(|p| matches!(p.kind, ParamKind::Required | ParamKind::Optional(_)));
        let takes_rest = params.iter().any(|p| matches!(p.kind, ParamKind::Rest));
        let takes_keywords = params.iter().any(|p| matches!(p.kind, ParamKind::Keywords));
        let given = args.positional.len();
        if !takes_rest && given > named().count() {
            let (most, are) = (named().count(), if given == 1 { "was" } else { "were" });
            let least = named().filter(|p| matches!(p.kind, ParamKind::Required)).count();
            let takes = if least == most { most.to_string() } else { format!("from {least} to {most}") };
            let plural = if takes == "1" { "argument" } else { "arguments" };
            return Err(wrong(format!("{name}() takes {takes} positional {plural} but {given} {are} given")));
        }
        let missing: Vec<_> = named()
            .skip(given)
            .filter(|p| matches!(p.kind, ParamKind::Required) && !args.keyword.contains_key(p.name))
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
        if let Some(twice) = named().take(given).find(|p| args.keyword.contains_key(p.name)) {
            return Err(wrong(format!("{name}() got multiple values for argument '{}'", twice.name)));
        }
        if !takes_keywords {
            // What the publish adds for functions that take everything is not an error for the others.
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
                return Err(CallError::Invocation { function, message });
            }
        }
        Ok(Binder { function, name, positional: args.positional.into(), keyword: args.keyword })
    }

    /// The value of a named parameter.
    pub fn take<T: FromValue>(&mut self, name: &str, default: Option<T>) -> Result<T, CallError> {
        let value = self.keyword.shift_remove(name).or_else(|| self.positional.pop_front());
        match (value, default) {
            (Some(value), default) => T::try_from_value(&value)
                .or_else(|error| {
                    // What is empty is as good as nothing, as in Python's conditions.
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

    /// All positional values that are left.
    pub fn rest(&mut self) -> Vec<Value> {
        std::mem::take(&mut self.positional).into()
    }

    /// All keyword values that are left.
    pub fn keywords(&mut self) -> Map {
        std::mem::take(&mut self.keyword)
    }
}

/// A parameter's name as callers write it: `match`, which Rust has taken, is declared as `r#match`.
pub const fn bare_name(name: &'static str) -> &'static str {
    match name.as_bytes() {
        [b'r', b'#', ..] => name.split_at(2).1,
        _ => name,
    }
}

/// Declares the functions of one module: a static `FUNCTIONS` for the registry, and a plain Rust
/// function for each, so that others can call it directly.
///
/// ```
/// use brine_function::{*, functions};
/// use brine_value::Value;
///
/// functions! {
///     module "demo", context u32;
///
///     /// Gives its argument back, several times.
///     fn echo(_context, text: String, times: u32 = 1) {
///         Ok(Value::from(text.repeat(times as usize)))
///     }
///
///     /// Gives what it got. Names that Rust has taken get theirs by `as`.
///     fn list(context, *args, **kwargs) as "return" out "json" {
///         Ok(Value::from(args.len() as u64 + kwargs.len() as u64 + u64::from(*context)))
///     }
/// }
///
/// let registry = Registry::new(&[FUNCTIONS]);
/// let args = Args { positional: vec!["ab".into(), 2.into()], ..Args::default() };
/// assert_eq!(registry.call(&0, "demo.echo", args), Ok("abab".into()));
/// assert_eq!(registry.call(&7, "demo.return", Args::default()), Ok(7.into()));
/// ```
#[macro_export]
macro_rules! functions {
    (
        module $module:literal, context $context:ty;
        $(
            $(#[doc = $doc:literal])*
            fn $fun:ident (
                $ctx:ident
                $(, $arg:ident : $type:ty $(= $default:expr)?)*
                $(, * $args:ident)?
                $(, ** $kwargs:ident)?
                $(,)?
            ) $(as $name:literal)? $(out $out:literal)? $body:block
        )*
    ) => {
        $(
            $(#[doc = $doc])*
            #[allow(clippy::too_many_arguments)]
            pub fn $fun(
                $ctx: &$context
                $(, $arg: $type)*
                $(, $args: Vec<brine_value::Value>)?
                $(, $kwargs: brine_value::Map)?
            ) -> Result<brine_value::Value, $crate::CallError> $body
        )*

        /// The functions of this module, for the registry.
        pub static FUNCTIONS: &[$crate::Function<$context>] = &[$(
            $crate::Function {
                module: $module,
                name: $crate::functions!(@name $fun $($name)?),
                doc: &[$($doc),*],
                out: $crate::functions!(@option $($out)?),
                params: &[
                    $($crate::Param {
                        name: $crate::bare_name(stringify!($arg)),
                        kind: $crate::functions!(@kind $type $(, $default)?),
                        expected: <$type as brine_value::FromValue>::EXPECTED,
                    },)*
                    $($crate::Param {
                        name: stringify!($args),
                        kind: $crate::ParamKind::Rest,
                        expected: "anything",
                    },)?
                    $($crate::Param {
                        name: stringify!($kwargs),
                        kind: $crate::ParamKind::Keywords,
                        expected: "anything",
                    },)?
                ],
                call: |context, args| {
                    const NAME: &str = $crate::functions!(@name $fun $($name)?);
                    let params = FUNCTIONS.iter().find(|f| f.name == NAME).map_or(&[][..], |f| f.params);
                    #[allow(unused_mut, unused_variables)]
                    let mut bound = $crate::Binder::new($module, NAME, params, args)?;
                    $fun(
                        context
                        $(, bound.take::<$type>($crate::bare_name(stringify!($arg)), $crate::functions!(@option $($default)?))?)*
                        $(, { let $args = bound.rest(); $args })?
                        $(, { let $kwargs = bound.keywords(); $kwargs })?
                    )
                },
            },
        )*];
    };
    (@name $fun:ident) => { stringify!($fun) };
    (@name $fun:ident $name:literal) => { $name };
    (@option) => { None };
    (@option $some:expr) => { Some($some) };
    (@kind $type:ty) => { $crate::ParamKind::Required };
    (@kind $type:ty, $default:expr) => {
        $crate::ParamKind::Optional(|| {
            let default: $type = $default;
            brine_value::Value::from(default)
        })
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use brine_value::{list, map};

    functions! {
        module "demo", context ();

        /// Gives its argument back.
        ///
        /// Second paragraph.
        fn echo(_ctx, text: String, times: u32 = 1) {
            Ok(Value::from(text.repeat(times as usize)))
        }

        /// Takes nothing.
        fn yes(_ctx) as "true" out "txt" {
            Ok(Value::Bool(true))
        }

        /// Has a parameter whose name Rust has taken.
        fn find(_ctx, r#match: String) {
            Ok(Value::from(r#match))
        }

        /// Takes everything.
        fn all(_ctx, *args, **kwargs) {
            Ok(Value::from(map! {"args" => args, "kwargs" => kwargs}))
        }
    }

    fn call(name: &str, positional: Vec<Value>, keyword: Map) -> Result<Value, String> {
        let args = Args { positional, keyword };
        Registry::new(&[FUNCTIONS]).call(&(), name, args).map_err(|error| error.to_string())
    }

    #[test]
    fn arguments_are_bound_by_place_and_name() {
        assert_eq!(call("demo.echo", vec!["a".into()], map! {"times" => 3}), Ok("aaa".into()));
        assert_eq!(call("demo.echo", vec![5.into()], Map::new()), Ok("5".into()));
        for empty in [Value::Nil, "".into(), list![], Value::map()] {
            assert_eq!(call("demo.echo", vec!["a".into()], map! {"times" => empty}), Ok("a".into()));
        }
        assert_eq!(call("demo.true", vec![], map! {"__pub_jid" => "1"}), Ok(true.into()));
        assert_eq!(call("demo.find", vec![], map! {"match" => "web*"}), Ok("web*".into()));
        assert_eq!(
            call("demo.all", vec![1.into()], map! {"b" => 2}),
            Ok(map! {"args" => list![1], "kwargs" => map!{"b" => 2}}.into())
        );
    }

    #[test]
    fn what_does_not_fit_is_said_in_salts_words() {
        for (name, positional, keyword, message) in [
            ("demo.no", vec![], Map::new(), "'demo.no' is not available."),
            (
                "demo.echo",
                vec![],
                Map::new(),
                "Passed invalid arguments to demo.echo: echo() missing 1 required positional argument: 'text'",
            ),
            (
                "demo.true",
                vec![1.into(), 2.into(), 3.into()],
                Map::new(),
                "Passed invalid arguments to demo.true: true() takes 0 positional arguments but 3 were given",
            ),
            (
                "demo.echo",
                vec!["x".into()],
                map! {"badkw" => 1},
                "ERROR executing 'demo.echo': The following keyword arguments are not valid: badkw=1",
            ),
            (
                "demo.echo",
                vec!["x".into()],
                map! {"text" => "y"},
                "Passed invalid arguments to demo.echo: echo() got multiple values for argument 'text'",
            ),
            (
                "demo.echo",
                vec!["x".into(), "many".into()],
                Map::new(),
                "Passed invalid arguments to demo.echo: echo() argument 'times': \
                 expected a whole number that is not negative, got str",
            ),
        ] {
            assert_eq!(call(name, positional, keyword), Err(message.to_owned()));
        }
    }

    #[test]
    fn documentation_comes_from_the_declaration() {
        let registry = Registry::new(&[FUNCTIONS]);
        let echo = registry.get("demo.echo").unwrap();
        assert_eq!(echo.docstring(), "Gives its argument back.\n\nSecond paragraph.");
        assert_eq!(registry.get("demo.true").unwrap().out, Some("txt"));
        let names: Vec<_> = registry.iter().map(|f| f.name).collect();
        assert_eq!(names, ["all", "echo", "find", "true"]);
    }

    #[test]
    fn the_wire_form_goes_both_ways() {
        let wire = vec![1.into(), map! {"a" => 2, "__kwarg__" => true}.into(), map! {"b" => 3}.into()];
        let args = Args::from_wire(&wire);
        assert_eq!(args.positional, [1.into(), map! {"b" => 3}.into()]);
        assert_eq!(args.keyword, map! {"a" => 2});
        assert_eq!(Args::from_wire(&args.to_wire()), args);
    }
}
