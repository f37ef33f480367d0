//! The functions of one module, described by code when they are first used.

use std::sync::OnceLock;

use crate::{Binder, CallResult, Function, ParamList, Params};

/// The functions of one module, declared by [`registry!`](crate::registry). As static data, the descriptions of
/// thousands of functions would be relocated at every start of the program.
pub struct Functions<C: 'static> {
    module: &'static str,
    describe: fn(&mut FunctionList<C>),
    list: OnceLock<Vec<Function<C>>>,
}

impl<C> Functions<C> {
    /// Declares the functions that `describe` adds; used by the code that [`registry!`](crate::registry) generates.
    #[doc(hidden)]
    pub const fn new(module: &'static str, describe: fn(&mut FunctionList<C>)) -> Self {
        Functions { module, describe, list: OnceLock::new() }
    }

    /// Returns Salt's name of the module, such as `test`.
    pub const fn module(&self) -> &'static str {
        self.module
    }

    /// Returns the functions in the order of their declaration.
    pub fn list(&self) -> &[Function<C>] {
        self.list.get_or_init(|| {
            let mut list = FunctionList { module: self.module, functions: Vec::new() };
            (self.describe)(&mut list);
            list.functions
        })
    }

    /// Returns the names, parameters and documentation without the code, for functions that another process executes.
    #[must_use]
    pub fn declaration(&self) -> Functions<()> {
        let declared: Vec<_> = self.list().iter().map(Function::declaration).collect();
        Functions { module: self.module, describe: |_| {}, list: declared.into() }
    }
}

/// A list to which the code that [`function`](crate::function) generates adds functions.
pub struct FunctionList<C: 'static> {
    module: &'static str,
    functions: Vec<Function<C>>,
}

impl<C> FunctionList<C> {
    /// Adds a function.
    // Not inlined: it is called from thousands of places, in code that runs rarely.
    #[doc(hidden)]
    #[inline(never)]
    pub fn add(
        &mut self,
        name: &'static str,
        doc: &'static str,
        (out, is_secret): (Option<&'static str>, bool),
        params: fn(&mut ParamList),
        code: fn(&C, &mut Binder) -> CallResult,
    ) {
        let params = Params::Declared(params);
        self.functions.push(Function { module: self.module, name, doc, params, out, is_secret, code });
    }
}
