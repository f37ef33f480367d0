//! Compares SLS files, pillar, states and state functions with recordings of Salt 3008.3.
//!
//! `tests/golden/record` defines cases and records Salt. Cases that Brine does not pass yet are in
//! `tests/golden/not_yet`, each with its reason; one that passes must be removed from the list. Like the recordings,
//! they run as root on Debian. `BRINE_GOLDEN=name,other*` runs only these cases, and prints their differences even if
//! they are listed. A case with a line `# needs PROGRAM` in its `run` is skipped with a message if that program is not
//! installed.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Map, Value, json};

const BRINE: &str = env!("CARGO_BIN_EXE_brine");
const MINION: &str = "id: golden
file_client: local
root_dir: ROOT/salt
pki_dir: ROOT/salt/pki
cachedir: ROOT/salt/cache
sock_dir: ROOT/salt/run
salt_exit_status: True
file_roots: {base: [ROOT/srv]}
pillar_roots: {base: [ROOT/pillar]}
log_level: quiet
log_level_logfile: quiet
log_file: ROOT/salt/log
";

#[test]
fn every_recorded_case() {
    if !nix::unistd::Uid::effective().is_root() {
        eprintln!("the recordings are root's: run this test as root");
        return;
    }
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let not_yet = not_yet(&directory.join("not_yet"));
    let only = std::env::var("BRINE_GOLDEN").ok();
    let mut cases: Vec<PathBuf> = entries(&directory.join("cases"));
    let names: Vec<String> = cases.iter().map(|case| name_of(case)).collect();
    let unknown: Vec<&String> = not_yet.keys().filter(|name| !names.contains(name)).collect();
    assert!(unknown.is_empty(), "not_yet names cases that are not there: {unknown:?}");
    if let Some(only) = &only {
        cases.retain(|case| only.split(',').any(|pattern| matches(pattern, &name_of(case))));
    }
    assert!(!cases.is_empty(), "there is no case to run");
    cases.retain(|case| {
        let missing = missing_programs(case);
        if !missing.is_empty() {
            eprintln!("{} is left out: {} is not installed", name_of(case), missing.join(", "));
        }
        missing.is_empty()
    });

    let next = AtomicUsize::new(0);
    let problems = Mutex::new(BTreeMap::new());
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(2, usize::from) {
            scope.spawn(|| {
                while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let differences = differences(case);
                    let name = name_of(case);
                    let listed = only.is_none() && not_yet.contains_key(&name);
                    let report = match (differences.is_empty(), listed) {
                        (false, false) => differences.join("\n"),
                        (true, true) => "passes: take it out of tests/golden/not_yet".to_owned(),
                        _ => continue,
                    };
                    problems.lock().unwrap().insert(name, report);
                }
            });
        }
    });
    let problems = problems.into_inner().unwrap();
    let report: Vec<String> = problems.iter().map(|(name, report)| format!("=== {name}\n{report}\n")).collect();
    assert!(report.is_empty(), "\n{}{} of {} cases", report.join("\n"), report.len(), cases.len());
}

/// Reads the list of cases that do not pass yet: a name and a reason on each line.
fn not_yet(path: &Path) -> BTreeMap<String, String> {
    let text = fs::read_to_string(path).unwrap();
    let lines = text.lines().filter(|line| !line.is_empty());
    let entry = |line: &str| {
        let (name, reason) = line.split_once(' ').unwrap_or_else(|| panic!("{line} in not_yet has no reason"));
        (name.to_owned(), reason.trim().to_owned())
    };
    lines.map(entry).collect()
}

/// Returns the missing programs of a case.
fn missing_programs(case: &Path) -> Vec<String> {
    let run = fs::read_to_string(case.join("run")).unwrap();
    let places = std::env::var_os("PATH").unwrap_or_default();
    let is_there = |program: &str| std::env::split_paths(&places).any(|path| path.join(program).is_file());
    let needed = run.lines().filter_map(|line| line.strip_prefix("# needs "));
    needed.filter(|program| !is_there(program)).map(str::to_owned).collect()
}

fn matches(pattern: &str, name: &str) -> bool {
    pattern.strip_suffix('*').map_or(pattern == name, |start| name.starts_with(start))
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap().to_string_lossy().into_owned()
}

