//! Handles the events of the execution module `schedule`, which query and change the schedule.

use std::sync::Arc;

use brine_context::Minion;
use brine_context::schedule::write;
use brine_schedule::Schedule;
use brine_system::files::FileError;
use brine_value::{Map, Value, list, map};

use super::with_schedule;

/// The result of an event `manage_schedule`.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    /// Salt's tag and fields of the reply.
    pub reply: Option<(String, Map)>,
    /// A job to run now.
    pub run: Option<brine_schedule::Job>,
}

/// Handles an event `manage_schedule`.
pub(crate) fn answer(minion: &Minion, data: &Map) -> Answer {
    let text = |name: &str| data.get(name).and_then(Value::as_str).unwrap_or_default();
    let (func, name) = (text("func"), text("name"));
    let pillar = Arc::clone(&minion.pillar.read());
    let of_pillar = pillar.get("schedule").and_then(Value::as_map).cloned().unwrap_or_default();
    let mut schedule = minion.schedule.lock();
    let mut changed = false;
    let tag = match func {
        "add" => {
            let job = data.get("schedule").and_then(Value::as_map).and_then(|jobs| jobs.first());
            let Some((new, config)) = job else {
                tracing::error!("an event manage_schedule adds a job without a name");
                return Answer::default();
            };
            let mut config = config.clone();
            if let Some(config) = config.as_map_mut() {
                config.entry("enabled".into()).or_insert(true.into());
            }
            if of_pillar.contains_key(new) {
                tracing::warn!("the scheduled job {new} is in the pillar: change it there");
            } else {
                schedule.config_mut().insert(new.clone(), config);
                changed = true;
            }
            "add_complete"
        }
        "delete" | "modify" => {
            let had = schedule.config_mut().shift_remove(name);
            changed = had.is_some() || !of_pillar.contains_key(name);
            if changed {
                schedule.forget(Some(name));
                if func == "modify" {
                    schedule.config_mut().insert(name.into(), data.get("schedule").cloned().unwrap_or_default());
                }
            } else {
                tracing::warn!("the scheduled job {name} is in the pillar: change it there");
            }
            "delete_complete"
        }
        "enable" | "disable" => {
            schedule.config_mut().insert("enabled".into(), (func == "enable").into());
            changed = true;
            if func == "enable" { "enabled_complete" } else { "disabled_complete" }
        }
        "enable_job" | "disable_job" => {
            changed =
                change(&mut schedule, name, |job| _ = job.insert("enabled".into(), (func == "enable_job").into()));
            if func == "enable_job" { "enabled_job_complete" } else { "disabled_job_complete" }
        }
        "postpone_job" | "skip_job" => {
            let form = data.get("time_fmt").filter(|form| !form.is_nil()).cloned();
            let form = form.unwrap_or_else(|| "%Y-%m-%dT%H:%M:%S".into());
            let entry = |time: &str| map! {"time" => data.get(time).cloned(), "time_fmt" => form.clone()};
            change(&mut schedule, name, |job| {
                append(job, "skip_explicit", entry("time"));
                if func == "postpone_job" {
                    append(job, "run_explicit", entry("new_time"));
                }
            });
            if func == "postpone_job" { "postpone_job_complete" } else { "skip_job_complete" }
        }
        "reload" => {
            schedule.forget(None);
            let jobs = data.get("schedule").cloned().unwrap_or_default();
            let jobs = jobs.get("schedule").cloned().unwrap_or(jobs);
            schedule.config_mut().extend(jobs.as_map().cloned().unwrap_or_default());
            return Answer::default();
        }
        "save_schedule" => {
            let written = write(&minion.config, schedule.config());
            let fields = map! {"complete" => is_written(written)};
            return Answer { reply: Some(("/salt/minion/minion_schedule_saved".into(), fields)), run: None };
        }
        "list" => {
            let all = match text("where") {
                "pillar" => of_pillar,
                "opts" => schedule.shown(&Map::new()),
                _ => schedule.shown(&pillar),
            };
            return complete("list_complete", "schedule", all.into());
        }
        "get_next_fire_time" => {
            let next = schedule.next_time(name).map(|next| next.strftime("%Y-%m-%dT%H:%M:%S").to_string());
            return complete("next_fire_time_complete", "next_fire_time", next.into());
        }
        "job_status" => {
            let mut data = schedule.shown(&pillar).get(name).and_then(Value::as_map).cloned().unwrap_or_default();
            data.extend(schedule.status(name));
            return complete("job_status_complete", "data", data.into());
        }
        "run_job" => {
            drop(schedule);
            let asked = with_schedule(minion, |schedule, context| schedule.requested_job(name, context));
            let run = match asked {
                Some(Ok(job)) => Some(job),
                Some(Err(error)) => {
                    tracing::error!("scheduled job '{name}': {error}; it does not run");
                    None
                }
                None => {
                    tracing::error!("there is no scheduled job '{name}'");
                    None
                }
            };
            return Answer { reply: None, run };
        }
        _ => {
            tracing::error!(func, "the request in an event manage_schedule is unknown");
            return Answer::default();
        }
    };
    if changed && data.get("persist").is_some_and(Value::is_truthy) {
        is_written(write(&minion.config, schedule.config()));
    }
    complete(tag, "schedule", schedule.shown(&pillar).into())
}

fn complete(tag: &str, field: &str, value: Value) -> Answer {
    let fields = map! {"complete" => true, field => value};
    Answer { reply: Some((format!("/salt/minion/minion_schedule_{tag}"), fields)), run: None }
}

/// Whether a schedule was written; a failure is logged.
fn is_written(written: Result<(), FileError>) -> bool {
    if let Err(error) = &written {
        tracing::error!(%error, "saving the schedule failed");
    }
    written.is_ok()
}

/// Changes a job of the configuration, if it exists.
fn change(schedule: &mut Schedule, name: &str, change: impl FnOnce(&mut Map)) -> bool {
    let job = schedule.config_mut().get_mut(name).and_then(Value::as_map_mut);
    if job.is_none() {
        tracing::warn!("there is no scheduled job {name} in the minion's configuration");
    }
    job.map(change).is_some()
}

fn append(job: &mut Map, name: &str, entry: Map) {
    match job.entry(name.into()).or_insert_with(|| list![]) {
        Value::List(list) => list.push(entry.into()),
        other => *other = list![entry],
    }
}

#[cfg(test)]
mod tests;
