//! States of checkouts of a remote repository.

use brine_context::{StateContext, StateReturn};
use brine_function::{Args, CallResult, function};
use brine_value::Value;

use super::{AccessArgs, EncodingArgs, RestArgs, RunAsArgs, Source, as_option, detached, latest, not_valid};

/// The arguments of `git.latest`.
#[derive(Args)]
pub struct LatestArgs {
    /// URL of the repository.
    name: String,
    /// Directory of the checkout, as an absolute path.
    target: String,
    /// Branch, tag or commit to check out.
    #[default("HEAD".into())]
    rev: Value,
    /// Name of the local branch.
    branch: Option<String>,
    #[args]
    run_as: RunAsArgs,
    /// Whether HEAD is moved to the fetched commit; otherwise the checkout is only fetched.
    #[default(true)]
    update_head: bool,
    /// Whether uncommitted changes are discarded by a checkout.
    #[default(false)]
    force_checkout: bool,
    /// Whether a directory that is no checkout of this repository is replaced.
    #[default(false)]
    force_clone: bool,
    /// Whether a fetch overwrites references that are not fast-forward.
    #[default(false)]
    force_fetch: bool,
    /// Whether a hard reset replaces diverged history; with `remote-changes`, only if the remote has changed.
    #[default(false.into())]
    force_reset: Value,
    /// Whether submodules are updated.
    #[default(false)]
    submodules: bool,
    /// Whether the repository has no work tree.
    #[default(false)]
    bare: bool,
    /// Whether the repository mirrors all references.
    #[default(false)]
    mirror: bool,
    /// Name of the remote.
    #[default("origin".to_owned())]
    remote: String,
    /// Whether tags are fetched.
    #[default(true)]
    fetch_tags: bool,
    /// Whether tags are removed that the remote does not have.
    #[default(true)]
    sync_tags: bool,
    /// Number of commits to fetch.
    depth: Option<u64>,
    #[args]
    access: AccessArgs,
    /// Glob of branches to fetch.
    #[default("*".to_owned())]
    refspec_branch: String,
    /// Glob of tags to fetch.
    #[default("*".to_owned())]
    refspec_tag: String,
    #[args]
    rest: RestArgs,
}

/// Ensure that a checkout is up to date with its remote.
///
/// Uncommitted changes, and commits that the remote does not have, make the state fail unless `force_checkout` or
/// `force_reset` is set.
///
/// SLS Example:
///
///     https://github.com/example/app.git:
///       git.latest:
///         - target: /srv/app
///         - rev: v1.2
///         - user: app
///         - depth: 1
///
///     git@git.example.com:team/private.git:
///       git.latest:
///         - target: /srv/private
///         - rev: main
///         - branch: main
///         - identity: /root/.ssh/deploy_key
///         - force_reset: remote-changes
#[function]
pub fn latest(context: &StateContext, #[args] args: LatestArgs) -> CallResult {
    let target = &args.target;
    let rev = &args.rev;
    let failed = |comment: &str| Ok(StateReturn::failed(&args.name, comment).into());
    if let Some(wrong) = not_valid(&args.rest.kwargs) {
        return failed(&wrong);
    }
    let words = [("name", &args.name), ("remote", &args.remote), ("rev", &rev.to_string())];
    if let Some(wrong) = as_option(words).or_else(|| as_option([("branch", args.branch.as_ref()?)])) {
        return failed(&wrong);
    }
    let force_reset = match &args.force_reset {
        Value::Bool(true) => latest::Reset::Always,
        Value::Bool(false) => latest::Reset::Never,
        Value::Str(word) if word == "remote-changes" => latest::Reset::ForRemoteChanges,
        _ => return failed("'force_reset' must be one of True, False, or 'remote-changes'"),
    };
    if args.remote.is_empty() {
        return failed("'remote' argument is required");
    }
    if target.is_empty() {
        return failed("'target' argument is required");
    }
    if !rev.is_truthy() {
        return failed(&format!("'{rev}' is not a valid value for the 'rev' argument"));
    }
    if !target.starts_with('/') {
        return failed(&format!("target '{target}' is not an absolute path"));
    }
    let source = Source::new(args.name.clone(), args.target, args.run_as, args.access, args.remote);
    let desired = latest::Latest {
        source,
        rev: rev.to_string(),
        branch: args.branch,
        update_head: args.update_head,
        force_checkout: args.force_checkout,
        force_clone: args.force_clone,
        force_fetch: args.force_fetch,
        force_reset,
        submodules: args.submodules,
        bare: args.bare || args.mirror,
        mirror: args.mirror,
        fetch_tags: args.fetch_tags,
        sync_tags: args.sync_tags,
        depth: args.depth,
        refspec_branch: args.refspec_branch,
        refspec_tag: args.refspec_tag,
    };
    Ok(desired.state(context).unwrap_or_else(|failed| *failed).into())
}

