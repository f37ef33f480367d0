//! Copies and moves jobs to the schedules of other minions.

use brine_context::Context;
use brine_function::{Args, CallResult, function};
use brine_value::{Map, Value, list, map};
use brine_yaml::Style;

use super::{current, delete, is_set};

/// Copy a job to the schedule of other minions, which the master has to allow (`peer`, `schedule.add`).
///
/// CLI Example:
///
///     salt web1 schedule.copy job1 'web*'
#[function]
pub fn copy(
    context: &Context,
    /// Name of the job.
    name: String,
    /// Target of the minions that get the job.
    target: Value,
    /// `test`: whether nothing is done but to say what would be.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    if is_set(&kwargs, "test") {
        return Ok(report(true, format!("Job: {name} would be copied from schedule.")).into());
    }
    send(context, &name, target)
        .map(|sent| sent.report(format!("Copied Job {name} from schedule to minion(s).")).into())
}

/// Move a job to the schedule of other minions, which the master has to allow (`peer`, `schedule.add`). It is kept here
/// if one of them does not add it.
///
/// CLI Example:
///
///     salt web1 schedule.move job1 'web2'
#[function(name = "move")]
pub fn move_(
    context: &Context,
    /// Name of the job.
    name: String,
    /// Target of the minions that get the job.
    target: Value,
    /// `test`: whether nothing is done but to say what would be.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    if is_set(&kwargs, "test") {
        return Ok(report(true, format!("Job: {name} would be moved from schedule.")).into());
    }
    let sent = send(context, &name, target)?;
    if let TransferOutcome::Added(_) = sent {
        delete(context, name.clone(), Map::new())?;
    }
    Ok(sent.report(format!("Moved Job {name} from schedule.")).into())
}

/// The outcome of adding a job to the schedules of other minions.
enum TransferOutcome {
    /// This minion has no job of this name.
    Missing(String),
    /// No minion has answered.
    NoReply,
    /// These minions failed to add it.
    Refused(Vec<Value>),
    /// All minions that answered have added it.
    Added(Vec<Value>),
}

impl TransferOutcome {
    fn report(self, success: String) -> Map {
        let (mut report, minions) = match self {
            TransferOutcome::Missing(name) => return report(false, format!("Job {name} does not exist.")),
            TransferOutcome::NoReply => {
                return report(true, "no servers answered the published schedule.add command".to_owned());
            }
            TransferOutcome::Refused(minions) => {
                (report(false, "the following minions return False".to_owned()), minions)
            }
            TransferOutcome::Added(minions) => (report(true, success), minions),
        };
        report.insert("minions".into(), minions.into());
        report
    }
}

fn report(result: bool, comment: String) -> Map {
    map! {"comment" => comment, "result" => result}
}

/// Adds a job to the schedule of other minions.
fn send(context: &Context, name: &str, target: Value) -> Result<TransferOutcome, brine_function::CallError> {
    let mut job = None;
    for place in ["opts", "pillar"] {
        let schedule = current(context, Some(place), &Map::new())?;
        job = job.or_else(|| schedule.get(name).and_then(Value::as_map).cloned());
    }
    let Some(job) = job else { return Ok(TransferOutcome::Missing(name.to_owned())) };
    let add = list![target, "schedule.add", arguments(name, &job)];
    let add = add.as_list().unwrap_or_default().to_vec();
    let answers = context.call("publish.publish", Args { positional: add, ..Args::default() })?;
    let answers = answers.as_map().cloned().unwrap_or_default();
    if answers.is_empty() {
        return Ok(TransferOutcome::NoReply);
    }
    let is_added = |answer: &Value| answer.get("result").unwrap_or(answer).is_truthy();
    let refused: Vec<Value> =
        answers.iter().filter(|(_, answer)| !is_added(answer)).map(|(minion, _)| minion.clone()).collect();
    Ok(if refused.is_empty() {
        TransferOutcome::Added(answers.keys().cloned().collect())
    } else {
        TransferOutcome::Refused(refused)
    })
}

/// Returns the arguments of `schedule.add` for a job, as words of a command line.
fn arguments(name: &str, job: &Map) -> Vec<String> {
    let word = |option: &str, value: &Value| format!("{option}={}", brine_yaml::dump(value, Style::FLOW).trim_end());
    let mut words = vec![word("name", &name.into())];
    for (option, value) in job {
        let option = match option.to_string().as_str() {
            "name" => continue,
            "args" => "job_args".to_owned(),
            "kwargs" => "job_kwargs".to_owned(),
            other => other.to_owned(),
        };
        words.push(word(&option, value));
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_is_added_with_its_arguments() {
        let job = map! {
            "function" => "cmd.run", "name" => "j", "args" => list!["echo 'a: b'"], "kwargs" => map! {"cwd" => "/"},
            "seconds" => 5, "enabled" => true,
        };
        assert_eq!(arguments("2 a: b", &Map::new()), ["name='2 a: b'"]);
        let expected = ["name=j", "function=cmd.run", "job_args=['echo ''a: b''']", "job_kwargs={cwd: /}", "seconds=5"];
        assert_eq!(arguments("j", &job)[..5], expected);
        assert_eq!(arguments("j", &job)[5], "enabled=true");
    }

    #[test]
    fn transfer_outcomes_are_reported() {
        let minions = || vec!["web1".into()];
        for (sent, expected) in [
            (TransferOutcome::Missing("j".into()), map! {"comment" => "Job j does not exist.", "result" => false}),
            (
                TransferOutcome::NoReply,
                map! {"comment" => "no servers answered the published schedule.add command", "result" => true},
            ),
            (
                TransferOutcome::Refused(minions()),
                map! {"comment" => "the following minions return False", "result" => false, "minions" => minions()},
            ),
            (TransferOutcome::Added(minions()), map! {"comment" => "done", "result" => true, "minions" => minions()}),
        ] {
            assert_eq!(sent.report("done".into()), expected);
        }
    }
}
