//! Users.

use brine_context::Context;
use brine_function::{Args, CallError, CallResult, Functions, function, registry};
use brine_value::Value;

use super::account::{AccountArgs, Login, NATIVE};
use super::connection::ConnectionArgs;
use super::server::{Version, list, numbers};
use super::session::{Session, done};

/// Execution functions of `mysql` about users.
pub static FUNCTIONS: Functions<Context> =
    registry!("mysql", [user_list, user_exists, user_info, user_create, user_chpass, user_remove]);

/// Return the users, each with its `User` and `Host`.
///
/// CLI Example:
///
///     salt '*' mysql.user_list
#[function]
pub fn user_list(context: &Context, #[args] connection: ConnectionArgs) -> CallResult {
    Ok(list(connection.session(context)?.query("SELECT User, Host FROM mysql.user")?.maps()))
}

/// The arguments of `mysql.user_exists`.
#[derive(Args, Debug, Clone)]
pub struct ExistsArgs {
    #[args]
    of: AccountArgs,
    /// Password that the user must have.
    #[default]
    password: Value,
    /// Hash of the password that the user must have.
    password_hash: Option<String>,
    /// Whether the user must log in without a password.
    #[default(false)]
    passwordless: bool,
    /// Whether a login without a password must use the socket.
    #[default(false)]
    unix_socket: bool,
    /// Column of `mysql.user` with the hash; the default depends on the version of the server.
    password_column: Option<String>,
    #[args]
    connection: ConnectionArgs,
}

/// Return whether a user exists and, if requested, has this password or none.
///
/// CLI Example:
///
///     salt '*' mysql.user_exists 'username' 'hostname' 'password'
///     salt '*' mysql.user_exists 'username' 'hostname' password_hash='hash'
///     salt '*' mysql.user_exists 'username' passwordless=True
#[function]
pub fn user_exists(context: &Context, #[args] args: ExistsArgs) -> CallResult {
    let password = text(&args.password);
    let login = match (args.passwordless, &password, &args.password_hash) {
        (true, _, _) => Some(if args.unix_socket { Login::Socket } else { Login::NoPassword }),
        (false, Some(password), _) => Some(Login::Password(password)),
        (false, None, hash) => hash.as_deref().map(Login::Hash),
    };
    let (session, version) = args.connection.session_for(context, password.as_deref())?;
    let account = args.of.account();
    let column = args.password_column.as_deref();
    Ok(match login {
        Some(login) => account.has_login(&session, &version, login, column)?,
        None => account.plugin(&session)?.is_some(),
    }
    .into())
}

/// Return the row of a user in the table of users; nothing if the user does not exist.
///
/// CLI Example:
///
///     salt '*' mysql.user_info root localhost
#[function]
pub fn user_info(context: &Context, #[args] of: AccountArgs, #[args] connection: ConnectionArgs) -> CallResult {
    let account = of.account();
    let query = format!("SELECT * FROM mysql.user WHERE {}", account.condition());
    let row = connection.session(context)?.query(&query)?.maps().into_iter().next();
    Ok(row.map_or(Value::Nil, |mut row| {
        numbers(&mut row, &["max_questions", "max_updates", "max_connections", "max_user_connections"]);
        row.into()
    }))
}

/// The arguments of `mysql.user_create` and `mysql.user_chpass`.
#[derive(Args, Debug, Clone)]
pub struct UserArgs {
    #[args]
    pub of: AccountArgs,
    /// Password; it takes precedence over `password_hash`.
    #[default]
    pub password: Value,
    /// Hash of the password.
    pub password_hash: Option<String>,
    /// Whether the user may have no password.
    #[default(false)]
    pub allow_passwordless: bool,
    /// Whether the user logs in by the socket, as the account of the operating system.
    #[default(false)]
    pub unix_socket: bool,
    /// Without effect: statements that set passwords need no column.
    #[allow(dead_code, reason = "an argument without effect")]
    pub password_column: Option<String>,
    /// Authentication plugin of a new user.
    #[default(NATIVE.into())]
    pub auth_plugin: String,
    #[args]
    pub connection: ConnectionArgs,
}

