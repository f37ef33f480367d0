//! `schedule`: queries and changes the schedule of a running minion over its local event bus.

mod item;
mod refusal;
mod runs;
pub(crate) mod state;
mod switches;
mod transfer;

use std::time::Duration;

use brine_context::local_bus::LocalBusError;
use brine_context::schedule as own;
use brine_context::{Context, Module};
use brine_function::{CallError, CallResult, Functions, function, registry};
use brine_schedule::Schedule;
use brine_system::files;
use brine_value::{Map, Value, map};
use brine_yaml::Style;

use self::item::{build, conflict};

/// Timeout for replies of the minion.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Options of a job that are shown.
const LISTED_OPTIONS: &[&str] = &[
    "name",
    "maxrunning",
    "function",
    "splay",
    "range",
    "when",
    "once",
    "once_fmt",
    "returner",
    "jid_include",
    "args",
    "kwargs",
    "seconds",
    "minutes",
    "hours",
    "days",
    "enabled",
    "return_job",
    "metadata",
    "cron",
    "until",
    "after",
    "return_config",
    "return_kwargs",
    "run_on_start",
    "skip_during_range",
    "run_after_skip_range",
];

pub(super) static MODULE: Module = Module { functions: &[&FUNCTIONS], states: &[&state::FUNCTIONS], ..Module::EMPTY };

/// Execution functions of `schedule`.
pub static FUNCTIONS: Functions<Context> = registry!(
    "schedule",
    [
        list,
        is_enabled,
        purge,
        delete,
        build_schedule_item,
        add,
        modify,
        runs::run_job,
        switches::enable_job,
        switches::disable_job,
        save,
        switches::enable,
        switches::disable,
        reload,
        switches::postpone_job,
        switches::skip_job,
        runs::show_next_fire_time,
        runs::job_status,
        transfer::copy,
        transfer::move_
    ]
);

