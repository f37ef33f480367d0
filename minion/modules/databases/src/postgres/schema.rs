//! Schemas and procedural languages of a database.

use brine_context::Context;
use brine_function::{Args, CallError, CallResult, Functions, function, registry};
use brine_value::{Map, Value};

use super::session::{DbServerArgs, LoginArgs, Session, by_name, column, done, identifier};

/// Execution functions of `postgres` about schemas and languages.
pub static FUNCTIONS: Functions<Context> = registry!(
    "postgres",
    [
        schema_create,
        schema_remove,
        schema_exists,
        schema_get,
        schema_list,
        language_list,
        language_exists,
        language_create,
        language_remove
    ]
);

/// The arguments for the connection to the server of a schema; here, `user` is the account that runs `psql`.
#[derive(Args, Debug, Clone)]
pub struct SchemaServerArgs {
    /// Account that runs `psql`.
    pub user: Option<String>,
    /// Role of the session.
    pub db_user: Option<String>,
    #[args]
    pub server: DbServerArgs,
}

impl SchemaServerArgs {
    pub(super) fn session<'a>(&self, context: &'a Context, database: &str) -> Result<Session<'a>, CallError> {
        self.server.of(self.db_user.clone(), Some(database.to_owned())).session(context, self.user.clone())
    }
}

/// The arguments for the database of a language, and for the connection to its server.
#[derive(Args, Debug, Clone)]
pub struct DatabaseArgs {
    /// Database of the language.
    pub maintenance_db: String,
    #[args]
    pub login: LoginArgs,
}

impl DatabaseArgs {
    fn session<'a>(&self, context: &'a Context) -> Result<Session<'a>, CallError> {
        self.login.session(context, Some(self.maintenance_db.clone()))
    }
}

/// Create a schema in a database, unless it exists.
///
/// CLI Example:
///
///     salt '*' postgres.schema_create dbname name owner='owner'
#[function]
pub fn schema_create(
    context: &Context,
    /// Name of the database.
    dbname: String,
    /// Name of the database, role, schema or other item.
    name: String,
    /// Owner.
    owner: Option<String>,
    #[args] server: SchemaServerArgs,
) -> CallResult {
    let session = server.session(context, &dbname)?;
    if schemas(&session)?.contains_key(&*name) {
        return Ok(false.into());
    }
    done(create_schema(&session, &name, owner.as_deref()))
}

/// Remove a schema from a database; false if there is none.
///
/// CLI Example:
///
///     salt '*' postgres.schema_remove dbname schemaname
#[function]
pub fn schema_remove(
    context: &Context,
    /// Name of the database.
    dbname: String,
    /// Name of the database, role, schema or other item.
    name: String,
    #[args] server: SchemaServerArgs,
) -> CallResult {
    let session = server.session(context, &dbname)?;
    if !schemas(&session)?.contains_key(&*name) {
        return Ok(false.into());
    }
    done(remove_schema(&session, &name))
}

/// Return whether a schema exists in a database.
///
/// CLI Example:
///
///     salt '*' postgres.schema_exists dbname schemaname
#[function]
pub fn schema_exists(
    context: &Context,
    /// Name of the database.
    dbname: String,
    /// Name of the database, role, schema or other item.
    name: String,
    #[args] server: SchemaServerArgs,
) -> CallResult {
    Ok(schemas(&server.session(context, &dbname)?)?.contains_key(&*name).into())
}

/// Return the owner and the privileges of a schema; nothing if there is none.
///
/// CLI Example:
///
///     salt '*' postgres.schema_get dbname name
#[function]
pub fn schema_get(
    context: &Context,
    /// Name of the database.
    dbname: String,
    /// Name of the database, role, schema or other item.
    name: String,
    #[args] server: SchemaServerArgs,
) -> CallResult {
    Ok(schemas(&server.session(context, &dbname)?)?.get(&*name).cloned().unwrap_or_default())
}

/// Return the schemas of a database with their owners and privileges.
///
/// CLI Example:
///
///     salt '*' postgres.schema_list dbname
#[function]
pub fn schema_list(
    context: &Context,
    /// Name of the database.
    dbname: String,
    #[args] server: SchemaServerArgs,
) -> CallResult {
    Ok(schemas(&server.session(context, &dbname)?)?.into())
}

/// Return the procedural languages of a database.
///
/// CLI Example:
///
///     salt '*' postgres.language_list dbname
#[function]
pub fn language_list(context: &Context, #[args] at: DatabaseArgs) -> CallResult {
    let names = languages(&at.session(context)?)?;
    Ok(names.into_iter().map(|name| (Value::from(name.clone()), Value::from(name))).collect::<Map>().into())
}

/// Return whether a database has a procedural language.
///
/// CLI Example:
///
///     salt '*' postgres.language_exists plpgsql dbname
#[function]
pub fn language_exists(
    context: &Context,
    /// Name of the database, role, schema or other item.
    name: String,
    #[args] at: DatabaseArgs,
) -> CallResult {
    Ok(languages(&at.session(context)?)?.contains(&name).into())
}

/// Install a procedural language in a database; false if it is installed already.
///
/// CLI Example:
///
///     salt '*' postgres.language_create plpgsql dbname
#[function]
pub fn language_create(
    context: &Context,
    /// Name of the database, role, schema or other item.
    name: String,
    #[args] at: DatabaseArgs,
) -> CallResult {
    let session = at.session(context)?;
    if languages(&session)?.contains(&name) {
        return Ok(false.into());
    }
    done(session.execute(&[format!("CREATE LANGUAGE {}", identifier(&name))]))
}

/// Remove a procedural language from a database; false if there is none.
///
/// CLI Example:
///
///     salt '*' postgres.language_remove plpgsql dbname
#[function]
pub fn language_remove(
    context: &Context,
    /// Name of the database, role, schema or other item.
    name: String,
    #[args] at: DatabaseArgs,
) -> CallResult {
    let session = at.session(context)?;
    if !languages(&session)?.contains(&name) {
        return Ok(false.into());
    }
    done(session.execute(&[format!("DROP LANGUAGE {}", identifier(&name))]))
}

/// Returns the schemas by name.
pub(super) fn schemas(session: &Session) -> Result<Map, CallError> {
    let query = "SELECT n.nspname AS name, r.rolname AS owner, n.nspacl AS acl FROM pg_namespace n \
                 LEFT JOIN pg_roles r ON r.oid = n.nspowner ORDER BY n.oid";
    Ok(by_name(session.query(query)?, "name"))
}

pub(super) fn create_schema(session: &Session, name: &str, owner: Option<&str>) -> Result<(), CallError> {
    let owner = owner.map(|owner| format!(" AUTHORIZATION {}", identifier(owner))).unwrap_or_default();
    session.execute(&[format!("CREATE SCHEMA {}{owner}", identifier(name))])
}

pub(super) fn remove_schema(session: &Session, name: &str) -> Result<(), CallError> {
    session.execute(&[format!("DROP SCHEMA {}", identifier(name))])
}

/// Returns the names of the languages.
pub(super) fn languages(session: &Session) -> Result<Vec<String>, CallError> {
    let rows = session.query("SELECT lanname AS name FROM pg_language ORDER BY oid")?;
    Ok(rows.iter().map(|row| column(row, "name").to_owned()).collect())
}
