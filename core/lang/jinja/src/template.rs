//! Templates: compiled once, rendered repeatedly.

use std::sync::Arc;

use brine_value::{Value, json};
use brine_yaml::untrusted::{Placeholders, UntrustedError};
use minijinja::value::Value as JinjaValue;
use minijinja::{Environment, Error, ErrorKind, UndefinedBehavior};
use parking_lot::Mutex;

use super::cache::{Blocks, ImportCache};
use super::context::Context;
use super::coverage;
use super::data::UndefinedMode;
use super::diagnose::{Lookups, Missing, RecordedResults};
use super::environment::{ENVIRONMENT, is_global, known_names, syntax_config};
use super::error::{JinjaError, is_undefined};
use super::guard::{self, DataFlow, Decision, Guard, Variables};
use super::host::Host;
use super::import::Imports;
use super::limits::{self, Render};
use super::lines::{Recorder, SourceLines};
use super::salt::Salt;
use super::syntax::{Document, Emitted, Purpose, SourceMap, emit};

/// A compiled template, for repeated rendering.
///
/// # Examples
/// ```
/// use brine_value::map;
/// use brine_jinja::{Context, Host, Template};
///
/// let template = Template::compile("hello", "hello {{ data.name }}\n").unwrap();
/// let mut context = Context::new("base");
/// context.set("data", &map! {"name" => "you"}.into());
/// assert_eq!(template.render(&context, &Host::new()).unwrap(), "hello you\n");
/// ```
pub struct Template {
    name: String,
    document: Arc<Document>,
    map: Arc<SourceMap>,
    options: Blocks,
    /// The engine's environment with the compiled template.
    environment: Environment<'static>,
    /// The same environment with the imports that renders have compiled, and the generation of the cache.
    with_imports: Mutex<Option<(u64, Environment<'static>)>>,
    imports: ImportCache,
    guarded: Option<Guarded>,
}

/// The guard of a template against untrusted text.
struct Guarded {
    variables: Variables,
    facts: Arc<DataFlow>,
    decisions: Arc<[Decision]>,
}

/// The error of a guarded render.
#[derive(Debug)]
pub enum GuardedError {
    /// The template fails.
    Jinja(JinjaError),
    /// Untrusted text is refused.
    Untrusted(UntrustedError),
}

impl std::fmt::Debug for Template {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Template").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Template {
    /// Compiles a template. `name` is its name in errors.
    ///
    /// # Errors
    /// A syntax error.
    pub fn compile(name: &str, source: &str) -> Result<Self, JinjaError> {
        Self::compile_sharing(&ImportCache::new(), name, source)
    }

    /// Compiles a template whose imports are compiled once for all templates that share the cache.
    ///
    /// # Errors
    /// A syntax error.
    pub fn compile_sharing(imports: &ImportCache, name: &str, source: &str) -> Result<Self, JinjaError> {
        Self::compile_for(imports, name, source, None)
    }

    /// Compiles a template for [`Template::render_guarded`]: untrusted variables cannot change the structure of its
    /// output.
    ///
    /// # Errors
    /// A syntax error, or a template that cannot be guarded.
    pub fn compile_guarded(name: &str, source: &str, variables: Variables) -> Result<Self, JinjaError> {
        Self::compile_for(&ImportCache::new(), name, source, Some(variables))
    }

    fn compile_for(
        imports: &ImportCache,
        name: &str,
        source: &str,
        guard: Option<Variables>,
    ) -> Result<Self, JinjaError> {
        // A guard examines what the author wrote.
        let marked = if guard.is_none() { coverage::marked(source) } else { None };
        let source = marked.as_deref().unwrap_or(source);
        let (options, line) = options_of(source, imports.blocks());
        let document = Document::parse(source, line, &known_names());
        let mut guarded = None;
        let Emitted { text, map } = match guard {
            Some(variables) => {
                let failed = |message| JinjaError::whole(name, message);
                let alone = !document.imports();
                let (emitted, facts) =
                    guard::guard_template(&document, options.syntax(), variables, alone, &is_global).map_err(failed)?;
                let decisions = guard::decisions(&facts, variables).map_err(failed)?;
                guarded = Some(Guarded { variables, facts, decisions });
                emitted
            }
            None => emit(&document, Purpose::Render),
        };
        let shared = if options == imports.blocks() { imports.environment() } else { None };
        let mut environment = shared.unwrap_or_else(|| options.environment());
        if imports.is_lenient() {
            environment.set_undefined_behavior(UndefinedBehavior::Lenient);
        }
        if marked.is_some() {
            coverage::add_to(&mut environment);
        }
        catch_panics(|| environment.add_template_owned(name.to_owned(), text))
            .map_err(|error| JinjaError::new(name, &document, &map, &error, None, &[]))?;
        Ok(Template {
            name: name.to_owned(),
            document: Arc::new(document),
            map: Arc::new(map),
            options,
            environment,
            with_imports: Mutex::default(),
            imports: imports.clone(),
            guarded,
        })
    }

