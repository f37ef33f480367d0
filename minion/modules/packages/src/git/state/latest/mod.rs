//! `git.latest`: a checkout that is up to date with its remote.
//!
//! The remote is queried first ([`Desired`]), then the checkout ([`Local`]); both together are a [`Relation`].
//! `checkout.rs` clones and updates, `test_mode.rs` predicts changes.

mod checkout;
mod test_mode;

use std::collections::BTreeSet;
use std::path::Path;

use brine_context::{StateContext, StateReturn};
use brine_host::web::redacted;
use brine_value::{Map, map};
use indexmap::IndexMap;

use super::{EarlyReturn, Source, failure, sentences, short};
use crate::git::{Git, GitError, strings};

/// Treatment of local changes and of commits that the remote does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reset {
    /// They are kept, and the state fails.
    Never,
    /// They are discarded if the remote has changed.
    ForRemoteChanges,
    /// They are discarded.
    Always,
}

pub(super) struct Latest {
    pub source: Source,
    pub rev: String,
    pub branch: Option<String>,
    pub update_head: bool,
    pub force_checkout: bool,
    pub force_clone: bool,
    pub force_fetch: bool,
    pub force_reset: Reset,
    pub submodules: bool,
    pub bare: bool,
    pub mirror: bool,
    pub fetch_tags: bool,
    pub sync_tags: bool,
    pub depth: Option<u64>,
    pub refspec_branch: String,
    pub refspec_tag: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Branch,
    Tag,
    Commit,
}

/// The upstream of the local branch.
enum Upstream {
    /// None.
    Unset,
    /// The current one.
    Leave,
    /// This branch.
    Is(String),
}

/// The desired revision on the remote.
struct Desired {
    commit: Option<String>,
    kind: Option<Kind>,
    upstream: Upstream,
    /// Label of the commit in messages.
    label: String,
    has_head: bool,
    default_branch: Option<String>,
}

/// The local checkout.
struct Local {
    commit: Option<String>,
    branch: Option<String>,
    branches: Vec<String>,
    tags: BTreeSet<String>,
}

impl Local {
    fn read(git: &Git) -> Result<Self, GitError> {
        Ok(Local {
            branches: git.names("heads")?,
            tags: git.names("tags")?.into_iter().collect(),
            commit: git.quietly().rev_parse("HEAD", &[]).ok(),
            branch: git.quietly().current_branch().ok(),
        })
    }
}

impl Desired {
    /// Whether a commit is the desired one.
    fn is(&self, commit: Option<&str>) -> bool {
        match (commit, self.commit.as_deref()) {
            (Some(have), Some(desired)) if self.kind == Some(Kind::Commit) => have.starts_with(desired),
            (have, desired) => have == desired,
        }
    }

    /// Returns the message and the arguments of `git branch` that set the upstream.
    fn upstream_command(&self, upstream: Option<&str>) -> Option<(String, Vec<String>)> {
        match (&self.upstream, upstream) {
            (Upstream::Is(desired), None) => {
                Some((format!("set to {desired}"), strings(&["--set-upstream-to", desired])))
            }
            (Upstream::Is(desired), Some(have)) if desired != have => {
                Some((format!("updated to {desired}"), strings(&["--set-upstream-to", desired])))
            }
            (Upstream::Unset, Some(_)) => Some(("unset".into(), strings(&["--unset-upstream"]))),
            _ => None,
        }
    }
}

/// A running state: its comments and changes.
struct Run<'a> {
    wanted: &'a Latest,
    context: &'a StateContext,
    git: Git<'a>,
    changes: Map,
    comments: Vec<String>,
    warnings: Vec<String>,
}

/// Relation of the local branch to the desired revision.
struct Relation {
    base: Option<String>,
    base_branch: Option<String>,
    is_same: bool,
    has_changes: bool,
    is_here: bool,
    /// Whether the update is a fast-forward; `None` if that is unknown before a fetch.
    forward: Option<bool>,
}

