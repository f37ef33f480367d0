//! `salt-run --plan` and `--apply`: plans of orchestrations.

use std::path::{Path, PathBuf};

use brine_auth::ORCHESTRATE;
use brine_config::VERSION;
use brine_function::Args;
use brine_ids::Jid;
use brine_job::plan::{OrchestrationPlan, describe};
use brine_value::{Map, Value, map};

use super::super::client::user;
use super::super::common::ResultPrinter;
use super::super::plan_file;
use crate::ui::print_plain_error;

/// The functions that run an orchestration.
const ORCHESTRATIONS: [&str; 3] = [ORCHESTRATE, "state.orch", "state.sls"];

/// A plan that is made.
pub(super) struct Planning {
    job: Map,
    path: PathBuf,
}

impl Planning {
    /// Creates the planning of a call, and turns its arguments into those of the dry run. The error is one sentence.
    pub(super) fn of(path: &Path, fun: &str, args: &mut Args, jid: &Jid) -> Result<Self, String> {
        if !ORCHESTRATIONS.contains(&fun) {
            return Err(format!("--plan plans orchestrations ({}): got {fun}", ORCHESTRATIONS.join(", ")));
        }
        let mut job = describe(ORCHESTRATE, args.clone(), &user());
        job.extend(map! {"jid" => jid, "version" => VERSION});
        args.keyword.shift_remove("test");
        args.keyword.insert("plan".into(), true.into());
        Ok(Planning { job, path: path.to_owned() })
    }

    /// Shows a plan, and keeps it if a minion would change. Returns false for a result without steps: an orchestration
    /// that does not compile.
    pub(super) fn finish(self, data: &Value, printer: &mut ResultPrinter) -> anyhow::Result<bool> {
        let Some(steps) = data.get("steps") else { return Ok(false) };
        let plan = OrchestrationPlan::new(self.job, steps.clone())?;
        printer.show(&plan.map().clone().into(), "plan")?;
        if plan.steps().values().any(Value::is_truthy) {
            plan_file::write(&self.path, plan.map())?;
            let name = self.path.display();
            print_plain_error(format_args!("the plan is kept in {name}: `salt-run --apply {name}` applies it"));
        }
        Ok(true)
    }
}

/// Returns the function and its arguments that apply a kept plan.
pub(super) fn applying(path: &Path) -> anyhow::Result<(String, Args)> {
    let map = plan_file::read_map(path)?;
    if let Some(fun) = map.get("fun").and_then(Value::as_str).filter(|fun| *fun != ORCHESTRATE) {
        let name = path.display();
        anyhow::bail!("{name} is the plan of {fun}: apply it by `salt --apply {name}`");
    }
    let plan = OrchestrationPlan::from_map(map)?;
    let mut args = Args::from_wire(plan.arg());
    args.keyword.insert("plan".into(), plan.steps().into());
    Ok((ORCHESTRATE.to_owned(), args))
}
