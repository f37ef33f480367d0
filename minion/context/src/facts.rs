//! The facts that targets match on the minion itself.

use std::sync::Arc;

use brine_target::Facts;
use brine_value::Map;

use crate::{Context, Minion};

/// The facts of a minion about itself.
pub struct OwnFacts {
    id: String,
    grains: Arc<Map>,
    pillar: Arc<Map>,
}

impl OwnFacts {
    /// Returns the facts in a job.
    pub fn of(context: &Context) -> Self {
        OwnFacts { pillar: context.pillar(), ..Self::of_minion(&context.minion) }
    }

    /// Returns the current facts.
    pub fn of_minion(minion: &Minion) -> Self {
        OwnFacts {
            id: minion.id.clone(),
            grains: Arc::clone(&minion.grains.read()),
            pillar: Arc::clone(&minion.pillar.read()),
        }
    }
}

impl Facts for OwnFacts {
    fn id(&self) -> &str {
        &self.id
    }

    fn grains(&self) -> Option<&Map> {
        Some(&self.grains)
    }

    fn pillar(&self) -> Option<&Map> {
        Some(&self.pillar)
    }
}
