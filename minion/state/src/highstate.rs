//! A prepared state run: its pillar, and the compilation of its SLS files.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use brine_config::opts::{minion as of_minion, shared};
use brine_config::template_opts;
use brine_context::{Context, MinionFacts, UpstreamError, masterless};
use brine_function::CallError;
use brine_sls::compile::{self, Chunk, HighData, Low, Target};
use brine_value::{Map, Value, map};

use crate::options::{Options, Settings};
use crate::queue::Turn;
use crate::{Source, Top, advice, master_options};

/// The retcode of a run whose pillar could not be rendered.
const PILLAR_FAILURE: i64 = 5;
/// The retcode of a run whose SLS files could not be compiled.
const COMPILER_ERROR: i64 = 1;

/// The reason why a pillar cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PillarError {
    /// The pillar request failed.
    Unavailable(String),
    /// The pillar has errors.
    Invalid(Vec<String>),
}

impl PillarError {
    /// Returns the errors that a run returns instead of results.
    pub fn lines(self) -> Vec<String> {
        match self {
            PillarError::Unavailable(error) => vec![error],
            PillarError::Invalid(errors) => {
                std::iter::once("Pillar failed to render with the following messages:".to_owned())
                    .chain(errors)
                    .collect()
            }
        }
    }

    /// Converts to the error of functions that show states without running them.
    pub fn error(self) -> CallError {
        CallError::Execution(match self {
            PillarError::Unavailable(error) => error,
            PillarError::Invalid(errors) => {
                // Further lines of an error are indented below its first one.
                let listed = errors.iter().map(|error| format!("- {}\n", error.replace('\n', "\n  ")));
                format!("Pillar failed to render. Additional info follows:\n\n{}", listed.collect::<String>())
            }
        })
    }
}

/// A prepared state run: its pillar is rendered, and its SLS files can be compiled.
pub struct StateRun {
    /// The context of the run's functions.
    pub context: Context,
    /// The options of the run.
    pub options: Options,
    source: Source,
    /// Excludes other runs while this one exists.
    _turn: Turn,
}

impl StateRun {
    /// Prepares a run.
    ///
    /// # Errors
    ///
    /// A pillar that is missing or has errors.
    pub fn new(context: &Context, options: Options) -> Result<Self, PillarError> {
        let mut options = options;
        // Test mode is not read from the file of `localconfig`.
        options.test.get_or_insert_with(|| is_test_by_default(context));
        let other = match &options.localconfig {
            Some(path) => masterless::with_file(&context.minion, path),
            None => Ok(Arc::clone(&context.minion)),
        };
        let minion = other.map_err(|error| PillarError::Unavailable(format!("localconfig: {error}")))?;
        let context = &Context { minion, ..context.clone() };
        let pillar = pillar(context, &options).map_err(|error| PillarError::Unavailable(error.to_string()))?;
        if let Some(errors) = pillar.get("_errors").and_then(Value::as_list)
            && !options.force
        {
            context.set_retcode(PILLAR_FAILURE);
            return Err(PillarError::Invalid(errors.iter().map(ToString::to_string).collect()));
        }
        Ok(Self::with_pillar(context, options, pillar))
    }

    /// Creates a run with this pillar, and with the options of the master, which are requested once.
    pub fn with_pillar(context: &Context, mut options: Options, pillar: Arc<Map>) -> Self {
        options.test.get_or_insert_with(|| is_test_by_default(context));
        let mut opts = run_opts(context, &options);
        let environments = if options.local_state { None } else { master_options::take(context, &mut opts) };
        let opts = Arc::new(opts);
        // Only templates see grains and pillar in `opts`: functions may return the options to users.
        let mut seen = (*opts).clone();
        seen.insert("grains".into(), Value::Map((*context.grains()).clone()));
        seen.insert("pillar".into(), Value::Map((*pillar).clone()));
        let context = Context { run_pillar: Some(Arc::clone(&pillar)), run_opts: Some(opts), ..context.clone() };
        let source = Source::new(&Context { run_opts: Some(Arc::new(seen)), ..context.clone() }, pillar)
            .with_environments(environments);
        StateRun { context, options, source, _turn: Turn::default() }
    }

    /// Returns the run with its turn, which it has while it exists.
    #[must_use]
    pub fn with_turn(self, turn: Turn) -> Self {
        StateRun { _turn: turn, ..self }
    }

    /// Returns the environment of SLS files without an explicit one.
    pub fn saltenv(&self) -> String {
        self.environment().unwrap_or_else(|| "base".to_owned())
    }

    /// Returns the requested environment: a highstate otherwise uses all.
    fn environment(&self) -> Option<String> {
        self.options.saltenv.clone().or_else(|| self.context.config().saltenv.clone())
    }

