//! Predictions of test mode.

use brine_context::StateReturn;
use brine_host::web::redacted;
use brine_value::map;

use super::super::{sentences, short};
use super::{Desired, Local, Relation, Reset, Run, Upstream};

impl Run<'_> {
    /// Predicts a run that changes the URL of the remote.
    pub(super) fn would_set_remote(
        &mut self,
        desired: &Desired,
        local: &Local,
        relation: &Relation,
        have: Option<&String>,
        url: &str,
    ) -> StateReturn {
        let remote = &self.wanted.source.remote;
        let have = have.map_or_else(|| "None".to_owned(), |have| redacted(have));
        let mut actions = vec![format!("Remote '{remote}' would be changed from {have} to {}", redacted(url))];
        if !relation.is_here {
            actions.push("Remote would be fetched".into());
        }
        if !relation.is_same && self.wanted.update_head {
            self.would_move(desired, local);
            if relation.forward == Some(false) {
                self.changes.insert("forced update".into(), true.into());
            }
            let how = merge_action(relation);
            actions.push(format!("Repository would be {how} to {}", short(desired.commit.as_deref())));
        }
        self.report_actions(relation, &actions)
    }

    pub(super) fn would_move(&mut self, desired: &Desired, local: &Local) {
        let change = map! {"old" => local.commit.clone(), "new" => desired.commit.clone()};
        self.changes.insert("revision".into(), change.into());
    }

    pub(super) fn report_actions(&self, relation: &Relation, actions: &[String]) -> StateReturn {
        if !self.changes.is_empty() {
            return self.would(sentences(actions));
        }
        if !relation.is_same && !self.wanted.update_head && !actions.is_empty() {
            return self.done(sentences(actions));
        }
        self.up_to_date(actions, false)
    }

    /// Predicts a run.
    pub(super) fn would_update(
        &mut self,
        desired: &Desired,
        local: &Local,
        relation: &Relation,
        upstream: Option<&str>,
    ) -> StateReturn {
        let mut actions = Vec::new();
        let (have, new) = (short(local.commit.as_deref()), short(desired.commit.as_deref()));
        let label = &desired.label;
        if !relation.is_here {
            actions.push(format!("Remote '{}' would be fetched", self.wanted.source.remote));
        }
        if !relation.is_same && (self.wanted.update_head || self.wanted.needs_branch(local)) {
            self.would_move(desired, local);
        }
        match &self.wanted.branch {
            Some(branch) if self.wanted.needs_branch(local) && !local.branches.contains(branch) => {
                actions.push(format!("New branch '{branch}' would be checked out, with {label} as a starting point"));
                if let Upstream::Is(upstream) = &desired.upstream {
                    actions.push(format!("Tracking branch would be set to {upstream}"));
                }
            }
            Some(branch) if self.wanted.needs_branch(local) => {
                let how = merge_action(relation);
                actions.push(format!("Branch '{branch}' would be checked out and {how} to {new}"));
            }
            _ if relation.is_same => {}
            _ if !self.wanted.update_head => actions.push(format!(
                "Local HEAD ({have}) does not match {label} but update_head=False, HEAD would not be updated locally"
            )),
            _ => {
                let resets = self.wanted.force_reset != Reset::Never && relation.is_here;
                let how = match relation.forward {
                    Some(true) => "fast-forwarded",
                    _ if resets => "hard-reset",
                    _ => "updated",
                };
                actions.push(format!("Repository would be {how} from {have} to {new}"));
            }
        }
        if let Some((reported, _)) = desired.upstream_command(upstream) {
            actions.push(format!("Tracking branch would be {reported}"));
        }
        self.report_actions(relation, &actions)
    }
}

fn merge_action(relation: &Relation) -> &'static str {
    match relation.forward {
        Some(false) => "hard-reset",
        Some(true) => "fast-forwarded",
        None => "updated",
    }
}
