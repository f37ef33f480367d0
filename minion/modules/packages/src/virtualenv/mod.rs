//! `virtualenv`: virtual environments of Python.

pub(crate) mod state;

use std::path::Path;

use brine_context::{Context, Module};
use brine_function::arguments::names;
use brine_function::{Args, CallError, CallResult, Functions, function, registry};
use brine_host::programs::{argument, find_program};
use brine_text::shell::quote;
use brine_value::{Map, Value, map};

use brine_modules_files::cmd::{self, CommandArgs};

pub(super) static MODULE: Module = Module { functions: &[&FUNCTIONS], states: &[&state::FUNCTIONS], ..Module::EMPTY };

/// Execution functions of `virtualenv`.
pub static FUNCTIONS: Functions<Context> =
    registry!("virtualenv", [create, get_site_packages, get_distribution_path, virtualenv_ver]);

/// The arguments of `virtualenv.create`.
#[derive(Args)]
pub struct CreateArgs {
    /// Directory of the environment.
    path: String,
    /// Program that creates the environment; `virtualenv` if it is installed, or else Python's `venv`, which `venv` and
    /// the path of an interpreter stand for, too.
    venv_bin: Option<String>,
    /// Whether the environment sees the packages of the system.
    #[default(false)]
    system_site_packages: bool,
    /// Whether an existing environment is emptied.
    #[default(false)]
    clear: bool,
    /// Python interpreter of the environment.
    python: Option<String>,
    /// Directories in which virtualenv also searches for the packages of a new environment, as a list or with commas.
    #[default]
    extra_search_dir: Value,
    /// Whether virtualenv downloads nothing.
    never_download: Option<bool>,
    /// Prompt of the environment.
    prompt: Option<String>,
    /// Whether `venv` makes links to the interpreter, not copies.
    symlinks: Option<bool>,
    /// Whether `venv` upgrades an environment to the interpreter.
    upgrade: Option<bool>,
    /// User that the program runs as.
    user: Option<String>,
    #[args]
    #[allow(dead_code, reason = "arguments without effect")]
    unused: UnusedArgs,
    /// Further arguments: `runas`, the former name of `user`, and `env`, variables of the environment of the program.
    #[keywords]
    kwargs: Map,
}

/// The arguments of `virtualenv.create` that are without effect.
#[derive(Args)]
pub struct UnusedArgs {
    /// Without effect: setuptools takes its place.
    #[allow(dead_code, reason = "an argument without effect")]
    #[default]
    distribute: Value,
    /// Without effect: new environments have pip.
    #[allow(dead_code, reason = "an argument without effect")]
    #[default]
    pip: Value,
    /// Without effect: commands have no terminal.
    #[allow(dead_code, reason = "an argument without effect")]
    #[default]
    use_vt: Value,
    /// Without effect: nothing is fetched from the file server.
    #[allow(dead_code, reason = "an argument without effect")]
    #[default]
    saltenv: Value,
}

