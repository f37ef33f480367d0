//! The functions of all Salt modules, passed in by the crate that owns them.

use brine_function::{Function, Registry};
use brine_sls::compile::Chunk;

use crate::{Context, StateContext};

/// Merges another state into a state if they can run as one; returns whether it did.
pub type Aggregate = fn(&mut Chunk, &Chunk) -> bool;

/// The functions of one Salt module, or of several that belong together, such as `pkg` and `pkgrepo`.
pub struct Room {
    /// Lists of execution functions.
    pub functions: &'static [&'static [Function<Context>]],
    /// Lists of state functions.
    pub states: &'static [&'static [Function<StateContext>]],
    /// The module whose states can be aggregated (`aggregate`), and how they are merged.
    pub aggregate: Option<(&'static str, Aggregate)>,
    /// Returns why this host cannot run states of the room, if so. Called for each state, because an earlier one may
    /// have installed a missing program.
    pub unavailable: Option<fn(&Context) -> Option<String>>,
}

impl Room {
    /// A room without functions, for `..Room::EMPTY`.
    pub const EMPTY: Room = Room { functions: &[], states: &[], aggregate: None, unavailable: None };
}

/// The rooms of Salt's modules, crate by crate.
#[derive(Clone, Copy)]
pub struct Rooms(pub &'static [&'static [&'static Room]]);

impl Rooms {
    fn all(self) -> impl Iterator<Item = &'static Room> {
        self.0.iter().copied().flatten().copied()
    }

    /// Returns all execution functions, list by list.
    pub fn functions(self) -> Vec<&'static [Function<Context>]> {
        self.all().flat_map(|room| room.functions).copied().collect()
    }

    /// Returns all state functions, list by list.
    pub fn states(self) -> Vec<&'static [Function<StateContext>]> {
        self.all().flat_map(|room| room.states).copied().collect()
    }

    /// Returns whether a module has execution functions.
    pub fn has_module(self, name: &str) -> bool {
        self.functions().iter().flat_map(|list| list.iter()).any(|function| function.module == name)
    }

    /// Returns whether there is an execution function of this full name.
    pub fn has(self, name: &str) -> bool {
        Registry::new(&self.functions()).get(name).is_some()
    }

    /// Returns the full names of all execution functions.
    pub fn names(self) -> Vec<String> {
        self.functions().into_iter().flatten().map(Function::full_name).collect()
    }

    /// Returns how states of a module are merged into one, if they can be.
    pub fn aggregate_of(self, module: &str) -> Option<Aggregate> {
        self.all().filter_map(|room| room.aggregate).find(|(name, _)| *name == module).map(|(_, aggregate)| aggregate)
    }

    /// Returns why this host cannot run the states of a module, if so.
    pub fn unavailable(self, context: &Context, module: &str) -> Option<String> {
        let has =
            |room: &&Room| room.states.iter().filter_map(|list| list.first()).any(|function| function.module == module);
        self.all().find(has)?.unavailable?(context)
    }
}
