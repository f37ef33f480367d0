//! No argument of a function becomes an option of a program.
//!
//! Each execution and state function is called with words that begin with `-` for each of its parameters, on several
//! systems, with programs that only record their arguments. Functions that write files or send signals themselves run
//! in namespaces of their own, on read-only file systems.
#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use brine_context::Context;
use brine_function::{Args, Param};
use brine_host::process::{Children, Output, ProcessError, Program, split};
use brine_host::programs::Programs;
use brine_modules::MODULES;
use brine_testing::Alone;
use brine_value::{Map, Value, list, map};
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

/// What an attacker passes.
const WORD: &str = "--brine-option=x";
/// Set in the process that runs in the namespaces.
const INSIDE: &str = "BRINE_TEST_OPTIONS";

/// Parameters that are documented to carry options or whole commands.
const OPTION_PARAMETERS: &[&str] = &["opts", "options", "args", "flags", "params", "parameters", "command", "cmd"];

/// Modules whose parameter `rule` has options.
const RULES: &[&str] = &["iptables.", "state iptables."];

/// Functions that are documented to pass further arguments on to a program, and modules whose arguments are commands.
const COMMANDS: &[&str] = &["cmd.", "docker.", "http.", "network.", "pyenv.do", "state.", "state cmd.", "state http."];

/// Modules that run no programs, and take long.
const WITHOUT_PROGRAMS: &[&str] = &["x509.", "state x509."];

/// Options whose next word is their value, whatever it begins with, by program. `supervisorctl` reads no options after
/// its action.
const VALUE_OPTIONS: &[(&str, &[&str])] = &[
    ("cryptsetup", &["--key-file"]),
    ("git", &["--output", "--prefix", "-m"]),
    ("gpasswd", &["-M"]),
    ("grep", &["-e"]),
    ("gpg", &["--homedir", "--keyring"]),
    ("initdb", &["-X"]),
    ("iptables", &["-A", "-C", "-D", "-I", "-N", "-P", "-t"]),
    ("mkfs.xfs", &["-L", "-b", "-d", "-i", "-l", "-m", "-n", "-r", "-s"]),
    ("mount", &["-t"]),
    ("patch", &["-i"]),
    ("psql", &["--host", "--port", "--username"]),
    ("python3", &["--extra-index-url", "--index-url", "--requirement"]),
    ("snapper", &["--cleanup-algorithm", "--description"]),
    ("ssh-keyscan", &["-t"]),
    ("supervisorctl", &["-c", "add", "remove", "restart", "start", "status", "stop", "update"]),
    ("tar", &["-C"]),
    ("unzip", &["-P"]),
    ("useradd", &["-c"]),
    ("usermod", &["-G"]),
    ("xfs_admin", &["-L"]),
    ("xfsdump", &["-L"]),
];

/// Programs that record their arguments.
#[derive(Default)]
struct Recorder {
    ran: Mutex<Vec<String>>,
    retcode: i64,
}

impl Programs for Recorder {
    fn find(&self, name: &str) -> Option<PathBuf> {
        Some(Path::new("/usr/bin").join(name))
    }

    fn run(&self, program: &Program, _: &Children, _: &CancellationToken) -> Result<Output, ProcessError> {
        self.ran.lock().push(program.command.clone());
        Ok(Output { pid: 1, retcode: self.retcode, stdout: String::new(), stderr: String::new(), timed_out: false })
    }
}

/// Returns the program, the word before the first option that came from outside, and the whole command.
fn foreign_option(command: &str) -> Option<(String, String)> {
    let words = split(command).unwrap_or_else(|| command.split(' ').map(str::to_owned).collect());
    let place = words.iter().position(|word| word.starts_with("--brine-option"))?;
    let before = &words[..place];
    // The program itself may be an argument.
    let program = before.first()?.rsplit('/').next()?.to_owned();
    if before.iter().any(|word| word == "--") {
        return None;
    }
    let previous = before.last()?.clone();
    let takes_value =
        VALUE_OPTIONS.iter().any(|(name, options)| *name == program && options.contains(&previous.as_str()));
    (!takes_value).then_some((program, previous))
}

/// Returns a harmless value of a parameter.
fn harmless(parameter: &Param, directory: &Path) -> Value {
    match parameter.expected {
        kind if kind.contains("integer") || kind.contains("number") => 4_000_000.into(),
        kind if kind.contains("mapping") => map! {"word" => "word"}.into(),
        kind if kind.contains("list") => list!["word"],
        "True or False" => true.into(),
        _ if ["cwd", "path", "directory", "dir", "root", "target"].contains(&parameter.name) => {
            directory.display().to_string().into()
        }
        _ => "word".into(),
    }
}

/// Returns the arguments that test one parameter each.
fn calls(parameters: &[Param], directory: &Path) -> Vec<Map> {
    let named: Vec<&Param> = parameters.iter().filter(|parameter| parameter.is_named()).collect();
    let shapes = |expected: &str| {
        let texts = || [list![WORD], list![map! {WORD => WORD}]];
        match expected {
            "a string" | "a path" => vec![Value::from(WORD)],
            "a list" => texts().to_vec(),
            "a mapping" => vec![map! {WORD => WORD}.into()],
            "True or False" => Vec::new(),
            number if number.contains("integer") || number.contains("number") => Vec::new(),
            _ => texts().into_iter().chain([WORD.into(), map! {WORD => WORD}.into()]).collect(),
        }
    };
    let base: Map = named
        .iter()
        .filter(|parameter| parameter.is_required())
        .map(|parameter| (parameter.name.into(), harmless(parameter, directory)))
        .collect();
    let mut calls = Vec::new();
    for parameter in named.iter().filter(|parameter| !is_for_options(parameter.name)) {
        for shape in shapes(parameter.expected) {
            let mut call = base.clone();
            call.insert(parameter.name.into(), shape);
            calls.push(call);
        }
    }
    calls
}

