//! Examines an installed master, minion, REST API or syndic, for `brine doctor` and the execution function `brine.doctor`: directories,
//! keys, ports, disks, the unit, the store, certificates. Everything is read from this host; who asks a running master, or
//! the masters of a minion, adds the findings.
//!
//! | module | owns |
//! |---|---|
//! | [`kinds`] | the kinds of findings, in their order |
//! | [`finding`] | findings, their order, the mends of `--fix` |
//! | [`installation`] | what a configuration says about a host |
//! | [`daemon`], [`unit`], [`processes`] | the process of the daemon, its unit, who holds a port |
//! | `places`, [`keys`], `disks`, [`network`], `certificates`, [`minion`] | the examinations |
//! | [`logs`] | the end of a log |
//! | [`declared`] | the checks of options, which the binary declares |
//! | [`repair`] | applies mends |

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests write as they like in their own directories"))]

mod certificates;
pub mod daemon;
pub mod declared;
mod disks;
pub mod finding;
pub mod installation;
pub mod keys;
pub mod kinds;
pub mod logs;
pub mod minion;
pub mod network;
mod places;
pub mod processes;
pub mod repair;
pub mod unit;

use std::path::PathBuf;
use std::sync::mpsc;
use std::time::{Duration, Instant};

pub use brine_check::Finding as ConfigFinding;
pub use daemon::Daemon;
pub use finding::{Finding, Repair, Role};
pub use installation::Installation;
pub use kinds::{KINDS, Kind, Severity};

/// The time of all examinations together. One that takes longer, as on a file system that does not answer, is reported.
const DEADLINE: Duration = Duration::from_secs(6);

/// An examination with its name.
pub type Examination = (&'static str, Box<dyn FnOnce() -> Vec<Finding> + Send>);

/// Runs examinations at the same time, each on its own thread, and returns what they find within the deadline.
pub fn run(role: Role, examinations: Vec<Examination>) -> Vec<Finding> {
    run_within(DEADLINE, role, examinations)
}

fn run_within(deadline: Duration, role: Role, examinations: Vec<Examination>) -> Vec<Finding> {
    let (sender, receiver) = mpsc::channel();
    let mut waiting: Vec<&'static str> = Vec::new();
    for (name, examine) in examinations {
        let sender = sender.clone();
        // Not joined: one that hangs would hang its caller.
        let started = std::thread::Builder::new()
            .name(format!("doctor-{name}"))
            .spawn(move || _ = sender.send((name, examine())));
        if started.is_ok() {
            waiting.push(name);
        }
    }
    drop(sender);
    let end = Instant::now() + deadline;
    let mut all = Vec::new();
    while !waiting.is_empty() {
        let Ok((name, findings)) = receiver.recv_timeout(end.saturating_duration_since(Instant::now())) else { break };
        waiting.retain(|one| *one != name);
        all.extend(findings);
    }
    all.extend(waiting.into_iter().map(|name| not_ended(role, name, deadline)));
    all
}

/// Returns the finding about an examination that has not ended within its time.
pub fn not_ended(role: Role, name: &str, deadline: Duration) -> Finding {
    Finding::new(&kinds::NOT_SEEN, role, format!("the examination of {name} has not ended"))
        .at(name)
        .because(format!(
            "it took more than {} s, or failed: a file system or name server does not answer",
            deadline.as_secs()
        ))
        .mended_by("dmesg | tail; mount; cat /etc/resolv.conf")
}

/// Calls a function on a thread of its own; `None` if it has not returned within the deadline, or failed. It then goes on
/// until it ends, or the process does.
pub fn within<T: Send + 'static>(deadline: Duration, call: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    let (sender, receiver) = mpsc::channel();
    let started = std::thread::Builder::new().name("doctor".to_owned()).spawn(move || _ = sender.send(call()));
    started.ok()?;
    receiver.recv_timeout(deadline).ok()
}

