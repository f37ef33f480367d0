//! Accounts of a server: their authentication plugin, checks of their login, and the statements that create and change
//! them.

use brine_digest::Digest;
use brine_function::{Args, CallError};

use super::quote::{account, identifier, literal};
use super::server::{Version, plugin_state};
use super::session::{Session, SqlError};

/// The authentication plugin whose password hashes can be compared.
pub(super) const NATIVE: &str = "mysql_native_password";

/// The login method of an account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Login<'a> {
    Password(&'a str),
    /// The hash, as `SELECT PASSWORD('...')` returns it.
    Hash(&'a str),
    /// Through the server's socket, by the account of the operating system.
    Socket,
    NoPassword,
}

/// The arguments that name an account.
#[derive(Args, Debug, Clone)]
pub struct AccountArgs {
    /// Name of the user.
    pub user: String,
    /// Host of the user.
    #[default("localhost".into())]
    pub host: String,
}

impl AccountArgs {
    /// Returns the account that the arguments name.
    pub(super) fn account(&self) -> Account<'_> {
        Account { user: &self.user, host: &self.host }
    }
}

/// A user at a host.
#[derive(Debug, Clone, Copy)]
pub(super) struct Account<'a> {
    pub user: &'a str,
    pub host: &'a str,
}

impl Account<'_> {
    fn quoted(self) -> String {
        account(self.user, self.host)
    }

    /// Returns the name of the authentication plugin; `None` if the account does not exist.
    pub fn plugin(self, session: &Session) -> Result<Option<String>, SqlError> {
        let query = format!("SELECT plugin FROM mysql.user WHERE {}", self.condition());
        let set = session.query(&query)?;
        Ok(set.rows.first().map(|row| row.first().cloned().flatten().unwrap_or_default()))
    }

    /// Returns the SQL condition for the account's row in `mysql.user`.
    pub fn condition(self) -> String {
        format!("User = {} AND Host = {}", literal(self.user), literal(self.host))
    }

    /// Returns whether the account exists and has this login. A password whose plugin does not store an unsalted hash
    /// cannot be verified, and is accepted.
    pub fn has_login(
        self,
        session: &Session,
        version: &Version,
        login: Login,
        password_column: Option<&str>,
    ) -> Result<bool, SqlError> {
        let Some(plugin) = self.plugin(session)? else { return Ok(false) };
        let hash = match login {
            Login::Socket => return Ok(plugin == socket_plugin(version)),
            Login::NoPassword => String::new(),
            Login::Hash(hash) => hash.to_owned(),
            Login::Password(_) if ["unix_socket", "auth_socket"].contains(&&*plugin) => return Ok(false),
            Login::Password(password) if plugin.is_empty() || plugin == NATIVE => native_hash(password),
            Login::Password(_) => {
                tracing::warn!(user = self.user, host = self.host, plugin, "the password cannot be verified");
                return Ok(true);
            }
        };
        let column = match password_column {
            Some(column) => column.to_owned(),
            None => password_column_of(session)?,
        };
        let query = format!("SELECT {} FROM mysql.user WHERE {}", identifier(&column), self.condition());
        let stored = session.query(&query)?.first_column().into_iter().next().unwrap_or_default();
        Ok(stored == hash)
    }

    /// Creates the account.
    ///
    /// # Errors
    /// The server refuses it, or the plugin of socket logins is missing.
    pub fn create(
        self,
        session: &Session,
        version: &Version,
        login: Login,
        auth_plugin: &str,
    ) -> Result<(), CallError> {
        let is_new = !version.is_mariadb && version.is_at_least([8, 0, 11]);
        let plugin = literal(auth_plugin);
        let clause = match login {
            Login::NoPassword => String::new(),
            Login::Socket => socket_clause(session, version, self)?,
            Login::Password(password) if is_new => format!(" IDENTIFIED WITH {plugin} BY {}", literal(password)),
            Login::Hash(hash) if is_new => format!(" IDENTIFIED WITH {plugin} AS {}", literal(hash)),
            Login::Password(password) if version.is_mariadb && auth_plugin != NATIVE => {
                format!(" IDENTIFIED VIA {} USING PASSWORD({})", identifier(auth_plugin), literal(password))
            }
            Login::Hash(hash) if version.is_mariadb && auth_plugin != NATIVE => {
                format!(" IDENTIFIED VIA {} USING {}", identifier(auth_plugin), literal(hash))
            }
            Login::Password(password) => format!(" IDENTIFIED BY {}", literal(password)),
            Login::Hash(hash) => format!(" IDENTIFIED BY PASSWORD {}", literal(hash)),
        };
        Ok(session.execute(&[format!("CREATE USER {}{clause}", self.quoted())])?)
    }

    /// Changes the login of the account. Its password plugin is kept.
    ///
    /// # Errors
    /// The server refuses it, or the plugin of socket logins is missing.
    pub fn change(self, session: &Session, version: &Version, login: Login) -> Result<(), CallError> {
        let plugin = self.plugin(session)?.filter(|plugin| !plugin.is_empty() && !plugin.ends_with("_socket"));
        let plugin = plugin.unwrap_or_else(|| NATIVE.into());
        let account = self.quoted();
        let plain = match login {
            Login::Password(password) => literal(password),
            Login::Hash(hash) => literal(hash),
            Login::NoPassword => "''".into(),
            Login::Socket => String::new(),
        };
        let is_mariadb = version.is_mariadb && version.is_at_least([10, 4, 0]);
        let is_mysql = !version.is_mariadb && version.is_at_least([8, 0, 11]);
        let statement = match login {
            Login::Socket => format!("ALTER USER {account}{}", socket_clause(session, version, self)?),
            Login::Password(_) if is_mariadb => {
                format!("ALTER USER {account} IDENTIFIED VIA {} USING PASSWORD({plain})", identifier(&plugin))
            }
            _ if is_mariadb => format!("ALTER USER {account} IDENTIFIED VIA {} USING {plain}", identifier(&plugin)),
            Login::Hash(_) if is_mysql => {
                format!("ALTER USER {account} IDENTIFIED WITH {} AS {plain}", literal(&plugin))
            }
            _ if is_mysql => format!("ALTER USER {account} IDENTIFIED WITH {} BY {plain}", literal(&plugin)),
            Login::Password(_) => format!("SET PASSWORD FOR {account} = PASSWORD({plain})"),
            _ => format!("SET PASSWORD FOR {account} = {plain}"),
        };
        Ok(session.execute(&[statement])?)
    }

    /// Removes the account.
    pub fn remove(self, session: &Session) -> Result<(), CallError> {
        Ok(session.execute(&[format!("DROP USER {}", self.quoted())])?)
    }
}

