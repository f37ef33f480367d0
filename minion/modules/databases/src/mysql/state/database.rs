//! `mysql_database`: databases.

use brine_context::{StateContext, StateReturn};
use brine_function::{CallError, CallResult, Functions, function, registry};
use brine_value::{Map, map};

use super::{or_failed, outcome};
use crate::mysql::connection::ConnectionArgs;
use crate::mysql::database::{DefaultsArgs, Settings, remove};

/// State functions of `mysql_database`.
pub static FUNCTIONS: Functions<StateContext> = registry!("mysql_database", [present, absent]);

/// Ensure that a database exists, with a default character set and a default collation.
///
/// SLS Example:
///
///     app:
///       mysql_database.present:
///         - character_set: utf8mb4
///         - collate: utf8mb4_unicode_ci
///         - connection_default_file: /etc/mysql/debian.cnf
#[function]
pub fn present(
    context: &StateContext,
    /// Name of the database.
    name: String,
    #[args] defaults: DefaultsArgs,
    #[args] connection: ConnectionArgs,
    #[keywords(crate::mysql::state::further)] _kwargs: Map,
) -> CallResult {
    or_failed(&name, ensure(context, &name, &defaults, &connection))
}

fn ensure(
    context: &StateContext,
    name: &str,
    defaults: &DefaultsArgs,
    connection: &ConnectionArgs,
) -> Result<StateReturn, CallError> {
    let session = connection.session(&context.call)?;
    let Some(current) = Settings::of(&session, name)? else {
        if context.test {
            let comment = format!("Database {name} is not present and needs to be created");
            return Ok(StateReturn::predicted(name, comment));
        }
        let result = defaults.create(&session, name);
        let success = format!("The database {name} has been created");
        return Ok(outcome(name, result, success, "Present", format!("Failed to create database {name}")));
    };
    let differing = |desired: &Option<String>, is: &str| desired.clone().filter(|text| !text.is_empty() && text != is);
    let mut comments = Vec::new();
    if let Some(character_set) = differing(&defaults.character_set, &current.character_set) {
        comments
            .push(format!("Database character set {character_set} != {} needs to be updated", current.character_set));
    }
    if let Some(collate) = differing(&defaults.collate, &current.collate) {
        comments.push(format!("Database collate {collate} != {} needs to be updated", current.collate));
    }
    if comments.is_empty() {
        return Ok(StateReturn::ok(name, format!("Database {name} is already present")));
    }
    if context.test {
        comments.push(format!("Database {name} is going to be updated"));
        return Ok(StateReturn::predicted(name, comments.join("\n")));
    }
    defaults.alter(&session, name)?;
    let now = Settings::of(&session, name)?.unwrap_or_else(|| current.clone());
    let mut changes = Map::new();
    for (key, before, now) in
        [("collate", current.collate, now.collate), ("character_set", current.character_set, now.character_set)]
    {
        if before != now {
            changes.insert(key.into(), map! {"before" => before, "now" => now}.into());
        }
    }
    Ok(StateReturn::ok(name, comments.join("\n")).with_changes(changes))
}

/// Ensure that a database does not exist.
///
/// SLS Example:
///
///     oldapp:
///       mysql_database.absent: []
#[function]
pub fn absent(
    context: &StateContext,
    /// Name of the database.
    name: String,
    #[args] connection: ConnectionArgs,
    #[keywords(crate::mysql::state::further)] _kwargs: Map,
) -> CallResult {
    let ensure = || {
        let session = connection.session(&context.call)?;
        if Settings::of(&session, &name)?.is_none() {
            let comment = format!("Database {name} is not present, so it cannot be removed");
            return Ok(StateReturn::ok(&name, comment));
        }
        if context.test {
            return Ok(StateReturn::predicted(&name, format!("Database {name} is present and needs to be removed")));
        }
        let success = format!("Database {name} has been removed");
        let failure = format!("Unable to remove database {name}");
        Ok(outcome(&name, remove(&session, &name), success, "Absent", failure))
    };
    or_failed(&name, ensure())
}
