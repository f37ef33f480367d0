//! What targets look at, of the minion itself.

use std::sync::Arc;

use brine_target::Facts;
use brine_value::Map;

use crate::{Context, Minion};

/// What a minion knows of itself when it looks whether it is meant.
pub struct OwnFacts {
    id: String,
    grains: Arc<Map>,
    pillar: Arc<Map>,
}

impl OwnFacts {
    /// As they are in a job.
    pub fn of(context: &Context) -> Self {
        OwnFacts { pillar: context.pillar(), ..Self::of_minion(&context.minion) }
    }

    /// As they are now.
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
