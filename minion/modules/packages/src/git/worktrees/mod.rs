//! `git`: linked worktrees, archives and dry runs of merges.

use std::path::Path;

use brine_context::Context;
use brine_function::{Args, CallError, CallResult, Functions, function, registry};
use brine_host::programs::argument;
use brine_modules_files::private_copy::{Content, PrivateCopy};
use brine_system::user_files;
use brine_value::{Map, Value, map};

use super::Git;
use super::command::{OptionArgs, command, flag, options};

/// Execution functions of `git`.
pub static FUNCTIONS: Functions<Context> =
    registry!("git", [archive, list_worktrees, merge_tree, worktree_add, worktree_prune, worktree_rm]);

/// Write the files of a revision to an archive. `format` is an archive format of git, by default derived from the name
/// of the archive. Without `prefix`, paths in the archive begin with the name of the repository's directory.
///
/// CLI Example:
///
///     salt '*' git.archive /path/to/repo /path/to/archive.tar
///     salt '*' git.archive /path/to/repo /path/to/archive.zip rev=v1.2 format=zip
#[function]
pub fn archive(
    context: &Context,
    /// Directory of the checkout.
    cwd: String,
    /// Path of the archive.
    output: String,
    /// Branch, tag or commit.
    #[default("HEAD".to_owned())]
    rev: String,
    /// Prefix of the paths in the archive.
    prefix: Option<String>,
    /// Options of git itself, before the command.
    #[default]
    git_opts: Value,
    /// `format`, such as `tar.gz`, and the arguments of every function here: `user`, `identity`, `ignore_retcode`,
    /// `saltenv`, ...
    #[keywords]
    kwargs: Map,
) -> CallResult {
    let mut words = Vec::new();
    let name = || Path::new(&cwd).file_name().map(|name| format!("{}/", name.to_string_lossy()));
    if let Some(prefix) = prefix.or_else(name).filter(|prefix| !prefix.is_empty()) {
        words.extend(["--prefix".to_owned(), prefix]);
    }
    if let Some(format) = kwargs.get("format").and_then(Value::as_str) {
        words.extend(["--format".to_owned(), argument(format)?]);
    }
    let git = Git::new(context, Some(&cwd), &kwargs);
    let target = git.cwd.clone().unwrap_or_default().join(&output);
    let runas = kwargs.get("user").filter(|user| user.is_truthy()).map(ToString::to_string);
    // A program would follow the links of others.
    let copy = PrivateCopy::for_output(context, &target, runas.as_deref(), Content::Replaced)?;
    let output = PrivateCopy::path_or(copy.as_ref(), output);
    words.extend(["--output".to_owned(), output, argument(&rev)?]);
    command(&git_opts, &["archive"])?.words(words).run(context, &cwd, &kwargs)?;
    if let Some(copy) = copy {
        copy.hand_over()?;
    }
    Ok(true.into())
}

/// Return the linked worktrees of a repository whose directories exist; with `stale` those whose directories do not,
/// with `all` both.
///
/// CLI Example:
///
///     salt '*' git.list_worktrees /path/to/repo
///     salt '*' git.list_worktrees /path/to/repo all=True
#[function]
pub fn list_worktrees(
    context: &Context,
    /// Directory of the checkout.
    cwd: String,
    /// Whether only worktrees whose directories are missing are listed.
    #[default(false)]
    stale: bool,
    /// `all`, and the arguments of every function here: `user`, `identity`, `ignore_retcode`, `saltenv`, ...
    #[keywords]
    kwargs: Map,
) -> CallResult {
    let all = flag(&kwargs, "all");
    if all && stale {
        return Err(CallError::Execution("'all' and 'stale' cannot both be set to True".into()));
    }
    let git = Git::new(context, Some(&cwd), &kwargs);
    let text = git
        .plain(&["worktree", "list", "--porcelain"])
        .map_err(|error| CallError::Execution(format!("Failed to list worktrees: {}", error.bare())))?;
    let mut worktrees = Map::new();
    for worktree in parse(&text) {
        let is_stale = !Path::new(&worktree.path).is_dir();
        if !all && is_stale != stale {
            continue;
        }
        let mut about = map! {
            "stale" => is_stale, "HEAD" => &worktree.head, "detached" => worktree.branch.is_none(),
            "branch" => worktree.branch.clone(),
        };
        if worktree.branch.is_none() {
            let tags = git.plain(&["tag", "--points-at", &worktree.head])?;
            if !tags.is_empty() {
                about.insert("tags".into(), tags.lines().collect());
            }
        }
        worktrees.insert(worktree.path.into(), about.into());
    }
    Ok(worktrees.into())
}

/// Return what a merge of two revisions would change, without merging. `base` is their best common ancestor if not
/// given.
///
/// CLI Example:
///
///     salt '*' git.merge_tree /path/to/repo HEAD upstream/dev
#[function]
pub fn merge_tree(
    context: &Context,
    /// Directory of the checkout.
    cwd: String,
    /// First commit.
    ref1: String,
    /// Second commit.
    ref2: String,
    /// Common ancestor; found by git by default.
    base: Option<String>,
    /// Arguments of every function here: `user`, `identity`, `ignore_retcode`, `saltenv`, ...
    #[keywords]
    kwargs: Map,
) -> CallResult {
    let git = Git::new(context, Some(&cwd), &kwargs);
    let (one, other) = (argument(&ref1)?, argument(&ref2)?);
    let base = match base {
        Some(base) => argument(&base)?,
        None => git
            .plain(&["merge-base", &one, &other])
            .map_err(|_| CallError::Execution(format!("Unable to determine merge base for {one} and {other}")))?,
    };
    Ok(git.plain(&["merge-tree", &base, &one, &other])?.into())
}

