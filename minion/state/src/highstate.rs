//! What a state run is told, its pillar, and compiling its SLS files.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use brine_config::template_opts;
use brine_context::{Context, OwnFacts, masterless};
use brine_function::CallError;
use brine_sls::compile::{self, Chunk, HighData, Low, Target};
use brine_value::{Map, Value};

use super::{Queue, Settings, Source, Top};

/// What the pillar says when it could not be rendered.
const PILLAR_FAILURE: i64 = 5;
/// What SLS files could not be compiled.
const COMPILER_ERROR: i64 = 1;

/// What a state run may be told beside its SLS files.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Only say what would be done.
    pub test: Option<bool>,
    /// The environment.
    pub saltenv: Option<String>,
    /// The environment of the pillar.
    pub pillarenv: Option<String>,
    /// What is merged over the pillar.
    pub pillar: Map,
    /// SLS files or ids that are left out, as in an SLS's `exclude`.
    pub exclude: Vec<Value>,
    /// Whether it waits for another run.
    pub queue: Queue,
    /// Run beside another run.
    pub concurrent: bool,
    /// Run although the pillar has errors.
    pub force: bool,
    /// Do not call any state function, say that it was not called.
    pub mock: bool,
    /// Fire an event for each state.
    pub state_events: bool,
    /// The name of the top file, in the place of the configured one.
    pub state_top: Option<String>,
    /// A file with options that count over those of the minion.
    pub localconfig: Option<PathBuf>,
}

/// Why there is no pillar to work with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoPillar {
    /// It could not be asked for.
    NotThere(String),
    /// It has errors.
    Wrong(Vec<String>),
}

impl NoPillar {
    /// What a run returns in the place of results.
    pub fn lines(self) -> Vec<String> {
        match self {
            NoPillar::NotThere(error) => vec![error],
            NoPillar::Wrong(errors) => {
                std::iter::once("Pillar failed to render with the following messages:".to_owned())
                    .chain(errors)
                    .collect()
            }
        }
    }

    /// The error of a function that only shows something.
    pub fn error(self) -> CallError {
        CallError::Execution(match self {
            NoPillar::NotThere(error) => error,
            NoPillar::Wrong(errors) => {
                // Further lines of an error stand below its first.
                let listed = errors.iter().map(|error| format!("- {}\n", error.replace('\n', "\n  ")));
                format!("Pillar failed to render. Additional info follows:\n\n{}", listed.collect::<String>())
            }
        })
    }
}

/// One state run before anything runs: its pillar is known, its SLS files can be rendered.
pub struct StateRun {
    /// The context that the run's functions see.
    pub context: Context,
    /// What it is told.
    pub options: Options,
    source: Source,
}

impl StateRun {
    /// Prepares a run. A pillar with errors is refused.
    pub fn new(context: &Context, options: Options) -> Result<Self, NoPillar> {
        let mut options = options;
        // Whether something is only tried out is not the other file's business.
        options.test.get_or_insert(context.config().test);
        let other = match &options.localconfig {
            Some(path) => masterless::with_file(&context.minion, path),
            None => Ok(Arc::clone(&context.minion)),
        };
        let minion = other.map_err(|error| NoPillar::NotThere(format!("localconfig: {error}")))?;
        let context = &Context { minion, ..context.clone() };
        let pillar = pillar(context, &options).map_err(NoPillar::NotThere)?;
        if let Some(errors) = pillar.get("_errors").and_then(Value::as_list)
            && !options.force
        {
            context.set_retcode(PILLAR_FAILURE);
            return Err(NoPillar::Wrong(errors.iter().map(ToString::to_string).collect()));
        }
        Ok(Self::with_pillar(context, options, pillar))
    }

    /// A run with this pillar.
    pub fn with_pillar(context: &Context, options: Options, pillar: Arc<Map>) -> Self {
        let opts = Arc::new(own_opts(context, &options));
        // Templates alone see grains and pillar there: what functions return may show the options.
        let mut seen = (*opts).clone();
        seen.insert("grains".into(), Value::Map((*context.grains()).clone()));
        seen.insert("pillar".into(), Value::Map((*pillar).clone()));
        let context = Context { run_pillar: Some(Arc::clone(&pillar)), run_opts: Some(opts), ..context.clone() };
        let source = Source::new(&Context { run_opts: Some(Arc::new(seen)), ..context.clone() }, pillar);
        StateRun { context, options, source }
    }

    /// The environment of SLS files that are named without one.
    pub fn saltenv(&self) -> String {
        self.environment().unwrap_or_else(|| "base".to_owned())
    }

    /// The environment if one is asked for: a highstate otherwise takes all.
    fn environment(&self) -> Option<String> {
        self.options.saltenv.clone().or_else(|| self.context.config().saltenv.clone())
    }

    /// The SLS files that the top files have for this minion.
    pub fn top(&self) -> Top {
        let state_top = self.options.state_top.as_ref().unwrap_or(&self.context.config().state_top);
        Top::read(&self.context, &self.source, state_top, self.environment().as_deref(), &OwnFacts::of(&self.context))
    }

    /// The SLS files that there are in an environment, sorted.
    pub fn available(&self, saltenv: &str) -> Vec<String> {
        compile::SlsSource::available(&self.source, saltenv)
    }

    /// The high data of SLS files by name.
    pub fn sls(&self, names: Vec<String>) -> Result<HighData, Vec<String>> {
        self.high(&[(self.saltenv(), names)])
    }

    /// The high data of SLS files by environment.
    pub fn high(&self, wanted: &[(String, Vec<String>)]) -> Result<HighData, Vec<String>> {
        let (mut high, errors) = self.high_and_errors(wanted);
        high.exclude.extend(self.options.exclude.iter().cloned());
        if errors.is_empty() { Ok(high) } else { Err(errors) }
    }

