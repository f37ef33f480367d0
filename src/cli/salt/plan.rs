//! Plans: the dry runs of `--plan`, which are shown as one page and kept in a file, and `--apply`.

use std::process::ExitCode;

use brine_auth::{APPLY_PLAN, PLANNED};
use brine_config::VERSION;
use brine_function::Args;
use brine_ids::Jid;
use brine_job::plan::{self, Groups, Plan};
use brine_value::{Map, Value, map};
use brine_wire::PublishRequest;

use super::super::client::user;
use super::super::common::ResultPrinter;
use super::super::plan_file;
use super::arguments::Arguments;
use super::job::Job;
use super::{FAILURE, NO_MINION, NOTHING_RETURNED};
use crate::ui::print_plain_error;

/// The dry runs of a job that is planned.
pub(super) struct Planning {
    /// The job as it will be applied.
    job: Map,
    groups: Groups,
    jid: String,
}

impl Planning {
    /// Creates the planning of a job, and turns the request into its dry run.
    pub(super) fn of(request: &mut PublishRequest) -> Result<Self, String> {
        let fun = request.fun.as_str().unwrap_or_default().to_owned();
        if !PLANNED.contains(&fun.as_str()) {
            return Err(format!("--plan plans {}: got {}", PLANNED.join(", "), request.fun));
        }
        let args = Args::from_wire(&request.arg);
        let most = usize::from(fun != "state.highstate");
        if args.positional.len() > most {
            return Err(format!(
                "--plan: give the arguments of {fun} other than SLS files by name, such as pillar='...'"
            ));
        }
        let mut job = plan::describe(&fun, args.clone(), request.user.as_str());
        job.extend(map! {
            "tgt" => request.tgt.clone(), "tgt_type" => request.tgt_type.as_str(), "version" => VERSION,
        });
        request.arg = plan::dry_run(args).to_wire();
        Ok(Planning { job, groups: Groups::default(), jid: String::new() })
    }

    /// Sets the job id of the dry runs.
    pub(super) fn set_jid(&mut self, jid: &Jid) {
        self.jid = jid.to_string();
    }

    /// Adds the return of a minion.
    pub(super) fn returned(&mut self, id: &str, value: &Value) {
        self.groups.add(id, value, &self.jid);
    }

    /// Adds a minion that did not answer.
    pub(super) fn silent(&mut self, id: &str) {
        self.groups.add_silent(id);
    }

    /// Shows the plan and keeps it in the file of `--plan`.
    pub(super) async fn finish(
        self,
        job: &Job<'_>,
        arguments: &Arguments,
        mut printer: ResultPrinter,
    ) -> anyhow::Result<ExitCode> {
        if self.groups.is_empty() {
            print_plain_error(NOTHING_RETURNED);
            return Ok(ExitCode::from(NO_MINION));
        }
        let has_failures = self.groups.has_failures();
        let mut of_job = self.job;
        of_job.insert("jid".into(), self.jid.as_str().into());
        let mut plan = Plan::new(of_job, self.groups.to_value())?;
        let changes = !plan.minions().is_empty();
        if arguments.plan_approval && changes {
            // The master makes the plan that is approved from the returns that it has received.
            let stored_plan =
                job.client.ask_runner("plan.create", Args::positional([self.jid.as_str().into()])).await?;
            let id = stored_plan.get("id").and_then(Value::as_str).unwrap_or_default().to_owned();
            plan.insert("id", id);
        }
        printer.show(&plan.map().clone().into(), "plan")?;
        if let (Some(path), true) = (&arguments.plan, changes) {
            plan_file::write(path, plan.map())?;
            let name = path.display();
            match plan.id() {
                Some(id) => print_plain_error(format_args!(
                    "plan {id} is kept in {name}: once another user has run `salt-run plan.approve {id}`, \
                     `salt --apply {name}` applies it"
                )),
                None => print_plain_error(format_args!("the plan is kept in {name}: `salt --apply {name}` applies it")),
            }
        }
        Ok(if has_failures { arguments.statuses.of(FAILURE) } else { ExitCode::SUCCESS })
    }
}

/// Returns the job that applies a plan; `None` if nothing would change.
pub(super) fn request(plan: &Plan) -> Option<PublishRequest> {
    let minions = plan.minions();
    if minions.is_empty() {
        return None;
    }
    Some(PublishRequest {
        tgt: minions.into(),
        tgt_type: "list".to_owned(),
        arg: plan.apply_arg(),
        ..PublishRequest::new("*", APPLY_PLAN, &user())
    })
}

#[cfg(test)]
mod tests {
    use brine_value::{Value, list};

    use super::*;

    #[test]
    fn other_jobs_are_refused() {
        for (fun, arg) in [("cmd.run", list!["x"]), ("state.highstate", list![true]), ("state.sls", list!["a", true])] {
            let arg = arg.as_list().map(<[Value]>::to_vec).unwrap_or_default();
            let mut request = PublishRequest { arg, ..PublishRequest::new("*", fun, "root") };
            assert!(Planning::of(&mut request).is_err(), "{fun}");
        }
    }
}
