//! Receives jobs from the master: matches their targets, deduplicates them, runs them on the pool and returns the
//! results.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use brine_context::jobs::{MASTER, ProcFile, exception_event, left_behind};
use brine_context::{Job, Minion, MinionFacts};
use brine_function::CallError;
use brine_ids::Jid;
use brine_job::RETURN_ERRORS;
use brine_returners::split;
use brine_target::{Match, Target, TargetFacts, TargetKind};
use brine_value::{Map, Value, map};
use brine_wire::Publication;
use tokio::sync::oneshot;

use super::Connected;
use crate::pool::PoolError;
use crate::seen_jobs::flush;
use crate::spool::Spool;
use crate::{jobs, metrics};

/// Runs a published job if it targets this minion and is new.
pub(super) async fn handle_job(connected: &Arc<Connected>, publication: Publication) {
    if connected.pool.is_refusing() {
        // It is not recorded, so that it is fetched after the restart.
        tracing::info!(jid = %publication.jid, "job left for after the restart: the minion is stopping");
        return;
    }
    // The parts of a batch have different minions and one id: only the part for this minion is recorded.
    let (minion, jid) = (Arc::clone(&connected.minion), publication.jid.to_string());
    // A custom matcher blocks.
    let matched =
        connected.pool.executors().render.run(move |_| is_targeted(&minion, &publication).then_some(publication));
    let publication = match matched.await {
        Ok(Some(publication)) => publication,
        Ok(None) => return,
        Err(error) => {
            tracing::error!(jid, %error, "matching the target of a job failed: the job is not run");
            return;
        }
    };
    if let Some(master) = connected.master() {
        connected.received.lock().job(&master, publication.jid.as_str());
    }
    if !is_new(connected, &publication.jid).await {
        tracing::debug!(jid = %publication.jid, "job received a second time: it is not run again");
        return;
    }
    let fun = match &publication.fun {
        Value::List(_) => String::new(),
        one => one.to_string(),
    };
    tracing::info!(jid = %publication.jid, fun = %publication.fun, user = publication.user, "job received");
    let ret = with_default_returners(&connected.minion, &publication.ret);
    start_job(connected, &publication.jid, &fun, publication.arg, publication.load, ret);
}

/// Records a job on disk, and returns whether it is received for the first time.
async fn is_new(connected: &Arc<Connected>, jid: &Jid) -> bool {
    let (this, jid) = (Arc::clone(connected), jid.to_string());
    let disk = &connected.pool.executors().disk;
    let added = disk.run(move |_| {
        let mut seen = this.seen.lock();
        seen.insert(&jid).then(|| seen.needs_flush())
    });
    // After a panic, which is logged, the job may be recorded.
    let Ok(Some(needs_flush)) = added.await else { return false };
    if needs_flush {
        // The job does not wait for the disk: only after a power failure within these milliseconds could it run again.
        let this = Arc::clone(connected);
        if let Err(error) = disk.start(move |_| flush(&this.seen)) {
            connected.seen.lock().abandon_flush();
            tracing::warn!(%error, "flushing the list of received jobs failed");
        }
    }
    true
}

/// Adds the returners of the option `return` to those of a job, each once.
fn with_default_returners(minion: &Minion, ret: &str) -> String {
    let own = brine_config::opts::modules::default_returners(&minion.config.opts);
    let mut names: Vec<&str> = Vec::new();
    for name in split(ret).chain(own.iter().flat_map(|names| split(names))) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names.join(",")
}

fn is_targeted(minion: &Minion, publication: &Publication) -> bool {
    let delimiter = publication.load.get("delimiter").and_then(Value::as_str).unwrap_or(":");
    let facts = MinionFacts::of_minion(minion);
    if let Some(matched) = facts.custom_match(&publication.tgt_type, &publication.tgt, delimiter) {
        return matched == Match::Yes;
    }
    let kind: Result<TargetKind, _> = publication.tgt_type.parse();
    let target =
        kind.and_then(|kind| Target::parse(kind, publication.tgt.clone(), delimiter, &minion.config.nodegroups));
    match target {
        // Only the master knows its node groups, and expands them.
        Ok(target) => target.matches(&facts),
        Err(error) => {
            tracing::warn!(jid = %publication.jid, %error, "the target of a job is invalid");
            false
        }
    }
}

