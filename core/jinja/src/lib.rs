//! Jinja as Salt's users write it, on minijinja: strict about what is undefined, Python's methods and
//! Python's way to print, lists and mappings that change in place, `salt['mod.fun'](...)`.
//!
//! A source is first brought into minijinja's language (`rewrite`), line by line the same. `value` and
//! `containers` carry data in and out, `host` is what templates can reach, `import` finds other
//! templates, `guard` keeps untrusted text out of a template's structure, `filters` and `methods` have what Salt and Python add, `error` tells it in Salt's words, `lines` leads
//! from rendered text back to the template.

mod again;
mod call;
mod cause;
mod containers;
mod error;
mod filters;
mod formatting;
mod guard;
mod host;
mod import;
pub mod limits;
mod lines;
mod methods;
pub mod metrics;
mod operators;
pub mod reference;
mod rewrite;
mod signatures;
#[cfg(test)]
mod tests;
mod value;

use std::sync::{Arc, LazyLock};

use brine_value::{Map, Value, json};
use brine_yaml::untrusted::{UntrustedError, Words};
use minijinja::syntax::SyntaxConfig;
use minijinja::value::Value as JinjaValue;
use minijinja::{AutoEscape, Environment, UndefinedBehavior};

pub use containers::Tree;
pub use error::JinjaError;
pub use guard::Variables;
use guard::{Decision, Facts, Guard};
pub use host::{Host, NoHost};
pub use limits::{Cancel, LimitExceeded, Limits};
pub use lines::SourceLines;
use rewrite::Look;

/// What all templates share: filters, tests and globals. A copy of it is a few reference counts.
static ENVIRONMENT: LazyLock<Environment<'static>> = LazyLock::new(environment);

/// A template, compiled once and rendered often.
///
/// # Examples
/// ```
/// use std::sync::Arc;
/// use brine_value::map;
/// use brine_jinja::{Context, Host, NoHost, Template};
///
/// let template = Template::compile("hello", "hello {{ data.name }}\n").unwrap();
/// let host: Arc<dyn Host> = Arc::new(NoHost);
/// let mut context = Context::new("base");
/// context.set("data", &map! {"name" => "you"}.into());
/// assert_eq!(template.render(&context, &host).unwrap(), "hello you\n");
/// ```
pub struct Template {
    name: String,
    source: Arc<str>,
    /// The source in the engine's language, line by line the same.
    rewritten: Arc<str>,
    /// Whether the line of options at its start is not in there.
    has_options: bool,
    environment: Environment<'static>,
    /// Whether it reads other templates: these come from the host, anew with each render.
    imports: bool,
    guarded: Option<Guarded>,
}

/// How a template is guarded against untrusted text.
struct Guarded {
    variables: Variables,
    facts: Arc<Facts>,
    decisions: Arc<[Decision]>,
}

/// Why a guarded template cannot be rendered.
#[derive(Debug)]
pub enum GuardedError {
    /// The template fails.
    Jinja(JinjaError),
    /// Untrusted text is refused.
    Untrusted(UntrustedError),
}

/// The variables of a template. What a template changes in them in place stays changed for the next
/// one that is rendered with the same context, as in Salt.
#[derive(Debug, Clone, Default)]
pub struct Context {
    variables: Vec<(String, JinjaValue)>,
    saltenv: String,
    limits: Limits,
}

impl Context {
    /// Without variables but `saltenv`.
    pub fn new(saltenv: &str) -> Self {
        Context { variables: Vec::new(), saltenv: saltenv.to_owned(), limits: Limits::default() }
    }

    /// Sets the limits of renders with these variables. A render inside of another one shares the limits of that one.
    pub fn set_limits(&mut self, limits: Limits) -> &mut Self {
        self.limits = limits;
        self
    }

    /// Sets a variable.
    pub fn set(&mut self, name: &str, value: &Value) -> &mut Self {
        self.variables.push((name.to_owned(), value::to_jinja(value)));
        self
    }

    /// Sets several variables.
    pub fn set_all(&mut self, variables: &Map) -> &mut Self {
        for (name, value) in variables {
            self.set(&name.to_string(), value);
        }
        self
    }

    /// Sets a variable to a mapping that others hold too, without copying it: an entry is converted
    /// when the template looks at it. The others do not see what the template changes.
    pub fn set_shared(&mut self, name: &str, map: Arc<Map>) -> &mut Self {
        self.set_tree(name, &Tree::new(map))
    }

    /// Sets a variable to a mapping that others may look at too, and see what the template changes in it.
    pub fn set_tree(&mut self, name: &str, tree: &Tree) -> &mut Self {
        self.variables.push((name.to_owned(), tree.value()));
        self
    }
}

