//! The render pipe: from the source of an SLS to data, through the renderers in its first line or from the
//! configuration, such as `jinja|yaml`.

mod error;
mod explained;
pub(crate) mod nacl;
mod pipe;
mod stateconf;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use brine_config::opts::master;
use brine_jinja::{Blocks, Context, Host, HostedFile, ImportCache, JinjaError, SourceLines, Template, Variables};
use brine_value::{Map, Value, json, map, msgpack};
use brine_yaml::untrusted::Placeholders;
use brine_yaml::{GuardedError, Located};

pub use error::RenderError;
pub use explained::Explained;
use pipe::Step;
pub use pipe::{AllowedRenderers, RENDERERS, Renderer, check_pipe};
pub use stateconf::Settings;

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

const UNTRUSTED: &str = "render failed: text from an event can only be put into YAML or JSON: write the file in YAML";

/// A compiled SLS, for repeated rendering.
#[derive(Debug)]
pub struct Sls {
    name: String,
    /// The names of all renderers, in errors.
    pipe: String,
    template: Option<Template>,
    /// A string, or bytes for the renderer `msgpack`.
    source: Value,
    /// The steps after the template.
    steps: Vec<Step>,
    imports: ImportCache,
    gpg: Arc<Gpg>,
    settings: Arc<Settings>,
}

impl Sls {
    /// Compiles an SLS. `name` is its name in errors, `default` the pipe for files that do not declare one.
    ///
    /// # Errors
    ///
    /// Those of [`Sls::compile_sharing`].
    pub fn compile(name: &str, source: impl AsRef<[u8]>, default: &str) -> Result<Self, RenderError> {
        Self::compile_sharing(&ImportCache::new(), name, source, default)
    }

    /// Compiles an SLS; imports are compiled once for all SLS that share the cache.
    ///
    /// # Errors
    ///
    /// A pipe that is not available, a syntax error, or a source that is not UTF-8 and whose first renderer reads text.
    pub fn compile_sharing(
        imports: &ImportCache,
        name: &str,
        source: impl AsRef<[u8]>,
        default: &str,
    ) -> Result<Self, RenderError> {
        Self::compile_with(imports, name, source.as_ref(), default, |text| {
            Template::compile_sharing(imports, name, text)
        })
    }

    /// Compiles an SLS for [`Sls::render_guarded`].
    ///
    /// # Errors
    ///
    /// Those of [`Sls::compile_sharing`], or a pipe through which untrusted text could change the data.
    pub fn compile_guarded(
        name: &str,
        source: impl AsRef<[u8]>,
        default: &str,
        variables: Variables,
    ) -> Result<Self, RenderError> {
        let compile = |text: &str| Template::compile_guarded(name, text, variables);
        let sls = Self::compile_with(&ImportCache::new(), name, source.as_ref(), default, compile)?;
        // Programs receive untrusted text as data, and msgpack files contain none. Other templates produce text that is
        // parsed again, in which untrusted text could become structure.
        let is_data = |step: &Step| step.is_program() || step.renderer == Renderer::Msgpack;
        match &sls.steps[..] {
            [step] if sls.template.is_none() && is_data(step) => Ok(sls),
            _ if !sls.is_composite() => Ok(sls),
            _ => Err(RenderError::Data { message: UNTRUSTED.to_owned(), line: 1 }),
        }
    }

