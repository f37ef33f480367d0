//! What a running function sees of its minion and of its job.
//!
//! Functions are synchronous: each job has a thread of its own, as a Jinja template that calls
//! `salt['cmd.run']` in its middle cannot wait. What must reach the network does so through the
//! traits here, whose implementations wait on the runtime.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;

use brine_bus::{Bus, SocketNames};
use brine_config::{MinionConfig, template_opts};
use brine_function::{Args, CallError, Registry};
use brine_host::process::{Children, Output, ProcessError, Program};
use brine_host::programs::{Programs, System};
use brine_ids::{Jid, MinionId};
use brine_job::orchestration::MasterAccess;
use brine_schedule::Schedule;
use brine_value::{Map, Value, map};
use parking_lot::{Mutex, RwLock};
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

use crate::beacons::Configured;
use crate::local_bus::LocalBus;
use crate::{Rooms, StateContext, schedule};

/// The option and the pillar key with the functions whose returns go into the mine.
pub const MINE_FUNCTIONS: &str = "mine_functions";

/// Files under `salt://`, from the master or from this host.
pub trait FileClient: Send + Sync {
    /// The content of a file, or nothing if the environment has no such file. `path` is without `salt://`.
    fn read(&self, path: &str, saltenv: &str) -> Result<Option<Vec<u8>>, String>;
    /// Writes the content of a file; false if the environment has no such file. After an error, what was written is not
    /// the file.
    fn fetch(&self, path: &str, saltenv: &str, into: &mut dyn Write) -> Result<bool, String> {
        let Some(content) = self.read(path, saltenv)? else { return Ok(false) };
        into.write_all(&content).map(|()| true).map_err(|error| error.to_string())
    }
    /// The hash of a file in hex, of the kind that the server has (`hash_type`), or nothing if the environment has no such file.
    fn hash(&self, path: &str, saltenv: &str) -> Result<Option<String>, String>;
    /// The mode that a file has where it is served from, or nothing if that cannot be told.
    fn mode(&self, _path: &str, _saltenv: &str) -> Result<Option<u32>, String> {
        Ok(None)
    }
    /// All files of an environment, sorted.
    fn list(&self, saltenv: &str) -> Result<Vec<String>, String>;
    /// Whether an environment has a file, if that can be told without a list of all; nothing if not.
    fn holds(&self, _path: &str, _saltenv: &str) -> Option<bool> {
        None
    }
    /// All folders of an environment, sorted.
    fn folders(&self, saltenv: &str) -> Result<Vec<String>, String>;
    /// Those folders of an environment that have nothing in them, sorted.
    fn empty_folders(&self, saltenv: &str) -> Result<Vec<String>, String>;
    /// The links of an environment, and the text that each holds.
    fn links(&self, saltenv: &str) -> Result<Map, String>;
    /// All environments.
    fn environments(&self) -> Result<Vec<String>, String>;
    /// Options of the master that matter to states: `state_top`, `nodegroups`, `renderer`, ...
    fn master_opts(&self) -> Result<Map, String>;
}

/// An event on its way to the master's bus.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MasterEvent {
    /// Its tag.
    pub tag: String,
    /// What it says, as the field `data` of its body.
    pub data: Value,
    /// Fields that its body has beside `data`, such as the `jid` of a state's event; over `id`, `tag` and
    /// `cmd`. They are in the place of Salt's `pretag`.
    pub beside: Option<Map>,
    /// How long the master may take to have it; nothing for `request_timeout`.
    pub timeout: Option<Duration>,
}

impl MasterEvent {
    /// An event with nothing beside its data.
    pub fn new(tag: &str, data: impl Into<Value>) -> Self {
        MasterEvent { tag: tag.to_owned(), data: data.into(), ..Self::default() }
    }

    /// The request that brings it to the master: with its sender, its body.
    pub fn request(&self, id: &str) -> Map {
        let mut load = map! {"id" => id, "tag" => &self.tag, "data" => self.data.clone(), "cmd" => "_minion_event"};
        load.extend(self.beside.clone().unwrap_or_else(|| map! {"pretag" => Value::Nil}));
        load
    }
}

