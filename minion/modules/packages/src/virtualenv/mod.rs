//! `virtualenv`: virtual environments of Python.

pub(crate) mod state;

use brine_context::{Context, Module};
use brine_function::{Args, CallError, CallResult, Functions, function, registry};
use brine_host::programs::{argument, find_program};
use brine_text::shell::quote;
use brine_value::{Map, Value, map};

use brine_modules_files::cmd::{self, CommandArgs};

pub(super) static MODULE: Module = Module { functions: &[&FUNCTIONS], states: &[&state::FUNCTIONS], ..Module::EMPTY };

/// Execution functions of `virtualenv`.
pub static FUNCTIONS: Functions<Context> = registry!("virtualenv", [create, get_site_packages]);

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
    /// Whether nothing is downloaded.
    #[default(false)]
    never_download: bool,
    /// Prompt of the environment.
    prompt: Option<String>,
    /// User that the program runs as.
    user: Option<String>,
    /// Further arguments, ignored.
    #[keywords]
    _kwargs: Map,
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
    words.extend((args.never_download && is_virtualenv).then(|| "--no-download".to_owned()));
    words.extend(args.prompt.filter(|prompt| !prompt.is_empty()).map(|prompt| format!("--prompt={prompt}")));
    words.extend(args.clear.then(|| "--clear".to_owned()));
    words.extend(args.system_site_packages.then(|| "--system-site-packages".to_owned()));
    words.push(argument(&args.path)?);
    let command = words.iter().map(|word| quote(word)).collect::<Vec<_>>().join(" ");
    let output =
        cmd::execute(context, &command, &CommandArgs::read(&map! {"runas" => args.user, "python_shell" => false})?)?;
    Ok(cmd::all(output).into())
}

/// Return the path of the site-packages directory of a virtual environment.
///
/// CLI Example:
///
///     salt '*' virtualenv.get_site_packages /path/to/my/venv
#[function]
pub fn get_site_packages(context: &Context, venv: String) -> CallResult {
    let python = format!("{venv}/bin/python");
    let code = "import sysconfig; print(sysconfig.get_path('purelib'))";
    let output =
        cmd::execute(context, &format!("{} -c {}", quote(&python), quote(code)), &CommandArgs::read(&Map::new())?)?;
    if output.retcode != 0 {
        return Err(CallError::Execution(output.stderr));
    }
    Ok(Value::from(output.stdout))
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
    let mut words = brine_modules_files::archive::split_options(program)?;
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
