//! The schedule: determines as a function of the time which jobs are due, and runs them.
//!
//! | module | owns |
//! |---|---|
//! | `job` | the configuration of a job |
//! | `cron`, [`dates`] | crontab entries, and informal dates and times |
//! | `runner` | running due jobs on a [`ScheduleHost`]: a minion or a master |

mod cron;
pub mod dates;
mod job;
mod runner;

use std::collections::HashMap;

use brine_value::{Map, Value};
use jiff::SignedDuration;
use jiff::civil::DateTime;

pub use cron::{Cron, CronError};
pub use job::{Job, JobError, Range, ReturnJob, Timing};
pub use runner::{FAILED, RETURN, Run, ScheduleHost, run, start};

/// Options of the whole schedule, which are stored beside its jobs.
const SCHEDULE_OPTIONS: &[&str] = &["enabled", "skip_function", "skip_during_range", "splay"];

/// The interval after which a poll is late: times between it and the previous poll count as missed.
const LATE_AFTER: SignedDuration = SignedDuration::from_secs(60);

/// The inputs of a schedule from its host.
pub struct ScheduleContext<'a> {
    /// The pillar: it may contain further jobs in `schedule`, and names of times in `whens`.
    pub pillar: &'a Map,
    /// The grains: they may contain names of times in `whens`.
    pub grains: &'a Map,
    /// Returns the number of runs in progress of a job, by its name.
    pub running: &'a dyn Fn(&str) -> u64,
}

/// The jobs of the configuration and of the pillar, with the state of each.
pub struct Schedule {
    own: Map,
    jobs: HashMap<String, JobState>,
    /// The time of the last poll.
    last: Option<DateTime>,
    /// Returns a random number between two others, both included.
    random: fn(i64, i64) -> i64,
}

/// The state of a job.
struct JobState {
    config: Value,
    job: Result<Job, JobError>,
    /// The time of the next run, without the splay.
    next: Option<DateTime>,
    /// The random delay of the next run.
    splay: SignedDuration,
    /// The last time of `once` or `when` that has been handled.
    last_handled: Option<DateTime>,
    /// Whether the run at the start is still due (`run_on_start`).
    at_start: bool,
    /// The time after which a skipped run is made up for (`run_after_skip_range`).
    make_up_after: Option<DateTime>,
    last_run: Option<DateTime>,
    /// The reason and the time of the last skipped run.
    skipped: Option<(Skip, DateTime)>,
}

/// The reason why a due job does not run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Skip {
    /// The job or the schedule is disabled.
    Disabled,
    /// The time is outside of `range`.
    NotInRange,
    /// The time is in `skip_during_range`, or in an inverted `range`.
    InSkipRange,
    /// The time is one of `skip_explicit`.
    Explicit,
    /// `until` has passed.
    UntilPassed,
    /// `after` has not passed yet.
    AfterNotPassed,
    /// The maximum number of concurrent runs is reached.
    MaxRunning,
}

impl Skip {
    /// Returns Salt's name of the reason.
    pub fn as_str(self) -> &'static str {
        match self {
            Skip::Disabled => "disabled",
            Skip::NotInRange => "not_in_range",
            Skip::InSkipRange => "in_skip_range",
            Skip::Explicit => "skip_explicit",
            Skip::UntilPassed => "until_passed",
            Skip::AfterNotPassed => "after_not_passed",
            Skip::MaxRunning => "maxrunning",
        }
    }
}

impl Schedule {
    /// Creates the schedule of a configuration.
    pub fn new(own: Map) -> Self {
        Schedule { own, jobs: HashMap::new(), last: None, random: |from, to| rand::random_range(from..=to) }
    }

    /// Returns the configuration: the jobs, and the options of the whole schedule.
    pub fn config(&self) -> &Map {
        &self.own
    }

    /// Returns the configuration mutably. Changes take effect at the next poll.
    pub fn config_mut(&mut self) -> &mut Map {
        &mut self.own
    }

    /// Resets the state of a job, or of all jobs: the times of their last and next run.
    pub fn forget(&mut self, name: Option<&str>) {
        match name {
            Some(name) => _ = self.jobs.remove(name),
            None => self.jobs.clear(),
        }
    }