impl std::fmt::Debug for Template {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Template").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Template {
    /// Compiles a template. `name` is what errors call it.
    pub fn compile(name: &str, source: &str) -> Result<Self, JinjaError> {
        Self::compile_for(Look::First, name, source, None)
    }

    /// Compiles a template whose output keeps its structure whatever is in the untrusted ones of its variables: it is
    /// rendered by [`Template::render_guarded`].
    pub fn compile_guarded(name: &str, source: &str, variables: Variables) -> Result<Self, JinjaError> {
        Self::compile_for(Look::First, name, source, Some(variables))
    }

    fn compile_for(look: Look, name: &str, source: &str, guard: Option<Variables>) -> Result<Self, JinjaError> {
        let mut environment = ENVIRONMENT.clone();
        let (options, without) = options_line(source);
        let mut chosen = syntax(false, false);
        if !options.is_empty() {
            let on = |name: &str| options.iter().any(|(option, on)| option == name && *on);
            chosen = syntax(on("trim_blocks"), on("lstrip_blocks"));
            environment.set_syntax(chosen.clone());
        }
        let has_options = without.is_some();
        let without = without.as_deref().unwrap_or(source);
        let mut rewritten = rewrite::rewrite(without, look);
        let mut guarded = None;
        if let Some(variables) = guard {
            let failed = |message| JinjaError::whole(name, message);
            let alone = (!rewritten.imports).then_some(variables);
            let covered = guard::cover(source, &rewritten.text, chosen, alone).map_err(failed)?;
            let decisions = guard::decisions(&covered.facts, variables).map_err(failed)?;
            rewritten.text = covered.text;
            guarded = Some(Guarded { variables, facts: covered.facts, decisions });
        }
        let text: Arc<str> = rewritten.text.as_str().into();
        unbroken(|| environment.add_template_owned(name.to_owned(), rewritten.text))
            .map_err(|error| JinjaError::new(name, source, &error, None, &[]))?;
        let (name, source) = (name.to_owned(), source.into());
        let imports = rewritten.imports;
        Ok(Template { name, source, rewritten: text, has_options, environment, imports, guarded })
    }

    /// Renders with these variables. `salt` reaches the host's functions, imports its files.
    pub fn render(&self, context: &Context, host: &Arc<dyn Host>) -> Result<String, JinjaError> {
        self.render_mapped(context, host).map(|(text, _)| text)
    }

    /// Renders as [`Template::render`], and returns where the lines of the text come from.
    pub fn render_mapped(&self, context: &Context, host: &Arc<dyn Host>) -> Result<(String, SourceLines), JinjaError> {
        self.render_with(context, host, None)
    }

    /// Renders a template that was compiled to be guarded: with words in place of what is untrusted.
    pub fn render_guarded(
        &self,
        context: &Context,
        host: &Arc<dyn Host>,
    ) -> Result<(String, Words, SourceLines), GuardedError> {
        let failed = |message| GuardedError::Jinja(JinjaError::whole(&self.name, message));
        let Some(Guarded { variables, facts, decisions }) = &self.guarded else {
            return Err(failed("render failed: the template was not compiled to be guarded".to_owned()));
        };
        if let Some(unknown) = variables.unknown(context.variables.iter().map(|(name, _)| name.as_str())) {
            return Err(failed(format!("render failed: nobody says whether the variable '{unknown}' is untrusted")));
        }
        let guard = Guard::new(&self.name, facts, decisions, *variables);
        match self.render_with(context, host, Some(&guard)) {
            Ok((text, lines)) => Ok((text, guard.words(), lines)),
            Err(error) => Err(guard.refused().map_or(GuardedError::Jinja(error), GuardedError::Untrusted)),
        }
    }

    fn render_with(
        &self,
        context: &Context,
        host: &Arc<dyn Host>,
        guard: Option<&Arc<Guard>>,
    ) -> Result<(String, SourceLines), JinjaError> {
        let render = limits::Render::begin(&context.limits);
        let remembering = Arc::new(again::Remembering::new(host));
        let host: Arc<dyn Host> = remembering.clone();
        let imports = import::Imports::new(&host, &context.saltenv, Look::First, guard);
        self.run(context, &host, &imports, guard, &render).map_err(|error| {
            let looks_again = render.budget().exceeded().is_none() && error::is_undefined(&error);
            let missing = if looks_again { self.look_again(context, &remembering, &render) } else { Vec::new() };
            JinjaError::new(&self.name, &self.source, &error, Some(&imports), &missing).limited(render.budget())
        })
    }

