//! The stored corpus: each target runs on all its inputs.
#![allow(clippy::unwrap_used)]

use std::process::Command;

use brine_fuzz::TARGETS;

#[test]
fn no_target_panics_on_its_corpus() {
    let output = Command::new(env!("CARGO_BIN_EXE_brine-fuzz")).args(["--seconds", "0"]).output().unwrap();
    let (reported, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{reported}{errors}");
    for (name, _) in TARGETS {
        let line = reported.lines().find(|line| line.trim_start().starts_with(&format!("{name}:"))).unwrap_or(&errors);
        assert!(!line.contains(" 0 kept"), "{name} has no corpus: {line}");
    }
}