    /// Returns the jobs of the pillar and of the configuration, which takes precedence, with the options of the
    /// schedule.
    pub fn all(&self, pillar: &Map) -> Map {
        let mut all = of_pillar(pillar);
        all.extend(self.own.clone());
        all
    }

    /// As [`Schedule::all`], with the options that Salt adds to a job after it was polled first and has run.
    pub fn shown(&self, pillar: &Map) -> Map {
        let mut all = self.all(pillar);
        for (name, config) in &mut all {
            let (Some(name), Some(config)) = (name.as_str(), config.as_map_mut()) else { continue };
            let Some(state) = self.jobs.get(name) else { continue };
            let mut set = |option: &str, value: Value| _ = config.entry(option.into()).or_insert(value);
            set("name", name.into());
            let counted = state.job.as_ref().is_ok_and(|job| job.max_running.is_some());
            if counted && state.last_run.is_some() {
                set("jid_include", true.into());
                set("maxrunning", 1.into());
            }
        }
        all
    }

    /// Returns a job that is to run now on request; `None` if there is no job of this name. The inner error is the
    /// reason why the job cannot run.
    pub fn requested_job(&self, name: &str, context: &ScheduleContext<'_>) -> Option<Result<Job, JobError>> {
        let all = self.all(context.pillar);
        let config = all.get(name).filter(|_| Self::is_job(name))?;
        Some(Job::read(name, config).and_then(|job| {
            let full = job.max_running.is_some_and(|limit| (context.running)(&job.name) >= limit);
            if full { Err(JobError::Full) } else { Ok(job) }
        }))
    }

    /// Whether this is the name of a job, and not of an option of the whole schedule.
    pub fn is_job(name: &str) -> bool {
        !SCHEDULE_OPTIONS.contains(&name)
    }

    /// Returns the time of a job's next run, including its splay.
    pub fn next_time(&self, name: &str) -> Option<DateTime> {
        let state = self.jobs.get(name)?;
        state.next?.checked_add(state.splay).ok()
    }

    /// Returns the state of a job as Salt's fields: `_next_fire_time`, `_last_run`, `_skipped`, ...
    pub fn status(&self, name: &str) -> Map {
        let Some(state) = self.jobs.get(name) else { return Map::new() };
        let text = |time: DateTime| Value::from(time.strftime(job::TIME_FORMAT).to_string());
        let mut status = Map::new();
        let mut set = |name: &str, value: Option<Value>| {
            if let Some(value) = value {
                status.insert(name.into(), value);
            }
        };
        set("_next_fire_time", self.next_time(name).map(text));
        set("_last_run", state.last_run.map(text));
        set("_skipped", state.skipped.map(|_| true.into()));
        set("_skip_reason", state.skipped.map(|(skip, _)| skip.as_str().into()));
        set("_skipped_time", state.skipped.map(|(_, time)| text(time)));
        set("_error", state.job.as_ref().err().map(|error| error.to_string().into()));
        status
    }

