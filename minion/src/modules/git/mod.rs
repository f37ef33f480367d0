//! `git`: repositories of the version control, by the program git.
//!
//! All functions take user, identity (keys for ssh), ignore_retcode and saltenv beside their own arguments.
//! `config.rs` has those of git's configuration, `command.rs` the words of a command line; `repository.rs` runs git and
//! reads what it wrote.

mod command;
pub mod config;
mod repository;

use std::path::Path;

use brine_core::function::{CallError, CallResult, Function, function, registry};
use brine_core::{Map, Value};
use indexmap::IndexMap;

use crate::context::Context;
use crate::modules::user::names;
use crate::web::redacted;
use command::{command, options};
pub use repository::{Git, GitError, Remote, strings, with_login};

/// Execution functions of `git`.
pub static FUNCTIONS: &[Function<Context>] = registry!(
    "git",
    [
        add,
        branch,
        checkout,
        clone,
        commit,
        current_branch,
        describe,
        diff,
        discard_local_changes,
        fetch,
        init,
        is_worktree,
        list_branches,
        list_tags,
        ls_remote,
        merge,
        merge_base,
        pull,
        push,
        rebase,
        remote_get,
        remote_refs,
        remote_set,
        remotes,
        reset,
        rev_parse,
        revision,
        rm,
        stash,
        status,
        submodule,
        symbolic_ref,
        tag,
        version
    ]
);

/// Stages files.
///
/// CLI Example:
///
///     salt '*' git.add /path/to/repo foo/bar.py
#[function]
pub fn add(
    context: &Context,
    cwd: String,
    filename: String,
    #[default] opts: Value,
    #[default] git_opts: Value,
    #[keywords] kwargs: Map,
) -> CallResult {
    let opts = options(&opts)?.into_iter().filter(|word| !["-v", "--verbose"].contains(&word.as_str()));
    command(&git_opts, &["add", "--verbose"])?.words(opts).words(["--".into(), filename]).told(context, &cwd, &kwargs)
}

/// Makes, changes or deletes a branch.
///
/// CLI Example:
///
///     salt '*' git.branch /path/to/repo mybranch
#[function]
pub fn branch(
    context: &Context,
    cwd: String,
    #[default] name: Option<String>,
    #[default] opts: Value,
    #[default] git_opts: Value,
    #[keywords] kwargs: Map,
) -> CallResult {
    command(&git_opts, &["branch"])?.words(options(&opts)?).words(name).told(context, &cwd, &kwargs)?;
    Ok(true.into())
}

/// Checks out a branch, tag or commit.
///
/// CLI Example:
///
///     salt '*' git.checkout /path/to/repo somebranch user=jeff
#[function]
pub fn checkout(
    context: &Context,
    cwd: String,
    #[default] rev: Option<String>,
    #[default(false)] force: bool,
    #[default] opts: Value,
    #[default] git_opts: Value,
    #[keywords] kwargs: Map,
) -> CallResult {
    let opts = options(&opts)?;
    if rev.is_none() && !opts.iter().any(|word| word == "-b" || word == "-B") {
        return Err(CallError::Execution("'rev' argument is required unless -b or -B in opts".into()));
    }
    let force = force.then(|| "--force".to_owned());
    command(&git_opts, &["checkout"])?.words(force).words(opts).words(rev).told_both(context, &cwd, &kwargs)
}

/// Copies a repository to a folder, or below it under a name.
///
/// CLI Example:
///
///     salt '*' git.clone /path/to/repo_parent_dir git://github.com/saltstack/salt.git
#[function]
pub fn clone(
    context: &Context,
    cwd: String,
    #[default] url: Option<String>,
    #[default] name: Option<String>,
    #[default] opts: Value,
    #[default] git_opts: Value,
    #[default] https_user: Option<String>,
    #[default] https_pass: Option<String>,
    #[keywords] kwargs: Map,
) -> CallResult {
    let Some(url) = url.filter(|url| !url.is_empty()) else {
        return Err(CallError::Execution("Missing 'url' argument".into()));
    };
    let url = with_login(&url, https_user.as_deref(), https_pass.as_deref())?;
    let git = Git::new(context, Some(&cwd), &kwargs);
    let whole = git.cwd.clone().unwrap_or_default();
    let (folder, target) = match name {
        Some(name) => {
            std::fs::create_dir_all(&whole).map_err(CallError::execution)?;
            (whole.display().to_string(), name)
        }
        None => ("/tmp".into(), whole.display().to_string()),
    };
    command(&git_opts, &["clone"])?
        .words(options(&opts)?)
        .words(["--".into(), url, target])
        .told(context, &folder, &kwargs)?;
    Ok(true.into())
}

