//! `auth.test`: explains the permissions of a user, and the entries that grant them.

use brine_auth::{Acl, Identity, JobRequest, may_see};
use brine_function::Args;
use brine_master_custom::Kind;
use brine_master_facts::ResolveError;
use brine_master_store::storage::Storage;
use brine_value::{Map, Value, map};

use super::called::{AskedCall, permits_named};
use super::{Access, minions_of, options};

/// The pseudo-function of event permissions: its arguments are tags.
const EVENTS: &str = "events";

/// The explanation for tags that no entry opens.
const EVENTS_OF_JOBS: &str = "the user sees such events only if they are of the user's own jobs, or of functions on minions that the user may use: an entry 'events' or the option open_events opens more";

/// The pseudo-function of options of jobs: its keyword arguments are options.
const OPTIONS: &str = "options";

/// A query of `auth.test`.
pub struct PermissionQuery {
    /// The name of the user.
    pub user: String,
    /// The system of `external_auth` that knows the user; `None` for a local user.
    pub eauth: Option<String>,
    /// The groups of the user.
    pub groups: Vec<String>,
    /// The target of the job.
    pub tgt: Value,
    /// The type of the target.
    pub tgt_type: String,
    /// The function; `runner.` or `wheel.` precedes one of the master.
    pub fun: String,
    /// The positional arguments.
    pub args: Vec<Value>,
    /// The keyword arguments.
    pub kwargs: Map,
}

/// The reason why there is no decision.
#[derive(Debug, thiserror::Error)]
pub enum ExplainError {
    /// The option `external_auth` does not have this system.
    #[error("external_auth has no '{0}'")]
    UnknownSystem(String),
    /// The target of the query or of a permission cannot be resolved.
    #[error(transparent)]
    Minions(#[from] ResolveError),
}

impl Access {
    /// Returns the decision of [`Access::authorise_job`], [`Access::authorise_call`] or [`may_see`], and the matching
    /// entries.
    ///
    /// # Errors
    /// An unknown authentication system, or an invalid target.
    pub fn explain(&self, storage: &Storage, asked: PermissionQuery) -> Result<Value, ExplainError> {
        let entries = match &asked.eauth {
            None => self.external.entries_of_publisher(&self.config.publisher_acl, &asked.user),
            Some(eauth) => {
                let identity = Identity::assumed(eauth, &asked.user, asked.groups.clone());
                let entries = self.external.entries(&identity);
                entries.ok_or_else(|| ExplainError::UnknownSystem(eauth.clone()))?
            }
        };
        let acl = Acl::new(&entries);
        if asked.fun == EVENTS {
            let permissions = acl.event_permissions(self.config.open_events);
            let permitted =
                !permissions.is_none() && asked.args.iter().all(|tag| may_see(&permissions, &tag.to_string()));
            let mut explained = map! {"permitted" => permitted, "entries" => entries};
            if !permitted && !acl.is_empty() {
                explained.insert("reason".into(), EVENTS_OF_JOBS.into());
            }
            return Ok(explained.into());
        }
        if asked.fun == OPTIONS {
            let refused = options::explain(&acl, &self.config, &asked.kwargs);
            let mut explained = map! {"permitted" => refused.is_none() && !acl.is_empty(), "entries" => entries};
            explained.extend(refused.map(|refused| ("reason".into(), refused.to_string().into())));
            return Ok(explained.into());
        }
        let of_master = [("runner.", Kind::Runner), ("wheel.", Kind::Wheel)];
        let call = of_master.iter().find_map(|(prefix, kind)| Some((asked.fun.strip_prefix(prefix)?, *kind)));
        if let Some((function, kind)) = call {
            let call = AskedCall::new(kind, function, Args { positional: asked.args, keyword: asked.kwargs });
            let is_kept_out = self.is_kept_out(&asked.user, &call.name, &call.args);
            let is_permitted = match call.named(&acl) {
                Some(named) => permits_named(&acl, &named, &self.facts, storage)?,
                None => false,
            };
            let explained = map! {"permitted" => !is_kept_out && is_permitted, "entries" => entries};
            return Ok(with_reason(explained, is_kept_out).into());
        }
        let minions = self.facts.possible_minions(storage, &asked.tgt_type, asked.tgt)?;
        let arguments = Args { positional: asked.args, keyword: asked.kwargs }.to_wire();
        let job = JobRequest { functions: vec![(&asked.fun, &arguments)], minions: &minions };
        let is_kept_out = self.blacklist.has_function([asked.fun.as_str()])
            || self.is_kept_out(&asked.user, &asked.fun, &Args::from_wire(&arguments));
        let permitted = !is_kept_out && acl.permits_job(&job, |target| minions_of(&self.facts, storage, target));
        let explained = map! {"permitted" => permitted, "entries" => entries, "minions" => minions.clone()};
        Ok(with_reason(explained, is_kept_out).into())
    }
}

/// Adds the reason of a refusal by `publisher_acl_blacklist`.
fn with_reason(mut explained: Map, is_kept_out: bool) -> Map {
    if is_kept_out {
        explained.insert(
            "reason".into(),
            "publisher_acl_blacklist names the user or a function, or the arguments lead through too many functions"
                .into(),
        );
    }
    explained
}
