//! The file of a plan, which `--plan` keeps and `--apply` reads.

use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use anyhow::Context as _;
use brine_auth::{ORCHESTRATE, PLANNED};
use brine_job::plan::Plan;
use brine_system::files::{Attributes, Entry, Flush, Links};
use brine_system::user_files;
use brine_value::{Map, Value, json};

/// The file, if the command line names none.
pub(super) const PLAN_FILE: &str = "plan.brine";

/// Writes a plan, which may contain secrets: only its owner may read it.
pub(super) fn write(path: &Path, plan: &Map) -> anyhow::Result<()> {
    let text = json::to_json_pretty(&plan.clone().into(), 2);
    let write = || -> std::io::Result<()> {
        let entry = Entry::resolve(path, Links::Follow)?;
        user_files::write_with(entry, text.as_bytes(), Attributes::mode(0o600), 0o600, Flush::Now)
    };
    write().with_context(|| format!("writing the plan to {} failed", path.display()))
}

/// Reads a file with a plan that nobody but its owner and root can have changed.
pub(super) fn read_map(path: &Path) -> anyhow::Result<Map> {
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
    value.as_map().cloned().with_context(|| format!("the plan {} is invalid", path.display()))
}

/// Reads the plan of a job.
pub(super) fn read(path: &Path) -> anyhow::Result<Plan> {
    let map = read_map(path)?;
    if map.get("fun").and_then(Value::as_str) == Some(ORCHESTRATE) {
        let name = path.display();
        anyhow::bail!("{name} is the plan of an orchestration: apply it by `salt-run --apply {name}`");
    }
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

#[cfg(test)]
mod tests {
    use brine_value::{list, map};

    use super::*;

    #[test]
    fn a_kept_plan_is_read_again_unless_others_can_change_it() {
        use std::os::unix::fs::PermissionsExt;
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("plan.brine");
        let groups = list![map! {"digest" => "a".repeat(64), "minions" => list!["web"], "states" => list![]}];
        let job = map! {"fun" => "state.apply", "arg" => list!["web"], "jid" => "20261130000000000001"};
        let plan = Plan::new(job, map! {"groups" => groups}).unwrap();
        write(&path, plan.map()).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let actual = read(&path).unwrap();
        assert_eq!(actual, plan);
        assert_eq!(actual.minions(), ["web"]);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o666)).unwrap();
        assert!(read(&path).unwrap_err().to_string().contains("other users can change it"));
    }
}
