//! The parameters of functions: their descriptions and their order.

use std::collections::HashMap;
use std::sync::{LazyLock, PoisonError, RwLock};

use brine_value::{FromValue, Value};

/// One parameter of a function.
#[derive(Clone, Copy)]
pub struct Param {
    /// The name.
    pub name: &'static str,
    /// The way in which it takes values.
    pub kind: ParamKind,
    /// The expected type, such as `a mapping`.
    pub expected: &'static str,
    /// The documentation; empty if there is none.
    pub doc: &'static str,
}

/// The way in which a parameter takes values.
#[derive(Clone, Copy)]
pub enum ParamKind {
    /// Requires a value.
    Required,
    /// Optional, with the function that returns its default.
    Optional(fn() -> Value),
    /// Optional, with a default that is known only at run time.
    Given(&'static Value),
    /// `*args`: takes all further positional values.
    Rest,
    /// `**kwargs`: takes all further keyword values.
    Keywords(Others),
    /// A further keyword value that `**kwargs` takes and the function knows. A name that ends in `*` stands for all with
    /// that start.
    Further,
}

/// The keyword values that `**kwargs` takes beside those that are described as [`ParamKind::Further`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Others {
    /// Any: they are passed on, or are the function's data.
    Any,
    /// None: they are accepted, and the function does not use them.
    Unused,
    /// None, except that with the argument `template` they are variables of the template.
    Variables,
}

impl Param {
    /// Whether the parameter takes one value, by its name or position: all but `*args` and `**kwargs`.
    pub const fn is_named(&self) -> bool {
        matches!(self.kind, ParamKind::Required | ParamKind::Optional(_) | ParamKind::Given(_))
    }

    /// Whether a value is required.
    pub const fn is_required(&self) -> bool {
        matches!(self.kind, ParamKind::Required)
    }

    /// Whether the parameter is `**kwargs`.
    pub const fn is_keywords(&self) -> bool {
        matches!(self.kind, ParamKind::Keywords(_))
    }

    /// Whether the parameter is a keyword that `**kwargs` takes.
    pub const fn is_further(&self) -> bool {
        matches!(self.kind, ParamKind::Further)
    }

    /// Returns the default value of an optional parameter.
    pub fn default(&self) -> Option<Value> {
        match &self.kind {
            ParamKind::Optional(default) => Some(default()),
            ParamKind::Given(default) => Some((*default).clone()),
            ParamKind::Required | ParamKind::Rest | ParamKind::Keywords(_) | ParamKind::Further => None,
        }
    }
}

/// Returns the documentation of parameters in the format of Salt's functions: their names, and the text of the first.
pub(crate) fn docstring(group: &[Param]) -> String {
    let names: Vec<&str> = group.iter().map(|param| param.name).collect();
    let doc = group.first().map_or("", |param| param.doc);
    let line = |line: &str| if line.is_empty() { "\n".to_owned() } else { format!("\n    {line}") };
    format!("{}{}", names.join(", "), doc.split('\n').map(line).collect::<String>())
}

/// Describes `**kwargs` that a function accepts for Salt's SLS files and does not use.
pub fn unused(params: &mut ParamList) {
    params.others(Others::Unused);
}

/// Returns the names of the parameters that positional values fill, in order.
pub fn positional(params: &[Param]) -> Vec<&'static str> {
    params.iter().filter(|param| param.is_named()).map(|param| param.name).collect()
}

/// The parameters of a function, in order.
#[derive(Clone, Copy)]
pub enum Params {
    /// The parameters of a function declared in Rust, added by code. As static data, the descriptions of thousands of
    /// functions would be relocated at every start of the program.
    Declared(fn(&mut ParamList)),
    /// The parameters of a function that was found at run time.
    Found(&'static [Param]),
}

/// The parameters of declared functions, cached when they are first used, by the address of the code that describes
/// them. Equal descriptions may share an address.
static DECLARED: LazyLock<RwLock<HashMap<usize, &'static [Param]>>> = LazyLock::new(RwLock::default);

impl Params {
    /// Returns the parameters. Those of a declared function are built once, at the first call.
    pub fn list(self) -> &'static [Param] {
        let describe = match self {
            Params::Declared(describe) => describe,
            Params::Found(params) => return params,
        };
        let address = describe as usize;
        if let Some(params) = DECLARED.read().unwrap_or_else(PoisonError::into_inner).get(&address) {
            return params;
        }
        let mut list = ParamList(Vec::new());
        describe(&mut list);
        let mut declared = DECLARED.write().unwrap_or_else(PoisonError::into_inner);
        declared.entry(address).or_insert_with(|| list.0.leak())
    }
}

