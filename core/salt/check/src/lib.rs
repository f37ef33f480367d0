//! Findings about a configuration. `--check` prints them; at its start, a daemon logs them or refuses to start. The
//! daemons' crates decide which checks to run. This crate owns the checks that both daemons share: directories,
//! addresses, renderers, top files, backends.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests write as they like in their own directories"))]

use std::fmt;
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::Path;

use brine_config::{ANY_ENVIRONMENT, Roots};
use brine_fileserver::Unreachable;
use brine_sls::render::{self, RenderError};
use brine_system::processes;
use brine_text::nearest::{self, nearest};
use brine_value::{Map, Value};
use nix::unistd::{AccessFlags, access};

/// The severity of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Information for the operator: keys, addresses.
    Note,
    /// Valid, but probably not as intended.
    Warning,
    /// The daemon starts, but a part of the configuration never works.
    Broken,
    /// The daemon does not start.
    Refused,
}

/// A finding. Displays as one line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The severity.
    pub severity: Severity,
    /// One sentence: position, cause and remedy.
    pub message: String,
}

impl Finding {
    /// Creates a finding that prevents the start of the daemon.
    pub fn refused(message: impl fmt::Display) -> Self {
        Finding { severity: Severity::Refused, message: message.to_string() }
    }

    /// Creates a finding about a part of the configuration that never works.
    pub fn broken(message: impl fmt::Display) -> Self {
        Finding { severity: Severity::Broken, message: message.to_string() }
    }

    /// Creates a finding about a probable mistake.
    pub fn warning(message: impl fmt::Display) -> Self {
        Finding { severity: Severity::Warning, message: message.to_string() }
    }

    /// Creates an informational finding.
    pub fn note(message: impl fmt::Display) -> Self {
        Finding { severity: Severity::Note, message: message.to_string() }
    }

    /// Whether the finding makes `--check` fail.
    pub fn is_failure(&self) -> bool {
        self.severity >= Severity::Broken
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let line = self.message.replace('\n', " | ");
        match self.severity {
            Severity::Note => write!(f, "{line}"),
            Severity::Warning => write!(f, "warning: {line}"),
            Severity::Broken | Severity::Refused => write!(f, "error: {line}"),
        }
    }
}

/// Logs the findings at the start of a daemon, except notes and the error that is returned.
///
/// # Errors
/// The first finding that prevents the start; further ones are logged.
pub fn report(findings: Vec<Finding>) -> Result<(), Finding> {
    let mut refused = None;
    for finding in findings {
        match finding.severity {
            Severity::Note => {}
            Severity::Warning | Severity::Broken => tracing::warn!("{}", finding.message),
            Severity::Refused if refused.is_none() => refused = Some(finding),
            Severity::Refused => tracing::error!("{}", finding.message),
        }
    }
    refused.map_or(Ok(()), Err)
}

/// Checks the directories of both daemons.
pub fn directories(pki_dir: &Path, cachedir: &Path, sock_dir: &Path) -> Vec<Finding> {
    let all = [("pki_dir", pki_dir), ("cachedir", cachedir), ("sock_dir", sock_dir)];
    all.into_iter().filter_map(|(option, path)| directory(option, path)).collect()
}

/// Checks whether a directory can be created and written.
pub fn directory(option: &str, path: &Path) -> Option<Finding> {
    let invalid = |ancestor: &Path, reason: &dyn fmt::Display| {
        Some(Finding::refused(format!("option '{option}': {} is invalid: {reason}", ancestor.display())))
    };
    for ancestor in path.ancestors().filter(|ancestor| !ancestor.as_os_str().is_empty()) {
        match std::fs::metadata(ancestor) {
            Ok(status) if !status.is_dir() => return invalid(ancestor, &"expected a directory, got a file"),
            Ok(_) => {
                let allowed = access(ancestor, AccessFlags::W_OK | AccessFlags::X_OK);
                return allowed.err().and_then(|error| {
                    let reason = format!("{}; run this as the user who owns it", io::Error::from(error));
                    invalid(ancestor, &reason)
                });
            }
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {}
            Err(error) => return invalid(ancestor, &error),
        }
    }
    None
}

/// Checks whether an existing file can be read and written.
pub fn file(path: &Path) -> Option<Finding> {
    let failed = access(path, AccessFlags::R_OK | AccessFlags::W_OK).err().filter(|_| path.exists())?;
    let reason = io::Error::from(failed);
    Some(Finding::refused(format!("cannot open {}: {reason}; run this as the user who owns it", path.display())))
}

