//! `git`: states of repositories.
//!
//! `latest/` keeps a checkout up to date with its remote, `detached.rs` keeps one at a commit, `config.rs` handles
//! git's configuration.

mod checkouts;
mod config;
mod detached;
mod latest;

use std::path::Path;

use brine_context::{Context, StateContext, StateReturn};
use brine_function::{Args, CallError, CallResult, Functions, function, registry};
use brine_host::programs::which;
use brine_system::user_files;
use brine_value::{FromValue, Map, Value, map};

use crate::git::command::{LayoutArgs, LoginArgs};
use crate::git::{Git, GitError, strings, with_login};

/// State functions of `git`.
pub static FUNCTIONS: Functions<StateContext> =
    registry!("git", [checkouts::latest, present, checkouts::detached, checkouts::cloned, config_set, config_unset]);

/// Returns the reason why the states are unavailable on this host; `None` if git is installed.
pub(super) fn unavailable(_context: &Context) -> Option<String> {
    which("git").is_none().then(|| "git module could not be loaded".into())
}

/// The user that runs git.
#[derive(Args)]
pub struct RunAsArgs {
    /// User that git runs as.
    user: Option<String>,
    #[allow(dead_code, reason = "an argument without effect")]
    /// Without effect: for Windows.
    password: Option<String>,
}

/// The encoding of git's output.
#[derive(Args)]
pub struct EncodingArgs {
    #[allow(dead_code, reason = "an argument without effect")]
    /// Without effect: output is read as UTF-8.
    #[default]
    output_encoding: Value,
}

/// The remaining arguments of states that reject unknown ones.
#[derive(Args)]
pub struct RestArgs {
    #[args]
    _encoding: EncodingArgs,
    /// Arguments of every state; others are an error.
    #[keywords]
    kwargs: Map,
}

/// The arguments that select a configuration of git.
#[derive(Args)]
pub struct ConfigScopeArgs {
    /// Directory of the checkout; without one, `global` is required.
    repo: Option<String>,
    #[args]
    run_as: RunAsArgs,
    #[args]
    _encoding: EncodingArgs,
    /// `global` selects the user's configuration.
    #[keywords]
    kwargs: Map,
}

impl ConfigScopeArgs {
    fn scope(self) -> config::ConfigScope {
        config::ConfigScope::new(self.repo, self.run_as.user, &self.kwargs)
    }
}

/// The arguments of `git.present`.
#[derive(Args)]
pub struct PresentArgs {
    /// Directory of the repository, as an absolute path.
    name: String,
    /// Whether a directory that is no repository is replaced.
    #[default(false)]
    force: bool,
    /// Whether the repository has no work tree.
    #[default(true)]
    bare: bool,
    #[args]
    layout: LayoutArgs,
    #[args]
    run_as: RunAsArgs,
    #[args]
    _encoding: EncodingArgs,
}

/// Ensure that there is a repository; a new one is empty.
///
/// SLS Example:
///
///     /srv/git/app.git:
///       git.present:
///         - bare: True
///         - user: git
///         - shared: group
#[function]
pub fn present(context: &StateContext, #[args] settings: PresentArgs) -> CallResult {
    let args = map! {
        "cwd" => settings.name.as_str(), "bare" => settings.bare, "template" => settings.layout.template, "separate_git_dir" => settings.layout.separate_git_dir,
        "shared" => settings.layout.shared, "user" => settings.run_as.user,
    };
    Ok(run_present(context, &settings.name, settings.force, args)?.into())
}

/// Ensure that git's configuration has this value.
///
/// SLS Example:
///
///     user.email:
///       git.config_set:
///         - value: deploy@example.com
///         - repo: /srv/app
///         - user: app
///
///     core.autocrlf:
///       git.config_set:
///         - value: 'false'
///         - user: app
///         - global: True
#[function]
pub fn config_set(
    context: &StateContext,
    /// Key of the setting, such as `user.email`.
    name: String,
    /// Value of the setting.
    value: Option<String>,
    /// List of values, for a key with several.
    #[default]
    multivar: Value,
    #[args] scope: ConfigScopeArgs,
) -> CallResult {
    Ok(config::set(context, &name, value, &multivar, scope.scope())?.into())
}