    /// Returns the SLS files that the top files assign to this minion.
    pub fn top(&self) -> Top {
        let of_opts = shared::state_top(&self.context.opts());
        let state_top = self.options.state_top.as_deref().unwrap_or(&of_opts);
        let state_top = state_top.strip_prefix("salt://").unwrap_or(state_top).trim_start_matches('/');
        let facts = MinionFacts::of(&self.context);
        let mut top = Top::read(&self.context, &self.source, state_top, self.environment().as_deref(), &facts);
        if top.errors.is_empty() {
            top.add(self.master_tops(), of_minion::master_tops_first(&self.context.opts()));
        }
        top.errors = self.advised(top.errors);
        top
    }

    /// Returns the SLS files that `master_tops` assigns to this minion; none if the master does not reply.
    fn master_tops(&self) -> Map {
        let context = &self.context;
        if self.options.local_state || context.config().file_client != "local" && !context.minion.upstream.has_master()
        {
            return Map::new();
        }
        let opts = map! {
            "id" => context.minion.id.as_str(),
            "saltenv" => self.environment(),
            "pillarenv" => context.config().pillarenv.clone(),
            "grains" => Value::Map((*context.grains()).clone()),
        };
        context.minion.upstream.master_tops(opts).unwrap_or_else(|error| {
            tracing::error!(%error, "requesting master_tops failed: only the top file assigns SLS files");
            Map::new()
        })
    }

    /// Returns the SLS files of an environment, sorted.
    pub fn available(&self, saltenv: &str) -> Vec<String> {
        compile::SlsSource::available(&self.source, saltenv)
    }

    /// Returns the high data of SLS files by name.
    pub fn sls(&self, names: Vec<String>) -> Result<HighData, Vec<String>> {
        self.high(&[(self.saltenv(), names)])
    }

    /// Returns the high data of SLS files by environment.
    pub fn high(&self, sls_by_environment: &[(String, Vec<String>)]) -> Result<HighData, Vec<String>> {
        let (mut high, errors) = self.high_and_errors(sls_by_environment);
        high.exclude.extend(self.options.exclude.iter().cloned());
        if errors.is_empty() { Ok(high) } else { Err(errors) }
    }

    /// Returns the high data of SLS files by environment, and its errors.
    pub fn high_and_errors(&self, sls_by_environment: &[(String, Vec<String>)]) -> (HighData, Vec<String>) {
        let (high, errors) = compile::load(&self.source, sls_by_environment);
        (high, self.advised(errors))
    }

    /// Adds places and what to write to errors of the compiler.
    fn advised(&self, errors: Vec<String>) -> Vec<String> {
        advice::of_structure(&self.context, &self.saltenv(), errors)
    }

    /// Returns the high data of SLS files by name, as it is written. All errors are returned at once.
    pub fn as_written(&self, names: Vec<String>) -> Result<HighData, Vec<String>> {
        let (high, mut errors) = self.high_and_errors(&[(self.saltenv(), names)]);
        errors.append(&mut self.advised(high.errors()));
        if errors.is_empty() { Ok(high) } else { Err(errors) }
    }

    /// Returns the high data of an SLS source.
    pub fn text(&self, text: &str) -> Result<HighData, Vec<String>> {
        let data =
            self.source.render_text(text, &Map::new(), &self.saltenv()).map_err(|error| vec![error.to_string()])?;
        // As in Salt: a template that belongs to no environment includes nothing.
        let sections = ["include", "exclude", "extends"];
        match sections.iter().find(|section| data.get(section).is_some()) {
            Some(section) => Err(vec![format!(
                "The '{section}' declaration found on '<template-str>' is invalid when rendering single templates"
            )]),
            None => self.data(&data),
        }
    }

    /// Returns the high data of a local file; the suffix `.sls` is optional.
    pub fn local_file(&self, path: &str) -> Result<HighData, Vec<String>> {
        let path = format!("{}.sls", path.strip_suffix(".sls").unwrap_or(path));
        let Ok(text) = std::fs::read_to_string(&path) else {
            return Err(vec![format!("Specified SLS {path} on local filesystem cannot be found.")]);
        };
        let data =
            self.source.render_text(&text, &Map::new(), &self.saltenv()).map_err(|error| vec![error.to_string()])?;
        self.data_of(&data, &path)
    }

    /// Returns given high data in canonical form.
    pub fn data(&self, data: &Value) -> Result<HighData, Vec<String>> {
        self.data_of(data, "")
    }

    fn data_of(&self, data: &Value, sls: &str) -> Result<HighData, Vec<String>> {
        let (high, errors) = HighData::from_data(data, sls, &self.saltenv());
        if errors.is_empty() { Ok(high) } else { Err(errors) }
    }

