//! Renders SLS files for the compiler.

use std::collections::HashMap;
use std::sync::Arc;

use brine_config::ANY_ENVIRONMENT;
use brine_config::opts::{master, shared};
use brine_context::redact::Redactor;
use brine_context::template_host::{MinionHost, pillar_tree};
use brine_context::{Context, FetchError};
use brine_function::CallError;
use brine_jinja::{Context as Variables, Host, HostedFile, ImportCache, JinjaError, Limits, Template, Tree};
use brine_sls::compile::{SlsError, SlsSource};
use brine_sls::gpg::Gpg;
use brine_sls::render::{
    AllowedRenderers, Explained, RenderError, Settings, Sls, sls_imports, sls_variables, template_imports,
};
use brine_sls::top;
use brine_value::{Map, Value};
use parking_lot::Mutex;

/// Renders SLS files and templates with the data of this minion.
pub struct Source {
    context: Context,
    /// `grains`, `pillar` and `opts` of the templates. Changes by one template are visible to the next.
    trees: [(&'static str, Tree); 3],
    host: Host,
    renderer: String,
    allowed: AllowedRenderers,
    auto_order: bool,
    gpg: Arc<Gpg>,
    /// The settings of `stateconf` that the SLS files of the run share.
    settings: Arc<Settings>,
    /// The cache of templates that the SLS files of the run import.
    imports: ImportCache,
    /// The cache of templates that its other templates import.
    template_imports: ImportCache,
    /// The environments, if the master sent them with its options.
    environments: Option<Vec<String>>,
    /// The files by environment, each listed once.
    files: Mutex<HashMap<String, Arc<Vec<String>>>>,
}

impl Source {
    /// Creates a source with this pillar.
    pub fn new(context: &Context, pillar: Arc<Map>) -> Self {
        let context = Context { run_pillar: Some(Arc::clone(&pillar)), ..context.for_template() };
        let host = MinionHost::sharing(context.clone()).host();
        let opts = context.opts();
        let (renderer, allowed) = (shared::renderer(&opts), AllowedRenderers::of(&context.config().opts));
        let auto_order = master::state_auto_order(&opts);
        let gpg = Arc::new(Gpg::of(&opts));
        let (imports, template_imports) = (sls_imports(&opts), template_imports(&opts));
        let trees = [
            ("grains", Tree::new(context.grains())),
            ("pillar", pillar_tree(&context, pillar)),
            ("opts", Tree::new(opts)),
        ];
        Source {
            context,
            trees,
            host,
            renderer,
            allowed,
            auto_order,
            gpg,
            settings: Arc::default(),
            imports,
            template_imports,
            environments: None,
            files: Mutex::default(),
        }
    }

    /// Sets the environments, if they are known already.
    #[must_use]
    pub(crate) fn with_environments(self, environments: Option<Vec<String>>) -> Self {
        Source { environments, ..self }
    }

    /// Returns all environments.
    pub(crate) fn environments(&self) -> Result<Vec<String>, FetchError> {
        self.environments.clone().map_or_else(|| self.context.minion.files.environments(), Ok)
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
            tracing::error!(saltenv, %error, "listing the files of the environment failed");
            Vec::new()
        });
        // The order in a master's list is undefined.
        listed.sort();
        let files = Arc::new(listed);
        self.files.lock().insert(saltenv.to_owned(), Arc::clone(&files));
        files
    }

    fn has(&self, path: &str, saltenv: &str) -> bool {
        let listed = || self.files(saltenv).binary_search_by(|file| file.as_str().cmp(path)).is_ok();
        self.context.minion.files.holds(path, saltenv).unwrap_or_else(listed)
    }

    /// Renders one file; `None` if it does not exist.
    pub fn render_file(&self, path: &str, sls: &str, saltenv: &str) -> Result<Option<Value>, SlsError> {
        let read = self.context.minion.files.read(path, saltenv).map_err(|error| SlsError::Unreadable(error.into()))?;
        let Some(source) = read else { return Ok(None) };
        let compiled = Sls::compile_sharing(&self.imports, path, &source, &self.renderer)
            .and_then(|compiled| compiled.allowed_by(&self.allowed))
            .map_err(|error| Explained::of(error, path, &source, ""))?;
        let mut variables = self.variables(saltenv);
        variables.set_all(&sls_variables(sls, path));
        let compiled = compiled.with_gpg(Arc::clone(&self.gpg));
        let compiled = compiled.with_settings(Arc::clone(&self.settings));
        if let Some(rendered) = compiled.render_composite(&variables, &self.host) {
            return rendered.map(Some).map_err(|error| compiled.explain(error, "").into());
        }
        let mut rendered = String::new();
        let parsed = compiled.render_mapped(&variables, &self.host).and_then(|(text, lines)| {
            rendered = text;
            self.log_rendered(path, saltenv, &rendered);
            compiled.parse(&rendered).map_err(|error| error.in_template(&rendered, &lines))
        });
        parsed.map(Some).map_err(|error| {
            let (line, message) = (error.line().unwrap_or(1), error.message());
            tracing::error!(saltenv, "rendering failed: {path}:{line}: {}", self.redactor().hide(&message));
            let mut explained = compiled.explain(error, &rendered);
            explained.excerpt = explained.excerpt.map(|excerpt| self.redactor().hide(&excerpt));
            explained.into()
        })
    }

