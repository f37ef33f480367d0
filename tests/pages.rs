//! The commands of tutorials and how-to guides, run as a reader runs them: on machines of their own with the real
//! program. `tests/pages/run PAGE` runs one page.

use std::path::Path;
use std::process::Command;

use crate::support::BRINE;

fn run(words: &[&str]) -> (bool, String) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let output = Command::new("python3").arg(root.join("tests/pages/run")).args(words).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    (output.status.success(), text)
}

/// Runs every fourth page.
fn run_part(part: usize) {
    if !nix::unistd::geteuid().is_root() {
        assert!(std::env::var_os("BRINE_CI").is_none(), "the commands of the guides run as root");
        return;
    }
    let (is_right, text) = run(&["--binary", BRINE, "--part", &format!("{part}/4")]);
    assert!(is_right, "{text}");
}

#[test]
fn commands_of_the_guides_do_what_the_pages_show_1() {
    run_part(1);
}

#[test]
fn commands_of_the_guides_do_what_the_pages_show_2() {
    run_part(2);
}

#[test]
fn commands_of_the_guides_do_what_the_pages_show_3() {
    run_part(3);
}

#[test]
fn commands_of_the_guides_do_what_the_pages_show_4() {
    run_part(4);
}

#[test]
fn pages_say_why_commands_are_not_run() {
    let (is_right, text) = run(&["--list"]);
    assert!(is_right && text.lines().all(|line| line.rsplit(": ").next().is_some_and(|why| why.len() > 10)), "{text}");
}
