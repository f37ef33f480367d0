//! The context of a running function: its minion and its job.
//!
//! Functions are synchronous, and each job has its own thread, because Jinja templates that call `salt['cmd.run']`
//! cannot be suspended. The traits here give access to the network; their implementations block on the runtime.

use std::collections::HashMap;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;

use brine_bus::{Bus, SocketNames};
use brine_config::{MinionConfig, template_opts};
use brine_function::{Args, CallError, Registry};
use brine_host::grains;
use brine_host::process::{Children, Output, ProcessError, Program};
use brine_host::programs::{Programs, System};
use brine_host::web;
use brine_ids::{Jid, MinionId};
use brine_job::orchestration::MasterAccess;
use brine_mask::Mask;
use brine_python::Leases;
use brine_schedule::Schedule;
use brine_value::{Map, Value, map};
use parking_lot::{Mutex, RwLock};
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

use crate::allowed::Allowed;
use crate::beacons::Configured;
use crate::custom::{self, CustomModules};
use crate::local_bus::LocalBus;
use crate::state_queue::JobTicket;
use crate::{Grains, Modules, StateContext, schedule};

/// The option and the pillar key with the functions of the mine.
pub const MINE_FUNCTIONS: &str = "mine_functions";

/// Files under `salt://`, from the master or from this host.
pub trait FileClient: Send + Sync {
    /// Returns the content of a file; `None` if the environment has no such file. `path` is without `salt://`.
    fn read(&self, path: &str, saltenv: &str) -> Result<Option<Vec<u8>>, String>;
    /// Writes the content of a file. Returns false if the environment has no such file. After an error, the written
    /// content is incomplete.
    fn fetch(&self, path: &str, saltenv: &str, into: &mut dyn Write) -> Result<bool, String> {
        let Some(content) = self.read(path, saltenv)? else { return Ok(false) };
        into.write_all(&content).map(|()| true).map_err(|error| error.to_string())
    }
    /// Returns the hash of a file in hexadecimal, of the server's type (`hash_type`); `None` if the environment has no
    /// such file.
    fn hash(&self, path: &str, saltenv: &str) -> Result<Option<String>, String>;
    /// Returns the mode of a file on the server; `None` if it is unknown.
    fn mode(&self, _path: &str, _saltenv: &str) -> Result<Option<u32>, String> {
        Ok(None)
    }
    /// Returns all files of an environment, sorted.
    fn list(&self, saltenv: &str) -> Result<Vec<String>, String>;
    /// Whether an environment has a file; `None` if only a list of all files could answer this.
    fn holds(&self, _path: &str, _saltenv: &str) -> Option<bool> {
        None
    }
    /// Returns all directories of an environment, sorted.
    fn directories(&self, saltenv: &str) -> Result<Vec<String>, String>;
    /// Returns the empty directories of an environment, sorted.
    fn empty_directories(&self, saltenv: &str) -> Result<Vec<String>, String>;
    /// Returns the symbolic links of an environment and their targets.
    fn links(&self, saltenv: &str) -> Result<Map, String>;
    /// Returns all environments.
    fn environments(&self) -> Result<Vec<String>, String>;
    /// Returns options of the master that states need: `state_top`, `nodegroups`, `renderer`, ...
    fn master_opts(&self) -> Result<Map, String>;
}

/// An event for the master's bus.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MasterEvent {
    /// Its tag.
    pub tag: String,
    /// The field `data` of its body.
    pub data: Value,
    /// Further fields of its body beside `data`, such as the `jid` of a state's event. They override `id`, `tag` and
    /// `cmd`, and replace Salt's `pretag`.
    pub extra_fields: Option<Map>,
    /// The timeout of sending it; `request_timeout` if `None`.
    pub timeout: Option<Duration>,
}

impl MasterEvent {
    /// Creates an event with only data.
    pub fn new(tag: &str, data: impl Into<Value>) -> Self {
        MasterEvent { tag: tag.to_owned(), data: data.into(), ..Self::default() }
    }

    /// Returns the request to the master, with the sender and the body.
    pub fn request(&self, id: &str) -> Map {
        let mut load = map! {"id" => id, "tag" => &self.tag, "data" => self.data.clone(), "cmd" => "_minion_event"};
        load.extend(self.extra_fields.clone().unwrap_or_else(|| map! {"pretag" => Value::Nil}));
        load
    }
}

