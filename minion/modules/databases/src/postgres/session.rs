//! Sessions with a server: connection arguments, and queries and statements with `psql`.

use std::path::Path;
use std::time::Duration;

use brine_context::Context;
use brine_function::{Args, CallError, CallResult};
use brine_host::process::{Output, Program};
use brine_host::programs::program;
use brine_value::{Map, Value};

/// The arguments for the address of a server and the role of the session. Unset ones default to the options
/// `postgres.user`, `postgres.host` and so on.
#[derive(Args, Debug, Clone)]
pub struct EndpointArgs {
    /// Role of the session; default: the account that runs `psql`.
    pub user: Option<String>,
    /// Host, or directory of the socket.
    pub host: Option<String>,
    /// Port.
    #[default]
    pub port: Value,
}

/// The arguments for the connection to a server.
#[derive(Args, Debug, Clone)]
pub struct ServerArgs {
    #[args]
    pub endpoint: EndpointArgs,
    /// Database of the session; default: `postgres`.
    pub maintenance_db: Option<String>,
    /// Password of the role.
    pub password: Option<String>,
}

/// The arguments for the connection to a server, for functions that take the database by another argument.
#[derive(Args, Debug, Clone)]
pub struct LoginArgs {
    #[args]
    pub endpoint: EndpointArgs,
    /// Password of the role.
    pub password: Option<String>,
    /// Account that runs `psql`.
    pub runas: Option<String>,
}

impl LoginArgs {
    /// Opens a session in a database.
    ///
    /// # Errors
    /// `psql` is missing.
    pub(super) fn session<'a>(&self, context: &'a Context, database: Option<String>) -> Result<Session<'a>, CallError> {
        let (endpoint, password) = (self.endpoint.clone(), self.password.clone());
        ServerArgs { endpoint, maintenance_db: database, password }.session(context, self.runas.clone())
    }
}

/// The arguments for the address of a server and the password of the role, for functions whose `user` is the account
/// that runs `psql`.
#[derive(Args, Debug, Clone)]
pub struct DbServerArgs {
    /// Password of the role.
    pub db_password: Option<String>,
    /// Host, or directory of the socket.
    pub db_host: Option<String>,
    /// Port.
    #[default]
    pub db_port: Value,
}

impl DbServerArgs {
    /// Returns the arguments for a session of a role in a database of this server.
    pub(super) fn of(&self, role: Option<String>, database: Option<String>) -> ServerArgs {
        let endpoint = EndpointArgs { user: role, host: self.db_host.clone(), port: self.db_port.clone() };
        ServerArgs { endpoint, maintenance_db: database, password: self.db_password.clone() }
    }
}

/// The account that owns a server, except on OpenBSD.
const OWNER: &str = "postgres";
/// The environment variables that programs inherit. Others, such as `PGHOST`, could redirect them to another server.
const INHERITED_VARIABLES: [&str; 3] = ["PATH", "HOME", "TMPDIR"];

impl ServerArgs {
    /// Opens a session with these arguments; options are the defaults. If the server is local, `psql` runs as its owner
    /// unless `runas` is set.
    ///
    /// # Errors
    /// `psql` is missing.
    pub(super) fn session<'a>(&self, context: &'a Context, runas: Option<String>) -> Result<Session<'a>, CallError> {
        let text = |argument: &Option<String>, name: &str| {
            argument.clone().filter(|text| !text.is_empty()).or_else(|| option(context, name))
        };
        let host = text(&self.endpoint.host, "postgres.host");
        let port = &self.endpoint.port;
        let port = if port.is_truthy() { Some(port.to_string()) } else { option(context, "postgres.port") };
        let is_local = host.as_deref().is_none_or(|host| host.starts_with('/'));
        Ok(Session {
            context,
            psql: Bin::Psql.path(context)?,
            user: text(&self.endpoint.user, "postgres.user"),
            host,
            port,
            database: text(&self.maintenance_db, "postgres.maintenance_db").unwrap_or_else(|| "postgres".into()),
            password: self.password.clone().or_else(|| option(context, "postgres.pass")),
            runas: runas.or_else(|| is_local.then(|| owner(context))),
        })
    }
}

