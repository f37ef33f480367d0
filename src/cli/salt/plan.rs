//! Plans: the dry runs of `--plan`, which are shown as one page and kept in a file, and `--apply`.

use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context as _;
use brine_auth::{APPLY_PLAN, PLANNED};
use brine_config::VERSION;
use brine_function::Args;
use brine_ids::Jid;
use brine_job::plan::{Groups, PLANNING, Plan};
use brine_system::files::{Attributes, Entry, Flush, Links};
use brine_system::user_files;
use brine_value::{Map, Value, json, map};
use brine_wire::PublishRequest;

use super::super::client::user;
use super::super::common::ResultPrinter;
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
        let mut args = Args::from_wire(&request.arg);
        let most = usize::from(fun != "state.highstate");
        if args.positional.len() > most {
            return Err(format!(
                "--plan: give the arguments of {fun} other than SLS files by name, such as pillar='...'"
            ));
        }
        for name in ["test", PLANNING] {
            args.keyword.shift_remove(name);
        }
        let job = map! {
            "fun" => fun,
            "arg" => args.to_wire(),
            "tgt" => request.tgt.clone(),
            "tgt_type" => request.tgt_type.as_str(),
            "user" => request.user.as_str(),
            "time" => jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
            "version" => VERSION,
        };
        args.keyword.extend(map! {"test" => true, PLANNING => true});
        request.arg = args.to_wire();
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
            let kept = job.client.ask_runner("plan.create", Args::positional([self.jid.as_str().into()])).await?;
            let id = kept.get("id").and_then(Value::as_str).unwrap_or_default().to_owned();
            plan.insert("id", id);
        }
        printer.show(&plan.map().clone().into(), "plan")?;
        if let (Some(path), true) = (&arguments.plan, changes) {
            write(path, &plan)?;
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

/// Writes a plan, which may contain secrets: only its owner may read it.
fn write(path: &Path, plan: &Plan) -> anyhow::Result<()> {
    let text = json::to_json_pretty(&plan.map().clone().into(), 2);
    let write = || -> std::io::Result<()> {
        let entry = Entry::resolve(path, Links::Follow)?;
        user_files::write_with(entry, text.as_bytes(), Attributes::mode(0o600), 0o600, Flush::Now)
    };
    write().with_context(|| format!("writing the plan to {} failed", path.display()))
}

/// Reads a plan that nobody but its owner and root can have changed.
pub(super) fn read(path: &Path) -> anyhow::Result<Plan> {
    let failed = || format!("reading the plan {} failed", path.display());
    let absolute = std::path::absolute(path).with_context(failed)?;
    let mut file = user_files::open(path).with_context(failed)?;
    let status = file.metadata().with_context(failed)?;
    let is_own = [0, nix::unistd::geteuid().as_raw()].contains(&status.uid()) && status.mode() & 0o022 == 0;
    if !is_own || !user_files::is_trusted(absolute).with_context(failed)? {
        anyhow::bail!(
            "the plan {} is refused: other users can change it; make a new one in a directory of your own",
            path.display()
        );
    }
    let mut text = String::new();
    file.read_to_string(&mut text).with_context(failed)?;
    let value = json::from_json(&text).with_context(failed)?;
    let map = value.as_map().cloned().with_context(|| format!("the plan {} is invalid", path.display()))?;
    let plan = Plan::from_map(map)?;
    if !PLANNED.contains(&plan.fun()) {
        anyhow::bail!(
            "the plan {} is invalid: expected one of {}, got {}",
            path.display(),
            PLANNED.join(", "),
            plan.fun()
        );
    }
    Ok(plan)
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
    use brine_value::list;

    use super::*;

    fn asked(fun: &str, arg: &[Value]) -> PublishRequest {
        PublishRequest { arg: arg.to_vec(), ..PublishRequest::new("*", fun, "root") }
    }

    #[test]
    fn a_planned_job_becomes_its_dry_run() {
        for (arg, dry, kept) in [
            (list!["web"], list!["web", map! {"test" => true, PLANNING => true, "__kwarg__" => true}], list!["web"]),
            (
                list!["web", map! {"test" => false, "pillar" => 1, "__kwarg__" => true}],
                list!["web", map! {"pillar" => 1, "test" => true, PLANNING => true, "__kwarg__" => true}],
                list!["web", map! {"pillar" => 1, "__kwarg__" => true}],
            ),
        ] {
            let mut request = asked("state.apply", arg.as_list().unwrap());
            let planning = Planning::of(&mut request).unwrap();
            assert_eq!(Args::from_wire(&request.arg), Args::from_wire(dry.as_list().unwrap()));
            let found = planning.job.get("arg").and_then(Value::as_list).unwrap();
            assert_eq!(Args::from_wire(found), Args::from_wire(kept.as_list().unwrap()));
        }
        for (fun, arg) in [("cmd.run", list!["x"]), ("state.highstate", list![true]), ("state.sls", list!["a", true])] {
            assert!(Planning::of(&mut asked(fun, arg.as_list().unwrap())).is_err(), "{fun}");
        }
    }

    #[test]
    fn a_kept_plan_is_read_again_unless_others_can_change_it() {
        use std::os::unix::fs::PermissionsExt;
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("plan.brine");
        let groups = list![map! {"digest" => "a".repeat(64), "minions" => list!["web"], "states" => list![]}];
        let job = map! {"fun" => "state.apply", "arg" => list!["web"], "jid" => "20261130000000000001"};
        let plan = Plan::new(job, map! {"groups" => groups}).unwrap();
        write(&path, &plan).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let found = read(&path).unwrap();
        assert_eq!(found, plan);
        assert_eq!(request(&found).unwrap().tgt, list!["web"]);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o666)).unwrap();
        assert!(read(&path).unwrap_err().to_string().contains("other users can change it"));
    }
}