/// Returns the hash of a password as `mysql_native_password` stores it.
fn native_hash(password: &str) -> String {
    if password.is_empty() {
        return String::new();
    }
    let digest = Digest::Sha1.of(Digest::Sha1.of(password));
    format!("*{}", brine_digest::hex(digest).to_uppercase())
}

/// Returns the column of `mysql.user` with the hash of the password, which depends on the version of the server.
fn password_column_of(session: &Session) -> Result<String, SqlError> {
    let query = "SELECT COLUMN_NAME FROM INFORMATION_SCHEMA.COLUMNS WHERE TABLE_SCHEMA = 'mysql' \
                 AND TABLE_NAME = 'user' AND COLUMN_NAME = 'Password'";
    let exists = !session.query(query)?.rows.is_empty();
    Ok(if exists { "Password" } else { "authentication_string" }.into())
}

fn socket_plugin(version: &Version) -> &'static str {
    if version.is_mariadb { "unix_socket" } else { "auth_socket" }
}

fn socket_clause(session: &Session, version: &Version, account: Account) -> Result<String, CallError> {
    let plugin = socket_plugin(version);
    if account.host != "localhost" {
        return Err(CallError::Execution("Auth via unix_socket can be set only for host=localhost".into()));
    }
    if plugin_state(session, plugin)?.as_deref() != Some("ACTIVE") {
        return Err(CallError::Execution(format!("The {plugin} plugin is not enabled.")));
    }
    Ok(format!(" IDENTIFIED {} {plugin}", if version.is_mariadb { "VIA" } else { "WITH" }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn native_hashes_match_the_server() {
        assert_eq!(native_hash("mypass"), "*6C8989366EAF75BB670AD8EA7A7FC1176A95CEF4");
        assert_eq!(native_hash(""), "");
    }
}
