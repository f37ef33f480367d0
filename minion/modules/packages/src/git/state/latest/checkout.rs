//! Clones and updates a checkout.

use std::collections::BTreeSet;

use brine_context::StateReturn;
use brine_value::{Value, map};

use super::super::{EarlyReturn, Source, sentences};
use super::{Desired, Kind, Local, Relation, Reset, Run, Upstream};
use crate::git::{GitError, strings};

impl Run<'_> {
    /// Deletes tags that the remote does not have, and reports new ones. Returns whether there are any.
    pub(super) fn compare_tags(&mut self, local: &Local) -> Result<bool, EarlyReturn> {
        let words = strings(&["--tags", &self.wanted.source.remote]);
        let refs = self.git.quietly().refs(&words).map_err(|error| self.broken(&error))?;
        let names = refs.keys().filter(|name| !name.contains("^{}")).map(|name| name.replace("refs/tags/", ""));
        let remote: BTreeSet<String> = names.collect();
        if remote == local.tags {
            return Ok(false);
        }
        let new: Vec<String> = remote.difference(&local.tags).cloned().collect();
        if !new.is_empty() {
            self.changes.insert("new_tags".into(), new.into());
        }
        let mut deleted = Vec::new();
        for tag in local.tags.difference(&remote).filter(|_| self.wanted.sync_tags) {
            match self.git.both(&strings(&["tag", "-d", tag])) {
                Ok(_) => deleted.push(tag.clone()),
                Err(error) => self.warnings.push(format!("Failed to remove local tag '{tag}':\n\n{error}\n\n")),
            }
        }
        if !deleted.is_empty() {
            let names = deleted.join(", ");
            self.comments.push(format!("The following tags were removed from the local checkout: {names}"));
            self.changes.insert("deleted_tags".into(), deleted.into());
        }
        Ok(true)
    }

    /// Updates the checkout. The error is the result that ends the state early.
    pub(super) fn update_checkout(
        &mut self,
        desired: &Desired,
        local: &Local,
        relation: &mut Relation,
        upstream: Option<&str>,
        stays: bool,
    ) -> Result<Option<StateReturn>, EarlyReturn> {
        let Some(commit) = &desired.commit else { return Ok(None) };
        let name = &self.wanted.source.name;
        let is_new_branch = self.wanted.branch.as_ref().is_some_and(|branch| !local.branches.contains(branch));
        let follow = desired
            .upstream_command(upstream)
            .filter(|_| !is_new_branch || matches!(desired.upstream, Upstream::Unset));
        if follow.is_some() && local.branch.is_none() {
            return Err(self.failed(
                "Cannot set/unset upstream tracking branch, local HEAD refers to nonexistent branch. This may have been \
                 caused by cloning a remote repository for which the default branch was renamed or deleted. If you are \
                 unable to fix the remote repository, you can work around this by setting the 'branch' argument (which \
                 will ensure that the named branch is created if it does not already exist).",
            ));
        }
        if self.compare_tags(local)? {
            relation.is_here = false;
        }
        if !relation.is_here {
            if self.fetch()? {
                self.comments.push(format!("{name} was fetched, resulting in updated refs"));
            }
            if let Err(error) = self.git.quietly().rev_parse(&format!("{commit}^{{commit}}"), &[]) {
                let (rev, error) = (&self.wanted.rev, error.to_string());
                let comment = format!("Fetch did not successfully retrieve rev '{rev}' from {name}: {error}");
                return Err(Box::new(StateReturn::failed(name, comment).with_changes(self.changes.clone())));
            }
            if stays {
                return Ok(Some(self.keep_head(desired, local)));
            }
            let forward = self.is_forward(desired, relation);
            relation.forward = Some(forward);
            if self.wanted.force_reset == Reset::Never && (!forward || relation.has_changes) {
                return Err(self.not_forward(desired, local, relation));
            }
        }
        self.check_out(desired, local, relation)?;
        if relation.forward == Some(false) {
            self.git(&["reset", "--hard", commit])?;
            self.changes.insert("forced update".into(), true.into());
            if relation.has_changes {
                self.comments.push("Uncommitted changes were discarded".into());
            }
            self.comments.push(format!("Repository was hard-reset to {}", desired.label));
        } else if relation.forward == Some(true) && relation.has_changes && self.wanted.force_reset != Reset::Never {
            self.git(&["checkout", "--", "."])?;
            self.comments.push("Uncommitted changes were discarded".into());
        }
        if let Some((reported, words)) = follow {
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            self.git(&[&["branch"], &words[..]].concat())?;
            self.comments.push(format!("Tracking branch was {reported}"));
        }
        if relation.forward == Some(true) && !desired.is(relation.base.as_deref()) {
            self.fast_forward(desired, commit)?;
        }
        if self.wanted.submodules {
            self.update_submodules()?;
        }
        Ok(None)
    }

    pub(super) fn update_submodules(&self) -> Result<(), EarlyReturn> {
        let report = |error: GitError| self.failed(&format!("Failed to update submodules: {}", error.bare()));
        self.wanted.source.update_submodules(self.context).map_err(report)
    }

    /// Checks out another branch, if requested.
    pub(super) fn check_out(
        &mut self,
        desired: &Desired,
        local: &Local,
        relation: &Relation,
    ) -> Result<(), EarlyReturn> {
        let Some(branch) = self.wanted.branch.as_ref().filter(|_| self.wanted.needs_branch(local)) else {
            return Ok(());
        };
        if relation.has_changes && !self.wanted.force_checkout {
            let have = local.branch.as_deref().unwrap_or("None");
            let comment = format!(
                "Local branch '{have}' has uncommitted changes. Set 'force_checkout' to True to discard them and proceed."
            );
            let failed = StateReturn::failed(&self.wanted.source.name, comment);
            return Err(Box::new(failed.with_changes(self.changes.clone())));
        }
        let force = if self.wanted.force_checkout { &["checkout", "--force"][..] } else { &["checkout"] };
        let is_there = local.branches.contains(branch);
        let start = self.start(desired);
        let words = if is_there { vec![branch.as_str()] } else { vec!["-b", branch, &start] };
        self.git.both(&strings(&[force, &words[..]].concat())).map_err(|error| self.broken(&error))?;
        self.comments.push(if is_there {
            format!("'{branch}' was checked out")
        } else {
            format!("New branch '{branch}' was checked out, with {} as a starting point", desired.label)
        });
        Ok(())
    }

    /// Returns the start point of a new branch.
    pub(super) fn start(&self, desired: &Desired) -> String {
        match (&desired.upstream, &desired.commit) {
            (_, Some(commit)) if self.wanted.rev == "HEAD" => commit.clone(),
            (Upstream::Is(upstream), _) => upstream.clone(),
            _ => self.wanted.rev.clone(),
        }
    }

    pub(super) fn fast_forward(&mut self, desired: &Desired, commit: &str) -> Result<(), EarlyReturn> {
        let rev = self.wanted.rev.as_str();
        if rev != "HEAD" && !matches!(desired.upstream, Upstream::Is(_)) {
            self.git(&["reset", "--hard", rev])?;
            self.comments.push(format!("Repository was reset to {rev} (fast-forward)"));
            return Ok(());
        }
        if self.git.quietly().plain(&["symbolic-ref", "--quiet", "HEAD"]).is_err() {
            return Err(self.failed("Unable to fast-forward, HEAD is detached"));
        }
        self.git(&["merge", "--ff-only", commit])?;
        self.comments.push(format!("Repository was fast-forwarded to {}", desired.label));
        Ok(())
    }

    pub(super) fn clone(&mut self, desired: &Desired) -> Result<StateReturn, EarlyReturn> {
        let Source { name, target, remote, .. } = &self.wanted.source;
        let new = format!("{name} => {target}");
        let would = map! {"forced clone" => true, "new" => new.as_str()};
        if self.wanted.source.empty_target(self.context, self.wanted.force_clone, would)? {
            self.changes.insert("forced clone".into(), true.into());
        }
        if self.context.test {
            self.changes.insert("new".into(), new.into());
            return Ok(self.would(format!("Repository {name} would be cloned to {target}")));
        }
        let (option, kind) = match (self.wanted.mirror, self.wanted.bare) {
            (true, _) => (Some("--mirror"), " as mirror"),
            (_, true) => (Some("--bare"), " as bare repository"),
            _ => (None, ""),
        };
        let mut options: Vec<String> = option.into_iter().map(str::to_owned).collect();
        if remote != "origin" {
            options.extend(strings(&["--origin", remote]));
        }
        if let Some(depth) = self.wanted.depth {
            options.extend(strings(&["--depth", &depth.to_string(), "--branch", &self.wanted.rev]));
        }
        let cloned = self.wanted.source.clone(self.context, &options);
        cloned.map_err(|error| self.failed(&format!("Clone failed: {}", error.bare())))?;
        self.changes.insert("new".into(), new.into());
        self.comments.push(format!("{name} cloned to {target}{kind}"));
        if let Some(commit) = desired.commit.as_ref().filter(|_| !self.wanted.bare) {
            self.after_clone(desired, commit)?;
        }
        if self.wanted.submodules && desired.commit.is_some() {
            self.update_submodules()?;
        }
        if let Ok(commit) = self.git.quietly().rev_parse("HEAD", &[]) {
            self.changes.insert("revision".into(), map! {"old" => Value::Nil, "new" => commit}.into());
        }
        Ok(self.done(sentences(&self.comments)))
    }

    /// Checks out the desired revision in a new clone.
    pub(super) fn after_clone(&mut self, desired: &Desired, commit: &str) -> Result<(), EarlyReturn> {
        let rev = &self.wanted.rev;
        let local = Local::read(&self.git).map_err(|error| self.broken(&error))?;
        if desired.kind == Some(Kind::Tag) && !local.tags.contains(rev) {
            return Err(self.failed(&format!("Revision '{rev}' does not exist in clone")));
        }
        if let Some(branch) = self.wanted.branch.as_ref().filter(|branch| !local.branches.contains(branch)) {
            let words = strings(&["checkout", "-b", branch, &self.start(desired)]);
            self.git.both(&words).map_err(|error| self.broken(&error))?;
            let label = &desired.label;
            self.comments.push(format!("Branch '{branch}' checked out, with {label} as a starting point"));
        }
        let local = Local::read(&self.git).map_err(|error| self.broken(&error))?;
        if local.branch.is_none() && !desired.has_head {
            return Err(self.failed(
                "Remote HEAD refers to a ref that does not exist. This can happen when the default branch on the remote \
                 repository is renamed or deleted. If you are unable to fix the remote repository, you can work around \
                 this by setting the 'branch' argument (which will ensure that the named branch is created if it does \
                 not already exist).",
            ));
        }
        if !desired.is(local.commit.as_deref()) {
            self.git(&["reset", "--hard", commit])?;
            self.comments.push(format!("Repository was reset to {}", desired.label));
        }
        let branch = local.branch.as_deref().unwrap_or("HEAD");
        let upstream = self.git.quietly().rev_parse(&format!("{branch}@{{upstream}}"), &["--abbrev-ref"]).ok();
        if let Some((reported, words)) = desired.upstream_command(upstream.as_deref()) {
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            self.git(&[&["branch"], &words[..]].concat())?;
            self.comments.push(format!("Tracking branch was {reported}"));
        }
        Ok(())
    }
}
