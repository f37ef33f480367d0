//! Branches and tags, merges and rebases.

use brine_context::Context;
use brine_function::{Args, CallError, CallResult, function};
use brine_value::{Map, Value};

use super::command::{OptionArgs, RevisionArgs, command, flag, options};
use super::repository::Git;
use brine_function::arguments::names;

/// Create, change or delete a branch.
///
/// CLI Example:
///
///     salt '*' git.branch /path/to/repo mybranch
#[function]
pub fn branch(
    context: &Context,
    /// Directory of the checkout.
    cwd: String,
    /// Name of the branch or tag.
    name: Option<String>,
    /// Further options of the command.
    #[default]
    opts: Value,
    /// Options of git itself, before the command.
    #[default]
    git_opts: Value,
    /// Arguments of every function here: `user`, `identity`, `ignore_retcode`, `saltenv`, ...
    #[keywords]
    kwargs: Map,
) -> CallResult {
    command(&git_opts, &["branch"])?.words(options(&opts)?).operands(name)?.run(context, &cwd, &kwargs)?;
    Ok(true.into())
}

/// Check out a branch, tag or commit.
///
/// CLI Example:
///
///     salt '*' git.checkout /path/to/repo somebranch user=jeff
#[function]
pub fn checkout(
    context: &Context,
    /// Directory of the checkout.
    cwd: String,
    /// Branch, tag or commit.
    rev: Option<String>,
    /// Whether uncommitted changes, or references that are not fast-forward, are overwritten.
    #[default(false)]
    force: bool,
    /// Further options of the command.
    #[default]
    opts: Value,
    /// Options of git itself, before the command.
    #[default]
    git_opts: Value,
    /// Arguments of every function here: `user`, `identity`, `ignore_retcode`, `saltenv`, ...
    #[keywords]
    kwargs: Map,
) -> CallResult {
    let opts = options(&opts)?;
    if rev.is_none() && !opts.iter().any(|word| word == "-b" || word == "-B") {
        return Err(CallError::Execution("'rev' argument is required unless -b or -B in opts".into()));
    }
    let force = force.then(|| "--force".to_owned());
    command(&git_opts, &["checkout"])?.words(force).words(opts).operands(rev)?.run_both(context, &cwd, &kwargs)
}

/// Return the names of the branches.
///
/// CLI Example:
///
///     salt '*' git.list_branches /path/to/repo
#[function]
pub fn list_branches(
    context: &Context,
    /// Directory of the checkout.
    cwd: String,
    /// Name of the remote.
    #[default(false)]
    remote: bool,
    /// Arguments of every function here: `user`, `identity`, `ignore_retcode`, `saltenv`, ...
    #[keywords]
    kwargs: Map,
) -> CallResult {
    Ok(Git::new(context, Some(&cwd), &kwargs).names(if remote { "remotes" } else { "heads" })?.into())
}

/// Return the names of the tags.
///
/// CLI Example:
///
///     salt '*' git.list_tags /path/to/repo
#[function]
pub fn list_tags(
    context: &Context,
    /// Directory of the checkout.
    cwd: String,
    /// Arguments of every function here: `user`, `identity`, `ignore_retcode`, `saltenv`, ...
    #[keywords]
    kwargs: Map,
) -> CallResult {
    Ok(Git::new(context, Some(&cwd), &kwargs).names("tags")?.into())
}

/// Merge a commit into the current branch.
///
/// CLI Example:
///
///     salt '*' git.merge /path/to/repo rev=upstream/foo
#[function]
pub fn merge(context: &Context, #[args] args: RevisionArgs) -> CallResult {
    args.run(context, "merge")
}

/// The arguments of `git.merge_base`.
#[derive(Args)]
pub struct MergeBaseArgs {
    /// Directory of the checkout.
    cwd: String,
    /// Commits to compare.
    #[default]
    refs: Value,
    /// Whether to return the best common ancestor of all commits.
    #[default(false)]
    octopus: bool,
    /// Whether to return whether the first commit is an ancestor of the second.
    #[default(false)]
    is_ancestor: bool,
    /// Whether to return the commits that are not reachable from any other.
    #[default(false)]
    independent: bool,
    /// Commit whose fork point is returned.
    fork_point: Option<String>,
    #[args]
    options: OptionArgs,
    /// Arguments of every function here: `user`, `identity`, `ignore_retcode`, `saltenv`, ... `password` and
    /// `output_encoding` are without effect.
    #[keywords]
    kwargs: Map,
}

