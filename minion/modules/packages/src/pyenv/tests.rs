//! Transcripts of pyenv.

use std::sync::Arc;

use brine_config::MinionConfig;
use brine_value::{list, map};

use super::*;
use crate::testing::{Scripted, answers, context_with};

/// Returns a minion with pyenv in a directory.
pub(super) fn context_in(root: &Path, programs: Arc<Scripted>) -> Context {
    let mut context = context_with(map! {}, programs);
    let mut config = MinionConfig::default();
    config.opts.insert("pyenv.root".into(), root.to_path_buf().into());
    Arc::get_mut(&mut context.minion).unwrap().config = Arc::new(config);
    context
}

// As written by pyenv 2.6.
#[test]
fn versions_are_listed_built_and_removed() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::create_dir(directory.path().join("bin")).unwrap();
    std::fs::write(directory.path().join("bin/pyenv"), "").unwrap();
    let transcript = "
            $ ROOT/bin/pyenv versions --bare
            | 3.11.7
            | 3.12.1
            $ ROOT/bin/pyenv global
            | 3.11.7
            $ ROOT/bin/pyenv global 3.12.1
            $ ROOT/bin/pyenv install --list
            | Available versions:
            |   2.1.3
            |   3.12.1
            $ ROOT/bin/pyenv install 3.12.1
            ! Installed Python-3.12.1 to ROOT/versions/3.12.1
            $ ROOT/bin/pyenv install 9.9
            ! python-build: definition not found: 9.9
            = 2
            $ ROOT/bin/pyenv uninstall --force 9.9
            $ ROOT/bin/pyenv rehash
            $ git pull
            $ env ...
            | Python 3.12.1
        ";
    let root = directory.path().display().to_string();
    let programs = Scripted::new(&transcript.replace("ROOT", &root));
    let context = context_in(directory.path(), programs.clone());
    insta::assert_snapshot!(answers(&context, &[
            ("pyenv.is_installed", list![], map! {}),
            ("pyenv.install", list![], map! {}),
            ("pyenv.update", list![], map! {}),
            ("pyenv.versions", list![], map! {}),
            ("pyenv.default", list![], map! {}),
            ("pyenv.default", list!["3.12.1"], map! {}),
            ("pyenv.list", list![], map! {}),
            ("pyenv.install_python", list!["python-3.12.1"], map! {}),
            ("pyenv.install_python", list!["9.9"], map! {}),
            ("pyenv.uninstall_python", list!["--all"], map! {}),
            ("pyenv.do_with_python", list!["3.12.1", "python -V; id"], map! {}),
        ]).replace(&root, "ROOT"), @r#"
        pyenv.is_installed: true
        pyenv.install: true
        pyenv.update: true
        pyenv.versions: ["3.11.7", "3.12.1"]
        pyenv.default: "3.11.7"
        pyenv.default: true
        pyenv.list: ["2.1.3", "3.12.1"]
        pyenv.install_python: "Installed Python-3.12.1 to ROOT/versions/3.12.1"
        pyenv.install_python: false
        pyenv.uninstall_python: ERROR: '--all' cannot be used: it starts with '-' or is empty
        pyenv.do_with_python: "Python 3.12.1"
        "#);
    let ran = programs.ran();
    let line = ran.lines().find(|line| line.starts_with("env ")).unwrap();
    assert!(
        line.ends_with("PYENV_VERSION=3.12.1 python '-V;' id")
            || line.ends_with("PYENV_VERSION=3.12.1 python -V\\; id"),
        "{line}"
    );
    std::fs::remove_file(directory.path().join("bin/pyenv")).unwrap();
    assert_eq!(answers(&context, &[("pyenv.versions", list![], map! {})]), "pyenv.versions: []");
}