/// Returns the account that owns a server on this system.
pub(super) fn owner(context: &Context) -> String {
    if context.os_family() == "OpenBSD" { "_postgresql".into() } else { OWNER.into() }
}

/// Returns an option of the minion, its grains or its pillar.
fn option(context: &Context, name: &str) -> Option<String> {
    // The call fails on a minion without the module `config`.
    let value = context.call("config.option", Args::positional([name.into()])).ok()?;
    value.is_truthy().then(|| value.to_string())
}

/// The programs of PostgreSQL that the module runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Bin {
    Psql,
    Initdb,
}

impl Bin {
    fn name(self) -> &'static str {
        match self {
            Bin::Psql => "psql",
            Bin::Initdb => "initdb",
        }
    }

    /// Returns whether the program is installed.
    pub fn is_installed(self, context: &Context) -> bool {
        self.path(context).is_ok()
    }

    /// Returns the path of the program: in `postgres.bins_dir`, or in `PATH`.
    ///
    /// # Errors
    /// The program is missing.
    pub fn path(self, context: &Context) -> Result<String, CallError> {
        let own = option(context, "postgres.bins_dir").map(|directory| Path::new(&directory).join(self.name()));
        let path = own.filter(|path| path.is_file()).or_else(|| context.minion.programs.find(self.name()));
        path.map(|path| path.display().to_string()).ok_or_else(|| {
            let name = self.name();
            CallError::Execution(format!(
                "{name} executable not found: set postgres.bins_dir to the directory that has it"
            ))
        })
    }
}

/// Runs a program of PostgreSQL as an account, without environment variables of the minion that could redirect it to
/// another server.
pub(super) fn run(
    context: &Context,
    words: &[String],
    runas: Option<String>,
    password: Option<&str>,
    stdin: Option<String>,
) -> Result<Output, CallError> {
    let mut env: Vec<(String, String)> =
        INHERITED_VARIABLES.iter().filter_map(|name| Some(((*name).to_owned(), std::env::var(name).ok()?))).collect();
    env.extend([("LC_ALL", "C.UTF-8"), ("PGDATESTYLE", "ISO,MDY")].map(|(name, value)| (name.into(), value.into())));
    // Another account may have no access to this process's home directory; `psql` would print a warning in every call.
    env.extend(runas.is_some().then(|| ("HOME".to_owned(), "/".to_owned())));
    env.extend(password.map(|password| ("PGPASSWORD".to_owned(), password.to_owned())));
    let timeout = option(context, "postgres.timeout").and_then(|seconds| seconds.parse().ok()).map(Duration::from_secs);
    let cwd = Some("/".into());
    let program = Program { env, clean_env: true, runas, stdin, timeout, cwd, quiet: true, ..program(words, &[]) };
    context.run_program(&program).map_err(CallError::execution)
}

/// Returns whether a statement succeeded, as the result of a call. An error is logged.
pub(super) fn done(result: Result<(), CallError>) -> CallResult {
    if let Err(error) = &result {
        tracing::error!(%error, "the PostgreSQL server refused a statement");
    }
    Ok(result.is_ok().into())
}

/// A session of a role with a server. Every call opens its own connection.
pub(super) struct Session<'a> {
    pub context: &'a Context,
    psql: String,
    user: Option<String>,
    host: Option<String>,
    port: Option<String>,
    database: String,
    password: Option<String>,
    runas: Option<String>,
}

