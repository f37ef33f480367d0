//! Remote repositories: references, fetch, pull and push.

use std::path::Path;

use brine_context::Context;
use brine_function::{Args, CallError, CallResult, function};
use brine_host::programs::argument;
use brine_host::web::redacted;
use brine_value::{Map, Value};
use indexmap::IndexMap;

use super::command::{CheckoutArgs, LoginArgs, RemoteCommandArgs, command, options};
use super::repository::{Git, Remote, with_login};
use brine_function::arguments::{names, refuse};

/// Fetch from a remote, and return the new and updated references.
///
/// CLI Example:
///
///     salt '*' git.fetch /path/to/repo upstream
#[function]
pub fn fetch(
    context: &Context,
    /// Directory of the checkout.
    cwd: String,
    /// Name of the remote.
    remote: Option<String>,
    /// Whether uncommitted changes, or references that are not fast-forward, are overwritten.
    #[default(false)]
    force: bool,
    /// References to fetch, as a list or with commas.
    #[default]
    refspecs: Value,
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
    let refused = [("git_opts", "set such options by git.config_set")];
    refuse("git.fetch", &brine_value::map! {"git_opts" => git_opts}, &refused)?;
    let git = Git::new(context, Some(&cwd), &kwargs);
    Ok(git.fetch(remote.as_deref(), force, &names(&refspecs), &options(&opts)?)?.into())
}

/// The arguments of `git.ls_remote`.
#[derive(Args)]
pub struct LsRemoteArgs {
    /// Directory of the checkout.
    cwd: Option<String>,
    /// Name or URL of the remote.
    #[default("origin".to_owned())]
    remote: String,
    /// Reference to return; all by default.
    r#ref: Option<String>,
    #[args]
    command: RemoteCommandArgs,
}

