//! Sessions with a server: run statements with the client program `mariadb` or `mysql`.

use std::path::PathBuf;

use brine_context::Context;
use brine_function::{CallError, CallResult};
use brine_host::process::Program;
use brine_host::programs::program;
use tempfile::NamedTempFile;

use super::resultset::{InvalidOutput, ResultSet};

/// The error of a session.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum SqlError {
    /// The server or the client rejected a connection or a statement.
    #[error("MySQL Error {code}: {message}")]
    Refused { code: u32, message: String },
    /// Any other failure of the client program.
    #[error("MySQL Error: {0}")]
    Client(String),
    #[error("MySQL Error: {0}")]
    Output(#[from] InvalidOutput),
}

impl From<SqlError> for CallError {
    fn from(error: SqlError) -> Self {
        CallError::Execution(error.to_string())
    }
}

/// The result of a statement.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct StatementResult {
    /// The result sets: usually one, none for statements that only change data.
    pub sets: Vec<ResultSet>,
    /// Number of changed rows; negative for queries.
    pub affected: i64,
}

/// Returns the path of the client program.
pub(super) fn client(context: &Context) -> Option<PathBuf> {
    ["mariadb", "mysql"].into_iter().find_map(|name| context.minion.programs.find(name))
}

/// A session of a user with a server. Every call opens its own connection.
pub(super) struct Session<'a> {
    context: &'a Context,
    client: PathBuf,
    option_file: NamedTempFile,
}

/// The statement that makes the quoting of [`quote`](super::quote) valid, whatever the SQL mode of the server is.
const MODE: &str = "SET SESSION sql_mode = REPLACE(REPLACE(REPLACE(@@SESSION.sql_mode, 'NO_BACKSLASH_ESCAPES', ''), \
                    'ANSI_QUOTES', ''), 'ANSI,', '')";

impl<'a> Session<'a> {
    pub fn new(context: &'a Context, client: PathBuf, option_file: NamedTempFile) -> Self {
        Session { context, client, option_file }
    }

    /// Runs a query that was built by this module, and returns its first result set.
    ///
    /// # Errors
    /// The server cannot be reached, or refuses the query.
    pub fn query(&self, query: &str) -> Result<ResultSet, SqlError> {
        let mut results = self.run(&[MODE.to_owned(), query.to_owned()])?;
        Ok(results.pop().unwrap_or_default().sets.into_iter().next().unwrap_or_default())
    }

    /// Runs statements that were built by this module.
    ///
    /// # Errors
    /// The server cannot be reached, or refuses a statement.
    pub fn execute(&self, statements: &[String]) -> Result<(), SqlError> {
        let mut all = vec![MODE.to_owned()];
        all.extend_from_slice(statements);
        self.run(&all).map(drop)
    }

    /// Runs statements in one connection until one fails, and returns the result of each.
    ///
    /// The statements are passed on standard input, because arguments are visible to all accounts of the host. A random
    /// delimiter and the binary mode keep the client from interpreting anything in them as a client command, such as
    /// `\!`.
    ///
    /// # Errors
    /// The server cannot be reached, or refuses a statement.
    pub fn run(&self, statements: &[String]) -> Result<Vec<StatementResult>, SqlError> {
        // The client accepts delimiters of at most 15 characters.
        let mark = format!("b{:014x}", rand::random::<u64>() >> 8);
        let mut input = format!("delimiter {mark}\n");
        for statement in statements {
            input.push_str(&format!("{statement}\n{mark}\nSELECT ROW_COUNT() AS `{mark}_`\n{mark}\n"));
        }
        let file = format!("--defaults-file={}", self.option_file.path().display());
        let client = self.client.display().to_string();
        let mut words = vec![client, file];
        words.extend(["--batch", "--xml", "--binary-mode", "--comments", "--skip-reconnect"].map(String::from));
        // With `/` as home directory, the client finds no login file and writes no history.
        let mut env = vec![("HOME".to_owned(), "/".to_owned()), ("LC_ALL".to_owned(), "C.UTF-8".to_owned())];
        env.extend(std::env::var("PATH").ok().map(|path| ("PATH".to_owned(), path)));
        let cwd = Some("/".into());
        let program = Program { env, clean_env: true, stdin: Some(input), cwd, quiet: true, ..program(&words, &[]) };
        let output = self.context.run_program(&program).map_err(|error| SqlError::Client(error.to_string()))?;
        if output.retcode != 0 {
            return Err(error_of(&output.stderr, output.retcode));
        }
        let column = format!("{mark}_");
        let mut results = Vec::with_capacity(statements.len());
        let mut current = StatementResult::default();
        for set in ResultSet::parse(&output.stdout)? {
            if set.columns.first() == Some(&column) {
                let count = set.first_column().first().and_then(|count| count.parse().ok());
                current.affected = count.unwrap_or(-1);
                results.push(std::mem::take(&mut current));
            } else {
                current.sets.push(set);
            }
        }
        Ok(results)
    }
}

/// Parses the error of the client, such as `ERROR 1064 (42000) at line 5: You have an error`.
fn error_of(stderr: &str, status: i64) -> SqlError {
    let lines = stderr.trim();
    let refused = lines.find("ERROR ").and_then(|start| {
        let (head, message) = lines[start + "ERROR ".len()..].split_once(": ")?;
        let code = head.split_whitespace().next()?.parse().ok()?;
        Some(SqlError::Refused { code, message: message.trim().to_owned() })
    });
    refused.unwrap_or_else(|| {
        SqlError::Client(match lines {
            "" => format!("the mysql client ended with the exit status {status}"),
            lines => lines.to_owned(),
        })
    })
}

/// Returns whether a change succeeded, as the result of a call. An error is logged.
pub(super) fn done(result: Result<(), CallError>) -> CallResult {
    if let Err(error) = &result {
        tracing::error!(%error, "a change of the MySQL server failed");
    }
    Ok(result.is_ok().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_carry_the_code_of_the_server() {
        let stderr = "--------------\nnonsense\n--------------\n\nERROR 1064 (42000) at line 5: You have: an error";
        assert_eq!(error_of(stderr, 1).to_string(), "MySQL Error 1064: You have: an error");
        let away = "ERROR 2002 (HY000): Can't connect to server on '127.0.0.1' (115)";
        assert_eq!(error_of(away, 1).to_string(), "MySQL Error 2002: Can't connect to server on '127.0.0.1' (115)");
        assert_eq!(error_of("", 3).to_string(), "MySQL Error: the mysql client ended with the exit status 3");
    }
}
