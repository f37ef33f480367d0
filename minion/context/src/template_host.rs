//! The functions and files of a minion for its templates.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use brine_config::MinionConfig;
use brine_function::{Args, CallError};
use brine_jinja::{Behaviour, CustomCall, Files, FilesError, Functions, Host, HostedFile, Role, Tree};
use brine_value::{Map, Value};

use crate::Context;
use crate::files::read_text;
use crate::template_functions;

/// Returns the pillar for templates. A pillar that the minion compiles itself contains `OrderedDict`s; a pillar from a
/// master does not.
pub fn pillar_tree(context: &Context, pillar: Arc<Map>) -> Tree {
    if context.config().has_local_pillar() { Tree::ordered(pillar) } else { Tree::new(pillar) }
}

/// The minion's functions.
pub struct MinionHost {
    context: Context,
    /// The pillar and the grains for lookups, if changes by other templates are visible there.
    shared: Option<(Tree, Tree)>,
}

impl MinionHost {
    /// Creates functions that return separate values to each template.
    pub fn new(context: Context) -> Self {
        MinionHost { context, shared: None }
    }

    /// Creates functions whose later calls see the changes that a template makes to a mapping of `pillar.get` or
    /// `grains.get`.
    pub fn sharing(context: Context) -> Self {
        let shared = Some((pillar_tree(&context, context.pillar()), Tree::new(context.grains())));
        MinionHost { context, shared }
    }

    /// Returns the host of templates with these functions and the files.
    pub fn host(self) -> Host {
        let files = MinionFiles(self.context.clone());
        Host::new().with_functions(self).with_files(files)
    }

    /// Returns the shared pillar and grains, without grains that were replaced since they were shared.
    fn trees(&self) -> (Option<&Tree>, Option<&Tree>) {
        let shared = self.shared.as_ref();
        let grains = shared.map(|(_, grains)| grains).filter(|grains| grains.is_of(&self.context.grains()));
        (shared.map(|(pillar, _)| pillar), grains)
    }

    /// Returns the context of a function that reads pillar or grains, if these have been changed.
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

impl Functions for MinionHost {
    fn call(&self, function: &str, args: Args) -> Result<Value, CallError> {
        let before = self.context.job.retcode.load(Ordering::Relaxed);
        let called = self.as_changed(function).as_ref().unwrap_or(&self.context).call(function, args);
        // Retcodes of functions called by a template do not affect the job.
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
            // With this option, a missing path may be an error, which the function itself reports.
            "pillar.get" | "pillar.fetch" if self.context.config().pillar_raise_on_missing => None,
            "pillar.get" | "pillar.fetch" => pillar,
            "grains.get" => grains,
            _ => None,
        }
    }

    fn pillar(&self) -> Option<&Tree> {
        self.trees().0
    }

    fn behaviour(&self, function: &str) -> Behaviour {
        template_functions::behaviour(function)
    }

    fn name_of(&self, role: Role) -> Option<&'static str> {
        Some(template_functions::name_of(role))
    }

    fn custom(&self, call: &CustomCall<'_>) -> Option<Result<Value, CallError>> {
        self.context.minion.custom.call_other(&self.context, &self.context.opts(), call)
    }

    fn render(&self, file: &HostedFile) -> Option<Result<Value, CallError>> {
        self.context.minion.custom.render(&self.context, file)
    }
}

/// The files of the minion's master, or of this host.
pub struct MinionFiles(pub Context);

impl Files for MinionFiles {
    fn template(&self, path: &str, saltenv: &str) -> Result<Option<String>, FilesError> {
        let path = below_root(self.0.config(), path, saltenv).unwrap_or(path);
        read_text(&*self.0.minion.files, path, saltenv).map_err(|error| FilesError::Server(error.into()))
    }
}

/// Returns the path below a root of `file_roots` for an absolute path in it, which a minion without a master accepts, as in
/// Salt.
fn below_root<'p>(config: &MinionConfig, path: &'p str, saltenv: &str) -> Option<&'p str> {
    let roots = config.file_roots.get(saltenv).filter(|_| config.file_client == "local")?;
    roots.iter().find_map(|root| Path::new(path).strip_prefix(root).ok()?.to_str())
}