/// Where events go and pillar comes from.
pub trait Upstream: Send + Sync {
    /// Whether there is a master. Without one, events of states go nowhere and `event.send` fires here.
    fn has_master(&self) -> bool;
    /// Fires an event on the master's bus; returns when the master has it.
    fn fire_master(&self, event: MasterEvent) -> Result<(), String>;
    /// A freshly rendered pillar, with `override_pillar` merged over it.
    fn pillar(&self, saltenv: Option<&str>, pillarenv: Option<&str>, override_pillar: &Map) -> Result<Map, String>;
    /// The pillar, rendered anew even if the master keeps pillars for some time.
    fn refreshed_pillar(&self, saltenv: Option<&str>, pillarenv: Option<&str>) -> Result<Map, String> {
        self.pillar(saltenv, pillarenv, &Map::new())
    }
    /// The master's port for publishes, once a session has begun.
    fn publish_port(&self) -> Option<u16> {
        None
    }
    /// Whether functions mask values of the pillar, as masters of Salt 3008 and later and of Brine have it.
    fn masks_pillar(&self) -> bool {
        true
    }
    /// Sends a command to the master: its answer.
    fn ask(&self, load: Map) -> Result<Value, String> {
        let command = load.get("cmd").map(ToString::to_string).unwrap_or_default();
        Err(format!("there is no master to ask ({command}): give this minion one by the option 'master'"))
    }
}

/// What all jobs of a minion share.
pub struct Minion {
    /// The minion's id.
    pub id: String,
    /// The configuration.
    pub config: Arc<MinionConfig>,
    /// Facts about this host. Who asks for the pillar shares them.
    pub grains: Arc<RwLock<Arc<Map>>>,
    /// The pillar as it was last rendered.
    pub pillar: RwLock<Arc<Map>>,
    /// Files under `salt://`.
    pub files: Arc<dyn FileClient>,
    /// The master's bus, and pillar.
    pub upstream: Arc<dyn Upstream>,
    /// The programs of this host.
    pub programs: Arc<dyn Programs>,
    /// The minion's own bus.
    pub local: LocalBus,
    /// The beacons of the configuration, as they are now.
    pub beacons: Configured,
    /// The schedule, as it is now.
    pub schedule: Mutex<Schedule>,
    /// Jobs that run now, by jid.
    pub jobs: Mutex<indexmap::IndexMap<String, Arc<Job>>>,
    /// Execution functions.
    pub functions: Registry<Context>,
    /// State functions.
    pub states: Registry<StateContext>,
    /// The modules that both are from.
    pub rooms: Rooms,
}

impl Minion {
    /// Creates a minion of these parts, without a pillar. Its own bus is the one that is given, or that of the daemon of
    /// this id.
    ///
    /// With a bus, it must be called within a runtime.
    pub fn new(
        id: &MinionId,
        config: &Arc<MinionConfig>,
        rooms: Rooms,
        grains: Arc<RwLock<Arc<Map>>>,
        files: Arc<dyn FileClient>,
        upstream: Arc<dyn Upstream>,
        bus: Option<Bus>,
    ) -> Arc<Self> {
        let local = match bus {
            Some(bus) => LocalBus::Own { bus, runtime: Handle::current() },
            None => LocalBus::Sockets { folder: config.sock_dir.clone(), names: SocketNames::minion(id.as_str()) },
        };
        Arc::new(Minion {
            id: id.to_string(),
            config: Arc::clone(config),
            grains,
            pillar: RwLock::default(),
            files,
            upstream,
            programs: Arc::new(System),
            local,
            beacons: Configured::new(config.beacons.clone()),
            schedule: Mutex::new(Schedule::new(config.schedule.clone())),
            jobs: Mutex::default(),
            functions: Registry::new(&rooms.functions()),
            states: Registry::new(&rooms.states()),
            rooms,
        })
    }

    /// Replaces the pillar. If other functions fill the mine from now on, it is sent soon.
    pub fn set_pillar(&self, pillar: Map) {
        let functions = |pillar: &Map| pillar.get(MINE_FUNCTIONS).cloned();
        let new = functions(&pillar);
        let old = std::mem::replace(&mut *self.pillar.write(), Arc::new(pillar));
        if functions(&old) != new {
            self.schedule.lock().forget(Some(schedule::MINE));
        }
    }
}