    /// Compiles high data to low data.
    pub fn compile(&self, high: HighData) -> Result<Low, Vec<String>> {
        self.with_target(|target| compile::compile(high, target)).map_err(|errors| self.advised(errors))
    }

    /// Compiles high data to low data. All errors are returned at once, after the given ones.
    pub fn compile_to_show(&self, high: HighData, errors: Vec<String>) -> Result<Low, Vec<String>> {
        self.with_target(|target| compile::compile_to_show(high, errors, target)).map_err(|errors| self.advised(errors))
    }

    /// Compiles high data without inverse requisites.
    pub fn compile_as_written(&self, high: &HighData) -> Result<Low, Vec<String>> {
        self.with_target(|target| compile::compile_as_written(high, target)).map_err(|errors| self.advised(errors))
    }

    /// Sorts low chunks.
    pub fn low(&self, chunks: Vec<Chunk>) -> Result<Low, Vec<String>> {
        self.with_target(|target| compile::in_order(chunks, target))
    }

    fn with_target<T>(&self, compile: impl FnOnce(&Target) -> T) -> T {
        let states = &self.context.minion.states;
        let disabled = brine_config::opts::modules::disabled_requisites(&self.context.config().opts);
        compile(&Target {
            // An unknown module fails when its state runs, not by its requisites.
            acts_on_watch: &|module| {
                states.get(&format!("{module}.mod_watch")).is_some()
                    && self.context.minion.modules.unavailable(&self.context, module).is_none()
            },
            disabled_requisites: &disabled,
        })
    }

    /// Returns the settings of the run.
    pub fn settings(&self) -> Settings {
        let (config, opts) = (self.context.config(), self.context.opts());
        Settings {
            test: self.options.test.unwrap_or(config.test),
            failhard: of_minion::failhard(&opts),
            mock: self.options.mock,
            state_events: self.options.state_events || of_minion::state_events(&opts),
            aggregate: of_minion::state_aggregate(&opts),
            max_parallel: config.state_max_parallel,
        }
    }

    /// Whether an SLS can be rendered.
    pub fn exists(&self, sls: &str) -> bool {
        compile::SlsSource::render(&self.source, sls, &self.saltenv()).is_ok_and(|content| content.is_some())
    }
}

/// Whether runs without the argument `test` are dry runs: the first of grains, pillar, and the master's options in the
/// pillar that has `test` says True, or the option `test` of the minion does.
fn is_test_by_default(context: &Context) -> bool {
    let (grains, pillar) = (context.grains(), context.pillar());
    let of_master = || pillar.get("master")?.get("test");
    let test = grains.get("test").or_else(|| pillar.get("test")).or_else(of_master);
    test == Some(&Value::Bool(true)) || context.config().test
}

/// Returns the options of the minion, in an orchestration those of the master, overridden by those of the run.
fn run_opts(context: &Context, options: &Options) -> Map {
    let is_of_master = |options: &&Map| options.get("__role") == Some(&"master".into());
    let of_master = context.run_opts.as_deref().filter(is_of_master);
    let mut opts = of_master.cloned().unwrap_or_else(|| template_opts(context.config()));
    opts.insert("test".into(), options.test.unwrap_or(context.config().test).into());
    let saltenv = options.saltenv.as_ref().or(context.config().saltenv.as_ref());
    opts.insert("saltenv".into(), saltenv.map_or("base", String::as_str).into());
    if let Some(pillarenv) = &options.pillarenv {
        opts.insert("pillarenv".into(), pillarenv.as_str().into());
    }
    opts
}

/// Returns the pillar of a run. It is rendered anew for jobs of the master and for overrides; a call from the command
/// line reuses the one that it has just rendered.
fn pillar(context: &Context, options: &Options) -> Result<Arc<Map>, UpstreamError> {
    if options.localconfig.is_none()
        && options.pillar.is_empty()
        && options.pillarenv.is_none()
        && context.job.load.is_empty()
    {
        return Ok(context.pillar());
    }
    let saltenv = options.saltenv.as_deref().or(context.config().saltenv.as_deref());
    let pillarenv = context.config().pillarenv_of(options.saltenv.as_deref(), options.pillarenv.as_deref());
    context.minion.upstream.pillar(saltenv, pillarenv.as_deref(), &options.pillar).map(Arc::new)
}

/// Returns errors instead of results: the job's retcode is 1 unless it is set already.
pub fn errors(context: &Context, errors: Vec<String>) -> Result<Value, CallError> {
    if context.job.retcode.load(Ordering::Relaxed) == 0 {
        context.set_retcode(COMPILER_ERROR);
    }
    Ok(errors.into())
}
