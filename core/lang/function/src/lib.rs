//! Callable functions: execution, runner, wheel and state functions are plain Rust functions with the attribute
//! [`#[function]`](function), listed by [`registry!`](registry) and found in a [`Registry`] by their Salt name.
//!
//! Names, argument types, defaults and documentation come from that one declaration: argument checks, `sys.doc` and
//! `sys.argspec` derive from it.
//!
//! ```
//! use brine_function::{Args, CallResult, Functions, Registry, function, registry};
//! use brine_value::{Map, Value};
//!
//! static FUNCTIONS: Functions<u32> = registry!("demo", [echo, list, copy, password]);
//!
//! /// Return a string several times.
//! #[function]
//! fn echo(_context: &u32, text: String, #[default(1)] times: u32) -> CallResult {
//!     Ok(Value::from(text.repeat(times as usize)))
//! }
//!
//! /// Return the number of arguments. A name that is reserved in Rust is set by `name`.
//! #[function(name = "return", out = "json")]
//! fn list(context: &u32, #[rest] args: Vec<Value>, #[keywords] kwargs: Map) -> CallResult {
//!     Ok(Value::from(args.len() as u64 + kwargs.len() as u64 + u64::from(*context)))
//! }
//!
//! /// The arguments of `demo.copy`.
//! #[derive(Args)]
//! struct CopyArgs {
//!     /// Path of the file to copy.
//!     source: String,
//!     /// Whether an existing file is replaced.
//!     #[default]
//!     force: bool,
//! }
//!
//! /// Copy a file. A function with many arguments takes them as a struct, as do functions that share arguments.
//! #[function]
//! fn copy(_context: &u32, #[args] args: CopyArgs) -> CallResult {
//!     Ok(Value::from(format!("{} {}", args.source, args.force)))
//! }
//!
//! /// Return a secret: only its caller gets the result.
//! #[function(secret)]
//! fn password(_context: &u32) -> CallResult {
//!     Ok("xyzzy".into())
//! }
//!
//! let registry = Registry::new(&[&FUNCTIONS]);
//! assert!(registry.has_secret_result("demo.password") && !registry.has_secret_result("demo.echo"));
//! let args = Args { positional: vec!["ab".into(), 2.into()], ..Args::default() };
//! assert_eq!(registry.call(&0, "demo.echo", args), Ok("abab".into()));
//! assert_eq!(registry.call(&7, "demo.return", Args::default()), Ok(7.into()));
//! assert_eq!(registry.call(&0, "demo.copy", Args::positional(["/a".into()])), Ok("/a false".into()));
//! ```
//!
//! A duplicate function in the list of a module does not compile:
//!
//! ```compile_fail
//! # use brine_function::{CallResult, Functions, function, registry};
//! # use brine_value::Value;
//! static FUNCTIONS: Functions<u32> = registry!("demo", [ping, ping]);
//!
//! #[function]
//! fn ping(_context: &u32) -> CallResult {
//!     Ok(true.into())
//! }
//! ```
//!
//! Nor does one that is missing in the list:
//!
//! ```compile_fail
//! # use brine_function::{CallResult, Functions, function, registry};
//! # use brine_value::Value;
//! static FUNCTIONS: Functions<u32> = registry!("demo", []);
//!
//! #[function]
//! fn ping(_context: &u32) -> CallResult {
//!     Ok(true.into())
//! }
//! # assert!(FUNCTIONS.list().is_empty());
//! ```
//!
//! Nor do parameters out of order, also where some come from a struct:
//!
//! ```compile_fail
//! # use brine_function::{Args, CallResult, Functions, function, registry};
//! # use brine_value::Map;
//! static FUNCTIONS: Functions<u32> = registry!("demo", [all]);
//!
//! #[derive(Args)]
//! struct Rest {
//!     #[keywords]
//!     kwargs: Map,
//! }
//!
//! #[function]
//! fn all(_context: &u32, #[args] rest: Rest, name: String) -> CallResult {
//!     Ok((rest.kwargs.len().to_string() + &name).into())
//! }
//! # assert!(!FUNCTIONS.list().is_empty());
//! ```

// The macros name this crate by its path, in its own tests, too.
#[cfg(test)]
extern crate self as brine_function;

mod binder;
mod functions;
mod param;
#[cfg(test)]
mod tests;

pub mod arguments;
pub mod carriers;