/// One job, or one call from the command line.
pub struct Job {
    /// The job id.
    pub jid: String,
    /// The function that was asked for.
    pub fun: String,
    /// Its arguments as they came.
    pub arg: Vec<Value>,
    /// The load of the publish: `tgt`, `tgt_type`, `user`, `ret`, ...
    pub load: Map,
    /// The thread's or process's number, for `saltutil.running`.
    pub pid: u32,
    /// The retcode that the function has set, if it is not 0.
    pub retcode: AtomicI64,
    /// The master that the job runs on, in an orchestration.
    pub master: Option<Arc<dyn MasterAccess>>,
    /// Ends the job: functions that take long look at it or wait on it.
    pub cancel: CancellationToken,
    /// Child processes of the job, ended with it.
    pub children: Children,
    /// Whether the repositories of packages were asked in this job.
    pub repositories_asked: Arc<AtomicBool>,
}

impl Job {
    /// The same job with a retcode of its own: for what runs beside it.
    #[must_use]
    pub fn beside(&self) -> Self {
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
        }
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
            // The master knows what led to the job.
            data.insert("_jid".into(), self.jid.as_str().into());
        }
    }

    /// A job that nobody published: a call from the command line or a test.
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
        }
    }
}

/// The context of execution functions.
#[derive(Clone)]
pub struct Context {
    /// The minion.
    pub minion: Arc<Minion>,
    /// The job that the function runs in.
    pub job: Arc<Job>,
    /// Whether the call comes out of a template: `cmd.run` then works without a shell and pillar is
    /// shown unmasked.
    pub in_template: bool,
    /// The pillar of a state run, in the place of the minion's: `pillar={...}` is for that run alone.
    pub run_pillar: Option<Arc<Map>>,
    /// The options of a state run, in the place of the configuration's: with what the run itself is told, such as
    /// `test`.
    pub run_opts: Option<Arc<Map>>,
    /// Grains in the place of the minion's: those of the minion that a pillar is rendered for.
    pub own_grains: Option<Arc<Map>>,
}

impl Context {
    /// The context of a job's function.
    pub fn new(minion: Arc<Minion>, job: Arc<Job>) -> Self {
        Context { minion, job, in_template: false, run_pillar: None, run_opts: None, own_grains: None }
    }

    /// Calls another execution function within the same job.
    pub fn call(&self, function: &str, args: Args) -> Result<Value, CallError> {
        self.minion.functions.call(self, function, args)
    }

    /// Runs a program to its end, as a child of the job.
    pub fn run_program(&self, program: &Program) -> Result<Output, ProcessError> {
        self.minion.programs.run(program, &self.job.children, &self.job.cancel)
    }

    /// Sets the retcode that the job returns.
    pub fn set_retcode(&self, retcode: i64) {
        self.job.retcode.store(retcode, Ordering::Relaxed);
    }

    /// The grains as they are now.
    pub fn grains(&self) -> Arc<Map> {
        self.own_grains.clone().unwrap_or_else(|| Arc::clone(&self.minion.grains.read()))
    }

    /// The family of the system, such as `Debian`; an empty text if it is not known.
    pub fn os_family(&self) -> String {
        self.grains().get("os_family").map(ToString::to_string).unwrap_or_default()
    }

    /// The pillar as it is now, or as the state run has it.
    pub fn pillar(&self) -> Arc<Map> {
        self.run_pillar.clone().unwrap_or_else(|| Arc::clone(&self.minion.pillar.read()))
    }

    /// The configuration.
    pub fn config(&self) -> &MinionConfig {
        &self.minion.config
    }

    /// The file with the certificate authorities that web servers are verified with, if it is not the host's own.
    pub fn ca_bundle(&self) -> Option<&Path> {
        self.config().ca_bundle.as_deref()
    }

    /// The options as templates and functions see them: the configuration's, or the state run's.
    pub fn opts(&self) -> Arc<Map> {
        self.run_opts.clone().unwrap_or_else(|| Arc::new(template_opts(self.config())))
    }

    /// Whether changes are only to be told: the configuration says so, or the state run.
    pub fn is_test(&self) -> bool {
        match &self.run_opts {
            Some(opts) => opts.get("test").is_some_and(Value::is_truthy),
            None => self.config().test,
        }
    }

    /// The same context for calls that come out of a template.
    #[must_use]
    pub fn for_template(&self) -> Self {
        Context { in_template: true, ..self.clone() }
    }
}
