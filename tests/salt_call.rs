//! Errors of `salt-call`.
#![allow(clippy::unwrap_used)]

use std::process::Command;

#[test]
fn a_failed_call_is_reported_on_stderr() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("minion"), format!("id: m1\nroot_dir: {}\n", directory.path().display()))
        .unwrap();
    for (call, told) in [
        (vec!["file.get_mode", "/nowhere/a"], "Error running 'file.get_mode': Path not found: /nowhere/a\n"),
        (vec!["hashutil.digest", "a", "sha3"], "Error running 'hashutil.digest': Hash func 'sha3' is not supported.\n"),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_brine"));
        command.args(["salt-call", "--local", "--out=json", "-c"]).arg(directory.path()).args(&call);
        let done = command.output().unwrap();
        let [out, err] = [&done.stdout, &done.stderr].map(|text| String::from_utf8_lossy(text).into_owned());
        assert_eq!((out.as_str(), err.as_str(), done.status.code()), ("", told, Some(1)), "{call:?}");
    }
}