use brine_text::nearest::nearest_within;
use brine_value::python::repr;
use brine_value::{Map, Value};

pub use binder::{Arguments, Binder};
pub use brine_macros::{Args, function, registry};
pub use functions::{FunctionList, Functions};
pub use param::{Order, Others, Param, ParamKind, ParamList, Params, positional, unused};

/// The titles that start the examples of a function.
const EXAMPLES: [&str; 2] = ["\n\nCLI Example", "\n\nSLS Example"];

/// A function that is called by name, with a context `C` that its host provides.
pub struct Function<C: 'static> {
    /// Salt's name of the module, such as `test`.
    pub module: &'static str,
    /// The name within the module, such as `ping`.
    pub name: &'static str,
    /// The documentation; empty if there is none.
    pub doc: &'static str,
    /// The parameters in order; [`Function::params`] lists them.
    pub params: Params,
    /// The outputter of the result, such as `highstate`.
    pub out: Option<&'static str>,
    /// Whether the result is a secret, such as a private key: only the caller gets it, and it is not recorded.
    pub is_secret: bool,
    /// The code: takes the arguments from the binder and runs the function. [`Function::call`] checks the arguments
    /// first.
    pub code: fn(&C, &mut Binder) -> CallResult,
}

/// The result of a call.
pub type CallResult = Result<Value, CallError>;

/// The arguments of a call.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Args {
    /// Positional arguments.
    pub positional: Vec<Value>,
    /// Keyword arguments.
    pub keyword: Map,
}

impl Args {
    /// Creates positional arguments only.
    pub fn positional(values: impl IntoIterator<Item = Value>) -> Self {
        Args { positional: values.into_iter().collect(), keyword: Map::new() }
    }

    /// Creates keyword arguments only.
    pub fn keyword(values: Map) -> Self {
        Args { positional: Vec::new(), keyword: values }
    }

    /// Decodes Salt's wire format: a list in which keyword arguments are a map with `__kwarg__: true`, or strings
    /// `name=value` with a value in YAML. The last value of a repeated keyword takes precedence.
    pub fn from_wire(list: &[Value]) -> Self {
        let (mut args, mut memory) = (Args::default(), arguments::MAX_VALUE);
        for item in list {
            match item {
                Value::Str(word) => match arguments::keyword_within(word, &mut memory) {
                    Some((name, value)) => _ = args.keyword.insert(name.into(), value),
                    None => args.positional.push(item.clone()),
                },
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

    /// Encodes to Salt's wire format.
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

/// The errors of a call.
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
        /// The error.
        message: String,
    },
    /// Unknown keyword arguments, or an invalid combination of arguments.
    #[error("ERROR executing '{function}': {message}")]
    Invocation {
        /// The full name of the function.
        function: String,
        /// The error.
        message: String,
    },
    /// The function failed.
    #[error("ERROR: {0}")]
    Execution(String),
    /// The function failed with an unexpected error: in Salt, an exception.
    #[error("The minion function caused an exception: {0}")]
    Exception(String),
}

impl From<String> for CallError {
    fn from(message: String) -> Self {
        CallError::Execution(message)
    }
}

impl CallError {
    /// Returns the message; that of [`CallError::Execution`] without its prefix.
    pub fn message(self) -> String {
        match self {
            CallError::Execution(message) => message,
            other => other.to_string(),
        }
    }

    /// Returns the message; that of a function that failed in any way without words about the function.
    pub fn cause(self) -> String {
        match self {
            CallError::Execution(message) | CallError::Exception(message) => message,
            other => other.to_string(),
        }
    }

    /// Creates the error of a failed function.
    pub fn execution(error: impl std::fmt::Display) -> Self {
        CallError::Execution(error.to_string())
    }
}

impl<C> Function<C> {
    /// Returns the full name: `test.ping`.
    pub fn full_name(&self) -> String {
        format!("{}.{}", self.module, self.name)
    }

    /// Returns the parameters in order.
    pub fn params(&self) -> &'static [Param] {
        self.params.list()
    }

    /// Whether the function accepts `**kwargs`.
    pub fn takes_keywords(&self) -> bool {
        self.params().iter().any(Param::is_keywords)
    }

    /// Returns what `**kwargs` takes beside the keywords that are described; `None` without `**kwargs`.
    pub fn others(&self) -> Option<Others> {
        self.params().iter().find_map(|param| match param.kind {
            ParamKind::Keywords(others) => Some(others),
            _ => None,
        })
    }

    /// Returns the documentation before its examples, and the examples; empty if there are none.
    pub fn about_and_examples(&self) -> (&'static str, &'static str) {
        let start = EXAMPLES.iter().filter_map(|title| self.doc.find(title)).min();
        let start = start.unwrap_or(self.doc.len());
        (self.doc[..start].trim_end(), self.doc[start..].trim_start())
    }

    /// Returns the parameters in order. Successive keywords that `**kwargs` takes and that have the same documentation are
    /// one group; every other parameter is a group of its own.
    pub fn parameter_groups(&self) -> Vec<&'static [Param]> {
        let is_same = |one: &Param, next: &Param| one.is_further() && next.is_further() && one.doc == next.doc;
        self.params().chunk_by(is_same).collect()
    }

