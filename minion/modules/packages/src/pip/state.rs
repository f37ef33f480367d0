//! `pip`: states of Python packages.

use std::cmp::Ordering;

use brine_context::{StateContext, StateReturn};
use brine_function::{Args, CallError, CallResult, Functions, Others, ParamList, function, registry};
use brine_host::accounts::Accounts;
use brine_value::{FromValue, Map, Value, map};

use crate::pip::normalized;
use crate::pip::versions::{Requirement, compare};

/// State functions of `pip`.
pub static FUNCTIONS: Functions<StateContext> = registry!("pip", [installed, removed, uptodate]);

/// Ensure that packages are installed: `name`, those of `pkgs`, of requirements files, or of a source.
///
/// SLS Example:
///
///     flask:
///       pip.installed:
///         - name: flask >=3.0,<4
///         - bin_env: /srv/app/venv
///         - user: app
///
///     app_requirements:
///       pip.installed:
///         - requirements: salt://app/requirements.txt
///         - bin_env: /srv/app/venv
///         - require:
///           - virtualenv: /srv/app/venv
#[function]
pub fn installed(
    context: &StateContext,
    /// Package with its conditions, such as `django>=4,<5`.
    name: String,
    /// Packages with their conditions, in the place of `name`.
    #[default]
    pkgs: Value,
    /// Directory of a virtual environment, a python, or a pip.
    bin_env: Option<String>,
    #[keywords(further)] kwargs: Map,
) -> CallResult {
    let mut kwargs = kwargs;
    let other = kwargs.shift_remove("pip_bin").filter(Value::is_truthy).map(|program| program.to_string());
    kwargs.insert("bin_env".into(), bin_env.or(other).into());
    let pkgs = match &pkgs {
        pkgs if !pkgs.is_truthy() => vec![name.clone()],
        Value::List(pkgs) => pkgs.iter().map(ToString::to_string).collect(),
        _ => return Ok(StateReturn::failed(&name, "pkgs argument must be formatted as a list").into()),
    };
    let desired = Installed { label: pkgs.join(";"), pkgs, kwargs };
    match desired.state(context) {
        Ok(outcome) => Ok(outcome.into()),
        Err(CallError::Execution(error)) => {
            let comment = format!("Error installing '{name}': {error}");
            Ok(StateReturn::failed(&desired.label, comment).into())
        }
        Err(error) => Err(error),
    }
}

/// Ensure that a package is not installed.
///
/// SLS Example:
///
///     flask:
///       pip.removed:
///         - bin_env: /srv/app/venv
#[function]
pub fn removed(
    context: &StateContext,
    /// Name of the package.
    name: String,
    #[keywords(further)] kwargs: Map,
) -> CallResult {
    let list = match call(context, "pip.list", &kwargs, Map::new()) {
        Ok(list) => list,
        Err(CallError::Execution(error)) => {
            return Ok(StateReturn::failed(&name, format!("Error uninstalling '{name}': {error}")).into());
        }
        Err(error) => return Err(error),
    };
    if list.get(&name).is_none() {
        return Ok(StateReturn::ok(&name, "Package is not installed.").into());
    }
    if context.test {
        return Ok(StateReturn::predicted(&name, format!("Package {name} is set to be removed")).into());
    }
    let requirements = kwargs.get("requirements").cloned().unwrap_or_default();
    let result =
        call(context, "pip.uninstall", &kwargs, map! {"pkgs" => name.as_str(), "requirements" => requirements})?;
    if result.get("retcode").is_some_and(Value::is_truthy) {
        return Ok(StateReturn::failed(&name, "Could not remove package.").into());
    }
    let changes = map! {name.as_str() => "Removed"};
    Ok(StateReturn::ok(&name, "Package was successfully removed.").with_changes(changes).into())
}

