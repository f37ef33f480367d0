//! `pam`: the accounts of the master's host, or any source of the PAM service in the option `auth.pam.service`
//! (`login`).
//!
//! PAM modules may block, leak and crash, so each login runs in a separate process, `brine-pam`, installed next to this
//! binary. The request on standard input has mode, service, user and password, separated by NUL. The response is a line
//! `permitted`, `permitted ACCOUNT`, `denied REASON` or `failed REASON`, one line per group for permitted users, and a
//! final line `end`. ACCOUNT is the name in the user database, which may ignore the case of names, as sssd does.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Once, mpsc};
use std::time::{Duration, Instant};

use brine_system::processes::{Group, Pipes};
use brine_value::{Map, Value};
use nix::unistd::geteuid;
use parking_lot::Mutex;

use super::{Backend, BackendError, Proven};
use crate::names::UserName;

const HELPER: &str = "brine-pam";
/// The PAM service that Salt uses by default.
const SERVICE: &str = "login";
/// The deadline of a login. PAM modules delay failures by some seconds.
const DEADLINE: Duration = Duration::from_secs(30);
/// The maximum size of a response, in bytes: enough for a user with 10,000 groups.
const MAX_ANSWER: u64 = 1 << 20;
/// The time for which an account check is cached when tokens are used.
const CHECK_LIFETIME: Duration = Duration::from_secs(60);
/// The maximum number of cached account checks.
const MAX_CHECKS: usize = 10_000;
/// The search path of modules; nothing else of the master's environment is passed on.
const PATH: &str = "/usr/sbin:/usr/bin:/sbin:/bin";

pub(super) struct Pam {
    helper: PathBuf,
    service: String,
    /// Whether the helper gives up privileges that PAM does not need (`sandbox`).
    is_sandboxed: bool,
    deadline: Duration,
    /// The time of the last successful check by account.
    checked: Mutex<HashMap<String, Instant>>,
}

/// The operation that the helper performs.
#[derive(Clone, Copy)]
enum Mode {
    /// Checks the password and the account.
    Login,
    /// Checks the account only.
    Account,
}

impl Pam {
    pub fn new(options: &Map) -> Result<Self, BackendError> {
        let option = "auth.pam.service";
        let service = match options.get(option) {
            None | Some(Value::Nil) => SERVICE.to_owned(),
            Some(Value::Str(name)) if is_service(name) => name.clone(),
            Some(other) => {
                let reason = format!("'{other}' is invalid: expected the name of a file in /etc/pam.d");
                return Err(BackendError::Option { system: "pam", option, reason });
            }
        };
        let own =
            std::env::current_exe().map_err(|source| BackendError::File { path: "/proc/self/exe".into(), source })?;
        let helper = own.with_file_name(HELPER);
        if !helper.is_file() {
            let remedy = brine_config::remedy_of_missing("option", "external_auth: pam");
            let reason = format!("the program is missing beside brine: {remedy}");
            return Err(BackendError::Helper { program: helper, reason });
        }
        let is_sandboxed = options.get("sandbox").is_none_or(Value::is_truthy);
        Ok(Pam { is_sandboxed, ..Self::with_helper(helper, service, DEADLINE) })
    }

    fn with_helper(helper: PathBuf, service: String, deadline: Duration) -> Self {
        Pam { helper, service, is_sandboxed: true, deadline, checked: Mutex::default() }
    }

    fn request(&self, mode: Mode, user: &str, password: &str) -> Result<Option<Proven>, BackendError> {
        if [user, password].iter().any(|text| text.contains('\0')) {
            return Ok(None);
        }
        let mode = match mode {
            Mode::Login => "login",
            Mode::Account => "account",
        };
        let request = format!("{mode}\0{}\0{user}\0{password}", self.service);
        let failed = |reason: String| BackendError::Helper { program: self.helper.clone(), reason };
        let words = if self.is_sandboxed { &[][..] } else { &["--no-sandbox"] };
        let answer = run(&self.helper, words, request.into_bytes(), self.deadline).map_err(failed)?;
        match parse(&answer) {
            Some(Answer::Permitted { name, groups }) => {
                self.remember(name.as_deref().unwrap_or(user));
                Ok(Some(Proven { name: name.map(UserName::found), groups, entries: None }))
            }
            Some(Answer::Denied(reason)) => {
                tracing::info!(service = self.service, reason, "PAM refuses a user");
                warn_unprivileged();
                self.checked.lock().remove(user);
                Ok(None)
            }
            Some(Answer::Failed(reason)) => Err(failed(reason)),
            None => Err(failed("it ended without a response".to_owned())),
        }
    }

