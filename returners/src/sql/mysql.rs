//! `mysql`: MySQL and MariaDB servers.

use std::time::Duration;

use ::mysql::prelude::Queryable;
use ::mysql::{Conn, Error, OptsBuilder, Row, Value};

use super::layout::MYSQL;
use super::returner::{self, Cause, Client, SqlError};
use crate::connection::TIMEOUT;
use crate::{Options, Returner, ReturnerError};

const NAME: &str = "mysql";

/// The timeout of a statement. Storing a return of 10 MB takes well under a second on a local server.
const STATEMENT_TIMEOUT: Duration = Duration::from_secs(30);

/// The error numbers of MySQL for an unknown table and an unknown column.
const SCHEMA_ERRORS: [u16; 2] = [1146, 1054];

pub(super) fn open(options: &Options) -> Result<Box<dyn Returner>, ReturnerError> {
    for option in ["ssl_ca", "ssl_cert", "ssl_key"] {
        options.refuse(NAME, option, "TLS to the database server is not supported: leave it out")?;
    }
    let text = |name: &str| Ok::<_, ReturnerError>(options.get(NAME, name)?.unwrap_or_else(|| "salt".to_owned()));
    let (host, user, password, database) = (text("host")?, text("user")?, text("pass")?, text("db")?);
    let port: u16 = options.get(NAME, "port")?.unwrap_or(3306);
    let address = format!("{host}:{port}/{database}");
    let settings = OptsBuilder::new()
        .ip_or_hostname(Some(host))
        .tcp_port(port)
        .user(Some(user))
        .pass(Some(password))
        .db_name(Some(database))
        .prefer_socket(false)
        .tcp_connect_timeout(Some(TIMEOUT))
        .read_timeout(Some(STATEMENT_TIMEOUT))
        .write_timeout(Some(STATEMENT_TIMEOUT));
    let connect = move || {
        let connection = Conn::new(settings.clone()).map_err(SqlError::from)?;
        Ok(Box::new(Mysql(connection)) as Box<dyn Client>)
    };
    Ok(returner::create(&MYSQL, options, address, Box::new(connect)))
}

struct Mysql(Conn);

impl From<Error> for SqlError {
    fn from(error: Error) -> Self {
        let cause = match &error {
            Error::IoError(_) | Error::CodecError(_) => Cause::Connection,
            Error::MySqlError(error) if SCHEMA_ERRORS.contains(&error.code) => Cause::Schema,
            _ => Cause::Other,
        };
        SqlError::new(error, cause)
    }
}

fn values(parameters: &[&str]) -> Vec<Value> {
    parameters.iter().map(|parameter| Value::from(*parameter)).collect()
}

impl Client for Mysql {
    fn batch(&mut self, statements: &str) -> Result<(), SqlError> {
        Ok(self.0.query_drop(statements)?)
    }

    fn execute(&mut self, statement: &str, parameters: &[&str]) -> Result<(), SqlError> {
        Ok(self.0.exec_drop(statement, values(parameters))?)
    }

    fn query(&mut self, query: &str, parameters: &[&str]) -> Result<Vec<Vec<String>>, SqlError> {
        let rows: Vec<Row> = self.0.exec(query, values(parameters))?;
        let text = |value| match value {
            Value::Bytes(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            _ => String::new(),
        };
        Ok(rows
            .into_iter()
            .map(|row| row.unwrap_raw().into_iter().map(|value| text(value.unwrap_or(Value::NULL))).collect())
            .collect())
    }
}
