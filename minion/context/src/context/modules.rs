//! The functions of all Salt modules, passed in by the crate that owns them.

use brine_function::carriers::Carrier;
use brine_function::{Function, Functions, Registry};
use brine_mask::Parameters;
use brine_sls::compile::Chunk;

use super::{Context, StateContext};

/// Merges another state into a state if both can run as one. Returns whether they were merged.
pub type Aggregate = fn(&mut Chunk, &Chunk) -> bool;

/// The functions of one Salt module, or of several that belong together, such as `pkg` and `pkgrepo`.
pub struct Module {
    /// Lists of execution functions.
    pub functions: &'static [&'static Functions<Context>],
    /// Lists of state functions.
    pub states: &'static [&'static Functions<StateContext>],
    /// The module whose states can be aggregated (`aggregate`), and the function that merges them.
    pub aggregate: Option<(&'static str, Aggregate)>,
    /// Returns the reason why this host cannot run states of the module; `None` if it can. Called for each state,
    /// because an earlier one may have installed a missing program.
    pub unavailable: Option<fn(&Context) -> Option<String>>,
}

impl Module {
    /// A module without functions, for `..Module::EMPTY`.
    pub const EMPTY: Module = Module { functions: &[], states: &[], aggregate: None, unavailable: None };
}

/// All Salt modules, crate by crate.
#[derive(Clone, Copy)]
pub struct Modules(pub &'static [&'static [&'static Module]]);

impl Parameters for Modules {
    fn positional(&self, function: &str) -> Vec<&'static str> {
        self.positional_parameters(function)
    }

    fn carrier(&self, function: &str) -> Option<&'static Carrier> {
        brine_carriers::carrier(function)
    }
}

impl Modules {
    fn all(self) -> impl Iterator<Item = &'static Module> {
        self.0.iter().copied().flatten().copied()
    }

    /// Returns all execution functions, list by list.
    pub fn functions(self) -> Vec<&'static Functions<Context>> {
        self.all().flat_map(|module| module.functions).copied().collect()
    }

    /// Returns all state functions, list by list.
    pub fn states(self) -> Vec<&'static Functions<StateContext>> {
        self.all().flat_map(|module| module.states).copied().collect()
    }

    /// Returns whether a module has execution functions.
    pub fn has_module(self, name: &str) -> bool {
        self.functions().iter().any(|functions| functions.module() == name)
    }

    /// Returns whether there is an execution function of this full name.
    pub fn has(self, name: &str) -> bool {
        Registry::new(&self.functions()).get(name).is_some()
    }

    /// Returns the full names of all execution functions.
    pub fn names(self) -> Vec<String> {
        Registry::new(&self.functions()).built_in().map(Function::full_name).collect()
    }

    /// Returns the names of the positional parameters of an execution function, in order; none if it is unknown.
    pub fn positional_parameters(self, name: &str) -> Vec<&'static str> {
        let function = Registry::new(&self.functions()).get(name);
        function.map(|function| brine_function::positional(function.params())).unwrap_or_default()
    }

    /// Returns the function that merges states of a module, if they can be aggregated.
    pub fn aggregate_of(self, name: &str) -> Option<Aggregate> {
        self.all().filter_map(|module| module.aggregate).find(|(of, _)| *of == name).map(|(_, aggregate)| aggregate)
    }

    /// Returns the reason why this host cannot run the states of a module; `None` if it can.
    pub fn unavailable(self, context: &Context, name: &str) -> Option<String> {
        let has_states = |module: &&Module| module.states.iter().any(|functions| functions.module() == name);
        self.all().find(has_states)?.unavailable?(context)
    }
}
