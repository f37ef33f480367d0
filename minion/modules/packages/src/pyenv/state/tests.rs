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
