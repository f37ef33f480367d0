//! `pip`: Python packages, with the program pip.
//!
//! `bin_env` is the directory of a virtual environment, a python, or a pip; by default the host's pip is used.

mod available;
pub(crate) mod state;
pub(crate) mod versions;

use std::path::Path;

use brine_context::{Context, Module};
use brine_function::{Args, CallError, CallResult, Functions, function, registry};
use brine_host::process::Output;
use brine_host::programs::{argument, find_program};
use brine_system::files;
use brine_system::user_files;
use brine_text::shell::quote;
use brine_value::json::from_json;
use brine_value::{Map, Value, map};

use brine_function::arguments::{names, refuse};
use brine_modules_files::cmd::{self, CommandArgs};

pub(super) static MODULE: Module = Module { functions: &[&FUNCTIONS], states: &[&state::FUNCTIONS], ..Module::EMPTY };

/// Execution functions of `pip`.
pub static FUNCTIONS: Functions<Context> = registry!(
    "pip",
    [
        install,
        uninstall,
        freeze,
        list_,
        version,
        list_upgrades,
        is_installed,
        upgrade_available,
        upgrade,
        available::list_all_versions,
        normalize
    ]
);

/// The arguments that name packages.
#[derive(Args)]
pub struct PackageArgs {
    /// Names of packages, as a list or with commas.
    #[default]
    pkgs: Value,
    /// Requirements files, as a list or with commas.
    #[default]
    requirements: Value,
    /// Directory of a virtual environment, a python, or a pip.
    bin_env: Option<String>,
    /// Options of pip. `use_vt` is without effect.
    #[keywords]
    kwargs: Map,
}

/// Install packages, those of requirements files, or both. Accepts pip's options as keyword arguments.
///
/// CLI Example:
///
///     salt '*' pip.install pkgs=package1,package2 bin_env=/path/to/virtualenv
#[function]
pub fn install(context: &Context, #[args] args: PackageArgs) -> CallResult {
    let PackageArgs { pkgs, requirements, bin_env, kwargs } = args;
    let refused = [
        "use_wheel",
        "no_use_wheel",
        "mirrors",
        "download_cache",
        "allow_all_external",
        "allow_external",
        "allow_unverified",
        "process_dependency_links",
        "repo",
    ];
    refuse("pip.install", &kwargs, &refused.map(|name| (name, "pip has no such option since version 19")))?;
    let mut words = vec!["install".to_owned()];
    for file in names(&requirements) {
        let Some(file) = requirement(context, &file, &kwargs)? else {
            let comment = format!("pip requirements file '{file}' not found");
            return Ok(map! {"result" => false, "comment" => comment}.into());
        };
        words.extend(["--requirement".to_owned(), file]);
    }
    words.extend(options(&kwargs)?);
    for package in names(&pkgs) {
        // Packages are separated by commas, so a semicolon is written for a comma in a version.
        words.push(argument(&package.replace(';', ","))?);
    }
    for source in names(kwargs.get("editable").unwrap_or(&Value::Nil)) {
        words.extend(["--editable".to_owned(), source]);
    }
    words.extend(extra(&kwargs));
    Ok(cmd::result_of_all(run(context, bin_env.as_deref(), &words, &kwargs)?).into())
}

/// Uninstall packages, and those of requirements files.
///
/// CLI Example:
///
///     salt '*' pip.uninstall package1,package2 bin_env=/path/to/virtualenv
#[function]
pub fn uninstall(context: &Context, #[args] args: PackageArgs) -> CallResult {
    let PackageArgs { pkgs, requirements, bin_env, kwargs } = args;
    let mut words = vec!["uninstall".to_owned(), "-y".to_owned()];
    for file in names(&requirements) {
        let requirements_file = requirement(context, &file, &kwargs)?;
        let missing = || CallError::Execution(format!("pip requirements file '{file}' not found"));
        words.extend(["--requirement".to_owned(), requirements_file.ok_or_else(missing)?]);
    }
    for key in ["log", "proxy", "timeout"] {
        if let Some(value) = kwargs.get(key).filter(|value| value.is_truthy()) {
            words.extend([format!("--{key}"), value.to_string()]);
        }
    }
    for package in names(&pkgs) {
        words.push(argument(&package)?);
    }
    words.extend(extra(&kwargs));
    Ok(cmd::result_of_all(run(context, bin_env.as_deref(), &words, &kwargs)?).into())
}