/// Commits what is staged, or one file.
///
/// CLI Example:
///
///     salt '*' git.commit /path/to/repo 'The commit message'
#[function]
pub fn commit(
    context: &Context,
    cwd: String,
    message: String,
    #[default] opts: Value,
    #[default] git_opts: Value,
    #[default] filename: Option<String>,
    #[keywords] kwargs: Map,
) -> CallResult {
    let file = filename.into_iter().flat_map(|file| ["--".to_owned(), file]);
    command(&git_opts, &["commit", "-m", &message])?.words(options(&opts)?).words(file).told(context, &cwd, &kwargs)
}

/// Gives the branch that is checked out.
///
/// CLI Example:
///
///     salt '*' git.current_branch /path/to/repo
#[function]
pub fn current_branch(context: &Context, cwd: String, #[keywords] kwargs: Map) -> CallResult {
    Ok(Git::new(context, Some(&cwd), &kwargs).current_branch()?.into())
}

/// Names a commit by the tag before it.
///
/// CLI Example:
///
///     salt '*' git.describe /path/to/repo
#[function]
pub fn describe(
    context: &Context,
    cwd: String,
    #[default("HEAD".to_owned())] rev: String,
    #[keywords] kwargs: Map,
) -> CallResult {
    Ok(Git::new(context, Some(&cwd), &kwargs).plain(&["describe", "--always", &rev])?.into())
}

/// Tells what differs.
///
/// CLI Example:
///
///     salt '*' git.diff /path/to/repo
#[function]
pub fn diff(
    context: &Context,
    cwd: String,
    #[default] item1: Option<String>,
    #[default] item2: Option<String>,
    #[default] opts: Value,
    #[default] git_opts: Value,
    #[default(false)] no_index: bool,
    #[default(false)] cached: bool,
    #[default] paths: Value,
    #[keywords] kwargs: Map,
) -> CallResult {
    if no_index && cached {
        return Err(CallError::Execution("The 'no_index' and 'cached' options cannot be used together".into()));
    }
    let kind = match (no_index, cached) {
        (true, _) => Some("--no-index".to_owned()),
        (_, true) => Some("--cached".to_owned()),
        _ => None,
    };
    let items = [item1.filter(|_| !no_index), item2.filter(|_| !no_index && !cached)].into_iter().flatten();
    let paths = names(&paths);
    let separator = (!paths.is_empty()).then(|| "--".to_owned());
    let command =
        command(&git_opts, &["diff"])?.words(options(&opts)?).words(kind).words(items).words(separator).words(paths);
    if no_index {
        // Its exit status says whether something differs.
        return Ok(Git::new(context, Some(&cwd), &kwargs).quietly().output(&command.0, true)?.stdout.into());
    }
    command.told_both(context, &cwd, &kwargs)
}

/// Takes files back to what is staged.
///
/// CLI Example:
///
///     salt '*' git.discard_local_changes /path/to/repo
#[function]
pub fn discard_local_changes(
    context: &Context,
    cwd: String,
    #[default(".".to_owned())] path: String,
    #[keywords] kwargs: Map,
) -> CallResult {
    command(&Value::Nil, &["checkout", "--", &path])?.told_both(context, &cwd, &kwargs)
}

/// Fetches from a remote, and tells what is new.
///
/// CLI Example:
///
///     salt '*' git.fetch /path/to/repo upstream
#[function]
pub fn fetch(
    context: &Context,
    cwd: String,
    #[default] remote: Option<String>,
    #[default(false)] force: bool,
    #[default] refspecs: Value,
    #[default] opts: Value,
    #[default] git_opts: Value,
    #[keywords] kwargs: Map,
) -> CallResult {
    _ = git_opts;
    let git = Git::new(context, Some(&cwd), &kwargs);
    Ok(git.fetch(remote.as_deref(), force, &names(&refspecs), &options(&opts)?)?.into())
}