    /// What this template looks up and does not find, up to where it fails.
    fn look_again(
        &self,
        context: &Context,
        remembering: &again::Remembering,
        render: &limits::Render,
    ) -> Vec<again::Missing> {
        let notes = again::Notes::default();
        let host: Arc<dyn Host> = Arc::new(remembering.again());
        let imports = import::Imports::new(&host, &context.saltenv, Look::Again, None);
        if let Ok(mut template) = Self::compile_for(Look::Again, &self.name, &self.source, None) {
            notes.add_to(&mut template.environment);
            // It fails as it did before: what matters are the notes.
            _ = template.run(context, &host, &imports, None, render);
        }
        notes.take()
    }

    fn run(
        &self,
        context: &Context,
        host: &Arc<dyn Host>,
        imports: &import::Imports,
        guard: Option<&Arc<Guard>>,
        render: &limits::Render,
    ) -> Result<(String, SourceLines), minijinja::Error> {
        let salt = JinjaValue::from_object(host::Salt(Arc::clone(host)));
        let all = context.variables.iter().map(|(name, value)| (name.as_str(), value.clone()));
        let own = [("salt", salt), ("saltenv", JinjaValue::from(context.saltenv.as_str()))];
        let guard = guard.map(|guard| (guard::GUARD, JinjaValue::from_object(guard::Held(Arc::clone(guard)))));
        let variables = JinjaValue::from_pairs(own.into_iter().chain(all).chain(guard));
        // A copy is a few reference counts.
        let mut environment = self.environment.clone();
        environment.set_fuel(render.fuel());
        if self.imports {
            imports.add_to(&mut environment, context.variables.iter().map(|(name, _)| name.as_str()));
        }
        let mut output = limits::Output::default();
        let template = environment.get_template(&self.name)?;
        output.lines = lines::Recorder::new(template.source());
        let rendered = unbroken(|| {
            let rendered = template.render_captured_to(variables, &mut output)?;
            Ok(rendered.state().fuel_levels())
        });
        let consumed = rendered.as_ref().ok().and_then(|levels| *levels).map(|(consumed, _)| consumed);
        render.ended(rendered.as_ref().err(), consumed);
        rendered?;
        limits::check()?;
        let lines = output.lines.finish(Arc::clone(&self.rewritten), usize::from(self.has_options));
        let mut text = String::from_utf8(output.text).map_err(|error| {
            minijinja::Error::new(minijinja::ErrorKind::WriteFailure, "the output is not text").with_source(error)
        })?;
        // As Salt does: Jinja takes a template's last newline away, and a tag that strips cannot have it.
        if self.source.ends_with('\n') {
            text.push('\n');
        }
        Ok((text, lines))
    }
}

/// What the template engine does, with a panic of its own as an error: a template can ask for what nobody has thought of.
fn unbroken<T>(done: impl FnOnce() -> Result<T, minijinja::Error>) -> Result<T, minijinja::Error> {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(done)).unwrap_or_else(|_| {
        Err(minijinja::Error::new(minijinja::ErrorKind::InvalidOperation, "the template engine cannot do this"))
    })
}

/// The options of a line `#jinja2: {"trim_blocks": true}`, the first one or the one below `#!`, and the source without
/// that line.
fn options_line(source: &str) -> (Vec<(String, bool)>, Option<String>) {
    let first = source.split_inclusive('\n').next().unwrap_or_default();
    let start = if first.starts_with("#!") { first.len() } else { 0 };
    let rest = &source[start..];
    let line = rest.split_inclusive('\n').next().unwrap_or_default();
    let options = line.strip_prefix("#jinja2:").and_then(|options| json::from_json(options.trim()).ok());
    let Some(Value::Map(options)) = options else { return (Vec::new(), None) };
    let options = options.iter().map(|(name, on)| (name.to_string(), on.is_truthy())).collect();
    (options, Some(format!("{}{}", &source[..start], &rest[line.len()..])))
}

fn syntax(trim_blocks: bool, lstrip_blocks: bool) -> SyntaxConfig {
    let mut syntax = SyntaxConfig::builder();
    syntax.trim_blocks(trim_blocks).lstrip_blocks(lstrip_blocks);
    // The only part that can fail to build is the delimiters, and these are the usual ones.
    syntax.build().unwrap_or_default()
}

fn environment() -> Environment<'static> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_syntax(syntax(false, false));
    environment.set_unknown_method_callback(methods::call);
    environment.set_auto_escape_callback(|_| AutoEscape::None);
    environment.set_formatter(value::format);
    // Errors tell the expression and the place that is undefined.
    environment.set_debug(true);
    filters::add_to(&mut environment);
    containers::add_to(&mut environment);
    call::add_to(&mut environment);
    operators::add_to(&mut environment);
    import::add_to(&mut environment);
    guard::add_to(&mut environment);
    environment
}
