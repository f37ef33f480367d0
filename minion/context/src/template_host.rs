//! The functions and files of a minion, as its templates reach them.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use brine_function::{Args, CallError};
use brine_jinja::{Host, Tree};
use brine_value::{Map, Value};

use crate::Context;
use crate::files::read_text;

/// Returns the pillar as templates see it. What a minion compiles itself has Python's `OrderedDict`s in it; what a master sends
/// has not.
pub fn pillar_tree(context: &Context, pillar: Arc<Map>) -> Tree {
    if context.config().file_client == "local" { Tree::ordered(pillar) } else { Tree::new(pillar) }
}

/// What templates reach: the minion's functions and files.
pub struct MinionHost {
    context: Context,
    /// The pillar and the grains that functions look things up in, if one template is to see what another one has
    /// changed there.
    shared: Option<(Tree, Tree)>,
}

impl MinionHost {
    /// Functions give each template values of its own.
    pub fn new(context: Context) -> Self {
        MinionHost { context, shared: None }
    }

    /// What a template changes in a mapping that `pillar.get` or `grains.get` gave it, later calls of any template see.
    pub fn sharing(context: Context) -> Self {
        let shared = Some((pillar_tree(&context, context.pillar()), Tree::new(context.grains())));
        MinionHost { context, shared }
    }

    /// The shared pillar and grains. Grains that have been set since they were shared are not.
    fn trees(&self) -> (Option<&Tree>, Option<&Tree>) {
        let shared = self.shared.as_ref();
        let grains = shared.map(|(_, grains)| grains).filter(|grains| grains.is_of(&self.context.grains()));
        (shared.map(|(pillar, _)| pillar), grains)
    }

    /// The context of a function that looks into pillar or grains, if these have been changed.
    fn as_changed(&self, function: &str) -> Option<Context> {
        let (pillar, grains) = self.trees();
        let looks = ["pillar.", "grains.", "config.", "match."].iter().any(|module| function.starts_with(module));
        let changed = |tree: &&Tree| looks && tree.is_changed();
        let (pillar, grains) = (pillar.filter(changed), grains.filter(changed));
        if pillar.is_none() && grains.is_none() {
            return None;
        }
        let mut context = self.context.clone();
        context.run_pillar = pillar.map(Tree::now).or(context.run_pillar);
        context.own_grains = grains.map(Tree::now).or(context.own_grains);
        Some(context)
    }
}

impl Host for MinionHost {
    fn call(&self, function: &str, args: Args) -> Result<Value, CallError> {
        let before = self.context.job.retcode.load(Ordering::Relaxed);
        let called = self.as_changed(function).as_ref().unwrap_or(&self.context).call(function, args);
        // What a template runs does not say whether the job went well.
        self.context.set_retcode(before);
        called
    }

    fn has(&self, function: &str) -> bool {
        self.context.minion.functions.get(function).is_some()
    }

    fn has_module(&self, module: &str) -> bool {
        self.context.minion.functions.has_module(module)
    }

    fn tree(&self, function: &str) -> Option<&Tree> {
        let (pillar, grains) = self.trees();
        match function {
            "pillar.get" | "pillar.fetch" => pillar,
            "grains.get" => grains,
            _ => None,
        }
    }

    fn template(&self, path: &str, saltenv: &str) -> Result<Option<String>, String> {
        read_text(&*self.context.minion.files, path, saltenv)
    }
}