    fn redactor(&self) -> Redactor {
        Redactor::of(&self.context.pillar())
    }

    /// Logs the rendered lines of a file, without values of the pillar.
    fn log_rendered(&self, path: &str, saltenv: &str, text: &str) {
        if !tracing::enabled!(tracing::Level::DEBUG) {
            return;
        }
        tracing::debug!(saltenv, "salt://{path} rendered:");
        for (number, line) in self.redactor().lines(text).into_iter().enumerate() {
            tracing::debug!("{path}:{}: {line}", number + 1);
        }
    }

    /// Renders the content of an SLS, with additional variables.
    ///
    /// # Errors
    /// As for an SLS file.
    pub fn render_text(&self, text: impl AsRef<[u8]>, more: &Map, saltenv: &str) -> Result<Value, RenderError> {
        let compiled = Sls::compile_sharing(&self.template_imports, "template", text, &self.renderer)
            .and_then(|compiled| compiled.allowed_by(&self.allowed))?;
        let compiled = compiled.with_gpg(Arc::clone(&self.gpg));
        let mut variables = self.variables(saltenv);
        variables.set_all(more);
        compiled.render(&variables, &self.host)
    }

    /// Renders a file's content by a renderer of the host, such as `py`, with additional variables; `None` if there is
    /// no such renderer.
    pub fn render_hosted(
        &self,
        renderer: &str,
        name: &str,
        source: &str,
        more: &Map,
        saltenv: &str,
    ) -> Option<Result<String, CallError>> {
        let mut variables = self.variables(saltenv);
        variables.set_all(more);
        let (variables, _) = variables.plain();
        let source = &Value::from(source);
        let file = HostedFile { renderer, args: "", name, source, saltenv, variables, data: None };
        let rendered = self.host.render(&file)?;
        Some(rendered.map(|value| value.to_string()))
    }

    /// Renders a file's content as a template, with additional variables.
    ///
    /// # Errors
    /// The template is invalid, or an expression in it fails.
    pub fn render_template(&self, name: &str, content: &str, more: &Map, saltenv: &str) -> Result<String, JinjaError> {
        let template = Template::compile_sharing(&self.template_imports, name, content)?;
        let mut variables = self.variables(saltenv);
        variables.set_all(more);
        template.render(&variables, &self.host)
    }
}

impl SlsSource for Source {
    fn render(&self, sls: &str, saltenv: &str) -> Result<Option<Value>, SlsError> {
        let path = top::candidates(sls).into_iter().find(|path| self.has(path, saltenv));
        path.map_or(Ok(None), |path| self.render_file(&path, sls, saltenv))
    }

    fn has_environment(&self, saltenv: &str) -> Result<bool, SlsError> {
        let environments = self.environments().map_err(|error| SlsError::Unreadable(error.into()))?;
        Ok(environments.iter().any(|environment| environment == saltenv || environment == ANY_ENVIRONMENT))
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

    fn auto_order(&self) -> bool {
        self.auto_order
    }

    fn searched(&self, saltenv: &str) -> String {
        let config = self.context.config();
        if config.file_client != "local" {
            return "the files of the master".to_owned();
        }
        let roots = config.file_roots.get(saltenv).map(Vec::as_slice).unwrap_or_default();
        let roots: Vec<String> = roots.iter().map(|root| root.display().to_string()).collect();
        if roots.is_empty() { format!("the environment '{saltenv}'") } else { roots.join(", ") }
    }

    fn written(&self, sls: &str, saltenv: &str) -> Option<(String, String)> {
        written(&self.context, sls, saltenv)
    }

    fn is_init(&self, sls: &str, saltenv: &str) -> bool {
        let [plain, init] = top::candidates(sls);
        !self.has(&plain, saltenv) && self.has(&init, saltenv)
    }
}

/// Returns the path and the text of an SLS as it is written.
pub(crate) fn written(context: &Context, sls: &str, saltenv: &str) -> Option<(String, String)> {
    top::candidates(sls).into_iter().filter(|_| !sls.is_empty()).find_map(|path| {
        let text = context.minion.files.read(&path, saltenv).ok().flatten()?;
        Some((path, String::from_utf8_lossy(&text).into_owned()))
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::Ordering;

    use brine_function::Args;
    use brine_sls::compile::SlsSource;
    use brine_value::list;

    use super::Source;
    use crate::testing;

    #[test]
    fn an_environment_exists_by_name_or_by_that_of_any_name() {
        for (environments, dev) in
            [(&["base"][..], false), (&["base", "dev"], true), (&["base", "__env__"], true), (&[], false)]
        {
            let environments = Some(environments.iter().map(|&name| name.to_owned()).collect());
            let source = Source::new(&testing::context(&[]), Arc::default()).with_environments(environments.clone());
            assert_eq!(source.has_environment("dev").unwrap(), dev, "{environments:?}");
        }
    }

    #[test]
    fn unknown_renderers_fail_the_run() {
        for (pipe, renderer) in
            [("#!nosuch", "nosuch"), ("#!jinja | nosuch", "jinja | nosuch"), ("#!jinja|py", "jinja|py")]
        {
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
