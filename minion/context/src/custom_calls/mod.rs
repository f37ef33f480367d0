//! Calls of custom functions, with the data and the services that Brine provides to them.
//!
//! | file | owns |
//! |---|---|
//! | `mod.rs` | the functions in the registries of a minion; calls of functions and `#!py` files |
//! | `grains.rs` | calls of grains |
//! | `serializers.rs` | calls of serializers |
//! | `returned.rs` | the check of the results of state functions |

mod grains;
mod returned;
mod serializers;

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use brine_config::template_opts;
use brine_function::{Args, Binder, CallError, CallResult, Function, Overlay, Registry};
use brine_ids::Jid;
use brine_jinja::{CustomCall, HostedFile};
use brine_python::{Call, Functions, PythonError, Services};
use brine_sls::render::{RENDERERS, Renderer};
use brine_target::Match;
use brine_value::{Map, Value, map};
use tokio_util::sync::CancellationToken;

use crate::context::{Context, Job, Minion, StateContext};
use crate::custom::{CustomModules, OutsideJobs};
use returned::verified;

/// The custom functions of one type, which take precedence over built-in ones of the same names.
struct Custom<C: 'static> {
    modules: Arc<CustomModules>,
    functions: Functions<C>,
    /// The functions of the package `salt` (`python_fallback`).
    fallback: Functions<C>,
}

impl<C> Custom<C> {
    fn new(modules: &Arc<CustomModules>, kind: &'static str, code: fn(&C, &mut Binder) -> CallResult) -> Self {
        let functions = || Functions::new(kind, code);
        Custom { modules: Arc::clone(modules), functions: functions(), fallback: functions() }
    }
}

impl<C> Overlay<C> for Custom<C> {
    fn functions(&self, module: Option<&str>) -> Vec<&'static Function<C>> {
        if !self.modules.library.may_have(self.functions.kind(), module) {
            return Vec::new();
        }
        self.modules.described().map_or_else(Vec::new, |described| self.functions.of(&described, module))
    }

    fn fallback(&self, module: Option<&str>) -> Vec<&'static Function<C>> {
        let (kind, modules) = (self.fallback.kind(), &self.modules);
        let described = modules.library.fallback(kind, module, |call| modules.describe(call));
        described.map_or_else(Vec::new, |described| self.fallback.of(&described, module))
    }
}

/// Returns the custom execution functions.
pub(crate) fn functions(modules: &Arc<CustomModules>) -> impl Overlay<Context> + use<> {
    Custom::new(modules, "modules", module)
}

/// Returns the custom state functions.
pub(crate) fn states(modules: &Arc<CustomModules>) -> impl Overlay<StateContext> + use<> {
    Custom::new(modules, "states", state)
}

/// Returns the calls outside of jobs for the custom modules of a minion.
pub(crate) fn outside_jobs(minion: Weak<Minion>) -> OutsideJobs {
    Box::new(move |call| {
        let minion = minion.upgrade()?;
        Some(minion.custom.run(&minion, call))
    })
}

fn module(context: &Context, bound: &mut Binder) -> CallResult {
    let args = Args { positional: bound.rest(), keyword: bound.keywords() };
    context.minion.custom.call(context, bound.function(), args)
}

fn state(context: &StateContext, bound: &mut Binder) -> CallResult {
    let args = Args { positional: bound.rest(), keyword: bound.keywords() };
    context.call.minion.custom.call_state(context, bound.function(), args)
}

/// The timeout of a module of pillar or tops: minions wait for it, and others need its thread.
const CALL_TIMEOUT: Duration = Duration::from_secs(60);
/// The timeout of a matcher: other jobs wait for it.
const MATCHER_TIMEOUT: Duration = Duration::from_secs(10);
/// The maximum number of cached variants of the options.
const MAX_OPTS: usize = 4;

impl CustomModules {
    /// Calls an execution function.
    fn call(&self, context: &Context, function: &str, args: Args) -> CallResult {
        let call =
            Call { kind: "modules", function, args, data: self.data(context, context.is_test()), ..Call::default() };
        self.ask(&Running { context, state: None }, call).map_err(|error| error.of_call(function))
    }

