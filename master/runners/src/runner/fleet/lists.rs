//! The lists of minions and jobs.

use brine_function::{Args, CallError, CallResult, function};
use brine_job::Load;
use brine_master_jobs::activity::ORCHESTRATIONS;
use brine_master_store::keys::KeyState;
use brine_value::{Map, Value, map};

use super::{activity, is_running, now, outcome, outcome_in_numbers};
use crate::runner::RunnerContext;
use crate::runner::jobs::cache;
use crate::runner::jobs::search::Search;

/// The functions of runner and wheel calls, and those by which consoles ask minions for documentation.
const CALLS: [&str; 5] = ["runner.", "wheel.", "sys.list_functions", "sys.argspec", "sys.doc"];
/// The maximum number of jobs on a page.
const MAX_PAGE: usize = 1000;
/// The maximum length of the arguments of a listed job, in bytes: longer ones are left out.
const MAX_ARGUMENTS: usize = 2000;

/// Return all minions: their state, system, version and address, the time at which they were last seen, and the result
/// of their last highstate of the last day. Times are in microseconds since 1970. `states` of a highstate is the number
/// of its states; `pending` ones would change with `test=True`, that is, the minion drifted.
///
/// CLI Example:
///
///     salt-run fleet.minions
#[function]
pub fn minions(context: &RunnerContext) -> CallResult {
    let storage = context.storage();
    let accepted = storage.accepted().map_err(CallError::execution)?;
    let present = context.master.facts.present_addresses();
    let present: std::collections::HashMap<&str, _> = present.iter().map(|(id, ip)| (id.as_str(), ip)).collect();
    let now = now();
    let mut listed = Vec::with_capacity(accepted.len());
    let is_complete = {
        let mut systems = context.master.activity.systems.lock();
        let systems = systems.of(&storage.minion_data, &accepted);
        let activity = activity(context, now)?;
        for id in &accepted {
            let (system, lately) = (systems.get(id), activity.tally.minion(id));
            let connected = present.get(id.as_str());
            let state = match connected {
                Some(_) => "connected",
                None if system.is_none() && lately.is_none() => "never",
                None => "away",
            };
            let mut one = map! {"id" => id.as_str(), "state" => state};
            let mut put = |name: &str, value: Value| _ = one.insert(name.into(), value);
            if let Some(system) = system {
                put("os", system.os.as_str().into());
                put("version", system.version.as_str().into());
            }
            match (connected, system) {
                (Some(address), _) => put("address", address.to_string().into()),
                (None, Some(system)) => put("address", system.address.as_str().into()),
                (None, None) => {}
            }
            match (connected, lately) {
                (Some(_), _) => put("seen", now.into()),
                (None, Some(lately)) => put("seen", lately.seen.into()),
                (None, None) => {}
            }
            if let Some(run) = lately.and_then(|lately| lately.highstate.as_ref()) {
                put("highstate", run.to_value().into());
            }
            listed.push(Value::from(one));
        }
        activity.is_complete
    };
    for (name, state) in [
        ("minions_pre", KeyState::Pending),
        ("minions_rejected", KeyState::Rejected),
        ("minions_denied", KeyState::Denied),
    ] {
        let ids = storage.keys.list(state).map_err(CallError::execution)?;
        listed.extend(ids.into_iter().map(|id| Value::from(map! {"id" => id, "state" => name})));
    }
    Ok(map! {"complete" => is_complete, "time" => now, "minions" => listed}.into())
}

/// The filters of a list of jobs.
#[derive(Args)]
pub struct JobFilters {
    /// Globs of functions.
    function: Option<String>,
    /// Globs of targets.
    target: Option<String>,
    /// The user who started the job.
    user: Option<String>,
    /// The time of the oldest job.
    since: Option<String>,
    /// The time of the newest job.
    until: Option<String>,
    /// `failed`, `missing`, `running`, `done`, or `bad` for those that failed or lack returns.
    outcome: Option<String>,
    /// Whether runner and wheel calls other than orchestrations, and questions for documentation, are listed.
    #[default(false)]
    calls: bool,
    /// The job id before which the page begins.
    before: Option<String>,
    /// The number of jobs, at most 1000.
    #[default(100)]
    limit: usize,
}

