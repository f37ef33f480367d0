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
    /// Program that creates the environment; `virtualenv` if it is installed, or else Python's `venv`.
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
    let mut words = maker(args.venv_bin.filter(|program| !program.is_empty()))?;
    let is_virtualenv = !words.iter().any(|word| word == "venv");
    if let Some(python) = args.python.filter(|python| !python.is_empty()) {
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
        let words = brine_modules_files::archive::split_options(&program)?;
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
