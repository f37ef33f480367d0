//! `git`: repositories, with the program git.
//!
//! All functions accept `user`, `identity` (SSH keys), `ignore_retcode` and `saltenv` in addition to their arguments.
//! `config.rs` handles git's configuration, `command.rs` command lines; `repository.rs` runs git and parses its output.

mod branches;
mod command;
pub mod config;
mod remote;
mod repository;
pub(crate) mod state;
mod worktrees;

use brine_context::{Context, Module};
use brine_function::{Args, CallError, CallResult, Functions, function, registry};
use brine_host::programs::argument;
use brine_value::{Map, Value};
use indexmap::IndexMap;

use brine_function::arguments::names;
use brine_system::user_files;
use command::{
    CheckoutArgs, FileArgs, LayoutArgs, OptionArgs, RemoteCommandArgs, RevisionArgs, command, flag, options,
};
pub use repository::{Git, GitError, strings, with_login};

pub(super) static MODULE: Module = Module {
    functions: &[&FUNCTIONS, &config::FUNCTIONS, &worktrees::FUNCTIONS],
    states: &[&state::FUNCTIONS],
    unavailable: Some(state::unavailable),
    ..Module::EMPTY
};

/// Execution functions of `git`.
pub static FUNCTIONS: Functions<Context> = registry!(
    "git",
    [
        add,
        branches::branch,
        branches::checkout,
        clone,
        commit,
        current_branch,
        describe,
        diff,
        discard_local_changes,
        remote::fetch,
        init,
        is_worktree,
        branches::list_branches,
        branches::list_tags,
        remote::ls_remote,
        branches::merge,
        branches::merge_base,
        remote::pull,
        remote::push,
        branches::rebase,
        remote::remote_get,
        remote::remote_refs,
        remote::remote_set,
        remote::remotes,
        reset,
        rev_parse,
        revision,
        rm,
        stash,
        status,
        submodule,
        branches::symbolic_ref,
        branches::tag,
        version
    ]
);

/// Stage files.
///
/// CLI Example:
///
///     salt '*' git.add /path/to/repo foo/bar.py
#[function]
pub fn add(context: &Context, #[args] file: FileArgs) -> CallResult {
    let FileArgs { cwd, filename, options: OptionArgs { opts, git_opts }, kwargs } = file;
    let opts = options(&opts)?.into_iter().filter(|word| !["-v", "--verbose"].contains(&word.as_str()));
    command(&git_opts, &["add", "--verbose"])?.words(opts).words(["--".into(), filename]).run(context, &cwd, &kwargs)
}

/// The arguments of `git.clone`.
#[derive(Args)]
pub struct CloneArgs {
    /// Directory to clone into, or with `name` its parent.
    cwd: String,
    /// URL of the repository.
    url: Option<String>,
    /// Name of the directory below `cwd`.
    name: Option<String>,
    #[args]
    command: RemoteCommandArgs,
}

/// Clone a repository into a directory, or below it under a name.
///
/// CLI Example:
///
///     salt '*' git.clone /path/to/repo_parent_dir git://github.com/saltstack/salt.git
#[function]
pub fn clone(context: &Context, #[args] args: CloneArgs) -> CallResult {
    let Some(url) = args.url.filter(|url| !url.is_empty()) else {
        return Err(CallError::Execution("Missing 'url' argument".into()));
    };
    let url = args.command.url(&url)?;
    let RemoteCommandArgs { options: OptionArgs { opts, git_opts }, kwargs, .. } = args.command;
    let git = Git::new(context, Some(&args.cwd), &kwargs);
    let whole = git.cwd.clone().unwrap_or_default();
    let (directory, target) = match args.name {
        Some(name) => {
            user_files::create_dir_all(&whole).map_err(CallError::execution)?;
            (whole.display().to_string(), name)
        }
        None => ("/tmp".into(), whole.display().to_string()),
    };
    command(&git_opts, &["clone"])?
        .words(options(&opts)?)
        .words(["--".into(), url, target])
        .run(context, &directory, &kwargs)?;
    Ok(true.into())
}