/// Create a user; false if it exists.
///
/// CLI Example:
///
///     salt '*' mysql.user_create 'username' 'hostname' 'password'
///     salt '*' mysql.user_create 'username' 'hostname' password_hash='hash'
///     salt '*' mysql.user_create 'username' 'hostname' allow_passwordless=True
#[function]
pub fn user_create(context: &Context, #[args] args: UserArgs) -> CallResult {
    let password = text(&args.password);
    let (session, version) = args.connection.session_for(context, password.as_deref())?;
    let account = args.of.account();
    if account.plugin(&session)?.is_some() {
        tracing::info!(user = args.of.user, host = args.of.host, "the user exists");
        return Ok(false.into());
    }
    let login = login(password.as_deref(), args.password_hash.as_deref(), args.allow_passwordless, args.unix_socket);
    done(login.and_then(|login| account.create(&session, &version, login, &args.auth_plugin)))
}

/// Change the password of a user; false if the user does not exist.
///
/// CLI Example:
///
///     salt '*' mysql.user_chpass frank localhost newpassword
///     salt '*' mysql.user_chpass frank localhost password_hash='hash'
///     salt '*' mysql.user_chpass frank localhost allow_passwordless=True
#[function]
pub fn user_chpass(context: &Context, #[args] args: UserArgs) -> CallResult {
    let password = text(&args.password);
    let (session, version) = args.connection.session_for(context, password.as_deref())?;
    let account = args.of.account();
    if account.plugin(&session)?.is_none() {
        tracing::info!(user = args.of.user, host = args.of.host, "the user does not exist");
        return Ok(false.into());
    }
    let socket = args.unix_socket && args.allow_passwordless;
    let login = login(password.as_deref(), args.password_hash.as_deref(), args.allow_passwordless, socket);
    done(login.and_then(|login| account.change(&session, &version, login)))
}

/// Remove a user; false if the user does not exist.
///
/// CLI Example:
///
///     salt '*' mysql.user_remove frank localhost
#[function]
pub fn user_remove(context: &Context, #[args] of: AccountArgs, #[args] connection: ConnectionArgs) -> CallResult {
    let session = connection.session(context)?;
    let account = of.account();
    if account.plugin(&session)?.is_none() {
        tracing::info!(user = of.user, host = of.host, "the user does not exist");
        return Ok(false.into());
    }
    done(account.remove(&session))
}

/// Returns a password as a string: YAML parses one that is all digits as a number. `None` if it is unset or empty.
pub(super) fn text(password: &Value) -> Option<String> {
    (!matches!(password, Value::Nil)).then(|| password.to_string()).filter(|password| !password.is_empty())
}

/// Returns the login that the arguments select.
///
/// # Errors
/// No login is given, and `allow_passwordless` is false.
pub(super) fn login<'a>(
    password: Option<&'a str>,
    hash: Option<&'a str>,
    allow_passwordless: bool,
    unix_socket: bool,
) -> Result<Login<'a>, CallError> {
    match (password, hash) {
        _ if unix_socket => Ok(Login::Socket),
        (Some(password), _) => Ok(Login::Password(password)),
        (None, Some(hash)) if !hash.is_empty() => Ok(Login::Hash(hash)),
        _ if allow_passwordless => Ok(Login::NoPassword),
        _ => Err(CallError::Execution(
            "password or password_hash must be specified, unless allow_passwordless=True".into(),
        )),
    }
}

impl ConnectionArgs {
    /// Opens a session and queries the version of the server. If that fails and a password is given, it retries with
    /// that password: the user of the session may be the one whose password was changed already.
    pub(super) fn session_for<'a>(
        &self,
        context: &'a Context,
        password: Option<&str>,
    ) -> Result<(Session<'a>, Version), CallError> {
        let session = self.session(context)?;
        match (Version::of(&session), password) {
            (Ok(version), _) => Ok((session, version)),
            (Err(_), Some(password)) => {
                let own = ConnectionArgs { connection_pass: Some(password.to_owned()), ..self.clone() };
                let session = own.session(context)?;
                let version = Version::of(&session)?;
                Ok((session, version))
            }
            (Err(error), None) => Err(error.into()),
        }
    }
}
