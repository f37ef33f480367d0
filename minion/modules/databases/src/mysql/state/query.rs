//! `mysql_query`: queries and scripts, whose results are stored in a file, in a grain or in the comment.

use std::path::Path;

use brine_context::{StateContext, StateReturn};
use brine_function::{Args, CallError, CallResult, Functions, function, registry};
use brine_system::user_files;
use brine_value::{Map, Value, map};

use super::or_failed;
use crate::mysql::connection::ConnectionArgs;
use crate::mysql::database::Settings;
use crate::mysql::query;

/// State functions of `mysql_query`.
pub static FUNCTIONS: Functions<StateContext> = registry!("mysql_query", [run, run_file]);

/// The arguments for the destination of the result.
#[derive(Args, Debug, Clone)]
pub struct OutputArgs {
    /// Destination of the result: `grain`, or the path of a file; default: the comment.
    output: Option<String>,
    /// Name of the grain for the result.
    grain: Option<String>,
    /// Key of the result in the grain, which is then a mapping.
    key: Option<String>,
    /// Whether the query runs even if there is a result already.
    #[default(true)]
    overwrite: bool,
}

/// Ensure that a query of a database has run. With `check_db_exists` false, the database may not exist.
///
/// SLS Example:
///
///     mark_migrated:
///       mysql_query.run:
///         - database: app
///         - query: UPDATE settings SET value = '1' WHERE name = 'migrated'
///         - output: /var/lib/app/migrated.txt
#[function]
pub fn run(
    context: &StateContext,
    /// Name of the state.
    name: String,
    /// Name of the database.
    database: String,
    /// Statement to run.
    query: String,
    #[args] output: OutputArgs,
    /// Whether a database that does not exist is a failure before anything runs.
    #[default(true)]
    check_db_exists: bool,
    #[args] connection: ConnectionArgs,
    #[keywords(crate::mysql::state::further)] _kwargs: Map,
) -> CallResult {
    let ensure = || -> Result<StateReturn, CallError> {
        if let Some(report) = refusal(context, &name, &database, check_db_exists, &connection)? {
            return Ok(report);
        }
        output.ensure(context, &name, || query::run(&context.call, &connection, &database, &query))
    };
    or_failed(&name, ensure())
}

/// Ensure that the statements of a file have run in a database.
///
/// SLS Example:
///
///     load_schema:
///       mysql_query.run_file:
///         - database: app
///         - query_file: salt://app/schema.sql
///         - output: /var/lib/app/schema.txt
#[function]
pub fn run_file(
    context: &StateContext,
    /// Name of the state.
    name: String,
    /// Name of the database.
    database: String,
    /// URL or path of the file.
    query_file: String,
    #[args] output: OutputArgs,
    /// Environment of the file server for a `salt://` URL.
    saltenv: Option<String>,
    /// Whether a database that does not exist is a failure before anything runs.
    #[default(true)]
    check_db_exists: bool,
    #[args] connection: ConnectionArgs,
    #[keywords(crate::mysql::state::further)] _kwargs: Map,
) -> CallResult {
    let ensure = || -> Result<StateReturn, CallError> {
        let path = if query::is_url(&query_file) {
            query::cached(&context.call, &query_file, saltenv.as_deref())?
        } else {
            query_file.clone()
        };
        if !Path::new(&path).exists() {
            return Ok(StateReturn::failed(&name, format!("File {path} does not exist")));
        }
        if let Some(report) = refusal(context, &name, &database, check_db_exists, &connection)? {
            return Ok(report);
        }
        output.ensure(context, &name, || query::run_file(&context.call, &connection, &database, &path))
    };
    or_failed(&name, ensure())
}

/// Returns the result of a state that cannot run: the arguments are invalid, or the database does not exist.
fn refusal(
    context: &StateContext,
    name: &str,
    database: &str,
    check_db_exists: bool,
    connection: &ConnectionArgs,
) -> Result<Option<StateReturn>, CallError> {
    if connection.client_flags.is_truthy() && connection.client_flags.as_list().is_none() {
        return Ok(Some(StateReturn::failed(name, "Error: client_flags must be a list.")));
    }
    if check_db_exists && Settings::of(&connection.session(&context.call)?, database)?.is_none() {
        return Ok(Some(StateReturn::predicted(name, format!("Database {database} is not present"))));
    }
    Ok(None)
}

/// The destination of a result.
enum Target<'a> {
    Comment,
    File(&'a str),
    Grain(&'a str, Option<&'a str>),
}