fn entries(directory: &Path) -> Vec<PathBuf> {
    let Ok(read) = fs::read_dir(directory) else { return Vec::new() };
    let mut paths: Vec<PathBuf> = read.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

/// Runs a case and returns its differences from the recording.
fn differences(case: &Path) -> Vec<String> {
    let Ok(text) = fs::read_to_string(case.join("salt.json")) else {
        return vec!["not recorded: run tests/golden/record".to_owned()];
    };
    let recording: Value = serde_json::from_str(&text).unwrap();
    let temporary = tempfile::Builder::new().prefix("golden-").tempdir().unwrap();
    let root = temporary.path().canonicalize().unwrap();
    lay_out(case, &root);
    let mut recorded = recording["runs"].as_array().unwrap().iter();
    let mut differences = Vec::new();
    for line in fs::read_to_string(case.join("run")).unwrap().lines() {
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(command) = line.strip_prefix("$ ") {
            let command = command.replace("ROOT", &root.display().to_string());
            let mut shell = Command::new("sh");
            let status =
                shell.args(["-c", &command]).env("PATH", path(&root)).current_dir(root.join("box")).status().unwrap();
            assert!(status.success(), "{command}: {status}");
            continue;
        }
        let Some(expected) = recorded.next().filter(|run| run["run"] == line) else {
            return vec![format!("`{line}` is not recorded: run tests/golden/record")];
        };
        compare(line, expected, &salt_call(line, &root), &mut differences);
    }
    compare("box", &recording["box"], &files(&root), &mut differences);
    differences
}

/// Copies a case's files into its temporary directory.
fn lay_out(case: &Path, root: &Path) {
    let extra = fs::read_to_string(case.join("minion")).unwrap_or_default();
    for name in ["srv", "pillar", "box", "bin", "machine", "etc"] {
        fs::create_dir_all(root.join(name)).unwrap();
        copy(&case.join(name), &root.join(name), root);
    }
    let text = format!("{MINION}{extra}").replace("ROOT", &root.display().to_string());
    fs::write(root.join("etc/minion"), text).unwrap();
    fs::write(root.join("mounts"), fs::read_to_string(case.join("mounts")).unwrap_or_default()).unwrap();
}

fn copy(from: &Path, to: &Path, root: &Path) {
    for path in entries(from) {
        let target = to.join(name_of(&path));
        if path.is_dir() {
            fs::create_dir(&target).unwrap();
            copy(&path, &target, root);
            continue;
        }
        match String::from_utf8(fs::read(&path).unwrap()) {
            Ok(text) => fs::write(&target, text.replace("ROOT", &root.display().to_string())).unwrap(),
            Err(bytes) => fs::write(&target, bytes.into_bytes()).unwrap(),
        }
        let mode = if path.metadata().unwrap().permissions().mode() & 0o100 == 0 { 0o644 } else { 0o755 };
        fs::set_permissions(&target, fs::Permissions::from_mode(mode)).unwrap();
    }
}

/// Returns the `PATH` of a case, on which its own programs come first.
fn path(root: &Path) -> String {
    format!("{}/bin:{}", root.display(), std::env::var("PATH").unwrap_or_default())
}

/// Runs `brine salt-call --local`. Returns the fields of a recorded run.
fn salt_call(line: &str, root: &Path) -> Value {
    let command = line.replace("ROOT", &root.display().to_string());
    let mut shell = Command::new("unshare");
    let output = shell
        .args(["--mount", "sh", "-c"])
        .arg(format!("{}umask 022; exec \"$0\" \"$@\"", mounts(root)))
        .args([BRINE, "salt-call", "--local", "--out=json", "-c"])
        .arg(root.join("etc"))
        .args(split(&command))
        .current_dir(root.join("box"))
        .env("PATH", path(root))
        .envs([("LC_ALL", "C.UTF-8"), ("TZ", "UTC"), ("SHELL", "/bin/sh"), ("COLUMNS", "80")])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let out = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut run = json!({"run": line, "exit": output.status.code()});
    match serde_json::from_str::<Value>(&out) {
        Ok(value) => run["return"] = plain(value, "", root),
        Err(_) => run["text"] = plain(out.clone().into(), "", root),
    }
    let report = String::from_utf8_lossy(&output.stderr).into_owned();
    if out.contains("salt-call sys.doc ") && report.contains("Passed invalid arguments") {
        // Salt prints the documentation of the function.
        run["text"] = "<usage>".into();
    } else if out.trim().is_empty() {
        run["stderr"] = plain(report.into(), "", root);
    }
    run
}

/// Returns shell commands that mount the case's own files and directories over the machine's, in a mount namespace.
fn mounts(root: &Path) -> String {
    let text = fs::read_to_string(root.join("mounts")).unwrap_or_default();
    let mount = |line: &str| {
        let (from, to) = line.split_once(' ').unwrap_or_else(|| panic!("{line} in mounts names no place"));
        format!("if [ -e {to} ]; then mount --bind '{}' {to} || exit 70; fi; ", root.join(from).display())
    };
    text.lines().map(mount).collect()
}

/// Splits a line into words, with quotes as in a shell.
fn split(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match (c, quote) {
            (c, Some(open)) if c == open => quote = None,
            ('\'' | '"', None) => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            ('\\', None | Some('"')) => word.get_or_insert_default().extend(chars.next()),
            (' ', None) => words.extend(word.take()),
            (c, _) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

/// Replaces the parts of a value that differ between runs, as `plain` of the recorder does.
fn plain(value: Value, key: &str, root: &Path) -> Value {
    match value {
        Value::Object(map) => {
            let entry = |(name, inner): (String, Value)| (plain_text(&name, root), plain(inner, &name, root));
            let mut map = map.into_iter().map(entry).collect::<Map<String, Value>>();
            // Brine warns about arguments that a state accepts, but does not know.
            if let Some(Value::Array(warnings)) = map.get_mut("warnings") {
                warnings.retain(|warning| !warning.as_str().is_some_and(|text| text.starts_with("unknown argument '")));
                if warnings.is_empty() {
                    map.remove("warnings");
                }
            }
            map.into()
        }
        Value::Array(list) => {
            let mut items: Vec<Value> = list.into_iter().map(|inner| plain(inner, "", root)).collect();
            if key == "removed" {
                items.sort_by_key(ToString::to_string);
            }
            items.into()
        }
        Value::String(_) | Value::Number(_) if ["start_time", "duration", "pid", "lstchg"].contains(&key) => {
            format!("<{key}>").into()
        }
        Value::String(text) => plain_text(&text, root).into(),
        other => other,
    }
}

fn plain_text(text: &str, root: &Path) -> String {
    // Brine reads the original file, Salt its copy.
    let text = text.replace(&format!("{}/salt/cache/files/base/", root.display()), "");
    let text = text.replace(&root.display().to_string(), "ROOT");
    let text = without_advice(&without_hints(&without_causes(&without_jids(&text))));
    if text.starts_with("The following files will be changed:\n") {
        return sorted(text.split('\n')).join("\n");
    }
    if let Some(blocks) = text.strip_prefix("#### ") {
        return sorted(blocks.split("\n\n#### ")).join("\n\n#### ");
    }
    let message = "One or more requisite failed: ";
    let Some((before, names)) = text.split_once(message) else { return text };
    let (names, after) = names.split_at(names.find('\n').unwrap_or(names.len()));
    format!("{before}{message}{}{after}", sorted(names.split(", ")).join(", "))
}

fn sorted<'t>(parts: impl Iterator<Item = &'t str>) -> Vec<&'t str> {
    let mut parts: Vec<&str> = parts.collect();
    parts.sort_unstable();
    parts
}

/// Removes the lines that Brine adds to Salt's messages: the place, the lines around it, what to do.
fn without_advice(text: &str) -> String {
    if !text.contains("  --> ") && !text.contains("  hint: ") {
        return text.to_owned();
    }
    let mut is_excerpt = false;
    let is_kept = |line: &&str| {
        let start = line.trim_start();
        if start.starts_with("--> ") {
            is_excerpt = true;
        } else if is_excerpt && !start.trim_start_matches(|c: char| c.is_ascii_digit()).trim_start().starts_with("| ") {
            is_excerpt = false;
        }
        !is_excerpt && !start.starts_with("hint: ")
    };
    text.split('\n').filter(is_kept).collect::<Vec<_>>().join("\n")
}

/// Removes the causes that Brine adds to Salt's messages with names of Python's classes.
fn without_causes(text: &str) -> String {
    const LACKS: &str = " has no attribute '";
    let mut parts = text.split(LACKS);
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let cause = part.split_once("' (").and_then(|(name, rest)| Some((name, rest.split_once("')")?)));
        out.push_str(LACKS);
        match cause {
            Some((name, (cause, after)))
                if cause.contains(&format!(" has no key '{name}"))
                    || cause.starts_with("there is no execution function '") =>
            {
                out.extend([name, "'", after]);
            }
            _ => out.push_str(part),
        }
    }
    out
}