    /// Returns the jobs that are to run now; `tick` is the time until the next call.
    pub fn due_jobs(&mut self, now: DateTime, tick: SignedDuration, context: &ScheduleContext<'_>) -> Vec<Job> {
        let all = self.all(context.pillar);
        self.jobs.retain(|name, _| all.contains_key(name.as_str()));
        let is_enabled = all.get("enabled").is_none_or(Value::is_truthy);
        let skip_function = all.get("skip_function").and_then(Value::as_str);
        let last = self.last.replace(now);
        if last.is_some_and(|last| now < last) {
            // The clock was set back: otherwise, no job would run until it reaches the planned time again.
            self.jobs.values_mut().for_each(|state| state.next = None);
        }
        let mut due = Vec::new();
        for (name, config) in &all {
            let Some(name) = name.as_str().filter(|name| Self::is_job(name)) else { continue };
            let state = self.jobs.entry(name.to_owned()).or_insert_with(|| JobState::new(name, config, &all));
            if state.config != *config {
                state.change(name, config, &all);
            }
            let Ok(job) = state.job.clone() else { continue };
            let poll = Poll { now, last, tick, context, random: self.random };
            let at_start = std::mem::take(&mut state.at_start);
            let is_due = poll.is_due(state, &job);
            let is_time = is_due || at_start || poll.is_extra(state, &job);
            let mut skip = if !is_enabled || !job.enabled {
                Some(Skip::Disabled)
            } else if is_time {
                poll.skip(state, &job)
            } else {
                None
            };
            let mut run = job.clone();
            if let (Some(function), Some(Skip::NotInRange | Skip::InSkipRange | Skip::Explicit)) = (skip_function, skip)
            {
                function.clone_into(&mut run.function);
                skip = None;
            }
            let full = || job.max_running.is_some_and(|limit| (context.running)(&job.name) >= limit);
            if is_time && skip.is_none() && full() {
                skip = Some(Skip::MaxRunning);
            }
            state.skipped = skip.filter(|_| is_time || skip == Some(Skip::Disabled)).map(|skip| (skip, now));
            if !is_time {
                continue;
            }
            // The run at the start stays due until the range begins, too.
            state.at_start = at_start && skip == Some(Skip::NotInRange);
            if skip.is_none() {
                state.last_run = Some(now);
            }
            let again = matches!(job.timing, Timing::Every(_));
            // A job outside of its range stays due until the range begins.
            if if again { skip != Some(Skip::NotInRange) } else { is_due } {
                state.last_handled = state.next.take();
                poll.plan(state, &job);
            }
            if skip.is_none() {
                due.push(run);
            }
        }
        due
    }
}

fn of_pillar(pillar: &Map) -> Map {
    pillar.get("schedule").and_then(Value::as_map).cloned().unwrap_or_default()
}

impl JobState {
    fn new(name: &str, config: &Value, all: &Map) -> Self {
        let job = read(name, config, all);
        let at_start = job.as_ref().is_ok_and(|job| job.run_on_start);
        JobState {
            config: config.clone(),
            job,
            next: None,
            splay: SignedDuration::ZERO,
            last_handled: None,
            at_start,
            make_up_after: None,
            last_run: None,
            skipped: None,
        }
    }

    /// Applies a changed configuration. If the times of the job differ, its state is reset.
    fn change(&mut self, name: &str, config: &Value, all: &Map) {
        let fresh = JobState::new(name, config, all);
        match (&self.job, &fresh.job) {
            (Ok(old), Ok(new)) if old.timing == new.timing && old.splay == new.splay => {
                self.job = fresh.job;
                self.config = fresh.config;
            }
            _ => *self = fresh,
        }
    }
}

fn read(name: &str, config: &Value, all: &Map) -> Result<Job, JobError> {
    let job = Job::read(name, config).and_then(|job| with_defaults(job, all));
    job.inspect_err(|error| tracing::error!("scheduled job '{name}' is ignored: {error}"))
}

/// Adds the values of the whole schedule to a job without its own.
fn with_defaults(mut job: Job, all: &Map) -> Result<Job, JobError> {
    if let (None, Some(value)) = (&job.skip_during_range, all.get("skip_during_range").filter(|v| v.is_truthy())) {
        job.skip_during_range = Some(job::range("skip_during_range", value)?);
    }
    if let (None, Some(value)) = (job.splay, all.get("splay").filter(|value| value.is_truthy())) {
        job.splay = Some(job::splay(value)?);
    }
    Ok(job)
}

/// One poll of the schedule.
struct Poll<'a> {
    now: DateTime,
    last: Option<DateTime>,
    tick: SignedDuration,
    context: &'a ScheduleContext<'a>,
    random: fn(i64, i64) -> i64,
}