fn is_for_options(name: &str) -> bool {
    OPTION_PARAMETERS.iter().any(|parameter| name == *parameter || name.ends_with(&format!("_{parameter}")))
}

/// Calls all functions in the namespaces, and returns the foreign options by function, program and previous word.
fn found() -> BTreeMap<String, String> {
    let directory = std::env::temp_dir();
    let mut findings = BTreeMap::new();
    let systems = [
        map! {"os" => "Debian", "os_family" => "Debian", "kernel" => "Linux", "init" => "systemd"},
        map! {"os" => "Fedora", "os_family" => "RedHat", "kernel" => "Linux", "osmajorrelease" => 41, "init" => "systemd"},
        map! {"os" => "SUSE", "os_family" => "Suse", "kernel" => "Linux", "init" => "systemd"},
        map! {"os" => "Alpine", "os_family" => "Alpine", "kernel" => "Linux", "init" => "openrc"},
        map! {"os" => "Arch", "os_family" => "Arch", "kernel" => "Linux", "init" => "systemd"},
    ];
    let mut seen = BTreeSet::new();
    for grains in systems {
        let retcodes: &[i64] = if grains.get("os") == Some(&"Debian".into()) { &[0, 1] } else { &[0] };
        for retcode in retcodes.iter().copied() {
            let recorder = Arc::new(Recorder { retcode, ..Recorder::default() });
            let mut minion = brine_testing::minion(&MODULES, &[("word", "word")], Arc::new(Alone::default()));
            let own = Arc::get_mut(&mut minion).unwrap();
            own.grains = Arc::new(brine_context::Grains::from(grains.clone()));
            own.programs = recorder.clone();
            let context = brine_testing::context_of(minion.clone());
            // Functions that wait return at once.
            context.job.cancel.cancel();
            let mut check = |name: &str, parameters: &[Param], call: &dyn Fn(Map)| {
                if COMMANDS.iter().chain(WITHOUT_PROGRAMS).any(|command| name.starts_with(command)) {
                    return;
                }
                let has_rules = RULES.iter().any(|module| name.starts_with(module));
                for mut keyword in calls(parameters, &directory) {
                    if has_rules && keyword.contains_key("rule") {
                        keyword.insert("rule".into(), "word".into());
                    }
                    let arguments = format!("{keyword:?}");
                    let result = catch_unwind(AssertUnwindSafe(|| call(keyword)));
                    for command in std::mem::take(&mut *recorder.ran.lock()) {
                        let Some((program, previous)) = foreign_option(&command) else { continue };
                        if seen.insert((name.to_owned(), program.clone(), previous.clone())) {
                            findings.insert(format!("{name}: {program} {previous}"), command);
                        }
                    }
                    if result.is_err() {
                        findings.insert(format!("{name} panics: {arguments}"), String::new());
                    }
                }
            };
            for function in minion.functions.built_in() {
                let context: &Context = &context;
                check(&function.full_name(), function.params(), &|keyword| {
                    _ = function.call(context, Args { keyword, ..Args::default() });
                });
            }
            for function in minion.states.built_in() {
                let state = brine_testing::state_context(false, context.clone());
                check(&format!("state {}", function.full_name()), function.params(), &|keyword| {
                    _ = function.call(&state, Args { keyword, ..Args::default() });
                });
            }
        }
    }
    findings
}

#[test]
fn arguments_never_become_options() {
    if std::env::var_os(INSIDE).is_some() {
        let findings = found();
        let lines: Vec<String> = findings.iter().map(|(place, command)| format!("{place}\n    {command}")).collect();
        assert!(
            findings.is_empty(),
            "arguments became options of programs {} times:\n{}",
            findings.len(),
            lines.join("\n")
        );
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    // All mounts become read-only, except for a new one in the place of the temporary directory.
    let script = r#"
        mount --make-rprivate / && mount -t tmpfs tmpfs "$0" && cd "$0" || exit 77
        cut -d' ' -f2 /proc/mounts | sort -u | while read -r at; do
            case "$at" in "$0" | /proc*) ;; *) mount -o remount,bind,ro "$at" 2>/dev/null ;; esac
        done
        ( : > /etc/brine-test ) 2>/dev/null && exit 78
        exec "$@""#;
    let output = Command::new("unshare")
        .args([
            "--map-root-user",
            "--mount",
            "--uts",
            "--net",
            "--ipc",
            "--pid",
            "--fork",
            "--mount-proc",
            "sh",
            "-c",
            script,
        ])
        .arg(directory.path())
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "arguments_never_become_options", "--nocapture"])
        .env(INSIDE, "1")
        .env("TMPDIR", directory.path())
        .env("HOME", directory.path())
        .output()
        .expect("the test needs the program unshare");
    let report = String::from_utf8_lossy(&output.stderr);
    let wrong = report.find("arguments became options").map_or(report.as_ref(), |at| &report[at..]);
    assert!(output.status.success(), "{}: {wrong}", output.status);
    assert!(String::from_utf8_lossy(&output.stdout).contains("1 passed"), "{report}");
}
