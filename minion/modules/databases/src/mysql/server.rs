//! The server itself: version, status, variables, processes and replication.

use brine_context::Context;
use brine_function::{CallError, CallResult, Functions, function, registry};
use brine_value::{Map, Value};

use super::connection::ConnectionArgs;
use super::quote::literal;
use super::session::{Session, SqlError};

/// Execution functions of `mysql` about the server.
pub static FUNCTIONS: Functions<Context> = registry!(
    "mysql",
    [
        status,
        version,
        slave_lag,
        free_slave,
        processlist,
        get_master_status,
        get_slave_status,
        showvariables,
        showglobal,
        verify_login
    ]
);

/// Return the status variables of the server, as `SHOW STATUS` does.
///
/// CLI Example:
///
///     salt '*' mysql.status
#[function]
pub fn status(context: &Context, #[args] connection: ConnectionArgs) -> CallResult {
    let set = connection.session(context)?.query("SHOW STATUS")?;
    let pair = |row: &Vec<Option<String>>| match &row[..] {
        [Some(name), value, ..] => Some((Value::from(name.as_str()), super::resultset::field(value.as_deref()))),
        _ => None,
    };
    Ok(set.rows.iter().filter_map(pair).collect::<Map>().into())
}

/// Return the version of the server.
///
/// CLI Example:
///
///     salt '*' mysql.version
#[function]
pub fn version(context: &Context, #[args] connection: ConnectionArgs) -> CallResult {
    Ok(Version::of(&connection.session(context)?)?.text.into())
}

/// Return how many seconds a replica lags behind its primary: -1 if the server is not a replica, -2 if it does not
/// receive changes, -3 after an error.
///
/// CLI Example:
///
///     salt '*' mysql.slave_lag
#[function]
pub fn slave_lag(context: &Context, #[args] connection: ConnectionArgs) -> CallResult {
    let state = match replication(&connection.session(context)?) {
        Ok(state) => state,
        Err(error) => {
            tracing::error!(%error, "the lag of a replica is unknown");
            return Ok((-3).into());
        }
    };
    let Some(state) = state else { return Ok((-1).into()) };
    let is_running = state.get("Slave_IO_Running").and_then(Value::as_str) == Some("Yes");
    Ok(if is_running { state.get("Seconds_Behind_Master").cloned().unwrap_or_default() } else { (-2).into() })
}

/// Make a replica independent of its primary: the primary starts a new binary log; the replica discards its replication
/// settings and starts a new binary log. Return `promoted` or `failed`, or an empty string if the server is not a
/// replica.
///
/// CLI Example:
///
///     salt '*' mysql.free_slave
#[function]
pub fn free_slave(context: &Context, #[args] connection: ConnectionArgs) -> CallResult {
    let session = connection.session(context)?;
    let Some(state) = replication(&session)? else { return Ok("".into()) };
    let host = state.get("Master_Host").and_then(Value::as_str).map(str::to_owned);
    let socket = Some(String::new());
    let primary = ConnectionArgs { connection_host: host, connection_unix_socket: socket, ..connection };
    // The primary may be gone for good, so an error is only logged.
    if let Err(error) = primary.session(context)?.execute(&["FLUSH LOGS".into()]) {
        tracing::warn!(%error, "the primary did not begin a new binary log");
    }
    session.execute(&["STOP SLAVE".into(), "RESET MASTER".into(), "RESET SLAVE ALL".into()])?;
    Ok(if replication(&session)?.is_none() { "promoted" } else { "failed" }.into())
}

/// Return the running statements and idle connections, as `SHOW FULL PROCESSLIST` does.
///
/// CLI Example:
///
///     salt '*' mysql.processlist
#[function]
pub fn processlist(context: &Context, #[args] connection: ConnectionArgs) -> CallResult {
    let mut rows = connection.session(context)?.query("SHOW FULL PROCESSLIST")?.maps();
    for row in &mut rows {
        numbers(row, &["Id", "Time", "Rows_sent", "Rows_examined", "Rows_read"]);
    }
    Ok(list(rows))
}

/// Return the position in the binary log, as `SHOW MASTER STATUS` does; an empty list without a binary log.
///
/// CLI Example:
///
///     salt '*' mysql.get_master_status
#[function]
pub fn get_master_status(context: &Context, #[args] connection: ConnectionArgs) -> CallResult {
    let session = connection.session(context)?;
    let statement = match Version::of(&session)? {
        version if !version.is_mariadb && version.is_at_least([8, 4, 0]) => "SHOW BINARY LOG STATUS",
        _ => "SHOW MASTER STATUS",
    };
    let row = session.query(statement)?.maps().into_iter().next().map(|mut row| {
        numbers(&mut row, &["Position"]);
        Value::from(row)
    });
    Ok(row.unwrap_or_else(|| list(Vec::new())))
}

