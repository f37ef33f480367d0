//! `mysql`: MySQL and MariaDB servers.

use std::path::Path;
use std::time::Duration;

use ::mysql::prelude::Queryable;
use ::mysql::{ClientIdentity, Conn, Error, OptsBuilder, Row, SslOpts, Value};

use super::layout::MYSQL;
use super::returner::{self, Client};
use crate::connection::TIMEOUT;
use crate::error::sql::{Cause, SqlError};
use crate::{Options, Returner, ReturnerError};

const NAME: &str = "mysql";

/// The timeout of a statement. Storing a return of 10 MB takes well under a second on a local server.
const STATEMENT_TIMEOUT: Duration = Duration::from_secs(30);

/// The error numbers of MySQL for an unknown table and an unknown column.
const SCHEMA_ERRORS: [u16; 2] = [1146, 1054];

pub(super) fn open(options: &Options) -> Result<Box<dyn Returner>, ReturnerError> {
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
        .ssl_opts(tls(options)?)
        .tcp_connect_timeout(Some(TIMEOUT))
        .read_timeout(Some(STATEMENT_TIMEOUT))
        .write_timeout(Some(STATEMENT_TIMEOUT));
    let connect = move || {
        let connection = Conn::new(settings.clone()).map_err(SqlError::from)?;
        Ok(Box::new(Mysql(connection)) as Box<dyn Client>)
    };
    Ok(returner::create(&MYSQL, options, address, Box::new(connect)))
}

/// Returns the TLS settings of `ssl_ca`, `ssl_cert` and `ssl_key`. Any of them enables TLS. With TLS, the server's
/// certificate and its host name are verified.
fn tls(options: &Options) -> Result<Option<SslOpts>, ReturnerError> {
    let path = |name: &str| options.get::<String>(NAME, name).map(|value| value.filter(|text| text != "None"));
    let (authority, certificate, key) = (path("ssl_ca")?, path("ssl_cert")?, path("ssl_key")?);
    if authority.is_none() && certificate.is_none() && key.is_none() {
        return Ok(None);
    }
    let invalid = |name: &str, reason: String| ReturnerError::Option { option: format!("{NAME}.{name}"), reason };
    for (name, path) in [("ssl_ca", &authority), ("ssl_cert", &certificate), ("ssl_key", &key)] {
        if let Some(path) = path {
            std::fs::File::open(path).map_err(|error| invalid(name, format!("reading {path} failed: {error}")))?;
        }
    }
    let identity = match (certificate, key) {
        (Some(certificate), Some(key)) => {
            Some(ClientIdentity::new(Path::new(&certificate).to_owned(), Path::new(&key).to_owned()))
        }
        (None, None) => None,
        (Some(_), None) => return Err(invalid("ssl_key", "it is required with ssl_cert".to_owned())),
        (None, Some(_)) => return Err(invalid("ssl_cert", "it is required with ssl_key".to_owned())),
    };
    let authority = authority.map(|path| Path::new(&path).to_owned());
    Ok(Some(SslOpts::default().with_root_cert_path(authority).with_client_identity(identity)))
}

struct Mysql(Conn);

impl From<Error> for SqlError {
    fn from(error: Error) -> Self {
        let cause = match &error {
            Error::IoError(_) | Error::CodecError(_) => Cause::Connection,
            // The server shuts down: ER_SERVER_SHUTDOWN, ER_CONNECTION_KILLED.
            Error::MySqlError(error) if [1053, 1927].contains(&error.code) => Cause::Connection,
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