/// Return the installed packages in the format of a requirements file.
///
/// CLI Example:
///
///     salt '*' pip.freeze bin_env=/home/code/path/to/virtualenv
#[function]
pub fn freeze(
    context: &Context,
    /// Directory of a virtual environment, a python, or a pip.
    bin_env: Option<String>,
    /// Further options: `user`, `cwd` and `env_vars`.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    let words = ["freeze", "--all", "--disable-pip-version-check"].map(str::to_owned);
    let output = good(run(context, bin_env.as_deref(), &words, &kwargs)?)?;
    Ok(output.stdout.lines().map(str::to_owned).collect::<Vec<_>>().into())
}

/// Return the installed packages with their versions; with a prefix, those whose names start with it.
///
/// CLI Example:
///
///     salt '*' pip.list salt
#[function(name = "list")]
pub fn list_(
    context: &Context,
    /// Start of the names of packages that are listed.
    prefix: Option<String>,
    /// Directory of a virtual environment, a python, or a pip.
    bin_env: Option<String>,
    /// Further options: `user`, `cwd` and `env_vars`.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    let prefix = prefix.map(|prefix| normalized(&prefix)).unwrap_or_default();
    let words = ["list", "--format=json", "--disable-pip-version-check"].map(str::to_owned);
    let entries = json(&good(run(context, bin_env.as_deref(), &words, &kwargs)?)?)?;
    let text = |entry: &Value, key: &str| entry.get(key).map(ToString::to_string).unwrap_or_default();
    let named = entries.iter().map(|entry| (normalized(&text(entry, "name")), text(entry, "version")));
    let named = named.filter(|(name, _)| name.starts_with(&prefix));
    Ok(named.map(|(name, version)| (name.into(), version.into())).collect::<Map>().into())
}

/// Return the version of pip.
///
/// CLI Example:
///
///     salt '*' pip.version
#[function]
pub fn version(
    context: &Context,
    /// Directory of a virtual environment, a python, or a pip.
    bin_env: Option<String>,
    /// Further options: `user`, `cwd` and `env_vars`.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    let output = run(context, bin_env.as_deref(), &["--version".to_owned()], &kwargs)?;
    if output.retcode != 0 {
        return Err(CallError::Execution("Could not find a `pip` binary".into()));
    }
    let version = output.stdout.strip_prefix("pip ").and_then(|rest| rest.split_whitespace().next());
    Ok(version.map(str::to_owned).into())
}

/// Return the packages for which a newer version is available.
///
/// CLI Example:
///
///     salt '*' pip.list_upgrades
#[function]
pub fn list_upgrades(
    context: &Context,
    /// Path of pip, or of a virtual environment; that of the system by default.
    bin_env: Option<String>,
    /// `user`, `cwd` and `env_vars` of the program.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    let words = ["list", "--outdated", "--disable-pip-version-check", "--format=json"].map(str::to_owned);
    let entries = json(&good(run(context, bin_env.as_deref(), &words, &kwargs)?)?)?;
    let text = |entry: &Value, key: &str| entry.get(key).map(ToString::to_string).unwrap_or_default();
    let one = |entry: &Value| {
        let newest = format!("{} [{}]", text(entry, "latest_version"), text(entry, "latest_filetype"));
        (text(entry, "name").into(), newest.into())
    };
    Ok(entries.iter().map(one).collect::<Map>().into())
}

/// Return whether a package is installed.
///
/// CLI Example:
///
///     salt '*' pip.is_installed salt
#[function]
pub fn is_installed(
    context: &Context,
    /// Name of the package.
    pkgname: String,
    /// Path of pip, or of a virtual environment; that of the system by default.
    bin_env: Option<String>,
    /// `user`, `cwd` and `env_vars` of the program.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    let packages = list_(context, Some(pkgname.clone()), bin_env, kwargs)?;
    Ok(packages
        .as_map()
        .is_some_and(|packages| packages.keys().any(|name| name.to_string().eq_ignore_ascii_case(&pkgname)))
        .into())
}

/// Return whether a newer version of a package is available.
///
/// CLI Example:
///
///     salt '*' pip.upgrade_available <package name>
#[function]
pub fn upgrade_available(
    context: &Context,
    /// Name of the package.
    pkg: String,
    /// Path of pip, or of a virtual environment; that of the system by default.
    bin_env: Option<String>,
    /// `user`, `cwd` and `env_vars` of the program.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    Ok(list_upgrades(context, bin_env, kwargs)?.get(&pkg).is_some().into())
}

