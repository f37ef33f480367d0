//! `at`: states of jobs that run once.

use brine_context::{StateContext, StateReturn};
use brine_function::{Args, CallResult, Function, function, registry};
use brine_value::{Map, Value, map};

use super::{matching, queued, remove};

/// State functions of `at`.
pub static FUNCTIONS: &[Function<StateContext>] = registry!("at", [present, absent, watch, mod_watch]);

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
#[function]
pub fn present(context: &StateContext, #[args] wanted: PresentArgs) -> CallResult {
    added(context, wanted)
}

/// Remove jobs: the one with the number `jobid`; those that have all given properties, such as `tag`, `runas`, `year`,
/// `month`, `day`, `hour` and `minute`; without any, all jobs.
#[function]
pub fn absent(context: &StateContext, name: String, jobid: Option<Value>, #[keywords] kwargs: Map) -> CallResult {
    if kwargs.contains_key("limit") {
        return Ok(StateReturn::failed(&name, format!("limit parameter not supported {name}")).into());
    }
    if context.test {
        return Ok(StateReturn::would(&name, "removed ? job(s)").into());
    }
    let all = queued(&context.call, None)?;
    if let Some(jobid) = jobid.filter(Value::is_truthy) {
        let found: Vec<_> = all.into_iter().filter(|job| job.job.to_string() == jobid.to_string()).collect();
        if found.is_empty() {
            return Ok(StateReturn::ok(&name, format!("job with id {jobid} not present")).into());
        }
        let removed = remove(&context.call, &found)?;
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
#[function]
pub fn watch(_context: &StateContext, #[args] wanted: PresentArgs) -> CallResult {
    Ok(StateReturn::ok(&wanted.name, "").into())
}

/// Add the job of `at.watch`, whose watched state has changed.
#[function]
pub fn mod_watch(context: &StateContext, #[args] wanted: PresentArgs, #[keywords] kwargs: Map) -> CallResult {
    if kwargs.get("sfun").and_then(Value::as_str) != Some("watch") {
        return Ok(StateReturn::failed(&wanted.name, "").into());
    }
    added(context, wanted)
}

fn added(context: &StateContext, wanted: PresentArgs) -> CallResult {
    let PresentArgs { name, timespec, tag, user, job, unique_tag } = wanted;
    let job = job.filter(|job| !job.is_empty()).unwrap_or_else(|| name.clone());
    let tag = tag.filter(|tag| !tag.is_empty());
    if context.test {
        return Ok(StateReturn::would(&name, format!("job {job} added and will run on {timespec}")).into());
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::applied;

    #[test]
    fn jobs_are_added_and_removed() {
        let queue = "
            $ atq
            | 1\tThu Nov 26 06:05:00 2026 a ada
            | 2\tTue Nov  9 09:09:00 2027 a root
            $ at -c 1
            | echo hi
            $ at -c 2
            | ### SALT: love
            $ at noon
            ! warning: commands will be executed using /bin/sh
            ! job 2 at Tue Nov  9 09:09:00 2027
            $ at never
            ! Garbled time
            = 1
            $ at -d 1
            $ at -d 2
            $ at -d 1 2
        ";
        let noon = || map! {"name" => "echo x", "timespec" => "noon", "tag" => "love"};
        let with = |mut map: Map, key: &str, value: Value| {
            map.insert(key.into(), value);
            map
        };
        let named = |key: &str, value: Value| map! {"name" => "n", key => value};
        for (function, keyword, test, result, comment, changed) in [
            ("at.present", noon(), false, Some(true), "job echo x added and will run on noon", "tag"),
            ("at.present", noon(), true, None, "job echo x added and will run on noon", ""),
            (
                "at.present",
                with(noon(), "job", "ls".into()),
                false,
                Some(true),
                "job ls added and will run on noon",
                "tag",
            ),
            (
                "at.present",
                with(noon(), "user", "root".into()),
                false,
                Some(true),
                "job echo x added and will run as root on noon",
                "tag",
            ),
            (
                "at.present",
                with(noon(), "user", "no-such".into()),
                false,
                Some(false),
                "user no-such does not exists",
                "",
            ),
            ("at.present", with(noon(), "timespec", "never".into()), false, Some(false), "invalid timespec", ""),
            (
                "at.present",
                with(noon(), "unique_tag", true.into()),
                false,
                Some(true),
                "atleast one job with tag love exists.",
                "",
            ),
            ("at.watch", noon(), false, Some(true), "", ""),
            (
                "at.mod_watch",
                with(noon(), "sfun", "watch".into()),
                false,
                Some(true),
                "job echo x added and will run on noon",
                "tag",
            ),
            ("at.absent", map! {"name" => "n"}, false, Some(true), "removed 2 job(s)", "removed"),
            ("at.absent", map! {"name" => "n"}, true, None, "removed ? job(s)", ""),
            ("at.absent", named("tag", "love".into()), false, Some(true), "removed 1 job(s)", "removed"),
            ("at.absent", named("tag", "rose".into()), false, Some(true), "removed 0 job(s)", ""),
            ("at.absent", named("jobid", 1.into()), false, Some(true), "job with id 1 was removed", "removed"),
            ("at.absent", named("jobid", 9.into()), false, Some(true), "job with id 9 not present", ""),
            ("at.absent", named("limit", 1.into()), false, Some(false), "limit parameter not supported n", ""),
        ] {
            let report = applied(function, keyword, test, queue);
            assert_eq!((report.result, &*report.comment), (result, comment), "{function}");
            assert!(!test || report.ran.is_empty(), "{}", report.ran);
            let has = report.changes.get(changed).is_some() || (changed.is_empty() && !report.changes.is_truthy());
            assert!(has, "{function} {comment}: {}", report.changes);
        }
    }
}
