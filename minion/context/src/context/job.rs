//! A job, with the state that the functions of its run share.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64};

use brine_function::Args;
use brine_host::process::Children;
use brine_ids::Jid;
use brine_job::orchestration::MasterAccess;
use brine_python::Leases;
use brine_value::{Map, Value};
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use crate::state_queue::{JobTicket, QueuedRun};

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

    /// Returns the job as the queue of state runs shows it.
    pub fn queued_run(&self) -> QueuedRun {
        let fun = match self.fun.as_str() {
            "" => self.load.get("fun").map(ToString::to_string).unwrap_or_default(),
            fun => fun.to_owned(),
        };
        QueuedRun { jid: self.jid.clone(), fun, pid: self.pid }
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
