//! Databases and their tables.

use brine_context::Context;
use brine_function::{Args, CallError, CallResult, Functions, function, registry};
use brine_value::{Value, map};

use super::connection::ConnectionArgs;
use super::quote::{identifier, literal};
use super::server::list;
use super::session::{Session, SqlError, done};

/// Execution functions of `mysql` about databases.
pub static FUNCTIONS: Functions<Context> = registry!(
    "mysql",
    [
        db_list,
        db_get,
        db_tables,
        db_exists,
        db_create,
        alter_db,
        db_remove,
        db_check,
        db_repair,
        db_optimize,
        quote_identifier
    ]
);

/// The arguments for the defaults of a database's tables; unset ones are the defaults of the server.
#[derive(Args, Debug, Clone)]
pub struct DefaultsArgs {
    /// Character set.
    pub character_set: Option<String>,
    /// Collation.
    pub collate: Option<String>,
}

impl DefaultsArgs {
    /// Creates a database with these defaults.
    pub(super) fn create(&self, session: &Session, name: &str) -> Result<(), CallError> {
        self.execute(session, "CREATE", name)
    }

    /// Changes the defaults of a database to these.
    pub(super) fn alter(&self, session: &Session, name: &str) -> Result<(), CallError> {
        self.execute(session, "ALTER", name)
    }

    fn execute(&self, session: &Session, verb: &str, name: &str) -> Result<(), CallError> {
        let clause = |word: &str, name: &Option<String>| {
            let name = name.as_deref().filter(|name| !name.is_empty());
            name.map(|name| format!(" {word} {}", literal(name))).unwrap_or_default()
        };
        let clauses = clause("CHARACTER SET", &self.character_set) + &clause("COLLATE", &self.collate);
        Ok(session.execute(&[format!("{verb} DATABASE {}{clauses}", identifier(name))])?)
    }
}

/// Return the names of the databases.
///
/// CLI Example:
///
///     salt '*' mysql.db_list
#[function]
pub fn db_list(context: &Context, #[args] connection: ConnectionArgs) -> CallResult {
    Ok(names(connection.session(context)?.query("SHOW DATABASES")?.first_column()))
}

/// Return the character set and the collation of a database; an empty mapping if it does not exist.
///
/// CLI Example:
///
///     salt '*' mysql.db_get test
#[function]
pub fn db_get(
    context: &Context,
    /// Name of the database, user or plugin.
    name: String,
    #[args] connection: ConnectionArgs,
) -> CallResult {
    let settings = Settings::of(&connection.session(context)?, &name)?;
    let value = |Settings { character_set, collate }| map! {"character_set" => character_set, "collate" => collate};
    Ok(settings.map(value).unwrap_or_default().into())
}

/// Return the names of the tables of a database; false if it does not exist.
///
/// CLI Example:
///
///     salt '*' mysql.db_tables 'database'
#[function]
pub fn db_tables(
    context: &Context,
    /// Name of the database, user or plugin.
    name: String,
    #[args] connection: ConnectionArgs,
) -> CallResult {
    let session = connection.session(context)?;
    if Settings::of(&session, &name)?.is_none() {
        return Ok(false.into());
    }
    Ok(names(tables(&session, &name)?))
}

/// Return whether a database exists.
///
/// CLI Example:
///
///     salt '*' mysql.db_exists 'dbname'
#[function]
pub fn db_exists(
    context: &Context,
    /// Name of the database, user or plugin.
    name: String,
    #[args] connection: ConnectionArgs,
) -> CallResult {
    Ok(Settings::of(&connection.session(context)?, &name)?.is_some().into())
}

/// Create a database, with the character set and collation of the server unless they are given; false if it exists.
///
/// CLI Example:
///
///     salt '*' mysql.db_create 'dbname'
///     salt '*' mysql.db_create 'dbname' 'utf8' 'utf8_general_ci'
#[function]
pub fn db_create(
    context: &Context,
    /// Name of the database, user or plugin.
    name: String,
    #[args] defaults: DefaultsArgs,
    #[args] connection: ConnectionArgs,
) -> CallResult {
    let session = connection.session(context)?;
    if Settings::of(&session, &name)?.is_some() {
        tracing::info!(database = name, "the database exists");
        return Ok(false.into());
    }
    done(defaults.create(&session, &name))
}

/// Change the default character set or the default collation of a database.
///
/// CLI Example:
///
///     salt '*' mysql.alter_db testdb character_set='latin1'
#[function]
pub fn alter_db(
    context: &Context,
    /// Name of the database, user or plugin.
    name: String,
    #[args] defaults: DefaultsArgs,
    #[args] connection: ConnectionArgs,
) -> CallResult {
    done(defaults.alter(&connection.session(context)?, &name))
}

