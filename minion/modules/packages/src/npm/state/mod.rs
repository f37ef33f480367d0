//! `npm`: states of packages of Node.js.

use brine_context::{StateContext, StateReturn};
use brine_function::{Args, CallError, CallResult, Functions, function, registry};
use brine_value::{Map, Value, map};

/// State functions of `npm`.
pub static FUNCTIONS: Functions<StateContext> = registry!("npm", [installed, removed, bootstrap, cache_cleaned]);

/// The arguments of `npm.installed`.
#[derive(Debug, brine_function::Args)]
pub struct Packages {
    /// The package, with a version such as `coffee-script@1.0.1`, unless `pkgs` is set.
    name: String,
    /// Several packages.
    #[default]
    pkgs: Vec<String>,
    /// The directory of the project; without it the packages are those of the host.
    dir: Option<String>,
    /// The user that runs npm.
    user: Option<String>,
    /// Whether installed packages are installed again.
    #[default(false)]
    force_reinstall: bool,
    /// The URL of another registry.
    registry: Option<String>,
    /// Variables of the environment.
    env: Option<Map>,
}

/// Ensure that packages are installed.
///
/// SLS Example:
///
///     frontend_tools:
///       npm.installed:
///         - pkgs:
///           - typescript@5.4.5
///           - eslint
///         - dir: /srv/app
///         - user: app
#[function]
pub fn installed(context: &StateContext, #[args] args: Packages) -> CallResult {
    let Packages { name, pkgs, dir, user, force_reinstall, registry, env } = args;
    let packages = if pkgs.is_empty() { vec![name.clone()] } else { pkgs };
    let how = map! {"dir" => dir.clone(), "runas" => user.clone(), "env" => env.clone()};
    let current = match listed(context, &how) {
        Ok(current) => current,
        Err(error) => return Ok(StateReturn::failed(&name, format!("Error looking up '{name}': {error}")).into()),
    };
    let (mut missing, mut satisfied) = (Vec::new(), Vec::new());
    for package in &packages {
        match version_of(&current, package) {
            Some(version) if !force_reinstall => satisfied.push(version),
            _ => missing.push(package.clone()),
        }
    }
    let all = packages.join(", ");
    let mut sentences = Vec::new();
    if !missing.is_empty() {
        sentences.push(format!("NPM package(s) '{}' are set to be installed", missing.join(", ")));
    }
    if !satisfied.is_empty() {
        sentences.push(format!("Package(s) '{all}' satisfied by {}", satisfied.join(", ")));
    }
    if missing.is_empty() {
        return Ok(StateReturn::ok(&name, sentences.join(". ")).into());
    }
    let changes = map! {"old" => Vec::<Value>::new(), "new" => missing.clone()};
    if context.test {
        return Ok(StateReturn::predicted(&name, sentences.join(". ")).with_changes(changes).into());
    }
    let mut keyword = map! {"pkgs" => packages, "registry" => registry};
    keyword.extend(how);
    match context.call.call("npm.install", Args::keyword(keyword)) {
        Ok(_) => {
            let comment = format!("Package(s) '{}' successfully installed", missing.join(", "));
            Ok(StateReturn::ok(&name, comment).with_changes(changes).into())
        }
        Err(error) => Ok(StateReturn::failed(&name, format!("Error installing '{all}': {}", message(error))).into()),
    }
}

/// Ensure that a package is not installed.
///
/// SLS Example:
///
///     grunt:
///       npm.removed:
///         - dir: /srv/app
#[function]
pub fn removed(
    context: &StateContext,
    /// Name of the package.
    name: String,
    /// Directory of the project; without one, packages are global.
    dir: Option<String>,
    /// User that npm runs as.
    user: Option<String>,
) -> CallResult {
    let how = map! {"dir" => dir, "runas" => user};
    let current = match listed(context, &how) {
        Ok(current) => current,
        Err(error) => return Ok(StateReturn::failed(&name, format!("Error uninstalling '{name}': {error}")).into()),
    };
    if !current.contains_key(&Value::from(name.as_str())) {
        return Ok(StateReturn::ok(&name, format!("Package '{name}' is not installed")).into());
    }
    if context.test {
        return Ok(StateReturn::predicted(&name, format!("Package '{name}' is set to be removed")).into());
    }
    let args = Args { positional: vec![name.as_str().into()], keyword: how };
    if !context.call.call("npm.uninstall", args)?.is_truthy() {
        return Ok(StateReturn::failed(&name, format!("Error removing package '{name}'")).into());
    }
    let comment = format!("Package '{name}' was successfully removed");
    Ok(StateReturn::ok(&name, comment).with_changes(map! {name.as_str() => "Removed"}).into())
}