/// Ensure that all packages have their newest version.
///
/// SLS Example:
///
///     all_python_packages:
///       pip.uptodate:
///         - bin_env: /srv/app/venv
#[function]
pub fn uptodate(
    context: &StateContext,
    /// Name of the state.
    name: String,
    #[keywords(further)] kwargs: Map,
) -> CallResult {
    let upgrades = match call(context, "pip.list_upgrades", &kwargs, Map::new()) {
        Ok(upgrades) => upgrades,
        Err(CallError::Execution(error)) => return Ok(StateReturn::failed(&name, error).into()),
        Err(error) => return Err(error),
    };
    if !upgrades.is_truthy() {
        return Ok(StateReturn::ok(&name, "System is already up-to-date.").into());
    }
    if context.test {
        return Ok(StateReturn::predicted(&name, "System update will be performed").into());
    }
    let updated = call(context, "pip.upgrade", &kwargs, Map::new())?;
    let text = |key: &str| updated.get(key).map(ToString::to_string).unwrap_or_default();
    let changes = updated.get("changes").and_then(Value::as_map).cloned().unwrap_or_default();
    if updated.get("result") == Some(&Value::Bool(false)) {
        return Ok(StateReturn::failed(&name, text("comment")).with_changes(changes).into());
    }
    let changes = updated.as_map().cloned().unwrap_or(changes);
    Ok(StateReturn::ok(&name, "Upgrade successful.").with_changes(changes).into())
}

/// Calls a function of `pip` with the arguments that select the environment and the user.
fn call(context: &StateContext, function: &str, kwargs: &Map, more: Map) -> Result<Value, CallError> {
    let mut args = more;
    for key in ["bin_env", "user", "cwd", "env_vars"] {
        if let Some(value) = kwargs.get(key).filter(|value| value.is_truthy()) {
            args.insert(key.into(), value.clone());
        }
    }
    context.call.call(function, Args::keyword(args))
}

/// The desired packages.
struct Installed {
    label: String,
    pkgs: Vec<String>,
    kwargs: Map,
}

/// A desired package: its normalized name, its specification, and the parsed requirement.
struct Desired<'p> {
    name: Option<String>,
    specification: &'p str,
    requirement: Requirement,
}

impl Installed {
    fn given(&self, key: &str) -> Option<&Value> {
        self.kwargs.get(key).filter(|value| value.is_truthy())
    }

    fn state(&self, context: &StateContext) -> Result<StateReturn, CallError> {
        let failed = |comment: String| Ok(StateReturn::failed(&self.label, comment));
        let place = self.given("bin_env").cloned().unwrap_or_default();
        call(context, "pip.version", &map! {"bin_env" => place}, Map::new())?;
        let (requirements, editable) = (self.given("requirements"), self.given("editable"));
        let from_elsewhere = requirements.is_some() || editable.is_some();
        let mut desired = Vec::new();
        let mut wrong = Vec::new();
        for specification in self.pkgs.iter().filter(|_| !from_elsewhere) {
            match Requirement::parse(specification) {
                Ok(requirement) => {
                    desired.push(Desired {
                        name: requirement.name.as_deref().map(normalized),
                        specification,
                        requirement,
                    });
                }
                Err(error) => wrong.push(error),
            }
        }
        if !wrong.is_empty() {
            return failed(wrong.join("\n"));
        }
        if let Some(user) = self.given("user").map(ToString::to_string)
            && !Accounts::read().users.iter().any(|account| account.name == user)
        {
            return failed(format!("User {user} does not exist"));
        }
        if from_elsewhere {
            return self.install_from_files(context, requirements, editable);
        }
        let list = call(context, "pip.list", &self.kwargs, Map::new()).unwrap_or_default();
        let (mut there, mut targets) = (Vec::new(), Vec::new());
        for package in &desired {
            if let Some(comment) = self.is_there(context, package, &list)? {
                there.push(comment);
                continue;
            }
            targets.push(package);
            if context.test {
                let names: Vec<&str> = desired.iter().map(|package| package.specification).collect();
                let comment = match &names[..] {
                    [one] => format!("Python package {one} is set to be installed"),
                    several => format!("Python package(s) set to be installed:\n{}", several.join("\n")),
                };
                return Ok(StateReturn::predicted(&self.label, comment));
            }
        }
        if targets.is_empty() {
            let newest = if self.given("upgrade").is_some() { " and up-to-date" } else { "" };
            there.push(format!("All specified packages are already installed{newest}"));
            return Ok(StateReturn::ok(&self.label, there.join("\n")));
        }
        let names: Vec<String> = targets.iter().map(|package| package.specification.replace(',', ";")).collect();
        let result = self.install(context, map! {"pkgs" => names.join(",")})?;
        let text = |key: &str| result.get(key).map(ToString::to_string).unwrap_or_default();
        if result.get("retcode").is_none_or(Value::is_truthy) {
            let error = format!("Error: {} {}", text("stdout"), text("stderr"));
            there.push(format!("Failed to install packages: {}. {error}", names.join(", ")));
            return failed(there.join("\n"));
        }
        let mut changes = Map::new();
        let mut unseen = Vec::new();
        let after = call(context, "pip.list", &self.kwargs, Map::new())?;
        let untouched = untouched(&text("stdout"));
        for package in targets {
            let Some(name) = &package.name else {
                changes.insert(format!("{}==???", package.specification).into(), "Installed".into());
                continue;
            };
            let is_like = |key: &Value| key.to_string().starts_with(name);
            match after.get(name) {
                None if after.as_map().is_some_and(|after| after.keys().any(is_like)) => {}
                None => unseen.push(format!(
                    "There was no error installing package '{}' although it does not show when calling 'pip.freeze'.",
                    package.specification
                )),
                Some(_) if untouched.contains(name) => {}
                Some(version) => _ = changes.insert(format!("{name}=={version}").into(), "Installed".into()),
            }
        }
        if unseen.is_empty() {
            there.push("All packages were successfully installed".into());
        }
        there.extend(unseen);
        Ok(StateReturn::ok(&self.label, there.join("\n")).with_changes(changes))
    }

