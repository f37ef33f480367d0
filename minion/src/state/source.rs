//! SLS files, rendered for the compiler.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use brine_core::function::{Args, CallError};
use brine_core::sls::compile::SlsSource;
use brine_core::sls::gpg::Gpg;
use brine_core::sls::jinja::{Context as Variables, Host, Template};
use brine_core::sls::render::{RenderError, Sls, sls_variables};
use brine_core::sls::top;
use brine_core::{Map, Value};
use parking_lot::Mutex;

use crate::context::{Context, FileClient};

/// Renders SLS files and templates with what this minion is.
pub struct Source {
    context: Context,
    pillar: Arc<Map>,
    opts: Arc<Map>,
    host: Arc<dyn Host>,
    renderer: String,
    gpg: Arc<Gpg>,
    /// The files of an environment, asked for once.
    files: Mutex<HashMap<String, Arc<Vec<String>>>>,
}

impl Source {
    /// With this pillar.
    pub fn new(context: &Context, pillar: Arc<Map>) -> Self {
        let context = Context { run_pillar: Some(Arc::clone(&pillar)), ..context.for_template() };
        let renderer = context.config().renderer.clone();
        let host: Arc<dyn Host> = Arc::new(MinionHost { context: context.clone() });
        let gpg = Arc::new(Gpg::of(&context.config().opts));
        let opts = context.opts();
        Source { context, pillar, opts, host, renderer, gpg, files: Mutex::default() }
    }

    fn variables(&self, saltenv: &str) -> Variables {
        let mut variables = Variables::new(saltenv);
        variables.set_shared("grains", self.context.grains());
        variables.set_shared("pillar", Arc::clone(&self.pillar));
        variables.set_shared("opts", Arc::clone(&self.opts));
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
        self.files(saltenv).binary_search_by(|file| file.as_str().cmp(path)).is_ok()
    }

    /// Renders one file, or gives nothing if there is none.
    pub fn render_file(&self, path: &str, sls: &str, saltenv: &str) -> Result<Option<Value>, String> {
        let Some(source) = read_text(&*self.context.minion.files, path, saltenv)? else { return Ok(None) };
        let compiled = match Sls::compile(path, &source, &self.renderer) {
            Err(ref error @ RenderError::NotAvailable(ref pipe)) if is_salts(pipe) => return Err(error.to_string()),
            // As in Salt, a file with a renderer that nobody knows says nothing.
            Err(RenderError::NotAvailable(pipe)) => {
                tracing::error!(path, pipe, "The renderer \"{pipe}\" is not available");
                return Ok(Some(Value::Nil));
            }
            compiled => compiled.map_err(|error| error.to_string())?,
        };
        let mut variables = self.variables(saltenv);
        variables.set_all(&sls_variables(sls, path));
        compiled
            .with_gpg(Arc::clone(&self.gpg))
            .render(&variables, &self.host)
            .map(Some)
            .map_err(|error| error.to_string())
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

/// Whether a pipe is one of Salt's, with a renderer that is not there.
fn is_salts(pipe: &str) -> bool {
    const RENDERERS: [&str; 14] = [
        "cheetah",
        "dson",
        "genshi",
        "gpg",
        "hjson",
        "mako",
        "msgpack",
        "nacl",
        "py",
        "pydsl",
        "pyobjects",
        "stateconf",
        "toml",
        "yamlex",
    ];
    pipe.split('|').filter_map(|part| part.split_whitespace().next()).any(|name| RENDERERS.contains(&name))
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

    fn available(&self, saltenv: &str) -> Result<Option<Vec<String>>, String> {
        if !self.context.minion.files.environments()?.iter().any(|known| known == saltenv) {
            return Ok(None);
        }
        let files = self.files(saltenv);
        let names = files.iter().filter_map(|path| {
            let path = path.strip_suffix(".sls")?;
            let path = path.strip_suffix("/init").unwrap_or(path);
            (!path.contains('.')).then(|| path.replace('/', "."))
        });
        Ok(Some(names.collect()))
    }

    fn is_init(&self, sls: &str, saltenv: &str) -> bool {
        let [plain, init] = top::candidates(sls);
        !self.has(&plain, saltenv) && self.has(&init, saltenv)
    }
}

/// What templates reach: the minion's functions and files.
pub(crate) struct MinionHost {
    pub context: Context,
}

impl Host for MinionHost {
    fn call(&self, function: &str, args: Args) -> Result<Value, String> {
        let before = self.context.job.retcode.load(Ordering::Relaxed);
        let called = self.context.call(function, args);
        // What a template runs does not say whether the job went well.
        self.context.set_retcode(before);
        called.map_err(|error| match error {
            CallError::Execution(message) => message,
            other => other.to_string(),
        })
    }

    fn has(&self, function: &str) -> bool {
        self.context.minion.functions.get(function).is_some()
    }

    fn template(&self, path: &str, saltenv: &str) -> Result<Option<String>, String> {
        read_text(&*self.context.minion.files, path, saltenv)
    }
}
