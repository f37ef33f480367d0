//! The context of a running function: its minion and its job.
//!
//! | file | owns |
//! |---|---|
//! | `mod.rs` | [`Context`], of execution functions |
//! | `state.rs` | [`StateContext`], of state functions |
//! | `minion.rs` | [`Minion`] |
//! | `job.rs` | [`Job`] |
//! | `modules.rs` | [`Modules`]: the functions of all Salt modules |
//!
//! These types contain each other: a context has its minion, and a minion the functions that take the contexts.
//!
//! Functions are synchronous, and each job has its own thread, because Jinja templates that call `salt['cmd.run']`
//! cannot be suspended.

mod job;
mod minion;
mod modules;
mod state;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use brine_config::{MinionConfig, template_opts};
use brine_function::{Args, CallError};
use brine_host::process::{Output, ProcessError, Program};
use brine_host::web;
use brine_value::{Map, Value};

pub use job::Job;
pub use minion::{MINE_FUNCTIONS, Minion, RunningJobs};
pub use modules::{Aggregate, Module, Modules};
pub use state::StateContext;

/// The option of a run that is planned; no file sets it.
const PLANNING: &str = "__plan__";

/// The context of execution functions.
#[derive(Clone)]
pub struct Context {
    /// The minion.
    pub minion: Arc<Minion>,
    /// The job of the function.
    pub job: Arc<Job>,
    /// Whether the call is from a template: then pillar is not masked.
    pub in_template: bool,
    /// Whether a template, a function or a state made the call instead of the job: then `cmd.run` uses no shell.
    pub is_nested: bool,
    /// The pillar of a state run, which replaces the minion's: `pillar={...}` is for that run only.
    pub run_pillar: Option<Arc<Map>>,
    /// The options of a state run, which replace the configuration's: with options of the run itself, such as `test`.
    pub run_opts: Option<Arc<Map>>,
    /// Grains that replace the minion's: those of the minion that a pillar is rendered for.
    pub own_grains: Option<Arc<Map>>,
}

impl Context {
    /// Creates the context of a job's function.
    pub fn new(minion: Arc<Minion>, job: Arc<Job>) -> Self {
        Context {
            minion,
            job,
            in_template: false,
            is_nested: false,
            run_pillar: None,
            run_opts: None,
            own_grains: None,
        }
    }

    /// Calls another execution function within the same job.
    pub fn call(&self, function: &str, args: Args) -> Result<Value, CallError> {
        self.minion.functions.call(self, function, args)
    }

    /// Calls an execution function for a custom module: by default, without a shell, as [`Context::call_nested`].
    ///
    /// # Errors
    /// As for [`Context::call`].
    pub(crate) fn call_inside(&self, function: &str, args: Args) -> Result<Value, CallError> {
        self.minion.inner_functions().call(&self.nested(&args), function, args)
    }

    /// Calls an execution function for another function or for a state: by default, `cmd.run` passes the command to
    /// no shell then, so that values in it are not run.
    ///
    /// # Errors
    /// As for [`Context::call`].
    pub fn call_nested(&self, function: &str, args: Args) -> Result<Value, CallError> {
        self.nested(&args).call(function, args)
    }

    /// Returns the context of a nested call. The arguments of the job itself, which contain `__pub_jid`, keep the
    /// default of the job.
    fn nested(&self, args: &Args) -> Self {
        Context { is_nested: self.is_nested || !args.keyword.contains_key("__pub_jid"), ..self.clone() }
    }

    /// Runs a program to its end, as a child of the job.
    pub fn run_program(&self, program: &Program) -> Result<Output, ProcessError> {
        self.minion.programs.run(program, &self.job.children, &self.job.cancel)
    }

    /// Sets the retcode that the job returns.
    pub fn set_retcode(&self, retcode: i64) {
        self.job.retcode.store(retcode, Ordering::Relaxed);
    }

    /// Returns the current grains.
    pub fn grains(&self) -> Arc<Map> {
        self.own_grains.clone().unwrap_or_else(|| self.minion.grains.get())
    }

    /// Returns the OS family, such as `Debian`; an empty string if it is unknown.
    pub fn os_family(&self) -> String {
        self.grains().get("os_family").map(ToString::to_string).unwrap_or_default()
    }

    /// Returns the pillar of the state run, or else the minion's current one.
    pub fn pillar(&self) -> Arc<Map> {
        self.run_pillar.clone().unwrap_or_else(|| Arc::clone(&self.minion.pillar.read()))
    }

    /// Returns the configuration.
    pub fn config(&self) -> &MinionConfig {
        &self.minion.config
    }

    /// Returns the proxy and certificate settings for access to web servers.
    pub fn web(&self) -> web::Access {
        web::Access::of(self.config())
    }

    /// Returns the options for templates and functions: those of the state run, or else of the configuration.
    pub fn opts(&self) -> Arc<Map> {
        self.run_opts.clone().unwrap_or_else(|| Arc::new(template_opts(self.config())))
    }

    /// Whether this is the dry run of a plan, whose results say what they depend on.
    pub fn is_planning(&self) -> bool {
        self.run_opts.as_ref().is_some_and(|opts| opts.contains_key(PLANNING))
    }

    /// Returns the context with the options of the dry run of a plan.
    #[must_use]
    pub fn planning(&self) -> Self {
        let mut opts = (*self.opts()).clone();
        opts.extend(brine_value::map! {"test" => true, PLANNING => true});
        Context { run_opts: Some(Arc::new(opts)), ..self.clone() }
    }

    /// Whether this is a dry run (`test`), by the options of the state run or of the configuration.
    pub fn is_test(&self) -> bool {
        match &self.run_opts {
            Some(opts) => brine_config::opts::minion::test(opts),
            None => self.config().test,
        }
    }

    /// Returns the context for calls from a template.
    #[must_use]
    pub fn for_template(&self) -> Self {
        Context { in_template: true, is_nested: true, ..self.clone() }
    }
}
