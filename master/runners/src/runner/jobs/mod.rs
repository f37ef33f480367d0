//! `jobs`: jobs and returns in the job cache. `search` selects jobs, `rerun` publishes them again.

mod rerun;
pub(super) mod search;

use std::sync::Arc;
use std::time::Duration;

use brine_function::{CallError, CallResult, Functions, function, registry};
use brine_ids::Jid;
use brine_job::Load;
use brine_returners::{Options, Returner};
use brine_value::{Map, Value, map, python};
use brine_wire::PublishRequest;
use jiff::Timestamp;

use super::RunnerContext;
pub(super) use rerun::may_rerun;
use search::Search;

/// Runner functions of `jobs`.
pub static FUNCTIONS: Functions<RunnerContext> = registry!(
    "jobs",
    [
        lookup_jid,
        list_job,
        print_job,
        list_jobs,
        list_jobs_filter,
        last_run,
        exit_success,
        active,
        master,
        rerun::rerun
    ]
);

/// Return the results of a job by minion.
///
/// CLI Example:
///
///     salt-run jobs.lookup_jid 20261120235852025555
#[function]
pub fn lookup_jid(
    context: &RunnerContext,
    /// The job id.
    jid: String,
    /// The returner to read from (the master's job cache); a configured ext_job_cache takes precedence.
    ext_source: Option<String>,
    /// Whether minions that returned are listed (True).
    #[default(true)]
    returned: bool,
    /// Whether minions that did not return are listed (False).
    #[default(false)]
    missing: bool,
    /// Publish progress events (False).
    #[default(false)]
    display_progress: bool,
) -> CallResult {
    let (cache, jid) = (cache(context, ext_source.as_deref())?, parse(&jid)?);
    publish_progress(context, display_progress, || format!("Querying returner: {}", cache.name()));
    let returns = returns(&*cache, &jid)?;
    for id in returns.keys() {
        publish_progress(context, display_progress, || id.to_string());
    }
    let mut data = Map::new();
    if returned {
        data.extend(returns.iter().map(|(id, one)| (id.clone(), one.get("return").cloned().unwrap_or_default())));
    }
    if missing && let Some(load) = load(&*cache, &jid)? {
        let silent = expected(&load).into_iter().filter(|id| !returns.contains_key(id));
        data.extend(silent.map(|id| (id, "Minion did not return".into())));
    }
    Ok(match returns.values().next().and_then(|one| one.get("out")).filter(|out| out.is_truthy()) {
        Some(out) => map! {"outputter" => out.clone(), "data" => data}.into(),
        None => data.into(),
    })
}

/// Return a job: the function, its target, the minions and their returns.
///
/// CLI Example:
///
///     salt-run jobs.list_job 20261120235852025555
#[function]
pub fn list_job(
    context: &RunnerContext,
    /// The job id.
    jid: String,
    /// The returner to read from (the master's job cache); a configured ext_job_cache takes precedence.
    ext_source: Option<String>,
    /// Publish progress events (False).
    #[default(false)]
    display_progress: bool,
) -> CallResult {
    let (cache, jid) = (cache(context, ext_source.as_deref())?, parse(&jid)?);
    publish_progress(context, display_progress, || format!("Querying returner: {}", cache.name()));
    let mut job = map! {"jid" => &jid};
    job.extend(whole(context, &*cache, &jid)?);
    Ok(job.into())
}

/// Return a job below its job id.
///
/// CLI Example:
///
///     salt-run jobs.print_job 20261120235852025555
#[function]
pub fn print_job(
    context: &RunnerContext,
    /// The job id.
    jid: String,
    /// The returner to read from (the master's job cache); a configured ext_job_cache takes precedence.
    ext_source: Option<String>,
) -> CallResult {
    print(context, &*cache(context, ext_source.as_deref())?, &parse(&jid)?)
}

