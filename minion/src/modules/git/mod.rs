//! `git`: repositories of the version control, by the program git.
//!
//! All functions take user, identity (keys for ssh), ignore_retcode and saltenv beside their own arguments.
//! `config.rs` has those of git's configuration, `command.rs` the words of a command line; `repository.rs` runs git and
//! reads what it wrote.

mod command;
pub mod config;
mod repository;

use std::path::Path;

use brine_function::{CallError, functions};
use brine_value::{Map, Value};
use indexmap::IndexMap;

use crate::context::Context;
use crate::modules::user::names;
use crate::web::redacted;
use command::{command, options};
pub use repository::{Git, GitError, Remote, strings, with_login};

functions! {
    module "git", context Context;

    /// Stages files.
    ///
    /// CLI Example:
    ///
    ///     salt '*' git.add /path/to/repo foo/bar.py
    fn add(context, cwd: String, filename: String, opts: Value = Value::Nil, git_opts: Value = Value::Nil, **kwargs) {
        let opts = options(&opts)?.into_iter().filter(|word| !["-v", "--verbose"].contains(&word.as_str()));
        command(&git_opts, &["add", "--verbose"])?.words(opts).words(["--".into(), filename]).told(context, &cwd, &kwargs)
    }

    /// Makes, changes or deletes a branch.
    ///
    /// CLI Example:
    ///
    ///     salt '*' git.branch /path/to/repo mybranch
    fn branch(context, cwd: String, name: Option<String> = None, opts: Value = Value::Nil, git_opts: Value = Value::Nil, **kwargs) {
        command(&git_opts, &["branch"])?.words(options(&opts)?).words(name).told(context, &cwd, &kwargs)?;
        Ok(true.into())
    }

    /// Checks out a branch, tag or commit.
    ///
    /// CLI Example:
    ///
    ///     salt '*' git.checkout /path/to/repo somebranch user=jeff
    fn checkout(context, cwd: String, rev: Option<String> = None, force: bool = false, opts: Value = Value::Nil, git_opts: Value = Value::Nil, **kwargs) {
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
    fn clone(context, cwd: String, url: Option<String> = None, name: Option<String> = None, opts: Value = Value::Nil, git_opts: Value = Value::Nil, https_user: Option<String> = None, https_pass: Option<String> = None, **kwargs) {
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
        command(&git_opts, &["clone"])?.words(options(&opts)?).words(["--".into(), url, target]).told(context, &folder, &kwargs)?;
        Ok(true.into())
    }

    /// Commits what is staged, or one file.
    ///
    /// CLI Example:
    ///
    ///     salt '*' git.commit /path/to/repo 'The commit message'
    fn commit(context, cwd: String, message: String, opts: Value = Value::Nil, git_opts: Value = Value::Nil, filename: Option<String> = None, **kwargs) {
        let file = filename.into_iter().flat_map(|file| ["--".to_owned(), file]);
        command(&git_opts, &["commit", "-m", &message])?.words(options(&opts)?).words(file).told(context, &cwd, &kwargs)
    }

    /// Gives the branch that is checked out.
    ///
    /// CLI Example:
    ///
    ///     salt '*' git.current_branch /path/to/repo
    fn current_branch(context, cwd: String, **kwargs) {
        Ok(Git::new(context, Some(&cwd), &kwargs).current_branch()?.into())
    }

    /// Names a commit by the tag before it.
    ///
    /// CLI Example:
    ///
    ///     salt '*' git.describe /path/to/repo
    fn describe(context, cwd: String, rev: String = "HEAD".to_owned(), **kwargs) {
        Ok(Git::new(context, Some(&cwd), &kwargs).plain(&["describe", "--always", &rev])?.into())
    }

    /// Tells what differs.
    ///
    /// CLI Example:
    ///
    ///     salt '*' git.diff /path/to/repo
    fn diff(context, cwd: String, item1: Option<String> = None, item2: Option<String> = None, opts: Value = Value::Nil, git_opts: Value = Value::Nil, no_index: bool = false, cached: bool = false, paths: Value = Value::Nil, **kwargs) {
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
        let command = command(&git_opts, &["diff"])?.words(options(&opts)?).words(kind).words(items).words(separator).words(paths);
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
    fn discard_local_changes(context, cwd: String, path: String = ".".to_owned(), **kwargs) {
        command(&Value::Nil, &["checkout", "--", &path])?.told_both(context, &cwd, &kwargs)
    }

    /// Fetches from a remote, and tells what is new.
    ///
    /// CLI Example:
    ///
    ///     salt '*' git.fetch /path/to/repo upstream
    fn fetch(context, cwd: String, remote: Option<String> = None, force: bool = false, refspecs: Value = Value::Nil, opts: Value = Value::Nil, git_opts: Value = Value::Nil, **kwargs) {
        _ = git_opts;
        let git = Git::new(context, Some(&cwd), &kwargs);
        Ok(git.fetch(remote.as_deref(), force, &names(&refspecs), &options(&opts)?)?.into())
    }

    /// Makes an empty repository.
    ///
    /// CLI Example:
    ///
    ///     salt '*' git.init /path/to/repo
    fn init(context, cwd: String, bare: bool = false, template: Option<String> = None, separate_git_dir: Option<String> = None, shared: Value = Value::Nil, opts: Value = Value::Nil, git_opts: Value = Value::Nil, **kwargs) {
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
    fn is_worktree(context, cwd: String, **kwargs) {
        Ok(Git::new(context, Some(&cwd), &kwargs).is_worktree().into())
    }

    /// Gives the names of the branches.
    ///
    /// CLI Example:
    ///
    ///     salt '*' git.list_branches /path/to/repo
    fn list_branches(context, cwd: String, remote: bool = false, **kwargs) {
        Ok(Git::new(context, Some(&cwd), &kwargs).names(if remote { "remotes" } else { "heads" })?.into())
    }

    /// Gives the names of the tags.
    ///
    /// CLI Example:
    ///
    ///     salt '*' git.list_tags /path/to/repo
    fn list_tags(context, cwd: String, **kwargs) {
        Ok(Git::new(context, Some(&cwd), &kwargs).names("tags")?.into())
    }

    /// Gives the references of a remote.
    ///
    /// CLI Example:
    ///
    ///     salt '*' git.ls_remote /path/to/repo origin main
    fn ls_remote(context, cwd: Option<String> = None, remote: String = "origin".to_owned(), r#ref: Option<String> = None, opts: Value = Value::Nil, git_opts: Value = Value::Nil, https_user: Option<String> = None, https_pass: Option<String> = None, **kwargs) {
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
    fn merge(context, cwd: String, rev: Option<String> = None, opts: Value = Value::Nil, git_opts: Value = Value::Nil, **kwargs) {
        command(&git_opts, &["merge"])?.words(options(&opts)?).words(rev).told(context, &cwd, &kwargs)
    }

    /// Gives the best common ancestor, or whether one commit comes before another.
    ///
    /// CLI Example:
    ///
    ///     salt '*' git.merge_base /path/to/repo HEAD upstream/mybranch
    fn merge_base(context, cwd: String, refs: Value = Value::Nil, octopus: bool = false, is_ancestor: bool = false, independent: bool = false, fork_point: Option<String> = None, opts: Value = Value::Nil, git_opts: Value = Value::Nil, **kwargs) {
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
        let kinds = [(all, "--all"), (octopus, "--octopus"), (is_ancestor, "--is-ancestor"), (independent, "--independent")];
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
    fn pull(context, cwd: String, opts: Value = Value::Nil, git_opts: Value = Value::Nil, **kwargs) {
        command(&git_opts, &["pull"])?.words(options(&opts)?).told(context, &cwd, &kwargs)
    }

    /// Sends a branch or tag to a remote.
    ///
    /// CLI Example:
    ///
    ///     salt '*' git.push /path/to/repo origin main
    fn push(context, cwd: String, remote: String, r#ref: String, opts: Value = Value::Nil, git_opts: Value = Value::Nil, **kwargs) {
        command(&git_opts, &["push"])?.words(options(&opts)?).words([remote, r#ref]).told(context, &cwd, &kwargs)
    }

    /// Puts the own commits behind those of another branch.
    ///
    /// CLI Example:
    ///
    ///     salt '*' git.rebase /path/to/repo main
    fn rebase(context, cwd: String, rev: String = "master".to_owned(), opts: Value = Value::Nil, git_opts: Value = Value::Nil, **kwargs) {
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
    fn remote_get(context, cwd: String, remote: String = "origin".to_owned(), redact_auth: bool = true, **kwargs) {
        let git = Git::new(context, Some(&cwd), &kwargs);
        let missing = || CallError::Execution(format!(
            "Remote '{remote}' not present in git checkout located at {}", git.cwd.as_deref().unwrap_or(Path::new("")).display()
        ));
        git.remotes()?.shift_remove(&remote).map(|found| place(found, redact_auth)).ok_or_else(missing)
    }

    /// Gives the references of the repository at a URL.
    ///
    /// CLI Example:
    ///
    ///     salt '*' git.remote_refs https://example.org/repo.git
    fn remote_refs(context, url: String, heads: bool = false, tags: bool = false, https_user: Option<String> = None, https_pass: Option<String> = None, **kwargs) {
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
    fn remote_set(context, cwd: String, url: String, remote: String = "origin".to_owned(), https_user: Option<String> = None, https_pass: Option<String> = None, push_url: Option<String> = None, push_https_user: Option<String> = None, push_https_pass: Option<String> = None, **kwargs) {
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
    fn remotes(context, cwd: String, redact_auth: bool = true, **kwargs) {
        let found = Git::new(context, Some(&cwd), &kwargs).remotes()?;
        Ok(found.into_iter().map(|(name, remote)| (name.into(), place(remote, redact_auth))).collect::<Map>().into())
    }

    /// Takes the branch to another commit, or files out of what is staged.
    ///
    /// CLI Example:
    ///
    ///     salt '*' git.reset /path/to/repo opts='--hard origin/main'
    fn reset(context, cwd: String, opts: Value = Value::Nil, git_opts: Value = Value::Nil, **kwargs) {
        command(&git_opts, &["reset"])?.words(options(&opts)?).told(context, &cwd, &kwargs)
    }

    /// Gives the commit that something means.
    ///
    /// CLI Example:
    ///
    ///     salt '*' git.rev_parse /path/to/repo HEAD
    fn rev_parse(context, cwd: String, rev: Option<String> = None, opts: Value = Value::Nil, git_opts: Value = Value::Nil, **kwargs) {
        command(&git_opts, &["rev-parse"])?.words(options(&opts)?).words(rev).told(context, &cwd, &kwargs)
    }

    /// Gives the commit that is checked out, or that something means.
    ///
    /// CLI Example:
    ///
    ///     salt '*' git.revision /path/to/repo mybranch
    fn revision(context, cwd: String, rev: String = "HEAD".to_owned(), short: bool = false, **kwargs) {
        let short = short.then(|| "--short".to_owned());
        command(&Value::Nil, &["rev-parse"])?.words(short).words([rev]).told(context, &cwd, &kwargs)
    }

    /// Removes files, from what is staged too.
    ///
    /// CLI Example:
    ///
    ///     salt '*' git.rm /path/to/repo foo/bar.py
    fn rm(context, cwd: String, filename: String, opts: Value = Value::Nil, git_opts: Value = Value::Nil, **kwargs) {
        command(&git_opts, &["rm"])?.words(options(&opts)?).words(["--".into(), filename]).told(context, &cwd, &kwargs)
    }

    /// Puts changes aside, or brings them back.
    ///
    /// CLI Example:
    ///
    ///     salt '*' git.stash /path/to/repo save opts='work in progress'
    fn stash(context, cwd: String, action: String = "save".to_owned(), opts: Value = Value::Nil, git_opts: Value = Value::Nil, **kwargs) {
        command(&git_opts, &["stash", &action])?.words(options(&opts)?).told(context, &cwd, &kwargs)
    }

    /// Tells which files are modified, new, deleted and untracked.
    ///
    /// CLI Example:
    ///
    ///     salt '*' git.status /path/to/repo
    fn status(context, cwd: String, **kwargs) {
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
    fn submodule(context, cwd: String, command: String, opts: Value = Value::Nil, git_opts: Value = Value::Nil, **kwargs) {
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
    fn symbolic_ref(context, cwd: String, r#ref: String, value: Option<String> = None, opts: Value = Value::Nil, git_opts: Value = Value::Nil, **kwargs) {
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
    fn tag(context, cwd: String, name: String, r#ref: String = "HEAD".to_owned(), message: Option<String> = None, opts: Value = Value::Nil, git_opts: Value = Value::Nil, **kwargs) {
        let opts: Vec<String> = options(&opts)?.into_iter().filter(|word| word != "-a" && word != "--annotate").collect();
        if opts.iter().any(|word| word == "-m" || word.contains("--message")) {
            return Err(CallError::Execution("Tag messages must be passed in the \"message\" argument".into()));
        }
        let deletes = opts.iter().any(|word| word == "-d" || word == "--delete");
        let message = message.into_iter().flat_map(|message| ["-a".to_owned(), "-m".to_owned(), message]);
        let place = (!deletes).then_some(r#ref);
        command(&git_opts, &["tag"])?.words(message).words(opts).words([name]).words(place).told_both(context, &cwd, &kwargs)
    }

    /// Gives the version of git, or its parts.
    ///
    /// CLI Example:
    ///
    ///     salt '*' git.version
    fn version(context, versioninfo: bool = false) {
        let told = Git::new(context, None, &Map::new()).plain(&["--version"])?;
        let version = told.split('(').next().and_then(|told| told.split_whitespace().last()).unwrap_or("unknown");
        if !versioninfo {
            return Ok(version.into());
        }
        let part = |part: &str| part.parse::<i64>().map_or_else(|_| Value::from(part), Value::from);
        Ok(version.split('.').map(part).collect())
    }
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
