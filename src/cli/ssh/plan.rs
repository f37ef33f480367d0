//! `salt-ssh ... --plan` and `--apply`.

use std::path::PathBuf;

use brine_auth::{APPLY_PLAN, PLANNED};
use brine_config::{MasterConfig, VERSION};
use brine_function::Args;
use brine_ids::Jid;
use brine_job::plan::{self, Groups, Plan};
use brine_ssh::Call;
use brine_value::{Map, Value, map};

use super::super::client;
use super::super::common::ResultPrinter;
use super::super::plan_file;
use super::arguments::Arguments;
use crate::ui::print_plain_error;

/// A plan that is made.
pub(super) struct Planning {
    /// The job as it will be applied.
    pub job: Map,
    /// The file that keeps the plan.
    pub path: PathBuf,
}

impl Planning {
    /// Shows the plan, and keeps it if a host would change.
    pub(super) fn finish(&self, groups: &Groups, mut printer: ResultPrinter) -> anyhow::Result<()> {
        let plan = Plan::new(self.job.clone(), groups.to_value())?;
        printer.show(&plan.map().clone().into(), "plan")?;
        if !plan.minions().is_empty() {
            plan_file::write(&self.path, plan.map())?;
            let name = self.path.display();
            print_plain_error(format_args!("the plan is kept in {name}: `salt-ssh --apply {name}` applies it"));
        }
        Ok(())
    }
}

/// Returns the dry run of a call that is planned, and the job as it will be applied.
pub(super) fn planned(call: Call, tgt: &Value, kind: &str) -> anyhow::Result<(Call, Map)> {
    match call {
        Call::Function { fun, args, jid, opts } if PLANNED.contains(&fun.as_str()) => {
            let args = Args::from_wire(&args);
            let mut job = plan::describe(&fun, args.clone(), &client::user());
            job.extend(map! {
                "tgt" => tgt.clone(), "tgt_type" => kind, "jid" => jid.as_str(), "version" => VERSION,
            });
            Ok((Call::Function { fun, args: plan::dry_run(args).to_wire(), jid, opts }, job))
        }
        _ => anyhow::bail!("--plan plans {} alone", PLANNED.join(", ")),
    }
}

/// Returns the call that applies a plan.
pub(super) fn applying(plan: &Plan, jid: &Jid, config: &MasterConfig) -> Call {
    Call::Function {
        fun: APPLY_PLAN.to_owned(),
        args: plan.apply_arg(),
        jid: jid.to_string(),
        opts: Arguments::minion_opts(config),
    }
}
