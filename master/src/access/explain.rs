//! `auth.test`: what a user may do, and by which entries.

use brine_auth::{Acl, CallKind, Identity, JobRequest};
use brine_function::Args;
use brine_target::{Target, TargetError};
use brine_value::{Map, Value, map};

use crate::Shared;
use crate::disk::Disk;

/// A question to `auth.test`.
pub(crate) struct Asked {
    pub user: String,
    pub eauth: Option<String>,
    pub groups: Vec<String>,
    pub tgt: Value,
    pub tgt_type: String,
    pub fun: String,
    pub args: Vec<Value>,
    pub kwargs: Map,
}

impl Shared {
    /// Returns what [`Shared::authorise_job`] or [`Shared::authorise_call`] would decide, and by which entries.
    pub(crate) fn explain_access(&self, disk: &Disk, asked: Asked) -> Result<Value, String> {
        let access = &self.access;
        let entries = match &asked.eauth {
            None => access.external.entries_of_publisher(&access.publisher_acl, &asked.user),
            Some(eauth) => {
                let (eauth, username, groups) = (eauth.clone(), asked.user.clone(), asked.groups.clone());
                let identity = Identity { eauth, username, groups, entries: None };
                let entries = access.external.entries(&identity);
                entries.ok_or_else(|| format!("external_auth has no '{}'", identity.eauth))?
            }
        };
        let acl = Acl::new(&entries);
        let of_master = [("runner.", CallKind::Runner), ("wheel.", CallKind::Wheel)];
        let call = of_master.iter().find_map(|(prefix, kind)| Some((asked.fun.strip_prefix(prefix)?, *kind)));
        if let Some((function, kind)) = call {
            let permitted = acl.permits_call(kind, function, &asked.args, &asked.kwargs);
            return Ok(map! {"permitted" => permitted, "entries" => entries}.into());
        }
        let kind = asked.tgt_type.parse().map_err(|error: TargetError| error.to_string())?;
        let target = Target::parse(kind, asked.tgt, ":", &self.config.nodegroups).map_err(|error| error.to_string())?;
        let (minions, _) = self.resolve(disk, &target).map_err(|error| error.to_string())?;
        let arguments = Args { positional: asked.args, keyword: asked.kwargs }.to_wire();
        let job = JobRequest { functions: vec![(&asked.fun, &arguments)], minions: &minions };
        let is_kept_out = access.blacklist.has_user(&asked.user) || access.blacklist.has_function([asked.fun.as_str()]);
        let permitted = !is_kept_out && acl.permits_job(&job, |target| self.minions_of(disk, target));
        let mut explained = map! {"permitted" => permitted, "entries" => entries, "minions" => minions.clone()};
        if is_kept_out {
            explained.insert("reason".into(), "publisher_acl_blacklist names the user or the function".into());
        }
        Ok(explained.into())
    }
}