/// A list to which macro-generated code adds parameters.
pub struct ParamList(Vec<Param>);

impl ParamList {
    /// Adds a required parameter.
    pub fn required<T: FromValue>(&mut self, name: &'static str, doc: &'static str) {
        self.add(name, ParamKind::Required, T::EXPECTED, doc);
    }

    /// Adds an optional parameter.
    pub fn optional<T: FromValue>(&mut self, name: &'static str, doc: &'static str, default: fn() -> Value) {
        self.add(name, ParamKind::Optional(default), T::EXPECTED, doc);
    }

    /// Adds `*args`.
    pub fn rest(&mut self, name: &'static str, doc: &'static str) {
        self.add(name, ParamKind::Rest, "anything", doc);
    }

    /// Adds `**kwargs`.
    pub fn keywords(&mut self, name: &'static str, doc: &'static str) {
        self.add(name, ParamKind::Keywords(Others::Any), "anything", doc);
    }

    /// Adds a keyword that `**kwargs` takes. A name that is declared already is not added.
    pub fn further(&mut self, name: &'static str, expected: &'static str, doc: &'static str) {
        if !self.0.iter().any(|param| param.name == name && !param.is_keywords()) {
            self.add(name, ParamKind::Further, expected, doc);
        }
    }

    /// Adds the parameters that another function or struct describes as keywords that `**kwargs` takes: those of the
    /// function that gets them.
    pub fn further_of(&mut self, describe: fn(&mut ParamList)) {
        self.further_of_except(describe, &[]);
    }

    /// Adds the parameters that another function or struct describes, except for these, as keywords that `**kwargs` takes.
    pub fn further_of_except(&mut self, describe: fn(&mut ParamList), except: &[&str]) {
        let mut own = ParamList(Vec::new());
        describe(&mut own);
        for param in own.0.iter().filter(|param| param.is_named() || param.is_further()) {
            if !except.contains(&param.name) {
                self.further(param.name, param.expected, param.doc);
            }
        }
    }

    /// Declares what `**kwargs` takes beside the keywords that are described.
    pub fn others(&mut self, others: Others) {
        if let Some(keywords) = self.0.iter_mut().find(|param| param.is_keywords()) {
            keywords.kind = ParamKind::Keywords(others);
        }
    }

    // Not inlined: it is called from thousands of places, in code that runs rarely.
    #[inline(never)]
    fn add(&mut self, name: &'static str, kind: ParamKind, expected: &'static str, doc: &'static str) {
        self.0.push(Param { name, kind, expected, doc });
    }
}

/// The ranks of the first and the last parameter of a list. Used by the macros.
#[doc(hidden)]
#[derive(Clone, Copy)]
pub struct Order {
    first: u8,
    last: u8,
}

impl Order {
    pub const NAMED: Order = Order { first: 0, last: 0 };
    pub const REST: Order = Order { first: 1, last: 1 };
    pub const KEYWORDS: Order = Order { first: 2, last: 2 };

    /// Returns the order of the concatenation of these lists.
    ///
    /// # Panics
    /// Fails to compile unless named parameters come first, then at most one `*args` and at most one `**kwargs`.
    pub const fn of(parts: &[Order]) -> Order {
        let Some((first, mut rest)) = parts.split_first() else { return Order::NAMED };
        let mut order = *first;
        while let Some((next, others)) = rest.split_first() {
            assert!(
                order.last < next.first || (order.last == 0 && next.first == 0),
                "expected named parameters, then at most one #[rest], then at most one #[keywords]"
            );
            order.last = next.last;
            rest = others;
        }
        order
    }
}
