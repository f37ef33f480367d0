//! The render pipe: from the text of an SLS to data, through the renderers that it names or that are
//! configured, such as `jinja|yaml`.

use std::str::FromStr;
use std::sync::Arc;

use brine_jinja::{Context, Host, JinjaError, SourceLines, Template, Variables};
use brine_value::{Map, Value, json, map};
use brine_yaml::untrusted::{UntrustedError, Words};
use brine_yaml::{GuardedError, Located, YamlError};

use super::gpg::{Gpg, GpgError};
use super::toml;

/// One step of the pipe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Renderer {
    /// Text to text.
    Jinja,
    /// Text to data.
    Yaml,
    /// Text to data.
    Json,
    /// Text to data.
    Toml,
    /// Text to the same text: it is the data.
    Text,
    /// Opens what is sealed with PGP in text or data.
    Gpg,
}

impl FromStr for Renderer {
    type Err = ();

    fn from_str(name: &str) -> Result<Self, ()> {
        match name {
            "jinja" => Ok(Renderer::Jinja),
            "yaml" => Ok(Renderer::Yaml),
            "json" => Ok(Renderer::Json),
            "toml" => Ok(Renderer::Toml),
            "text" => Ok(Renderer::Text),
            "gpg" => Ok(Renderer::Gpg),
            _ => Err(()),
        }
    }
}