/// Removes the similar names that Brine adds to Salt's messages about unknown functions.
fn without_hints(text: &str) -> String {
    [" Did you mean '", ": did you mean '"].into_iter().fold(text.to_owned(), |text, begin| {
        match text.split_once(begin).and_then(|(before, hint)| Some((before, hint.split_once("'?")?))) {
            Some((before, (_, after))) => format!("{before}{after}"),
            None => text,
        }
    })
}

fn without_jids(text: &str) -> String {
    let is_word = |at: Option<char>| at.is_some_and(|c| c.is_alphanumeric() || c == '_');
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("20") {
        let (before, tail) = rest.split_at(at);
        out.push_str(before);
        let digits = tail.chars().take_while(char::is_ascii_digit).count();
        if digits == 20 && !is_word(out.chars().last()) && !is_word(tail[20..].chars().next()) {
            out.push_str("<jid>");
            rest = &tail[20..];
        } else {
            out.push_str("20");
            rest = &tail[2..];
        }
    }
    out + rest
}

/// Returns the resulting files: mode and text of files, target of links, mode of directories.
fn files(root: &Path) -> Value {
    let mut files = Map::new();
    walk(&root.join("box"), "", root, &mut files);
    files.into()
}

fn walk(directory: &Path, prefix: &str, root: &Path, files: &mut Map<String, Value>) {
    for path in entries(directory) {
        let name = format!("{prefix}{}", name_of(&path));
        let info = path.symlink_metadata().unwrap();
        let mode = format!("0o{:o}", info.permissions().mode() & 0o7777);
        let entry = if info.is_symlink() {
            json!({"link": plain_text(&fs::read_link(&path).unwrap().to_string_lossy(), root)})
        } else if info.is_dir() {
            walk(&path, &format!("{name}/"), root, files);
            json!({"mode": mode})
        } else {
            json!({"mode": mode, "text": plain_text(&String::from_utf8_lossy(&fs::read(&path).unwrap()), root)})
        };
        files.insert(name, entry);
    }
}