/// The arguments of `git.detached`.
#[derive(Args)]
pub struct DetachedArgs {
    /// URL of the repository.
    name: String,
    /// Branch, tag or commit to check out.
    rev: Value,
    /// Directory of the checkout, as an absolute path.
    target: String,
    /// Name of the remote.
    #[default("origin".to_owned())]
    remote: String,
    #[args]
    run_as: RunAsArgs,
    /// Whether a directory that is no checkout of this repository is replaced.
    #[default(false)]
    force_clone: bool,
    /// Whether uncommitted changes are discarded by a checkout.
    #[default(false)]
    force_checkout: bool,
    /// Whether the remote is fetched if the checkout exists.
    #[default(true)]
    fetch_remote: bool,
    /// Whether uncommitted changes are discarded by a hard reset.
    #[default(false)]
    hard_reset: bool,
    /// Whether submodules are updated.
    #[default(false)]
    submodules: bool,
    #[args]
    access: AccessArgs,
    #[args]
    rest: RestArgs,
}

/// Ensure that a checkout is at a commit, with a detached head.
///
/// SLS Example:
///
///     https://github.com/example/app.git:
///       git.detached:
///         - target: /srv/app
///         - rev: 4f5a6b7
///         - force_checkout: True
#[function]
pub fn detached(context: &StateContext, #[args] args: DetachedArgs) -> CallResult {
    let rev = &args.rev;
    let target = &args.target;
    let failed = |comment: String| Ok(StateReturn::failed(&args.name, comment).into());
    if let Some(wrong) = not_valid(&args.rest.kwargs) {
        return failed(wrong);
    }
    if let Some(wrong) = as_option([("name", &args.name), ("remote", &args.remote), ("rev", &rev.to_string())]) {
        return failed(wrong);
    }
    if !rev.is_truthy() {
        return failed(format!("'{rev}' is not a valid value for the 'rev' argument"));
    }
    if target.is_empty() {
        return failed(format!("'{rev}' is not a valid value for the 'target' argument"));
    }
    if !target.starts_with('/') {
        return failed(format!("Target '{target}' is not an absolute path"));
    }
    let source = Source::new(args.name.clone(), args.target, args.run_as, args.access, args.remote);
    let rev = rev.to_string();
    let desired = detached::Detached {
        source,
        rev,
        force_clone: args.force_clone,
        force_checkout: args.force_checkout,
        fetch_remote: args.fetch_remote,
        hard_reset: args.hard_reset,
        submodules: args.submodules,
    };
    Ok(desired.state(context).unwrap_or_else(|failed| *failed).into())
}

/// The arguments of `git.cloned`.
#[derive(Args)]
pub struct ClonedArgs {
    /// URL of the repository.
    name: String,
    /// Directory of the checkout, as an absolute path.
    target: String,
    /// Branch to check out.
    branch: Option<String>,
    #[args]
    run_as: RunAsArgs,
    #[args]
    access: AccessArgs,
    #[args]
    _encoding: EncodingArgs,
}

/// Ensure that a repository is cloned, on a branch if one is given. It is not updated.
///
/// SLS Example:
///
///     https://github.com/example/app.git:
///       git.cloned:
///         - target: /srv/app
///         - branch: main
#[function]
pub fn cloned(context: &StateContext, #[args] args: ClonedArgs) -> CallResult {
    if !args.target.starts_with('/') {
        return Ok(StateReturn::failed(&args.name, "'target' path must be absolute").into());
    }
    if args.branch.as_deref() == Some("") {
        return Ok(StateReturn::failed(&args.name, "Invalid 'branch' argument").into());
    }
    let wrong = as_option([("name", &args.name)]).or_else(|| as_option([("branch", args.branch.as_ref()?)]));
    if let Some(wrong) = wrong {
        return Ok(StateReturn::failed(&args.name, wrong).into());
    }
    let source = Source::new(args.name, args.target, args.run_as, args.access, "origin".to_owned());
    Ok(source.run_cloned(context, args.branch.as_deref()).unwrap_or_else(|failed| *failed).into())
}
