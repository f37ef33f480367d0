//! Connection options: the arguments `connection_*`, or else the options `mysql.*` of the minion, its grains or its
//! pillar.

use std::io::Write;

use brine_context::Context;
use brine_function::{Args, CallError};
use brine_value::Value;
use tempfile::NamedTempFile;

use super::session::{Session, client};

/// The arguments for the connection to a server. Unset ones default to the options `mysql.host`, `mysql.user` and so on
/// or, with `connection_default_file`, to the settings in that file.
#[derive(Args, Debug, Clone)]
pub struct ConnectionArgs {
    /// Host.
    pub connection_host: Option<String>,
    /// User of the session; default: the account of the minion.
    pub connection_user: Option<String>,
    /// Password of the user.
    pub connection_pass: Option<String>,
    /// Port; default: 3306.
    #[default]
    pub connection_port: Value,
    /// Database of the session.
    pub connection_db: Option<String>,
    /// Path of the server's socket.
    pub connection_unix_socket: Option<String>,
    /// Option file of MySQL to read, such as `/etc/mysql/debian.cnf`.
    pub connection_default_file: Option<String>,
    /// Character set, one of the names of UTF-8: `utf8`, `utf8mb3` or `utf8mb4` (the default).
    pub connection_charset: Option<String>,
    /// Flags of the client, as a list. Without effect: the client program chooses its own.
    #[default]
    pub client_flags: Value,
}

/// The maximum length of a line of an option file, in bytes.
const LINE: usize = 4000;
/// Seconds after which a server that does not accept the connection is unreachable.
const CONNECT_TIMEOUT: u32 = 10;

impl ConnectionArgs {
    /// Opens a session in a database.
    ///
    /// # Errors
    /// The client program is missing, or an option is invalid.
    pub(super) fn session_in<'a>(&self, context: &'a Context, database: &str) -> Result<Session<'a>, CallError> {
        ConnectionArgs { connection_db: Some(database.to_owned()), ..self.clone() }.session(context)
    }

    /// Opens a session.
    ///
    /// # Errors
    /// The client program is missing, or an option is invalid.
    pub(super) fn session<'a>(&self, context: &'a Context) -> Result<Session<'a>, CallError> {
        let client = client(context).ok_or_else(|| {
            CallError::Execution("mysql client not found: install the program mariadb or mysql".into())
        })?;
        let file = self.option_file(context)?;
        Ok(Session::new(context, client, file))
    }

    /// Writes a private option file for the client, because arguments and environments of programs are visible to other
    /// accounts.
    fn option_file(&self, context: &Context) -> Result<NamedTempFile, CallError> {
        let reads_options = self.connection_default_file.is_none();
        let option = |argument: Option<String>, name: &str| {
            let value = argument.or_else(|| reads_options.then(|| minion_option(context, name)).flatten());
            value.filter(|text| !text.is_empty())
        };
        let charset = option(self.connection_charset.clone(), "charset").unwrap_or_else(|| "utf8mb4".into());
        if !["utf8", "utf8mb3", "utf8mb4"].contains(&&*charset) {
            return Err(CallError::Execution(format!(
                "mysql.charset is invalid: expected utf8, utf8mb3 or utf8mb4, got '{charset}'"
            )));
        }
        let socket = option(self.connection_unix_socket.clone(), "unix_socket");
        let port = self.connection_port.is_truthy().then(|| self.connection_port.to_string());
        let mut lines = Vec::new();
        if let Some(path) = option(self.connection_default_file.clone(), "default_file") {
            if path.contains(['\n', '\r']) {
                return Err(CallError::Execution("connection_default_file is invalid: expected a path".into()));
            }
            lines.push(format!("!include {path}"));
        }
        lines.push("[client]".into());
        lines.push(format!("default-character-set={charset}"));
        lines.push(format!("connect-timeout={CONNECT_TIMEOUT}"));
        let values = [
            ("host", option(self.connection_host.clone(), "host")),
            ("user", option(self.connection_user.clone(), "user")),
            ("password", option(self.connection_pass.clone(), "pass")),
            ("port", option(port, "port")),
            ("database", option(self.connection_db.clone(), "db")),
            ("protocol", socket.is_some().then(|| "SOCKET".into())),
            ("socket", socket),
        ];
        for (name, value) in values {
            let Some(value) = value else { continue };
            // Only the client accepts `database`, so it goes into the client's own group.
            lines.extend((name == "database").then(|| "[mysql]".to_owned()));
            let line = format!("{name}={}", quoted(&value));
            if line.len() > LINE || value.contains('\0') {
                return Err(CallError::Execution(format!(
                    "connection_{name} is invalid: expected at most {LINE} bytes without NUL"
                )));
            }
            lines.push(line);
            lines.extend((name == "database").then(|| "[client]".to_owned()));
        }
        // `NamedTempFile` creates files exclusively, with the mode 0600.
        let mut file = NamedTempFile::new().map_err(CallError::execution)?;
        file.write_all(format!("{}\n", lines.join("\n")).as_bytes()).map_err(CallError::execution)?;
        Ok(file)
    }
}

/// Quotes a value of an option file.
fn quoted(value: &str) -> String {
    let escape = |letter: char| match letter {
        '\\' => "\\\\".to_owned(),
        '"' => "\\\"".to_owned(),
        '\n' => "\\n".to_owned(),
        '\r' => "\\r".to_owned(),
        '\t' => "\\t".to_owned(),
        letter => letter.to_string(),
    };
    format!("\"{}\"", value.chars().map(escape).collect::<String>())
}

/// Returns an option `mysql.NAME` of the minion, its grains or its pillar.
fn minion_option(context: &Context, name: &str) -> Option<String> {
    // The call fails on a minion without the module `config`.
    let value = context.call("config.option", Args::positional([format!("mysql.{name}").into()])).ok()?;
    (!matches!(value, Value::Nil)).then(|| value.to_string())
}
