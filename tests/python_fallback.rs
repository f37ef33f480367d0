//! `python_fallback`: functions of the installed package `salt` that Brine lacks.

use crate::support::salt;

use std::path::Path;
use std::process::Command;

use crate::support::{BRINE, stderr, stdout};
use brine_value::json::from_json;
use brine_value::{Value, list};

/// Runs `salt-call --local` in a directory and returns the result.
fn call(directory: &Path, words: &[&str]) -> Result<Value, String> {
    let mut command = Command::new(BRINE);
    command.args(["salt-call", "--local", "--out=json", "-c"]).arg(directory).args(words);
    let output = command.output().unwrap();
    let text = stdout(&output);
    match from_json(&text) {
        Ok(value) => Ok(value.get("local").cloned().unwrap()),
        Err(_) => Err(format!("{text}{}", stderr(&output))),
    }
}

#[test]
fn missing_functions_are_called_in_salt() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    let venv = salt::environment("3008.5");
    let write = |path: &str, text: &str| {
        let path = root.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    let minion = |fallback: bool| {
        let text = format!(
            "id: m1\nroot_dir: {0}\nfile_roots: {{base: ['{0}/srv']}}\nmodule_dirs: ['{0}/own']\n\
             python_host: {{venv: {1}}}\npython_fallback: {fallback}\ngrains: {{rack: r1}}\n",
            root.display(),
            venv.display()
        );
        write("minion", &text);
    };
    write(
        "own/app.py",
        &"def through():\n    return [__salt__['ssh_pki.get_private_key_size']('ROOT/id'),\n        __salt__['test.echo']('here'), 'ssh_pki.expires' in __salt__, 'no.such' in __salt__]\n"
            .replace("ROOT", &root.display().to_string()),
    );
    let key = root.join("id").display().to_string();
    let public = format!("{key}.pub");
    let made =
        Command::new("ssh-keygen").args(["-q", "-t", "rsa", "-b", "2048", "-N", "", "-f", &key]).status().unwrap();
    assert!(made.success());
    let run = |words: &[&str]| call(root, words);

    minion(false);
    let error = run(&["ssh_pki.verify_private_key", &key, &public]).unwrap_err();
    assert!(error.contains("'ssh_pki.verify_private_key' is not available"), "{error}");

    minion(true);
    assert_eq!(run(&["ssh_pki.verify_private_key", &key, &public]), Ok(true.into()));
    assert_eq!(run(&["app.through"]), Ok(list![2048, "here", true, false]));
    // Functions that Brine has are not called in Salt, whose result has this key.
    assert_eq!(run(&["test.versions_information"]).unwrap().get("Dependency Information"), None);
    let functions = run(&["sys.list_functions"]).unwrap();
    for name in ["ssh_pki.expires", "app.through", "test.ping"] {
        assert!(functions.as_list().unwrap().contains(&name.into()), "{name}");
    }
    let spec = run(&["sys.argspec", "ssh_pki.verify_private_key"]).unwrap();
    let spec = spec.get("ssh_pki.verify_private_key").unwrap();
    assert_eq!(spec.get("args"), Some(&list!["private_key", "public_key", "passphrase"]), "{spec}");
    let error = run(&["ssh_pki.verify_private_key"]).unwrap_err();
    assert!(error.contains("missing 2 required positional arguments: 'private_key' and 'public_key'"), "{error}");
    let error = run(&["no.such"]).unwrap_err();
    assert!(error.contains("'no.such' is not available"), "{error}");

    // A state of Salt in a state run of Brine; in test mode it changes nothing.
    write(
        "srv/key.sls",
        "'{{ salt['ssh_pki.get_private_key_size']('ROOT/id') }}':\n  test.nop: []\n\
         rest:\n  ssh_pki.private_key_managed:\n    - name: ROOT/key\n    - require:\n      - test: '2048'\n"
            .replace("ROOT", &root.display().to_string())
            .as_str(),
    );
    let applied = run(&["state.apply", "key", "test=True"]).unwrap();
    let states = applied.as_map().unwrap_or_else(|| panic!("{applied}"));
    let (_, state) = states.iter().find(|(key, _)| key.to_string().starts_with("ssh_pki_")).unwrap();
    assert_eq!(state.get("result"), Some(&Value::Nil), "{state}");
    assert!(!root.join("key").exists());
}
