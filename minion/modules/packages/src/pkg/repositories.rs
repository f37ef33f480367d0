//! `pkg` functions that manage repositories.

use brine_context::Context;
use brine_function::arguments::refuse;
use brine_function::{CallError, CallResult, Functions, function, registry};
use brine_value::Map;

use super::manager::{Repositories, packages};

/// Execution functions of `pkg`.
pub static FUNCTIONS: Functions<Context> = registry!("pkg", [list_repos, get_repo, del_repo, mod_repo]);

/// Return all repositories: by URI for apt, otherwise by name.
///
/// CLI Example:
///
///     salt '*' pkg.list_repos
#[function]
pub fn list_repos(
    context: &Context,
    /// Options of the repository, as in the state `pkgrepo.managed`.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    Ok(repositories(context, "pkg.list_repos")?.all(context, &kwargs)?.into())
}

/// Return a repository, by its name, or for apt by a line of `sources.list`; an empty mapping if it does not exist.
///
/// CLI Example:
///
///     salt '*' pkg.get_repo "deb http://deb.debian.org/debian stable main"
///     salt '*' pkg.get_repo epel
#[function]
pub fn get_repo(
    context: &Context,
    /// With apt the line of `sources.list`, otherwise the name of the repository.
    repo: String,
    /// Options of the repository, as in the state `pkgrepo.managed`.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    Ok(repositories(context, "pkg.get_repo")?.one(context, &repo, &kwargs)?.into())
}

/// Remove a repository from the package manager's files; its file is deleted if it becomes empty.
///
/// CLI Example:
///
///     salt '*' pkg.del_repo "deb http://deb.debian.org/debian stable main"
///     salt '*' pkg.del_repo epel
#[function]
pub fn del_repo(
    context: &Context,
    /// With apt the line of `sources.list`, otherwise the name of the repository.
    repo: String,
    /// Options of the repository, as in the state `pkgrepo.managed`.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    repositories(context, "pkg.del_repo")?.delete(context, &repo, &kwargs)
}

/// Add or change a repository. dnf and zypper accept the options of their `.repo` files, such as name, baseurl,
/// mirrorlist, enabled, gpgcheck, gpgkey; for dnf an empty option is removed.
///
/// For apt, whose repositories are given as a line of `sources.list`, the options are dist, comps, architectures,
/// file, enabled, disabled, comments, trusted, refresh, and for its key key_url, or keyid and keyserver, or
/// key_text.
///
/// CLI Example:
///
///     salt '*' pkg.mod_repo "deb http://deb.debian.org/debian stable main" comps=main,contrib
///     salt '*' pkg.mod_repo epel enabled=0
#[function]
pub fn mod_repo(
    context: &Context,
    /// With apt the line of `sources.list`, otherwise the name of the repository.
    repo: String,
    /// Options of the repository, as in the state `pkgrepo.managed`.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    refuse("pkg.mod_repo", &kwargs, &[("consolidate", "lines are changed one by one")])?;
    repositories(context, "pkg.mod_repo")?.modify(context, &repo, kwargs)
}

/// Returns the repositories of this host's package manager, or the error of a function that needs them.
fn repositories(context: &Context, function: &str) -> Result<&'static dyn Repositories, CallError> {
    packages(context)?.repositories().ok_or_else(|| CallError::NotAvailable(function.to_owned()))
}
