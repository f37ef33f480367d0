//! `git_pillar`: the repositories of `ext_pillar: git`.

use brine_function::{CallError, CallResult, Functions, function, registry};

use super::RunnerContext;

/// Runner functions of `git_pillar`.
pub static FUNCTIONS: Functions<RunnerContext> = registry!("git_pillar", [update]);

/// Fetch the repositories of `ext_pillar: git`. Return for each whether it has changed; False also for one that could
/// not be fetched, whose error is in the log.
///
/// CLI Example:
///
///     salt-run git_pillar.update
///     salt-run git_pillar.update branch='mybranch' repo='https://domain.com/repo.git'
#[function]
pub fn update(
    context: &RunnerContext,
    /// Only remotes of this branch, and of this URL or name.
    branch: Option<String>,
    /// Only remotes of this branch, and of this URL or name.
    repo: Option<String>,
) -> CallResult {
    let opts = &context.master.config.opts;
    let updated = brine_sls::pillar::update_repositories(opts, branch.as_deref(), repo.as_deref());
    let updated = updated.map_err(CallError::execution)?;
    if updated.is_empty() {
        let nothing = if branch.is_some() || repo.is_some() {
            "Specified git branch/repo not found in ext_pillar config"
        } else {
            "No git_pillar remotes are configured"
        };
        return Err(CallError::execution(nothing));
    }
    Ok(updated.into())
}