/// Checks whether the daemon can listen on a port of an address, without listening. A port in use is only a warning:
/// this daemon may be about to replace the one that uses it.
pub fn port(option: &str, host: &str, port: u16) -> Option<Finding> {
    let error = bind(host, port).err()?;
    let place = format!("{host}:{port}");
    Some(match error.kind() {
        ErrorKind::AddrInUse => {
            Finding::warning(format!("option '{option}': {place} is in use: stop the process that listens there first"))
        }
        _ => Finding::refused(format!("option '{option}': listening on {place} failed: {error}; {}", hint(&error))),
    })
}

fn hint(error: &io::Error) -> &'static str {
    match error.kind() {
        ErrorKind::PermissionDenied => "choose a port above 1023, or run this as root",
        _ => "name an address of this host, or 0.0.0.0 for all",
    }
}

fn bind(host: &str, port: u16) -> io::Result<()> {
    let mut last = io::Error::from(ErrorKind::AddrNotAvailable);
    for address in (host, port).to_socket_addrs()? {
        match bind_one(address) {
            Ok(()) => return Ok(()),
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn bind_one(address: SocketAddr) -> io::Result<()> {
    let socket = socket2::Socket::new(socket2::Domain::for_address(address), socket2::Type::STREAM, None)?;
    socket.set_reuse_address(true)?;
    socket.bind(&address.into())
}

/// Checks the option `renderer`. `is_own` returns whether a custom renderer of this name exists.
pub fn renderer(pipe: &str, is_own: impl Fn(&str) -> bool) -> Option<Finding> {
    let error = render::check_pipe(pipe, is_own).err()?;
    Some(Finding::broken(format!("option 'renderer': {error}: every SLS file without a `#!` line fails")))
}

/// Checks the top files below the roots: one that cannot be parsed breaks every state run, or every pillar.
pub fn top_files(roots: &Roots, name: &str, renderer: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    for path in roots.values().flatten().map(|root| root.join(name)) {
        let Ok(text) = std::fs::read_to_string(&path) else { continue };
        let file = path.display().to_string();
        match render::check_source(&file, &text, renderer) {
            // The option `renderer` itself is checked elsewhere.
            Ok(()) | Err(RenderError::NotAvailable(_)) => {}
            Err(error) => {
                let line = error.line().map(|line| format!(":{line}")).unwrap_or_default();
                findings.push(Finding::broken(format!("{file}{line}: {}", error.message())));
            }
        }
    }
    findings
}

/// The defaults of `file_roots` and `pillar_roots`.
const DEFAULT_ROOTS: [&str; 2] = ["/srv/salt", "/srv/pillar"];

/// Checks for file roots that do not exist.
pub fn missing_roots(option: &str, roots: &Roots) -> Vec<Finding> {
    let missing =
        roots.values().flatten().filter(|root| !root.is_dir() && !root.to_string_lossy().contains(ANY_ENVIRONMENT));
    missing
        .map(|root| {
            if DEFAULT_ROOTS.iter().any(|default| root == Path::new(default)) {
                // Nobody has named it: a new installation lacks it.
                return Finding::note(format!(
                    "{} does not exist yet: create it for your files, or name another directory by '{option}'",
                    root.display()
                ));
            }
            Finding::warning(format!("option '{option}': {} is not a directory: it serves nothing", root.display()))
        })
        .collect()
}

/// Checks the backends of the file server, and that the program git is installed if repositories are configured.
/// `is_own` returns whether a custom backend of this name exists.
pub fn file_server(opts: &Map, is_own: impl Fn(&str) -> bool) -> Vec<Finding> {
    let backends = brine_fileserver::backends(opts);
    let is_known = |name: &&String| brine_fileserver::is_built_in(name) || is_own(name);
    let mut findings: Vec<_> = backends
        .iter()
        .filter(|name| !is_known(name))
        .map(|name| {
            Finding::broken(format!(
                "option 'fileserver_backend': '{name}' is not supported: its files are not served; use roots, gitfs or minionfs, or add a module of this name in '_fileserver'"
            ))
        })
        .collect();
    let remotes = brine_config::opts::modules::gitfs_remotes(opts).is_truthy();
    if remotes && !backends.iter().any(|name| name == "gitfs") {
        findings.push(Finding::warning("option 'gitfs_remotes' has no effect: 'gitfs' is not in 'fileserver_backend'"));
    }
    if remotes && backends.iter().any(|name| name == "gitfs") && processes::find(Path::new("git")).is_none() {
        findings.push(Finding::broken(
            "option 'gitfs_remotes': the program git is not in the PATH: nothing of gitfs is served; install git",
        ));
    }
    let remotes = brine_config::opts::modules::gitfs_remotes(opts);
    findings.extend(remotes.as_list().unwrap_or_default().iter().filter_map(missing_repository));
    findings
}

/// Tries to reach the repositories of gitfs and of git_pillar, each within five seconds, and reports those that cannot
/// be used. Malformed remotes are reported elsewhere.
pub fn repositories(opts: &Map, cachedir: &Path) -> Vec<Finding> {
    if processes::find(Path::new("git")).is_none() {
        return Vec::new();
    }
    let gitfs = brine_fileserver::Gitfs::of(opts, cachedir).ok().flatten();
    let of_gitfs = gitfs.map(|gitfs| gitfs.unreachable()).unwrap_or_default();
    let of_pillar = brine_sls::pillar::unreachable_repositories(opts).unwrap_or_default();
    let effects = [
        ("gitfs_remotes", of_gitfs, "nothing new of it is served"),
        ("ext_pillar': 'git", of_pillar, "pillars have nothing new of it, or fail"),
    ];
    let mut findings = Vec::new();
    for (option, problems, effect) in effects {
        findings.extend(problems.into_iter().map(|one| {
            let Unreachable { remote, cause, advice } = one;
            Finding::broken(format!("option '{option}': reaching {remote} failed: {cause}: {effect}; {advice}"))
        }));
    }
    findings
}

/// Reports a repository of this host that does not exist; [`repositories`] tries the others.
fn missing_repository(remote: &Value) -> Option<Finding> {
    let url = match remote {
        Value::Map(with_options) => with_options.keys().next()?.to_string(),
        url => url.to_string(),
    };
    let path = Path::new(url.strip_prefix("file://").unwrap_or(&url));
    (path.is_absolute() && !path.is_dir()).then(|| {
        Finding::broken(format!(
            "option 'gitfs_remotes': {} is not a directory: nothing of it is served",
            path.display()
        ))
    })
}

/// Options of both daemons whose values are words, with these words, and what another one has as effect.
const WORDS: &[(&str, &[&str], &str)] = &[
    ("state_output", &["full", "terse", "mixed", "changes", "filter"], "full"),
    ("top_file_merging_strategy", &["merge", "same", "merge_all"], "merge"),
    ("pillar_source_merging_strategy", &["smart", "recurse", "overwrite", "aggregate", "none"], "recurse"),
    ("backup_mode", &["minion", "master", "both"], "none"),
    ("hash_type", &["md5", "sha1", "sha224", "sha256", "sha384", "sha512"], "sha256"),
];

/// Checks options whose values are words: others silently mean a default, as in Salt.
pub fn words(opts: &Map) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (option, words, instead) in WORDS {
        let Some(got) = opts.get(*option).and_then(Value::as_str).filter(|got| !got.is_empty()) else { continue };
        let word = got.to_ascii_lowercase();
        let word = if *option == "state_output" { word.strip_suffix("_id").unwrap_or(&word) } else { got };
        if !words.contains(&word) {
            let near = nearest(word, words.iter().map(|word| (*word).to_owned()));
            let hint = nearest::hint(near);
            findings.push(Finding::broken(format!(
                "option '{option}' is invalid: expected {}, got '{got}'{hint}; it counts as {instead}",
                alternatives(words)
            )));
        }
    }
    findings
}

/// Lists words, such as `a, b or c`.
fn alternatives(words: &[&str]) -> String {
    match words {
        [rest @ .., last] if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        words => words.concat(),
    }
}

/// Checks a schedule. `is_known` returns whether a function exists.
pub fn schedule(jobs: &Map, is_known: impl Fn(&str) -> bool) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (name, config) in jobs {
        let name = name.to_string();
        if !brine_schedule::Schedule::is_job(&name) {
            continue;
        }
        let place = format!("option 'schedule': job '{name}'");
        match brine_schedule::Job::read(&name, config) {
            Err(error) => findings.push(Finding::broken(format!("{place}: {error}; it never runs"))),
            Ok(job) => {
                if job.timing == brine_schedule::Timing::Never && !job.run_on_start {
                    findings.push(Finding::warning(format!(
                        "{place}: no time is given; it runs only when it is asked for: add seconds, minutes, hours, days, cron, when or once"
                    )));
                }
                if !is_known(&job.function) {
                    let function = &job.function;
                    findings
                        .push(Finding::broken(format!("{place}: there is no function '{function}'; every run fails")));
                }
            }
        }
        for unknown in brine_schedule::Job::unknown_options(config) {
            findings.push(Finding::broken(format!("{place}: unknown option '{unknown}'")));
        }
    }
    findings
}

#[cfg(test)]
mod tests;
