//! `virtualenv`: states of virtual environments.

use std::path::Path;

use brine_context::{StateContext, StateReturn};
use brine_function::{Args, Arguments, CallError, CallResult, Functions, Others, ParamList, function, registry};
use brine_text::shell::quote;
use brine_value::{FromValue, Map, Value, map};

use brine_modules_files::cmd::{self, CommandArgs};

use crate::virtualenv::CreateArgs;

/// State functions of `virtualenv`.
pub static FUNCTIONS: Functions<StateContext> = registry!("virtualenv", [managed, manage]);

/// Ensure that a virtual environment exists, with the packages of a requirements file and of `pip_pkgs`. `use_wheel`,
/// `no_use_wheel`, `pip_download_cache` and `process_dependency_links` are without effect: pip has no such options.
///
/// SLS Example:
///
///     /srv/app/venv:
///       virtualenv.managed:
///         - python: /usr/bin/python3
///         - requirements: salt://app/requirements.txt
///         - user: app
///         - pip_pkgs:
///           - gunicorn
#[function]
pub fn managed(
    context: &StateContext,
    /// Directory of the environment.
    name: String,
    /// Requirements file whose packages are installed; a path or a `salt://` URL.
    requirements: Option<String>,
    /// Whether an existing environment is emptied first.
    #[default(false)]
    clear: bool,
    /// Further packages to install, as a list.
    #[default]
    pip_pkgs: Value,
    #[keywords(further)] kwargs: Map,
) -> CallResult {
    match state(context, &name, requirements.as_deref(), clear, &pip_pkgs, &kwargs) {
        Err(CallError::Execution(error)) => Ok(StateReturn::failed(&name, error).into()),
        result => Ok(result?.into()),
    }
}

/// Ensure that a virtual environment exists, as `managed`. `use_wheel`, `no_use_wheel`, `pip_download_cache` and
/// `process_dependency_links` are without effect.
///
/// SLS Example:
///
///     /srv/app/venv:
///       virtualenv.manage:
///         - requirements: salt://app/requirements.txt
#[function]
pub fn manage(
    context: &StateContext,
    /// Directory of the environment.
    name: String,
    #[keywords(further)] kwargs: Map,
) -> CallResult {
    let mut kwargs = kwargs;
    kwargs.insert("name".into(), name.into());
    context.call.minion.states.call(context, "virtualenv.managed", Args::keyword(kwargs))
}

/// Returns the Python version of an environment.
fn version(context: &StateContext, python: &str) -> Result<String, CallError> {
    let output = cmd::execute(
        &context.call,
        &format!("{} -V", quote(python)),
        &CommandArgs::read(&map! {"python_shell" => false})?,
    )?;
    Ok(output.stderr)
}

fn freeze(context: &StateContext, name: &str, user: &Value) -> Result<Vec<String>, CallError> {
    let packages = context.call.call("pip.freeze", Args::keyword(map! {"bin_env" => name, "user" => user.clone()}))?;
    Ok(Vec::from_value(&packages).unwrap_or_default())
}

fn state(
    context: &StateContext,
    name: &str,
    requirements: Option<&str>,
    clear: bool,
    pip_pkgs: &Value,
    kwargs: &Map,
) -> Result<StateReturn, CallError> {
    let python = format!("{name}/bin/python");
    let is_there = Path::new(&python).exists();
    let mut outcome = StateReturn::ok(name, "");
    let user = kwargs.get("user").cloned().unwrap_or_default();
    if let Some(path) = requirements.and_then(|path| path.strip_prefix("salt://"))
        && context.call.minion.files.hash(path, &context.saltenv).map_err(CallError::execution)?.is_none()
    {
        let comment = format!("pip requirements file 'salt://{path}' not found");
        return Ok(StateReturn::failed(name, comment));
    }
    if is_there && clear {
        outcome.changes.insert("cleared_packages".into(), freeze(context, name, &Value::Nil)?.into());
        outcome.changes.insert("old".into(), version(context, &python)?.into());
    }
    if context.test {
        let (result, comment) = match (is_there, clear) {
            (true, true) => (None, format!("Virtualenv {name} is set to be cleared")),
            (true, false) => (Some(true), format!("Virtualenv {name} is already created")),
            (false, _) => (None, format!("Virtualenv {name} is set to be created")),
        };
        return Ok(StateReturn { result, comment, ..outcome });
    }
    if !is_there || clear {
        let mut args = kwargs.clone();
        args.insert("path".into(), name.into());
        args.insert("clear".into(), clear.into());
        let made = match context.call.call("virtualenv.create", Args::keyword(args)) {
            Err(CallError::Execution(error)) => {
                return Ok(StateReturn::failed(name, format!("Failed to create virtualenv: {error}")));
            }
            made => made?,
        };
        let text = |key: &str| made.get(key).map(ToString::to_string).unwrap_or_default();
        if made.get("retcode").is_none_or(Value::is_truthy) {
            return Ok(StateReturn::failed(name, text("stdout") + &text("stderr")).with_changes(outcome.changes));
        }
        outcome.changes.insert("new".into(), version(context, &python)?.into());
        outcome.comment = if clear { "Cleared existing virtualenv" } else { "Created new virtualenv" }.into();
    } else {
        outcome.comment = "virtualenv exists".into();
    }
    if requirements.is_some() || pip_pkgs.is_truthy() {
        fill(context, name, requirements, pip_pkgs, kwargs, &user, &mut outcome)?;
    }
    Ok(outcome)
}