/// The link to the master, for events and pillar.
pub trait Upstream: Send + Sync {
    /// Whether there is a master. Without one, events of states are dropped and `event.send` publishes locally.
    fn has_master(&self) -> bool;
    /// Whether the mine can be read: with a master, and with `salt-ssh`, which queries the other hosts.
    fn has_mine(&self) -> bool {
        self.has_master()
    }
    /// Publishes an event on the master's bus. Returns when the master has accepted it.
    fn fire_master(&self, event: MasterEvent) -> Result<(), String>;
    /// Returns a freshly rendered pillar, with `override_pillar` merged over it.
    fn pillar(&self, saltenv: Option<&str>, pillarenv: Option<&str>, override_pillar: &Map) -> Result<Map, String>;
    /// Returns a freshly rendered pillar with a further entry of `ext_pillar`, and `override_pillar` merged over it.
    fn pillar_with(&self, external: &Map, override_pillar: &Map) -> Result<Map, String>;
    /// Returns a freshly rendered pillar, even if the master caches pillars.
    fn refreshed_pillar(&self, saltenv: Option<&str>, pillarenv: Option<&str>) -> Result<Map, String> {
        self.pillar(saltenv, pillarenv, &Map::new())
    }
    /// Returns the master's publish port, once a session has begun.
    fn publish_port(&self) -> Option<u16> {
        None
    }
    /// Whether functions mask values of the pillar, as with masters of Salt 3008 and later and of Brine.
    fn masks_pillar(&self) -> bool {
        true
    }
    /// Returns the SLS files that `master_tops` assigns to a minion with these options, by environment.
    fn master_tops(&self, opts: Map) -> Result<Map, String> {
        match self.ask(brine_value::map! {"cmd" => "_master_tops", "opts" => opts})? {
            Value::Map(assigned) => Ok(assigned),
            _ => Ok(Map::new()),
        }
    }
    /// Sends a command to the master and returns its reply.
    fn ask(&self, load: Map) -> Result<Value, String> {
        let command = load.get("cmd").map(ToString::to_string).unwrap_or_default();
        Err(format!("the command {command} failed: no master is configured; set the option 'master'"))
    }
}

/// The running jobs of a minion, by jid.
pub type RunningJobs = Arc<Mutex<indexmap::IndexMap<String, Arc<Job>>>>;

/// The shared state of all jobs of a minion. A minion that is connected to several masters has one for each of them; they
/// have the same beacons, schedule and running jobs.
pub struct Minion {
    /// The minion's id.
    pub id: String,
    /// The configuration.
    pub config: Arc<MinionConfig>,
    /// The grains.
    pub grains: Arc<Grains>,
    /// The pillar as last rendered.
    pub pillar: RwLock<Arc<Map>>,
    /// Files under `salt://`.
    pub files: Arc<dyn FileClient>,
    /// The link to the master.
    pub upstream: Arc<dyn Upstream>,
    /// The programs of this host.
    pub programs: Arc<dyn Programs>,
    /// The minion's own bus.
    pub local: LocalBus,
    /// The current beacons of the configuration.
    pub beacons: Arc<Configured>,
    /// The current schedule.
    pub schedule: Arc<Mutex<Schedule>>,
    /// The running jobs, by jid.
    pub jobs: RunningJobs,
    /// Masks secret arguments in returns, in files about jobs, and in error messages.
    pub mask: Mask,
    /// Execution functions.
    pub functions: Registry<Context>,
    /// The execution functions that custom modules may call; unset if they are those of `functions`.
    pub inner_functions: Option<Registry<Context>>,
    /// State functions.
    pub states: Registry<StateContext>,
    /// Custom modules, whose functions are in both, too.
    pub custom: Arc<CustomModules>,
    /// The modules of both.
    pub modules: Modules,
}

/// The state that the minions of several masters share.
struct Shared {
    modules: Modules,
    beacons: Arc<Configured>,
    schedule: Arc<Mutex<Schedule>>,
    jobs: RunningJobs,
}

