//! `virtualenv`: virtual environments of Python.

use brine_function::{CallError, functions};
use brine_text::shell::quote;
use brine_value::{Map, Value, map};

use super::cmd::{self, find_program};
use crate::context::Context;

functions! {
    module "virtualenv", context Context;

    /// Makes a virtual environment: by `venv_bin`, by virtualenv, or by Python's own module.
    ///
    /// CLI Example:
    ///
    ///     salt '*' virtualenv.create /path/to/new/virtualenv
    fn create(
        context,
        path: String,
        venv_bin: Option<String> = None,
        system_site_packages: bool = false,
        clear: bool = false,
        python: Option<String> = None,
        never_download: bool = false,
        prompt: Option<String> = None,
        user: Option<String> = None,
        **_kwargs
    ) {
        let mut words = maker(venv_bin.filter(|program| !program.is_empty()))?;
        let is_virtualenv = !words.iter().any(|word| word == "venv");
        if let Some(python) = python.filter(|python| !python.is_empty()) {
            if is_virtualenv {
                words.push(format!("--python={python}"));
            } else {
                words.splice(..1, [python]);
            }
        }
        words.extend((never_download && is_virtualenv).then(|| "--no-download".to_owned()));
        words.extend(prompt.filter(|prompt| !prompt.is_empty()).map(|prompt| format!("--prompt={prompt}")));
        words.extend(clear.then(|| "--clear".to_owned()));
        words.extend(system_site_packages.then(|| "--system-site-packages".to_owned()));
        words.push(path);
        let command = words.iter().map(|word| quote(word)).collect::<Vec<_>>().join(" ");
        let output = cmd::execute(context, &command, &map! {"runas" => user, "python_shell" => false})?;
        let (stdout, stderr) = (output.stdout, output.stderr);
        Ok(map! {"pid" => output.pid, "retcode" => output.retcode, "stdout" => stdout, "stderr" => stderr}.into())
    }

    /// Where the packages of a virtual environment are.
    ///
    /// CLI Example:
    ///
    ///     salt '*' virtualenv.get_site_packages /path/to/my/venv
    fn get_site_packages(context, venv: String) {
        let python = format!("{venv}/bin/python");
        let code = "import sysconfig; print(sysconfig.get_path('purelib'))";
        let output = cmd::execute(context, &format!("{} -c {}", quote(&python), quote(code)), &Map::new())?;
        if output.retcode != 0 {
            return Err(CallError::Execution(output.stderr));
        }
        Ok(Value::from(output.stdout))
    }
}

/// The words that make a virtual environment.
fn maker(program: Option<String>) -> Result<Vec<String>, CallError> {
    if let Some(program) = program {
        let words = crate::modules::archive::split_options(&program)?;
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
