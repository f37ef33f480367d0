//! `pyenv`: versions of Python that are built by pyenv, for the host or for a user.

pub(crate) mod state;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use brine_context::{Context, Module};
use brine_function::{CallError, CallResult, Functions, function, registry};
use brine_host::process::{Output, Program, split};
use brine_host::programs::{argument, program};
use brine_value::Value;
use nix::unistd::User;

pub(super) static MODULE: Module = Module { functions: &[&FUNCTIONS], states: &[&state::FUNCTIONS], ..Module::EMPTY };

/// Execution functions of `pyenv`.
pub static FUNCTIONS: Functions<Context> = registry!(
    "pyenv",
    [
        install,
        update,
        is_installed,
        install_python,
        uninstall_python,
        versions,
        default,
        list_,
        rehash,
        r#do,
        do_with_python
    ]
);

const REPOSITORY: &str = "https://github.com/pyenv/pyenv.git";

/// Install pyenv, for the host or for a user, and return whether that succeeded. `path` is another directory than that of
/// the option `pyenv.root`, `/usr/local/pyenv` or `~/.pyenv`.
///
/// CLI Example:
///
///     salt '*' pyenv.install
#[function]
pub fn install(
    context: &Context,
    /// User whose pyenv it is.
    runas: Option<String>,
    /// Directory of pyenv.
    path: Option<String>,
) -> CallResult {
    let root = directory(context, runas.as_deref(), path)?;
    if root.is_dir() {
        return Ok(true.into());
    }
    let words = ["git", "clone", "--", REPOSITORY, &root.to_string_lossy()].map(str::to_owned);
    Ok((run(context, &words, runas, None)?.retcode == 0).into())
}

/// Update pyenv, and return whether that succeeded.
///
/// CLI Example:
///
///     salt '*' pyenv.update
#[function]
pub fn update(
    context: &Context,
    /// User whose pyenv it is.
    runas: Option<String>,
    /// Directory of pyenv.
    path: Option<String>,
) -> CallResult {
    let root = directory(context, runas.as_deref(), path)?;
    if !root.is_dir() {
        return Ok(false.into());
    }
    Ok((run(context, &["git".to_owned(), "pull".to_owned()], runas, Some(root))?.retcode == 0).into())
}

/// Return whether pyenv is installed.
///
/// CLI Example:
///
///     salt '*' pyenv.is_installed
#[function]
pub fn is_installed(
    context: &Context,
    /// User whose pyenv it is.
    runas: Option<String>,
) -> CallResult {
    Ok(Pyenv::find(context, runas)?.is_some().into())
}

/// Build a version of Python, and return the messages; False after a failure.
///
/// CLI Example:
///
///     salt '*' pyenv.install_python 2.0.0-p0
#[function]
pub fn install_python(
    context: &Context,
    /// Version of Python, such as `3.12.3`.
    python: String,
    /// User whose pyenv it is.
    runas: Option<String>,
) -> CallResult {
    let version = version_of(&python)?;
    let Some(pyenv) = Pyenv::find(context, runas)? else { return Ok(false.into()) };
    let output = pyenv.run(context, &["install", &version])?;
    if output.retcode == 0 {
        pyenv.run(context, &["rehash"])?;
        return Ok(output.stderr.into());
    }
    tracing::error!(jid = context.job.jid, version, "building Python failed: {}", output.stderr);
    // Remove the failed build, which would be listed as installed.
    pyenv.run(context, &["uninstall", "--force", &version])?;
    Ok(false.into())
}

/// Remove a version of Python.
///
/// CLI Example:
///
///     salt '*' pyenv.uninstall_python 2.0.0-p0
#[function]
pub fn uninstall_python(
    context: &Context,
    /// Version of Python, such as `3.12.3`.
    python: String,
    /// User whose pyenv it is.
    runas: Option<String>,
) -> CallResult {
    let version = version_of(&python)?;
    if let Some(pyenv) = Pyenv::find(context, runas)? {
        pyenv.run(context, &["uninstall", "--force", &version])?;
    }
    Ok(true.into())
}

/// Return the installed versions of Python.
///
/// CLI Example:
///
///     salt '*' pyenv.versions
#[function]
pub fn versions(
    context: &Context,
    /// User whose pyenv it is.
    runas: Option<String>,
) -> CallResult {
    let output = stdout(context, runas, &["versions", "--bare"])?;
    Ok(output.as_str().unwrap_or_default().lines().collect())
}

/// Return the default version of Python, or set it.
///
/// CLI Example:
///
///     salt '*' pyenv.default
///     salt '*' pyenv.default 2.0.0-p0
#[function]
pub fn default(
    context: &Context,
    /// Version of Python, such as `3.12.3`.
    python: Option<String>,
    /// User whose pyenv it is.
    runas: Option<String>,
) -> CallResult {
    let Some(python) = python.filter(|python| !python.is_empty()) else {
        let output = stdout(context, runas, &["global"])?;
        return Ok(output.as_str().unwrap_or_default().trim().into());
    };
    stdout(context, runas, &["global", &argument(&python)?])?;
    Ok(true.into())
}

/// Return the versions of Python that can be installed.
///
/// CLI Example:
///
///     salt '*' pyenv.list
#[function(name = "list")]
pub fn list_(
    context: &Context,
    /// User whose pyenv it is.
    runas: Option<String>,
) -> CallResult {
    let output = stdout(context, runas, &["install", "--list"])?;
    let lines = output.as_str().unwrap_or_default().lines().filter(|line| !line.starts_with("Available versions"));
    Ok(lines.map(str::trim).collect())
}