/// Return the best common ancestor of commits, or whether one is an ancestor of another.
///
/// CLI Example:
///
///     salt '*' git.merge_base /path/to/repo HEAD upstream/mybranch
#[function]
pub fn merge_base(context: &Context, #[args] args: MergeBaseArgs) -> CallResult {
    let (all, refs) = (flag(&args.kwargs, "all"), names(&args.refs));
    if all && (args.independent || args.is_ancestor || args.fork_point.is_some()) {
        return Err(CallError::Execution(
            "The 'all' argument is not compatible with 'independent', 'is_ancestor', or 'fork_point'".into(),
        ));
    }
    if [args.octopus, args.independent, args.is_ancestor, args.fork_point.is_some()]
        .iter()
        .filter(|is_set| **is_set)
        .count()
        > 1
    {
        return Err(CallError::Execution(
            "Only one of 'octopus', 'independent', 'is_ancestor', and 'fork_point' is permitted".into(),
        ));
    }
    if args.is_ancestor && refs.len() != 2 {
        return Err(CallError::Execution("Two refs/commits are required if 'is_ancestor' is True".into()));
    }
    let kinds = [
        (all, "--all"),
        (args.octopus, "--octopus"),
        (args.is_ancestor, "--is-ancestor"),
        (args.independent, "--independent"),
    ];
    let kinds = kinds.into_iter().filter(|(is_set, _)| *is_set).map(|(_, word)| word.to_owned());
    let fork = args.fork_point.is_some().then(|| "--fork-point".to_owned());
    let command = command(&args.options.git_opts, &["merge-base"])?
        .words(options(&args.options.opts)?)
        .words(kinds)
        .words(fork)
        .operands(args.fork_point)?
        .operands(refs)?;
    let git = Git::new(context, Some(&args.cwd), &args.kwargs);
    if args.is_ancestor {
        return Ok((git.output(&command.0, false)?.retcode == 0).into());
    }
    let commits: Vec<String> = git.stdout(&command.0)?.lines().map(str::to_owned).collect();
    Ok(if all { commits.into() } else { commits.into_iter().next().into() })
}

/// Rebase the current branch onto another one.
///
/// CLI Example:
///
///     salt '*' git.rebase /path/to/repo main
#[function]
pub fn rebase(
    context: &Context,
    /// Directory of the checkout.
    cwd: String,
    /// Branch, tag or commit.
    #[default("master".to_owned())]
    rev: String,
    /// Further options of the command.
    #[default]
    opts: Value,
    /// Options of git itself, before the command.
    #[default]
    git_opts: Value,
    /// Arguments of every function here: `user`, `identity`, `ignore_retcode`, `saltenv`, ...
    #[keywords]
    kwargs: Map,
) -> CallResult {
    let opts = options(&opts)?;
    if opts.iter().any(|word| word == "-i" || word == "--interactive") {
        return Err(CallError::Execution("Interactive rebases are not supported".into()));
    }
    command(&git_opts, &["rebase"])?.words(opts).operands(options(&rev.into())?)?.run(context, &cwd, &kwargs)
}

/// Create or delete a tag.
///
/// CLI Example:
///
///     salt '*' git.tag /path/to/repo v1.2 message='Version 1.2'
#[function]
pub fn tag(
    context: &Context,
    /// Directory of the checkout.
    cwd: String,
    /// Name of the branch or tag.
    name: String,
    /// Name of the reference.
    #[default("HEAD".to_owned())]
    r#ref: String,
    /// Message of the commit or tag.
    message: Option<String>,
    /// Further options of the command.
    #[default]
    opts: Value,
    /// Options of git itself, before the command.
    #[default]
    git_opts: Value,
    /// Arguments of every function here: `user`, `identity`, `ignore_retcode`, `saltenv`, ...
    #[keywords]
    kwargs: Map,
) -> CallResult {
    let opts: Vec<String> = options(&opts)?.into_iter().filter(|word| word != "-a" && word != "--annotate").collect();
    if opts.iter().any(|word| word == "-m" || word.contains("--message")) {
        return Err(CallError::Execution("Tag messages must be passed in the \"message\" argument".into()));
    }
    let deletes = opts.iter().any(|word| word == "-d" || word == "--delete");
    let message = message.into_iter().flat_map(|message| ["-a".to_owned(), "-m".to_owned(), message]);
    let place = (!deletes).then_some(r#ref);
    command(&git_opts, &["tag"])?
        .words(message)
        .words(opts)
        .operands([name])?
        .operands(place)?
        .run_both(context, &cwd, &kwargs)
}

/// Return, set or delete a symbolic reference.
///
/// CLI Example:
///
///     salt '*' git.symbolic_ref /path/to/repo HEAD
#[function]
pub fn symbolic_ref(
    context: &Context,
    /// Directory of the checkout.
    cwd: String,
    /// Name of the symbolic reference, such as `HEAD`.
    r#ref: String,
    /// Reference that it gets; without it, that of now is returned.
    value: Option<String>,
    /// Further options of the command.
    #[default]
    opts: Value,
    /// Options of git itself, before the command.
    #[default]
    git_opts: Value,
    /// Arguments of every function here: `user`, `identity`, `ignore_retcode`, `saltenv`, ...
    #[keywords]
    kwargs: Map,
) -> CallResult {
    let opts = options(&opts)?;
    if value.is_some() && opts.iter().any(|word| word == "-d" || word == "--delete") {
        return Err(CallError::Execution(
            "Value cannot be set for symbolic ref if -d/--delete is included in opts".into(),
        ));
    }
    command(&git_opts, &["symbolic-ref"])?.words(opts).operands([r#ref])?.operands(value)?.run(context, &cwd, &kwargs)
}