/// Makes an empty repository.
///
/// CLI Example:
///
///     salt '*' git.init /path/to/repo
#[function]
pub fn init(
    context: &Context,
    cwd: String,
    #[default(false)] bare: bool,
    #[default] template: Option<String>,
    #[default] separate_git_dir: Option<String>,
    #[default] shared: Value,
    #[default] opts: Value,
    #[default] git_opts: Value,
    #[keywords] kwargs: Map,
) -> CallResult {
    let target = Git::new(context, Some(&cwd), &kwargs).cwd.unwrap_or_default().display().to_string();
    let shared = match &shared {
        Value::Nil => None,
        Value::Int(mode) => Some(format!("--shared=0{mode}")),
        word => Some(format!("--shared={}", word.to_string().to_lowercase())),
    };
    let command = command(&git_opts, &["init"])?
        .words(bare.then(|| "--bare".to_owned()))
        .words(template.map(|folder| format!("--template={folder}")))
        .words(separate_git_dir.map(|folder| format!("--separate-git-dir={folder}")))
        .words(shared)
        .words(options(&opts)?)
        .words([target]);
    Ok(Git::new(context, None, &kwargs).stdout(&command.0)?.into())
}

/// Whether a folder is one of several that share a repository.
///
/// CLI Example:
///
///     salt '*' git.is_worktree /path/to/repo
#[function]
pub fn is_worktree(context: &Context, cwd: String, #[keywords] kwargs: Map) -> CallResult {
    Ok(Git::new(context, Some(&cwd), &kwargs).is_worktree().into())
}

/// Gives the names of the branches.
///
/// CLI Example:
///
///     salt '*' git.list_branches /path/to/repo
#[function]
pub fn list_branches(
    context: &Context,
    cwd: String,
    #[default(false)] remote: bool,
    #[keywords] kwargs: Map,
) -> CallResult {
    Ok(Git::new(context, Some(&cwd), &kwargs).names(if remote { "remotes" } else { "heads" })?.into())
}

/// Gives the names of the tags.
///
/// CLI Example:
///
///     salt '*' git.list_tags /path/to/repo
#[function]
pub fn list_tags(context: &Context, cwd: String, #[keywords] kwargs: Map) -> CallResult {
    Ok(Git::new(context, Some(&cwd), &kwargs).names("tags")?.into())
}