impl OutputArgs {
    /// Runs a query, unless there is a result already, and stores the result.
    fn ensure(
        &self,
        context: &StateContext,
        name: &str,
        run: impl FnOnce() -> Result<Map, CallError>,
    ) -> Result<StateReturn, CallError> {
        let target = match (self.output.as_deref(), self.grain.as_deref()) {
            (None, _) => Target::Comment,
            (Some("grain"), Some(grain)) => Target::Grain(grain, self.key.as_deref()),
            (Some("grain"), None) => {
                return Ok(StateReturn::failed(name, "Error: output type 'grain' needs the grain parameter\n"));
            }
            (Some(path), _) => Target::File(path),
        };
        if !self.overwrite && target.is_set(context)? {
            let comment = format!("No execution needed. {} already set", target.title());
            return Ok(StateReturn::ok(name, comment));
        }
        if context.test {
            return Ok(StateReturn::predicted(name, target.plan()));
        }
        let result = mapped(run()?);
        target.store(context, &result)?;
        let report = StateReturn::ok(name, Value::from(result).to_string());
        Ok(report.with_changes(map! {"query" => target.change()}))
    }
}

impl Target<'_> {
    fn title(&self) -> String {
        match self {
            Target::Comment => String::new(),
            Target::File(path) => format!("File {path}"),
            Target::Grain(grain, None) => format!("Grain {grain}"),
            Target::Grain(grain, Some(key)) => format!("Grain {grain}:{key}"),
        }
    }

    fn plan(&self) -> String {
        match self {
            Target::Comment => "Query would execute, not storing result".into(),
            Target::File(path) => format!("Query would execute, storing result in file: {path}"),
            Target::Grain(grain, None) => format!("Query would execute, storing result in grain: {grain}"),
            Target::Grain(grain, Some(key)) => format!("Query would execute, storing result in grain: {grain}:{key}"),
        }
    }

    fn change(&self) -> String {
        match self {
            Target::Comment => "Executed".into(),
            Target::File(path) => format!("Executed. Output into {path}"),
            Target::Grain(grain, None) => format!("Executed. Output into grain: {grain}"),
            Target::Grain(grain, Some(key)) => format!("Executed. Output into grain: {grain}:{key}"),
        }
    }

    fn is_set(&self, context: &StateContext) -> Result<bool, CallError> {
        Ok(match self {
            Target::Comment => false,
            Target::File(path) => Path::new(path).is_file(),
            Target::Grain(grain, None) => !matches!(grain_value(context, grain)?, Value::Nil),
            Target::Grain(grain, Some(key)) => {
                grain_value(context, grain)?.as_map().is_some_and(|values| values.contains_key(*key))
            }
        })
    }

    fn store(&self, context: &StateContext, result: &Map) -> Result<(), CallError> {
        match self {
            Target::Comment => {}
            Target::File(path) => user_files::write(path, lines(result))
                .map_err(|error| CallError::Execution(format!("writing {path} failed: {error}")))?,
            Target::Grain(grain, key) => {
                let value = match key {
                    None => Value::from(result.clone()),
                    Some(key) => {
                        let mut values = grain_value(context, grain)?.as_map().cloned().unwrap_or_default();
                        values.insert((*key).into(), result.clone().into());
                        values.into()
                    }
                };
                context.call.call("grains.setval", Args::positional([Value::from(*grain), value]))?;
            }
        }
        Ok(())
    }
}

fn grain_value(context: &StateContext, grain: &str) -> Result<Value, CallError> {
    let all = context.call.call("grains.items", Args::default())?;
    Ok(all.as_map().and_then(|grains| grains.get(grain)).cloned().unwrap_or_default())
}

/// Returns a result with its rows as mappings. The rows of all queries of a script are one list.
fn mapped(mut result: Map) -> Map {
    let list = |key: &str, result: &Map| result.get(key).and_then(Value::as_list).map(<[Value]>::to_vec);
    let (Some(columns), Some(rows)) = (list("columns", &result), list("results", &result)) else { return result };
    let is_script = columns.iter().any(|columns| columns.as_list().is_some());
    let sets = if is_script { columns.into_iter().zip(rows).collect() } else { vec![(columns.into(), rows.into())] };
    let mut mapped: Vec<Value> = Vec::new();
    for (columns, rows) in &sets {
        let columns: &[Value] = columns.as_list().map_or(&[], |columns| columns);
        for row in rows.as_list().into_iter().flatten().filter_map(Value::as_list) {
            mapped.push(columns.iter().cloned().zip(row.iter().cloned()).collect::<Map>().into());
        }
    }
    result.insert("results".into(), mapped.into());
    result
}

/// Returns the lines of an output file: `column:value`.
fn lines(result: &Map) -> String {
    let line = |(name, value): (&Value, &Value)| format!("{name}:{value}\n");
    match result.get("results").and_then(Value::as_list) {
        Some(rows) => rows.iter().filter_map(Value::as_map).flatten().map(line).collect(),
        None => result.iter().map(line).collect(),
    }
}