/// Create a virtual environment with `venv_bin`, virtualenv, or Python's `venv` module.
///
/// CLI Example:
///
///     salt '*' virtualenv.create /path/to/new/virtualenv
#[function]
pub fn create(context: &Context, #[args] args: CreateArgs) -> CallResult {
    let program = args.venv_bin.filter(|program| !program.is_empty());
    let python = args.python.filter(|python| !python.trim().is_empty());
    if python.is_some() && program.as_deref().is_some_and(is_interpreter) {
        let message = "Pass the target interpreter either as `venv_bin` or as `python`, not both.";
        return Err(CallError::Execution(message.into()));
    }
    let mut words = maker(program)?;
    let is_virtualenv = !words.iter().any(|word| word == "venv");
    if let Some(python) = python {
        if is_virtualenv {
            words.push(format!("--python={python}"));
        } else {
            words.splice(..1, [python]);
        }
    }
    let directories = names(&args.extra_search_dir);
    let (own, others) = if is_virtualenv {
        ([("upgrade", args.upgrade.is_some()), ("symlinks", args.symlinks.is_some())], "virtualenv")
    } else {
        let never_download = args.never_download.is_some();
        ([("extra_search_dir", !directories.is_empty()), ("never_download", never_download)], "venv")
    };
    if let Some((name, _)) = own.iter().find(|(_, is_given)| *is_given) {
        let option = name.replace('_', "-");
        return Err(CallError::Execution(format!("The `{name}`(`--{option}`) option is not supported by '{others}'")));
    }
    words.extend((args.never_download == Some(true)).then(|| "--no-download".to_owned()));
    words.extend(directories.iter().map(|directory| format!("--extra-search-dir={directory}")));
    words.extend((args.upgrade == Some(true)).then(|| "--upgrade".to_owned()));
    words.extend((args.symlinks == Some(true)).then(|| "--symlinks".to_owned()));
    words.extend(args.prompt.filter(|prompt| !prompt.is_empty()).map(|prompt| format!("--prompt={prompt}")));
    words.extend(args.clear.then(|| "--clear".to_owned()));
    words.extend(args.system_site_packages.then(|| "--system-site-packages".to_owned()));
    words.push(argument(&args.path)?);
    let command = words.iter().map(|word| quote(word)).collect::<Vec<_>>().join(" ");
    let argument = |name: &str| args.kwargs.get(name).cloned().unwrap_or_default();
    let user = args.user.map_or_else(|| argument("runas"), Value::from);
    let how = map! {"runas" => user, "python_shell" => false, "env" => argument("env")};
    Ok(cmd::result_of_all(cmd::execute(context, &command, &CommandArgs::read(&how)?)?).into())
}

/// Return the path of the site-packages directory of a virtual environment.
///
/// CLI Example:
///
///     salt '*' virtualenv.get_site_packages /path/to/my/venv
#[function]
pub fn get_site_packages(
    context: &Context,
    /// Directory of the environment.
    venv: String,
) -> CallResult {
    let python = format!("{venv}/bin/python");
    let code = "import sysconfig; print(sysconfig.get_path('purelib'))";
    let output =
        cmd::execute(context, &format!("{} -c {}", quote(&python), quote(code)), &CommandArgs::read(&Map::new())?)?;
    if output.retcode != 0 {
        return Err(CallError::Execution(output.stderr));
    }
    Ok(Value::from(output.stdout))
}

/// Return the directory of an installed distribution of a virtual environment.
///
/// CLI Example:
///
///     salt '*' virtualenv.get_distribution_path /path/to/my/venv my_distribution
#[function]
pub fn get_distribution_path(
    context: &Context,
    /// Directory of the environment.
    venv: String,
    /// Name of the distribution.
    distribution: String,
) -> CallResult {
    let is_name = |letter: char| letter.is_alphanumeric() || "-_.".contains(letter);
    if distribution.is_empty() || !distribution.chars().all(is_name) {
        let message = "expected letters, digits, `-`, `_` and `.`";
        return Err(CallError::Execution(format!("distribution is invalid: {message}, got '{distribution}'")));
    }
    let python = format!("{venv}/bin/python");
    if !Path::new(&python).exists() {
        return Err(CallError::Execution(format!(
            "Path '{venv}' does not appear to be a virtualenv: bin/python not found."
        )));
    }
    let code = format!(
        "import importlib.metadata as m, os; print(os.path.realpath(str(m.distribution('{distribution}').locate_file(''))))"
    );
    let command = format!("{} -c {}", quote(&python), quote(&code));
    let output = cmd::execute(context, &command, &CommandArgs::read(&Map::new())?)?;
    if output.retcode != 0 {
        return Err(CallError::Execution(format!("{}\n{}", output.stdout, output.stderr)));
    }
    Ok(output.stdout.into())
}

