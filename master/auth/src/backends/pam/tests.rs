use std::os::unix::fs::PermissionsExt;

use brine_system::processes;
use brine_value::map;

use super::*;

/// Creates a helper that runs this script.
fn helper(directory: &Path, script: &str) -> Pam {
    let path = directory.join("helper");
    processes::write_program(|| {
        std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    });
    Pam::with_helper(path, "login".to_owned(), Duration::from_secs(20))
}

#[test]
fn the_response_decides() {
    let directory = tempfile::tempdir().unwrap();
    let denied = Ok(None);
    let failed = |reason: &str| Err(format!("running {} failed: {reason}", directory.path().join("helper").display()));
    for (script, expected) in [
        ("printf 'permitted\\nops\\nadm\\nend\\n'", Ok(Some(vec!["ops".to_owned(), "adm".to_owned()]))),
        ("printf 'permitted\\nend\\n'", Ok(Some(Vec::new()))),
        ("printf 'denied wrong password\\nend\\n'", denied.clone()),
        ("printf 'failed no such service\\nend\\n'", failed("no such service")),
        ("printf 'permitted\\nops\\n'", failed("it ended without a response")),
        ("printf 'Permitted\\nend\\n'", failed("it ended without a response")),
        ("exit 0", failed("it ended without a response")),
        ("kill -SEGV $$", failed("it ended without a response")),
    ] {
        let answer = helper(directory.path(), script).authenticate("fred", "pw");
        let answer = answer.map(|proven| proven.map(|proven| proven.groups)).map_err(|error| error.to_string());
        assert_eq!(answer, expected, "{script}");
    }
}

#[test]
fn the_name_is_that_of_the_account() {
    let directory = tempfile::tempdir().unwrap();
    for (script, name) in [
        ("printf 'permitted fred\\nops\\nend\\n'", Some("fred")),
        // Only PAM knows the user.
        ("printf 'permitted\\nend\\n'", None),
    ] {
        let pam = helper(directory.path(), script);
        let proven = pam.authenticate("FRED", "pw").unwrap().unwrap();
        assert_eq!(proven.name.as_deref(), name, "{script}");
        let [known, unknown] = if name.is_some() { ["fred", "FRED"] } else { ["FRED", "fred"] };
        assert!(!pam.must_check_account(known) && pam.must_check_account(unknown));
    }
}

#[test]
fn passwords_are_passed_on_standard_input_only() {
    let directory = tempfile::tempdir().unwrap();
    let script = format!(
        "cd {}; cat > in; tr '\\0' ' ' < /proc/$$/cmdline > args; env > env; printf 'permitted\\nend\\n'",
        directory.path().display()
    );
    let pam = helper(directory.path(), &script);
    assert!(pam.authenticate("fred", "hunter2").unwrap().is_some());
    let read = |name: &str| std::fs::read_to_string(directory.path().join(name)).unwrap();
    assert_eq!(read("in"), "login\0login\0fred\0hunter2");
    for place in ["args", "env"] {
        assert!(!read(place).contains("hunter2") && !read(place).contains("fred"), "{place}: {}", read(place));
    }
    assert!(!read("env").contains("CARGO"), "{}", read("env"));
    assert_eq!(read("args").split_whitespace().filter(|word| *word == "--no-sandbox").count(), 0);
    for (user, password) in [("fred", ""), ("fr\0ed", "x"), ("fred", "x\0y")] {
        assert_eq!(pam.authenticate(user, password).unwrap(), None);
    }
}

#[test]
fn a_hanging_module_is_killed_with_its_children() {
    let directory = tempfile::tempdir().unwrap();
    let pids = directory.path().join("pids");
    let mut pam = helper(directory.path(), &format!("sleep 1000 & echo $! $$ > {}; wait", pids.display()));
    pam.deadline = Duration::from_millis(500);
    let error = pam.authenticate("fred", "pw").unwrap_err().to_string();
    assert!(error.ends_with("no answer within 500ms: it was killed"), "{error}");
    for pid in std::fs::read_to_string(pids).unwrap_or_default().split_whitespace() {
        // A killed process ends only once it is scheduled again.
        let limit = Instant::now() + Duration::from_secs(20);
        loop {
            let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
            if status.is_empty() || status.contains("State:\tZ") {
                break;
            }
            assert!(Instant::now() < limit, "{status}");
            std::thread::yield_now();
        }
    }
}

#[test]
fn accounts_of_tokens_are_checked_again() {
    let directory = tempfile::tempdir().unwrap();
    let verdict = directory.path().join("verdict");
    let pam = helper(directory.path(), &format!("cat {}", verdict.display()));
    assert!(pam.must_check_account("fred"));
    std::fs::write(&verdict, "permitted\nend\n").unwrap();
    assert!(pam.is_account_valid("fred").unwrap() && !pam.must_check_account("fred"));
    std::fs::write(&verdict, "denied expired\nend\n").unwrap();
    assert!(!pam.is_account_valid("fred").unwrap() && pam.must_check_account("fred"));
}

#[test]
fn service_names_must_be_file_names() {
    for service in ["", "../shadow", ".", "a/b"] {
        let error = Pam::new(&map! {"auth.pam.service" => service}).err().unwrap().to_string();
        assert!(error.starts_with("external_auth pam: auth.pam.service: "), "{error}");
    }
    // There is no helper next to the test binary.
    let error = Pam::new(&Map::new()).err().unwrap().to_string();
    assert!(
        error.contains("brine-pam failed: the program is missing beside brine: install the package brine-pam"),
        "{error}"
    );
}
