//! `sqlite3`: queries of SQLite databases.

use std::time::Duration;

use brine_context::{Context, Module};
use brine_function::{CallError, CallResult, Functions, function, registry};
use brine_system::user_files;
use brine_value::Value;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags};

pub(super) static MODULE: Module = Module { functions: &[&FUNCTIONS], ..Module::EMPTY };

/// Execution functions of `sqlite3`.
pub static FUNCTIONS: Functions<Context> =
    registry!("sqlite3", [version, sqlite_version, modify, fetch, tables, indices, indexes]);

/// The timeout for a lock of another process.
const LOCK_TIMEOUT: Duration = Duration::from_secs(5);
/// The maximum number of rows of a result, which is a single message to the master.
const MAX_ROWS: usize = 1_000_000;

/// Return the version of the interface to SQLite.
///
/// CLI Example:
///
///     salt '*' sqlite3.version
#[function]
pub fn version(_context: &Context) -> CallResult {
    Ok(rusqlite::version().into())
}

/// Return the version of SQLite.
///
/// CLI Example:
///
///     salt '*' sqlite3.sqlite_version
#[function]
pub fn sqlite_version(_context: &Context) -> CallResult {
    Ok(rusqlite::version().into())
}

/// Run a statement that returns no rows. Returns True, or False without a database.
///
/// CLI Example:
///
///     salt '*' sqlite3.modify /root/test.db 'CREATE TABLE test(id INT, testdata TEXT);'
#[function]
pub fn modify(
    _context: &Context,
    /// Path of the database.
    db: Option<String>,
    /// Statement to run.
    #[default]
    sql: String,
) -> CallResult {
    let Some(connection) = open(db.as_deref())? else { return Ok(false.into()) };
    let mut statement = connection.prepare(&sql).map_err(CallError::execution)?;
    let mut rows = statement.query([]).map_err(CallError::execution)?;
    while rows.next().map_err(CallError::execution)?.is_some() {}
    Ok(true.into())
}

/// Run a query, and return its rows. Returns False without a database.
///
/// CLI Example:
///
///     salt '*' sqlite3.fetch /root/test.db 'SELECT * FROM test;'
#[function]
pub fn fetch(
    _context: &Context,
    /// Path of the database.
    db: Option<String>,
    /// Statement to run.
    #[default]
    sql: String,
) -> CallResult {
    query(db.as_deref(), &sql)
}

/// Return the names of all tables, a row each.
///
/// CLI Example:
///
///     salt '*' sqlite3.tables /root/test.db
#[function]
pub fn tables(
    _context: &Context,
    /// Path of the database.
    db: Option<String>,
) -> CallResult {
    query(db.as_deref(), "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")
}

/// Return the names of all indexes, a row each.
///
/// CLI Example:
///
///     salt '*' sqlite3.indices /root/test.db
#[function]
pub fn indices(
    _context: &Context,
    /// Path of the database.
    db: Option<String>,
) -> CallResult {
    query(db.as_deref(), "SELECT name FROM sqlite_master WHERE type = 'index' ORDER BY name")
}

/// Return the names of all indexes, as `sqlite3.indices`.
///
/// CLI Example:
///
///     salt '*' sqlite3.indexes /root/test.db
#[function]
pub fn indexes(
    _context: &Context,
    /// Path of the database.
    db: Option<String>,
) -> CallResult {
    query(db.as_deref(), "SELECT name FROM sqlite_master WHERE type = 'index' ORDER BY name")
}

fn open(path: Option<&str>) -> Result<Option<Connection>, CallError> {
    let Some(path) = path else { return Ok(None) };
    // Links are followed here as elsewhere, and never by SQLite, which would trust those of others.
    let is_file = !path.is_empty() && path != ":memory:" && !path.starts_with("file:");
    let path = if is_file { user_files::real(path).map_err(CallError::execution)? } else { path.into() };
    let flags = OpenFlags::default() | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    let connection = Connection::open_with_flags(path, flags).map_err(CallError::execution)?;
    connection.busy_timeout(LOCK_TIMEOUT).map_err(CallError::execution)?;
    Ok(Some(connection))
}

fn query(path: Option<&str>, sql: &str) -> CallResult {
    let Some(connection) = open(path)? else { return Ok(false.into()) };
    let mut statement = connection.prepare(sql).map_err(CallError::execution)?;
    let columns = statement.column_count();
    let mut rows = statement.query([]).map_err(CallError::execution)?;
    let mut result_rows: Vec<Value> = Vec::new();
    while let Some(row) = rows.next().map_err(CallError::execution)? {
        if result_rows.len() >= MAX_ROWS {
            return Err(CallError::Execution(format!("the query has more than {MAX_ROWS} rows: add a LIMIT")));
        }
        let cell = |column| row.get_ref(column).map(value).map_err(CallError::execution);
        result_rows.push(Value::List((0..columns).map(cell).collect::<Result<_, _>>()?));
    }
    Ok(result_rows.into())
}

fn value(cell: ValueRef<'_>) -> Value {
    match cell {
        ValueRef::Null => Value::Nil,
        ValueRef::Integer(number) => number.into(),
        ValueRef::Real(number) => number.into(),
        ValueRef::Text(text) => String::from_utf8_lossy(text).into_owned().into(),
        ValueRef::Blob(bytes) => Value::Bytes(bytes.to_vec()),
    }
}

#[cfg(test)]
mod tests {
    use brine_function::Args;
    use brine_value::{Value, list};

    use crate::testing::context;

    #[test]
    fn rows_are_lists_of_their_cells() {
        let (directory, context) = (tempfile::tempdir().unwrap(), context(&[]));
        let path = directory.path().join("a.db").display().to_string();
        let call = |function: &str, more: &[&str]| {
            let words = [path.as_str()].into_iter().chain(more.iter().copied()).map(Value::from);
            context.call(&format!("sqlite3.{function}"), Args::positional(words)).map_err(|error| error.to_string())
        };
        for statement in [
            "CREATE TABLE t (id INTEGER, name TEXT, size REAL, data BLOB)",
            "CREATE INDEX i ON t (name)",
            "INSERT INTO t VALUES (1, 'a', 1.5, x'00ff'), (2, NULL, NULL, NULL)",
        ] {
            assert_eq!(call("modify", &[statement]), Ok(true.into()), "{statement}");
        }
        let first = list![1, "a", 1.5, Value::Bytes(vec![0, 255])];
        let second = list![2, Value::Nil, Value::Nil, Value::Nil];
        assert_eq!(call("fetch", &["SELECT * FROM t ORDER BY id"]), Ok(list![first, second]));
        assert_eq!(call("tables", &[]), Ok(list![list!["t"]]));
        assert_eq!((call("indices", &[]), call("indexes", &[])), (Ok(list![list!["i"]]), Ok(list![list!["i"]])));
        assert!(call("fetch", &["SELECT nowhere"]).unwrap_err().contains("no such column"));
        assert_eq!(context.call("sqlite3.tables", Args::default()), Ok(false.into()));
    }
}