/// Gives the references of a remote.
///
/// CLI Example:
///
///     salt '*' git.ls_remote /path/to/repo origin main
#[function]
pub fn ls_remote(
    context: &Context,
    #[default] cwd: Option<String>,
    #[default("origin".to_owned())] remote: String,
    #[default] r#ref: Option<String>,
    #[default] opts: Value,
    #[default] git_opts: Value,
    #[default] https_user: Option<String>,
    #[default] https_pass: Option<String>,
    #[keywords] kwargs: Map,
) -> CallResult {
    _ = git_opts;
    let mut words = options(&opts)?;
    words.push(with_login(&remote, https_user.as_deref(), https_pass.as_deref())?);
    words.extend(r#ref.filter(|name| !name.is_empty()));
    Ok(texts(Git::new(context, cwd.as_deref(), &kwargs).refs(&words)?))
}

/// Merges into the branch that is checked out.
///
/// CLI Example:
///
///     salt '*' git.merge /path/to/repo rev=upstream/foo
#[function]
pub fn merge(
    context: &Context,
    cwd: String,
    #[default] rev: Option<String>,
    #[default] opts: Value,
    #[default] git_opts: Value,
    #[keywords] kwargs: Map,
) -> CallResult {
    command(&git_opts, &["merge"])?.words(options(&opts)?).words(rev).told(context, &cwd, &kwargs)
}

/// Gives the best common ancestor, or whether one commit comes before another.
///
/// CLI Example:
///
///     salt '*' git.merge_base /path/to/repo HEAD upstream/mybranch
#[function]
pub fn merge_base(
    context: &Context,
    cwd: String,
    #[default] refs: Value,
    #[default(false)] octopus: bool,
    #[default(false)] is_ancestor: bool,
    #[default(false)] independent: bool,
    #[default] fork_point: Option<String>,
    #[default] opts: Value,
    #[default] git_opts: Value,
    #[keywords] kwargs: Map,
) -> CallResult {
    let (all, refs) = (flag(&kwargs, "all"), names(&refs));
    if all && (independent || is_ancestor || fork_point.is_some()) {
        return Err(CallError::Execution(
            "The 'all' argument is not compatible with 'independent', 'is_ancestor', or 'fork_point'".into(),
        ));
    }
    if [octopus, independent, is_ancestor, fork_point.is_some()].iter().filter(|given| **given).count() > 1 {
        return Err(CallError::Execution(
            "Only one of 'octopus', 'independent', 'is_ancestor', and 'fork_point' is permitted".into(),
        ));
    }
    if is_ancestor && refs.len() != 2 {
        return Err(CallError::Execution("Two refs/commits are required if 'is_ancestor' is True".into()));
    }
    let kinds =
        [(all, "--all"), (octopus, "--octopus"), (is_ancestor, "--is-ancestor"), (independent, "--independent")];
    let kinds = kinds.into_iter().filter(|(given, _)| *given).map(|(_, word)| word.to_owned());
    let fork = fork_point.into_iter().flat_map(|point| ["--fork-point".to_owned(), point]);
    let command = command(&git_opts, &["merge-base"])?.words(options(&opts)?).words(kinds).words(fork).words(refs);
    let git = Git::new(context, Some(&cwd), &kwargs);
    if is_ancestor {
        return Ok((git.output(&command.0, false)?.retcode == 0).into());
    }
    let found: Vec<String> = git.stdout(&command.0)?.lines().map(str::to_owned).collect();
    Ok(if all { found.into() } else { found.into_iter().next().into() })
}

/// Fetches and merges.
///
/// CLI Example:
///
///     salt '*' git.pull /path/to/repo opts='--rebase origin main'
#[function]
pub fn pull(
    context: &Context,
    cwd: String,
    #[default] opts: Value,
    #[default] git_opts: Value,
    #[keywords] kwargs: Map,
) -> CallResult {
    command(&git_opts, &["pull"])?.words(options(&opts)?).told(context, &cwd, &kwargs)
}

/// Sends a branch or tag to a remote.
///
/// CLI Example:
///
///     salt '*' git.push /path/to/repo origin main
#[function]
pub fn push(
    context: &Context,
    cwd: String,
    remote: String,
    r#ref: String,
    #[default] opts: Value,
    #[default] git_opts: Value,
    #[keywords] kwargs: Map,
) -> CallResult {
    command(&git_opts, &["push"])?.words(options(&opts)?).words([remote, r#ref]).told(context, &cwd, &kwargs)
}

/// Puts the own commits behind those of another branch.
///
/// CLI Example:
///
///     salt '*' git.rebase /path/to/repo main
#[function]
pub fn rebase(
    context: &Context,
    cwd: String,
    #[default("master".to_owned())] rev: String,
    #[default] opts: Value,
    #[default] git_opts: Value,
    #[keywords] kwargs: Map,
) -> CallResult {
    let opts = options(&opts)?;
    if opts.iter().any(|word| word == "-i" || word == "--interactive") {
        return Err(CallError::Execution("Interactive rebases are not supported".into()));
    }
    command(&git_opts, &["rebase"])?.words(opts).words(options(&rev.into())?).told(context, &cwd, &kwargs)
}

/// Tells where a remote is.
///
/// CLI Example:
///
///     salt '*' git.remote_get /path/to/repo
#[function]
pub fn remote_get(
    context: &Context,
    cwd: String,
    #[default("origin".to_owned())] remote: String,
    #[default(true)] redact_auth: bool,
    #[keywords] kwargs: Map,
) -> CallResult {
    let git = Git::new(context, Some(&cwd), &kwargs);
    let missing = || {
        CallError::Execution(format!(
            "Remote '{remote}' not present in git checkout located at {}",
            git.cwd.as_deref().unwrap_or(Path::new("")).display()
        ))
    };
    git.remotes()?.shift_remove(&remote).map(|found| place(found, redact_auth)).ok_or_else(missing)
}

/// Gives the references of the repository at a URL.
///
/// CLI Example:
///
///     salt '*' git.remote_refs https://example.org/repo.git
#[function]
pub fn remote_refs(
    context: &Context,
    url: String,
    #[default(false)] heads: bool,
    #[default(false)] tags: bool,
    #[default] https_user: Option<String>,
    #[default] https_pass: Option<String>,
    #[keywords] kwargs: Map,
) -> CallResult {
    let kinds = [(heads, "--heads"), (tags, "--tags")].into_iter().filter(|(given, _)| *given);
    let mut words: Vec<String> = kinds.map(|(_, word)| word.to_owned()).collect();
    words.push(with_login(&url, https_user.as_deref(), https_pass.as_deref())?);
    words.extend(kwargs.get("filter").filter(|name| name.is_truthy()).map(ToString::to_string));
    Ok(texts(Git::new(context, None, &kwargs).refs(&words)?))
}

/// Makes a remote lead to a URL.
///
/// CLI Example:
///
///     salt '*' git.remote_set /path/to/repo git@example.org:user/repo.git
#[function]
pub fn remote_set(
    context: &Context,
    cwd: String,
    url: String,
    #[default("origin".to_owned())] remote: String,
    #[default] https_user: Option<String>,
    #[default] https_pass: Option<String>,
    #[default] push_url: Option<String>,
    #[default] push_https_user: Option<String>,
    #[default] push_https_pass: Option<String>,
    #[keywords] kwargs: Map,
) -> CallResult {
    let git = Git::new(context, Some(&cwd), &kwargs);
    git.set_remote(&remote, &with_login(&url, https_user.as_deref(), https_pass.as_deref())?)?;
    if let Some(url) = push_url {
        let url = with_login(&url, push_https_user.as_deref(), push_https_pass.as_deref())?;
        git.plain(&["remote", "set-url", "--push", &remote, &url])?;
    }
    remote_get(context, cwd, remote, true, kwargs)
}

/// Tells where each remote is.
///
/// CLI Example:
///
///     salt '*' git.remotes /path/to/repo
#[function]
pub fn remotes(
    context: &Context,
    cwd: String,
    #[default(true)] redact_auth: bool,
    #[keywords] kwargs: Map,
) -> CallResult {
    let found = Git::new(context, Some(&cwd), &kwargs).remotes()?;
    Ok(found.into_iter().map(|(name, remote)| (name.into(), place(remote, redact_auth))).collect::<Map>().into())
}

/// Takes the branch to another commit, or files out of what is staged.
///
/// CLI Example:
///
///     salt '*' git.reset /path/to/repo opts='--hard origin/main'
#[function]
pub fn reset(
    context: &Context,
    cwd: String,
    #[default] opts: Value,
    #[default] git_opts: Value,
    #[keywords] kwargs: Map,
) -> CallResult {
    command(&git_opts, &["reset"])?.words(options(&opts)?).told(context, &cwd, &kwargs)
}

/// Gives the commit that something means.
///
/// CLI Example:
///
///     salt '*' git.rev_parse /path/to/repo HEAD
#[function]
pub fn rev_parse(
    context: &Context,
    cwd: String,
    #[default] rev: Option<String>,
    #[default] opts: Value,
    #[default] git_opts: Value,
    #[keywords] kwargs: Map,
) -> CallResult {
    command(&git_opts, &["rev-parse"])?.words(options(&opts)?).words(rev).told(context, &cwd, &kwargs)
}

/// Gives the commit that is checked out, or that something means.
///
/// CLI Example:
///
///     salt '*' git.revision /path/to/repo mybranch
#[function]
pub fn revision(
    context: &Context,
    cwd: String,
    #[default("HEAD".to_owned())] rev: String,
    #[default(false)] short: bool,
    #[keywords] kwargs: Map,
) -> CallResult {
    let short = short.then(|| "--short".to_owned());
    command(&Value::Nil, &["rev-parse"])?.words(short).words([rev]).told(context, &cwd, &kwargs)
}

/// Removes files, from what is staged too.
///
/// CLI Example:
///
///     salt '*' git.rm /path/to/repo foo/bar.py
#[function]
pub fn rm(
    context: &Context,
    cwd: String,
    filename: String,
    #[default] opts: Value,
    #[default] git_opts: Value,
    #[keywords] kwargs: Map,
) -> CallResult {
    command(&git_opts, &["rm"])?.words(options(&opts)?).words(["--".into(), filename]).told(context, &cwd, &kwargs)
}

/// Puts changes aside, or brings them back.
///
/// CLI Example:
///
///     salt '*' git.stash /path/to/repo save opts='work in progress'
#[function]
pub fn stash(
    context: &Context,
    cwd: String,
    #[default("save".to_owned())] action: String,
    #[default] opts: Value,
    #[default] git_opts: Value,
    #[keywords] kwargs: Map,
) -> CallResult {
    command(&git_opts, &["stash", &action])?.words(options(&opts)?).told(context, &cwd, &kwargs)
}

/// Tells which files are modified, new, deleted and untracked.
///
/// CLI Example:
///
///     salt '*' git.status /path/to/repo
#[function]
pub fn status(context: &Context, cwd: String, #[keywords] kwargs: Map) -> CallResult {
    let text = Git::new(context, Some(&cwd), &kwargs).plain(&["status", "-z", "--porcelain"])?;
    let mut found: IndexMap<&str, Vec<String>> = IndexMap::new();
    for (state, file) in text.split('\0').filter_map(|line| line.trim_start().split_once(char::is_whitespace)) {
        let state = match state {
            "M" => "modified",
            "A" => "new",
            "D" => "deleted",
            "??" => "untracked",
            other => other,
        };
        found.entry(state).or_default().push(file.trim_start().to_owned());
    }
    Ok(found.into_iter().map(|(state, files)| (state.into(), files.into())).collect::<Map>().into())
}

/// Works on the repositories within a repository.
///
/// CLI Example:
///
///     salt '*' git.submodule /path/to/repo update opts='--init'
#[function]
pub fn submodule(
    context: &Context,
    cwd: String,
    command: String,
    #[default] opts: Value,
    #[default] git_opts: Value,
    #[keywords] kwargs: Map,
) -> CallResult {
    if flag(&kwargs, "init") {
        return Err(CallError::Execution(
            "The 'init' argument is no longer supported. Either set 'command' to 'init', or include '--init' in the \
                 'opts' argument and set 'command' to 'update'."
                .into(),
        ));
    }
    self::command(&git_opts, &["submodule", &command])?.words(options(&opts)?).told(context, &cwd, &kwargs)
}

/// Reads, sets or deletes what a symbolic reference points to.
///
/// CLI Example:
///
///     salt '*' git.symbolic_ref /path/to/repo HEAD
#[function]
pub fn symbolic_ref(
    context: &Context,
    cwd: String,
    r#ref: String,
    #[default] value: Option<String>,
    #[default] opts: Value,
    #[default] git_opts: Value,
    #[keywords] kwargs: Map,
) -> CallResult {
    let opts = options(&opts)?;
    if value.is_some() && opts.iter().any(|word| word == "-d" || word == "--delete") {
        return Err(CallError::Execution(
            "Value cannot be set for symbolic ref if -d/--delete is included in opts".into(),
        ));
    }
    command(&git_opts, &["symbolic-ref"])?.words(opts).words([r#ref]).words(value).told(context, &cwd, &kwargs)
}

/// Makes or deletes a tag.
///
/// CLI Example:
///
///     salt '*' git.tag /path/to/repo v1.2 message='Version 1.2'
#[function]
pub fn tag(
    context: &Context,
    cwd: String,
    name: String,
    #[default("HEAD".to_owned())] r#ref: String,
    #[default] message: Option<String>,
    #[default] opts: Value,
    #[default] git_opts: Value,
    #[keywords] kwargs: Map,
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
        .words([name])
        .words(place)
        .told_both(context, &cwd, &kwargs)
}

/// Gives the version of git, or its parts.
///
/// CLI Example:
///
///     salt '*' git.version
#[function]
pub fn version(context: &Context, #[default(false)] versioninfo: bool) -> CallResult {
    let told = Git::new(context, None, &Map::new()).plain(&["--version"])?;
    let version = told.split('(').next().and_then(|told| told.split_whitespace().last()).unwrap_or("unknown");
    if !versioninfo {
        return Ok(version.into());
    }
    let part = |part: &str| part.parse::<i64>().map_or_else(|_| Value::from(part), Value::from);
    Ok(version.split('.').map(part).collect())
}

fn flag(kwargs: &Map, key: &str) -> bool {
    kwargs.get(key).is_some_and(Value::is_truthy)
}

fn texts(map: IndexMap<String, String>) -> Value {
    map.into_iter().map(|(key, value)| (key.into(), value.into())).collect::<Map>().into()
}

fn place(remote: Remote, redact: bool) -> Value {
    let shown = |url: String| if redact { redacted(&url) } else { url };
    remote.into_iter().map(|(action, url)| (action.into(), shown(url).into())).collect::<Map>().into()
}