    fn remember(&self, user: &str) {
        let mut checked = self.checked.lock();
        if checked.len() >= MAX_CHECKS {
            checked.retain(|_, at| at.elapsed() < CHECK_LIFETIME);
        }
        if checked.len() < MAX_CHECKS {
            checked.insert(user.to_owned(), Instant::now());
        }
    }
}

impl Backend for Pam {
    fn authenticate(&self, user: &str, password: &str) -> Result<Option<Proven>, BackendError> {
        if password.is_empty() {
            return Ok(None);
        }
        self.request(Mode::Login, user, password)
    }

    fn must_check_account(&self, user: &str) -> bool {
        self.checked.lock().get(user).is_none_or(|at| at.elapsed() >= CHECK_LIFETIME)
    }

    fn is_account_valid(&self, user: &str) -> Result<bool, BackendError> {
        Ok(self.request(Mode::Account, user, "")?.is_some())
    }
}

fn is_service(name: &str) -> bool {
    !name.is_empty() && !name.starts_with('.') && !name.contains(['/', '\0'])
}

enum Answer {
    Permitted {
        /// The name of the account; `None` if only PAM knows the user.
        name: Option<String>,
        groups: Vec<String>,
    },
    Denied(String),
    Failed(String),
}

/// Parses a response; `None` if it is incomplete.
fn parse(answer: &[u8]) -> Option<Answer> {
    let text = std::str::from_utf8(answer).ok()?.strip_suffix("\nend\n")?;
    let mut lines = text.lines();
    let (word, reason) = lines.next().map(|line| line.split_once(' ').unwrap_or((line, "")))?;
    match word {
        "permitted" => {
            let name = (!reason.is_empty()).then(|| reason.to_owned());
            Some(Answer::Permitted { name, groups: lines.map(str::to_owned).collect() })
        }
        "denied" => Some(Answer::Denied(reason.to_owned())),
        "failed" => Some(Answer::Failed(reason.to_owned())),
        _ => None,
    }
}

/// A running helper. On drop, kills it and all processes that its modules have started.
struct Running(Group);

impl Drop for Running {
    fn drop(&mut self) {
        if let Err(error) = self.0.kill() {
            tracing::error!(%error, "waiting for the end of {HELPER} failed");
        }
    }
}

/// Runs the helper with its request and returns its response.
fn run(helper: &Path, words: &[&str], request: Vec<u8>, deadline: Duration) -> Result<Vec<u8>, String> {
    let mut command = Command::new(helper);
    command.args(words).env_clear().env("PATH", PATH).current_dir("/");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let (group, Pipes { stdin, stdout, .. }) = Group::start(&mut command).map_err(|error| error.to_string())?;
    let _running = Running(group);
    let (sender, answer) = mpsc::sync_channel(1);
    // The thread ends at the latest when the helper has been killed.
    std::thread::Builder::new()
        .name(HELPER.to_owned())
        .spawn(move || {
            // A helper that exits early does not read its request.
            _ = stdin.map(|mut stdin| stdin.write_all(&request));
            let mut answer = Vec::new();
            let read = stdout.map(|stdout| stdout.take(MAX_ANSWER).read_to_end(&mut answer));
            _ = sender.send(match read {
                Some(Err(error)) => Err(error.to_string()),
                _ => Ok(answer),
            });
        })
        .map_err(|error| error.to_string())?;
    answer.recv_timeout(deadline).map_err(|_| format!("no answer within {deadline:?}: it was killed"))?
}

/// Logs once the likely reason why PAM rejects all users.
fn warn_unprivileged() {
    static WARNED: Once = Once::new();
    if geteuid().is_root() || std::fs::File::open("/etc/shadow").is_ok() {
        return;
    }
    WARNED.call_once(|| {
        tracing::error!(
            "PAM refused a user, and this master cannot read /etc/shadow, so it can authenticate no local account: run it as root, or add its user to the group shadow"
        );
    });
}

#[cfg(test)]
mod tests;
