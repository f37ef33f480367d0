//! The state run: from top file to low chunks to results.
//!
//! `source.rs` renders SLS files for the compiler in `brine_core::sls::compile`, `run.rs` runs the chunks,
//! `conditions.rs` decides whether one runs at all.

mod conditions;
mod run;
mod source;

use std::sync::Arc;

use brine_core::function::CallError;
use brine_core::sls::compile::{self, Chunk};
use brine_core::sls::top;
use brine_core::target::Facts;
use brine_core::{Map, Value};

use crate::context::Context;

pub use run::{Settings, run};
pub use source::Source;

/// What a state run may be told beside its SLS files.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Only say what would be done.
    pub test: Option<bool>,
    /// The environment.
    pub saltenv: Option<String>,
    /// What is merged over the pillar.
    pub pillar: Map,
    /// SLS files or ids that are left out.
    pub exclude: Vec<Value>,
    /// Wait for another run instead of refusing.
    pub queue: bool,
    /// Run beside another run.
    pub concurrent: bool,
}

impl Options {
    /// The environment, base unless said otherwise.
    pub fn saltenv(&self, context: &Context) -> String {
        self.saltenv.clone().or_else(|| context.config().saltenv.clone()).unwrap_or_else(|| "base".to_owned())
    }
}

/// Compiles SLS files by name to the chunks that they run, or says what is wrong with them.
pub fn compile_sls(context: &Context, names: &[String], options: &Options) -> Result<Vec<Chunk>, Vec<String>> {
    let source = source(context, options)?;
    let saltenv = options.saltenv(context);
    let mut high = compile::load(&source, names, &saltenv);
    exclude(&mut high.states, &options.exclude);
    compile::compile(high)
}

/// The SLS files that the top file has for this minion.
pub fn top_sls(context: &Context, options: &Options) -> Result<Vec<String>, Vec<String>> {
    let source = source(context, options)?;
    let saltenv = options.saltenv(context);
    let top_file = &context.config().state_top;
    let Some(data) = source.render_file(top_file, "top", &saltenv).map_err(|error| vec![error])? else {
        return Ok(Vec::new());
    };
    let facts = OwnFacts::of(context);
    top::matching(&data, &saltenv, &facts, &context.config().nodegroups).map_err(|error| vec![error.to_string()])
}

/// The renderer of SLS files, with the pillar that the run sees.
pub fn source(context: &Context, options: &Options) -> Result<Source, Vec<String>> {
    let mut pillar = (*context.pillar()).clone();
    brine_core::sls::pillar::merge(&mut pillar, &options.pillar);
    if let Some(errors) = pillar.get("_errors").and_then(Value::as_list) {
        context.set_retcode(5);
        let mut told = vec!["Pillar failed to render with the following messages:".to_owned()];
        told.extend(errors.iter().map(ToString::to_string));
        return Err(told);
    }
    Ok(Source::new(context, Arc::new(pillar)))
}

fn exclude(states: &mut Map, excluded: &[Value]) {
    states.retain(|id, body| {
        let sls = body.get("__sls__");
        !excluded.iter().any(|one| one == id || Some(one) == sls)
    });
}

/// What a minion knows of itself when it looks whether it is meant.
pub struct OwnFacts {
    id: String,
    grains: Arc<Map>,
    pillar: Arc<Map>,
}

impl OwnFacts {
    /// As they are now.
    pub fn of(context: &Context) -> Self {
        Self::of_minion(&context.minion)
    }

    /// As they are now.
    pub fn of_minion(minion: &crate::context::Minion) -> Self {
        OwnFacts {
            id: minion.id.clone(),
            grains: Arc::clone(&minion.grains.read()),
            pillar: Arc::clone(&minion.pillar.read()),
        }
    }
}

impl Facts for OwnFacts {
    fn id(&self) -> &str {
        &self.id
    }

    fn grains(&self) -> Option<&Map> {
        Some(&self.grains)
    }

    fn pillar(&self) -> Option<&Map> {
        Some(&self.pillar)
    }
}

/// Waits for, refuses or ignores another state run, as the options say. A refusal is in Salt's words.
pub fn only_run(context: &Context, options: &Options) -> Result<(), Vec<String>> {
    if options.concurrent {
        return Ok(());
    }
    loop {
        let other = {
            let jobs = context.minion.jobs.lock();
            let before = |job: &Arc<crate::context::Job>| job.jid < context.job.jid && is_state_run(&job.fun);
            jobs.values().find(|job| before(job)).cloned()
        };
        let Some(other) = other else { return Ok(()) };
        if !options.queue {
            let started = other.jid.parse::<brine_core::Jid>().map(|jid| jid.start_time()).unwrap_or_default();
            return Err(vec![format!(
                "The function \"{}\" is running as PID {} and was started at {started} with jid {}",
                other.fun, other.pid, other.jid
            )]);
        }
        if context.job.cancel.is_cancelled() {
            return Err(vec!["The job was ended while it waited for another state run".into()]);
        }
        // A run ends on its own thread, which knows nothing of those that wait.
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
}

fn is_state_run(fun: &str) -> bool {
    matches!(
        fun,
        "state.apply"
            | "state.sls"
            | "state.highstate"
            | "state.single"
            | "state.high"
            | "state.low"
            | "state.top"
            | "state.template_str"
    )
}

/// Errors in the place of results: the job's retcode is 1 unless it is set already.
pub fn errors(context: &Context, errors: Vec<String>) -> Result<Value, CallError> {
    if context.job.retcode.load(std::sync::atomic::Ordering::Relaxed) == 0 {
        context.set_retcode(1);
    }
    Ok(errors.into())
}