/// Return all stored jobs, oldest first.
///
/// CLI Example:
///
///     salt-run jobs.list_jobs
///     salt-run jobs.list_jobs search_function='test.*,pkg.install' search_target='web*'
#[function]
pub fn list_jobs(
    context: &RunnerContext,
    /// The returner to read from (the master's job cache); a configured ext_job_cache takes precedence.
    ext_source: Option<String>,
    /// The outputter of the result.
    outputter: Option<String>,
    /// A mapping, of which one pair must be in the job's metadata.
    #[default]
    search_metadata: Value,
    /// A glob, a list of globs, or several with commas between them.
    #[default]
    search_function: Value,
    /// A glob, a list of globs, or several with commas between them.
    #[default]
    search_target: Value,
    /// The time of the oldest and of the newest job, such as `2026-11-20 23:58:52`.
    #[default]
    start_time: Value,
    /// The time of the oldest and of the newest job, such as `2026-11-20 23:58:52`.
    #[default]
    end_time: Value,
    /// Publish progress events (False).
    #[default(false)]
    display_progress: bool,
) -> CallResult {
    let cache = cache(context, ext_source.as_deref())?;
    publish_search(context, display_progress, &*cache);
    let search = Search::new(search_metadata, &search_function, &search_target, &start_time, &end_time)?;
    let mut jobs = search.jobs(&*cache, None)?;
    for (jid, job) in &mut jobs {
        add_end_time(context, jid, job)?;
    }
    Ok(shown(jobs, outputter))
}

/// Return the newest stored jobs, oldest first.
///
/// CLI Example:
///
///     salt-run jobs.list_jobs_filter 50
#[function]
pub fn list_jobs_filter(
    context: &RunnerContext,
    /// How many.
    count: usize,
    /// Whether `saltutil.find_job` is left out (True).
    #[default(true)]
    filter_find_job: bool,
    /// The returner to read from (the master's job cache); a configured ext_job_cache takes precedence.
    ext_source: Option<String>,
    /// The outputter of the result.
    outputter: Option<String>,
    /// Publish progress events (False).
    #[default(false)]
    display_progress: bool,
) -> CallResult {
    let cache = cache(context, ext_source.as_deref())?;
    publish_search(context, display_progress, &*cache);
    let jobs = Search::all(filter_find_job).jobs(&*cache, Some(count))?;
    let jobs = jobs.into_iter().map(|(jid, mut job)| {
        job.insert("JID".into(), (&jid).into());
        Value::Map(job)
    });
    Ok(with_outputter(jobs.collect(), outputter))
}

/// Return the newest job that matches, as `print_job`; False if none does.
///
/// CLI Example:
///
///     salt-run jobs.last_run
///     salt-run jobs.last_run function=cmd.run
#[function]
pub fn last_run(
    context: &RunnerContext,
    /// The returner to read from (the master's job cache); a configured ext_job_cache takes precedence.
    ext_source: Option<String>,
    /// The outputter of the result.
    outputter: Option<String>,
    /// A mapping, of which one pair must be in the job's metadata.
    #[default]
    metadata: Value,
    /// Globs.
    #[default]
    function: Value,
    /// Globs.
    #[default]
    target: Value,
    /// Publish progress events (False).
    #[default(false)]
    display_progress: bool,
) -> CallResult {
    let cache = cache(context, ext_source.as_deref())?;
    publish_search(context, display_progress, &*cache);
    if metadata.is_truthy() && metadata.as_map().is_none() {
        return Ok(false.into());
    }
    let search = Search::new(metadata, &function, &target, &Value::Nil, &Value::Nil)?;
    let newest = search.jobs(&*cache, Some(1))?.pop();
    match newest {
        Some((jid, _)) => Ok(with_outputter(print(context, &*cache, &jid)?, outputter)),
        None => Ok(Value::Bool(false)),
    }
}