/// Commit staged changes, or one file.
///
/// CLI Example:
///
///     salt '*' git.commit /path/to/repo 'The commit message'
#[function]
pub fn commit(
    context: &Context,
    /// Directory of the checkout.
    cwd: String,
    /// Message of the commit or tag.
    message: String,
    /// Further options of the command.
    #[default]
    opts: Value,
    /// Options of git itself, before the command.
    #[default]
    git_opts: Value,
    /// Path of a file to commit.
    filename: Option<String>,
    /// Arguments of every function here: `user`, `identity`, `ignore_retcode`, `saltenv`, ...
    #[keywords]
    kwargs: Map,
) -> CallResult {
    let file = filename.into_iter().flat_map(|file| ["--".to_owned(), file]);
    command(&git_opts, &["commit", "-m", &message])?.words(options(&opts)?).words(file).run(context, &cwd, &kwargs)
}

/// Return the current branch.
///
/// CLI Example:
///
///     salt '*' git.current_branch /path/to/repo
#[function]
pub fn current_branch(
    context: &Context,
    /// Directory of the checkout.
    cwd: String,
    /// Arguments of every function here: `user`, `identity`, `ignore_retcode`, `saltenv`, ...
    #[keywords]
    kwargs: Map,
) -> CallResult {
    Ok(Git::new(context, Some(&cwd), &kwargs).current_branch()?.into())
}

/// Describe a commit by the most recent tag reachable from it.
///
/// CLI Example:
///
///     salt '*' git.describe /path/to/repo
#[function]
pub fn describe(
    context: &Context,
    /// Directory of the checkout.
    cwd: String,
    /// Branch, tag or commit.
    #[default("HEAD".to_owned())]
    rev: String,
    /// Arguments of every function here: `user`, `identity`, `ignore_retcode`, `saltenv`, ...
    #[keywords]
    kwargs: Map,
) -> CallResult {
    Ok(Git::new(context, Some(&cwd), &kwargs).plain(&["describe", "--always", &argument(&rev)?])?.into())
}

/// The arguments of `git.diff`.
#[derive(Args)]
pub struct DiffArgs {
    /// Directory of the checkout.
    cwd: String,
    /// Commit, branch or path to compare.
    item1: Option<String>,
    /// Commit, branch or path to compare with.
    item2: Option<String>,
    #[args]
    options: OptionArgs,
    /// Whether two paths outside of a checkout are compared.
    #[default(false)]
    no_index: bool,
    /// Whether the index is compared.
    #[default(false)]
    cached: bool,
    /// Paths to limit the comparison to.
    #[default]
    paths: Value,
    /// Arguments of every function here: `user`, `identity`, `ignore_retcode`, `saltenv`, ...
    #[keywords]
    kwargs: Map,
}

/// Return the diff between commits, branches or paths.
///
/// CLI Example:
///
///     salt '*' git.diff /path/to/repo
#[function]
pub fn diff(context: &Context, #[args] args: DiffArgs) -> CallResult {
    if args.no_index && args.cached {
        return Err(CallError::Execution("The 'no_index' and 'cached' options cannot be used together".into()));
    }
    let kind = match (args.no_index, args.cached) {
        (true, _) => Some("--no-index".to_owned()),
        (_, true) => Some("--cached".to_owned()),
        _ => None,
    };
    let items = [args.item1.filter(|_| !args.no_index), args.item2.filter(|_| !args.no_index && !args.cached)]
        .into_iter()
        .flatten();
    let paths = names(&args.paths);
    let separator = (!paths.is_empty()).then(|| "--".to_owned());
    let command = command(&args.options.git_opts, &["diff"])?
        .words(options(&args.options.opts)?)
        .words(kind)
        .operands(items)?
        .words(separator)
        .words(paths);
    if args.no_index {
        // The exit status only reports whether there is a difference.
        return Ok(Git::new(context, Some(&args.cwd), &args.kwargs).quietly().output(&command.0, true)?.stdout.into());
    }
    command.run_both(context, &args.cwd, &args.kwargs)
}

