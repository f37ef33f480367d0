//! `pyenv`: states of versions of Python.

use brine_context::{StateContext, StateReturn};
use brine_function::{Args, CallResult, Function, function, registry};
use brine_value::{Value, map};

use super::version_of;

/// State functions of `pyenv`.
pub static FUNCTIONS: &[Function<StateContext>] = registry!("pyenv", [installed, absent, install_pyenv]);

/// Ensure that a version of Python is installed, with pyenv itself, and with `default` that it is the default.
#[function]
pub fn installed(
    context: &StateContext,
    name: String,
    #[default(false)] default: bool,
    user: Option<String>,
) -> CallResult {
    let version = version_of(&name)?;
    if context.test {
        return Ok(StateReturn::would(&name, format!("python {version} is set to be installed")).into());
    }
    let user = || Value::from(user.clone());
    if !call(context, "is_installed", [user()])?.is_truthy() && !call(context, "install", [user()])?.is_truthy() {
        return Ok(StateReturn::failed(&name, "pyenv failed to install").into());
    }
    let mut report = StateReturn::ok(&name, "Requested python exists.");
    if !is_there(context, &version, user())? {
        // The result is the messages, which may be empty.
        if call(context, "install_python", [version.as_str().into(), user()])? == false.into() {
            return Ok(StateReturn::failed(&name, "Could not install python.").into());
        }
        report = StateReturn::ok(&name, "Successfully installed python")
            .with_changes(map! {version.as_str() => "Installed"});
    }
    let mut is_default = call(context, "default", [Value::Nil, user()])?.as_str() == Some(&version);
    if default && !is_default {
        call(context, "default", [version.as_str().into(), user()])?;
        is_default = true;
    }
    report.more.insert("default".into(), is_default.into());
    Ok(report.into())
}

/// Ensure that a version of Python is not installed.
#[function]
pub fn absent(context: &StateContext, name: String, user: Option<String>) -> CallResult {
    let version = version_of(&name)?;
    if context.test {
        return Ok(StateReturn::would(&name, format!("python {version} is set to be uninstalled")).into());
    }
    let user = || Value::from(user.clone());
    if !call(context, "is_installed", [user()])?.is_truthy() {
        return Ok(StateReturn::ok(&name, format!("pyenv not installed, {version} not either")).into());
    }
    if !is_there(context, &version, user())? {
        return Ok(StateReturn::ok(&name, format!("python {version} is already absent")).into());
    }
    if call(context, "default", [Value::Nil, user()])?.as_str() == Some(&version) {
        call(context, "default", ["system".into(), user()])?;
    }
    call(context, "uninstall_python", [version.as_str().into(), user()])?;
    if is_there(context, &version, user())? {
        return Ok(StateReturn::failed(&name, "Failed to uninstall python").into());
    }
    let changes = map! {version => "Uninstalled"};
    Ok(StateReturn::ok(&name, "Successfully removed python").with_changes(changes).into())
}

/// Ensure that pyenv is installed.
#[function]
pub fn install_pyenv(context: &StateContext, name: String, user: Option<String>) -> CallResult {
    let user = || Value::from(user.clone());
    if call(context, "is_installed", [user()])?.is_truthy() {
        return Ok(StateReturn::ok(&name, "pyenv is already installed").into());
    }
    if context.test {
        return Ok(StateReturn::would(&name, "pyenv is set to be installed").into());
    }
    Ok(if call(context, "install", [user()])?.is_truthy() {
        StateReturn::ok(&name, "pyenv installed")
    } else {
        StateReturn::failed(&name, "pyenv failed to install")
    }
    .into())
}

fn call<const N: usize>(context: &StateContext, function: &str, args: [Value; N]) -> CallResult {
    context.call.call(&format!("pyenv.{function}"), Args::positional(args))
}

fn is_there(context: &StateContext, version: &str, user: Value) -> Result<bool, brine_function::CallError> {
    let versions = call(context, "versions", [user])?;
    Ok(versions.as_list().unwrap_or_default().contains(&version.into()))
}

#[cfg(test)]
mod tests {
    use brine_testing::Scripted;

    use super::super::tests::context_in;
    use super::*;

    #[test]
    fn versions_are_installed_and_removed() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir(directory.path().join("bin")).unwrap();
        std::fs::write(directory.path().join("bin/pyenv"), "").unwrap();
        let root = directory.path().display().to_string();
        let listed =
            "$ ROOT/bin/pyenv versions --bare\n| 3.11.7\n$ ROOT/bin/pyenv global\n| 3.11.7\n$ ROOT/bin/pyenv rehash\n";
        let gone = "$ ROOT/bin/pyenv versions --bare\n|\n$ ROOT/bin/pyenv global system\n$ ROOT/bin/pyenv uninstall --force 3.11.7\n";
        for (function, name, test, more, result, comment) in [
            ("installed", "python-3.11.7", false, "", Some(true), "Requested python exists."),
            ("installed", "3.12.1", true, "", None, "python 3.12.1 is set to be installed"),
            (
                "installed",
                "3.12.1",
                false,
                "$ ROOT/bin/pyenv install 3.12.1\n",
                Some(true),
                "Successfully installed python",
            ),
            (
                "installed",
                "9.9",
                false,
                "$ ROOT/bin/pyenv install 9.9\n= 2\n$ ROOT/bin/pyenv uninstall --force 9.9\n",
                Some(false),
                "Could not install python.",
            ),
            ("absent", "9.9", false, "", Some(true), "python 9.9 is already absent"),
            ("absent", "3.11.7", true, "", None, "python 3.11.7 is set to be uninstalled"),
            ("absent", "3.11.7", false, gone, Some(true), "Successfully removed python"),
            ("install_pyenv", "pyenv", false, "", Some(true), "pyenv is already installed"),
        ] {
            let programs = Scripted::new(&format!("{listed}{more}").replace("ROOT", &root));
            let call = context_in(directory.path(), programs);
            let context = brine_testing::state_context(test, call.clone());
            let args = Args::keyword(map! {"name" => name});
            let report = call.minion.states.call(&context, &format!("pyenv.{function}"), args).unwrap();
            let got = (report.get("result").and_then(Value::as_bool), report.get("comment").unwrap().to_string());
            assert_eq!(got, (result, comment.to_owned()), "{function} {name}");
            let is_changed = comment.starts_with("Successfully");
            assert_eq!(report.get("changes").is_some_and(Value::is_truthy), is_changed);
        }
    }
}
