//! `postgres_schema`: schemas of a database.

use brine_context::{StateContext, StateReturn};
use brine_function::{CallResult, Functions, function, registry};
use brine_value::Map;

use super::outcome;
use crate::postgres::schema::{SchemaServerArgs, create_schema, remove_schema, schemas};

/// State functions of `postgres_schema`.
pub static FUNCTIONS: Functions<StateContext> = registry!("postgres_schema", [present, absent]);

/// Ensure that a schema exists in a database; the owner is that of a new schema.
///
/// SLS Example:
///
///     app_schema:
///       postgres_schema.present:
///         - dbname: app
///         - name: app
///         - owner: app
#[function]
pub fn present(
    context: &StateContext,
    /// Name of the database.
    dbname: String,
    /// Name of the schema.
    name: String,
    /// Owner of a new schema.
    owner: Option<String>,
    #[args] at: SchemaServerArgs,
    #[keywords(crate::postgres::state::further)] _kwargs: Map,
) -> CallResult {
    let session = at.session(&context.call, &dbname)?;
    if schemas(&session)?.contains_key(&*name) {
        return Ok(StateReturn::ok(&name, format!("Schema {name} already exists in database {dbname}")).into());
    }
    if context.test {
        let comment = format!("Schema {name} is set to be created in database {dbname}.");
        return Ok(StateReturn::predicted(&name, comment).into());
    }
    let result = create_schema(&session, &name, owner.as_deref());
    let success = format!("Schema {name} has been created in database {dbname}");
    let failure = format!("Failed to create schema {name} in database {dbname}");
    Ok(outcome(&name, result, success, "Present", &failure).into())
}

/// Ensure that a schema does not exist in a database.
///
/// SLS Example:
///
///     old_schema:
///       postgres_schema.absent:
///         - dbname: app
///         - name: old
#[function]
pub fn absent(
    context: &StateContext,
    /// Name of the database.
    dbname: String,
    /// Name of the schema.
    name: String,
    #[args] at: SchemaServerArgs,
    #[keywords(crate::postgres::state::further)] _kwargs: Map,
) -> CallResult {
    let session = at.session(&context.call, &dbname)?;
    if !schemas(&session)?.contains_key(&*name) {
        let comment = format!("Schema {name} is not present in database {dbname}, so it cannot be removed");
        return Ok(StateReturn::ok(&name, comment).into());
    }
    if context.test {
        let comment = format!("Schema {name} is set to be removed from database {dbname}");
        return Ok(StateReturn::predicted(&name, comment).into());
    }
    let success = format!("Schema {name} has been removed from database {dbname}");
    let result = remove_schema(&session, &name);
    Ok(outcome(&name, result, success, "Absent", &format!("Schema {name} failed to be removed")).into())
}