    /// Returns the comment if a package is installed as desired.
    fn is_there(&self, context: &StateContext, package: &Desired, list: &Value) -> Result<Option<String>, CallError> {
        let have = package.name.as_ref().and_then(|name| list.get(name)).map(ToString::to_string);
        let (Some(name), Some(have)) = (&package.name, have) else { return Ok(None) };
        if self.given("ignore_installed").is_some() || self.given("force_reinstall").is_some() {
            return Ok(None);
        }
        let there = format!("Python package {} was already installed", package.specification);
        if self.given("upgrade").is_none() {
            return Ok(package.requirement.is_fulfilled(&have).then_some(there));
        }
        let has = |mark: &str| package.requirement.versions.iter().any(|(_, version)| version.contains(mark));
        let mut args = map! {
            "pkg" => name.as_str(), "include_alpha" => has("a"), "include_beta" => has("b"), "include_rc" => has("rc"),
        };
        for key in ["index_url", "extra_index_url"] {
            args.extend(self.given(key).map(|url| (Value::from(key), url.clone())));
        }
        let versions = call(context, "pip.list_all_versions", &self.kwargs, args)?;
        let versions = Vec::<String>::from_value(&versions).unwrap_or_default();
        let newest = versions.iter().rev().find(|version| package.requirement.is_fulfilled(version));
        Ok(match newest {
            None => Some(format!(
                "Python package {name} was already installed and\nthe available upgrade doesn't fulfills the version \
                 requirements"
            )),
            Some(newest) => (compare(&have, newest) == Ordering::Equal).then_some(there),
        })
    }

    fn install(&self, context: &StateContext, more: Map) -> Result<Value, CallError> {
        let mut args = self.kwargs.clone();
        args.insert("saltenv".into(), context.saltenv.as_str().into());
        args.insert("disable_version_check".into(), true.into());
        args.extend(more);
        context.call.call("pip.install", Args::keyword(args))
    }

    /// Installs from requirements files and editable sources.
    fn install_from_files(
        &self,
        context: &StateContext,
        requirements: Option<&Value>,
        editable: Option<&Value>,
    ) -> Result<StateReturn, CallError> {
        let mut comments = Vec::new();
        if context.test {
            comments.extend(requirements.map(|files| format!("Requirements file '{files}' will be processed.")));
            comments.extend(editable.map(|source| {
                format!("Package will be installed in editable mode (i.e. setuptools \"develop mode\") from {source}.")
            }));
            return Ok(StateReturn::predicted(&self.label, comments.join(" ")));
        }
        let result = self.install(context, map! {"pkgs" => ""})?;
        let text = |key: &str| result.get(key).map(ToString::to_string).unwrap_or_default();
        if result.get("retcode").is_none_or(Value::is_truthy) {
            comments.extend(requirements.map(|files| format!("Unable to process requirements file \"{files}\"")));
            comments.extend(editable.map(|source| format!("Unable to install from VCS checkout {source}.")));
            comments.push(match result.get("stdout") {
                Some(stdout) => format!("Error: {stdout} {}", text("stderr")),
                None => format!("Error: {}", text("comment")),
            });
            return Ok(StateReturn::failed(&self.label, comments.join(" ")));
        }
        let mut changes = Map::new();
        if let Some(files) = requirements {
            const NOTHING: [&str; 7] = [
                "Requirement already satisfied",
                "Requirement already up-to-date",
                "Requirement not upgraded",
                "Collecting",
                "Cloning",
                "Cleaning up...",
                "Looking in indexes",
            ];
            let stdout = text("stdout");
            let is_new = |line: &str| !NOTHING.iter().any(|start| line.trim().starts_with(start));
            if stdout.split('\n').any(is_new) {
                changes.insert("requirements".into(), true.into());
                comments.push(format!("Successfully processed requirements file {files}."));
            } else {
                comments.push("Requirements were already installed.".into());
            }
        }
        if let Some(source) = editable {
            changes.insert("editable".into(), true.into());
            comments.push(format!("Package successfully installed from VCS checkout {source}."));
        }
        Ok(StateReturn::ok(&self.label, comments.join(" ")).with_changes(changes))
    }
}