    /// Calls a state function.
    fn call_state(&self, context: &StateContext, function: &str, args: Args) -> CallResult {
        let mut data = self.data(&context.call, context.test);
        let mut low = (*context.chunk).clone();
        let (state, fun) = function.split_once('.').unwrap_or((function, ""));
        low.extend(map! {
            "state" => state,
            "fun" => fun,
            "__id__" => &context.id,
            "__sls__" => &context.sls,
            "__env__" => &context.saltenv,
        });
        data.push(("low", Arc::new(low)));
        let call = Call { kind: "states", function, args, data, ..Call::default() };
        let returned = self.ask(&Running { context: &context.call, state: Some(context) }, call);
        returned.map_err(|error| error.of_call(function)).and_then(verified)
    }

    /// Calls a function of another type, with `opts` overridden by the options of the call; `None` if no file has it.
    pub fn call_other(&self, context: &Context, opts: &Map, call: &CustomCall<'_>) -> Option<CallResult> {
        if !self.has_other(call.kind, call.function) {
            let module = call.function.split('.').next().unwrap_or_default();
            return self.failure(call.kind, module).map(|failure| Err(CallError::Execution(failure)));
        }
        let mut opts = opts.clone();
        opts.extend(call.opts.clone());
        let context = Context { run_opts: Some(Arc::new(opts)), ..context.clone() };
        let data = self.data(&context, context.is_test());
        let (kind, function, args) = (call.kind, call.function, (call.args)());
        let deadline = Some(Instant::now() + if kind == "matchers" { MATCHER_TIMEOUT } else { CALL_TIMEOUT });
        let result =
            self.ask(&Running { context: &context, state: None }, Call { kind, function, args, data, deadline });
        Some(result.map_err(|error| error.of_call(call.function)))
    }

    /// Calls a function of another type, such as `beacons`; `None` if no file has it.
    pub fn call_of(&self, context: &Context, kind: &'static str, function: &str, args: Args) -> Option<CallResult> {
        if !self.has_other(kind, function) {
            return None;
        }
        let data = self.data(context, context.is_test());
        let deadline = Some(Instant::now() + CALL_TIMEOUT);
        let result = self.ask(&Running { context, state: None }, Call { kind, function, args, data, deadline });
        Some(result.map_err(|error| error.of_call(function)))
    }

    /// Calls the function `execute` of an executor with a function of the job; `None` if no file has it.
    pub fn call_executor(&self, context: &Context, executor: &str, fun: &str, args: Args) -> Option<CallResult> {
        let function = format!("{executor}.execute");
        if !self.has_other("executors", &function) {
            return self.failure("executors", executor).map(|failure| Err(CallError::Execution(failure)));
        }
        let data = self.data(context, context.is_test());
        let load = context.job.load.clone();
        let args = Args::positional([load.into(), fun.into(), args.positional.into(), args.keyword.into()]);
        let call = Call { kind: "executors", function: &function, args, data, ..Call::default() };
        Some(self.ask(&Running { context, state: None }, call).map_err(|error| error.of_call(fun)))
    }

    /// Matches a target against a minion id by the file `KIND_match.py` in `_matchers`; `None` if there is none. If the
    /// matcher fails, the error is logged and the result is [`Match::Unknown`]. Blocks for up to ten seconds.
    pub fn matches(
        &self,
        context: Option<&Context>,
        minion_id: &str,
        kind: &str,
        target: &Value,
        delimiter: &str,
    ) -> Option<Match> {
        let module = format!("{kind}_match");
        if !self.may_have("matchers", &module) {
            return None;
        }
        let function = format!("{module}.match");
        let answer = if self.has("matchers", &function) {
            let mut args = Args::positional([target.clone()]);
            args.keyword = map! {"minion_id" => minion_id, "delimiter" => delimiter};
            let deadline = Some(Instant::now() + MATCHER_TIMEOUT);
            let call = Call { kind: "matchers", function: &function, args, deadline, ..Call::default() };
            match context {
                Some(context) => {
                    let data = self.data(context, context.is_test());
                    self.ask(&Running { context, state: None }, Call { data, ..call })
                }
                None => (self.outside_jobs)(call)?,
            }
            .map_err(|error| error.to_string())
        } else {
            // Another file contains the name in its text, or this file failed to load.
            Err(self.failure("matchers", &module)?)
        };
        let answer = answer.inspect_err(|error| tracing::error!(matcher = kind, error, "matching a target failed"));
        Some(answer.map_or(Match::Unknown, |answer| answer.is_truthy().into()))
    }