/// The arguments of `worktree_add`.
#[derive(Args)]
pub struct WorktreeArgs {
    /// Directory of the repository.
    pub cwd: String,
    /// Directory of the new worktree.
    pub worktree_path: String,
    /// Branch, tag or commit to check out in the worktree.
    pub r#ref: Option<String>,
    /// Reset the branch if it exists.
    #[default(false)]
    pub reset_branch: bool,
    /// Add the worktree although its branch is checked out elsewhere.
    #[default(false)]
    pub force: bool,
    /// Check out no branch.
    #[default(false)]
    pub detach: bool,
    #[args]
    pub options: OptionArgs,
    /// `branch`: the new branch, named like the directory by default; and arguments of every function here.
    #[keywords]
    pub kwargs: Map,
}

/// Add a linked worktree with a new branch, or with `detach` without one.
///
/// CLI Example:
///
///     salt '*' git.worktree_add /path/to/repo/main ../hotfix ref=origin/main
///     salt '*' git.worktree_add /path/to/repo/main ../hotfix branch=hotfix21 ref=v2.1.9.3
#[function]
pub fn worktree_add(context: &Context, #[args] args: WorktreeArgs) -> CallResult {
    let branch = args.kwargs.get("branch").and_then(Value::as_str).filter(|branch| !branch.is_empty());
    if branch.is_some() && args.detach {
        return Err(CallError::Execution("Only one of 'branch' and 'detach' is allowed".into()));
    }
    let mut words = Vec::new();
    if args.detach {
        words.push("--detach".to_owned());
    } else {
        let named = Path::new(&args.worktree_path).file_name().map(|name| name.to_string_lossy().into_owned());
        let branch = argument(branch.map(str::to_owned).or(named).unwrap_or_default().as_str())?;
        words.extend([if args.reset_branch { "-B" } else { "-b" }.to_owned(), branch]);
        if args.force {
            words.push("--force".to_owned());
        }
    }
    let start = args.r#ref.as_deref().filter(|start| !start.is_empty()).map(argument).transpose()?;
    command(&args.options.git_opts, &["worktree", "add"])?
        .words(words)
        .words(options(&args.options.opts)?)
        .words([argument(&args.worktree_path)?])
        .words(start)
        .run_both(context, &args.cwd, &args.kwargs)
}

/// Prune linked worktrees whose directories are missing, and return git's report; with `dry_run`, only report.
///
/// CLI Example:
///
///     salt '*' git.worktree_prune /path/to/repo
///     salt '*' git.worktree_prune /path/to/repo expire=1.day.ago
#[function]
pub fn worktree_prune(
    context: &Context,
    /// Directory of the checkout.
    cwd: String,
    /// Whether nothing is removed.
    #[default(false)]
    dry_run: bool,
    /// Whether the removed worktrees are returned.
    #[default(true)]
    verbose: bool,
    /// Age from which stale worktrees are removed.
    expire: Option<String>,
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
    let mut words = Vec::new();
    words.extend(dry_run.then(|| "--dry-run".to_owned()));
    words.extend(verbose.then(|| "--verbose".to_owned()));
    if let Some(expire) = expire.as_deref() {
        words.extend(["--expire".to_owned(), argument(expire)?]);
    }
    command(&git_opts, &["worktree", "prune"])?.words(words).words(options(&opts)?).run_both(context, &cwd, &kwargs)
}

/// Remove the directory of a linked worktree.
///
/// CLI Example:
///
///     salt '*' git.worktree_rm /path/to/worktree
#[function]
pub fn worktree_rm(
    context: &Context,
    /// Directory of the checkout.
    cwd: String,
    /// Arguments of every function here: `user`, `identity`, `ignore_retcode`, `saltenv`, ...
    #[keywords]
    kwargs: Map,
) -> CallResult {
    if !Path::new(&cwd).exists() {
        return Err(CallError::Execution(format!("{cwd} does not exist")));
    }
    if !Git::new(context, Some(&cwd), &kwargs).is_worktree() {
        return Err(CallError::Execution(format!("{cwd} is not a git worktree")));
    }
    user_files::remove_dir_all(&cwd)
        .map_err(|error| CallError::Execution(format!("Unable to remove {cwd}: {error}")))?;
    Ok(true.into())
}

/// A worktree as git lists it.
#[derive(Debug, PartialEq, Eq)]
struct Worktree {
    path: String,
    head: String,
    /// `None` for a detached head.
    branch: Option<String>,
}

/// Parses `git worktree list --porcelain`. A bare repository has no commit and is left out.
fn parse(text: &str) -> Vec<Worktree> {
    let worktree = |lines: &str| {
        let field = |name: &str| lines.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        let branch = field("branch").map(|branch| branch.strip_prefix("refs/heads/").unwrap_or(branch).to_owned());
        let is_detached = lines.lines().any(|line| line == "detached");
        let (path, head) = (field("worktree")?.to_owned(), field("HEAD")?.to_owned());
        (branch.is_some() || is_detached).then_some(Worktree { path, head, branch })
    };
    text.split("\n\n").filter_map(worktree).collect()
}

#[cfg(test)]
mod tests;
