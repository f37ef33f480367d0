//! The modules of all tests, and the gates of their functions.

use std::collections::HashMap;
use std::sync::Arc;

use brine_context::{Context, Module, Modules, StateContext};
use brine_function::{
    Args, Binder, CallError, CallResult, Function, Others, Overlay, Param, ParamKind, Params, Registry,
};
use parking_lot::Mutex;

use super::World;
use super::pure::is_pure;

/// Gates of functions, by module.
type Gates<C> = HashMap<&'static str, Vec<&'static Function<C>>>;

/// The functions and states of all tests, with their gates. Tests share it.
pub struct Library {
    /// The modules, none of which depends on the host.
    pub modules: Modules,
    /// The functions without gates.
    pub(super) functions: Registry<Context>,
    /// The states without gates.
    pub(super) states: Registry<StateContext>,
    gates: Gates<Context>,
    /// The gates of functions that are not pure: those of a host without mocks.
    impure: Gates<Context>,
    state_gates: Gates<StateContext>,
    /// The gates of mocks that Brine has no function for, by full name.
    foreign: Mutex<HashMap<String, &'static Function<Context>>>,
}

impl Library {
    /// Creates the gates of all functions of these modules.
    pub fn new(modules: Modules) -> Arc<Self> {
        let modules = independent(modules);
        let (functions, states) = (Registry::new(&modules.functions()), Registry::new(&modules.states()));
        let (mut gates, mut impure) = (Gates::<Context>::new(), Gates::<Context>::new());
        for function in functions.built_in() {
            let own = gate_of(function, gate);
            gates.entry(function.module).or_default().push(own);
            if !is_pure(function.module, function.name) {
                impure.entry(function.module).or_default().push(own);
            }
        }
        let mut state_gates = Gates::<StateContext>::new();
        for function in states.built_in().filter(|function| function.module != "test") {
            state_gates.entry(function.module).or_default().push(gate_of(function, state_gate));
        }
        Arc::new(Library { modules, functions, states, gates, impure, state_gates, foreign: Mutex::default() })
    }

    /// Returns the nearest function to a name that Brine does not have.
    pub fn unknown(&self, name: &str) -> Option<String> {
        if self.functions.get(name).is_some() { None } else { self.functions.nearest(name) }
    }

    /// Returns the gates of the functions that are mocked, or not pure.
    pub(super) fn overlay(self: &Arc<Self>, mocked: Vec<String>) -> impl Overlay<Context> + use<> {
        let foreign = mocked.iter().filter(|name| self.functions.get(name).is_none());
        let foreign = foreign.filter_map(|name| self.foreign(name)).collect();
        FunctionGates { library: Arc::clone(self), mocked, foreign }
    }

    /// Returns the gates of the states.
    pub(super) fn state_overlay(self: &Arc<Self>) -> impl Overlay<StateContext> + use<> {
        StateGates(Arc::clone(self))
    }

    /// Returns the gate of a mock that Brine has no function for, such as one of a custom module.
    fn foreign(&self, name: &str) -> Option<&'static Function<Context>> {
        let mut foreign = self.foreign.lock();
        if let Some(function) = foreign.get(name) {
            return Some(function);
        }
        let (module, function) = name.split_once('.')?;
        let gate: &'static Function<Context> = Box::leak(Box::new(Function {
            module: String::leak(module.to_owned()),
            name: String::leak(function.to_owned()),
            doc: "",
            params: Params::Found(&ANY),
            out: None,
            is_secret: false,
            code: gate,
        }));
        foreign.insert(name.to_owned(), gate);
        Some(gate)
    }
}

/// Parameters that take all arguments.
static ANY: [Param; 2] = [
    Param { name: "args", kind: ParamKind::Rest, expected: "", doc: "" },
    Param { name: "kwargs", kind: ParamKind::Keywords(Others::Any), expected: "", doc: "" },
];

/// Returns the modules with all of their states available, whatever the host has.
fn independent(modules: Modules) -> Modules {
    let crates = modules.0.iter().map(|modules| {
        let copies = modules.iter().map(|module| {
            let Module { functions, states, aggregate, unavailable: _ } = **module;
            let copy: &'static Module = Box::leak(Box::new(Module { functions, states, aggregate, unavailable: None }));
            copy
        });
        let copies: &'static [&'static Module] = Vec::leak(copies.collect());
        copies
    });
    Modules(Vec::leak(crates.collect()))
}

/// Returns a function with the name and the parameters of another one.
fn gate_of<C>(function: &Function<C>, code: fn(&C, &mut Binder) -> CallResult) -> &'static Function<C> {
    let Function { module, name, doc, params, out, .. } = *function;
    // The result is shown as it is: it comes from the test.
    Box::leak(Box::new(Function { module, name, doc, params, out, is_secret: false, code }))
}

fn all(bound: &mut Binder) -> Args {
    let mut args = Args { positional: bound.rest(), keyword: bound.keywords() };
    args.keyword.retain(|name, _| !name.as_str().is_some_and(|name| name.starts_with("__pub_")));
    args
}

fn gate(context: &Context, bound: &mut Binder) -> CallResult {
    let (function, args) = (bound.function().to_owned(), all(bound));
    match World::of(context) {
        Some(world) => world.call(context, &function, args),
        None => Err(CallError::execution("the test has ended")),
    }
}

fn state_gate(context: &StateContext, bound: &mut Binder) -> CallResult {
    let (function, args) = (bound.function().to_owned(), all(bound));
    match World::of(&context.call) {
        Some(world) => world.state(context, &function, args),
        None => Err(CallError::execution("the test has ended")),
    }
}

/// The gates of execution functions in one test.
struct FunctionGates {
    library: Arc<Library>,
    mocked: Vec<String>,
    foreign: Vec<&'static Function<Context>>,
}

impl Overlay<Context> for FunctionGates {
    fn functions(&self, module: Option<&str>) -> Vec<&'static Function<Context>> {
        // It is asked for each call of a template.
        if self.mocked.is_empty() {
            return match module {
                Some(module) => self.library.impure.get(module).cloned().unwrap_or_default(),
                None => self.library.impure.values().flatten().copied().collect(),
            };
        }
        let is_gated = |function: &&'static Function<Context>| {
            !is_pure(function.module, function.name) || self.mocked.contains(&function.full_name())
        };
        let foreign = self.foreign.iter().copied().filter(|function| module.is_none_or(|name| function.module == name));
        let gates: Vec<_> = match module {
            Some(module) => self.library.gates.get(module).into_iter().flatten().copied().filter(is_gated).collect(),
            None => self.library.gates.values().flatten().copied().filter(is_gated).collect(),
        };
        gates.into_iter().chain(foreign).collect()
    }
}

/// The gates of states.
struct StateGates(Arc<Library>);

impl Overlay<StateContext> for StateGates {
    fn functions(&self, module: Option<&str>) -> Vec<&'static Function<StateContext>> {
        match module {
            Some(module) => self.0.state_gates.get(module).cloned().unwrap_or_default(),
            None => self.0.state_gates.values().flatten().copied().collect(),
        }
    }
}
