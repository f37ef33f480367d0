//! `mysql_user`: users.

use brine_context::{StateContext, StateReturn};
use brine_function::{Args, CallError, CallResult, Functions, function, registry};
use brine_value::{Map, Value};

use super::{or_failed, outcome};
use crate::mysql::account::{Account, NATIVE};
use crate::mysql::connection::ConnectionArgs;
use crate::mysql::user::{login, text};

/// State functions of `mysql_user`.
pub static FUNCTIONS: Functions<StateContext> = registry!("mysql_user", [present, absent]);

/// The arguments of `mysql_user.present`.
#[derive(Args, Debug, Clone)]
pub struct PresentArgs {
    /// Name of the user.
    name: String,
    /// Host of the user.
    #[default("localhost".into())]
    host: String,
    /// Password; it takes precedence over `password_hash`.
    #[default]
    password: Value,
    /// Hash of the password, as `SELECT PASSWORD('...')` returns it.
    password_hash: Option<String>,
    /// Whether the user may have no password.
    #[default(false)]
    allow_passwordless: bool,
    /// Whether a user without a password logs in by the socket, as the account of the operating system.
    #[default(false)]
    unix_socket: bool,
    /// Column of `mysql.user` with the hash; the default depends on the version of the server.
    password_column: Option<String>,
    /// Authentication plugin of a new user.
    #[default(NATIVE.into())]
    auth_plugin: String,
    #[args]
    connection: ConnectionArgs,
    #[keywords(crate::mysql::state::further)]
    _kwargs: Map,
}

/// Ensure that a user exists and has a password, logs in by the socket, or needs no password.
///
/// SLS Example:
///
///     app:
///       mysql_user.present:
///         - host: localhost
///         - password_hash: '*2470C0C06DEE42FD1618BB99005ADCA2EC9D1E19'
///
///     backup:
///       mysql_user.present:
///         - host: localhost
///         - allow_passwordless: True
///         - unix_socket: True
#[function]
pub fn present(context: &StateContext, #[args] args: PresentArgs) -> CallResult {
    or_failed(&args.name, args.ensure(context))
}

/// Ensure that a user does not exist.
///
/// SLS Example:
///
///     oldapp:
///       mysql_user.absent:
///         - host: localhost
#[function]
pub fn absent(
    context: &StateContext,
    /// Name of the user.
    name: String,
    /// Host from which the user logs in.
    #[default("localhost".into())]
    host: String,
    #[args] connection: ConnectionArgs,
    #[keywords(crate::mysql::state::further)] _kwargs: Map,
) -> CallResult {
    let ensure = || {
        let session = connection.session(&context.call)?;
        let account = Account { user: &name, host: &host };
        if account.plugin(&session)?.is_none() {
            let comment = format!("User {name}@{host} is not present, so it cannot be removed");
            return Ok(StateReturn::ok(&name, comment));
        }
        if context.test {
            return Ok(StateReturn::predicted(&name, format!("User {name}@{host} is set to be removed")));
        }
        let success = format!("User {name}@{host} has been removed");
        let failure = format!("Failed to remove user {name}@{host}");
        Ok(outcome(&name, account.remove(&session), success, "Absent", failure))
    };
    or_failed(&name, ensure())
}

impl PresentArgs {
    fn ensure(&self, context: &StateContext) -> Result<StateReturn, CallError> {
        let PresentArgs { name, host, .. } = self;
        let password = text(&self.password);
        let hash = self.password_hash.as_deref().filter(|hash| !hash.is_empty());
        let passwordless = password.is_none() && hash.is_none();
        if passwordless && !self.allow_passwordless && !self.unix_socket {
            let comment = "Either password or password_hash must be specified, unless allow_passwordless is True";
            return Ok(StateReturn::failed(name, comment));
        }
        let socket = self.unix_socket && passwordless;
        let login = login(password.as_deref(), hash, self.allow_passwordless, socket)?;
        let (session, version) = self.connection.session_for(&context.call, password.as_deref())?;
        let account = Account { user: name, host };
        if account.has_login(&session, &version, login, self.password_column.as_deref())? {
            let comment = format!("User {name}@{host} is already present{}", self.login_comment(passwordless));
            return Ok(StateReturn::ok(name, comment));
        }
        if account.plugin(&session)?.is_some() {
            let (verb, past) = if passwordless { ("clear", "cleared") } else { ("change", "changed") };
            if context.test {
                let comment = format!("Password for user {name}@{host} is set to be {past}");
                return Ok(StateReturn::predicted(name, comment));
            }
            let result = account.change(&session, &version, login);
            let success = format!("Password for user {name}@{host} has been {past}");
            let failure = format!("Failed to {verb} password for user {name}@{host}");
            return Ok(outcome(name, result, success, "Updated", failure));
        }
        let mut how = if passwordless && self.allow_passwordless { " with passwordless login" } else { "" }.to_owned();
        how.push_str(if socket { " using unix_socket" } else { "" });
        if context.test {
            return Ok(StateReturn::predicted(name, format!("User {name}@{host} is set to be added{how}")));
        }
        let result = account.create(&session, &version, login, &self.auth_plugin);
        let success = format!("The user {name}@{host} has been added{how}");
        Ok(outcome(name, result, success, "Present", format!("Failed to create user {name}@{host}")))
    }

    fn login_comment(&self, passwordless: bool) -> &'static str {
        match (passwordless, text(&self.password).is_some()) {
            (true, _) if self.allow_passwordless => " with passwordless login",
            (true, _) => "",
            (false, _) if self.auth_plugin != NATIVE => ". Unable to verify password.",
            (false, true) => " with the desired password",
            (false, false) => " with the desired password hash",
        }
    }
}