    /// Renders the template. `salt` calls the host's functions, imports read its files.
    ///
    /// # Errors
    /// An error of the template, or a limit that it exceeds.
    pub fn render(&self, context: &Context, host: &Host) -> Result<String, JinjaError> {
        self.render_mapped(context, host).map(|(text, _)| text)
    }

    /// Renders the template, and maps the lines of the text to the source.
    ///
    /// # Errors
    ///
    /// As for [`Template::render`].
    pub fn render_mapped(&self, context: &Context, host: &Host) -> Result<(String, SourceLines), JinjaError> {
        self.render_with(context, host, None)
    }

    /// Renders a template that [`Template::compile_guarded`] compiled, with placeholders for untrusted text.
    ///
    /// # Errors
    ///
    /// As for [`Template::render`], or untrusted text that is refused.
    pub fn render_guarded(
        &self,
        context: &Context,
        host: &Host,
    ) -> Result<(String, Placeholders, SourceLines), GuardedError> {
        let failed = |message| GuardedError::Jinja(JinjaError::whole(&self.name, message));
        let Some(Guarded { variables, facts, decisions }) = &self.guarded else {
            return Err(failed("render failed: the template was not compiled for guarded renders".to_owned()));
        };
        if let Some(unknown) = variables.unknown(context.names()) {
            return Err(failed(format!("render failed: the variable '{unknown}' is neither trusted nor untrusted")));
        }
        let guard = Guard::new(&self.name, facts, decisions, *variables);
        match self.render_with(context, host, Some(&guard)) {
            Ok((text, lines)) => Ok((text, guard.placeholders(), lines)),
            Err(error) => Err(guard.refused().map_or(GuardedError::Jinja(error), GuardedError::Untrusted)),
        }
    }

    fn render_with(
        &self,
        context: &Context,
        host: &Host,
        guard: Option<&Arc<Guard>>,
    ) -> Result<(String, SourceLines), JinjaError> {
        let render = Render::begin(&context.limits);
        let results = RecordedResults::record(host);
        let host = host.replacing(results.clone());
        let globals = context.names().map(str::to_owned).collect();
        let imports = Imports::new(&host, &context.saltenv, globals, &self.imports, guard);
        let mut environment = self.with_compiled_imports();
        let rendered = self.run(&mut environment, context, &host, &imports, guard, &render);
        if imports.compiled() {
            self.keep_imports(environment);
        }
        rendered.map_err(|error| {
            let is_diagnosed = render.budget().exceeded().is_none() && is_undefined(&error);
            let missing = if is_diagnosed { self.diagnose(context, &host, &results, &render) } else { Vec::new() };
            JinjaError::new(&self.name, &self.document, &self.map, &error, Some(&imports), &missing)
                .limited(render.budget())
        })
    }

    /// Returns the environment with all imports compiled so far.
    fn with_compiled_imports(&self) -> Environment<'static> {
        let generation = self.imports.generation();
        let cache = self.with_imports.lock();
        // A clone only increments a few reference counts.
        match &*cache {
            Some((of, environment)) if *of == generation => environment.clone(),
            _ => self.environment.clone(),
        }
    }

    /// Stores the imports that a render has compiled, for later renders of this template and of others.
    fn keep_imports(&self, mut environment: Environment<'static>) {
        Imports::remove_from(&mut environment);
        let generation = self.imports.generation();
        let shared = (self.options == self.imports.blocks()).then(|| {
            let mut shared = environment.clone();
            shared.remove_template(&self.name);
            shared
        });
        self.imports.keep(shared);
        *self.with_imports.lock() = Some((generation, environment));
    }

