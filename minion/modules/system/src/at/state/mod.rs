//! `at`: states of jobs that run once.

use brine_context::{StateContext, StateReturn};
use brine_function::{Args, CallResult, Functions, Others, ParamList, function, registry};
use brine_value::{Map, Value, map};

use super::{matching, queued, remove};

/// State functions of `at`.
pub static FUNCTIONS: Functions<StateContext> = registry!("at", [present, absent, watch, mod_watch]);

/// The arguments of `at.present` and `at.watch`.
#[derive(Debug, brine_function::Args)]
pub struct PresentArgs {
    /// The command, unless `job` is set.
    name: String,
    /// The time, in the syntax of `at`.
    timespec: String,
    /// A name for the job.
    tag: Option<String>,
    /// The user that the job belongs to.
    user: Option<String>,
    /// The command.
    job: Option<String>,
    /// Whether nothing is added while there is a job with the tag.
    #[default(false)]
    unique_tag: bool,
}

/// Add a job.
///
/// SLS Example:
///
///     reboot_tonight:
///       at.present:
///         - job: /sbin/reboot
///         - timespec: '23:30'
///         - tag: reboot
///         - unique_tag: True
#[function]
pub fn present(context: &StateContext, #[args] args: PresentArgs) -> CallResult {
    added(context, args)
}

/// Remove jobs: the one with the number `jobid`; those that have all given properties, such as `tag`, `runas`, `year`,
/// `month`, `day`, `hour` and `minute`; without any, all jobs.
///
/// SLS Example:
///
///     reboot_tonight:
///       at.absent:
///         - tag: reboot
#[function]
pub fn absent(
    context: &StateContext,
    /// Name of the state.
    name: String,
    /// Number of the job.
    jobid: Option<Value>,
    #[keywords(further_absent)] kwargs: Map,
) -> CallResult {
    if kwargs.contains_key("limit") {
        return Ok(StateReturn::failed(&name, format!("limit parameter not supported {name}")).into());
    }
    if context.test {
        return Ok(StateReturn::predicted(&name, "removed ? job(s)").into());
    }
    let all = queued(&context.call, None)?;
    if let Some(jobid) = jobid.filter(Value::is_truthy) {
        let jobs: Vec<_> = all.into_iter().filter(|job| job.job.to_string() == jobid.to_string()).collect();
        if jobs.is_empty() {
            return Ok(StateReturn::ok(&name, format!("job with id {jobid} not present")).into());
        }
        let removed = remove(&context.call, &jobs)?;
        let comment = format!("job with id {jobid} was removed");
        return Ok(StateReturn::ok(&name, comment).with_changes(map! {"removed" => removed}).into());
    }
    let removed = remove(&context.call, &matching(all, &kwargs))?;
    let report = StateReturn::ok(&name, format!("removed {} job(s)", removed.len()));
    let changes = if removed.is_empty() {
        map! {}
    } else {
        map! {"removed" => removed}
    };
    Ok(report.with_changes(changes).into())
}

/// Add a job when a watched state has changed.
///
/// SLS Example:
///
///     rebuild_later:
///       at.watch:
///         - job: /usr/local/bin/rebuild
///         - timespec: now + 10 minutes
///         - watch:
///           - file: /etc/app.conf
#[function]
pub fn watch(_context: &StateContext, #[args] args: PresentArgs) -> CallResult {
    Ok(StateReturn::ok(&args.name, "").into())
}

/// Add the job of `at.watch`, whose watched state has changed.
///
/// SLS Example:
///
///     rebuild_later:
///       at.watch:
///         - job: /usr/local/bin/rebuild
///         - timespec: now + 10 minutes
///         - watch:
///           - file: /etc/app.conf
#[function]
pub fn mod_watch(
    context: &StateContext,
    #[args] args: PresentArgs,
    /// Further arguments of the watching state.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    if kwargs.get("sfun").and_then(Value::as_str) != Some("watch") {
        return Ok(StateReturn::failed(&args.name, "").into());
    }
    added(context, args)
}

fn added(context: &StateContext, args: PresentArgs) -> CallResult {
    let PresentArgs { name, timespec, tag, user, job, unique_tag } = args;
    let job = job.filter(|job| !job.is_empty()).unwrap_or_else(|| name.clone());
    let tag = tag.filter(|tag| !tag.is_empty());
    if context.test {
        return Ok(StateReturn::predicted(&name, format!("job {job} added and will run on {timespec}")).into());
    }
    if unique_tag {
        let Some(tag) = &tag else {
            return Ok(StateReturn::failed(&name, "no tag provided and unique_tag is set to True").into());
        };
        if !matching(queued(&context.call, None)?, &map! {"tag" => tag}).is_empty() {
            return Ok(StateReturn::ok(&name, format!("atleast one job with tag {tag} exists.")).into());
        }
    }
    let user = user.filter(|user| !user.is_empty());
    if let Some(user) = &user {
        let info = context.call.call("user.info", Args::positional([user.as_str().into()]))?;
        if !info.is_truthy() {
            return Ok(StateReturn::failed(&name, format!("user {user} does not exists")).into());
        }
    }
    let whose = user.as_ref().map(|user| format!(" as {user}")).unwrap_or_default();
    let report = StateReturn::ok(&name, format!("job {job} added and will run{whose} on {timespec}"));
    let args = Args { positional: vec![timespec.into(), job.into()], keyword: map! {"tag" => tag, "runas" => user} };
    let answer = context.call.call("at.at", args)?;
    if let Some(error) = answer.get("error") {
        return Ok(StateReturn::failed(&name, error.to_string()).into());
    }
    let first = answer.get("jobs").and_then(Value::as_list).and_then(<[Value]>::first).and_then(Value::as_map);
    Ok(report.with_changes(first.cloned().unwrap_or_default()).into())
}

/// Describes the further arguments of `at.absent`.
pub(crate) fn further_absent(params: &mut ParamList) {
    params.others(Others::Unused);
    params.further("tag", "a string", "Tag of the jobs.");
    params.further("runas", "a string", "User that the jobs belong to.");
    for name in ["year", "month", "day", "hour", "minute"] {
        params.further(name, "a string", "A part of the time of the jobs.");
    }
    params.further("job", "a string", "Without effect: the argument is called `jobid`.");
    params.further("limit", "a string", "Refused, as in Salt.");
}

#[cfg(test)]
mod tests;