/// Returns the packages that pip reports as already installed.
fn untouched(stdout: &str) -> Vec<String> {
    let starts = ["Requirement already satisfied: ", "Requirement already up-to-date: "];
    let lines = stdout.lines().filter_map(|line| starts.iter().find_map(|start| line.strip_prefix(start)));
    let names = lines.filter_map(|rest| rest.split_whitespace().next());
    names.filter_map(|word| word.split(['=', '!', '<', '>', '~', '@']).next()).map(normalized).collect()
}

/// Describes the options of pip that states pass on.
pub(crate) fn further(params: &mut ParamList) {
    params.others(Others::Unused);
    params.further("bin_env", "a path", "Directory of a virtual environment, a python, or a pip.");
    params.further("pip_bin", "a path", "Another name of `bin_env`.");
    params.further("user", "a string", "User that pip runs as.");
    params.further("cwd", "a path", "Working directory of pip.");
    params.further("env_vars", "a mapping", "Variables of the environment of pip.");
    params.further("requirements", "a string", "Requirements files, as a list or with commas; `salt://` URLs, too.");
    params.further("pkgs", "a list", "Packages with their conditions, in the place of `name`.");
    params.further("editable", "a string", "Projects to install in development mode, as a list or with commas.");
    params.further("upgrade", "True or False", "Whether packages are upgraded to the newest version.");
    params.further("force_reinstall", "True or False", "Whether packages that are current are installed again.");
    params.further(
        "ignore_installed",
        "True or False",
        "Whether installed packages are overwritten without being removed first.",
    );
    params.further("pre_releases", "True or False", "Whether pre-releases count as versions.");
    params.further("no_deps", "True or False", "Whether dependencies are not installed.");
    params.further("index_url", "a string", "URL of the index of packages.");
    params.further("extra_index_url", "a string", "URL of a further index of packages.");
    params.further("no_index", "True or False", "Whether no index is used, only `find_links`.");
    params.further("find_links", "a string", "URLs or directories with packages, as a list or with commas.");
    params.further("trusted_host", "a string", "Host whose certificate is not verified.");
    params.further("cert", "a path", "File of certificates that servers are verified with.");
    params.further("proxy", "a string", "Proxy server, as `user:password@host:port`.");
    params.further("timeout", "a string", "Seconds to wait for a server.");
    for name in ["cache_dir", "download_cache"] {
        params.further(name, "a string", "Directory of the cache of pip.");
    }
    params.further("no_cache_dir", "True or False", "Whether pip uses no cache.");
    params.further("target", "a path", "Directory to install into, instead of the environment.");
    params.further("source", "a path", "Directory for the sources of editable projects.");
    params.further("build", "a path", "Directory in which packages are built.");
    params.further("download", "a path", "Directory into which packages are downloaded instead of being installed.");
    for name in ["global_options", "install_options"] {
        params.further(name, "a string", "Options of `setup.py`, as a list or with commas.");
    }
    params.further(
        "no_binary",
        "a string",
        "Packages that are not installed from wheels: names with commas, or `:all:`.",
    );
    params.further(
        "exists_action",
        "a string",
        "What happens if a path exists: `s` (switch), `i` (ignore), `w` (wipe) or `b` (back up).",
    );
    params.further("log", "a path", "File for the log of pip.");
    params.further("extra_args", "a list", "Further options of pip, as words or mappings.");
    params.further(
        "disable_version_check",
        "True or False",
        "Whether pip does not look for a newer version of itself.",
    );
    params.further("repo", "a string", "URL of a repository to install from.");
    for name in [
        "allow_all_external",
        "allow_external",
        "allow_unverified",
        "mirrors",
        "no_download",
        "no_install",
        "no_use_wheel",
        "process_dependency_links",
        "use_vt",
        "use_wheel",
    ] {
        params.further(name, "a string", "Without effect, or refused, where pip has no such option any more.");
    }
}