/// Starts a job. Its return is on disk before it is sent.
pub(super) fn start_job(connected: &Arc<Connected>, jid: &Jid, fun: &str, arg: Vec<Value>, load: Map, ret: String) {
    let is_held = AtomicBool::new(true);
    let job = Arc::new(Job { arg, load, is_held, ..Job::local(jid, fun, &brine_function::Args::default()) });
    // Known before it has a thread: the master asks for it, and it can be ended.
    connected.minion.jobs.lock().insert(job.jid.clone(), Arc::clone(&job));
    let (this, running) = (Arc::clone(connected), Arc::clone(&job));
    let (sender, ran) = oneshot::channel();
    let started = connected.pool.start(fun, move || {
        // A minion that is killed from here on reports the job as interrupted: its proc file exists.
        let proc_file = ProcFile::write(&this.minion, &running);
        this.seen.lock().begin(&running.jid);
        let mut load = jobs::run(&this.minion, &running);
        let refused = Spool::refused(&this.minion, &ret);
        if !refused.is_empty() {
            // The caller asked for the result to be stored there.
            load.insert(RETURN_ERRORS.into(), refused.into());
        }
        let ticket = this.keep_return(&mut load);
        drop(proc_file);
        // The return is sent while returners are running. The receiver is dropped when the minion ends.
        _ = sender.send((ticket, load.clone()));
        jobs::keep_return(&this.minion, &load);
        // As in Salt, only the returners receive these options: they may contain passwords.
        let options = ["ret_config", "ret_kwargs"].into_iter();
        load.extend(options.filter_map(|name| Some((name.into(), running.load.get(name)?.clone()))));
        this.spool.store(&this.minion, &ret, load);
    });
    let this = Arc::clone(connected);
    connected.pool.spawn(async move {
        let running = match started {
            Ok(running) => running,
            Err(error) => return this.return_failure(&job, &error).await,
        };
        let Ok((ticket, load)) = ran.await else {
            // The job ended without a return: it panicked, or was refused during the shutdown.
            if let Err(error) = running.result().await {
                this.return_failure(&job, &error).await;
            }
            return;
        };
        this.send_return(ticket, load).await;
        if let Err(error) = running.result().await {
            brine_job::metrics::RETURNS_LOST.add(1);
            tracing::error!(jid = job.jid, %error, "storing a return by its returners failed");
        }
    });
}

impl Connected {
    /// Returns the failure of a job that did not complete to the master.
    async fn return_failure(self: &Arc<Self>, job: &Job, error: &PoolError) {
        tracing::error!(jid = job.jid, fun = job.fun, %error, "job failed");
        self.minion.jobs.lock().shift_remove(&job.jid);
        if let PoolError::Panicked(_) = error
            && let Err(error) = self.fire(&exception_event()).await
        {
            tracing::warn!(jid = job.jid, %error, "publishing the event of an exception failed");
        }
        self.return_later(failed(self, job, error)).await;
    }
}

/// Queues a return for each job that a killed minion has left behind, for the master that has published it, and removes
/// the job's proc file. Blocks.
pub(super) fn report_interrupted(all: &[Arc<Connected>]) {
    let Some(first) = all.first() else { return };
    for job in left_behind(&first.minion) {
        let field = |name: &str| job.get(name).cloned().unwrap_or_default();
        let (jid, fun, master) = (field("jid").to_string(), field("fun"), field(MASTER).to_string());
        metrics::JOBS_INTERRUPTED.add(1);
        tracing::error!(jid, %fun, "job interrupted: the minion ended while it ran");
        let text = "The minion ended while the job was running: it may be partially done.";
        let load = map! {"cmd" => "_return", "jid" => jid.as_str(), "id" => first.id.as_str(), "fun" => fun,
        "fun_args" => field("arg"), "return" => text, "retcode" => 1, "success" => false};
        let is_its = |one: &&Arc<Connected>| one.master().is_some_and(|address| address.to_string() == master);
        all.iter().find(is_its).unwrap_or(first).returns.push(&jid, &load);
    }
}

/// Creates the return of a job that did not complete.
fn failed(connected: &Connected, job: &Job, error: &PoolError) -> Map {
    let text = CallError::Exception(error.to_string()).to_string();
    let mut load = map! {"cmd" => "_return", "jid" => job.jid.as_str(), "id" => connected.id.as_str(),
    "fun" => &job.fun, "fun_args" => job.arg.clone(), "return" => text, "retcode" => 1, "success" => false};
    load.extend(connected.minion.mask.record(&load));
    load
}
