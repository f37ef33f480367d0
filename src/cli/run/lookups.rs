//! Calls that name a job or a batch that the master does not know: failures, where Salt's tool succeeds.

use brine_function::Args;
use brine_value::{Value, map};

use super::super::client::MasterClient;

/// Functions whose result is empty for an unknown job.
const BY_MINION: &[&str] = &["jobs.lookup_jid", "jobs.exit_success"];
/// The function whose result says whether a job is known.
const LIST_JOB: &str = "jobs.list_job";

/// Returns why a call with this result found nothing, if the job or batch that it names is unknown to the master.
pub(super) async fn unknown(client: &MasterClient, fun: &str, args: &Args, result: &Value) -> Option<String> {
    let argument = |name: &str, position: usize| {
        args.keyword.get(name).or_else(|| args.positional.get(position)).cloned().unwrap_or_default()
    };
    let jid = argument("jid", 0);
    let is_unknown = match fun {
        LIST_JOB => has_error(result),
        "jobs.print_job" => result.get(&jid.to_string()).is_some_and(has_error),
        _ if BY_MINION.contains(&fun) && !result.is_truthy() => {
            let source = argument("ext_source", 1);
            let question = Args::keyword(map! {"jid" => jid.clone(), "ext_source" => source});
            // Users without a permission for the question have their answer already.
            client.ask_runner(LIST_JOB, question).await.is_ok_and(|job| has_error(&job))
        }
        // As in Salt, an unknown profile leaves the URL.
        "sdb.get" if argument("uri", 0) == *result && result.to_string().starts_with("sdb://") => {
            return Some(format!(
                "{result} names no value: its profile is an option of the master's configuration, with a 'driver'"
            ));
        }
        "salt.execute" | "survey.hash" | "survey.diff" if !result.is_truthy() => {
            return Some(format!("no minion returned: '{}' matches none that is connected", argument("tgt", 0)));
        }
        "reactor.add" | "reactor.delete" if result.get("status") == Some(&Value::Bool(false)) => {
            return Some("nothing is changed: `salt-run reactor.list` shows the entries".to_owned());
        }
        "batch.stop" | "batch.status" if !result.is_truthy() => {
            return Some(format!(
                "no batch with the job id {jid} is known: `salt-run batch.list_active` lists the running ones"
            ));
        }
        _ => false,
    };
    is_unknown.then(|| {
        format!("no job {jid} is in the job cache: `salt-run jobs.list_jobs` lists those that are, which `keep_jobs_seconds` removes")
    })
}

/// Whether a job is unknown and has no returns.
fn has_error(job: &Value) -> bool {
    job.get("Error").is_some() && !job.get("Result").is_some_and(Value::is_truthy)
}