impl Latest {
    pub fn state(&self, context: &StateContext) -> Result<StateReturn, EarlyReturn> {
        let Source { name, target, .. } = &self.source;
        let failed = |comment: String| Box::new(StateReturn::failed(name, comment));
        self.source.check_identity("i")?;
        if Path::new(target).is_file() {
            return Err(failed(format!("Target '{target}' exists and is a regular file, cannot proceed")));
        }
        let url = self.source.url()?;
        if self.rev != "HEAD" && self.bare {
            return Err(failed("'rev' is not compatible with the 'mirror' and 'bare' arguments".into()));
        }
        let refs = self.source.git_without_cwd(context).refs(&[url]);
        let refs = refs.map_err(|error| failed(format!("Failed to check remote refs: {}", error.bare())))?;
        let desired = self.desired(&refs);
        if self.depth.is_some() && !matches!(desired.kind, Some(Kind::Branch | Kind::Tag)) {
            return Err(failed(
                "When 'depth' is used, 'rev' must be set to the name of a branch or tag on the remote repository"
                    .into(),
            ));
        }
        if desired.commit.is_none() && !self.bare && self.rev != "HEAD" {
            return Err(failed(format!("No revision matching '{}' exists in the remote repository", self.rev)));
        }
        let is_there = self.source.is_there(context, self.bare);
        let mut run = Run {
            wanted: self,
            context,
            git: self.source.git(context),
            changes: Map::new(),
            comments: Vec::new(),
            warnings: Vec::new(),
        };
        let result = if is_there { run.update(&desired) } else { run.clone(&desired) };
        let mut outcome = result.unwrap_or_else(|early| *early);
        if !run.warnings.is_empty() {
            outcome.more.insert("warnings".into(), run.warnings.into());
        }
        Ok(outcome)
    }

    fn desired(&self, refs: &IndexMap<String, String>) -> Desired {
        let head = refs.get("HEAD");
        let is_head = |(name, sha): (&String, &String)| {
            name.strip_prefix("refs/heads/").filter(|_| Some(sha) == head).map(str::to_owned)
        };
        let (rev, remote) = (&self.rev, &self.source.remote);
        let is_hash = rev.len() <= 40 && rev.chars().all(|c| c.is_ascii_hexdigit());
        let tag = [format!("refs/tags/{rev}^{{}}"), format!("refs/tags/{rev}")];
        let tag = || tag.iter().find_map(|name| refs.get(name)).cloned();
        let (commit, kind, upstream) = if self.bare {
            (None, None, Upstream::Unset)
        } else if rev == "HEAD" {
            let upstream = if head.is_some() { Upstream::Leave } else { Upstream::Unset };
            (head.cloned(), head.map(|_| Kind::Commit), upstream)
        } else if let Some(commit) = refs.get(&format!("refs/heads/{rev}")) {
            (Some(commit.clone()), Some(Kind::Branch), Upstream::Is(format!("{remote}/{rev}")))
        } else if let Some(commit) = tag() {
            (Some(commit), Some(Kind::Tag), Upstream::Unset)
        } else if is_hash {
            (Some(rev.to_lowercase()), Some(Kind::Commit), Upstream::Unset)
        } else {
            (None, None, Upstream::Unset)
        };
        let seven = short(commit.as_deref());
        let label = match (kind, &upstream) {
            (Some(Kind::Commit), _) if rev == "HEAD" => format!("remote HEAD ({seven})"),
            (Some(Kind::Commit), _) => seven,
            (_, Upstream::Is(branch)) => format!("{branch} ({seven})"),
            _ => format!("{rev} ({seven})"),
        };
        let default_branch = refs.iter().find_map(is_head).filter(|_| head.is_some());
        Desired { commit, kind, upstream, label, has_head: head.is_some(), default_branch }
    }

    fn needs_branch(&self, local: &Local) -> bool {
        self.branch.is_some() && self.branch != local.branch
    }
}

