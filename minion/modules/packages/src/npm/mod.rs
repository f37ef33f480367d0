//! `npm`: packages of Node.js.
//!
//! `dir` is the directory of a project; without it packages are those of the host (`--global`).

pub(crate) mod state;

use std::path::PathBuf;

use brine_context::{Context, Module};
use brine_function::{CallError, CallResult, Functions, function, registry};
use brine_host::process::{Output, Program};
use brine_host::programs::{argument, program};
use brine_value::json::from_json;
use brine_value::{Map, Value};
use nix::unistd::User;

pub(super) static MODULE: Module = Module { functions: &[&FUNCTIONS], states: &[&state::FUNCTIONS], ..Module::EMPTY };

/// Execution functions of `npm`.
pub static FUNCTIONS: Functions<Context> =
    registry!("npm", [install, uninstall, list_, cache_clean, cache_list, cache_path]);

/// The arguments of `npm.install`.
#[derive(Debug, brine_function::Args)]
pub struct InstallArgs {
    /// A package, with a version such as `coffee-script@1.0.1`; without `pkg` and `pkgs`, the packages of the project.
    pub pkg: Option<String>,
    /// Several packages, instead of `pkg`.
    #[default]
    pub pkgs: Vec<String>,
    /// The directory of the project.
    pub dir: Option<String>,
    /// The user that runs npm.
    pub runas: Option<String>,
    /// The URL of another registry.
    pub registry: Option<String>,
    /// Variables of the environment.
    pub env: Option<Map>,
    /// Whether npm only reports what it would install.
    #[default(false)]
    pub dry_run: bool,
    /// Whether npm only prints errors.
    #[default(true)]
    pub silent: bool,
}

/// Install packages, and return npm's report.
///
/// CLI Example:
///
///     salt '*' npm.install coffee-script
///     salt '*' npm.install coffee-script@1.0.1
#[function]
pub fn install(context: &Context, #[args] args: InstallArgs) -> CallResult {
    let mut words = vec!["install".to_owned(), "--json".to_owned()];
    // With `--silent`, newer releases of npm print no report either.
    words.extend(args.silent.then(|| "--loglevel=error".to_owned()));
    let dir = given(args.dir);
    words.extend(dir.is_none().then(|| "--global".to_owned()));
    let cwd = dir.map_or_else(std::env::temp_dir, PathBuf::from);
    words.extend(given(args.registry).map(|registry| format!("--registry={registry}")));
    words.extend(args.dry_run.then(|| "--dry-run".to_owned()));
    let packages = match given(args.pkg) {
        Some(package) => vec![package],
        None => args.pkgs,
    };
    for package in &packages {
        words.push(argument(package)?);
    }
    let output = npm(context, &words, Some(cwd), args.runas, args.env)?;
    if output.retcode != 0 {
        return Err(CallError::Execution(failure(&output)));
    }
    let said = if output.stdout.is_empty() { output.stderr } else { output.stdout };
    Ok(json(&said).unwrap_or_else(|| said.into()))
}

/// Remove a package, and return whether that succeeded.
///
/// CLI Example:
///
///     salt '*' npm.uninstall coffee-script
#[function]
pub fn uninstall(
    context: &Context,
    /// Name of the package.
    pkg: String,
    /// Directory of the project; without one, packages are global.
    dir: Option<String>,
    /// User that npm runs as.
    runas: Option<String>,
    /// Variables of the environment of npm, as a mapping.
    env: Option<Map>,
) -> CallResult {
    let mut words = vec!["uninstall".to_owned(), argument(&pkg)?];
    let dir = given(dir);
    words.extend(dir.is_none().then(|| "--global".to_owned()));
    succeeded(context, &npm(context, &words, dir.map(Into::into), runas, env)?)
}

/// Return the installed packages, or one of them; with `depth`, also their dependencies down to that level.
///
/// CLI Example:
///
///     salt '*' npm.list
#[function(name = "list")]
pub fn list_(
    context: &Context,
    /// Name of the package.
    pkg: Option<String>,
    /// Directory of the project; without one, packages are global.
    dir: Option<String>,
    /// User that npm runs as.
    runas: Option<String>,
    /// Variables of the environment of npm, as a mapping.
    env: Option<Map>,
    /// Number of levels of dependencies that are listed.
    depth: Option<i64>,
) -> CallResult {
    let mut words = ["list", "--json", "--silent"].map(str::to_owned).to_vec();
    let dir = given(dir);
    words.extend(dir.is_none().then(|| "--global".to_owned()));
    words.extend(depth.map(|depth| format!("--depth={depth}")));
    if let Some(package) = given(pkg) {
        words.push(argument(&package)?);
    }
    let output = npm(context, &words, dir.map(Into::into), runas, env)?;
    // npm also fails if there is no such package.
    if output.retcode != 0 && !output.stderr.is_empty() {
        return Err(CallError::Execution(output.stderr));
    }
    let invalid = || CallError::Execution(format!("the output of npm is invalid: {}", output.stdout));
    Ok(json(&output.stdout).ok_or_else(invalid)?.get("dependencies").cloned().unwrap_or_else(Value::map))
}