/// Ensure that git's configuration has no values for keys that match a regular expression.
///
/// SLS Example:
///
///     http\.proxy:
///       git.config_unset:
///         - user: app
///         - global: True
#[function]
pub fn config_unset(
    context: &StateContext,
    /// Regular expression of keys, such as `user\.(name|email)`.
    name: String,
    /// Regular expression of the values that are removed; all by default.
    value_regex: Option<String>,
    #[args] scope: ConfigScopeArgs,
) -> CallResult {
    let all = scope.kwargs.get("all").is_some_and(Value::is_truthy);
    Ok(config::unset(context, &name, value_regex, all, scope.scope())?.into())
}

/// Returns the message on unknown arguments: only the state with them fails.
fn not_valid(kwargs: &Map) -> Option<String> {
    let arguments = kwargs.iter().filter(|(key, _)| key.as_str().is_none_or(|key| !key.starts_with("__")));
    let arguments: Vec<String> = arguments.map(|(key, value)| format!("{key}={value}")).collect();
    (!arguments.is_empty()).then(|| format!("The following keyword arguments are not valid: {}", arguments.join(", ")))
}

/// Returns the message on the first argument that git would take for an option.
fn as_option<const COUNT: usize>(arguments: [(&str, &String); COUNT]) -> Option<String> {
    let wrong = arguments.into_iter().find(|(_, value)| value.starts_with('-'));
    wrong.map(|(name, value)| format!("'{value}' is not a valid value for the '{name}' argument"))
}

/// A result that ends the state early.
type EarlyReturn = Box<StateReturn>;

/// The repository of a checkout, and its directory.
struct Source {
    /// The URL.
    name: String,
    target: String,
    user: Option<String>,
    access: AccessArgs,
    remote: String,
}

/// Credentials for a remote repository.
#[derive(Args)]
pub struct AccessArgs {
    /// Path of a private key, or a list of them, for SSH.
    #[default]
    identity: Value,
    #[args]
    login: LoginArgs,
}

/// Joins comments into sentences.
fn sentences(comments: &[String]) -> String {
    let end = if comments.len() > 1 { "." } else { "" };
    comments.join(". ") + end
}

/// Returns a failure, with the changes made before it.
fn failure(name: &str, changes: &Map, message: &str, comments: &[String]) -> EarlyReturn {
    let before = sentences(comments);
    let before = if comments.is_empty() { before } else { format!("\n\nChanges already made: {before}") };
    Box::new(StateReturn::failed(name, format!("{message}{before}")).with_changes(changes.clone()))
}

/// Returns the first seven digits of a commit.
fn short(sha: Option<&str>) -> String {
    sha.map_or_else(|| "None".to_owned(), |sha| sha.chars().take(7).collect())
}

impl Source {
    fn new(name: String, target: String, run_as: RunAsArgs, access: AccessArgs, remote: String) -> Self {
        Source { name, target, user: run_as.user, access, remote }
    }

