//! `postgres_tablespace`: tablespaces.

use brine_context::{StateContext, StateReturn};
use brine_function::{CallResult, Functions, function, registry};
use brine_value::{Map, Value, map};

use super::{AbsentArgs, StateServerArgs, outcome, removed};
use crate::postgres::database::{alter_tablespace, create_tablespace, options_of, tablespaces};
use crate::postgres::session::{column, identifier};

/// State functions of `postgres_tablespace`.
pub static FUNCTIONS: Functions<StateContext> = registry!("postgres_tablespace", [present, absent]);

/// Ensure that a tablespace exists, in this directory, with this owner and these options.
///
/// SLS Example:
///
///     fast:
///       postgres_tablespace.present:
///         - directory: /srv/ssd/postgresql
///         - owner: app
#[function]
pub fn present(
    context: &StateContext,
    /// Name of the tablespace.
    name: String,
    /// Directory of the tablespace.
    directory: String,
    /// Options of the tablespace, as a mapping.
    options: Option<Map>,
    /// Owner of the tablespace.
    owner: Option<String>,
    #[args] at: StateServerArgs,
    #[keywords(crate::postgres::state::further)] _kwargs: Map,
) -> CallResult {
    let session = at.session(context)?;
    let all = tablespaces(&session)?;
    let options = options.unwrap_or_default();
    let Some(tablespace) = all.get(&*name).and_then(Value::as_map) else {
        if context.test {
            return Ok(StateReturn::predicted(&name, format!("Tablespace {name} is set to be created")).into());
        }
        let result = create_tablespace(&session, &name, &directory, &options, owner.as_deref());
        let success = format!("The tablespace {name} has been created");
        return Ok(outcome(&name, result, success, "Present", &format!("Failed to create tablespace {name}")).into());
    };
    if column(tablespace, "Location") != directory {
        let comment = format!(
            "Tablespace {name} is not at the right location. This is unsupported without dropping and recreating the \
             tablespace."
        );
        return Ok(StateReturn::failed(&name, comment).into());
    }
    // The column is an array such as `{seq_page_cost=1.1,random_page_cost=3.9}`.
    let set: Vec<&str> = column(tablespace, "Opts").trim_matches(['{', '}']).split(',').collect();
    let missing: Map = options.into_iter().filter(|(key, value)| !set.contains(&&*format!("{key}={value}"))).collect();
    let owner = owner.filter(|owner| column(tablespace, "Owner") != owner);
    let mut changes = Map::new();
    let mut statements = Vec::new();
    if let Some(owner) = &owner {
        statements.push(format!("OWNER TO {}", identifier(owner)));
        changes.insert("owner".into(), owner.clone().into());
    }
    if !missing.is_empty() {
        statements.push(format!("SET ({})", options_of(&missing)?));
        changes.insert("options".into(), missing.into());
    }
    if changes.is_empty() {
        return Ok(StateReturn::ok(&name, format!("Tablespace {name} is already present")).into());
    }
    let what = if owner.is_some() { "owner" } else { "opts" };
    if context.test {
        let report = StateReturn::predicted(&name, format!("Tablespace {name} {what} to be altered"));
        return Ok(report.with_changes(map! {name.as_str() => changes}).into());
    }
    let result = alter_tablespace(&session, &name, &statements);
    let success = format!("Tablespace {name} {what} changed");
    Ok(outcome(&name, result, success, changes, &format!("Failed to alter tablespace {name}")).into())
}

/// Ensure that a tablespace does not exist.
///
/// SLS Example:
///
///     fast:
///       postgres_tablespace.absent: []
#[function]
pub fn absent(context: &StateContext, #[args] args: AbsentArgs) -> CallResult {
    let (name, session) = (&*args.name, args.at.session(context)?);
    let exists = tablespaces(&session)?.contains_key(name);
    removed(context, name, &format!("Tablespace {name}"), exists, || {
        session.execute(&[format!("DROP TABLESPACE {}", identifier(name))])
    })
}