    fn compile_with(
        imports: &ImportCache,
        name: &str,
        source: &[u8],
        default: &str,
        compile: impl FnOnce(&str) -> Result<Template, JinjaError>,
    ) -> Result<Self, RenderError> {
        let declared = pipe::declared(source);
        let pipe = declared.unwrap_or(default);
        let not_available = || RenderError::NotAvailable(pipe.to_owned());
        let mut steps = pipe::steps(pipe).ok_or_else(not_available)?;
        let first_is = |renderer| steps.first().is_some_and(|step| step.renderer == renderer);
        let is_template = first_is(Renderer::Jinja);
        let after_line = || source.iter().position(|byte| *byte == b'\n').map_or(&[][..], |end| &source[end + 1..]);
        let body = declared.map_or(source, |_| after_line());
        let source: Value = if first_is(Renderer::Msgpack) {
            body.to_vec().into()
        } else {
            let text = std::str::from_utf8(body).map_err(|_| RenderError::NotText(name.to_owned()))?;
            // The line of the pipe becomes an empty one, so that line numbers match the file.
            declared.map_or_else(|| text.into(), |_| format!("\n{text}").into())
        };
        let template = is_template.then(|| compile(source.as_str().unwrap_or_default())).transpose()?;
        if is_template {
            steps.remove(0);
        }
        // Templates and programs must be the first step: their line numbers count from the start of the file.
        if steps.iter().any(|step| step.renderer == Renderer::Jinja)
            || steps.iter().skip(usize::from(!is_template)).any(Step::is_program)
        {
            return Err(not_available());
        }
        let (gpg, settings, imports) = (Arc::default(), Arc::default(), imports.clone());
        let (name, pipe) = (name.to_owned(), pipe.to_owned());
        Ok(Sls { name, pipe, template, source, steps, imports, gpg, settings })
    }

    /// Returns the SLS if all of its renderers are allowed.
    ///
    /// # Errors
    /// A renderer is not allowed.
    pub fn allowed_by(self, allowed: &AllowedRenderers) -> Result<Self, RenderError> {
        allowed.check(&self.pipe).map(|()| self)
    }

    /// Sets the keys for the renderer `gpg`.
    #[must_use]
    pub fn with_gpg(self, gpg: Arc<Gpg>) -> Self {
        Sls { gpg, ..self }
    }

    /// Sets the settings that the SLS files of a run share in the renderer `stateconf`.
    #[must_use]
    pub fn with_settings(self, settings: Arc<Settings>) -> Self {
        Sls { settings, ..self }
    }

    /// Renders the SLS. Empty output renders to null.
    pub fn render(&self, context: &Context, host: &Host) -> Result<Value, RenderError> {
        if let Some(rendered) = self.render_composite(context, host) {
            return rendered;
        }
        let (text, lines) = self.render_mapped(context, host)?;
        self.parse(&text).map_err(|error| error.in_template(&text, &lines))
    }

    /// Renders the SLS, and explains an error.
    ///
    /// # Errors
    /// Those of [`Sls::render`].
    pub fn render_explained(&self, context: &Context, host: &Host) -> Result<Value, Box<Explained>> {
        let mut rendered = String::new();
        let result = if let Some(rendered) = self.render_composite(context, host) {
            rendered
        } else {
            self.render_mapped(context, host).and_then(|(text, lines)| {
                rendered = text;
                self.parse(&rendered).map_err(|error| error.in_template(&rendered, &lines))
            })
        };
        result.map_err(|error| Box::new(self.explain(error, &rendered)))
    }

    /// Explains an error of this SLS: `rendered` is the text that its template returned.
    pub fn explain(&self, error: RenderError, rendered: &str) -> Explained {
        Explained::of(error, &self.name, self.text().as_bytes(), rendered)
    }

    /// Returns whether the pipe is more than a template whose text is parsed.
    fn is_composite(&self) -> bool {
        self.steps.iter().any(|step| {
            matches!(step.renderer, Renderer::Hosted | Renderer::Nacl | Renderer::Stateconf | Renderer::Msgpack)
        })
    }

    /// Returns the source of a pipe that begins with a text renderer.
    fn text(&self) -> &str {
        self.source.as_str().unwrap_or_default()
    }