/// Installs packages into the environment.
fn fill(
    context: &StateContext,
    name: &str,
    requirements: Option<&str>,
    pip_pkgs: &Value,
    kwargs: &Map,
    user: &Value,
    outcome: &mut StateReturn,
) -> Result<(), CallError> {
    let before = freeze(context, name, user)?;
    let mut args =
        map! {"bin_env" => name, "pkgs" => pip_pkgs.clone(), "requirements" => requirements.map(str::to_owned)};
    args.insert("saltenv".into(), context.saltenv.as_str().into());
    // Some arguments of `pip.install` are named differently in this state.
    for (key, of_pip) in [
        ("pip_download", "download"),
        ("pip_exists_action", "exists_action"),
        ("pip_ignore_installed", "ignore_installed"),
        ("pip_upgrade", "upgrade"),
        ("pip_no_cache_dir", "no_cache_dir"),
        ("pip_cache_dir", "cache_dir"),
    ] {
        args.extend(kwargs.get(key).map(|value| (Value::from(of_pip), value.clone())));
    }
    for key in [
        "user",
        "cwd",
        "index_url",
        "extra_index_url",
        "pre_releases",
        "no_deps",
        "proxy",
        "env_vars",
        "no_binary",
        "find_links",
        "no_index",
    ] {
        args.extend(kwargs.get(key).map(|value| (Value::from(key), value.clone())));
    }
    let installed = context.call.call("pip.install", Args::keyword(args))?;
    let text = |key: &str| installed.get(key).map(ToString::to_string).unwrap_or_default();
    if installed.get("retcode").is_none_or(Value::is_truthy) {
        outcome.result = Some(false);
        outcome.comment = format!("{}\n{}\n{}", outcome.comment, text("stdout"), text("stderr"));
    }
    let after = freeze(context, name, &Value::Nil)?;
    let only = |these: &[String], others: &[String]| {
        let lines: Vec<String> = these.iter().filter(|line| !others.contains(line)).cloned().collect();
        if lines.is_empty() { Value::from("") } else { lines.into() }
    };
    let (new, old) = (only(&after, &before), only(&before, &after));
    if new.is_truthy() || old.is_truthy() {
        outcome.changes.insert("packages".into(), map! {"new" => new, "old" => old}.into());
    }
    Ok(())
}

/// Describes the further arguments of environments: options of the environment, and of pip.
pub(crate) fn further(params: &mut ParamList) {
    params.others(Others::Unused);
    params.further_of_except(CreateArgs::describe, &["path"]);
    params.further(
        "requirements",
        "a string",
        "Requirements file whose packages are installed; a path or a `salt://` URL.",
    );
    params.further("cwd", "a path", "Working directory of pip.");
    params.further("env_vars", "a mapping", "Variables of the environment of pip.");
    params.further(
        "no_chown",
        "True or False",
        "Whether a requirements file from the master stays owned by the minion's user.",
    );
    params.further("index_url", "a string", "URL of the index of packages.");
    params.further("extra_index_url", "a string", "URL of a further index of packages.");
    params.further("find_links", "a string", "URLs or directories with packages.");
    params.further("proxy", "a string", "Proxy server of pip.");
    params.further("pre_releases", "True or False", "Whether pre-releases count as versions.");
    params.further("no_deps", "True or False", "Whether dependencies are not installed.");
    params.further("no_binary", "a string", "Packages that are not installed from wheels.");
    params.further("pip_upgrade", "True or False", "Whether packages are upgraded to the newest version.");
    params.further("pip_pkgs", "a list", "Further packages to install.");
    params.further(
        "pip_download",
        "a path",
        "Directory into which packages are downloaded instead of being installed.",
    );
    params.further(
        "pip_exists_action",
        "a string",
        "What pip does if a path exists, as in `exists_action` of `pip.installed`.",
    );
    params.further(
        "pip_ignore_installed",
        "True or False",
        "Whether installed packages are overwritten without being removed first.",
    );
    params.further("pip_no_cache_dir", "True or False", "Whether pip uses no cache.");
    params.further("pip_cache_dir", "a path", "Directory of the cache of pip.");
    for name in ["no_use_wheel", "use_wheel", "pip_download_cache", "process_dependency_links"] {
        params.further(name, "a string", "Without effect: pip has no such options.");
    }
    params.further("pip_bin", "a path", "Without effect: pip is that of the environment.");
}