    /// Renders the template once more with the recorded results of functions, and returns the failed lookups up to the
    /// error.
    fn diagnose(&self, context: &Context, host: &Host, results: &RecordedResults, render: &Render) -> Vec<Missing> {
        let lookups = Lookups::default();
        let host = host.replacing(results.replay());
        let imports = Imports::diagnosing(&host, &context.saltenv, context.names().map(str::to_owned).collect());
        let mut environment = self.options.environment();
        if self.imports.is_lenient() {
            environment.set_undefined_behavior(UndefinedBehavior::Lenient);
        }
        coverage::add_to(&mut environment);
        let text = emit(&self.document, Purpose::Diagnose).text;
        if catch_panics(|| environment.add_template_owned(self.name.clone(), text)).is_ok() {
            lookups.add_to(&mut environment);
            // The render fails as before; only the lookups matter.
            _ = self.run(&mut environment, context, &host, &imports, None, render);
        }
        lookups.take()
    }

    fn run(
        &self,
        environment: &mut Environment<'static>,
        context: &Context,
        host: &Host,
        imports: &Imports,
        guard: Option<&Arc<Guard>>,
        render: &Render,
    ) -> Result<(String, SourceLines), Error> {
        let salt = JinjaValue::from_object(Salt(host.clone()));
        let all = context.variables.iter().map(|(name, value)| (name.as_str(), value.clone()));
        let also = context.functions.map(|name| (name, salt.clone()));
        let own = [("salt", salt), ("saltenv", JinjaValue::from(context.saltenv.as_str()))];
        let guard = guard.map(|guard| (guard::GUARD, JinjaValue::from_object(guard::GuardValue(Arc::clone(guard)))));
        let variables = JinjaValue::from_pairs(own.into_iter().chain(also).chain(all).chain(guard));
        environment.set_fuel(render.fuel());
        if self.document.imports() {
            imports.add_to(environment);
        }
        let mut output = limits::Output::default();
        let _mode = UndefinedMode::enter(self.imports.is_lenient());
        let template = environment.get_template(&self.name)?;
        output.lines = Recorder::new(template.source());
        let rendered = catch_panics(|| {
            let rendered = template.render_captured_to(variables, &mut output)?;
            Ok(rendered.state().fuel_levels())
        });
        let consumed = rendered.as_ref().ok().and_then(|levels| *levels).map(|(consumed, _)| consumed);
        render.ended(rendered.as_ref().err(), consumed);
        rendered?;
        limits::check()?;
        let lines = output.lines.finish(&self.document, &self.map);
        let mut text = String::from_utf8(output.text)
            .map_err(|error| Error::new(ErrorKind::WriteFailure, "the output is not text").with_source(error))?;
        // As in Salt, the last newline is kept: Jinja removes it from the template before a tag could strip it, and
        // Salt adds it.
        if self.document.source().ends_with('\n') {
            text.push('\n');
        }
        Ok((text, lines))
    }
}

/// Runs the template engine and converts its panics to errors.
pub(super) fn catch_panics<T>(run: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(run))
        .unwrap_or_else(|_| Err(Error::new(ErrorKind::InvalidOperation, "the template engine panicked")))
}

/// Returns the options of a template: from a line `#jinja2: {"trim_blocks": true}`, its first one or the second one
/// after `#!`, or the defaults. Returns the range of the line as well, which is not rendered.
fn options_of(source: &str, defaults: Blocks) -> (Blocks, Option<(usize, usize)>) {
    let first = source.split_inclusive('\n').next().unwrap_or_default();
    let start = if first.starts_with("#!") { first.len() } else { 0 };
    let line = source[start..].split_inclusive('\n').next().unwrap_or_default();
    let options = line.strip_prefix("#jinja2:").and_then(|options| json::from_json(options.trim()).ok());
    let Some(Value::Map(options)) = options else { return (defaults, None) };
    let is_on = |name: &str, default: bool| options.get(name).map_or(default, Value::is_truthy);
    let options = Blocks { trim: is_on("trim_blocks", defaults.trim), lstrip: is_on("lstrip_blocks", defaults.lstrip) };
    (options, Some((start, start + line.len())))
}

impl Blocks {
    fn syntax(self) -> minijinja::syntax::SyntaxConfig {
        syntax_config(self.trim, self.lstrip)
    }

    /// Returns an environment of the engine with these options.
    fn environment(self) -> Environment<'static> {
        let mut environment = ENVIRONMENT.clone();
        if self != Blocks::default() {
            environment.set_syntax(self.syntax());
        }
        environment
    }
}