    /// Returns the name with the parameters and their defaults: `test.echo(text)`, `test.arg(*args, **kwargs)`.
    pub fn signature(&self) -> String {
        let parameter = |param: &Param| match param.kind {
            ParamKind::Required | ParamKind::Further => param.name.to_owned(),
            ParamKind::Optional(_) | ParamKind::Given(_) => {
                format!("{}={}", param.name, repr(&param.default().unwrap_or_default()))
            }
            ParamKind::Rest => format!("*{}", param.name),
            ParamKind::Keywords(_) => format!("**{}", param.name),
        };
        let params: Vec<String> = self.params().iter().filter(|param| !param.is_further()).map(parameter).collect();
        format!("{}({})", self.full_name(), params.join(", "))
    }

    /// Returns the documentation as one string: description, arguments, examples.
    pub fn docstring(&self) -> String {
        let groups = self.parameter_groups();
        let documented = groups.iter().filter(|group| group.iter().all(|param| !param.doc.is_empty()));
        let arguments: Vec<String> = documented.map(|group| param::docstring(group)).collect();
        if arguments.is_empty() {
            return self.doc.to_owned();
        }
        let arguments = arguments.join("\n\n");
        match self.about_and_examples() {
            (about, "") => format!("{about}\n\n{arguments}"),
            (about, examples) => format!("{about}\n\n{arguments}\n\n{examples}"),
        }
    }

    #[must_use]
    fn declaration(&self) -> Function<()> {
        let Function { module, name, doc, params, out, is_secret, code: _ } = *self;
        Function {
            module,
            name,
            doc,
            params,
            out,
            is_secret,
            code: |(), _| Err(CallError::execution("it is declared only")),
        }
    }

    /// Checks the arguments and runs the function.
    pub fn call(&self, context: &C, args: Args) -> CallResult {
        (self.code)(context, &mut Binder::new(self.module, self.name, self.params(), args)?)
    }
}

/// Functions that are found at run time, such as those of custom modules. They take precedence over built-in functions
/// of the same name.
pub trait Overlay<C: 'static>: Send + Sync {
    /// Returns the functions of a module, or of all modules.
    fn functions(&self, module: Option<&str>) -> Vec<&'static Function<C>>;

    /// Returns the functions of a module, or of all modules, over which built-in functions of the same name take
    /// precedence.
    fn fallback(&self, _module: Option<&str>) -> Vec<&'static Function<C>> {
        Vec::new()
    }
}

/// An overlay without the functions of hidden modules.
struct HidingOverlay<C: 'static, F> {
    overlay: Box<dyn Overlay<C>>,
    is_hidden: F,
}

impl<C, F: Fn(&str) -> bool> HidingOverlay<C, F> {
    fn filtered(&self, mut functions: Vec<&'static Function<C>>) -> Vec<&'static Function<C>> {
        functions.retain(|function| !(self.is_hidden)(function.module));
        functions
    }
}

impl<C, F: Fn(&str) -> bool + Send + Sync> Overlay<C> for HidingOverlay<C, F> {
    fn functions(&self, module: Option<&str>) -> Vec<&'static Function<C>> {
        if module.is_some_and(&self.is_hidden) { Vec::new() } else { self.filtered(self.overlay.functions(module)) }
    }

    fn fallback(&self, module: Option<&str>) -> Vec<&'static Function<C>> {
        if module.is_some_and(&self.is_hidden) { Vec::new() } else { self.filtered(self.overlay.fallback(module)) }
    }
}