/// Return the version of virtualenv, as a list of numbers.
///
/// CLI Example:
///
///     salt '*' virtualenv.virtualenv_ver virtualenv
#[function]
pub fn virtualenv_ver(
    context: &Context,
    /// Program that creates environments.
    venv_bin: String,
    /// User that the program runs as.
    user: Option<String>,
) -> CallResult {
    let how = map! {"runas" => user, "python_shell" => false, "redirect_stderr" => true};
    let output = cmd::execute(context, &format!("{} --version", quote(&venv_bin)), &CommandArgs::read(&how)?)?;
    let text = output.stdout.trim();
    match version_of(text).filter(|_| output.retcode == 0) {
        Some(numbers) => Ok(numbers.into_iter().map(Value::from).collect::<Vec<_>>().into()),
        None => Err(CallError::Execution(format!("'{venv_bin} --version' printed no version: {text}"))),
    }
}

/// Returns the numbers of the version in the output of `virtualenv --version`: `20.26.2` alone, or in a sentence.
fn version_of(text: &str) -> Option<Vec<u64>> {
    let word = text.split_whitespace().find(|word| word.starts_with(|letter: char| letter.is_ascii_digit()))?;
    let release = word.split(['r', '+']).next().unwrap_or(word);
    release.split('.').map(|number| number.parse().ok()).collect()
}

/// Returns the arguments that create a virtual environment.
fn maker(program: Option<String>) -> Result<Vec<String>, CallError> {
    if let Some(program) = program {
        let words = words_of(&program)?;
        let first = words.first().cloned().unwrap_or_default();
        return match find_program(&first) {
            Some(_) => Ok(words),
            None => Err(CallError::Execution(format!("Unable to find a virtualenv binary: {program}"))),
        };
    }
    if find_program("virtualenv").is_some() {
        return Ok(vec!["virtualenv".into()]);
    }
    let missing = || CallError::Execution("neither virtualenv nor python3 is installed".into());
    find_program("python3").map(|_| ["python3", "-m", "venv"].map(str::to_owned).into()).ok_or_else(missing)
}

/// Returns the command line of `venv_bin`: `venv` and an interpreter stand for Python's module.
fn words_of(program: &str) -> Result<Vec<String>, CallError> {
    let mut words = cmd::split_options(program)?;
    if words == ["venv"] {
        words = vec!["python3".into()];
    }
    if words.len() == 1 && words.first().is_some_and(|word| is_interpreter(word)) {
        words.extend(["-m".to_owned(), "venv".to_owned()]);
    }
    Ok(words)
}

/// Whether a path is that of a Python interpreter: `python`, `python3` or `python3.11`, for example.
fn is_interpreter(path: &str) -> bool {
    let version = path.rsplit('/').next().unwrap_or_default().strip_prefix("python");
    version.is_some_and(|version| version.chars().all(|letter| letter.is_ascii_digit() || letter == '.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_found_in_the_output() {
        for (text, numbers) in [
            ("20.26.2", Some(vec![20, 26, 2])),
            ("virtualenv 20.0.1 from /usr/lib/python3/dist-packages/virtualenv/__init__.py", Some(vec![20, 0, 1])),
            ("1.11rc1", Some(vec![1, 11])),
            ("20.17.1+ds", Some(vec![20, 17, 1])),
            ("command not found", None),
        ] {
            assert_eq!(version_of(text), numbers, "{text}");
        }
    }

    #[test]
    fn venv_and_interpreters_stand_for_pythons_module() {
        for (program, words) in [
            ("venv", ["python3", "-m", "venv"].as_slice()),
            ("/usr/bin/python3.11", &["/usr/bin/python3.11", "-m", "venv"]),
            ("python3 -m venv", &["python3", "-m", "venv"]),
            ("/opt/virtualenv", &["/opt/virtualenv"]),
            ("pythonic", &["pythonic"]),
            ("pyvenv", &["pyvenv"]),
        ] {
            assert_eq!(words_of(program).unwrap(), words, "{program}");
        }
    }
}
