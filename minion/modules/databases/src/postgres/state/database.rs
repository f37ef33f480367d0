//! `postgres_database`: databases.

use brine_context::{StateContext, StateReturn};
use brine_function::{Args, CallResult, Functions, function, registry};
use brine_value::{Map, Value};

use super::{AbsentArgs, StateServerArgs, outcome, removed};
use crate::postgres::database::{Settings, alter, create, databases};
use crate::postgres::session::{column, identifier};

/// State functions of `postgres_database`.
pub static FUNCTIONS: Functions<StateContext> = registry!("postgres_database", [present, absent]);

/// The arguments of `postgres_database.present`.
#[derive(Args)]
pub struct PresentArgs {
    /// Name of the database.
    name: String,
    /// Tablespace of the database.
    tablespace: Option<String>,
    /// Encoding, which cannot be changed later.
    encoding: Option<String>,
    /// Collation order (`LC_COLLATE`), which cannot be changed later.
    lc_collate: Option<String>,
    /// Character classification (`LC_CTYPE`), which cannot be changed later.
    lc_ctype: Option<String>,
    /// Role that owns the database.
    owner: Option<String>,
    /// Whether a change of the owner also applies to all objects in the database.
    #[default(false)]
    owner_recurse: bool,
    /// Database to copy for a new one.
    template: Option<String>,
    #[args]
    at: StateServerArgs,
    #[keywords(crate::postgres::state::further)]
    _kwargs: Map,
}

/// Ensure that a database exists, with this owner and in this tablespace.
///
/// SLS Example:
///
///     app:
///       postgres_database.present:
///         - owner: app
///         - encoding: UTF8
///         - template: template0
///         - require:
///           - postgres_user: app
///
///     app_role:
///       postgres_user.present:
///         - name: app
#[function]
pub fn present(context: &StateContext, #[args] args: PresentArgs) -> CallResult {
    let name = &*args.name;
    let session = args.at.session(context)?;
    let all = databases(&session)?;
    let current = all.get(name).and_then(Value::as_map);
    let differs =
        |key: &str, desired: &Option<String>| match (current, desired.as_deref().filter(|text| !text.is_empty())) {
            (Some(current), Some(desired)) if key == "Encoding" => !column(current, key).eq_ignore_ascii_case(desired),
            (Some(current), Some(desired)) => column(current, key) != desired,
            _ => false,
        };
    let fixed = [("Encoding", &args.encoding), ("Collate", &args.lc_collate), ("Ctype", &args.lc_ctype)];
    if fixed.into_iter().any(|(key, desired)| differs(key, desired)) {
        let comment = format!("Database {name} has wrong parameters which couldn't be changed on fly.");
        return Ok(StateReturn::failed(name, comment).into());
    }
    if current.is_none() {
        if context.test {
            return Ok(StateReturn::predicted(name, format!("Database {name} is set to be created")).into());
        }
        let PresentArgs { tablespace, encoding, lc_collate, lc_ctype, owner, template, .. } = &args;
        let [tablespace, encoding, lc_collate, lc_ctype, owner, template] =
            [tablespace, encoding, lc_collate, lc_ctype, owner, template].map(Clone::clone);
        let settings = Settings { tablespace, encoding, lc_collate, lc_ctype, owner, template };
        let result = create(&session, name, &settings);
        let success = format!("The database {name} has been created");
        return Ok(outcome(name, result, success, "Present", &format!("Failed to create database {name}")).into());
    }
    let owner = args.owner.as_deref().filter(|_| differs("Owner", &args.owner));
    let tablespace = args.tablespace.as_deref().filter(|_| differs("Tablespace", &args.tablespace));
    if owner.is_none() && tablespace.is_none() {
        return Ok(StateReturn::ok(name, format!("Database {name} is already present")).into());
    }
    if context.test {
        let comment = format!("Database {name} exists, but parameters need to be changed");
        return Ok(StateReturn::predicted(name, comment).into());
    }
    let server = args.at.server();
    let result = alter(&context.call, &server, args.at.user.clone(), name, tablespace, owner, args.owner_recurse);
    let success = format!("Parameters for database {name} have been changed");
    let failure = format!("Failed to change parameters for database {name}");
    Ok(outcome(name, result, success, "Parameters changed", &failure).into())
}

/// Ensure that a database does not exist.
///
/// SLS Example:
///
///     oldapp:
///       postgres_database.absent: []
#[function]
pub fn absent(context: &StateContext, #[args] args: AbsentArgs) -> CallResult {
    let (name, session) = (&*args.name, args.at.session(context)?);
    let exists = databases(&session)?.contains_key(name);
    removed(context, name, &format!("Database {name}"), exists, || {
        session.execute(&[format!("DROP DATABASE {}", identifier(name))])
    })
}