/// Install the packages of a project, whose directory is the name.
///
/// SLS Example:
///
///     /srv/app:
///       npm.bootstrap:
///         - user: app
#[function]
pub fn bootstrap(
    context: &StateContext,
    /// Directory of the project.
    name: String,
    /// User that npm runs as.
    user: Option<String>,
    /// Whether npm prints only errors.
    #[default(true)]
    silent: bool,
) -> CallResult {
    let keyword = map! {"dir" => name.as_str(), "runas" => user, "silent" => silent, "dry_run" => context.test};
    let report = match context.call.call("npm.install", Args::keyword(keyword)) {
        Ok(report) => report,
        Err(error) => {
            let comment = format!("Error Bootstrapping '{name}': {}", message(error));
            return Ok(StateReturn::failed(&name, comment).into());
        }
    };
    let is_changed = match &report {
        Value::Map(counts) if counts.contains_key(&Value::from("added")) => {
            ["added", "changed", "removed"].iter().any(|key| report.get(key).is_some_and(Value::is_truthy))
        }
        report => report.is_truthy(),
    };
    let report = match (is_changed, context.test) {
        (false, true) => StateReturn::ok(&name, format!("{name} is already bootstrapped")),
        (false, false) => StateReturn::ok(&name, "Directory is already bootstrapped"),
        (true, true) => StateReturn::predicted(&name, format!("{name} is set to be bootstrapped"))
            .with_changes(map! {"old" => Vec::<Value>::new(), "new" => report}),
        (true, false) => StateReturn::ok(&name, "Directory was successfully bootstrapped")
            .with_changes(map! {name.as_str() => "Bootstrapped"}),
    };
    Ok(report.into())
}

/// Ensure that a package is not in the cache of npm; without a name, that the cache is empty. Newer releases of npm need
/// `force`.
///
/// SLS Example:
///
///     clean_npm_cache:
///       npm.cache_cleaned:
///         - name: null
///         - force: True
#[function]
pub fn cache_cleaned(
    context: &StateContext,
    /// Name of the package; all by default.
    name: Option<String>,
    /// User that npm runs as.
    user: Option<String>,
    /// Whether npm cleans the cache even if it finds no errors in it.
    #[default(false)]
    force: bool,
) -> CallResult {
    let title = name.clone().unwrap_or_default();
    let what = name.clone().unwrap_or_else(|| "packages".into());
    let list = |path: Option<&str>| {
        let result = context.call.call("npm.cache_list", Args::keyword(map! {"path" => path, "runas" => user.clone()}));
        result.map(|value| value.to_string()).map_err(message)
    };
    let cached = match list(name.as_deref()) {
        Ok(cached) => cached,
        Err(error) => {
            return Ok(StateReturn::failed(&title, format!("Error looking up cached {what}: {error}")).into());
        }
    };
    if let Some(package) = &name {
        // The first line is the directory of the cache.
        let all = list(None).unwrap_or_default();
        let directory = format!("{}/{package}/", all.lines().next().unwrap_or_default());
        if !cached.lines().any(|line| line == directory) {
            return Ok(StateReturn::ok(&title, format!("Package {package} is not in the cache")).into());
        }
    }
    if context.test {
        return Ok(StateReturn::predicted(&title, format!("Cached {what} set to be removed")).into());
    }
    let keyword = map! {"path" => name.clone(), "runas" => user, "force" => force};
    if !context.call.call("npm.cache_clean", Args::keyword(keyword))?.is_truthy() {
        return Ok(StateReturn::failed(&title, format!("Error cleaning cached {what}")).into());
    }
    let changes = map! {name.unwrap_or_else(|| "cache".into()) => "Removed"};
    Ok(StateReturn::ok(&title, format!("Cached {what} successfully removed")).with_changes(changes).into())
}

/// Returns the installed packages.
fn listed(context: &StateContext, how: &Map) -> Result<Map, String> {
    let mut keyword = how.clone();
    keyword.insert("depth".into(), 0.into());
    let listed = context.call.call("npm.list", Args::keyword(keyword)).map_err(message)?;
    Ok(listed.as_map().cloned().unwrap_or_default())
}

fn message(error: CallError) -> String {
    match error {
        CallError::Execution(message) => message,
        other => other.to_string(),
    }
}

/// Returns the name and version of an installed package that satisfies a wanted one: `name`, `name@version`, or a URL
/// that it was installed from.
fn version_of(current: &Map, specification: &str) -> Option<String> {
    let (name, version) = match specification.get(1..).and_then(|rest| rest.find('@')) {
        // The name of a scoped package begins with an @.
        Some(at) if !specification.contains("://") => (&specification[..=at], Some(&specification[at + 2..])),
        _ => (specification, None),
    };
    let field = |about: &Value, field: &str| about.get(field).map(ToString::to_string);
    if let Some(installed_version) = current.get(name).and_then(|about| field(about, "version")) {
        return version
            .is_none_or(|version| version == installed_version)
            .then(|| format!("{name}@{installed_version}"));
    }
    let (_, address) = specification.split_once("://")?;
    let is_from = |about: &Value| {
        let sources = ["from", "resolved"].into_iter().filter_map(|key| field(about, key));
        sources.into_iter().any(|source| source.split_once("://").is_some_and(|(_, source)| source == address))
    };
    let (name, about) = current.iter().find(|(_, about)| is_from(about))?;
    Some(format!("{name}@{}", field(about, "version").unwrap_or_default()))
}

#[cfg(test)]
mod tests;