    /// Calls a function of a file that Python has rendered: `function` is its placeholder in the data. Returns `None`
    /// if it is not a placeholder.
    pub fn call_leased(&self, context: &StateContext, function: &Value, args: Args) -> Option<CallResult> {
        let token = brine_python::token(function)?;
        let data = self.data(&context.call, context.test);
        let call = Call { kind: "kept", function: token, args, data, ..Call::default() };
        let running = Running { context: &context.call, state: Some(context) };
        let called = match context.call.job.leases.with(token) {
            Some(lease) => self.library.call_leased(&lease, call, &running),
            None => self.ask(&running, call),
        };
        Some(called.map_err(|error| error.of_call("cmd.call")))
    }

    /// Evaluates a Python expression with these variables, and returns whether it is true.
    ///
    /// # Errors
    /// There is no Python, or the expression fails.
    pub fn is_true(&self, context: &StateContext, expression: &str, variables: Map) -> Result<bool, PythonError> {
        let args = Args::positional([expression.into(), variables.into()]);
        let data = self.data(&context.call, context.test);
        let call = Call { kind: "evaluate", args, data, ..Call::default() };
        let answer = self.ask(&Running { context: &context.call, state: Some(context) }, call)?;
        Ok(answer.is_truthy())
    }

    /// Renders a file by Python, such as `#!py`, `#!mako|yaml` or a custom renderer; `None` for unknown renderers.
    pub fn render(&self, context: &Context, file: &HostedFile) -> Option<CallResult> {
        let is_built_in =
            || RENDERERS.iter().any(|(name, kind, _)| *name == file.renderer && *kind == Renderer::Hosted);
        if !self.may_have("renderers", file.renderer) && !is_built_in() {
            return None;
        }
        let mut context = context.clone();
        if let Some((grains, pillar)) = &file.data {
            context.own_grains = Some(Arc::clone(grains));
            context.run_pillar = Some(Arc::clone(pillar));
        }
        let args = [
            file.renderer.into(),
            file.args.into(),
            file.name.into(),
            file.source.clone(),
            file.variables.clone().into(),
            file.saltenv.into(),
        ];
        let call = Call {
            kind: "render",
            function: file.name,
            args: Args::positional(args),
            data: self.data(&context, context.is_test()),
            ..Call::default()
        };
        let job = Arc::clone(&context.job);
        let context = context.for_template();
        let running = Running { context: &context, state: None };
        let rendered = self.library.call_leasing(call, || built_in_functions(&context.minion), &running);
        let rendered = rendered.map(|(data, lease)| {
            // Keeps the process until the job ends: `cmd.call` may call these functions later in the run.
            if let Some(lease) = lease {
                job.leases.add(lease);
            }
            data
        });
        Some(rendered.map_err(|error| match error.of_call(file.name) {
            // A file was rendered and no function called. Salt's message is the traceback, which ends with this
            // message.
            CallError::Exception(message) => CallError::Execution(message),
            error => error,
        }))
    }

