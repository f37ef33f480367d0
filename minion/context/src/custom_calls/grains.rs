//! Calls of custom grains.

use std::sync::Arc;

use brine_host::grains;
use brine_python::Call;
use brine_value::{Map, Value};

use crate::context::Minion;
use crate::custom::CustomModules;

impl CustomModules {
    /// Returns the grains of custom modules. Files and functions that fail are logged.
    pub fn grains(&self, minion: &Arc<Minion>) -> Map {
        if self.files("grains").is_empty() {
            return Map::new();
        }
        let answer = self.run(minion, Call { kind: "grains", ..Call::default() }).unwrap_or_else(|error| {
            tracing::error!(%error, "collecting custom grains failed");
            Value::Nil
        });
        for (name, error) in answer.get("errors").and_then(Value::as_map).into_iter().flatten() {
            tracing::error!(grains = %name, %error, "a function of custom grains failed");
        }
        answer.get("grains").and_then(Value::as_map).cloned().unwrap_or_default()
    }
}

impl Minion {
    /// Collects the grains of the host, and those of custom modules. Grains set by hand take precedence.
    pub fn collect_grains(self: &Arc<Self>) -> Map {
        let mut grains = grains::of_host(&self.config, &self.id);
        grains::add(&self.config, &mut grains, self.custom.grains(self));
        grains
    }

    /// Adds the grains of custom modules, if there are any. Blocks while Python runs them.
    pub fn add_custom_grains(self: &Arc<Self>) {
        if !self.custom.files("grains").is_empty() {
            self.grains.set(self.collect_grains());
        }
    }
}
