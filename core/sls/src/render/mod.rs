//! The render pipe: from the source of an SLS to data, through the renderers in its first line or from the
//! configuration, such as `jinja|yaml`.

mod error;
#[cfg(test)]
mod tests;

use std::str::FromStr;
use std::sync::Arc;

use brine_config::opts::master;
use brine_jinja::{Blocks, Context, Host, HostedFile, ImportCache, JinjaError, SourceLines, Template, Variables};
use brine_value::{Map, Value, json, map};
use brine_yaml::untrusted::Words;
use brine_yaml::{GuardedError, Located};

pub use error::RenderError;

use super::gpg::Gpg;
use super::toml;

/// Returns an empty cache for the SLS files of a run, with the options `jinja_sls_env`, `jinja_trim_blocks` and
/// `jinja_lstrip_blocks`.
pub fn sls_imports(opts: &Map) -> ImportCache {
    imports(opts, &master::jinja_sls_env(opts))
}

/// Returns an empty cache for templates that are not SLS files: with `jinja_env` in the place of `jinja_sls_env`.
pub fn template_imports(opts: &Map) -> ImportCache {
    imports(opts, &master::jinja_env(opts))
}

fn imports(opts: &Map, env: &Map) -> ImportCache {
    // As in Salt, the names of Jinja's options are not case-sensitive.
    let is_on = |name: &str| {
        let is = |key: &Value| key.as_str().is_some_and(|key| key.eq_ignore_ascii_case(name));
        env.iter().any(|(key, value)| is(key) && value.is_truthy())
    };
    ImportCache::with_blocks(Blocks {
        trim: master::jinja_trim_blocks(opts) || is_on("trim_blocks"),
        lstrip: master::jinja_lstrip_blocks(opts) || is_on("lstrip_blocks"),
    })
}

/// One step of the pipe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Renderer {
    /// String to string.
    Jinja,
    /// String to data.
    Yaml,
    /// String to data.
    Json,
    /// String to data.
    Toml,
    /// The string itself is the data.
    Text,
    /// Decrypts PGP messages in strings or data.
    Gpg,
    /// Source in Python to data, by the host of templates.
    Python,
}

/// All renderers with their names and what they do, sorted by name.
pub const RENDERERS: &[(&str, Renderer, &str)] = &[
    ("gpg", Renderer::Gpg, "Decrypt the PGP messages in a text or in data."),
    ("jinja", Renderer::Jinja, "Render a Jinja template to a text."),
    ("json", Renderer::Json, "Read JSON."),
    ("py", Renderer::Python, "Call the function run() of a Python source, which returns the data."),
    ("text", Renderer::Text, "Take the text as it is."),
    ("toml", Renderer::Toml, "Read TOML."),
    ("yaml", Renderer::Yaml, "Read YAML."),
];

impl FromStr for Renderer {
    type Err = ();

    fn from_str(name: &str) -> Result<Self, ()> {
        RENDERERS.iter().find(|(known, ..)| *known == name).map(|(_, renderer, _)| *renderer).ok_or(())
    }
}

/// A compiled SLS, for repeated rendering.
#[derive(Debug)]
pub struct Sls {
    name: String,
    template: Option<Template>,
    source: String,
    /// The steps after the template.
    steps: Vec<Renderer>,
    gpg: Arc<Gpg>,
}

impl Sls {
    /// Compiles an SLS. `name` is its name in errors, `default` the pipe for files that do not declare one.
    pub fn compile(name: &str, source: &str, default: &str) -> Result<Self, RenderError> {
        Self::compile_sharing(&ImportCache::new(), name, source, default)
    }

    /// Compiles an SLS; imports are compiled once for all SLS that share the cache.
    ///
    /// # Errors
    ///
    /// A pipe that is not available, or a syntax error.
    pub fn compile_sharing(
        imports: &ImportCache,
        name: &str,
        source: &str,
        default: &str,
    ) -> Result<Self, RenderError> {
        Self::compile_with(name, source, default, |text| Template::compile_sharing(imports, name, text))
    }

    /// Compiles an SLS for [`Sls::render_guarded`].
    pub fn compile_guarded(name: &str, source: &str, default: &str, variables: Variables) -> Result<Self, RenderError> {
        Self::compile_with(name, source, default, |text| Template::compile_guarded(name, text, variables))
    }

    fn compile_with(
        name: &str,
        source: &str,
        default: &str,
        compile: impl FnOnce(&str) -> Result<Template, JinjaError>,
    ) -> Result<Self, RenderError> {
        let (pipe, skip) = pipe(source, default);
        let not_available = || RenderError::NotAvailable(pipe.to_owned());
        let mut steps = renderers(pipe).map_err(|()| not_available())?;
        // The line of the pipe becomes an empty one, so that line numbers match the file.
        let text = if skip {
            format!("\n{}", source.split_once('\n').map_or("", |(_, rest)| rest))
        } else {
            source.to_owned()
        };
        let is_template = steps.first() == Some(&Renderer::Jinja);
        let template = is_template.then(|| compile(&text)).transpose()?;
        if is_template {
            steps.remove(0);
        }
        // For templates line numbers count from the start of the file.
        if steps.contains(&Renderer::Jinja)
            || steps.iter().skip(usize::from(!is_template)).any(|step| *step == Renderer::Python)
        {
            return Err(not_available());
        }
        Ok(Sls { name: name.to_owned(), template, source: text, steps, gpg: Arc::default() })
    }