/// Returns the examinations of an installation on this host. With `connect`, the masters of a minion are connected to.
pub fn examinations(installation: &Installation, daemon: &Daemon, connect: bool) -> Vec<Examination> {
    macro_rules! examine {
        ($name:literal, |$installation:ident, $daemon:ident| $found:expr) => {{
            let ($installation, $daemon) = (installation.clone(), daemon.clone());
            (
                $name,
                Box::new(move || {
                    _ = (&$installation, &$daemon);
                    $found
                }) as Box<dyn FnOnce() -> Vec<Finding> + Send>,
            )
        }};
    }
    let mut all = vec![
        examine!("the daemon", |installation, daemon| daemon::examine(&installation, &daemon)),
        examine!("sockets", |installation, daemon| daemon::sockets(&installation, &daemon)),
    ];
    if matches!(installation.role, Role::Master | Role::Minion) {
        all.extend([
            examine!("directories", |installation, daemon| places::examine(&installation, &daemon)),
            examine!("keys", |installation, daemon| keys::own(&installation, &daemon)),
            examine!("disks", |installation, daemon| disks::examine(&installation)),
        ]);
    }
    match installation.role {
        Role::Master => all.extend([
            examine!("ports", |installation, daemon| network::ports(&installation, &daemon)),
            examine!("keys of minions", |installation, daemon| keys::of_minions(&installation, &daemon)),
            examine!("the store", |installation, daemon| disks::store(&installation, &daemon)),
            examine!("the certificate", |installation, daemon| certificates::examine(&installation)),
        ]),
        Role::Minion => all.extend([
            examine!("masters", |installation, daemon| network::masters(&installation, connect)),
            examine!("returns", |installation, daemon| minion::examine(&installation)),
        ]),
        // Their directories, keys and disks are the master's.
        Role::Api => all.extend([
            examine!("ports", |installation, daemon| network::ports(&installation, &daemon)),
            examine!("the log", |installation, daemon| places::log(&installation, &daemon).into_iter().collect()),
        ]),
        Role::Syndic => all.extend([
            examine!("masters", |installation, daemon| network::masters(&installation, true)),
            examine!("the log", |installation, daemon| places::log(&installation, &daemon).into_iter().collect()),
        ]),
    }
    all
}

/// Examines an installation on this host alone, in a few seconds at most.
pub fn examine(installation: &Installation, connect: bool) -> Vec<Finding> {
    let role = installation.role;
    let copy = installation.clone();
    // User databases and directories may be on servers that do not answer.
    let Some(daemon) = within(DEADLINE, move || Daemon::find(&copy)) else {
        return vec![not_ended(role, "the daemon", DEADLINE)];
    };
    run(role, examinations(installation, &daemon, connect))
}

/// Returns the findings about options as `--check` has them.
pub fn of_options(role: Role, file: PathBuf, findings: Vec<ConfigFinding>) -> Vec<Finding> {
    let kind = |severity| match severity {
        brine_check::Severity::Note => None,
        brine_check::Severity::Warning => Some(&kinds::CONFIG_WARNING),
        brine_check::Severity::Broken => Some(&kinds::CONFIG_BROKEN),
        brine_check::Severity::Refused => Some(&kinds::CONFIG_REFUSED),
    };
    let place = finding::quoted(&file);
    let findings = findings.into_iter().filter_map(|one| Some((kind(one.severity)?, one.message)));
    findings
        .map(|(kind, message)| {
            let message = message.replace('\n', " | ");
            Finding::new(kind, role, message)
                .at(file.display())
                .because(format!("salt-{} --check", role.name()))
                .mended_by(format!("${{EDITOR:-vi}} {place}"))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_examination_that_hangs_or_panics_is_reported_and_holds_up_nothing() {
        let note = || vec![Finding::new(&kinds::CONFIG_WARNING, Role::Master, "x")];
        let examinations: Vec<Examination> =
            vec![("good", Box::new(note)), ("hangs", Box::new(hang)), ("panics", Box::new(|| panic!("a defect")))];
        let findings = run_within(Duration::from_millis(500), Role::Master, examinations);
        let names: Vec<(&str, &str)> = findings.iter().map(|one| (one.kind.name, one.place.as_str())).collect();
        assert_eq!(names, [("config-warning", ""), ("not-seen", "hangs"), ("not-seen", "panics")]);
    }

    #[test]
    fn a_call_that_hangs_or_panics_has_no_result() {
        assert_eq!(within(Duration::from_secs(60), || 5), Some(5));
        assert_eq!(within(Duration::from_millis(100), || hang().len()), None);
        assert_eq!(within(Duration::from_secs(60), || -> u8 { panic!("a defect") }), None);
    }

    fn hang() -> Vec<Finding> {
        std::thread::sleep(Duration::from_secs(3600));
        Vec::new()
    }
}