/// Remove packages from the cache of npm, all or those with a name, and return whether that succeeded.
///
/// CLI Example:
///
///     salt '*' npm.cache_clean force=True
#[function]
pub fn cache_clean(
    context: &Context,
    /// Path within the cache.
    path: Option<String>,
    /// User that npm runs as.
    runas: Option<String>,
    /// Variables of the environment of npm, as a mapping.
    env: Option<Map>,
    /// Whether npm cleans the cache even if it finds no errors in it.
    #[default(false)]
    force: bool,
) -> CallResult {
    let mut words = cache(&["cache", "clean"], path)?;
    words.extend(force.then(|| "--force".to_owned()));
    succeeded(context, &npm(context, &words, None, runas, env)?)
}

/// Return the packages in the cache of npm, as it prints them.
///
/// CLI Example:
///
///     salt '*' npm.cache_list
#[function]
pub fn cache_list(
    context: &Context,
    /// Path within the cache.
    path: Option<String>,
    /// User that npm runs as.
    runas: Option<String>,
    /// Variables of the environment of npm, as a mapping.
    env: Option<Map>,
) -> CallResult {
    let output = npm(context, &cache(&["cache", "ls"], path)?, None, runas, env)?;
    if output.retcode != 0 && !output.stderr.is_empty() {
        return Err(CallError::Execution(output.stderr));
    }
    Ok(output.stdout.into())
}

/// Return the directory of the cache of npm.
///
/// CLI Example:
///
///     salt '*' npm.cache_path
#[function]
pub fn cache_path(
    context: &Context,
    /// User that npm runs as.
    runas: Option<String>,
    /// Variables of the environment of npm, as a mapping.
    env: Option<Map>,
) -> CallResult {
    let output = npm(context, &["config", "get", "cache"].map(str::to_owned), None, runas, env)?;
    Ok(if output.stdout.is_empty() { output.stderr } else { output.stdout }.into())
}

fn cache(words: &[&str], path: Option<String>) -> Result<Vec<String>, CallError> {
    let mut words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    words.extend(given(path).map(|path| argument(&path)).transpose()?);
    Ok(words)
}

fn given(text: Option<String>) -> Option<String> {
    text.filter(|text| !text.is_empty())
}

/// Runs npm. `SUDO_UID` makes npm run the scripts of packages as that user.
fn npm(
    context: &Context,
    words: &[String],
    cwd: Option<PathBuf>,
    runas: Option<String>,
    env: Option<Map>,
) -> Result<Output, CallError> {
    let runas = given(runas);
    let words: Vec<String> = std::iter::once("npm".to_owned()).chain(words.iter().cloned()).collect();
    let mut program = Program { cwd, runas: runas.clone(), ..program(&words, &[]) };
    program.env.extend(env.into_iter().flatten().map(|(name, value)| (name.to_string(), value.to_string())));
    if let Some(user) = runas.and_then(|name| User::from_name(&name).ok().flatten()) {
        program.env.push(("SUDO_UID".into(), user.uid.to_string()));
        program.env.push(("SUDO_USER".into(), String::new()));
    }
    context.run_program(&program).map_err(CallError::execution)
}

fn succeeded(context: &Context, output: &Output) -> CallResult {
    if output.retcode != 0 {
        tracing::error!(jid = context.job.jid, "npm failed: {}", failure(output));
    }
    Ok((output.retcode == 0).into())
}

/// Returns the message of a failure, which is a part of the JSON if npm is silent.
fn failure(output: &Output) -> String {
    let summary = json(&output.stdout).and_then(|report| Some(report.get("error")?.get("summary")?.to_string()));
    summary.filter(|_| output.stderr.is_empty()).unwrap_or_else(|| output.stderr.clone())
}

/// Parses JSON, before which there may be other lines.
fn json(text: &str) -> Option<Value> {
    let starts = text.match_indices(['{', '[']).map(|(at, _)| at);
    let at_line = starts.filter(|at| *at == 0 || text.as_bytes().get(at - 1) == Some(&b'\n'));
    at_line.take(10).find_map(|at| from_json(text.get(at..)?).ok())
}

#[cfg(test)]
mod tests;