/// Returns a text without the template line at its end; `None` if it has none.
fn without_template_line(text: &str) -> Option<&str> {
    let (message, last) = text.rsplit_once('\n')?;
    let (number, _) = last.strip_prefix("line ")?.split_once(" of the template, which renders to line ")?;
    number.parse::<usize>().ok().map(|_| message)
}

/// Adds a line for each field that differs between two values.
fn compare(at: &str, expected: &Value, actual: &Value, differences: &mut Vec<String>) {
    match (expected, actual) {
        (Value::Object(expected), Value::Object(actual)) => {
            for (name, inner) in expected {
                match actual.get(name) {
                    Some(other) => compare(&format!("{at} > {name}"), inner, other, differences),
                    None => differences.push(format!("{at} > {name}: is missing; Salt has {inner}")),
                }
            }
            let more = actual.iter().filter(|(name, _)| !expected.contains_key(*name));
            differences.extend(more.map(|(name, inner)| format!("{at} > {name}: Salt has none; Brine has {inner}")));
        }
        (Value::Array(expected), Value::Array(actual)) if expected.len() == actual.len() => {
            for (number, (inner, other)) in expected.iter().zip(actual).enumerate() {
                compare(&format!("{at} > {number}"), inner, other, differences);
            }
        }
        // If Salt fails with a traceback, Brine may have its own message.
        (Value::String(a), Value::String(_)) if a == "An exception occurred in this state: <exception>" => {}
        // Brine says why a top file assigns nothing.
        (Value::String(a), Value::String(b))
            if a.starts_with("No Top file or master_tops data matches found.")
                && ["Rendering the top file ", "No target of the top file "]
                    .iter()
                    .any(|start| b.starts_with(start)) => {}
        // Errors of rendered YAML: Brine adds the line of the template, which Salt does not know.
        (Value::String(a), Value::String(b)) if without_template_line(b) == Some(a) => {}
        (Value::Number(a), Value::Number(b)) if a.as_f64() == b.as_f64() && a.is_f64() == b.is_f64() => {}
        (Value::String(a), Value::String(b)) if a != b && (a.contains('\n') || a.len() > 100) => {
            let mut lines = format!("{at}: texts differ (- Salt, + Brine)\n");
            let (a, b): (Vec<_>, Vec<_>) = (a.split('\n').collect(), b.split('\n').collect());
            for number in 0..a.len().max(b.len()) {
                if a.get(number) != b.get(number) {
                    lines.extend(a.get(number).map(|line| format!("    -{}: {line}\n", number + 1)));
                    lines.extend(b.get(number).map(|line| format!("    +{}: {line}\n", number + 1)));
                }
            }
            differences.push(lines);
        }
        (expected, actual) if expected == actual => {}
        _ => differences.push(format!("{at}:\n    Salt  {expected}\n    Brine {actual}")),
    }
}