/// Return the references of a remote.
///
/// CLI Example:
///
///     salt '*' git.ls_remote /path/to/repo origin main
#[function]
pub fn ls_remote(context: &Context, #[args] args: LsRemoteArgs) -> CallResult {
    let mut words = options(&args.command.options.opts)?;
    words.push(argument(&args.command.url(&args.remote)?)?);
    words.extend(args.r#ref.filter(|name| !name.is_empty()).map(|name| argument(&name)).transpose()?);
    Ok(texts(Git::new(context, args.cwd.as_deref(), &args.command.kwargs).refs(&words)?))
}

/// Fetch from a remote and merge.
///
/// CLI Example:
///
///     salt '*' git.pull /path/to/repo opts='--rebase origin main'
#[function]
pub fn pull(context: &Context, #[args] args: CheckoutArgs) -> CallResult {
    args.run(context, "pull")
}

/// Push a branch or tag to a remote.
///
/// CLI Example:
///
///     salt '*' git.push /path/to/repo origin main
#[function]
pub fn push(
    context: &Context,
    /// Directory of the checkout.
    cwd: String,
    /// Name of the remote.
    remote: String,
    /// Name of the reference.
    r#ref: String,
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
    command(&git_opts, &["push"])?.words(options(&opts)?).operands([remote, r#ref])?.run(context, &cwd, &kwargs)
}

/// Return the URLs of a remote.
///
/// CLI Example:
///
///     salt '*' git.remote_get /path/to/repo
#[function]
pub fn remote_get(
    context: &Context,
    /// Directory of the checkout.
    cwd: String,
    /// Name of the remote.
    #[default("origin".to_owned())]
    remote: String,
    /// Whether passwords in URLs are masked.
    #[default(true)]
    redact_auth: bool,
    /// Arguments of every function here: `user`, `identity`, `ignore_retcode`, `saltenv`, ...
    #[keywords]
    kwargs: Map,
) -> CallResult {
    let git = Git::new(context, Some(&cwd), &kwargs);
    let missing = || {
        CallError::Execution(format!(
            "Remote '{remote}' not present in git checkout located at {}",
            git.cwd.as_deref().unwrap_or(Path::new("")).display()
        ))
    };
    git.remotes()?.shift_remove(&remote).map(|remote| urls(remote, redact_auth)).ok_or_else(missing)
}

/// Return the references of the repository at a URL.
///
/// CLI Example:
///
///     salt '*' git.remote_refs https://example.org/repo.git
#[function]
pub fn remote_refs(
    context: &Context,
    /// URL of the repository.
    url: String,
    /// Whether branches are listed.
    #[default(false)]
    heads: bool,
    /// Whether tags are listed.
    #[default(false)]
    tags: bool,
    /// User name for HTTPS.
    https_user: Option<String>,
    /// Password for HTTPS.
    https_pass: Option<String>,
    /// Arguments of every function here: `user`, `identity`, `ignore_retcode`, `saltenv`, ...
    #[keywords]
    kwargs: Map,
) -> CallResult {
    let kinds = [(heads, "--heads"), (tags, "--tags")].into_iter().filter(|(is_set, _)| *is_set);
    let mut words: Vec<String> = kinds.map(|(_, word)| word.to_owned()).collect();
    words.push(argument(&with_login(&url, https_user.as_deref(), https_pass.as_deref())?)?);
    let filter = kwargs.get("filter").filter(|name| name.is_truthy()).map(|name| argument(&name.to_string()));
    words.extend(filter.transpose()?);
    Ok(texts(Git::new(context, None, &kwargs).refs(&words)?))
}

/// The arguments of `git.remote_set`.
#[derive(Args)]
pub struct RemoteSetArgs {
    /// Directory of the checkout.
    cwd: String,
    /// URL to fetch from.
    url: String,
    /// Name of the remote.
    #[default("origin".to_owned())]
    remote: String,
    #[args]
    login: LoginArgs,
    /// URL to push to.
    push_url: Option<String>,
    /// User name for pushing over HTTPS.
    push_https_user: Option<String>,
    /// Password for pushing over HTTPS.
    push_https_pass: Option<String>,
    /// Arguments of every function here: `user`, `identity`, `ignore_retcode`, `saltenv`, ...
    #[keywords]
    kwargs: Map,
}

/// Set the URL of a remote.
///
/// CLI Example:
///
///     salt '*' git.remote_set /path/to/repo git@example.org:user/repo.git
#[function]
pub fn remote_set(context: &Context, #[args] args: RemoteSetArgs) -> CallResult {
    let git = Git::new(context, Some(&args.cwd), &args.kwargs);
    git.set_remote(
        &args.remote,
        &with_login(&args.url, args.login.https_user.as_deref(), args.login.https_pass.as_deref())?,
    )?;
    if let Some(url) = args.push_url {
        let url = with_login(&url, args.push_https_user.as_deref(), args.push_https_pass.as_deref())?;
        git.plain(&["remote", "set-url", "--push", &argument(&args.remote)?, &argument(&url)?])?;
    }
    remote_get(context, args.cwd, args.remote, true, args.kwargs)
}

/// Return the URLs of all remotes.
///
/// CLI Example:
///
///     salt '*' git.remotes /path/to/repo
#[function]
pub fn remotes(
    context: &Context,
    /// Directory of the checkout.
    cwd: String,
    /// Whether passwords in URLs are masked.
    #[default(true)]
    redact_auth: bool,
    /// Arguments of every function here: `user`, `identity`, `ignore_retcode`, `saltenv`, ...
    #[keywords]
    kwargs: Map,
) -> CallResult {
    let remotes = Git::new(context, Some(&cwd), &kwargs).remotes()?;
    Ok(remotes.into_iter().map(|(name, remote)| (name.into(), urls(remote, redact_auth))).collect::<Map>().into())
}

fn texts(map: IndexMap<String, String>) -> Value {
    map.into_iter().map(|(key, value)| (key.into(), value.into())).collect::<Map>().into()
}

fn urls(remote: Remote, redact: bool) -> Value {
    let for_display = |url: String| if redact { redacted(&url) } else { url };
    remote.into_iter().map(|(action, url)| (action.into(), for_display(url).into())).collect::<Map>().into()
}