/// Creates the mask of a minion. Names that do not compile are reported, and the default ones used.
fn mask(config: &MinionConfig, modules: Modules) -> Mask {
    let mask = Mask::new(&config.masked_names, &config.unmasked_names).unwrap_or_else(|error| {
        tracing::error!(%error, "option 'masked_names': the default names are masked");
        Mask::default()
    });
    mask.with_parameters(Arc::new(modules))
}

impl Minion {
    /// Creates a minion of these parts, without a pillar. Its bus is the given one, or that of the daemon with this id.
    ///
    /// With a bus, it must be called within a runtime.
    pub fn new(
        id: &MinionId,
        config: &Arc<MinionConfig>,
        modules: Modules,
        grains: Arc<Grains>,
        files: Arc<dyn FileClient>,
        upstream: Arc<dyn Upstream>,
        bus: Option<Bus>,
    ) -> Arc<Self> {
        let (beacons, schedule) = (Configured::new(config.beacons.clone()), Schedule::new(config.schedule.clone()));
        let (beacons, schedule) = (Arc::new(beacons), Arc::new(Mutex::new(schedule)));
        let shared = Shared { modules, beacons, schedule, jobs: RunningJobs::default() };
        Self::with_shared(id, config, shared, grains, files, upstream, bus)
    }

    /// Creates a minion as [`Minion::new`] for another master of this one: it shares beacons, schedule and running jobs.
    pub fn for_master(
        &self,
        id: &MinionId,
        config: &Arc<MinionConfig>,
        grains: Arc<Grains>,
        files: Arc<dyn FileClient>,
        upstream: Arc<dyn Upstream>,
        bus: Option<Bus>,
    ) -> Arc<Self> {
        let (beacons, schedule) = (Arc::clone(&self.beacons), Arc::clone(&self.schedule));
        let shared = Shared { modules: self.modules, beacons, schedule, jobs: Arc::clone(&self.jobs) };
        Self::with_shared(id, config, shared, grains, files, upstream, bus)
    }

    fn with_shared(
        id: &MinionId,
        config: &Arc<MinionConfig>,
        Shared { modules, beacons, schedule, jobs }: Shared,
        grains: Arc<Grains>,
        files: Arc<dyn FileClient>,
        upstream: Arc<dyn Upstream>,
        bus: Option<Bus>,
    ) -> Arc<Self> {
        let names = SocketNames::minion(id.as_str());
        let events = config.sock_dir.join(&names.publish);
        let local = match bus {
            Some(bus) => LocalBus::Own { bus, runtime: Handle::current() },
            None => LocalBus::Sockets { directory: config.sock_dir.clone(), names },
        };
        let (allowed, allowed_states) = (Allowed::functions(config), Allowed::states(config));
        let functions =
            |custom: &Arc<CustomModules>| Registry::new(&modules.functions()).with_overlay(custom::functions(custom));
        Arc::new_cyclic(|minion| {
            let custom = CustomModules::new(config, events, minion.clone());
            Minion {
                id: id.to_string(),
                config: Arc::clone(config),
                grains,
                pillar: RwLock::default(),
                files,
                upstream,
                programs: Arc::new(System),
                local,
                beacons,
                schedule,
                jobs,
                mask: mask(config, modules),
                functions: allowed.of(functions(&custom)),
                inner_functions: Allowed::inside(config).map(|allowed| allowed.of(functions(&custom))),
                states: allowed_states.of(Registry::new(&modules.states()).with_overlay(custom::states(&custom))),
                custom,
                modules,
            }
        })
    }

    /// Returns the execution functions that custom modules may call.
    pub(crate) fn inner_functions(&self) -> &Registry<Context> {
        self.inner_functions.as_ref().unwrap_or(&self.functions)
    }

    /// Collects the grains of the host, and those of custom modules. Grains set by hand take precedence.
    pub fn collect_grains(self: &Arc<Self>) -> Map {
        let mut grains = grains::of_host(&self.config, &self.id);
        grains::add(&self.config, &mut grains, self.custom.grains(self));
        grains
    }

    /// Adds the grains of custom modules, if there are any. Blocks while Python runs them.
    pub fn add_custom_grains(self: &Arc<Self>) {
        if !self.custom.files("grains").is_empty() {
            self.grains.set(self.collect_grains());
        }
    }