/// Write the programs of all versions of Python to the directory of pyenv.
///
/// CLI Example:
///
///     salt '*' pyenv.rehash
#[function]
pub fn rehash(
    context: &Context,
    /// User whose pyenv it is.
    runas: Option<String>,
) -> CallResult {
    stdout(context, runas, &["rehash"])?;
    Ok(true.into())
}

/// Run a command with the programs of pyenv first, and return its output; False after a failure.
///
/// CLI Example:
///
///     salt '*' pyenv.do 'gem list bundler'
#[function]
pub fn r#do(
    context: &Context,
    /// Command to run.
    cmdline: String,
    /// User whose pyenv it is.
    runas: Option<String>,
) -> CallResult {
    command(context, None, &cmdline, runas)
}

/// Run a command with a version of Python, as `pyenv.do`.
///
/// CLI Example:
///
///     salt '*' pyenv.do_with_python 2.0.0-p0 'gem list bundler'
#[function]
pub fn do_with_python(
    context: &Context,
    /// Version of Python, such as `3.12.3`.
    #[required]
    python: Option<String>,
    /// Command to run.
    cmdline: String,
    /// User whose pyenv it is.
    runas: Option<String>,
) -> CallResult {
    command(context, python.filter(|python| !python.is_empty()), &cmdline, runas)
}

/// Returns a version without the prefix `python-`.
pub(crate) fn version_of(python: &str) -> Result<String, CallError> {
    argument(python.strip_prefix("python-").unwrap_or(python))
}

/// Returns the directory of pyenv.
fn directory(context: &Context, runas: Option<&str>, path: Option<String>) -> Result<PathBuf, CallError> {
    let home = |name: &str| {
        let missing = || CallError::Execution(format!("User '{name}' is not available"));
        User::from_name(name).ok().flatten().map(|user| user.dir).ok_or_else(missing)
    };
    let user = runas.filter(|user| !user.is_empty() && *user != "root");
    let root = path.filter(|path| !path.is_empty()).or_else(|| option(context, "pyenv.root"));
    Ok(match (root, user) {
        (Some(root), _) => match root.strip_prefix("~/") {
            Some(rest) => home(user.unwrap_or("root"))?.join(rest),
            None => root.into(),
        },
        (None, None) => PathBuf::from("/usr/local/pyenv"),
        (None, Some(user)) => home(user)?.join(".pyenv"),
    })
}

/// Returns an option of the configuration, the grains or the pillar.
fn option(context: &Context, name: &str) -> Option<String> {
    let value = context.config().opts.get(name).cloned();
    let value = value.or_else(|| context.grains().get(name).cloned()).or_else(|| context.pillar().get(name).cloned());
    value.filter(Value::is_truthy).map(|value| value.to_string())
}

/// An installed pyenv.
struct Pyenv {
    root: PathBuf,
    runas: Option<String>,
}

impl Pyenv {
    fn find(context: &Context, runas: Option<String>) -> Result<Option<Self>, CallError> {
        let root = directory(context, runas.as_deref(), None)?;
        let is_there = root.join("bin/pyenv").is_file();
        Ok(is_there.then_some(Pyenv { root, runas }))
    }

    fn run(&self, context: &Context, words: &[&str]) -> Result<Output, CallError> {
        let binary = self.root.join("bin/pyenv").to_string_lossy().into_owned();
        let all: Vec<String> = std::iter::once(binary).chain(words.iter().map(|word| (*word).to_owned())).collect();
        let mut program = Program { runas: self.runas.clone(), ..program(&all, &[]) };
        program.env.push(("PYENV_ROOT".into(), self.root.to_string_lossy().into_owned()));
        let build = option(context, "pyenv.build_env").unwrap_or_default();
        for pair in split(&build).unwrap_or_default() {
            program.env.extend(pair.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned())));
        }
        context.run_program(&program).map_err(CallError::execution)
    }
}

/// Returns the output of pyenv; False if it is not installed, or failed.
fn stdout(context: &Context, runas: Option<String>, words: &[&str]) -> CallResult {
    let Some(pyenv) = Pyenv::find(context, runas)? else { return Ok(false.into()) };
    let output = pyenv.run(context, words)?;
    Ok(if output.retcode == 0 { output.stdout.into() } else { false.into() })
}

fn run(context: &Context, words: &[String], runas: Option<String>, cwd: Option<PathBuf>) -> Result<Output, CallError> {
    let output = context.run_program(&Program { runas, cwd, ..program(words, &[]) }).map_err(CallError::execution)?;
    if output.retcode != 0 {
        tracing::error!(jid = context.job.jid, "{} failed: {}", words.join(" "), output.stderr);
    }
    Ok(output)
}

/// Runs a command, without a shell, with the programs of pyenv first.
fn command(context: &Context, version: Option<String>, line: &str, runas: Option<String>) -> CallResult {
    let root = directory(context, runas.as_deref(), None)?;
    let mut words = vec!["env".to_owned(), format!("PATH={}", path(&root))];
    words.extend(version.map(|version| format!("PYENV_VERSION={version}")));
    let unclosed = || CallError::Execution(format!("the command '{line}' has an unclosed quote"));
    words.extend(split(line).ok_or_else(unclosed)?);
    let output = run(context, &words, runas.clone(), None)?;
    if output.retcode != 0 {
        return Ok(false.into());
    }
    rehash(context, runas)?;
    Ok(output.stdout.into())
}

fn path(root: &Path) -> String {
    let path = brine_host::environment::variable("PATH").unwrap_or_default();
    format!("{}:{}", root.join("shims").display(), path)
}