/// Discard unstaged changes of files.
///
/// CLI Example:
///
///     salt '*' git.discard_local_changes /path/to/repo
#[function]
pub fn discard_local_changes(
    context: &Context,
    /// Directory of the checkout.
    cwd: String,
    /// Path of a file in the checkout.
    #[default(".".to_owned())]
    path: String,
    /// Arguments of every function here: `user`, `identity`, `ignore_retcode`, `saltenv`, ...
    #[keywords]
    kwargs: Map,
) -> CallResult {
    command(&Value::Nil, &["checkout", "--", &path])?.run_both(context, &cwd, &kwargs)
}

/// The arguments of `git.init`.
#[derive(Args)]
pub struct InitArgs {
    /// Directory of the repository.
    cwd: String,
    /// Whether the repository has no work tree.
    #[default(false)]
    bare: bool,
    #[args]
    layout: LayoutArgs,
    #[args]
    options: OptionArgs,
    /// Arguments of every function here: `user`, `identity`, `ignore_retcode`, `saltenv`, ...
    #[keywords]
    kwargs: Map,
}

/// Create an empty repository.
///
/// CLI Example:
///
///     salt '*' git.init /path/to/repo
#[function]
pub fn init(context: &Context, #[args] args: InitArgs) -> CallResult {
    let target = Git::new(context, Some(&args.cwd), &args.kwargs).cwd.unwrap_or_default().display().to_string();
    let shared = match &args.layout.shared {
        Value::Nil => None,
        Value::Int(mode) => Some(format!("--shared=0{mode}")),
        word => Some(format!("--shared={}", word.to_string().to_lowercase())),
    };
    let command = command(&args.options.git_opts, &["init"])?
        .words(args.bare.then(|| "--bare".to_owned()))
        .words(args.layout.template.map(|directory| format!("--template={directory}")))
        .words(args.layout.separate_git_dir.map(|directory| format!("--separate-git-dir={directory}")))
        .words(shared)
        .words(options(&args.options.opts)?)
        .operands([target])?;
    Ok(Git::new(context, None, &args.kwargs).stdout(&command.0)?.into())
}

/// Return whether a directory is a linked worktree.
///
/// CLI Example:
///
///     salt '*' git.is_worktree /path/to/repo
#[function]
pub fn is_worktree(
    context: &Context,
    /// Directory of the checkout.
    cwd: String,
    /// Arguments of every function here: `user`, `identity`, `ignore_retcode`, `saltenv`, ...
    #[keywords]
    kwargs: Map,
) -> CallResult {
    Ok(Git::new(context, Some(&cwd), &kwargs).is_worktree().into())
}

/// Reset the current branch to a commit, or unstage files.
///
/// CLI Example:
///
///     salt '*' git.reset /path/to/repo opts='--hard origin/main'
#[function]
pub fn reset(context: &Context, #[args] args: CheckoutArgs) -> CallResult {
    args.run(context, "reset")
}

/// Return the commit that a revision resolves to.
///
/// CLI Example:
///
///     salt '*' git.rev_parse /path/to/repo HEAD
#[function]
pub fn rev_parse(context: &Context, #[args] args: RevisionArgs) -> CallResult {
    args.run(context, "rev-parse")
}