/// All functions of one kind, found by their full name. A module whose functions are never called costs nothing.
pub struct Registry<C: 'static> {
    modules: Vec<&'static Functions<C>>,
    overlay: Option<Box<dyn Overlay<C>>>,
}

impl<C> Registry<C> {
    /// Creates a registry of these lists, each of one module.
    pub fn new(modules: &[&'static Functions<C>]) -> Self {
        Registry { modules: modules.to_vec(), overlay: None }
    }

    /// Adds an overlay, whose functions take precedence over those of the lists.
    #[must_use]
    pub fn with_overlay(mut self, overlay: impl Overlay<C> + 'static) -> Self {
        self.overlay = Some(Box::new(overlay));
        self
    }

    /// Removes the modules for which `is_hidden` returns true, from the overlay, too.
    #[must_use]
    pub fn without(mut self, is_hidden: impl Fn(&str) -> bool + Send + Sync + 'static) -> Self {
        self.modules.retain(|functions| !is_hidden(functions.module()));
        self.overlay = self.overlay.map(|overlay| Box::new(HidingOverlay { overlay, is_hidden }) as _);
        self
    }

    /// Returns the function with this full name.
    pub fn get(&self, name: &str) -> Option<&'static Function<C>> {
        let (module, name) = name.split_once('.')?;
        let over = self.over(Some(module));
        let is_it = |function: &&'static Function<C>| function.module == module && function.name == name;
        let added = over.into_iter().find(is_it);
        let listed = || self.listed(module).find(|function| function.name == name);
        added.or_else(listed).or_else(|| self.below(Some(module)).into_iter().find(is_it))
    }

    /// Whether the lists, not the overlay, contain a function with this full name.
    pub fn has_built_in(&self, name: &str) -> bool {
        let parts = name.split_once('.');
        parts.is_some_and(|(module, name)| self.listed(module).any(|function| function.name == name))
    }

    /// Whether the lists, not the overlay, contain a function with this full name whose result is a secret.
    pub fn has_secret_result(&self, name: &str) -> bool {
        let parts = name.split_once('.');
        let is_secret =
            |(module, name)| self.listed(module).any(|function| function.name == name && function.is_secret);
        parts.is_some_and(is_secret)
    }

    /// Whether the module has any functions.
    pub fn has_module(&self, module: &str) -> bool {
        let is_of = |functions: Vec<&Function<C>>| functions.iter().any(|function| function.module == module);
        self.listed(module).next().is_some() || is_of(self.over(Some(module))) || is_of(self.below(Some(module)))
    }

    /// Calls the function with this full name.
    pub fn call(&self, context: &C, name: &str, args: Args) -> CallResult {
        let function = self.get(name).ok_or_else(|| CallError::NotAvailable(name.to_owned()))?;
        function.call(context, args)
    }

    /// Returns the most similar full name, if few characters differ.
    pub fn nearest(&self, name: &str) -> Option<String> {
        // A lower limit than for a single word: all functions of a module share a prefix.
        nearest_within(name, self.iter().map(Function::full_name), (name.len() / 6).min(3))
    }

    /// Returns all functions, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = &'static Function<C>> {
        let mut all = self.over(None);
        all.extend(self.built_in());
        all.extend(self.below(None));
        // The sort is stable: of several functions with the same name, the first one remains.
        all.sort_by_key(|function| (function.module, function.name));
        all.dedup_by_key(|function| (function.module, function.name));
        all.into_iter()
    }

    /// Returns the functions of the lists, without the overlay.
    pub fn built_in(&self) -> impl Iterator<Item = &'static Function<C>> {
        self.modules.iter().flat_map(|functions| functions.list())
    }

    /// Returns the overlay's functions of a module, or of all modules.
    fn over(&self, module: Option<&str>) -> Vec<&'static Function<C>> {
        self.overlay.as_ref().map(|overlay| overlay.functions(module)).unwrap_or_default()
    }

    /// Returns the overlay's fallback functions of a module, or of all modules.
    fn below(&self, module: Option<&str>) -> Vec<&'static Function<C>> {
        self.overlay.as_ref().map(|overlay| overlay.fallback(module)).unwrap_or_default()
    }

    /// Returns the functions of a module in the lists.
    fn listed(&self, module: &str) -> impl Iterator<Item = &'static Function<C>> {
        let lists = self.modules.iter().filter(move |functions| functions.module() == module);
        lists.flat_map(|functions| functions.list())
    }
}
