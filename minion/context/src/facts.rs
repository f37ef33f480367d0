//! The facts of a minion that targets are matched against.

use std::sync::Arc;

use brine_target::{Match, TargetFacts};
use brine_value::{Map, Value};

use crate::custom::CustomModules;
use crate::{Context, Minion};

/// The facts of a minion about itself.
pub struct MinionFacts {
    id: String,
    grains: Arc<Map>,
    pillar: Arc<Map>,
    custom: Arc<CustomModules>,
    /// The context of the job that matches, if there is one.
    context: Option<Context>,
}

impl MinionFacts {
    /// Returns the facts within a job, with the pillar of its state run.
    pub fn of(context: &Context) -> Self {
        MinionFacts { pillar: context.pillar(), context: Some(context.clone()), ..Self::of_minion(&context.minion) }
    }

    /// Returns the current facts outside a job.
    pub fn of_minion(minion: &Minion) -> Self {
        MinionFacts {
            id: minion.id.clone(),
            grains: minion.grains.get(),
            pillar: Arc::clone(&minion.pillar.read()),
            custom: Arc::clone(&minion.custom),
            context: None,
        }
    }

    /// Returns these facts with another minion id; grains and pillar stay those of this minion.
    #[must_use]
    pub fn with_id(self, id: String) -> Self {
        MinionFacts { id, ..self }
    }
}

impl TargetFacts for MinionFacts {
    fn id(&self) -> &str {
        &self.id
    }

    fn grains(&self) -> Option<&Map> {
        Some(&self.grains)
    }

    fn pillar(&self) -> Option<&Map> {
        Some(&self.pillar)
    }

    fn custom_match(&self, kind: &str, target: &Value, delimiter: &str) -> Option<Match> {
        self.custom.matches(self.context.as_ref(), &self.id, kind, target, delimiter)
    }
}