/// Return which minions returned success for a job.
///
/// CLI Example:
///
///     salt-run jobs.exit_success 20261120235852025555
#[function]
pub fn exit_success(
    context: &RunnerContext,
    /// The job id.
    jid: String,
    /// The returner to read from (the master's job cache); a configured ext_job_cache takes precedence.
    ext_source: Option<String>,
) -> CallResult {
    let (cache, jid) = (cache(context, ext_source.as_deref())?, parse(&jid)?);
    let mut result: Map = Map::new();
    if let Some(load) = load(&*cache, &jid)? {
        result.extend(expected(&load).into_iter().map(|id| (id, Value::Bool(false))));
    }
    for (id, one) in &returns(&*cache, &jid)? {
        // The return of a master's own call contains its `success`.
        let of_call =
            one.get("return").filter(|value| *id == context.master.id.as_str().into() && value.get("fun").is_some());
        let one = of_call.unwrap_or(one);
        let good = one.get("retcode").and_then(Value::as_i64).unwrap_or(0) == 0
            && one.get("success").and_then(Value::as_bool).unwrap_or(true);
        result.insert(id.clone(), good.into());
    }
    Ok(result.into())
}

/// Return the jobs that are running on minions.
///
/// CLI Example:
///
///     salt-run jobs.active
#[function]
pub fn active(
    context: &RunnerContext,
    /// Publish progress events (False).
    #[default(false)]
    display_progress: bool,
) -> CallResult {
    let master = &context.master;
    let request = PublishRequest::new("*", "saltutil.running", &context.caller.user);
    let gather = master.config.gather_job_timeout.seconds();
    let running = context.wait(master.jobs.publish_and_wait(request, gather)).map_err(CallError::execution)?;
    // As in Salt, the first event follows the responses.
    publish_progress(context, display_progress, || {
        let ids: Vec<Value> = running.returned.iter().map(|(id, _)| id.as_str().into()).collect();
        format!("Attempting to contact minions: {}", python::repr(&ids.into()))
    });
    let mut active = Map::new();
    for (id, mut answer) in running.returned {
        publish_progress(context, display_progress, || format!("Received reply from minion {id}"));
        let jobs = answer.swap_remove("return").unwrap_or_default();
        for job in jobs.as_list().unwrap_or_default() {
            let Some(jid) = job.get("jid").and_then(Value::as_str).and_then(|jid| jid.parse::<Jid>().ok()) else {
                continue;
            };
            let entry = active.entry(Value::from(&jid)).or_insert_with(|| {
                let load = Load::from_map(job.as_map().cloned().unwrap_or_default()).ok();
                let mut entry = load.as_ref().map(Load::summary).unwrap_or_default();
                entry.insert("Running".into(), Value::List(Vec::new()));
                entry.insert("Returned".into(), Value::List(Vec::new()));
                entry.into()
            });
            let pid = job.get("pid").cloned().unwrap_or_default();
            if let Some(Value::List(list)) = entry.as_map_mut().and_then(|entry| entry.get_mut("Running")) {
                list.push(Value::Map([(Value::from(id.as_str()), pid)].into_iter().collect()));
            }
        }
    }
    let cache = cache(context, None)?;
    for (jid, entry) in &mut active {
        let Ok(jid) = jid.to_string().parse() else { continue };
        let returned: Vec<Value> = returns(&*cache, &jid)?.into_keys().collect();
        if let Some(entry) = entry.as_map_mut() {
            entry.insert("Returned".into(), returned.into());
        }
    }
    Ok(active.into())
}

/// Return the runner and wheel calls that are running on the master, such as those of its schedule, and this one.
///
/// CLI Example:
///
///     salt-run jobs.master
#[function]
pub fn master(context: &RunnerContext) -> CallResult {
    Ok(context.calls.running().into_iter().map(Value::Map).collect::<Vec<_>>().into())
}

/// Publishes a progress message, if the caller requested them.
fn publish_progress(context: &RunnerContext, is_requested: bool, message: impl FnOnce() -> String) {
    if is_requested {
        context.progress(&message());
    }
}

/// Publishes a message about the search in this returner, if the caller requested progress events.
fn publish_search(context: &RunnerContext, is_requested: bool, cache: &dyn Returner) {
    publish_progress(context, is_requested, || format!("Querying returner {} for jobs.", cache.name()));
}

