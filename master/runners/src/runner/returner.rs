//! `returner`: maintenance of returners.

use brine_function::{CallError, CallResult, Functions, function, registry};
use brine_returners::Options;

use super::RunnerContext;

/// Runner functions of `returner`.
pub static FUNCTIONS: Functions<RunnerContext> = registry!("returner", [setup]);

/// Create the missing tables and indexes of a returner, and upgrade existing tables in place.
///
/// Existing rows stay. The database itself and its user must exist, and the user needs the right to create and alter
/// tables.
///
/// CLI Example:
///
///     salt-run returner.setup pgjsonb
#[function]
pub fn setup(
    context: &RunnerContext,
    /// The name of the returner, such as mysql, postgres or pgjsonb.
    name: String,
) -> CallResult {
    let returner = brine_returners::open(&name, &Options::new(&context.master.config.opts, None));
    returner.and_then(|returner| returner.setup()).map_err(CallError::execution)?;
    Ok(true.into())
}