    /// Replaces the pillar. If it changes the functions of the mine, an update of the mine is scheduled.
    pub fn set_pillar(&self, pillar: Map) {
        let functions = |pillar: &Map| pillar.get(MINE_FUNCTIONS).cloned();
        let new = functions(&pillar);
        let old = std::mem::replace(&mut *self.pillar.write(), Arc::new(pillar));
        if functions(&old) != new {
            self.schedule.lock().forget(Some(schedule::MINE));
        }
    }
}

/// A job, or a call from the command line.
pub struct Job {
    /// The job id.
    pub jid: String,
    /// The requested function.
    pub fun: String,
    /// Its arguments as received.
    pub arg: Vec<Value>,
    /// The load of the publish: `tgt`, `tgt_type`, `user`, `ret`, ...
    pub load: Map,
    /// The PID, or the thread's id, for `saltutil.running`.
    pub pid: u32,
    /// The retcode set by the function, if not 0.
    pub retcode: AtomicI64,
    /// The master that the job runs on, in an orchestration.
    pub master: Option<Arc<dyn MasterAccess>>,
    /// Cancels the job: long-running functions check it or wait on it.
    pub cancel: CancellationToken,
    /// Child processes of the job, which are killed with it.
    pub children: Children,
    /// Whether the package repositories were refreshed in this job.
    pub repositories_asked: Arc<AtomicBool>,
    /// The Python processes that hold functions of files rendered in the job.
    pub leases: Leases,
    /// Settings by name, with which functions of this job configure later ones.
    pub settings: Arc<Mutex<HashMap<&'static str, String>>>,
    /// The ticket of the job's state run.
    pub state_ticket: JobTicket,
    /// Whether the job waits for a thread (`process_count_max`).
    pub is_held: AtomicBool,
}

impl Job {
    /// Returns a copy of the job with its own retcode, for parallel states.
    #[must_use]
    pub fn for_parallel(&self) -> Self {
        Job {
            jid: self.jid.clone(),
            fun: self.fun.clone(),
            arg: self.arg.clone(),
            load: self.load.clone(),
            pid: self.pid,
            retcode: AtomicI64::new(0),
            master: self.master.clone(),
            cancel: self.cancel.clone(),
            children: self.children.clone(),
            repositories_asked: Arc::clone(&self.repositories_asked),
            leases: self.leases.clone(),
            settings: Arc::clone(&self.settings),
            state_ticket: Arc::clone(&self.state_ticket),
            is_held: AtomicBool::new(false),
        }
    }

    /// Sets a value for later functions of this job. Returns the previous value.
    pub fn set(&self, name: &'static str, value: &str) -> Option<String> {
        self.settings.lock().insert(name, value.to_owned())
    }

    /// Returns the value that an earlier function of this job has set.
    pub fn setting(&self, name: &'static str) -> Option<String> {
        self.settings.lock().get(name).cloned()
    }

    /// Returns the fields that a reaction adds to the events of the calls that it caused.
    pub fn causes(&self) -> Map {
        let fields = self.load.iter().filter(|(name, _)| name.as_str().is_some_and(|name| name.starts_with('_')));
        fields.map(|(name, value)| (name.clone(), value.clone())).collect()
    }

    /// Adds the cause of this job to an event for the master.
    pub fn mark(&self, data: &mut Map) {
        data.extend(self.causes());
        if self.load.contains_key("tgt_type") {
            // The master knows the cause of a published job: its id suffices.
            data.insert("_jid".into(), self.jid.as_str().into());
        }
    }

    /// Creates a job that was not published: a call from the command line or a test.
    pub fn local(jid: &Jid, fun: &str, args: &Args) -> Self {
        Job {
            jid: jid.to_string(),
            fun: fun.to_owned(),
            arg: args.to_wire(),
            load: Map::new(),
            pid: std::process::id(),
            master: None,
            retcode: AtomicI64::new(0),
            cancel: CancellationToken::new(),
            children: Children::default(),
            repositories_asked: Arc::default(),
            leases: Leases::default(),
            settings: Arc::default(),
            state_ticket: JobTicket::default(),
            is_held: AtomicBool::new(false),
        }
    }
}

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