/// Return the newest jobs with their outcome: how many minions were asked, are done, and failed. Times are in
/// microseconds since 1970. `outcome` is missing for jobs of which the last day has no event. `next` is the `before` of
/// the next page.
///
/// function, target: globs, with commas between them. user: the user. since, until: the time of the oldest and of the
/// newest job. outcome: `failed`, `missing`, `running`, `done`, or `bad` for those that failed or lack returns. calls:
/// whether runner and wheel calls other than orchestrations, and questions for documentation, are listed (False, unless a
/// function is given). before: the job id before which the page begins.
/// limit: the number of jobs (100).
///
/// CLI Example:
///
///     salt-run fleet.jobs outcome=bad
#[function]
pub fn jobs(context: &RunnerContext, #[args] filters: JobFilters) -> CallResult {
    let outcome_filter = filters.outcome.as_deref().filter(|outcome_filter| !outcome_filter.is_empty());
    if let Some(outcome_filter) = outcome_filter
        .filter(|outcome_filter| !["failed", "missing", "running", "done", "bad"].contains(outcome_filter))
    {
        let expected = "expected failed, missing, running, done or bad";
        return Err(CallError::execution(format!("outcome is invalid: {expected}, got {outcome_filter}")));
    }
    let limit = filters.limit.clamp(1, MAX_PAGE);
    let text = |value: &Option<String>| value.as_deref().map_or(Value::Nil, Value::from);
    let search = Search::new(
        Value::Nil,
        &text(&filters.function),
        &text(&filters.target),
        &text(&filters.since),
        &text(&filters.until),
    )?;
    let cache = cache(context, None)?;
    let now = now();
    let state = activity(context, now)?;
    let outcomes = state.tally.jobs();
    let accepts = |outline: &brine_returners::JobOutline<'_>| {
        filters.before.as_deref().is_none_or(|before| outline.jid() < before)
            && (filters.calls || filters.function.is_some() || !outline.functions().any(is_call))
            && outcome_filter.is_none_or(|outcome_filter| {
                outcomes.get(outline.jid()).is_some_and(|job| match outcome(job, now) {
                    "failed" if outcome_filter == "running" => is_running(job, now),
                    "failed" | "missing" if outcome_filter == "bad" => true,
                    outcome => outcome == outcome_filter,
                })
            })
            && search.accepts(outline)
    };
    // The user is not part of outlines.
    let most = if filters.user.is_some() { None } else { Some(limit + 1) };
    let mut loads = cache.find_jobs(most, &accepts).map_err(CallError::execution)?;
    if let Some(user) = &filters.user {
        loads.retain(|load| load.user() == user);
    }
    let has_more = loads.len() > limit;
    loads.truncate(limit);
    let next = loads.last().filter(|_| has_more).map(|load| load.jid().clone());
    let listed: Vec<Value> = loads
        .iter()
        .map(|load| {
            let mut entry = line(load);
            if let Some(job) = outcomes.get(load.jid().as_str()) {
                entry.extend(outcome_in_numbers(job, now));
            }
            entry.into()
        })
        .collect();
    let mut page = map! {"complete" => state.is_complete, "time" => now, "jobs" => listed};
    page.extend(next.map(|jid| ("next".into(), Value::from(&jid))));
    Ok(page.into())
}

/// Whether a function is a call of the master that is no orchestration, or a question for documentation.
fn is_call(function: &str) -> bool {
    CALLS.iter().any(|call| function.starts_with(call)) && !function.starts_with(ORCHESTRATIONS)
}

/// Returns a job as lists show it.
fn line(load: &Load) -> Map {
    let arguments = Value::from(load.arg().to_vec());
    let is_long = brine_value::json::to_json(&arguments).len() > MAX_ARGUMENTS;
    let started = load.time().and_then(|time| time.to_zoned(brine_clock::zone()).ok());
    let started = started.and_then(|time| u64::try_from(time.timestamp().as_microsecond()).ok());
    let mut line = map! {
        "jid" => load.jid(),
        "fun" => load.fun().clone(),
        "arg" => if is_long { Value::from("...") } else { arguments },
        "tgt" => load.tgt().clone(),
        "tgt_type" => load.tgt_type(),
        "user" => load.user(),
    };
    line.extend(started.map(|started| ("started".into(), started.into())));
    line
}