    /// Sets the keys for the renderer `gpg`.
    #[must_use]
    pub fn with_gpg(self, gpg: Arc<Gpg>) -> Self {
        Sls { gpg, ..self }
    }

    /// Renders the SLS. Empty output renders to null.
    pub fn render(&self, context: &Context, host: &Host) -> Result<Value, RenderError> {
        if let Some(rendered) = self.render_hosted(context, host) {
            return rendered;
        }
        let (text, lines) = self.render_mapped(context, host)?;
        self.parse(&text).map_err(|error| error.in_template(&text, &lines))
    }

    fn is_hosted(&self) -> bool {
        self.template.is_none() && self.steps.first() == Some(&Renderer::Python)
    }

    /// Renders a file in Python by the host; `None` for other files.
    ///
    /// # Errors
    /// The host has no Python, or the error of the file.
    pub fn render_hosted(&self, context: &Context, host: &Host) -> Option<Result<Value, RenderError>> {
        if !self.is_hosted() {
            return None;
        }
        let (variables, saltenv) = context.plain();
        let file =
            HostedFile { renderer: "py", name: &self.name, source: &self.source, saltenv, variables, data: None };
        Some(match host.render(&file) {
            Some(rendered) => rendered.map_err(|error| RenderError::Hosted(error.message())),
            None => Err(RenderError::NotAvailable("py".into())),
        })
    }

    /// Renders the template to text with a map of its source lines. The text of a file in Python is JSON.
    pub fn render_mapped(&self, context: &Context, host: &Host) -> Result<(String, SourceLines), RenderError> {
        if let Some(rendered) = self.render_hosted(context, host) {
            return Ok((json::to_json(&rendered?), SourceLines::default()));
        }
        match &self.template {
            Some(template) => template.render_mapped(context, host).map_err(Into::into),
            None => Ok((self.source.clone(), SourceLines::default())),
        }
    }

    /// Returns the source if it renders to itself whatever the variables are.
    pub fn static_text(&self) -> Option<&str> {
        if self.is_hosted() {
            return None;
        }
        let has_tags = self.template.is_some() && ["{{", "{%", "{#"].iter().any(|tag| self.source.contains(tag));
        (!has_tags).then_some(&self.source)
    }

    /// Renders the template to text.
    pub fn render_text(&self, context: &Context, host: &Host) -> Result<String, RenderError> {
        self.render_mapped(context, host).map(|(text, _)| text)
    }

    /// Renders the template to text, with a placeholder for each piece of untrusted text.
    ///
    /// # Errors
    ///
    /// An error of the template.
    pub fn render_guarded(&self, context: &Context, host: &Host) -> Result<(String, Words), RenderError> {
        self.render_guarded_mapped(context, host).map(|(text, words, _)| (text, words))
    }

    /// Renders like [`Sls::render_guarded`], and maps the lines of the text to the source.
    ///
    /// # Errors
    ///
    /// An error of the template.
    pub fn render_guarded_mapped(
        &self,
        context: &Context,
        host: &Host,
    ) -> Result<(String, Words, SourceLines), RenderError> {
        let Some(template) = &self.template else {
            return self.render_mapped(context, host).map(|(text, lines)| (text, Words::new(), lines));
        };
        template.render_guarded(context, host).map_err(|error| match error {
            brine_jinja::GuardedError::Jinja(error) => error.into(),
            brine_jinja::GuardedError::Untrusted(error) => error.into(),
        })
    }

    /// Parses the text of [`Sls::render_guarded`]. The placeholders stay in the data.
    ///
    /// # Errors
    ///
    /// A parse error, or untrusted text that would have changed the structure.
    pub fn parse_guarded(&self, text: &str, words: &Words) -> Result<Located, RenderError> {
        if words.is_empty() {
            return self.parse_located(text);
        }
        let gpg = match self.steps[..] {
            // JSON is a subset of YAML.
            [Renderer::Yaml | Renderer::Json] => false,
            [Renderer::Yaml | Renderer::Json, Renderer::Gpg] => true,
            _ => {
                let message =
                    "render failed: text from an event can only be put into YAML or JSON: write the file in YAML";
                return Err(RenderError::Data { message: message.to_owned(), line: 1 });
            }
        };
        let mut located = brine_yaml::load_guarded(text, words).map_err(|error| match error {
            GuardedError::Yaml(error) => RenderError::Yaml(error),
            GuardedError::Untrusted(error) => error.into(),
        })?;
        if gpg {
            self.gpg.open(&mut located.value)?;
        }
        Ok(located)
    }

    /// Parses rendered text to data, with source positions if the renderer has them.
    pub fn parse_located(&self, text: &str) -> Result<Located, RenderError> {
        match self.steps[..] {
            [Renderer::Yaml] => brine_yaml::load_located(text).map_err(|error| RenderError::Yaml(Box::new(error))),
            _ => self.parse(text).map(Located::without_places),
        }
    }