fn parse(jid: &str) -> Result<Jid, CallError> {
    jid.parse().map_err(CallError::execution)
}

/// Returns the returner `ext_job_cache` if it is set, else the named one, else the job cache. First waits, for at most
/// a second, until the job cache has stored all jobs published so far.
pub(super) fn cache(context: &RunnerContext, ext_source: Option<&str>) -> Result<Arc<dyn Returner>, CallError> {
    context.wait(context.master.events.job_cache_caught_up(Duration::from_secs(1)));
    let config = &context.master.config;
    let named = [config.ext_job_cache.as_deref(), ext_source].into_iter().flatten().find(|name| !name.is_empty());
    match named.filter(|name| *name != config.master_job_cache) {
        None => Ok(Arc::clone(&context.storage().job_cache)),
        Some(name) => {
            let returner = brine_returners::open(name, &Options::new(&config.opts, None));
            Ok(returner.map_err(CallError::execution)?.into())
        }
    }
}

/// Returns a job and its returns.
pub(super) fn job_and_returns(cache: &dyn Returner, jid: &str) -> Result<(Option<Load>, Map), CallError> {
    let jid = parse(jid)?;
    Ok((load(cache, &jid)?, returns(cache, &jid)?))
}

fn load(cache: &dyn Returner, jid: &Jid) -> Result<Option<Load>, CallError> {
    cache.get_load(jid).map_err(CallError::execution)
}

fn returns(cache: &dyn Returner, jid: &Jid) -> Result<Map, CallError> {
    cache.get_jid(jid).map_err(CallError::execution)
}

fn expected(load: &Load) -> Vec<Value> {
    load.minions().iter().map(Value::from).collect()
}

/// Returns a job with its minions and returns. For an unknown job, the result has an error field.
fn whole(context: &RunnerContext, cache: &dyn Returner, jid: &Jid) -> Result<Map, CallError> {
    let mut job = if let Some(load) = load(cache, jid)? {
        let mut job = load.summary();
        let minions = expected(&load);
        if !minions.is_empty() {
            job.insert("Minions".into(), minions.into());
        }
        job
    } else {
        let error = "Cannot contact returner or no job with this jid";
        map! {"Error" => error, "StartTime" => jid.start_time()}
    };
    job.insert("Result".into(), returns(cache, jid)?.into());
    add_end_time(context, jid, &mut job)?;
    Ok(job)
}

/// Adds the time of the last return of a job, if `job_cache_store_endtime` is set and it is known.
fn add_end_time(context: &RunnerContext, jid: &Jid, job: &mut Map) -> Result<(), CallError> {
    if context.master.config.job_cache_store_endtime {
        let time = context.storage().job_cache.get_end_time(jid).map_err(CallError::execution)?;
        job.extend(time.and_then(end_time).map(|time| ("EndTime".into(), time.into())));
    }
    Ok(())
}

/// Returns a time in microseconds since 1970 as local time, in the form of a job's start time.
fn end_time(micros: u64) -> Option<String> {
    let time = Timestamp::from_microsecond(i64::try_from(micros).ok()?).ok()?.to_zoned(brine_clock::zone());
    Some(format!("{}.{:06}", time.strftime("%Y, %b %d %H:%M:%S"), time.subsec_nanosecond() / 1000))
}

fn print(context: &RunnerContext, cache: &dyn Returner, jid: &Jid) -> Result<Value, CallError> {
    Ok(Value::Map([(Value::from(jid), whole(context, cache, jid)?.into())].into_iter().collect()))
}

fn shown(jobs: Vec<(Jid, Map)>, outputter: Option<String>) -> Value {
    with_outputter(Value::Map(jobs.into_iter().map(|(jid, job)| (Value::from(&jid), job.into())).collect()), outputter)
}

/// Returns a result with its outputter, if one is named.
fn with_outputter(data: Value, outputter: Option<String>) -> Value {
    match outputter.filter(|name| !name.is_empty()) {
        Some(outputter) => map! {"outputter" => outputter, "data" => data}.into(),
        None => data,
    }
}
