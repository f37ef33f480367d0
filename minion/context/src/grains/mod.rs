//! The grains of a minion: shared by its components, replaced as a whole, and collected when they are first read.

use std::sync::Arc;

use brine_value::{Map, Value};
use parking_lot::RwLock;

/// The grains of a minion. Pillar requests share them.
pub struct Grains(RwLock<State>);

struct State {
    known: Arc<Map>,
    /// The function that collects the grains, until they are first read.
    uncollected: Option<Box<dyn FnOnce() -> Map + Send + Sync>>,
}

impl Grains {
    /// Creates grains that are collected when they are first read: most calls from the command line read none.
    ///
    /// `collect` must not read these grains: it runs under their lock.
    pub fn uncollected(collect: impl FnOnce() -> Map + Send + Sync + 'static) -> Self {
        Grains(RwLock::new(State { known: Arc::default(), uncollected: Some(Box::new(collect)) }))
    }

    /// Returns the current grains. Blocks while they are collected.
    pub fn get(&self) -> Arc<Map> {
        let state = self.0.read();
        if state.uncollected.is_none() {
            return Arc::clone(&state.known);
        }
        drop(state);
        Arc::clone(self.0.write().known())
    }

    /// Replaces the grains.
    pub fn set(&self, grains: Map) {
        *self.0.write() = grains.into();
    }

    /// Replaces one grain.
    pub fn set_one(&self, name: &str, value: impl Into<Value>) {
        Arc::make_mut(self.0.write().known()).insert(name.into(), value.into());
    }
}

impl From<Map> for Grains {
    fn from(grains: Map) -> Self {
        Grains(RwLock::new(grains.into()))
    }
}

impl From<Map> for State {
    fn from(grains: Map) -> Self {
        State { known: Arc::new(grains), uncollected: None }
    }
}

impl State {
    fn known(&mut self) -> &mut Arc<Map> {
        if let Some(collect) = self.uncollected.take() {
            self.known = Arc::new(collect());
        }
        &mut self.known
    }
}

#[cfg(test)]
mod tests;