    /// Renders a file with renderers of the host or `stateconf` in its pipe; `None` for other files.
    ///
    /// # Errors
    /// The host has no such renderer, or the error of the file.
    pub fn render_composite(&self, context: &Context, host: &Host) -> Option<Result<Value, RenderError>> {
        self.is_composite().then(|| {
            let Some(template) = &self.template else {
                return self.steps_of(&self.steps, self.source.clone(), context, host);
            };
            let (text, lines) = template.render_mapped(context, host)?;
            // Only the first step reads the text of the template.
            let (first, rest) = self.steps.split_at(1.min(self.steps.len()));
            let data = self.steps_of(first, text.as_str().into(), context, host);
            self.steps_of(rest, data.map_err(|error| error.in_template(&text, &lines))?, context, host)
        })
    }

    fn steps_of(&self, steps: &[Step], value: Value, context: &Context, host: &Host) -> Result<Value, RenderError> {
        steps.iter().try_fold(value, |value, step| self.step_of(step, value, context, host))
    }

    fn step_of(&self, step: &Step, mut value: Value, context: &Context, host: &Host) -> Result<Value, RenderError> {
        match step.renderer {
            Renderer::Jinja => {
                let text = value.to_string();
                Ok(Template::compile_sharing(&self.imports, &self.name, &text)?.render(context, host)?.into())
            }
            Renderer::Hosted => {
                let (variables, saltenv) = context.plain();
                let (renderer, name) = (&step.name[..], &self.name[..]);
                let file =
                    HostedFile { renderer, args: &step.args, name, source: &value, saltenv, variables, data: None };
                match host.render(&file) {
                    Some(rendered) => rendered.map_err(|error| RenderError::Hosted(error.message())),
                    None => Err(RenderError::NotAvailable(self.pipe.clone())),
                }
            }
            Renderer::Nacl => nacl::decrypt(&mut value, host).map(|()| value),
            Renderer::Stateconf => self.stateconf(step, value, context, host),
            _ => self.step(step.renderer, value),
        }
    }

    fn stateconf(&self, step: &Step, value: Value, context: &Context, host: &Host) -> Result<Value, RenderError> {
        let options: stateconf::Options = step.args.parse().map_err(|()| {
            RenderError::Stateconf(format!(
                "the options {:?} are invalid: expected '[-Gosp] [yaml . jinja]', a parser and a template",
                step.args
            ))
        })?;
        let (variables, saltenv) = context.plain();
        let sls = variables.get("sls").map(ToString::to_string).unwrap_or_default();
        let process = |data, is_head| stateconf::process(data, &sls, saltenv, &options, &self.settings, is_head);
        if options.data {
            return process(value, false);
        }
        let render = |text: &str, more: Map| {
            let mut context = context.clone();
            context.set("sls_dir", &stateconf::directory(&sls).into()).set_all(&more);
            let steps = [Step::plain(&options.template), Step::plain(&options.parser)];
            self.steps_of(&steps, text.into(), &context, host)
        };
        let source = value.to_string();
        if let Some(head) = stateconf::head(&source) {
            process(render(head, Map::new())?, true)?;
        }
        process(render(&source, self.settings.variables(&sls))?, false)
    }

    /// Renders the template to text with a map of its source lines. The text of a composite file is JSON.
    pub fn render_mapped(&self, context: &Context, host: &Host) -> Result<(String, SourceLines), RenderError> {
        if let Some(rendered) = self.render_composite(context, host) {
            return Ok((json::to_json(&rendered?), SourceLines::default()));
        }
        match &self.template {
            Some(template) => template.render_mapped(context, host).map_err(Into::into),
            None => Ok((self.text().to_owned(), SourceLines::default())),
        }
    }

