//! `postgres`, `pgjsonb` and `postgres_local_cache`: PostgreSQL servers.

use std::time::Duration;

use ::postgres::error::SqlState;
use ::postgres::types::ToSql;
use ::postgres::{Client as Connection, Config, Error};

use super::layout::{Layout, PGJSONB, POSTGRES, POSTGRES_LOCAL_CACHE};
use super::returner::{self, Client};
use super::tls;
use crate::connection::TIMEOUT;
use crate::error::sql::{Cause, SqlError};
use crate::{Options, Returner, ReturnerError};

/// The timeout of a statement in milliseconds, enforced by the server.
const STATEMENT_TIMEOUT: &str = "-c statement_timeout=30000";

pub(super) fn open_text(options: &Options) -> Result<Box<dyn Returner>, ReturnerError> {
    open(&POSTGRES, "returner.postgres", "passwd", options)
}

pub(super) fn open_jsonb(options: &Options) -> Result<Box<dyn Returner>, ReturnerError> {
    open(&PGJSONB, "returner.pgjsonb", "pass", options)
}

pub(super) fn open_local_cache(options: &Options) -> Result<Box<dyn Returner>, ReturnerError> {
    open(&POSTGRES_LOCAL_CACHE, "master_job_cache.postgres", "passwd", options)
}

fn open(
    layout: &'static Layout,
    prefix: &str,
    password: &str,
    options: &Options,
) -> Result<Box<dyn Returner>, ReturnerError> {
    let tls = tls::settings(prefix, options)?;
    let text = |name: &str, default: &str| {
        Ok::<String, ReturnerError>(options.get(prefix, name)?.unwrap_or_else(|| default.to_owned()))
    };
    let (host, database) = (text("host", "localhost")?, text("db", "salt")?);
    let port: u16 = options.get(prefix, "port")?.unwrap_or(5432);
    let timeout = options.get(prefix, "connect_timeout")?.map_or(TIMEOUT, Duration::from_secs);
    let mut config = Config::new();
    config
        .host(&host)
        .port(port)
        .dbname(&database)
        .user(&text("user", "salt")?)
        .password(text(password, "salt")?)
        .application_name("brine")
        .ssl_mode(tls.mode)
        .connect_timeout(timeout)
        .tcp_user_timeout(TIMEOUT)
        .options(STATEMENT_TIMEOUT);
    let connect = move || {
        let connection = config.connect(tls.connector.clone()).map_err(SqlError::from)?;
        Ok(Box::new(Postgres(connection)) as Box<dyn Client>)
    };
    Ok(returner::create(layout, options, format!("{host}:{port}/{database}"), Box::new(connect)))
}

struct Postgres(Connection);

impl From<Error> for SqlError {
    fn from(error: Error) -> Self {
        let cause = match error.code() {
            Some(&SqlState::UNDEFINED_TABLE | &SqlState::UNDEFINED_COLUMN) => Cause::Schema,
            // The server is starting or shutting down, or has ended this session.
            Some(&SqlState::ADMIN_SHUTDOWN | &SqlState::CRASH_SHUTDOWN | &SqlState::CANNOT_CONNECT_NOW) => {
                Cause::Connection
            }
            Some(_) => Cause::Other,
            None => Cause::Connection,
        };
        // The client's own message contains only the kind of the error.
        let source = match error.into_source() {
            Some(source) => source,
            None => "the server closed the connection".into(),
        };
        SqlError::new(source, cause)
    }
}

/// Replaces the placeholders `?` with `$1`, `$2`, ...
fn numbered(statement: &str) -> String {
    let mut parts = statement.split('?');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.enumerate().fold(first, |text, (index, part)| format!("{text}${}{part}", index + 1))
}

fn values<'a>(parameters: &'a [&'a str]) -> Vec<&'a (dyn ToSql + Sync)> {
    parameters.iter().map(|parameter| parameter as &(dyn ToSql + Sync)).collect()
}

impl Client for Postgres {
    fn batch(&mut self, statements: &str) -> Result<(), SqlError> {
        Ok(self.0.batch_execute(statements)?)
    }

    fn execute(&mut self, statement: &str, parameters: &[&str]) -> Result<(), SqlError> {
        self.0.execute(&numbered(statement), &values(parameters))?;
        Ok(())
    }

    fn query(&mut self, query: &str, parameters: &[&str]) -> Result<Vec<Vec<String>>, SqlError> {
        let rows = self.0.query(&numbered(query), &values(parameters))?;
        let mut text_rows = Vec::with_capacity(rows.len());
        for row in rows {
            let columns = (0..row.len()).map(|column| row.try_get::<_, Option<String>>(column));
            text_rows.push(columns.map(|column| column.map(Option::unwrap_or_default)).collect::<Result<_, _>>()?);
        }
        Ok(text_rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_numbered() {
        for (statement, expected) in
            [("SELECT 1", "SELECT 1"), ("(?, CAST(? AS text)), (?)", "($1, CAST($2 AS text)), ($3)"), ("?", "$1")]
        {
            assert_eq!(numbered(statement), expected);
        }
    }
}
