//! The minions of samples: nothing that they call runs a command or reads the host.

use std::sync::Arc;

use brine_authoring_model::Tree;
use brine_context::template_host::MinionHost;
use brine_lint::Samples;
use brine_lint::samples::{Prepared, Sample};
use brine_state_test::format::Given;
use brine_state_test::host::{Library, Opened, Roots, World, is_pure};
use brine_value::Map;

/// The samples, and their minions once a file needs them.
pub struct Minions {
    samples: Vec<Sample>,
    prepared: Option<(Samples, Vec<Opened>)>,
}

impl Minions {
    /// Keeps samples until a file needs them.
    pub fn new(samples: Vec<Sample>) -> Self {
        Minions { samples, prepared: None }
    }

    /// Returns the samples if a file of the tree is rendered for them.
    ///
    /// # Errors
    /// A minion cannot be made.
    pub fn of(&mut self, tree: &Tree) -> anyhow::Result<Option<&Samples>> {
        let is_named = self.samples.iter().any(|sample| sample.is_named);
        if !is_named && !tree.files().any(|file| file.is_open) {
            return Ok(None);
        }
        self.all().map(Some)
    }

    /// Returns the samples.
    ///
    /// # Errors
    /// A minion cannot be made.
    pub fn all(&mut self) -> anyhow::Result<&Samples> {
        if self.prepared.is_none() {
            self.prepared = Some(prepare(&self.samples)?);
        }
        match &self.prepared {
            Some((samples, _)) => Ok(samples),
            None => anyhow::bail!("preparing the samples failed"),
        }
    }
}

fn prepare(samples: &[Sample]) -> anyhow::Result<(Samples, Vec<Opened>)> {
    let library = Library::new(brine_modules::MODULES);
    let (mut all, mut worlds) = (Vec::new(), Vec::new());
    for sample in samples {
        let given = Given {
            grains: sample.grains.clone(),
            pillar: sample.pillar.clone().unwrap_or_default(),
            ..Given::default()
        };
        let world = World::open(&library, &given, &Roots::default())?;
        let opts: Arc<Map> = world.context.opts();
        all.push(Prepared::new(sample.clone(), MinionHost::new(world.context.for_template()).host(), opts));
        worlds.push(world);
    }
    Ok((Samples { all, is_pure }, worlds))
}