/// Upgrade all packages to their newest version.
///
/// CLI Example:
///
///     salt '*' pip.upgrade
#[function]
pub fn upgrade(
    context: &Context,
    /// Path of pip, or of a virtual environment; that of the system by default.
    bin_env: Option<String>,
    /// `user`, `cwd` and `env_vars` of the program.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    let old = list_(context, None, bin_env.clone(), kwargs.clone())?;
    let upgrades = list_upgrades(context, bin_env.clone(), kwargs.clone())?;
    let (mut result, mut comment) = (true, String::new());
    for name in upgrades.as_map().into_iter().flat_map(Map::keys) {
        let mut words = ["install", "-U", "--disable-pip-version-check"].map(str::to_owned).to_vec();
        words.push(argument(&name.to_string())?);
        let output = run(context, bin_env.as_deref(), &words, &kwargs)?;
        result &= output.retcode == 0;
        comment += &output.stderr;
    }
    let new = list_(context, None, bin_env, kwargs)?;
    let versions = |list: &Value| list.as_map().cloned().unwrap_or_default();
    let (old, new) = (versions(&old), versions(&new));
    let of = |versions: &Map, name: &Value| versions.get(name).cloned().unwrap_or_else(|| "".into());
    let names = old.keys().chain(new.keys().filter(|name| !old.contains_key(*name)));
    let changes = names
        .filter(|name| of(&old, name) != of(&new, name))
        .map(|name| (name.clone(), map! {"old" => of(&old, name), "new" => of(&new, name)}.into()));
    Ok(map! {"changes" => changes.collect::<Map>(), "result" => result, "comment" => comment}.into())
}

/// Return a package's name in normalized form.
///
/// CLI Example:
///
///     salt '*' pip.normalize My_Package
#[function]
pub fn normalize(
    _context: &Context,
    /// Name of the package.
    name: String,
) -> CallResult {
    Ok(normalized(&name).into())
}

/// Returns the name in lower case, with one hyphen for each run of `-`, `_` and `.`.
pub fn normalized(name: &str) -> String {
    let mut out = String::new();
    for c in name.to_lowercase().chars() {
        match c {
            '-' | '_' | '.' if out.ends_with('-') => {}
            '-' | '_' | '.' => out.push('-'),
            c => out.push(c),
        }
    }
    out
}

/// Returns the arguments that start pip.
pub fn program(bin_env: Option<&str>) -> Result<Vec<String>, CallError> {
    let module = |python: String| vec![python, "-m".to_owned(), "pip".to_owned()];
    let Some(index) = bin_env.filter(|index| !index.is_empty()) else {
        let python = find_program("python3").or_else(|| find_program("python"));
        let missing = || CallError::Execution("Could not find a `pip` binary".into());
        return python.map(|python| module(python.display().to_string())).ok_or_else(missing);
    };
    let path = Path::new(index);
    if path.is_dir() {
        let inside = ["python", "bin/python", "bin/python3"].map(|name| path.join(name));
        let python = inside.iter().find_map(|python| find_program(&python.display().to_string()));
        let missing = || CallError::Execution(format!("Could not find a pip binary in virtualenv {index}"));
        return python.map(|python| module(python.display().to_string())).ok_or_else(missing);
    }
    if find_program(&path.display().to_string()).is_none() {
        return Err(CallError::Execution(format!("Access denied to {index}, could not find a pip binary")));
    }
    let is_python = path.file_name().is_some_and(|name| name.to_string_lossy().contains("python"));
    Ok(if is_python { module(index.to_owned()) } else { vec![index.to_owned()] })
}

fn run(context: &Context, bin_env: Option<&str>, words: &[String], kwargs: &Map) -> Result<Output, CallError> {
    let command: Vec<String> = program(bin_env)?.iter().chain(words).map(|word| quote(word)).collect();
    let mut env = kwargs.get("env_vars").and_then(Value::as_map).cloned().unwrap_or_default();
    if let Some(directory) = bin_env.filter(|place| Path::new(place).is_dir()) {
        env.insert("VIRTUAL_ENV".into(), directory.into());
    }
    let text = |key: &str| kwargs.get(key).filter(|value| value.is_truthy()).cloned().unwrap_or_default();
    let kwargs = map! {"python_shell" => false, "runas" => text("user"), "cwd" => text("cwd"), "env" => env};
    cmd::execute(context, &command.join(" "), &CommandArgs::read(&kwargs)?)
}

fn good(output: Output) -> Result<Output, CallError> {
    if output.retcode == 0 { Ok(output) } else { Err(CallError::Execution(output.stderr)) }
}

fn json(output: &Output) -> Result<Vec<Value>, CallError> {
    match from_json(&output.stdout) {
        Ok(Value::List(entries)) => Ok(entries),
        _ => Err(CallError::Execution("Invalid JSON".into())),
    }
}