impl Run<'_> {
    fn failed(&self, message: &str) -> EarlyReturn {
        failure(&self.wanted.source.name, &self.changes, message, &self.comments)
    }

    fn broken(&self, error: &GitError) -> EarlyReturn {
        self.failed(&error.bare())
    }

    fn done(&self, comment: String) -> StateReturn {
        StateReturn::ok(&self.wanted.source.name, comment).with_changes(self.changes.clone())
    }

    fn would(&self, comment: String) -> StateReturn {
        StateReturn { result: None, ..self.done(comment) }
    }

    /// Returns the result without changes, with the comments.
    fn up_to_date(&self, comments: &[String], has_changes: bool) -> StateReturn {
        let mut comment = format!("Repository {} is up-to-date", self.wanted.source.target);
        if has_changes {
            comment += ", but with uncommitted changes. Set 'force_reset' to True to purge uncommitted changes.";
        }
        if !comments.is_empty() {
            let would = if self.context.test { "that would be " } else { "" };
            comment += &format!("\n\nChanges {would}made: {}", sentences(comments));
        }
        self.done(comment)
    }

    fn git(&self, words: &[&str]) -> Result<String, EarlyReturn> {
        self.git.plain(words).map_err(|error| self.broken(&error))
    }

    fn update(&mut self, desired: &Desired) -> Result<StateReturn, EarlyReturn> {
        let local = Local::read(&self.git).map_err(|error| self.broken(&error))?;
        if !self.wanted.bare && desired.commit.is_none() && local.commit.is_some() {
            return Err(
                self.failed("Remote repository is empty, cannot update from a non-empty to an empty repository")
            );
        }
        let remotes = self.git.remotes().map_err(|error| self.broken(&error))?;
        let have = remotes.get(&self.wanted.source.remote).and_then(|remote| remote.get("fetch"));
        let mut relation = self.relation(desired, &local)?;
        if relation.has_changes && relation.is_same {
            if self.wanted.force_reset != Reset::Always {
                return Ok(self.up_to_date(&[], true));
            }
            if self.context.test {
                self.changes.insert("forced update".into(), true.into());
                return Ok(self.would(format!(
                    "{} is up-to-date, but with uncommitted changes. Since 'force_reset' is set to True, these local \
                     changes would be reset. To only reset when there are changes in the remote repository, set \
                     'force_reset' to 'remote-changes'.",
                    self.wanted.source.target
                )));
            }
        }
        self.find(desired, &local, have.is_some(), &mut relation)?;
        let stays = !relation.is_same
            && !self.wanted.update_head
            && (self.wanted.branch.is_none() || self.wanted.branch == local.branch);
        if relation.is_here {
            if stays {
                return Ok(self.keep_head(desired, &local));
            }
            if relation.forward != Some(false) {
                relation.forward = Some(self.is_forward(desired, &relation));
            }
        }
        if relation.forward == Some(false) && self.wanted.force_reset == Reset::Never {
            return Err(self.not_forward(desired, &local, &relation));
        }
        let upstream = relation
            .base_branch
            .as_ref()
            .and_then(|branch| self.git.quietly().rev_parse(&format!("{branch}@{{upstream}}"), &["--abbrev-ref"]).ok());
        if desired.commit.is_some() {
            let url = self.wanted.source.url()?;
            if have != Some(&url) {
                if self.context.test {
                    return Ok(self.would_set_remote(desired, &local, &relation, have, &url));
                }
                self.set_remote(have, &url)?;
            }
            if self.context.test {
                return Ok(self.would_update(desired, &local, &relation, upstream.as_deref()));
            }
            if let Some(early) = self.update_checkout(desired, &local, &mut relation, upstream.as_deref(), stays)? {
                return Ok(early);
            }
        } else if self.wanted.bare {
            if self.context.test {
                let comment = format!("Bare repository at {} would be fetched", self.wanted.source.target);
                return Ok(self.up_to_date(&[comment], false));
            }
            let is_new = self.fetch()?;
            let target = &self.wanted.source.target;
            let more = if is_new { ", resulting in updated refs" } else { "" };
            self.comments.push(format!("Bare repository at {target} was fetched{more}"));
        }
        let commit = self.git.quietly().rev_parse("HEAD", &[]).ok();
        if !self.wanted.bare && !desired.is(commit.as_deref()) {
            return Err(self.failed("Failed to update repository"));
        }
        if local.commit == commit {
            return Ok(self.up_to_date(&self.comments, false));
        }
        self.changes.insert("revision".into(), map! {"old" => local.commit, "new" => commit}.into());
        Ok(self.done(sentences(&self.comments)))
    }

    fn relation(&self, desired: &Desired, local: &Local) -> Result<Relation, EarlyReturn> {
        let (mut base, mut base_branch) = (local.commit.clone(), local.branch.clone());
        if let Some(branch) = self.wanted.branch.as_ref().filter(|_| self.wanted.needs_branch(local)) {
            if local.branches.contains(branch) {
                base_branch = Some(branch.clone());
                let result = self.git.quietly().rev_parse(&format!("{branch}^{{commit}}"), &[]);
                let report = |error: GitError| {
                    self.failed(&format!("Unable to get position of local branch '{branch}': {}", error.bare()))
                };
                base = Some(result.map_err(report)?);
            } else {
                base.clone_from(&desired.commit);
            }
        }
        let has_changes = !self.wanted.bare
            && self.git.quietly().both(&strings(&["diff", "HEAD"])).is_ok_and(|difference| !difference.is_empty());
        let is_same = desired.is(local.commit.as_deref());
        let forward = (has_changes && self.wanted.force_reset != Reset::ForRemoteChanges).then_some(false);
        Ok(Relation { base, base_branch, is_same, has_changes, is_here: false, forward })
    }

    /// Checks whether the desired revision was fetched before.
    fn find(
        &self,
        desired: &Desired,
        local: &Local,
        has_remote: bool,
        relation: &mut Relation,
    ) -> Result<(), EarlyReturn> {
        let Some(commit) = &desired.commit else { return Ok(()) };
        let git = self.git.quietly();
        if desired.kind == Some(Kind::Commit) && relation.base.as_ref().is_some_and(|base| base.starts_with(commit)) {
            relation.is_here = true;
            return Ok(());
        }
        if git.rev_parse(&format!("{commit}^{{commit}}"), &[]).is_err() {
            return Ok(());
        }
        match (desired.kind, &desired.upstream) {
            (Some(Kind::Branch), Upstream::Is(upstream)) if has_remote => {
                relation.is_here = git.rev_parse(upstream, &[]).ok().as_ref() == Some(commit);
            }
            (Some(Kind::Tag), _) if local.tags.contains(&self.wanted.rev) => {
                let rev = &self.wanted.rev;
                let have = git.rev_parse(&format!("{rev}^{{commit}}"), &[]).ok();
                relation.is_here = have.as_ref() == Some(commit);
                if !relation.is_here && self.wanted.force_reset == Reset::Never {
                    return Err(Box::new(StateReturn::failed(
                        &self.wanted.source.name,
                        format!(
                            "'{rev}' is a tag, but the remote SHA1 for this tag ({}) doesn't match the local SHA1 ({}). \
                             Set 'force_reset' to True to force this update.",
                            short(Some(commit)),
                            short(have.as_deref())
                        ),
                    )));
                }
            }
            (Some(Kind::Commit), _) => relation.is_here = true,
            _ => {}
        }
        Ok(())
    }

    fn is_forward(&self, desired: &Desired, relation: &Relation) -> bool {
        let (Some(base), Some(commit)) = (&relation.base, &desired.commit) else { return true };
        let words = strings(&["merge-base", "--is-ancestor", base, commit]);
        self.git.quietly().output(&words, false).is_ok_and(|output| output.retcode == 0)
    }

    /// Returns the result if HEAD must not be moved (`update_head=False`).
    fn keep_head(&self, desired: &Desired, local: &Local) -> StateReturn {
        let mut label = desired.label.clone();
        if self.wanted.rev == "HEAD" {
            label = label.to_lowercase();
            label.replace_range(..1, &desired.label[..1].to_uppercase());
        }
        let head = short(local.commit.as_deref());
        self.done(format!(
            "{label} is already present and local HEAD ({head}) does not match, but update_head=False. HEAD has not been \
             updated locally."
        ))
    }

    /// Returns the failure of an update that is not a fast-forward and would lose commits.
    fn not_forward(&self, desired: &Desired, local: &Local, relation: &Relation) -> EarlyReturn {
        let rev = &self.wanted.rev;
        let branch = local.branch.as_deref().unwrap_or("None");
        let advice = match (&self.wanted.branch, &desired.default_branch) {
            (None, _) if rev != "HEAD" && branch != rev => format!(
                " The desired rev ({rev}) differs from the name of the local branch ({branch}), if the desired rev is a \
                 branch name then a forced update could possibly be avoided by setting the 'branch' argument to '{rev}' \
                 instead."
            ),
            (None, Some(default)) if rev == "HEAD" && branch != default => format!(
                " The default remote branch ({default}) differs from the local branch ({branch}). This could be caused \
                 by changing the default remote branch, or if the local branch was manually changed. Rather than \
                 forcing an update, it may be advisable to set the 'branch' argument to '{default}' instead. To ensure \
                 that this state follows the '{default}' branch instead of the remote HEAD, set the 'rev' argument to \
                 '{default}'."
            ),
            _ => String::new(),
        };
        let (before, after) = (short(relation.base.as_deref()), short(desired.commit.as_deref()));
        let has_changes = relation.has_changes;
        let range =
            if has_changes && before != after { format!("from {before} to {after}") } else { format!("to {after}") };
        let checkout = match &self.wanted.branch {
            Some(branch) if self.wanted.needs_branch(local) => format!(" (after checking out local branch '{branch}')"),
            _ => String::new(),
        };
        let (why, how, what) = if has_changes {
            ("there are uncommitted changes", " (or 'remote-changes')", " and discard these changes")
        } else {
            ("this is not a fast-forward merge", "", "")
        };
        self.failed(&format!(
            "Repository would be updated {range}{checkout}, but {why}. Set 'force_reset' to True{how} to force this \
             update{what}.{advice}"
        ))
    }

    fn set_remote(&mut self, have: Option<&String>, url: &str) -> Result<(), EarlyReturn> {
        let Source { name, remote, .. } = &self.wanted.source;
        self.git.set_remote(remote, url).map_err(|error| self.broken(&error))?;
        if let Some(have) = have {
            let message = format!("Remote '{remote}' changed from {} to {}", redacted(have), redacted(url));
            self.comments.push(message);
        } else {
            self.comments.push(format!("Remote '{remote}' set to {}", redacted(url)));
            self.changes.insert("new".into(), format!("{name} => {remote}").into());
        }
        Ok(())
    }

    /// Fetches. Returns whether anything is new.
    fn fetch(&self) -> Result<bool, EarlyReturn> {
        let remote = &self.wanted.source.remote;
        let (branches, tags) = (&self.wanted.refspec_branch, &self.wanted.refspec_tag);
        let refs = if self.wanted.fetch_tags {
            vec![
                format!("refs/heads/{branches}:refs/remotes/{remote}/{branches}"),
                format!("+refs/tags/{tags}:refs/tags/{tags}"),
            ]
        } else {
            Vec::new()
        };
        let fetched = self.git.fetch(Some(remote), self.wanted.force_fetch, &refs, &[]).map_err(|error| {
            self.failed(&format!(
                "Fetch failed. Set 'force_fetch' to True to force the fetch if the failure was due to not being able to \
                 fast-forward. Output of the fetch command follows:\n\n{}",
                error.bare()
            ))
        })?;
        Ok(!fetched.is_empty())
    }
}
