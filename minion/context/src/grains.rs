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
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use brine_value::map;

    use super::*;

    fn counted() -> (Arc<AtomicUsize>, Grains) {
        let count = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&count);
        let grains = Grains::uncollected(move || {
            counted.fetch_add(1, Ordering::Relaxed);
            map! {"os" => "Debian", "master" => "salt"}
        });
        (count, grains)
    }

    #[test]
    fn grains_are_collected_once_when_they_are_read() {
        let (count, grains) = counted();
        assert_eq!(count.load(Ordering::Relaxed), 0, "before");
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| assert_eq!(grains.get().get("os"), Some(&"Debian".into())));
            }
        });
        assert_eq!(count.load(Ordering::Relaxed), 1, "after four readers");
    }

    #[test]
    fn replaced_grains_are_never_collected() {
        let (count, grains) = counted();
        grains.set(map! {"os" => "Plan9"});
        assert_eq!((count.load(Ordering::Relaxed), grains.get().get("os")), (0, Some(&"Plan9".into())));
    }

    #[test]
    fn one_replaced_grain_keeps_the_others() {
        let (_, grains) = counted();
        let before = grains.get();
        grains.set_one("master", "other");
        let after = grains.get();
        assert_eq!((before.get("master"), after.get("master")), (Some(&"salt".into()), Some(&"other".into())));
        assert_eq!(after.get("os"), Some(&"Debian".into()));
    }
}