/// Returns the local path of a requirements file; one under `salt://` is copied into the cache. `None` if it does
/// not exist.
fn requirement(context: &Context, name: &str, kwargs: &Map) -> Result<Option<String>, CallError> {
    let Some(path) = name.strip_prefix("salt://") else { return Ok(Some(name.to_owned())) };
    let saltenv = kwargs.get("saltenv").map_or_else(|| "base".to_owned(), ToString::to_string);
    let content = context.minion.files.read(path, &saltenv).map_err(CallError::execution)?;
    let (Some(content), Some(below), Some(saltenv)) =
        (content, files::relative_path(path), files::relative_path(&saltenv))
    else {
        return Ok(None);
    };
    let place = context.config().cachedir.join("files").join(saltenv).join(below);
    user_files::create_dir_all(place.parent().unwrap_or(&place)).map_err(CallError::execution)?;
    files::write_atomic(&place, &content, 0o644).map_err(CallError::execution)?;
    Ok(Some(place.display().to_string()))
}

/// Returns the options of `pip install` for keyword arguments, in Salt's order.
fn options(kwargs: &Map) -> Result<Vec<String>, CallError> {
    const VALUE_OPTIONS: [(&str, &str); 14] = [
        ("no_binary", "--no-binary"),
        ("log", "--log"),
        ("proxy", "--proxy"),
        ("timeout", "--timeout"),
        ("index_url", "--index-url"),
        ("extra_index_url", "--extra-index-url"),
        ("build", "--build"),
        ("target", "--target"),
        ("download", "--download"),
        ("source", "--source"),
        ("exists_action", "--exists-action"),
        ("cache_dir", "--cache-dir"),
        ("cert", "--cert"),
        ("trusted_host", "--trusted-host"),
    ];
    const FLAGS: [(&str, &str); 10] = [
        ("no_index", "--no-index"),
        ("disable_version_check", "--disable-pip-version-check"),
        ("upgrade", "--upgrade"),
        ("force_reinstall", "--force-reinstall"),
        ("ignore_installed", "--ignore-installed"),
        ("no_deps", "--no-deps"),
        ("no_install", "--no-install"),
        ("no_download", "--no-download"),
        ("no_cache_dir", "--no-cache-dir"),
        ("pre_releases", "--pre"),
    ];
    const REPEATED_OPTIONS: [(&str, &str); 3] = [
        ("find_links", "--find-links"),
        ("global_options", "--global-option"),
        ("install_options", "--install-option"),
    ];
    let argument = |key: &str| kwargs.get(key).filter(|value| value.is_truthy());
    if argument("no_index").is_some() && (argument("index_url").is_some() || argument("extra_index_url").is_some()) {
        return Err(CallError::Execution(
            "'no_index' and ('index_url' or 'extra_index_url') are mutually exclusive.".into(),
        ));
    }
    let mut words = Vec::new();
    for (key, option) in VALUE_OPTIONS {
        if let Some(value) = argument(key) {
            words.extend([option.to_owned(), names(value).join(",")]);
        }
    }
    for (key, option) in REPEATED_OPTIONS {
        for value in argument(key).map(names).unwrap_or_default() {
            words.extend([option.to_owned(), value]);
        }
    }
    words.extend(FLAGS.iter().filter(|(key, _)| argument(key).is_some()).map(|(_, option)| (*option).to_owned()));
    Ok(words)
}

/// Parses `extra_args`: arguments, or options with their values.
fn extra(kwargs: &Map) -> Vec<String> {
    let extra_args = kwargs.get("extra_args").and_then(Value::as_list).unwrap_or_default();
    let words = |arg: &Value| match arg {
        Value::Map(pairs) => pairs.iter().flat_map(|(key, value)| [key.to_string(), value.to_string()]).collect(),
        word => vec![word.to_string()],
    };
    extra_args.iter().flat_map(words).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use brine_config::MinionConfig;

    use super::*;
    use crate::testing;

    #[test]
    fn requirements_files_stay_in_the_cache() {
        let directory = tempfile::tempdir().unwrap();
        let mut minion = testing::minion(&[("web/req.txt", "flask\n")]);
        let own = Arc::get_mut(&mut minion).unwrap();
        own.config = Arc::new(MinionConfig { cachedir: directory.path().join("cache"), ..(*own.config).clone() });
        let context = testing::context_of(minion);
        let cached = |saltenv: &str| requirement(&context, "salt://web/req.txt", &map! {"saltenv" => saltenv}).unwrap();
        let path = directory.path().join("cache/files/dev/web/req.txt");
        assert_eq!(cached("dev"), Some(path.display().to_string()));
        assert_eq!(std::fs::read_to_string(path).unwrap(), "flask\n");
        assert_eq!(cached("../../out"), None);
        assert!(!directory.path().join("out").exists());
    }
}