    /// Calls the function `start` of an engine's module, in a process of its own, until `stopping`.
    ///
    /// # Errors
    /// The reason for its end.
    pub fn run_engine(
        &self,
        minion: &Arc<Minion>,
        (module, kwargs): (&str, &Map),
        stopping: &CancellationToken,
    ) -> Result<Value, PythonError> {
        let function = format!("{module}.start");
        let job = Job { cancel: stopping.clone(), ..Job::local(&Jid::new(), &function, &Args::default()) };
        let context = Context::new(Arc::clone(minion), Arc::new(job));
        let args = Args { keyword: kwargs.clone(), ..Args::default() };
        let data = self.data(&context, context.is_test());
        let call = Call { kind: "engines", function: &function, args, data, ..Call::default() };
        self.library.call_alone(call, || built_in_functions(minion), &Running { context: &context, state: None })
    }

    /// Calls a function outside a job.
    fn run(&self, minion: &Arc<Minion>, mut call: Call<'_>) -> Result<Value, PythonError> {
        let job = Job::local(&Jid::new(), "saltutil.refresh_modules", &Args::default());
        let context = Context::new(Arc::clone(minion), Arc::new(job));
        call.data = self.data(&context, context.is_test());
        self.ask(&Running { context: &context, state: None }, call)
    }

    fn ask(&self, running: &Running, call: Call) -> Result<Value, PythonError> {
        let minion = &running.context.minion;
        self.library.call(call, || built_in_functions(minion), running)
    }

    /// Returns the data of a call: options, grains and pillar. Python receives a mapping once, and again only after it
    /// was replaced.
    fn data(&self, context: &Context, test: bool) -> Vec<(&'static str, Arc<Map>)> {
        vec![("opts", self.opts(context, test)), ("grains", context.grains()), ("pillar", context.pillar())]
    }

    fn opts(&self, context: &Context, test: bool) -> Arc<Map> {
        let of_run = context.run_opts.as_ref();
        let mut cache = self.opts.lock();
        let is_same = |base: &Arc<Map>| of_run.map_or_else(|| base.is_empty(), |opts| Arc::ptr_eq(opts, base));
        if let Some((_, _, opts)) = cache.iter().find(|(base, of, _)| *of == test && is_same(base)) {
            return Arc::clone(opts);
        }
        let mut opts = of_run.map_or_else(|| template_opts(context.config()), |opts| (**opts).clone());
        opts.insert("test".into(), test.into());
        // The pillar of another minion is rendered with its id.
        let id = opts.entry("id".into()).or_insert(Value::Nil);
        if id.is_nil() || of_run.is_none() {
            *id = context.minion.id.as_str().into();
        }
        let opts = Arc::new(opts);
        if cache.len() >= MAX_OPTS {
            cache.remove(0);
        }
        cache.push((of_run.cloned().unwrap_or_default(), test, Arc::clone(&opts)));
        opts
    }
}

/// Returns the full names of Brine's functions, by type.
fn built_in_functions(minion: &Minion) -> BTreeMap<&'static str, Vec<String>> {
    [("modules", built_in(minion.inner_functions())), ("states", built_in(&minion.states))].into()
}

fn built_in<C>(registry: &Registry<C>) -> Vec<String> {
    registry.built_in().map(Function::full_name).collect()
}

/// The services of Brine for a running function.
struct Running<'a> {
    context: &'a Context,
    state: Option<&'a StateContext>,
}

impl Services for Running<'_> {
    fn call(&self, kind: &str, function: &str, args: Args) -> CallResult {
        match kind {
            "modules" => self.context.call_inside(function, args),
            "events" => self.context.call_inside("event.fire", args),
            "states" => {
                let alone = || StateContext {
                    call: self.context.clone(),
                    test: self.context.is_test(),
                    saltenv: "base".into(),
                    sls: String::new(),
                    id: String::new(),
                    chunk: Arc::default(),
                    required: Vec::new(),
                };
                let context = self.state.cloned().unwrap_or_else(alone);
                context.call_state(function, args)
            }
            _ => Err(CallError::NotAvailable(function.to_owned())),
        }
    }

    fn is_cancelled(&self) -> bool {
        self.context.job.cancel.is_cancelled()
    }

    fn set_retcode(&self, retcode: i64) {
        self.context.set_retcode(retcode);
    }
}
