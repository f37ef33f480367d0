//! `at`: jobs that run once, with the programs `at` and `atq`.

pub(crate) mod state;

use brine_context::programs::run as run_words;
use brine_context::{Context, Module};
use brine_function::{CallError, CallResult, Functions, function, registry};
use brine_host::process::Program;
use brine_host::programs::{argument, program};
use brine_value::{Map, Value, map};
use jiff::civil::DateTime;
use jiff::fmt::strtime;

pub(super) static MODULE: Module = Module { functions: &[&FUNCTIONS], states: &[&state::FUNCTIONS], ..Module::EMPTY };

/// Execution functions of `at`.
pub static FUNCTIONS: Functions<Context> = registry!("at", [atq, atrm, at, atc, jobcheck]);

/// Prefix of the line with the tag in a job's script. It is Salt's, so that each finds the other's jobs.
const TAG: &str = "### SALT: ";

/// A queued or running job.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Queued {
    /// Number of the job.
    pub job: i64,
    date: String,
    time: String,
    queue: String,
    user: String,
    tag: String,
}

impl From<Queued> for Value {
    fn from(job: Queued) -> Self {
        map! {
            "job" => job.job, "date" => job.date, "time" => job.time, "queue" => job.queue, "user" => job.user,
            "tag" => job.tag,
        }
        .into()
    }
}

/// Return the queued and running jobs; with `tag` those with this tag or number.
///
/// CLI Example:
///
///     salt '*' at.atq
///     salt '*' at.atq [tag]
///     salt '*' at.atq [job number]
#[function]
pub fn atq(
    context: &Context,
    /// Tag of the jobs; all by default.
    tag: Option<Value>,
) -> CallResult {
    Ok(listed(queued(context, tag.as_ref())?))
}

/// Remove jobs by their numbers. `all` removes all jobs or, followed by a tag or number, those with it.
///
/// CLI Example:
///
///     salt '*' at.atrm <jobid> <jobid> .. <jobid>
///     salt '*' at.atrm all
///     salt '*' at.atrm all [tag]
#[function]
pub fn atrm(
    context: &Context,
    /// Numbers of jobs; or `all`, which a tag or number may follow.
    #[rest]
    args: Vec<Value>,
) -> CallResult {
    let (jobs, tag) = match &args[..] {
        [] => (Vec::new(), Value::Nil),
        [all, rest @ ..] if all.as_str() == Some("all") => {
            (queued(context, rest.first())?, rest.first().cloned().unwrap_or_default())
        }
        numbers => {
            let ids: Vec<String> = numbers.iter().map(ToString::to_string).collect();
            let mut jobs = queued(context, None)?;
            jobs.retain(|job| ids.contains(&job.job.to_string()));
            (jobs, Value::Nil)
        }
    };
    let removed = remove(context, &jobs)?;
    Ok(map! {"jobs" => map! {"removed" => removed, "tag" => tag}}.into())
}

/// Add a job, and return it. The arguments after `timespec`, a time in the syntax of `at`, are the command.
///
/// tag
///     A name for the job.
///
/// runas
///     The user that the job belongs to.
///
/// CLI Example:
///
///     salt '*' at.at <timespec> <cmd> [tag=<tag>] [runas=<user>]
///     salt '*' at.at '3:05am +3 days' 'bin/myscript' tag=nightly runas=jim
#[function]
pub fn at(
    context: &Context,
    /// The time in the syntax of `at`, and the words of the command.
    #[rest]
    args: Vec<Value>,
    /// `tag`, a name by which the job is found again, and `runas`, the user whose job it is.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    let [timespec, command @ ..] = &args[..] else { return Ok(listed(Vec::new())) };
    if command.is_empty() {
        return Ok(listed(Vec::new()));
    }
    let text = |key: &str| kwargs.get(key).filter(|value| !value.is_nil()).map(ToString::to_string);
    let mut script = command.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ") + "\n";
    if let Some(tag) = text("tag") {
        script.insert_str(0, &format!("{TAG}{tag}\n"));
    }
    let words = ["at".to_owned(), argument(&timespec.to_string())?];
    let program = Program { stdin: Some(script), runas: text("runas"), merge: true, ..program(&words, &[]) };
    let output = context.run_program(&program).map_err(CallError::execution)?;
    if output.stdout.lines().any(|line| line == "Garbled time") {
        return Ok(map! {"jobs" => Vec::<Value>::new(), "error" => "invalid timespec"}.into());
    }
    let number = output.stdout.lines().find_map(|line| line.strip_prefix("job ")?.split(' ').next());
    let Some(number) = number else {
        return Err(CallError::Execution(format!("adding a job failed: {}", output.stdout)));
    };
    Ok(listed(queued(context, Some(&number.into()))?))
}

/// Return the script of a job, with its environment.
///
/// CLI Example:
///
///     salt '*' at.atc <jobid>
#[function]
pub fn atc(
    context: &Context,
    /// Number of the job.
    jobid: Value,
) -> CallResult {
    let script = script(context, &argument(&jobid.to_string())?)?;
    if script.is_empty() {
        return Ok(map! {"error" => format!("invalid job id '{jobid}'")}.into());
    }
    Ok(script.into())
}