/// Return the jobs of the schedule, as YAML or as a mapping; of the pillar (`where=pillar`), the configuration
/// (`where=opts`) or both. With `offline`, those saved for the next start.
///
/// CLI Example:
///
///     salt '*' schedule.list
#[function]
pub fn list(
    context: &Context,
    /// Whether internal jobs are listed, too.
    #[default(false)]
    show_all: bool,
    /// Whether disabled jobs are listed.
    #[default(true)]
    show_disabled: bool,
    /// Source of the jobs: `pillar` or `opts`; both by default.
    r#where: Option<String>,
    /// Whether the result is YAML text instead of a mapping.
    #[default(true)]
    return_yaml: bool,
    /// Whether the jobs that are saved for the next start are listed.
    #[default(false)]
    offline: bool,
) -> CallResult {
    let saved = saved(context)?;
    let jobs = if offline { saved.clone() } else { jobs(context, r#where.as_deref()).map_err(CallError::execution)? };
    let mut schedule = shown(jobs, show_all, show_disabled);
    if !return_yaml {
        return Ok(schedule.into());
    }
    for (name, job) in &mut schedule {
        if let Some(job) = job.as_map_mut() {
            job.insert("saved".into(), saved.contains_key(name).into());
        }
    }
    Ok(brine_yaml::dump(&map! {"schedule" => schedule}.into(), Style::BLOCK).into())
}

/// Return whether the schedule is enabled, or the status of one job.
///
/// CLI Example:
///
///     salt '*' schedule.is_enabled name=job_name
#[function]
pub fn is_enabled(
    context: &Context,
    /// Name of the job.
    name: Option<String>,
) -> CallResult {
    let schedule = list(context, false, true, None, false, false)?;
    Ok(match name {
        None => schedule.get("enabled").cloned().unwrap_or_else(|| true.into()),
        Some(name) => schedule.get(&name).cloned().unwrap_or_else(Value::map),
    })
}

/// Delete all jobs of the configuration.
///
/// CLI Example:
///
///     salt '*' schedule.purge
#[function]
pub fn purge(
    context: &Context,
    /// `test`: whether nothing is changed; `persist`: whether the stored schedule is changed, too; `offline`: whether
    /// it is changed without the running minion.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    let (mut comments, mut changes) = (Vec::new(), Map::new());
    let mut schedule = current(context, None, &kwargs)?;
    let names = schedule.keys().map(ToString::to_string);
    let names: Vec<String> = names.filter(|name| name != "enabled" && !name.starts_with("__")).collect();
    for name in names {
        if is_set(&kwargs, "test") {
            comments.push(format!("Job: {name} would be deleted from schedule."));
            continue;
        }
        let gone = if is_set(&kwargs, "offline") {
            schedule.shift_remove(name.as_str()).is_some()
        } else {
            let request = map! {"func" => "delete", "name" => &name, "persist" => persist(&kwargs)};
            let left = ask(context, request, "delete_complete", "schedule")?;
            left.is_some_and(|left| left.get(&name).is_none())
        };
        if gone {
            changes.insert(name.as_str().into(), "removed".into());
            comments.push(format!("Deleted job: {name} from schedule."));
        } else {
            comments.push(format!("Failed to delete job {name} from schedule."));
        }
    }
    if is_set(&kwargs, "offline") && !is_set(&kwargs, "test") {
        own::write(context.config(), &schedule).map_err(CallError::execution)?;
    }
    let comments: Value = comments.into_iter().collect();
    Ok(map! {"comment" => comments, "changes" => changes, "result" => true}.into())
}

/// Delete a job.
///
/// CLI Example:
///
///     salt '*' schedule.delete job1
#[function]
pub fn delete(
    context: &Context,
    /// Name of the job.
    name: String,
    /// `test`, `persist` (True), and `offline`: whether only the stored schedule is changed.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    let failed = || format!("Failed to delete job {name} from schedule.");
    if is_set(&kwargs, "test") {
        return Ok(outcome(true, format!("Job: {name} would be deleted from schedule."), Map::new()));
    }
    let comment = format!("Deleted Job {name} from schedule.");
    let changes = map! {name.as_str() => "removed"};
    if is_set(&kwargs, "offline") {
        let mut schedule = current(context, Some("opts"), &kwargs)?;
        if schedule.shift_remove(name.as_str()).is_none() {
            return Ok(outcome(false, format!("Job {name} does not exist."), Map::new()));
        }
        return Ok(save_for_next_start(context, &schedule, comment, changes));
    }
    let Some(mut request) = job_request(context, "delete", &name, &kwargs)? else {
        return Ok(outcome(false, format!("Job {name} does not exist."), Map::new()));
    };
    request.insert("name".into(), name.as_str().into());
    let left = ask(context, request, "delete_complete", "schedule")?;
    let gone = left.is_some_and(|left| left.get(&name).is_none());
    Ok(if gone { outcome(true, comment, changes) } else { outcome(false, failed(), Map::new()) })
}

/// Return a job in the format of the schedule, from the options of `schedule.add`.
///
/// CLI Example:
///
///     salt '*' schedule.build_schedule_item job1 function='test.ping' seconds=3600
#[function]
pub fn build_schedule_item(
    context: &Context,
    /// Name of the job.
    name: String,
    /// Options of the job: `function`, `job_args`, `job_kwargs`, and when it runs, such as `seconds`, `minutes`,
    /// `hours`, `days`, `cron`, `when` or `once`; those of the state `schedule.present` are described one by one.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    Ok(build(&name, &kwargs, |text| names_time(context, text))
        .map_or_else(|comment| map! {"comment" => comment, "result" => false}.into(), Value::Map))
}

/// Whether a text is the name of a time, below `whens` in pillar or grains.
fn names_time(context: &Context, text: &str) -> bool {
    let has = |map: &Map| map.get("whens").and_then(|whens| whens.get(text)).is_some();
    has(&context.pillar()) || has(&context.grains())
}

/// Add a job. `job_args` and `job_kwargs` are its arguments; it is saved for the next start unless `persist` is
/// false. With `offline` it is only saved.
///
/// CLI Example:
///
///     salt '*' schedule.add job1 function='test.ping' seconds=3600
///     salt '*' schedule.add job2 function='cmd.run' job_args="['date >> /tmp/date.log']" seconds=60
#[function]
pub fn add(
    context: &Context,
    /// Name of the job.
    name: String,
    /// Options of the job: `function`, `job_args`, `job_kwargs`, and when it runs, such as `seconds`, `minutes`,
    /// `hours`, `days`, `cron`, `when` or `once`; those of the state `schedule.present` are described one by one.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    let mut schedule = current(context, None, &kwargs)?;
    if schedule.contains_key(name.as_str()) {
        return Ok(outcome(false, format!("Job {name} already exists in schedule."), Map::new()));
    }
    if name.is_empty() {
        return Ok(outcome(false, "Job name is required.", Map::new()));
    }
    if let Some(comment) = conflict(&kwargs, "Error: ", " or \"cron\" options.") {
        return Ok(outcome(false, comment, Map::new()));
    }
    let refused = refusal::reason(context, &name, &kwargs);
    let job = match refused.map_or_else(|| build(&name, &kwargs, |text| names_time(context, text)), Err) {
        Ok(job) => job,
        Err(comment) => return Ok(map! {"comment" => comment, "result" => false}.into()),
    };
    if is_set(&kwargs, "test") {
        return Ok(outcome(true, format!("Job: {name} would be added to schedule."), Map::new()));
    }
    let (comment, changes) = (format!("Added job: {name} to schedule."), map! {name.as_str() => "added"});
    if is_set(&kwargs, "offline") {
        schedule.insert(name.as_str().into(), job.into());
        return Ok(save_for_next_start(context, &schedule, comment, changes));
    }
    let schedule = map! {name.as_str() => job};
    let request = map! {"func" => "add", "name" => &name, "schedule" => schedule, "persist" => persist(&kwargs)};
    let added = ask(context, request, "add_complete", "schedule")?.is_some_and(|all| all.get(&name).is_some());
    let failed = || outcome(false, format!("Failed to add job {name} to schedule."), Map::new());
    Ok(if added { outcome(true, comment, changes) } else { failed() })
}

/// Replace a job.
///
/// CLI Example:
///
///     salt '*' schedule.modify job1 function='test.ping' seconds=3600
#[function]
pub fn modify(
    context: &Context,
    /// Name of the job.
    name: String,
    /// Options of the job: `function`, `job_args`, `job_kwargs`, and when it runs, such as `seconds`, `minutes`,
    /// `hours`, `days`, `cron`, `when` or `once`; those of the state `schedule.present` are described one by one.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    let mut kwargs = kwargs;
    if let Some(comment) = conflict(&kwargs, "Error: ", " option.") {
        return Ok(outcome(false, comment, Map::new()));
    }
    let mut schedule = current(context, None, &kwargs)?;
    let Some(old) = schedule.get(name.as_str()).and_then(Value::as_map).cloned() else {
        return Ok(outcome(false, format!("Job {name} does not exist in schedule."), Map::new()));
    };
    if let Some(function) = old.get("function") {
        kwargs.entry("function".into()).or_insert(function.clone());
    }
    let refused = refusal::reason(context, &name, &kwargs);
    let new = match refused.map_or_else(|| build(&name, &kwargs, |text| names_time(context, text)), Err) {
        Ok(job) => job,
        Err(comment) => return Ok(map! {"comment" => comment, "result" => false}.into()),
    };
    if new == old {
        return Ok(outcome(true, format!("Job {name} in correct state"), Map::new()));
    }
    let changes = map! {name.as_str() => map! {"old" => old, "new" => new.clone()}};
    if is_set(&kwargs, "test") {
        return Ok(outcome(true, format!("Job: {name} would be modified in schedule."), changes));
    }
    let comment = format!("Modified job: {name} in schedule.");
    if is_set(&kwargs, "offline") {
        schedule.insert(name.as_str().into(), new.into());
        return Ok(save_for_next_start(context, &schedule, comment, changes));
    }
    let request = job_request(context, "modify", &name, &kwargs)?.map(|mut request| {
        request.insert("schedule".into(), new.into());
        ask(context, request, "delete_complete", "schedule")
    });
    let modified = request.transpose()?.flatten().is_some();
    let failed = || outcome(false, format!("Failed to modify job {name} in schedule."), Map::new());
    Ok(if modified { outcome(true, comment, changes) } else { failed() })
}

/// Save the jobs of the configuration for the next start, in `minion.d/_schedule.conf`.
///
/// CLI Example:
///
///     salt '*' schedule.save
#[function]
pub fn save(
    context: &Context,
    /// `test`: whether nothing is done but to say what would be.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    let result_of = |result: bool, comment: &str| Ok(map! {"comment" => comment, "result" => result}.into());
    if is_set(&kwargs, "test") {
        return result_of(true, "Schedule would be saved.");
    }
    let request = map! {"func" => "save_schedule"};
    let answer = context.minion.local.ask("manage_schedule", request, "/salt/minion/minion_schedule_saved", TIMEOUT);
    let answer = answer.map_err(CallError::execution)?;
    let is_saved = answer.is_some_and(|answer| answer.get("complete").is_some_and(Value::is_truthy));
    if is_saved {
        result_of(true, "Schedule (non-pillar items) saved.")
    } else {
        result_of(false, "Failed to save schedule.")
    }
}

/// Reload the jobs of the pillar and of `minion.d/schedule.conf`.
///
/// CLI Example:
///
///     salt '*' schedule.reload
#[function]
pub fn reload(context: &Context) -> CallResult {
    let (mut comments, mut result) = (Vec::new(), true);
    let mut fire = |tag: &str, data: Map, from: &str| {
        let was_sent = context.minion.local.fire(tag, &data).is_ok();
        result &= was_sent;
        let word = if was_sent { "Reloaded" } else { "Failed to reload" };
        comments.push(format!("{word} schedule {from}."));
    };
    if context.pillar().contains_key("schedule") {
        fire("pillar_refresh", Map::new(), "from pillar on minion");
    }
    let path = context.config().config_dir.join("minion.d/schedule.conf");
    if let Some(text) = files::read_if_exists(&path).map_err(CallError::execution)? {
        let schedule = brine_yaml::load_data(&text)
            .map_err(|error| CallError::Execution(format!("{}: {error}", path.display())))?
            .value;
        if schedule.get("schedule").is_some_and(Value::is_truthy) {
            let request = map! {"func" => "reload", "schedule" => schedule};
            fire("manage_schedule", request, "on minion from schedule.conf");
        } else {
            comments.push("Failed to reload schedule on minion.  Saved file is empty or invalid.".into());
            result = false;
        }
    }
    Ok(map! {"comment" => Value::from(comments), "result" => result}.into())
}

fn is_set(kwargs: &Map, name: &str) -> bool {
    kwargs.get(name).is_some_and(Value::is_truthy)
}

fn persist(kwargs: &Map) -> bool {
    kwargs.get("persist").is_none_or(Value::is_truthy)
}

fn outcome(result: bool, comment: impl Into<String>, changes: Map) -> Value {
    map! {"comment" => comment.into(), "result" => result, "changes" => changes}.into()
}

/// Sends a request to the running minion, and returns one field of the reply; `None` on timeout.
fn ask(context: &Context, request: Map, answer: &str, field: &str) -> Result<Option<Value>, CallError> {
    query(context, request, answer, field).map_err(CallError::execution)
}

fn query(context: &Context, request: Map, answer: &str, field: &str) -> Result<Option<Value>, LocalBusError> {
    let tag = format!("/salt/minion/minion_schedule_{answer}");
    let answer = context.minion.local.ask("manage_schedule", request, &tag, TIMEOUT)?;
    Ok(answer.and_then(|mut answer| answer.shift_remove(field)))
}

/// Returns the jobs of the running minion.
fn jobs(context: &Context, place: Option<&str>) -> Result<Map, LocalBusError> {
    let listed = query(context, map! {"func" => "list", "where" => place}, "list_complete", "schedule")?;
    Ok(listed.and_then(|listed| listed.as_map().cloned()).unwrap_or_default())
}

/// Reduces jobs to their shown options.
fn shown(mut schedule: Map, show_all: bool, show_disabled: bool) -> Map {
    schedule.retain(|name, job| {
        let name = name.to_string();
        let Some(job) = job.as_map_mut().filter(|_| Schedule::is_job(&name)) else { return true };
        job.entry("enabled".into()).or_insert(true.into());
        job.retain(|option, value| {
            option.as_str().is_some_and(|name| LISTED_OPTIONS.contains(&name)) && !value.is_nil()
        });
        for value in job.values_mut() {
            match value.as_str() {
                Some("true") => *value = true.into(),
                Some("false") => *value = false.into(),
                _ => {}
            }
        }
        (show_all || !name.starts_with("__")) && (show_disabled || job.get("enabled").is_some_and(Value::is_truthy))
    });
    schedule
}

/// Returns all jobs with their shown options. In test mode, a minion that is not running has none, as in Salt.
fn current(context: &Context, place: Option<&str>, kwargs: &Map) -> Result<Map, CallError> {
    let jobs = if is_set(kwargs, "offline") {
        saved(context)?
    } else {
        match jobs(context, place) {
            Err(LocalBusError::Unreachable(_)) if is_set(kwargs, "test") => Map::new(),
            jobs => jobs.map_err(CallError::execution)?,
        }
    };
    Ok(shown(jobs, true, true))
}

/// Returns the jobs saved for the next start.
fn saved(context: &Context) -> Result<Map, CallError> {
    let path = own::file(context.config());
    let text = files::read_if_exists(&path).map_err(CallError::execution)?.unwrap_or_default();
    let content =
        brine_yaml::load(&text).map_err(|error| CallError::Execution(format!("{}: {error}", path.display())))?;
    Ok(content.get("schedule").and_then(Value::as_map).cloned().unwrap_or_default())
}

/// Saves a schedule for the next start only.
fn save_for_next_start(context: &Context, schedule: &Map, comment: String, changes: Map) -> Value {
    match own::write(context.config(), schedule) {
        Ok(()) => outcome(true, comment, changes),
        Err(error) => outcome(false, error.to_string(), Map::new()),
    }
}

/// Returns the request for a job; `None` if there is no such job.
fn job_request(context: &Context, func: &str, name: &str, kwargs: &Map) -> Result<Option<Map>, CallError> {
    if current(context, Some("opts"), &Map::new())?.contains_key(name) {
        return Ok(Some(map! {"func" => func, "name" => name, "persist" => persist(kwargs)}));
    }
    let in_pillar = current(context, Some("pillar"), &Map::new())?.contains_key(name);
    Ok(in_pillar.then(|| map! {"func" => func, "name" => name, "where" => "pillar", "persist" => false}))
}
