//! Queries and scripts passed by the caller.

use std::time::{Duration, Instant};

use brine_context::Context;
use brine_function::{Args, CallError, CallResult, Functions, function, registry};
use brine_value::{Map, Value, map};

use super::connection::ConnectionArgs;
use super::resultset::{ResultSet, field};
use super::script::statements;

/// Execution functions of `mysql` that run queries.
pub static FUNCTIONS: Functions<Context> = registry!("mysql", [query, file_query]);

/// Run a query in a database, and return its `columns`, `results` and `rows returned`, or `rows affected` for a
/// statement that returns no rows, with the `query time`. Values are strings, or nothing for NULL.
///
/// CLI Example:
///
///     salt '*' mysql.query mydb "SELECT id, name FROM users LIMIT 3"
///     salt '*' mysql.query mydb "UPDATE mytable SET myfield = 1 LIMIT 1"
#[function]
pub fn query(
    context: &Context,
    /// Name of the database.
    database: String,
    /// Statement to run.
    query: String,
    #[args] connection: ConnectionArgs,
) -> CallResult {
    Ok(run(context, &connection, &database, &query)?.into())
}

/// Run the statements of a file in one connection to a database. The file is on the minion, or has a URL such as
/// `salt://script.sql`. Return the sums of `rows returned`, `rows affected` and `query time`, and the `columns` and
/// `results` of each query.
///
/// CLI Example:
///
///     salt '*' mysql.file_query mydb file_name=/tmp/sqlfile.sql
///     salt '*' mysql.file_query mydb file_name=salt://sqlfile.sql
#[function]
pub fn file_query(
    context: &Context,
    /// Name of the database.
    database: String,
    /// URL or path of the file with statements.
    file_name: String,
    #[args] connection: ConnectionArgs,
) -> CallResult {
    let path = if is_url(&file_name) { cached(context, &file_name, None)? } else { file_name };
    Ok(run_file(context, &connection, &database, &path)?.into())
}

/// Returns whether a path is a URL, so that the file must be fetched.
pub(super) fn is_url(path: &str) -> bool {
    ["http://", "https://", "salt://", "s3://", "swift://"].iter().any(|scheme| path.starts_with(scheme))
}

/// Fetches a file and returns its path on the minion.
pub(super) fn cached(context: &Context, url: &str, saltenv: Option<&str>) -> Result<String, CallError> {
    let words = [Some(url), saltenv].into_iter().flatten().map(Value::from);
    let cached = context.call("cp.cache_file", Args::positional(words))?;
    cached
        .as_str()
        .filter(|path| !path.is_empty())
        .map(str::to_owned)
        .ok_or_else(|| CallError::Execution(format!("fetching {url} failed: the file does not exist")))
}

/// Runs one query.
pub(super) fn run(
    context: &Context,
    connection: &ConnectionArgs,
    database: &str,
    query: &str,
) -> Result<Map, CallError> {
    let session = connection.session_in(context, database)?;
    let start = Instant::now();
    let results = session.run(&[query.to_owned()])?;
    let mut answer = map! {"query time" => time(start.elapsed(), false)};
    let result = results.into_iter().next().unwrap_or_default();
    match result.sets.first() {
        Some(set) => {
            answer.insert("rows returned".into(), count(set.rows.len()));
            answer.insert("columns".into(), columns(set));
            answer.insert("results".into(), rows(set));
        }
        None => _ = answer.insert("rows affected".into(), result.affected.max(0).into()),
    }
    Ok(answer)
}

/// Runs the statements of a file.
pub(super) fn run_file(
    context: &Context,
    connection: &ConnectionArgs,
    database: &str,
    path: &str,
) -> Result<Map, CallError> {
    let script = std::fs::read_to_string(path)
        .map_err(|error| CallError::Execution(format!("reading {path} failed: {error}")))?;
    let session = connection.session_in(context, database)?;
    let start = Instant::now();
    let results = session.run(&statements(&script))?;
    let elapsed = start.elapsed();
    let sets: Vec<&ResultSet> = results.iter().flat_map(|result| &result.sets).collect();
    let affected: i64 = results.iter().map(|result| result.affected.max(0)).sum();
    let answer = map! {
        "rows returned" => count(sets.iter().map(|set| set.rows.len()).sum()),
        "columns" => sets.iter().map(|set| columns(set)).collect::<Vec<_>>(),
        "results" => sets.iter().map(|set| rows(set)).collect::<Vec<_>>(),
        "rows affected" => affected,
        "query time" => time(elapsed, true),
    };
    Ok(answer.into_iter().filter(|(_, value)| value.is_truthy()).collect())
}

fn count(count: usize) -> Value {
    i64::try_from(count).unwrap_or(i64::MAX).into()
}

fn columns(set: &ResultSet) -> Value {
    set.columns.iter().map(|name| Value::from(name.as_str())).collect::<Vec<_>>().into()
}

fn rows(set: &ResultSet) -> Value {
    let row =
        |row: &Vec<Option<String>>| Value::from(row.iter().map(|value| field(value.as_deref())).collect::<Vec<_>>());
    set.rows.iter().map(row).collect::<Vec<_>>().into()
}

/// Returns a duration as `raw`, in seconds, and as `human`, for display. For a sum, `raw` is a number instead of a
/// string and `human` is always in seconds.
fn time(elapsed: Duration, is_sum: bool) -> Map {
    let seconds = elapsed.as_secs_f64();
    let round = |value: f64, digits: i32| (value * 10_f64.powi(digits)).round() / 10_f64.powi(digits);
    let raw = round(seconds, 5);
    if is_sum {
        return map! {"human" => format!("{:?}s", round(seconds, 2)), "raw" => raw};
    }
    let human =
        if seconds < 0.2 { format!("{:?}ms", round(seconds * 1000.0, 1)) } else { format!("{:?}s", round(seconds, 2)) };
    map! {"human" => human, "raw" => format!("{raw:?}")}
}