/// Return the jobs that have all these properties: `hour`, `minute`, `day`, `month`, `year`, `tag`, `runas`.
///
/// CLI Example:
///
///     salt '*' at.jobcheck runas=jam day=13
///     salt '*' at.jobcheck day=13 month=12 year=13 tag=rose
#[function]
pub fn jobcheck(
    context: &Context,
    /// The properties, at least one.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    if kwargs.keys().all(|key| key.as_str().is_some_and(|key| key.starts_with("__"))) {
        return Ok(map! {"error" => "You have given a condition"}.into());
    }
    let all = queued(context, None)?;
    if all.is_empty() {
        return Ok(listed(all));
    }
    let jobs = matching(all, &kwargs);
    if jobs.is_empty() {
        let note = "No match jobs or time format error";
        return Ok(map! {"jobs" => Vec::<Value>::new(), "note" => note}.into());
    }
    Ok(listed(jobs))
}

fn listed(jobs: Vec<Queued>) -> Value {
    map! {"jobs" => jobs.into_iter().map(Value::from).collect::<Value>()}.into()
}

/// Returns the jobs in the queue: all, or those with this tag or number.
pub(crate) fn queued(context: &Context, tag: Option<&Value>) -> Result<Vec<Queued>, CallError> {
    let words: &[&str] = if context.os_family() == "RedHat" { &["at", "-l"] } else { &["atq"] };
    let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    let output = run_words(context, &words, &[("LC_ALL", "C")])?;
    let mut jobs = Vec::new();
    for mut job in output.stdout.lines().filter_map(parsed) {
        let script = script(context, &job.job.to_string())?;
        let tagged = script.lines().filter_map(|line| line.strip_prefix(TAG)).next_back();
        let is_part = |c: &char| c.is_alphanumeric() || *c == '_';
        job.tag = tagged.unwrap_or_default().chars().take_while(is_part).collect();
        let is_wanted = |tag: &Value| tag.to_string() == job.tag || tag.to_string() == job.job.to_string();
        if tag.is_none_or(|tag| !tag.is_truthy() || is_wanted(tag)) {
            jobs.push(job);
        }
    }
    Ok(jobs)
}

/// Parses a line of `atq`: the number, the time, the queue and the user.
fn parsed(line: &str) -> Option<Queued> {
    let (job, rest) = line.split_once('\t')?;
    let words: Vec<&str> = rest.split_whitespace().collect();
    let (time, [queue, user]) = match words[..] {
        // The format of older releases: `2026-11-25 06:05 a root`.
        [date, time, queue, user] => (format!("{date}T{time}").parse::<DateTime>().ok()?, [queue, user]),
        [_, month, day, time, year, queue, user] => {
            let text = format!("{month} {day} {time} {year}");
            (strtime::parse("%b %d %H:%M:%S %Y", text).ok()?.to_datetime().ok()?, [queue, user])
        }
        _ => return None,
    };
    Some(Queued {
        job: job.trim().parse().ok()?,
        date: time.date().to_string(),
        time: time.strftime("%H:%M:%S").to_string(),
        queue: queue.into(),
        user: user.into(),
        tag: String::new(),
    })
}

fn script(context: &Context, job: &str) -> Result<String, CallError> {
    Ok(run_words(context, &["at".into(), "-c".into(), job.to_owned()], &[])?.stdout)
}

/// Removes jobs and returns their numbers.
pub(crate) fn remove(context: &Context, jobs: &[Queued]) -> Result<Vec<String>, CallError> {
    let numbers: Vec<String> = jobs.iter().map(|job| job.job.to_string()).collect();
    if !numbers.is_empty() {
        let words: Vec<String> = ["at".to_owned(), "-d".to_owned()].into_iter().chain(numbers.clone()).collect();
        let output = run_words(context, &words, &[])?;
        if output.retcode != 0 {
            return Err(CallError::Execution(format!("removing jobs failed: {}", output.stderr)));
        }
    }
    Ok(numbers)
}

/// Returns the jobs that have all these properties.
pub(crate) fn matching(jobs: Vec<Queued>, criteria: &Map) -> Vec<Queued> {
    let text = |key: &str| criteria.get(key).filter(|value| value.is_truthy()).map(ToString::to_string);
    let is = |key: &str, part: Option<&str>| {
        let Some(mut text) = text(key) else { return true };
        if key == "year" && text.len() == 2 {
            text.insert_str(0, "20");
        }
        match (text.parse::<u32>(), part.unwrap_or_default().parse::<u32>()) {
            (Ok(expected), Ok(part)) => expected == part,
            _ => Some(text.as_str()) == part,
        }
    };
    let fits = |job: &Queued| {
        let (mut date, mut time) = (job.date.split('-'), job.time.split(':'));
        is("year", date.next())
            && is("month", date.next())
            && is("day", date.next())
            && is("hour", time.next())
            && is("minute", time.next())
            && text("tag").is_none_or(|tag| tag == job.tag)
            && text("runas").is_none_or(|user| user == job.user)
    };
    jobs.into_iter().filter(fits).collect()
}

#[cfg(test)]
mod tests;