    /// Parses rendered text to data.
    pub fn parse(&self, text: &str) -> Result<Value, RenderError> {
        self.steps.iter().try_fold(Value::from(text), |value, step| self.step(*step, value))
    }

    fn step(&self, step: Renderer, mut value: Value) -> Result<Value, RenderError> {
        if step == Renderer::Gpg {
            self.gpg.open(&mut value)?;
            return Ok(value);
        }
        // Data of an earlier step is not parsed again.
        let Value::Str(text) = &value else { return Ok(value) };
        let data = |(message, line)| RenderError::Data { message, line };
        match step {
            Renderer::Yaml => brine_yaml::load(text).map_err(|error| RenderError::Yaml(Box::new(error))),
            Renderer::Json | Renderer::Toml if text.trim().is_empty() => Ok(Value::Nil),
            Renderer::Json | Renderer::Python => {
                json::from_json(text).map_err(|error| data((error.to_string(), error.line())))
            }
            Renderer::Toml => toml::load(text).map_err(data),
            Renderer::Jinja | Renderer::Text | Renderer::Gpg => Ok(value),
        }
    }
}

/// The parameters of one render of an SLS.
pub struct RenderContext<'a> {
    /// The name of the SLS in errors.
    pub name: &'a str,
    /// The environment of imports.
    pub saltenv: &'a str,
    /// The pipe for a source that does not declare one: the option `renderer`.
    pub renderer: &'a str,
    /// The variables of its template, such as those of [`sls_variables`], `grains` and `pillar`.
    pub variables: &'a Map,
    /// The functions and files for its template.
    pub host: &'a Host,
}

/// Renders a source once. For repeated rendering compile an [`Sls`].
///
/// # Examples
/// ```
/// use brine_value::map;
/// use brine_jinja::Host;
/// use brine_sls::render::{RenderContext, render_sls, sls_variables};
///
/// let variables = sls_variables("web.nginx", "web/nginx.sls");
/// let host = Host::new();
/// let context =
///     RenderContext { name: "web.nginx", saltenv: "base", renderer: "jinja|yaml", variables: &variables, host: &host };
/// assert_eq!(render_sls("dir: {{ tpldir }}", &context).unwrap(), map! {"dir" => "web"}.into());
/// ```
pub fn render_sls(source: &str, context: &RenderContext<'_>) -> Result<Value, RenderError> {
    let mut variables = Context::new(context.saltenv);
    variables.set_all(context.variables);
    Sls::compile(context.name, source, context.renderer)?.render(&variables, context.host)
}

/// Checks that all renderers of a pipe, such as the option `renderer`, are available.
///
/// # Errors
///
/// The pipe is not available.
pub fn check_pipe(pipe: &str) -> Result<(), RenderError> {
    renderers(pipe).map(|_| ()).map_err(|()| RenderError::NotAvailable(pipe.to_owned()))
}

/// Checks a source without rendering it: its template compiles, and a source without tags parses.
///
/// # Errors
///
/// An error that rendering would return whatever the variables are.
pub fn check_source(name: &str, source: &str, default: &str) -> Result<(), RenderError> {
    let sls = Sls::compile(name, source, default)?;
    match sls.static_text().filter(|_| !sls.steps.iter().any(|step| matches!(step, Renderer::Gpg | Renderer::Python))) {
        Some(text) => sls.parse(text).map(|_| ()),
        None => Ok(()),
    }
}

/// Returns the pipe of a source, and whether its first line declares it.
fn pipe<'a>(source: &'a str, default: &'a str) -> (&'a str, bool) {
    let first = source.lines().next().unwrap_or_default();
    match first.strip_prefix("#!") {
        Some(pipe) if !pipe.starts_with('/') => (pipe.trim(), true),
        _ => (default, false),
    }
}

fn renderers(pipe: &str) -> Result<Vec<Renderer>, ()> {
    // Deprecated names of two steps.
    let pipe = match pipe {
        "yaml_jinja" => "jinja|yaml",
        "json_jinja" => "jinja|json",
        other => other,
    };
    pipe.split('|').map(|step| step.split_whitespace().next().unwrap_or_default().parse()).collect()
}

/// Returns the variables of the rendered SLS: `sls`, `slspath`, `tpldir`, ... `path` is relative to its root, such as
/// `a/b/init.sls`.
pub fn sls_variables(sls: &str, path: &str) -> Map {
    let directory = path.rsplit_once('/').map_or("", |(directory, _)| directory);
    let tpldir = if directory.is_empty() { "." } else { directory };
    map! {
        "sls" => sls,
        "slspath" => directory,
        "sls_path" => directory.replace('/', "_"),
        "slsdotpath" => directory.replace('/', "."),
        "slscolonpath" => directory.replace('/', ":"),
        "tplfile" => path,
        "tpldir" => tpldir,
        "tpldot" => directory.replace('/', "."),
        "tplpath" => path,
    }
}
