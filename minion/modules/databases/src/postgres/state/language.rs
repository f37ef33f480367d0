//! `postgres_language`: procedural languages of a database.

use brine_context::{StateContext, StateReturn};
use brine_function::{Args, CallError, CallResult, Functions, function, registry};
use brine_value::Map;

use super::outcome;
use crate::postgres::schema::languages;
use crate::postgres::session::{DbServerArgs, Session, identifier};

/// State functions of `postgres_language`.
pub static FUNCTIONS: Functions<StateContext> = registry!("postgres_language", [present, absent]);

/// The arguments of both functions.
#[derive(Args)]
pub struct LanguageArgs {
    /// Name of the language.
    name: String,
    /// Database of the language.
    maintenance_db: String,
    /// Account that runs `psql`.
    user: Option<String>,
    #[args]
    server: DbServerArgs,
    /// Role of the session.
    db_user: Option<String>,
    #[keywords(crate::postgres::state::further)]
    _kwargs: Map,
}

impl LanguageArgs {
    fn session<'a>(&self, context: &'a StateContext) -> Result<Session<'a>, CallError> {
        let server = self.server.of(self.db_user.clone(), Some(self.maintenance_db.clone()));
        server.session(&context.call, self.user.clone())
    }
}

/// Ensure that a database has a procedural language.
///
/// SLS Example:
///
///     plperl:
///       postgres_language.present:
///         - maintenance_db: app
#[function]
pub fn present(context: &StateContext, #[args] args: LanguageArgs) -> CallResult {
    let name = &*args.name;
    let session = args.session(context)?;
    if languages(&session)?.contains(&args.name) {
        return Ok(StateReturn::ok(name, format!("Language {name} is already installed")).into());
    }
    if context.test {
        return Ok(StateReturn::predicted(name, format!("Language {name} is set to be installed")).into());
    }
    let result = session.execute(&[format!("CREATE LANGUAGE {}", identifier(name))]);
    let success = format!("Language {name} has been installed");
    Ok(outcome(name, result, success, "Present", &format!("Failed to install language {name}")).into())
}

/// Ensure that a database does not have a procedural language.
///
/// SLS Example:
///
///     plperl:
///       postgres_language.absent:
///         - maintenance_db: app
#[function]
pub fn absent(context: &StateContext, #[args] args: LanguageArgs) -> CallResult {
    let name = &*args.name;
    let session = args.session(context)?;
    if !languages(&session)?.contains(&args.name) {
        let comment = format!("Language {name} is not present so it cannot be removed");
        return Ok(StateReturn::ok(name, comment).into());
    }
    if context.test {
        return Ok(StateReturn::predicted(name, format!("Language {name} is set to be removed")).into());
    }
    let result = session.execute(&[format!("DROP LANGUAGE {}", identifier(name))]);
    let success = format!("Language {name} has been removed");
    Ok(outcome(name, result, success, "Absent", &format!("Failed to remove language {name}")).into())
}