    /// Returns the source if it renders to itself regardless of the variables.
    pub fn static_text(&self) -> Option<&str> {
        if self.is_composite() {
            return None;
        }
        let has_tags = self.template.is_some() && ["{{", "{%", "{#"].iter().any(|tag| self.text().contains(tag));
        (!has_tags).then(|| self.text())
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
    pub fn render_guarded(&self, context: &Context, host: &Host) -> Result<(String, Placeholders), RenderError> {
        self.render_guarded_mapped(context, host).map(|(text, placeholders, _)| (text, placeholders))
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
    ) -> Result<(String, Placeholders, SourceLines), RenderError> {
        let Some(template) = &self.template else {
            return self.render_mapped(context, host).map(|(text, lines)| (text, Placeholders::new(), lines));
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
    pub fn parse_guarded(&self, text: &str, placeholders: &Placeholders) -> Result<Located, RenderError> {
        if placeholders.is_empty() {
            return self.parse_located(text);
        }
        let steps: Vec<Renderer> = self.steps.iter().map(|step| step.renderer).collect();
        let gpg = match steps[..] {
            // JSON is a subset of YAML.
            [Renderer::Yaml | Renderer::Json] => false,
            [Renderer::Yaml | Renderer::Json, Renderer::Gpg] => true,
            _ => return Err(RenderError::Data { message: UNTRUSTED.to_owned(), line: 1 }),
        };
        let mut located = brine_yaml::load_guarded(text, placeholders).map_err(|error| match error {
            GuardedError::Yaml(error) => RenderError::Yaml(error),
            GuardedError::Untrusted(error) => error.into(),
        })?;
        if gpg {
            self.gpg.decrypt(&mut located.value)?;
        }
        Ok(located)
    }

    /// Parses rendered text to data, with source positions if the renderer has them.
    pub fn parse_located(&self, text: &str) -> Result<Located, RenderError> {
        match &self.steps[..] {
            [Step { renderer: Renderer::Yaml, .. }] => {
                brine_yaml::load_located(text).map_err(|error| RenderError::Yaml(Box::new(error)))
            }
            _ => self.parse(text).map(Located::without_places),
        }
    }

    /// Parses rendered text to data.
    pub fn parse(&self, text: &str) -> Result<Value, RenderError> {
        if self.is_composite() {
            return json::from_json(text)
                .map_err(|error| RenderError::Data { message: error.to_string(), line: error.line() });
        }
        self.steps.iter().try_fold(Value::from(text), |value, step| self.step(step.renderer, value))
    }

    fn step(&self, step: Renderer, mut value: Value) -> Result<Value, RenderError> {
        if step == Renderer::Gpg {
            self.gpg.decrypt(&mut value)?;
            return Ok(value);
        }
        let data = |(message, line)| RenderError::Data { message, line };
        if step == Renderer::Msgpack {
            return match &value {
                Value::Bytes(bytes) if bytes.is_empty() => Ok(Value::Nil),
                Value::Bytes(bytes) => msgpack::unpack(bytes).map_err(|error| data((error.to_string(), 1))),
                _ => Ok(value),
            };
        }
        // Data of an earlier step is not parsed again.
        let Value::Str(text) = &value else { return Ok(value) };
        match step {
            Renderer::Yaml => brine_yaml::load(text).map_err(|error| RenderError::Yaml(Box::new(error))),
            Renderer::Yamlex => brine_yaml::load_extended(text).map_err(|error| RenderError::Yaml(Box::new(error))),
            Renderer::Json | Renderer::Toml if text.trim().is_empty() => Ok(Value::Nil),
            Renderer::Json => json::from_json(text).map_err(|error| data((error.to_string(), error.line()))),
            Renderer::Toml => toml::load(text).map_err(|error| data((error.message, error.line))),
            Renderer::Jinja
            | Renderer::Text
            | Renderer::Gpg
            | Renderer::Hosted
            | Renderer::Nacl
            | Renderer::Stateconf
            | Renderer::Msgpack => Ok(value),
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

/// Checks a source without rendering it: its template compiles, and a source without tags parses.
///
/// # Errors
///
/// An error that rendering would return regardless of the variables.
pub fn check_source(name: &str, source: &str, default: &str) -> Result<(), RenderError> {
    let sls = Sls::compile(name, source, default)?;
    match sls.static_text().filter(|_| !sls.steps.iter().any(|step| step.renderer == Renderer::Gpg)) {
        Some(text) => sls.parse(text).map(|_| ()),
        None => Ok(()),
    }
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
