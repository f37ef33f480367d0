//! `sqlite3`: a table of an SQLite database, with values in msgpack as Salt writes them; or queries of the profile.

use std::path::PathBuf;
use std::time::Duration;

use brine_function::CallError;
use brine_value::{FromValue, Map, Value, msgpack};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension, named_params};

/// The table without the option `table`.
const TABLE: &str = "sdb";
/// The timeout for a lock of another process.
const LOCK_TIMEOUT: Duration = Duration::from_secs(5);

pub fn get(profile: &Map, key: &str) -> Result<Value, CallError> {
    let (connection, table) = open(profile)?;
    let query = text(profile, "get_query").unwrap_or_else(|| format!("SELECT value FROM {table} WHERE key=:key"));
    let packed = connection.query_row(&query, named_params! {":key": key}, |row| {
        Ok(match row.get_ref(0)? {
            ValueRef::Blob(bytes) | ValueRef::Text(bytes) => Some(bytes.to_vec()),
            _ => None,
        })
    });
    let Some(packed) = packed.optional().map_err(failed)?.flatten() else { return Ok(Value::Nil) };
    msgpack::unpack(&packed).map_err(failed)
}

pub fn set(profile: &Map, key: &str, value: &Value) -> Result<Value, CallError> {
    let (connection, table) = open(profile)?;
    let query =
        text(profile, "set_query").unwrap_or_else(|| format!("INSERT OR REPLACE INTO {table} VALUES (:key, :value)"));
    let packed = msgpack::pack(value);
    connection.execute(&query, named_params! {":key": key, ":value": packed}).map_err(failed)?;
    Ok(true.into())
}

/// Opens the database and creates its tables if they do not exist. Returns the quoted name of the table, too.
fn open(profile: &Map) -> Result<(Connection, String), CallError> {
    let path = profile.get("database").and_then(PathBuf::from_value).ok_or_else(|| {
        CallError::execution("the SDB profile has no database: set `database` to the path of the SQLite file")
    })?;
    let connection = Connection::open(&path).map_err(failed)?;
    connection.busy_timeout(LOCK_TIMEOUT).map_err(failed)?;
    let name = text(profile, "table").unwrap_or_else(|| TABLE.to_owned());
    let (table, index) = (quoted(&name), quoted(&format!("{name}_idx")));
    match profile.get("create_statements").and_then(Vec::<String>::from_value) {
        Some(statements) => {
            for statement in &statements {
                // As in Salt, statements that fail because the tables exist have no effect.
                if let Err(error) = connection.execute_batch(statement) {
                    tracing::debug!(%error, "a statement of create_statements failed");
                }
            }
        }
        None if profile.get("create_table").is_none_or(Value::is_truthy) => connection
            .execute_batch(&format!(
                "CREATE TABLE IF NOT EXISTS {table} (key text, value blob);
                 CREATE UNIQUE INDEX IF NOT EXISTS {index} ON {table} (key);"
            ))
            .map_err(failed)?,
        None => {}
    }
    Ok((connection, table))
}

fn text(profile: &Map, name: &str) -> Option<String> {
    profile.get(name).and_then(Value::as_str).map(str::to_owned)
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

fn failed(error: impl std::fmt::Display) -> CallError {
    CallError::execution(format!("the SQLite database of the SDB profile failed: {error}"))
}

#[cfg(test)]
mod tests {
    use brine_value::{list, map};

    use super::*;

    #[test]
    fn values_of_every_type_are_stored_in_salts_table() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("sdb.sqlite");
        for table in ["sdb", "odd \" name"] {
            let profile = map! {"database" => path.clone(), "table" => table};
            assert_eq!(get(&profile, "a").unwrap(), Value::Nil);
            for value in [Value::from("x"), 1.into(), list![1, "b"], map! {"a" => Value::Nil}.into()] {
                assert_eq!(set(&profile, "a", &value).unwrap(), true.into());
                assert_eq!(get(&profile, "a").unwrap(), value);
            }
            assert_eq!(get(&profile, "a' OR '1'='1").unwrap(), Value::Nil);
        }
        let connection = Connection::open(&path).unwrap();
        let count: i64 = connection.query_row("SELECT count(*) FROM sdb WHERE key='a'", [], |row| row.get(0)).unwrap();
        assert_eq!(count, 1);
    }

    #[test]
    fn queries_of_the_profile_replace_the_table() {
        let directory = tempfile::tempdir().unwrap();
        let profile = map! {
            "database" => directory.path().join("sdb.sqlite"),
            "create_statements" => list!["CREATE TABLE own (a text primary key, d blob)"],
            "get_query" => "SELECT d FROM own WHERE a=:key",
            "set_query" => "INSERT OR REPLACE INTO own (a, d) VALUES (:key, :value)",
        };
        for value in [1, 2] {
            set(&profile, "k", &value.into()).unwrap();
            assert_eq!(get(&profile, "k").unwrap(), value.into());
        }
        assert!(get(&Map::new(), "k").unwrap_err().to_string().contains("no database"));
    }
}
