//! Checks one user with PAM, without inherited descriptors and core dumps.

use std::ffi::{CString, OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;

use brine_sandbox::Profile;
use nix::unistd::{Group, User, dup2_stdin, dup2_stdout, getgrouplist};
use nonstick::items::Items;
use nonstick::{
    AuthnFlags, ConversationAdapter, ErrorCode, PamShared, Result as PamResult, Transaction, TransactionBuilder,
};

/// The maximum size of a request: the master limits names and passwords more.
const MAX_REQUEST: u64 = 64 << 10;

/// The argument with which the process keeps all privileges of the master (`sandbox: False`).
const NO_SANDBOX: &str = "--no-sandbox";

/// Answers the request on standard input.
///
/// # Errors
/// The standard streams cannot be used.
pub fn run() -> io::Result<()> {
    // Keeps the password out of core dumps and debuggers of the same user.
    nix::sys::prctl::set_dumpable(false)?;
    if std::env::args_os().nth(1).is_none_or(|word| word != NO_SANDBOX) {
        // The system may refuse a part of it.
        _ = Profile::PAM.enter();
    }
    let mut request = String::new();
    io::stdin().take(MAX_REQUEST).read_to_string(&mut request)?;
    // Modules may write to standard output: the response is written to a descriptor that they do not use.
    let mut answer = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    let null = File::options().read(true).write(true).open("/dev/null")?;
    dup2_stdin(&null)?;
    dup2_stdout(&null)?;
    let parts: Vec<&str> = request.split('\0').collect();
    let decided = match parts[..] {
        [mode @ ("login" | "account"), service, user, password] => {
            decide(service, user, (mode == "login").then_some(password))
        }
        _ => "failed the request is invalid\n".to_owned(),
    };
    answer.write_all(format!("{decided}end\n").as_bytes())
}

/// Answers the prompts of modules: with the name if the input is echoed, else with the password.
struct Conversation {
    user: OsString,
    password: OsString,
}

impl ConversationAdapter for Conversation {
    fn prompt(&self, _: impl AsRef<OsStr>) -> PamResult<OsString> {
        Ok(self.user.clone())
    }

    fn masked_prompt(&self, _: impl AsRef<OsStr>) -> PamResult<OsString> {
        Ok(self.password.clone())
    }

    fn error_msg(&self, _: impl AsRef<OsStr>) {}

    fn info_msg(&self, _: impl AsRef<OsStr>) {}
}

/// Returns the lines of the response except for the last one. Without a password only the account is checked.
fn decide(service: &str, user: &str, password: Option<&str>) -> String {
    let ask = || {
        let conversation = Conversation { user: user.into(), password: password.unwrap_or_default().into() };
        let mut transaction =
            TransactionBuilder::new_with_service(service).username(user).build(conversation.into_conversation())?;
        if password.is_some() {
            transaction.authenticate(AuthnFlags::empty())?;
        }
        // Locked and expired accounts, and those whose password has to be changed first.
        transaction.account_management(AuthnFlags::empty())?;
        // Modules may change the name.
        transaction.items().user()
    };
    match ask() {
        Ok(name) => match name
            .map_or_else(|| Ok(user.to_owned()), OsString::into_string)
            .map_or_else(not_text, |name| account(&name))
        {
            Ok((name, groups)) => {
                let permitted = name.map_or_else(|| "permitted".to_owned(), |name| format!("permitted {name}"));
                [permitted].into_iter().chain(groups).map(|line| line + "\n").collect()
            }
            Err(error) => format!("failed reading the account of the user failed: {error}\n"),
        },
        Err(error) if is_about_pam(error) => format!("failed {}\n", line(&error.to_string())),
        Err(error) => format!("denied {}\n", line(&error.to_string())),
    }
}

fn not_text<T>(_: OsString) -> io::Result<T> {
    Err(io::Error::other("PAM has changed its name, which is no longer UTF-8"))
}

/// Whether an error is about PAM or its configuration, and not about the user.
fn is_about_pam(error: ErrorCode) -> bool {
    matches!(
        error,
        ErrorCode::SystemError
            | ErrorCode::ServiceError
            | ErrorCode::BufferError
            | ErrorCode::OpenError
            | ErrorCode::SymbolError
            | ErrorCode::Abort
    )
}

fn line(text: &str) -> String {
    text.replace(['\n', '\r'], " ")
}

/// Returns the name of a local user in the user database, and the names of all its groups. Users that only PAM knows have
/// neither.
fn account(user: &str) -> io::Result<(Option<String>, Vec<String>)> {
    let Some(account) = User::from_name(user)? else { return Ok((None, Vec::new())) };
    let ids = getgrouplist(&CString::new(account.name.as_str())?, account.gid)?;
    let name = |id| Group::from_gid(id).ok().flatten().map(|group| group.name);
    let groups = ids.into_iter().filter_map(name).filter(|name| !name.contains('\n')).collect();
    Ok((Some(line(&account.name)), groups))
}