impl Poll<'_> {
    /// Determines the next time of a job that has none, and its random delay.
    fn plan(&self, state: &mut JobState, job: &Job) {
        if state.next.is_none() {
            state.next = self.next(state, job);
            let splay = job.splay.map(|(from, to)| SignedDuration::from_secs((self.random)(from, to)));
            state.splay = splay.unwrap_or_default();
        }
    }

    /// Whether the next time of a job has come. Skips a missed time of `once` and `when`.
    fn is_due(&self, state: &mut JobState, job: &Job) -> bool {
        self.plan(state, job);
        let Some(at) = state.next.and_then(|next| next.checked_add(state.splay).ok()) else { return false };
        match job.timing {
            Timing::Every(_) | Timing::Cron(_) => seconds(at) <= seconds(self.now),
            Timing::Once(_) | Timing::When(_) if at <= self.now && !self.is_first_poll_after(at) => {
                // The time was missed.
                state.last_handled = state.next.take();
                self.plan(state, job);
                let next = state.next.and_then(|next| next.checked_add(state.splay).ok());
                next.is_some_and(|next| self.is_first_poll_after(next))
            }
            Timing::Once(_) | Timing::When(_) => self.is_first_poll_after(at),
            Timing::Never => false,
        }
    }

    /// Whether a job runs now in addition to its own times.
    fn is_extra(&self, state: &mut JobState, job: &Job) -> bool {
        let makes_up = state.make_up_after.take_if(|after| *after < self.now).is_some();
        makes_up || job.run_explicit.iter().any(|time| self.is_first_poll_after(*time))
    }

    /// Whether this is the first poll after a time, and not a late one.
    fn is_first_poll_after(&self, time: DateTime) -> bool {
        let on_time =
            |last: &DateTime| *last <= self.now && self.now.duration_since(*last) <= LATE_AFTER.max(self.tick);
        time <= self.now
            && match self.last.filter(on_time) {
                Some(last) => time > last,
                None => self.now.duration_since(time) < self.tick,
            }
    }

    fn next(&self, state: &JobState, job: &Job) -> Option<DateTime> {
        let now = self.now;
        // A time that has just passed was still ahead at the last poll.
        let is_ahead =
            |time: &DateTime| (*time > now || self.is_first_poll_after(*time)) && Some(*time) != state.last_handled;
        match &job.timing {
            Timing::Every(interval) => now.checked_add(*interval).ok(),
            Timing::Cron(cron) => cron.after(now),
            Timing::Once(time) => Some(*time).filter(is_ahead),
            Timing::When(texts) => {
                let on = |day| texts.iter().filter_map(|text| self.named(text, day)).filter(is_ahead).min();
                on(now.date()).or_else(|| on(now.date().tomorrow().ok()?))
            }
            Timing::Never => None,
        }
    }

    /// Parses an informal time, or resolves its name in pillar or grains.
    fn named(&self, text: &str, day: jiff::civil::Date) -> Option<DateTime> {
        let whens = |map: &Map| map.get("whens").and_then(|whens| whens.get(text)).map(ToString::to_string);
        let text = whens(self.context.pillar).or_else(|| whens(self.context.grains)).unwrap_or_else(|| text.to_owned());
        dates::parse(&text, day)
    }

    /// Returns the reason why a due job does not run, if any.
    fn skip(&self, state: &mut JobState, job: &Job) -> Option<Skip> {
        let (now, today) = (self.now, self.now.date());
        if let Some(range) = &job.range {
            let within = range.on(today).is_some_and(|(start, end)| start <= now && now <= end);
            if within == range.invert {
                return Some(if range.invert { Skip::InSkipRange } else { Skip::NotInRange });
            }
        }
        if let Some((start, end)) = job.skip_during_range.as_ref().and_then(|range| range.on(today))
            && start <= now
            && now <= end
        {
            if job.run_after_skip_range {
                state.make_up_after = Some(end);
            }
            return Some(Skip::InSkipRange);
        }
        if job.skip_explicit.iter().any(|time| self.is_first_poll_after(*time)) {
            return Some(Skip::Explicit);
        }
        let time = |text: &Option<String>| text.as_ref().and_then(|text| dates::parse(text, today));
        if time(&job.until).is_some_and(|until| until <= now) {
            return Some(Skip::UntilPassed);
        }
        time(&job.after).is_some_and(|after| after >= now).then_some(Skip::AfterNotPassed)
    }
}

/// Truncates a time to seconds, so that a poll that is slightly early does not defer a job to the next one.
fn seconds(time: DateTime) -> DateTime {
    time.with().subsec_nanosecond(0).build().unwrap_or(time)
}

#[cfg(test)]
mod tests;
