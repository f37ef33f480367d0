//! `git.detached`: a checkout at a commit, with a detached head.

use std::path::Path;

use brine_context::{StateContext, StateReturn};
use brine_value::{Map, map};

use super::{EarlyReturn, Source, failure, sentences};
use crate::git::{GitError, strings};

pub(super) struct Detached {
    pub source: Source,
    pub rev: String,
    pub force_clone: bool,
    pub force_checkout: bool,
    pub fetch_remote: bool,
    pub hard_reset: bool,
    pub submodules: bool,
}

impl Detached {
    pub fn state(&self, context: &StateContext) -> Result<StateReturn, EarlyReturn> {
        let Source { name, target, remote, .. } = &self.source;
        let would = |comment: String| Box::new(StateReturn::predicted(name, comment));
        self.source.check_identity("I")?;
        if Path::new(target).is_file() {
            let comment = format!("Target '{target}' exists and is a regular file, cannot proceed");
            return Err(Box::new(StateReturn::failed(name, comment)));
        }
        self.source.url()?;
        let is_hash = self.rev.len() <= 40 && self.rev.chars().all(|c| c.is_ascii_hexdigit());
        let rev = if is_hash { self.rev.to_lowercase() } else { self.rev.clone() };
        let (mut comments, mut changes) = (Vec::new(), Map::new());
        let git = self.source.git(context);
        let failed =
            |changes: &Map, comments: &[String], error: GitError| failure(name, changes, &error.bare(), comments);
        let (mut before, mut is_known) = (None, false);
        if self.source.is_there(context, false) {
            before = git.quietly().rev_parse("HEAD", &[]).ok();
            if is_hash {
                is_known = git.quietly().plain(&["describe", "--always", &rev]).is_ok();
            } else {
                let remotes = git.remotes().map_err(|error| failed(&changes, &comments, error))?;
                let have = remotes.get(remote).and_then(|urls| urls.get("fetch"));
                if !have.is_some_and(|url| url.contains(name.as_str())) {
                    if context.test {
                        return Ok(*would(format!("Remote {remote} would be set to {name}")));
                    }
                    git.set_remote(remote, &self.source.url()?).map_err(|error| failed(&changes, &comments, error))?;
                    let have = have.map_or("None", String::as_str);
                    comments.push(format!("Remote {remote} updated from '{have}' to '{name}'"));
                }
            }
        } else {
            if self.source.empty_target(context, self.force_clone, Map::new())? {
                changes.insert("forced clone".into(), true.into());
            }
            if context.test {
                return Ok(*would(format!("Repository {name} would be cloned to {target}")));
            }
            let mut options = strings(&["--no-checkout"]);
            if remote != "origin" {
                options.extend(strings(&["--origin", remote]));
            }
            self.source.clone(context, &options).map_err(|error| failed(&changes, &comments, error))?;
            comments.push(format!("{name} cloned to {target}"));
        }
        if !is_known && self.fetch_remote {
            if context.test {
                return Ok(*would(format!("Repository remote {remote} would be fetched")));
            }
            let refs = [format!("refs/heads/*:refs/remotes/{remote}/*"), "+refs/tags/*:refs/tags/*".to_owned()];
            let fetched = git
                .fetch(Some(remote), true, &refs, &[])
                .map_err(|error| failure(name, &changes, &format!("Fetch failed:\n\n{error}"), &comments))?;
            if !fetched.is_empty() {
                comments.push(format!("Remote {remote} was fetched, resulting in updated refs"));
            }
        }
        let commit = self.commit(context, &rev, is_hash)?;
        if self.hard_reset {
            if context.test {
                return Ok(*would(format!("Hard reset to HEAD would be performed on {target}")));
            }
            git.plain(&["reset", "--hard", "HEAD"]).map_err(|error| failed(&changes, &comments, error))?;
            comments.push("Repository was reset to HEAD before checking out revision".into());
        }
        let mut after = None;
        if before.as_ref() != Some(&commit) {
            if context.test {
                let changes = map! {"HEAD" => map! {"old" => before, "new" => commit.as_str()}};
                return Ok(would(format!("Commit ID {commit} would be checked out at {target}")).with_changes(changes));
            }
            let mut words = vec!["checkout"];
            words.extend(self.force_checkout.then_some("--force"));
            words.push(&commit);
            git.both(&strings(&words)).map_err(|error| failed(&changes, &comments, error))?;
            comments.push(format!("Commit ID {commit} was checked out at {target}"));
            after = git.quietly().rev_parse("HEAD", &[]).ok();
        }
        if self.submodules {
            self.source.update_submodules(context).map_err(|error| failed(&changes, &comments, error))?;
            comments.push("Submodules were updated".into());
        }
        match after {
            Some(after) => _ = changes.insert("HEAD".into(), map! {"old" => before, "new" => after}.into()),
            None => comments.push("Already checked out at correct revision".into()),
        }
        Ok(StateReturn::ok(name, sentences(&comments)).with_changes(changes))
    }

    /// Returns the desired commit.
    fn commit(&self, context: &StateContext, rev: &str, is_hash: bool) -> Result<String, EarlyReturn> {
        let Source { name, target, remote, .. } = &self.source;
        let failed = |comment: String| Box::new(StateReturn::failed(name, comment));
        let missing = || failed(format!("Revision '{rev}' does not exist"));
        if is_hash {
            let result = self.source.git(context).plain(&["describe", "--always", rev]);
            result.map_err(|error| failed(error.bare()))?;
            return Ok(rev.to_owned());
        }
        let refs = self.source.git_without_cwd(context).refs(std::slice::from_ref(target));
        let refs = refs.map_err(|error| failed(format!("Failed to list refs for {remote}: {}", error.bare())))?;
        let named = [format!("refs/remotes/{remote}/{rev}"), format!("refs/tags/{rev}")];
        named.iter().find_map(|name| refs.get(name)).cloned().ok_or_else(missing)
    }
}