/// Remove a database with its tables; false if it does not exist. `mysql` and `information_schema` are refused.
///
/// CLI Example:
///
///     salt '*' mysql.db_remove 'dbname'
#[function]
pub fn db_remove(
    context: &Context,
    /// Name of the database, user or plugin.
    name: String,
    #[args] connection: ConnectionArgs,
) -> CallResult {
    let session = connection.session(context)?;
    if Settings::of(&session, &name)?.is_none() {
        tracing::info!(database = name, "the database does not exist");
        return Ok(false.into());
    }
    done(remove(&session, &name))
}

/// Check a table, or all tables of a database.
///
/// CLI Example:
///
///     salt '*' mysql.db_check dbname
///     salt '*' mysql.db_check dbname dbtable
#[function]
pub fn db_check(
    context: &Context,
    /// Name of the database, user or plugin.
    name: String,
    /// Name of the table; all by default.
    table: Option<String>,
    #[args] connection: ConnectionArgs,
) -> CallResult {
    maintain(&connection.session(context)?, "CHECK", &name, table)
}

/// Repair a table, or all tables of a database.
///
/// CLI Example:
///
///     salt '*' mysql.db_repair dbname
#[function]
pub fn db_repair(
    context: &Context,
    /// Name of the database, user or plugin.
    name: String,
    /// Name of the table; all by default.
    table: Option<String>,
    #[args] connection: ConnectionArgs,
) -> CallResult {
    maintain(&connection.session(context)?, "REPAIR", &name, table)
}

/// Optimize a table, or all tables of a database.
///
/// CLI Example:
///
///     salt '*' mysql.db_optimize dbname
#[function]
pub fn db_optimize(
    context: &Context,
    /// Name of the database, user or plugin.
    name: String,
    /// Name of the table; all by default.
    table: Option<String>,
    #[args] connection: ConnectionArgs,
) -> CallResult {
    maintain(&connection.session(context)?, "OPTIMIZE", &name, table)
}

/// Quote an identifier for SQL; with `for_grants`, the wildcards of database names in grants are escaped, too.
///
/// CLI Example:
///
///     salt '*' mysql.quote_identifier 'foo`bar'
#[function]
pub fn quote_identifier(
    _context: &Context,
    /// Name to quote.
    identifier: String,
    /// Whether the name is quoted for grants, where `%` and `_` are wildcards.
    #[default(false)]
    for_grants: bool,
) -> CallResult {
    let quote = if for_grants { super::quote::database_pattern } else { super::quote::identifier };
    Ok(quote(&identifier).into())
}

/// Runs a maintenance statement on one table, or on each table of a database.
fn maintain(session: &Session, verb: &str, database: &str, table: Option<String>) -> CallResult {
    let run = |table: &str| -> CallResult {
        let statement = format!("{verb} TABLE {}.{}", identifier(database), identifier(table));
        Ok(list(session.query(&statement)?.maps()))
    };
    match table {
        Some(table) => run(&table),
        None => Ok(tables(session, database)?.iter().map(|table| run(table)).collect::<Result<Vec<_>, _>>()?.into()),
    }
}

fn tables(session: &Session, database: &str) -> Result<Vec<String>, SqlError> {
    Ok(session.query(&format!("SHOW TABLES IN {}", identifier(database)))?.first_column())
}

fn names(names: Vec<String>) -> Value {
    names.into_iter().map(Value::from).collect::<Vec<_>>().into()
}

/// Defaults of the tables of a database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Settings {
    pub character_set: String,
    pub collate: String,
}

impl Settings {
    /// Queries the settings of a database; `None` if it does not exist.
    pub fn of(session: &Session, database: &str) -> Result<Option<Self>, SqlError> {
        let query = format!(
            "SELECT DEFAULT_CHARACTER_SET_NAME, DEFAULT_COLLATION_NAME FROM INFORMATION_SCHEMA.SCHEMATA \
             WHERE CONVERT(SCHEMA_NAME USING utf8mb4) = {}",
            literal(database)
        );
        let set = session.query(&query)?;
        let settings = |row: &Vec<Option<String>>| match &row[..] {
            [Some(character_set), Some(collate)] => {
                Some(Settings { character_set: character_set.clone(), collate: collate.clone() })
            }
            _ => None,
        };
        Ok(set.rows.first().and_then(settings))
    }
}

/// Removes a database.
pub(super) fn remove(session: &Session, name: &str) -> Result<(), CallError> {
    if ["mysql", "information_schema"].contains(&name) {
        return Err(CallError::Execution(format!("the database {name} may not be removed")));
    }
    Ok(session.execute(&[format!("DROP DATABASE {}", identifier(name))])?)
}