    /// Returns a handle for git in the target directory.
    fn git<'c>(&self, context: &'c StateContext) -> Git<'c> {
        Git::new(&context.call, Some(&self.target), &self.arguments(context))
    }

    /// Returns a handle for git without a working directory.
    fn git_without_cwd<'c>(&self, context: &'c StateContext) -> Git<'c> {
        Git::new(&context.call, None, &self.arguments(context))
    }

    fn arguments(&self, context: &StateContext) -> Map {
        map! {
            "user" => self.user.clone(), "identity" => self.access.identity.clone(), "saltenv" => context.saltenv.as_str(),
        }
    }

    /// Returns the failure if the identity is invalid.
    fn check_identity(&self, how: &str) -> Result<(), EarlyReturn> {
        let failed = |comment: String| Err(Box::new(StateReturn::failed(&self.name, comment)));
        if !matches!(self.access.identity, Value::Nil | Value::Str(_) | Value::List(_)) {
            return failed(format!("{how}dentity must be either a list or a string"));
        }
        let paths: Vec<String> = Vec::from_value(&self.access.identity).unwrap_or_default();
        match paths.iter().find(|path| !path.starts_with('/') && !path.starts_with("salt://") && !path.starts_with('~'))
        {
            Some(path) => failed(format!("{how}dentity '{path}' is not an absolute path")),
            None => Ok(()),
        }
    }

    /// Returns the URL with the credentials.
    fn url(&self) -> Result<String, EarlyReturn> {
        with_login(&self.name, self.access.login.https_user.as_deref(), self.access.login.https_pass.as_deref())
            .map_err(|error| Box::new(StateReturn::failed(&self.name, error.to_string())))
    }

    fn clone(&self, context: &StateContext, options: &[String]) -> Result<(), GitError> {
        let url =
            with_login(&self.name, self.access.login.https_user.as_deref(), self.access.login.https_pass.as_deref())?;
        self.git_without_cwd(context).clone_to(&self.target, &url, options)
    }

    /// Whether there is a checkout, or a bare repository, in the target.
    fn is_there(&self, context: &StateContext, bare: bool) -> bool {
        let inside = if bare { "refs" } else { ".git" };
        Path::new(&self.target).join(inside).is_dir() || self.git(context).is_worktree()
    }

    /// Empties the target directory with `force`; otherwise, a directory with content is a failure. Returns whether
    /// the content was removed.
    fn empty_target(&self, context: &StateContext, force: bool, test_changes: Map) -> Result<bool, EarlyReturn> {
        let target = &self.target;
        let Ok(entries) = std::fs::read_dir(target) else { return Ok(false) };
        let entries: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
        if !force {
            if entries.is_empty() {
                return Ok(false);
            }
            return Err(Box::new(StateReturn::failed(
                &self.name,
                format!(
                    "Target '{target}' exists, is non-empty and is not a git repository. Set the 'force_clone' option to \
                     True to remove this directory's contents and proceed with cloning the remote repository"
                ),
            )));
        }
        if context.test {
            let comment = format!(
                "Target directory {target} exists. Since force_clone=True, the contents of {target} would be deleted, \
                 and {} would be cloned into this directory.",
                self.name
            );
            return Err(Box::new(StateReturn::predicted(&self.name, comment).with_changes(test_changes)));
        }
        let mut errors = String::new();
        for path in entries {
            let removed = user_files::remove_dir_all(&path);
            if let Err(error) = removed {
                errors += &format!("\n  {}\n    {error}", path.display());
            }
        }
        if errors.is_empty() {
            return Ok(true);
        }
        Err(Box::new(StateReturn::failed(&self.name, format!("Unable to remove{errors}"))))
    }

    fn update_submodules(&self, context: &StateContext) -> Result<(), GitError> {
        self.git(context).plain(&["submodule", "update", "--init", "--recursive"]).map(|_| ())
    }

    /// Runs `git.cloned`.
    fn run_cloned(&self, context: &StateContext, branch: Option<&str>) -> Result<StateReturn, EarlyReturn> {
        let (name, target) = (&self.name, &self.target);
        let failed = |comment: String| Box::new(StateReturn::failed(name, comment));
        let with_branch = branch.map(|branch| format!(" with branch '{branch}'")).unwrap_or_default();
        if !Path::new(target).exists() {
            let changes = map! {"new" => format!("{name} => {target}")};
            if context.test {
                let comment = format!("{name} would be cloned to {target}{with_branch}");
                return Ok(StateReturn::predicted(name, comment).with_changes(changes));
            }
            let options = branch.map(|branch| strings(&["--branch", branch])).unwrap_or_default();
            self.clone(context, &options).map_err(|error| failed(format!("Clone failed: {}", error.bare())))?;
            return Ok(StateReturn::ok(name, format!("{name} cloned to {target}{with_branch}")).with_changes(changes));
        }
        let git = self.git(context);
        git.plain(&["status", "-z", "--porcelain"]).map_err(|error| failed(error.to_string()))?;
        let current = git.current_branch().map_err(|error| failed(error.to_string()))?;
        let Some(branch) = branch.filter(|branch| *branch != current) else {
            let on = branch.map(|branch| format!(" and is checked out to branch '{branch}'")).unwrap_or_default();
            return Ok(StateReturn::ok(name, format!("Repository already exists at {target}{on}")));
        };
        let changes = map! {"branch" => map! {"old" => current, "new" => branch}};
        if context.test {
            return Ok(
                StateReturn::predicted(name, format!("Branch would be changed to '{branch}'")).with_changes(changes)
            );
        }
        let words = match git.quietly().rev_parse(branch, &[]) {
            Ok(_) => strings(&["checkout", branch]),
            Err(_) => strings(&["checkout", "-b", branch, &format!("origin/{branch}")]),
        };
        git.both(&words).map_err(|error| failed(format!("Failed to change branch to '{branch}': {error}")))?;
        Ok(StateReturn::ok(name, format!("Branch changed to '{branch}'")).with_changes(changes))
    }
}

