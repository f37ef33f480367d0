//! SLS files, rendered for the compiler.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use brine_function::{Args, CallError};
use brine_jinja::{Context as Variables, Host, Limits, Template, Tree};
use brine_sls::compile::SlsSource;
use brine_sls::gpg::Gpg;
use brine_sls::render::{Sls, sls_variables};
use brine_sls::top;
use brine_value::{Map, Value};
use parking_lot::Mutex;

use crate::context::{Context, FileClient};
use crate::redact::Redactor;

/// Renders SLS files and templates with what this minion is.
pub struct Source {
    context: Context,
    /// What the templates have as `grains`, `pillar` and `opts`. What one changes in it the next one sees.
    trees: [(&'static str, Tree); 3],
    host: Arc<dyn Host>,
    renderer: String,
    gpg: Arc<Gpg>,
    /// The files of an environment, asked for once.
    files: Mutex<HashMap<String, Arc<Vec<String>>>>,
}

/// The pillar as templates see it. What a minion compiles itself has Python's `OrderedDict`s in it; what a master sends
/// has not.
fn pillar_tree(context: &Context, pillar: Arc<Map>) -> Tree {
    if context.config().file_client == "local" { Tree::ordered(pillar) } else { Tree::new(pillar) }
}

impl Source {
    /// With this pillar.
    pub fn new(context: &Context, pillar: Arc<Map>) -> Self {
        let context = Context { run_pillar: Some(Arc::clone(&pillar)), ..context.for_template() };
        let renderer = context.config().renderer.clone();
        let host: Arc<dyn Host> = Arc::new(MinionHost::sharing(context.clone()));
        let opts = context.opts();
        let gpg = Arc::new(Gpg::of(&opts));
        let trees = [
            ("grains", Tree::new(context.grains())),
            ("pillar", pillar_tree(&context, pillar)),
            ("opts", Tree::new(opts)),
        ];
        Source { context, trees, host, renderer, gpg, files: Mutex::default() }
    }

    fn variables(&self, saltenv: &str) -> Variables {
        let mut variables = Variables::new(saltenv);
        variables.set_limits(Limits::of(&self.context.minion.config.opts));
        for (name, tree) in &self.trees {
            variables.set_tree(name, tree);
        }
        variables
    }

    fn files(&self, saltenv: &str) -> Arc<Vec<String>> {
        if let Some(files) = self.files.lock().get(saltenv) {
            return Arc::clone(files);
        }
        let mut listed = self.context.minion.files.list(saltenv).unwrap_or_else(|error| {
            tracing::error!(saltenv, error, "the files of the environment cannot be listed");
            Vec::new()
        });
        // A master may send them in any order.
        listed.sort();
        let files = Arc::new(listed);
        self.files.lock().insert(saltenv.to_owned(), Arc::clone(&files));
        files
    }

    fn has(&self, path: &str, saltenv: &str) -> bool {
        let listed = || self.files(saltenv).binary_search_by(|file| file.as_str().cmp(path)).is_ok();
        self.context.minion.files.holds(path, saltenv).unwrap_or_else(listed)
    }

    /// Renders one file, or gives nothing if there is none.
    pub fn render_file(&self, path: &str, sls: &str, saltenv: &str) -> Result<Option<Value>, String> {
        let Some(source) = read_text(&*self.context.minion.files, path, saltenv)? else { return Ok(None) };
        let compiled = Sls::compile(path, &source, &self.renderer).map_err(|error| error.to_string())?;
        let mut variables = self.variables(saltenv);
        variables.set_all(&sls_variables(sls, path));
        let compiled = compiled.with_gpg(Arc::clone(&self.gpg));
        let rendered = compiled.render_mapped(&variables, &self.host).and_then(|(text, lines)| {
            self.log_rendered(path, saltenv, &text);
            compiled.parse(&text).map_err(|error| error.in_template(&text, &lines))
        });
        rendered.map(Some).map_err(|error| {
            let (line, message) = (error.line().unwrap_or(1), error.message());
            tracing::error!(saltenv, "rendering failed: {path}:{line}: {}", self.redactor().hide(&message));
            error.to_string()
        })
    }

    fn redactor(&self) -> Redactor {
        Redactor::of(&self.context.pillar())
    }

    /// Logs what a file renders to, a line each, without values of the pillar.
    fn log_rendered(&self, path: &str, saltenv: &str, text: &str) {
        if !tracing::enabled!(tracing::Level::DEBUG) {
            return;
        }
        tracing::debug!(saltenv, "salt://{path} rendered:");
        for (number, line) in self.redactor().lines(text).into_iter().enumerate() {
            tracing::debug!("{path}:{}: {line}", number + 1);
        }
    }

    /// Renders a text as an SLS.
    pub fn render_text(&self, text: &str, saltenv: &str) -> Result<Value, String> {
        let compiled = Sls::compile("template", text, &self.renderer).map_err(|error| error.to_string())?;
        let compiled = compiled.with_gpg(Arc::clone(&self.gpg));
        compiled.render(&self.variables(saltenv), &self.host).map_err(|error| error.to_string())
    }

    /// Renders a file's content as a template, with variables of its own.
    pub fn render_template(&self, name: &str, content: &str, more: &Map, saltenv: &str) -> Result<String, String> {
        let template = Template::compile(name, content).map_err(|error| error.to_string())?;
        let mut variables = self.variables(saltenv);
        variables.set_all(more);
        template.render(&variables, &self.host).map_err(|error| error.to_string())
    }
}

fn read_text(files: &dyn FileClient, path: &str, saltenv: &str) -> Result<Option<String>, String> {
    match files.read(path, saltenv)? {
        None => Ok(None),
        Some(bytes) => String::from_utf8(bytes).map(Some).map_err(|_| format!("salt://{path} is not UTF-8 text")),
    }
}

impl SlsSource for Source {
    fn render(&self, sls: &str, saltenv: &str) -> Result<Option<Value>, String> {
        let found = top::candidates(sls).into_iter().find(|path| self.has(path, saltenv));
        found.map_or(Ok(None), |path| self.render_file(&path, sls, saltenv))
    }

    fn has_environment(&self, saltenv: &str) -> Result<bool, String> {
        Ok(self.context.minion.files.environments()?.iter().any(|known| known == saltenv))
    }

    fn available(&self, saltenv: &str) -> Vec<String> {
        let files = self.files(saltenv);
        let names = files.iter().filter_map(|path| {
            let path = path.strip_suffix(".sls")?;
            let path = path.strip_suffix("/init").unwrap_or(path);
            (!path.contains('.')).then(|| path.replace('/', "."))
        });
        names.collect()
    }

    fn is_init(&self, sls: &str, saltenv: &str) -> bool {
        let [plain, init] = top::candidates(sls);
        !self.has(&plain, saltenv) && self.has(&init, saltenv)
    }
}

/// What templates reach: the minion's functions and files.
pub(crate) struct MinionHost {
    context: Context,
    /// The pillar and the grains that functions look things up in, if one template is to see what another one has
    /// changed there.
    shared: Option<(Tree, Tree)>,
}

impl MinionHost {
    /// Functions give each template values of its own.
    pub(crate) fn new(context: Context) -> Self {
        MinionHost { context, shared: None }
    }

    /// What a template changes in a mapping that `pillar.get` or `grains.get` gave it, later calls of any template see.
    fn sharing(context: Context) -> Self {
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
        self.context.minion.functions.iter().any(|function| function.module == module)
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

#[cfg(test)]
mod tests {
    use brine_value::list;

    use super::*;
    use crate::testing;

    #[test]
    fn unknown_renderers_fail_the_run() {
        for (pipe, renderer) in [("#!nosuch", "nosuch"), ("#!jinja | nosuch", "jinja | nosuch"), ("#!py", "py")] {
            let sls = format!("{pipe}\na: test.nop\n");
            let context = testing::context(&[("x.sls", &sls), ("y.sls", "include: [x]\n")]);
            for name in ["x", "y"] {
                let returned = context.call("state.apply", Args::positional([name.into()]));
                let error = format!("Rendering SLS 'base:x' failed: The renderer \"{renderer}\" is not available");
                assert_eq!(returned, Ok(list![error]), "{pipe} {name}");
                assert_eq!(context.job.retcode.load(Ordering::Relaxed), 1, "{pipe} {name}");
            }
        }
    }
}
