//! Versions of Brine and of its dependencies.

use brine_context::Context;
use brine_function::{CallResult, function};
use brine_value::map;

/// Return the version of Salt that the minion behaves as, which templates compare: the grain `saltversion`. The
/// grain `brineversion` has Brine's own.
///
/// CLI Example:
///
///     salt '*' test.version
#[function]
pub fn version(_context: &Context) -> CallResult {
    Ok(brine_config::SALT_VERSION.into())
}

/// Return the versions of Brine and its dependencies as a report.
///
/// CLI Example:
///
///     salt '*' test.versions_report
#[function]
pub fn versions_report(_context: &Context) -> CallResult {
    let (brine, salt) = (brine_config::VERSION, brine_config::SALT_VERSION);
    Ok(format!("Brine Version:\n          Brine: {brine}\n\nSalt Version:\n           Salt: {salt}\n").into())
}

/// Return the versions of Brine and its dependencies, as `versions_report`.
///
/// CLI Example:
///
///     salt '*' test.versions
#[function]
pub fn versions(context: &Context) -> CallResult {
    versions_report(context)
}

/// Return the versions of Brine and its dependencies as data.
///
/// CLI Example:
///
///     salt '*' test.versions_information
#[function]
pub fn versions_information(_context: &Context) -> CallResult {
    let (brine, salt) = (brine_config::VERSION, brine_config::SALT_VERSION);
    Ok(map! {"Brine Version" => map! {"Brine" => brine}, "Salt Version" => map! {"Salt" => salt}}.into())
}