/// Runs `git.present`.
fn run_present(context: &StateContext, name: &str, force: bool, args: Map) -> Result<StateReturn, CallError> {
    let path = Path::new(name);
    let is_bare = args.get("bare").is_some_and(Value::is_truthy);
    let bare = if is_bare { "bare " } else { "" };
    let mut changes = Map::new();
    if path.is_dir() {
        let user = args.get("user").cloned().unwrap_or_default();
        let is_worktree = || Git::new(&context.call, Some(name), &map! {"user" => user}).is_worktree();
        if is_bare && path.join("HEAD").is_file() || !is_bare && (path.join(".git").is_dir() || is_worktree()) {
            return Ok(StateReturn::ok(name, ""));
        }
        let is_empty = path.read_dir().is_ok_and(|mut entries| entries.next().is_none());
        if force && context.test {
            let changes = map! {"new" => name, "forced init" => true};
            let comment = format!(
                "Target directory {name} exists. Since force=True, the contents of {name} would be deleted, and a \
                 {bare}repository would be initialized in its place."
            );
            return Ok(StateReturn::predicted(name, comment).with_changes(changes));
        }
        if force {
            let removed = user_files::remove_dir_all(path);
            if let Err(error) = removed {
                return Ok(StateReturn::failed(name, format!("Unable to remove {name}: {error}")));
            }
            changes.insert("forced init".into(), true.into());
        } else if !is_empty {
            let comment = format!(
                "Target '{name}' exists, is non-empty, and is not a git repository. Set the 'force' option to True to \
                 remove this directory's contents and proceed with initializing a repository"
            );
            return Ok(StateReturn::failed(name, comment));
        }
    }
    if context.test {
        changes.insert("new".into(), name.into());
        return Ok(StateReturn::predicted(name, format!("New {bare}repository would be created")).with_changes(changes));
    }
    let text = |key: &str| args.get(key).filter(|value| value.is_truthy()).map(ToString::to_string);
    let (template, directory) = (text("template"), text("separate_git_dir"));
    match context.call.call("git.init", Args::keyword(args)) {
        Ok(_) => {}
        Err(CallError::Execution(error)) => return Ok(StateReturn::failed(name, error)),
        Err(error) => return Err(error),
    }
    let mut actions = vec![format!("Initialized {bare}repository in {name}")];
    actions.extend(template.map(|directory| format!("Template directory set to {directory}")));
    actions.extend(directory.map(|directory| format!("Gitdir set to {directory}")));
    changes.insert("new".into(), name.into());
    Ok(StateReturn::ok(name, sentences(&actions)).with_changes(changes))
}