/// Return the current commit, or the one that a revision resolves to.
///
/// CLI Example:
///
///     salt '*' git.revision /path/to/repo mybranch
#[function]
pub fn revision(
    context: &Context,
    /// Directory of the checkout.
    cwd: String,
    /// Branch, tag or commit.
    #[default("HEAD".to_owned())]
    rev: String,
    /// Whether the commit is shortened.
    #[default(false)]
    short: bool,
    /// Arguments of every function here: `user`, `identity`, `ignore_retcode`, `saltenv`, ...
    #[keywords]
    kwargs: Map,
) -> CallResult {
    let short = short.then(|| "--short".to_owned());
    command(&Value::Nil, &["rev-parse"])?.words(short).operands([rev])?.run(context, &cwd, &kwargs)
}

/// Remove files from the work tree and the index.
///
/// CLI Example:
///
///     salt '*' git.rm /path/to/repo foo/bar.py
#[function]
pub fn rm(context: &Context, #[args] file: FileArgs) -> CallResult {
    let FileArgs { cwd, filename, options: OptionArgs { opts, git_opts }, kwargs } = file;
    command(&git_opts, &["rm"])?.words(options(&opts)?).words(["--".into(), filename]).run(context, &cwd, &kwargs)
}

/// Stash changes, or apply stashed ones.
///
/// CLI Example:
///
///     salt '*' git.stash /path/to/repo save opts='work in progress'
#[function]
pub fn stash(
    context: &Context,
    /// Directory of the checkout.
    cwd: String,
    /// `save`, `apply`, `list`, `show` and others.
    #[default("save".to_owned())]
    action: String,
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
    command(&git_opts, &["stash"])?.operands([action])?.words(options(&opts)?).run(context, &cwd, &kwargs)
}

/// Return the modified, new, deleted and untracked files.
///
/// CLI Example:
///
///     salt '*' git.status /path/to/repo
#[function]
pub fn status(
    context: &Context,
    /// Directory of the checkout.
    cwd: String,
    /// Arguments of every function here: `user`, `identity`, `ignore_retcode`, `saltenv`, ...
    #[keywords]
    kwargs: Map,
) -> CallResult {
    let text = Git::new(context, Some(&cwd), &kwargs).plain(&["status", "-z", "--porcelain"])?;
    let mut files_by_state: IndexMap<&str, Vec<String>> = IndexMap::new();
    for (state, file) in text.split('\0').filter_map(|line| line.trim_start().split_once(char::is_whitespace)) {
        let state = match state {
            "M" => "modified",
            "A" => "new",
            "D" => "deleted",
            "??" => "untracked",
            other => other,
        };
        files_by_state.entry(state).or_default().push(file.trim_start().to_owned());
    }
    Ok(files_by_state.into_iter().map(|(state, files)| (state.into(), files.into())).collect::<Map>().into())
}

/// Run a command on submodules.
///
/// CLI Example:
///
///     salt '*' git.submodule /path/to/repo update opts='--init'
#[function]
pub fn submodule(
    context: &Context,
    /// Directory of the checkout.
    cwd: String,
    /// Command of `git submodule`, such as `update`.
    command: String,
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
    if flag(&kwargs, "init") {
        return Err(CallError::Execution(
            "The 'init' argument is no longer supported. Either set 'command' to 'init', or include '--init' in the \
                 'opts' argument and set 'command' to 'update'."
                .into(),
        ));
    }
    self::command(&git_opts, &["submodule"])?.operands([command])?.words(options(&opts)?).run(context, &cwd, &kwargs)
}

/// Return the version of git, or its components.
///
/// CLI Example:
///
///     salt '*' git.version
#[function]
pub fn version(
    context: &Context,
    /// Whether the components are returned, as a list.
    #[default(false)]
    versioninfo: bool,
) -> CallResult {
    let report = Git::new(context, None, &Map::new()).plain(&["--version"])?;
    let version = report.split('(').next().and_then(|report| report.split_whitespace().last()).unwrap_or("unknown");
    if !versioninfo {
        return Ok(version.into());
    }
    let part = |part: &str| part.parse::<i64>().map_or_else(|_| Value::from(part), Value::from);
    Ok(version.split('.').map(part).collect())
}

#[cfg(test)]
mod tests;