    /// The high data of SLS files by environment, and beside it what is wrong with them.
    pub fn high_and_errors(&self, wanted: &[(String, Vec<String>)]) -> (HighData, Vec<String>) {
        compile::load(&self.source, wanted)
    }

    /// The high data of SLS files by name, as it is written. All that is wrong with it is told at once.
    pub fn as_written(&self, names: Vec<String>) -> Result<HighData, Vec<String>> {
        let (high, mut errors) = self.high_and_errors(&[(self.saltenv(), names)]);
        errors.append(&mut high.wrong());
        if errors.is_empty() { Ok(high) } else { Err(errors) }
    }

    /// The high data of a text.
    pub fn text(&self, text: &str) -> Result<HighData, Vec<String>> {
        let data = self.source.render_text(text, &self.saltenv()).map_err(|error| vec![error])?;
        self.data(&data)
    }

    /// The high data of a file of this host, whose path ends in `.sls` if it is written or not.
    pub fn local_file(&self, path: &str) -> Result<HighData, Vec<String>> {
        let path = format!("{}.sls", path.strip_suffix(".sls").unwrap_or(path));
        let Ok(text) = std::fs::read_to_string(&path) else {
            return Err(vec![format!("Specified SLS {path} on local filesystem cannot be found.")]);
        };
        let data = self.source.render_text(&text, &self.saltenv()).map_err(|error| vec![error])?;
        self.data_of(&data, &path)
    }

    /// High data as it is given.
    pub fn data(&self, data: &Value) -> Result<HighData, Vec<String>> {
        self.data_of(data, "")
    }

    fn data_of(&self, data: &Value, sls: &str) -> Result<HighData, Vec<String>> {
        let (high, errors) = HighData::from_data(data, sls, &self.saltenv());
        if errors.is_empty() { Ok(high) } else { Err(errors) }
    }

    /// Compiles high data to what is run.
    pub fn compile(&self, high: HighData) -> Result<Low, Vec<String>> {
        self.with_target(|target| compile::compile(high, target))
    }

    /// Compiles high data to what would be run. All that is wrong with it, beside what is known, is told at once.
    pub fn compile_to_show(&self, high: HighData, errors: Vec<String>) -> Result<Low, Vec<String>> {
        self.with_target(|target| compile::compile_to_show(high, errors, target))
    }

    /// Compiles high data without what is written at the other end.
    pub fn compile_as_written(&self, high: &HighData) -> Result<Low, Vec<String>> {
        self.with_target(|target| compile::compile_as_written(high, target))
    }

    /// Puts low chunks in order.
    pub fn low(&self, chunks: Vec<Chunk>) -> Result<Low, Vec<String>> {
        self.with_target(|target| compile::in_order(chunks, target))
    }

    fn with_target<T>(&self, compile: impl FnOnce(&Target) -> T) -> T {
        let states = &self.context.minion.states;
        let disabled = brine_config::opts::modules::disabled_requisites(&self.context.config().opts);
        compile(&Target {
            // What is no module of this minion's fails when it is run, not by its requisites.
            acts_on_watch: &|module| {
                states.get(&format!("{module}.mod_watch")).is_some()
                    && self.context.minion.rooms.unavailable(&self.context, module).is_none()
            },
            disabled_requisites: &disabled,
        })
    }

    /// How the steps are run.
    pub fn settings(&self) -> Settings {
        let config = self.context.config();
        Settings {
            test: self.options.test.unwrap_or(config.test),
            failhard: config.failhard,
            mock: self.options.mock,
            state_events: self.options.state_events || config.state_events,
            aggregate: config.state_aggregate.clone(),
            max_parallel: config.state_max_parallel,
        }
    }

    /// Whether an SLS can be rendered.
    pub fn exists(&self, sls: &str) -> bool {
        compile::SlsSource::render(&self.source, sls, &self.saltenv()).is_ok_and(|found| found.is_some())
    }
}

/// The options with what the run is told.
fn own_opts(context: &Context, options: &Options) -> Map {
    let mut opts = template_opts(context.config());
    opts.insert("test".into(), options.test.unwrap_or(context.config().test).into());
    let saltenv = options.saltenv.as_ref().or(context.config().saltenv.as_ref());
    opts.insert("saltenv".into(), saltenv.map_or("base", String::as_str).into());
    if let Some(pillarenv) = &options.pillarenv {
        opts.insert("pillarenv".into(), pillarenv.as_str().into());
    }
    opts
}

/// The pillar of a run: rendered anew for a job of the master or with an override; a call from the command line
/// has just rendered its own.
fn pillar(context: &Context, options: &Options) -> Result<Arc<Map>, String> {
    let pillarenv = options.pillarenv.as_deref().or(context.config().pillarenv.as_deref());
    if options.localconfig.is_none()
        && options.pillar.is_empty()
        && options.pillarenv.is_none()
        && context.job.load.is_empty()
    {
        return Ok(context.pillar());
    }
    let saltenv = options.saltenv.as_deref().or(context.config().saltenv.as_deref());
    let follows = brine_config::opts::modules::pillarenv_from_saltenv(&context.config().opts);
    let pillarenv = pillarenv.or(saltenv.filter(|_| follows));
    context.minion.upstream.pillar(saltenv, pillarenv, &options.pillar).map(Arc::new)
}

/// Errors in the place of results: the job's retcode is 1 unless it is set already.
pub fn errors(context: &Context, errors: Vec<String>) -> Result<Value, CallError> {
    if context.job.retcode.load(Ordering::Relaxed) == 0 {
        context.set_retcode(COMPILER_ERROR);
    }
    Ok(errors.into())
}