/// Return the state of replication, as `SHOW SLAVE STATUS` does; an empty list if the server is not a replica.
///
/// CLI Example:
///
///     salt '*' mysql.get_slave_status
#[function]
pub fn get_slave_status(context: &Context, #[args] connection: ConnectionArgs) -> CallResult {
    let state = replication(&connection.session(context)?)?;
    Ok(state.map_or_else(|| list(Vec::new()), Value::from))
}

/// Return the variables of the session, as `SHOW VARIABLES` does.
///
/// CLI Example:
///
///     salt '*' mysql.showvariables
#[function]
pub fn showvariables(context: &Context, #[args] connection: ConnectionArgs) -> CallResult {
    Ok(list(connection.session(context)?.query("SHOW VARIABLES")?.maps()))
}

/// Return the global variables, as `SHOW GLOBAL VARIABLES` does.
///
/// CLI Example:
///
///     salt '*' mysql.showglobal
#[function]
pub fn showglobal(context: &Context, #[args] connection: ConnectionArgs) -> CallResult {
    Ok(list(connection.session(context)?.query("SHOW GLOBAL VARIABLES")?.maps()))
}

/// Return whether a user can log in with a password.
///
/// CLI Example:
///
///     salt '*' mysql.verify_login root password
#[function]
pub fn verify_login(
    context: &Context,
    /// Name of the user.
    user: String,
    /// Password of the user.
    password: Option<String>,
    #[args] connection: ConnectionArgs,
) -> CallResult {
    let password = Some(password.unwrap_or_default());
    let login = ConnectionArgs { connection_user: Some(user), connection_pass: password, ..connection };
    Ok(login.session(context)?.query("SELECT 1").is_ok().into())
}

/// The columns of `SHOW SLAVE STATUS` that are integers.
const REPLICATION_NUMBERS: [&str; 14] = [
    "Connect_Retry",
    "Exec_Master_Log_Pos",
    "Last_Errno",
    "Last_IO_Errno",
    "Last_SQL_Errno",
    "Master_Port",
    "Master_Server_Id",
    "Read_Master_Log_Pos",
    "Relay_Log_Pos",
    "Relay_Log_Space",
    "SQL_Delay",
    "Seconds_Behind_Master",
    "Skip_Counter",
    "Until_Log_Pos",
];

fn replication(session: &Session) -> Result<Option<Map>, SqlError> {
    let statement = match Version::of(session)? {
        version if !version.is_mariadb && version.is_at_least([8, 4, 0]) => "SHOW REPLICA STATUS",
        _ => "SHOW SLAVE STATUS",
    };
    let row = session.query(statement)?.maps().into_iter().next();
    Ok(row.map(|mut row| {
        numbers(&mut row, &REPLICATION_NUMBERS);
        row
    }))
}

/// Converts these columns of a row to integers.
pub(super) fn numbers(row: &mut Map, columns: &[&str]) {
    for name in columns {
        let number = row.get(*name).and_then(Value::as_str).and_then(|text| text.parse::<i64>().ok());
        if let (Some(number), Some(value)) = (number, row.get_mut(*name)) {
            *value = number.into();
        }
    }
}

pub(super) fn list(rows: Vec<Map>) -> Value {
    rows.into_iter().map(Value::from).collect::<Vec<_>>().into()
}

/// The version of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Version {
    pub text: String,
    pub is_mariadb: bool,
    numbers: [u32; 3],
}

impl Version {
    /// Queries the version.
    pub fn of(session: &Session) -> Result<Self, SqlError> {
        let text = session.query("SELECT VERSION()")?.first_column().into_iter().next().unwrap_or_default();
        Ok(Self::parse(&text))
    }

    /// Parses a version such as `10.11.6-MariaDB-log`.
    pub fn parse(text: &str) -> Self {
        let mut numbers = [0; 3];
        let digits = text.split(|letter: char| letter != '.' && !letter.is_ascii_digit()).next().unwrap_or_default();
        for (number, part) in numbers.iter_mut().zip(digits.split('.')) {
            *number = part.parse().unwrap_or_default();
        }
        Version { is_mariadb: text.contains("MariaDB"), numbers, text: text.to_owned() }
    }

    /// Returns whether the version is at least this one.
    pub fn is_at_least(&self, numbers: [u32; 3]) -> bool {
        self.numbers >= numbers
    }
}

/// Returns the state of a plugin, such as `ACTIVE`; `None` if it is not installed.
pub(super) fn plugin_state(session: &Session, name: &str) -> Result<Option<String>, CallError> {
    let query = format!("SELECT PLUGIN_STATUS FROM INFORMATION_SCHEMA.PLUGINS WHERE PLUGIN_NAME = {}", literal(name));
    Ok(session.query(&query)?.first_column().into_iter().next())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_compare_by_number() {
        let version = Version::parse("10.11.19-MariaDB-0+deb12u1");
        assert!(version.is_mariadb && version.is_at_least([10, 4, 0]) && !version.is_at_least([10, 12, 0]));
        assert!(!Version::parse("5.7.44-log").is_at_least([8, 0, 11]));
        assert!(Version::parse("8.4").is_at_least([8, 4, 0]));
    }
}