/// Why an SLS does not become data.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RenderError {
    /// A renderer that is not there.
    #[error("The renderer \"{0}\" is not available")]
    NotAvailable(String),
    /// The template.
    #[error(transparent)]
    Jinja(#[from] JinjaError),
    /// The YAML that came out of the template.
    #[error("{}", .0.salt_text())]
    Yaml(Box<YamlError>),
    /// The JSON or TOML that came out of the template.
    #[error("{message}; line {line}")]
    Data {
        /// What is wrong.
        message: String,
        /// On which line of the rendered text.
        line: usize,
    },
    /// What is sealed with PGP.
    #[error(transparent)]
    Gpg(#[from] GpgError),
    /// Text from an event that would have changed the structure of the file.
    #[error(transparent)]
    Untrusted(#[from] UntrustedError),
    /// An error in rendered text whose line is another one in the template.
    #[error("{error}\n{}", rendered_from(*line, *rendered_line, rendered))]
    Rendered {
        /// The error.
        error: Box<RenderError>,
        /// The line of the template.
        line: usize,
        /// The line of the rendered text.
        rendered_line: usize,
        /// The text of that line.
        rendered: String,
    },
}

/// The most characters of a rendered line that an error shows.
const SHOWN: usize = 200;

fn rendered_from(line: usize, rendered_line: usize, rendered: &str) -> String {
    let shown: String = rendered.trim().chars().take(SHOWN).collect();
    format!("line {line} of the template, which renders to line {rendered_line}: {shown}")
}

impl RenderError {
    /// The line that the error is on: of the template, or of what came out of it.
    pub fn line(&self) -> Option<usize> {
        match self {
            RenderError::NotAvailable(_) => Some(1),
            RenderError::Jinja(error) => Some(error.line),
            RenderError::Yaml(error) => Some(error.line),
            RenderError::Data { line, .. } | RenderError::Rendered { line, .. } => Some(*line),
            RenderError::Gpg(_) => None,
            RenderError::Untrusted(error) => Some(error.line),
        }
    }

    /// The same error with the line of the template, if that is another one than that of the rendered text.
    #[must_use]
    pub fn in_template(self, rendered: &str, lines: &SourceLines) -> Self {
        let rendered_line = match &self {
            RenderError::Yaml(error) => error.line,
            RenderError::Data { line, .. } => *line,
            _ => return self,
        };
        match lines.line(rendered, rendered_line) {
            Some(line) if line != rendered_line => {
                let rendered = rendered.lines().nth(rendered_line - 1).unwrap_or_default().to_owned();
                RenderError::Rendered { error: Box::new(self), line, rendered_line, rendered }
            }
            _ => self,
        }
    }

    /// The same error with what words stand for in the rendered line that it shows.
    #[must_use]
    pub fn revealed(self, words: &Words) -> Self {
        match self {
            RenderError::Rendered { error, line, rendered_line, rendered } => {
                RenderError::Rendered { error, line, rendered_line, rendered: words.reveal(&rendered) }
            }
            other => other,
        }
    }

    /// The message on one line, without the text around the culprit.
    pub fn message(&self) -> String {
        match self {
            RenderError::Jinja(error) => error.summary(),
            RenderError::Yaml(error) => error.message.clone(),
            RenderError::Rendered { error, rendered_line, rendered, .. } => {
                let shown: String = rendered.trim().chars().take(SHOWN).collect();
                format!("{} (it renders to line {rendered_line}: {shown})", error.message())
            }
            other => other.to_string(),
        }
    }
}

/// An SLS, its template compiled: rendered often.
#[derive(Debug)]
pub struct Sls {
    template: Option<Template>,
    source: String,
    /// What comes after the template.
    steps: Vec<Renderer>,
    gpg: Arc<Gpg>,
}

impl Sls {
    /// Compiles an SLS. `name` is what errors call it, `default` the pipe for files that do not name one.
    pub fn compile(name: &str, source: &str, default: &str) -> Result<Self, RenderError> {
        Self::compile_for(name, source, default, None)
    }

    /// Compiles an SLS that is rendered by [`Sls::render_guarded`].
    pub fn compile_guarded(name: &str, source: &str, default: &str, variables: Variables) -> Result<Self, RenderError> {
        Self::compile_for(name, source, default, Some(variables))
    }

    fn compile_for(name: &str, source: &str, default: &str, guard: Option<Variables>) -> Result<Self, RenderError> {
        let (pipe, skip) = pipe(source, default);
        let not_available = || RenderError::NotAvailable(pipe.to_owned());
        let mut steps = renderers(pipe).map_err(|()| not_available())?;
        // The line of the pipe stays as an empty one, so that lines are counted as in the file.
        let text = if skip {
            format!("\n{}", source.split_once('\n').map_or("", |(_, rest)| rest))
        } else {
            source.to_owned()
        };
        let is_template = steps.first() == Some(&Renderer::Jinja);
        let compile = || match guard {
            Some(variables) => Template::compile_guarded(name, &text, variables),
            None => Template::compile(name, &text),
        };
        let template = is_template.then(compile).transpose()?;
        if is_template {
            steps.remove(0);
        }
        // A template is compiled once: it is what the file itself says.
        if steps.contains(&Renderer::Jinja) {
            return Err(not_available());
        }
        Ok(Sls { template, source: text, steps, gpg: Arc::default() })
    }

    /// With these keys for the renderer `gpg`.
    #[must_use]
    pub fn with_gpg(self, gpg: Arc<Gpg>) -> Self {
        Sls { gpg, ..self }
    }

    /// Renders. What is empty renders to nothing.
    pub fn render(&self, context: &Context, host: &Arc<dyn Host>) -> Result<Value, RenderError> {
        let (text, lines) = self.render_mapped(context, host)?;
        self.parse(&text).map_err(|error| error.in_template(&text, &lines))
    }

    /// The text that comes out of the template, and where its lines come from.
    pub fn render_mapped(&self, context: &Context, host: &Arc<dyn Host>) -> Result<(String, SourceLines), RenderError> {
        match &self.template {
            Some(template) => template.render_mapped(context, host).map_err(Into::into),
            None => Ok((self.source.clone(), SourceLines::default())),
        }
    }

    /// The source, if it renders to itself whatever the variables are.
    pub fn static_text(&self) -> Option<&str> {
        let has_tags = self.template.is_some() && ["{{", "{%", "{#"].iter().any(|tag| self.source.contains(tag));
        (!has_tags).then_some(&self.source)
    }

    /// The text that comes out of the template.
    pub fn render_text(&self, context: &Context, host: &Arc<dyn Host>) -> Result<String, RenderError> {
        self.render_mapped(context, host).map(|(text, _)| text)
    }

    /// The text that comes out of the template, with a word in place of all that its untrusted variables brought.
    ///
    /// # Errors
    /// An error of the template.
    pub fn render_guarded(&self, context: &Context, host: &Arc<dyn Host>) -> Result<(String, Words), RenderError> {
        self.render_guarded_mapped(context, host).map(|(text, words, _)| (text, words))
    }

    /// As [`Sls::render_guarded`], with where the lines of the text come from.
    ///
    /// # Errors
    /// An error of the template.
    pub fn render_guarded_mapped(
        &self,
        context: &Context,
        host: &Arc<dyn Host>,
    ) -> Result<(String, Words, SourceLines), RenderError> {
        let Some(template) = &self.template else {
            return Ok((self.source.clone(), Words::new(), SourceLines::default()));
        };
        template.render_guarded(context, host).map_err(|error| match error {
            brine_jinja::GuardedError::Jinja(error) => error.into(),
            brine_jinja::GuardedError::Untrusted(error) => error.into(),
        })
    }

    /// The data that a text says which [`Sls::render_guarded`] made. The words stay in it.
    ///
    /// # Errors
    /// Text that cannot be read, or untrusted text that would have changed its structure.
    pub fn parse_guarded(&self, text: &str, words: &Words) -> Result<Located, RenderError> {
        if words.is_empty() {
            return self.parse_located(text);
        }
        let gpg = match self.steps[..] {
            // What is JSON is YAML too.
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

    /// The data that the rendered text says, with its places where the renderer knows them.
    pub fn parse_located(&self, text: &str) -> Result<Located, RenderError> {
        match self.steps[..] {
            [Renderer::Yaml] => brine_yaml::load_located(text).map_err(|error| RenderError::Yaml(Box::new(error))),
            _ => self.parse(text).map(Located::without_places),
        }
    }

    /// The data that the rendered text says.
    pub fn parse(&self, text: &str) -> Result<Value, RenderError> {
        self.steps.iter().try_fold(Value::from(text), |value, step| self.step(*step, value))
    }

    fn step(&self, step: Renderer, mut value: Value) -> Result<Value, RenderError> {
        if step == Renderer::Gpg {
            self.gpg.open(&mut value)?;
            return Ok(value);
        }
        // What is data already is read no further.
        let Value::Str(text) = &value else { return Ok(value) };
        let data = |(message, line)| RenderError::Data { message, line };
        match step {
            Renderer::Yaml => brine_yaml::load(text).map_err(|error| RenderError::Yaml(Box::new(error))),
            Renderer::Json | Renderer::Toml if text.trim().is_empty() => Ok(Value::Nil),
            Renderer::Json => json::from_json(text).map_err(|error| data((error.to_string(), error.line()))),
            Renderer::Toml => toml::load(text).map_err(data),
            Renderer::Jinja | Renderer::Text | Renderer::Gpg => Ok(value),
        }
    }
}

/// What one render of an SLS needs beside its source.
pub struct RenderContext<'a> {
    /// What errors call the SLS.
    pub name: &'a str,
    /// The environment that imports come from.
    pub saltenv: &'a str,
    /// The pipe for a source that does not name one: the option `renderer`.
    pub renderer: &'a str,
    /// The variables of its template, such as those of [`sls_variables`], `grains` and `pillar`.
    pub variables: &'a Map,
    /// The functions and files that it reaches.
    pub host: &'a Arc<dyn Host>,
}

/// Renders a source that is rendered once. What is rendered often is compiled to an [`Sls`].
///
/// # Examples
/// ```
/// use std::sync::Arc;
/// use brine_value::map;
/// use brine_jinja::{Host, NoHost};
/// use brine_sls::render::{RenderContext, render_sls, sls_variables};
///
/// let variables = sls_variables("web.nginx", "web/nginx.sls");
/// let host: Arc<dyn Host> = Arc::new(NoHost);
/// let context =
///     RenderContext { name: "web.nginx", saltenv: "base", renderer: "jinja|yaml", variables: &variables, host: &host };
/// assert_eq!(render_sls("dir: {{ tpldir }}", &context).unwrap(), map! {"dir" => "web"}.into());
/// ```
pub fn render_sls(source: &str, context: &RenderContext<'_>) -> Result<Value, RenderError> {
    let mut variables = Context::new(context.saltenv);
    variables.set_all(context.variables);
    Sls::compile(context.name, source, context.renderer)?.render(&variables, context.host)
}

/// Checks that a pipe, such as the option `renderer`, names renderers that there are.
///
/// # Errors
/// The pipe is not available.
pub fn check_pipe(pipe: &str) -> Result<(), RenderError> {
    renderers(pipe).map(|_| ()).map_err(|()| RenderError::NotAvailable(pipe.to_owned()))
}

/// Checks a source without rendering it: its template compiles, and a source without tags parses.
///
/// # Errors
/// What rendering it would fail of, whatever its variables are.
pub fn check_source(name: &str, source: &str, default: &str) -> Result<(), RenderError> {
    let sls = Sls::compile(name, source, default)?;
    match sls.static_text().filter(|_| !sls.steps.contains(&Renderer::Gpg)) {
        Some(text) => sls.parse(text).map(|_| ()),
        None => Ok(()),
    }
}

/// The pipe of a source, and whether its first line says so.
fn pipe<'a>(source: &'a str, default: &'a str) -> (&'a str, bool) {
    let first = source.lines().next().unwrap_or_default();
    match first.strip_prefix("#!") {
        Some(pipe) if !pipe.starts_with('/') => (pipe.trim(), true),
        _ => (default, false),
    }
}

fn renderers(pipe: &str) -> Result<Vec<Renderer>, ()> {
    // The old names for two steps.
    let pipe = match pipe {
        "yaml_jinja" => "jinja|yaml",
        "json_jinja" => "jinja|json",
        other => other,
    };
    pipe.split('|').map(|step| step.split_whitespace().next().unwrap_or_default().parse()).collect()
}

/// The variables that say which SLS is being rendered: `sls`, `slspath`, `tpldir`, ... `path` is where
/// it is below its root, such as `a/b/init.sls`.
pub fn sls_variables(sls: &str, path: &str) -> Map {
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let tpldir = if folder.is_empty() { "." } else { folder };
    map! {
        "sls" => sls,
        "slspath" => folder,
        "sls_path" => folder.replace('/', "_"),
        "slsdotpath" => folder.replace('/', "."),
        "slscolonpath" => folder.replace('/', ":"),
        "tplfile" => path,
        "tpldir" => tpldir,
        "tpldot" => folder.replace('/', "."),
        "tplpath" => path,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use brine_jinja::{Limits, NoHost};
    use brine_value::list;

    #[test]
    fn the_defaults_of_the_limits_are_those_of_the_options() {
        let (options, own) = (Limits::of(&brine_config::MasterConfig::default().opts), Limits::default());
        assert_eq!((options.fuel, options.memory, options.output), (own.fuel, own.memory, own.output));
    }

    fn render(source: &str) -> Result<Value, RenderError> {
        let host: Arc<dyn Host> = Arc::new(NoHost);
        let mut context = Context::new("base");
        context.set("x", &5.into());
        Sls::compile("t.sls", source, "jinja|yaml")?.render(&context, &host)
    }

    #[test]
    fn a_source_goes_through_its_pipe() {
        for (source, value) in [
            ("a: {{ x }}", Value::from(map! {"a" => 5})),
            ("#!yaml\na: '{{ x }}'", map! {"a" => "{{ x }}"}.into()),
            ("#!jinja|json\n{\"a\": [{{ x }}]}", map! {"a" => list![5]}.into()),
            ("#!/bin/sh\na: {{ x }}", map! {"a" => 5}.into()),
            ("#!yaml_jinja\na: {{ x }}", map! {"a" => 5}.into()),
            ("#!jinja | yaml\na: {{ x }}", map! {"a" => 5}.into()),
            ("#!json\n{\"from_json\": {\"test.nop\": []}}", map! {"from_json" => map! {"test.nop" => list![]}}.into()),
            (
                "a: {{ {'m': 'l1\\nl2', 'l': [1, none]} }}",
                map! {"a" => map! {"m" => "l1\nl2", "l" => list![1, "None"]}}.into(),
            ),
            ("#!toml\na = 5\n[b]\nc = 'd'\n", map! {"a" => 5, "b" => map! {"c" => "d"}}.into()),
            ("#!jinja|toml\na = {{ x }}", map! {"a" => 5}.into()),
            ("#!jinja|text\na: {{ x }}", "\na: 5".into()),
            ("#!text|yaml\na: '{{ x }}'", map! {"a" => "{{ x }}"}.into()),
            ("#!jinja|yaml|gpg\na: {{ x }}", map! {"a" => 5}.into()),
            ("#!toml\n", Value::Nil),
            ("# only a comment\n", Value::Nil),
            ("", Value::Nil),
        ] {
            assert_eq!(render(source), Ok(value), "{source}");
        }
    }

    #[test]
    fn errors_have_lines() {
        for (source, line, message) in [
            ("a: 1\nb: {{ y }}", 2, "Jinja variable 'y' is undefined"),
            ("a: 1\na: 2", 2, "found conflicting ID 'a'"),
            ("#!toml\na = 1\nb = [", 3, "unclosed array, expected `]`; line 3"),
            ("#!yaml|jinja\na: 1", 1, "The renderer \"yaml|jinja\" is not available"),
            ("#!foo|yaml\na: 1", 1, "The renderer \"foo|yaml\" is not available"),
        ] {
            let error = render(source).unwrap_err();
            assert_eq!((error.line(), error.message()), (Some(line), message.to_owned()), "{source}");
        }
    }

    #[test]
    fn errors_of_rendered_text_name_the_line_of_the_template() {
        for (source, line, message) in [
            (
                "{% for i in [1, 2, 3] %}\nk{{ i }}: 1\n{% endfor %}\nbad: x: y\n",
                4,
                "mapping values are not allowed in this context (it renders to line 8: bad: x: y)",
            ),
            (
                "#!jinja|json\n{% for i in [1, 2, 3] %}\n{% endfor %}\n{\"a\": }\n",
                4,
                "expected value at line 6 column 7; line 6 (it renders to line 6: {\"a\": })",
            ),
            ("a: 1\nb: {{ x }}\na: 2\n", 3, "found conflicting ID 'a'"),
        ] {
            let error = render(source).unwrap_err();
            assert_eq!((error.line(), error.message()), (Some(line), message.to_owned()), "{source}");
        }
        let error = render("{% for i in [1, 2, 3] %}\nk{{ i }}: 1\n{% endfor %}\nbad: x: y\n").unwrap_err().to_string();
        assert_eq!(
            error,
            "mapping values are not allowed in this context\nline 4 of the template, which renders to line 8: bad: x: y"
        );
    }

    #[test]
    fn sources_are_checked_without_rendering() {
        for (source, is_good) in [
            ("a: {{ nothing }}", true),
            ("a: {% if %}", false),
            ("a: [1", false),
            ("{{ x }}: [1", true),
            ("#!mako|yaml\na: 1", false),
            ("#!json\n{\"a\": {{ 1 }", false),
            ("", true),
        ] {
            assert_eq!(check_source("t", source, "jinja|yaml").is_ok(), is_good, "{source}");
        }
    }

    #[test]
    fn an_sls_knows_where_it_is() {
        let variables = sls_variables("a.b", "a/b/init.sls");
        assert_eq!(variables.get("tpldir"), Some(&"a/b".into()));
        assert_eq!(variables.get("slsdotpath"), Some(&"a.b".into()));
        let top = sls_variables("x", "x.sls");
        assert_eq!((top.get("tpldir"), top.get("slspath")), (Some(&".".into()), Some(&"".into())));
    }

    proptest::proptest! {
        #[test]
        fn any_source_renders_or_is_refused(source in "(#!)?(jinja|yaml|json|toml|text|gpg|-----BEGIN PGP MESSAGE-----|a = 1|\\||\n|a: |- |\\{\\{ x \\}\\}|[\\[\\]{}'\",#é]){0,12}") {
            let _ = render(&source);
        }
    }
}