impl Session<'_> {
    /// Returns the rows of a query.
    ///
    /// # Errors
    /// The server cannot be reached, or refuses the query.
    pub fn query(&self, query: &str) -> Result<Vec<Map>, CallError> {
        let query = format!("COPY ({}) TO STDOUT WITH CSV HEADER", query.trim().trim_end_matches(';'));
        rows(&self.run(&["-c".into(), query], None)?)
    }

    /// Runs a query in a read-write transaction, and returns its rows. It also works if transactions are read-only by
    /// default.
    ///
    /// # Errors
    /// The server cannot be reached, or refuses the query.
    pub fn query_and_write(&self, query: &str) -> Result<Vec<Map>, CallError> {
        let query = format!("COPY ({}) TO STDOUT WITH CSV HEADER", query.trim().trim_end_matches(';'));
        let words = [
            "-q",
            "-v",
            "ON_ERROR_STOP=1",
            "-c",
            "START TRANSACTION READ WRITE",
            "-c",
            &query,
            "-c",
            "COMMIT TRANSACTION",
        ];
        rows(&self.run(&words.map(String::from), None)?)
    }

    /// Runs statements; several of them in one transaction. They are passed on standard input, because arguments are
    /// visible to all users of the host.
    ///
    /// # Errors
    /// The server cannot be reached, or refuses a statement.
    pub fn execute(&self, statements: &[String]) -> Result<(), CallError> {
        let mut words: Vec<String> = ["-q", "-v", "ON_ERROR_STOP=1"].map(String::from).into();
        words.extend((statements.len() > 1).then(|| "--single-transaction".to_owned()));
        words.extend(["-f", "-"].map(String::from));
        let text = format!("{};\n", statements.join(";\n"));
        self.run(&words, Some(text)).map(drop)
    }

    fn run(&self, words: &[String], stdin: Option<String>) -> Result<String, CallError> {
        let mut all = vec![self.psql.clone()];
        all.extend(["--no-align", "--no-readline", "--no-psqlrc", "--no-password"].map(String::from));
        for (word, value) in [("--username", &self.user), ("--host", &self.host), ("--port", &self.port)] {
            all.extend(value.iter().flat_map(|value| [word.to_owned(), value.clone()]));
        }
        all.extend(["--dbname".to_owned(), connection(&self.database)]);
        all.extend_from_slice(words);
        let output = run(self.context, &all, self.runas.clone(), self.password.as_deref(), stdin)?;
        if output.retcode != 0 {
            let reason = output.stderr.trim().trim_start_matches("psql: error: ");
            return Err(CallError::Execution(match (reason, output.timed_out) {
                (_, true) => "the PostgreSQL server did not answer within postgres.timeout".to_owned(),
                ("", _) => format!("psql ended with the exit status {}", output.retcode),
                (reason, _) => reason.to_owned(),
            }));
        }
        Ok(output.stdout)
    }
}

/// Returns the name of a database in a form that `psql` does not parse as a connection string.
fn connection(database: &str) -> String {
    if database.contains('=') || database.starts_with("postgres://") || database.starts_with("postgresql://") {
        return format!("dbname='{}'", database.replace('\\', "\\\\").replace('\'', "\\'"));
    }
    database.to_owned()
}

/// Parses CSV with a header into mappings.
fn rows(text: &str) -> Result<Vec<Map>, CallError> {
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let header = reader.headers().map_err(CallError::execution)?.clone();
    let row = |record: Result<csv::StringRecord, csv::Error>| {
        let record = record.map_err(CallError::execution)?;
        Ok(header.iter().zip(record.iter()).map(|(name, value)| (Value::from(name), Value::from(value))).collect())
    };
    reader.records().map(row).collect()
}

/// Returns a column of a row as a string; empty for NULL.
pub(super) fn column<'a>(row: &'a Map, name: &str) -> &'a str {
    row.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// Returns rows by a column, which is removed from the rows.
pub(super) fn by_name(rows: Vec<Map>, name: &str) -> Map {
    let named = |mut row: Map| Some((row.shift_remove(name)?, Value::from(row)));
    rows.into_iter().filter_map(named).collect()
}

/// Quotes an identifier.
pub(super) fn identifier(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Quotes a string.
pub(super) fn literal(text: &str) -> String {
    let quoted = text.replace('\'', "''");
    if quoted.contains('\\') { format!("E'{}'", quoted.replace('\\', "\\\\")) } else { format!("'{quoted}'") }
}

/// Validates a word for unquoted use in SQL: letters, digits, `_` and the characters in `allowed`.
///
/// # Errors
/// The word is empty or contains other characters.
pub(super) fn plain<'a>(word: &'a str, allowed: &str) -> Result<&'a str, CallError> {
    let is_plain = |letter: char| letter.is_alphanumeric() || letter == '_' || allowed.contains(letter);
    if word.is_empty() || !word.chars().all(is_plain) {
        return Err(CallError::Execution(format!(
            "{word:?} cannot be part of a statement: it has unsupported characters"
        )));
    }
    Ok(word)
}
