//! `http`: requests of the master's host.

use brine_function::{Args, CallResult, Function, function, registry};
use brine_value::Map;

use super::RunnerContext;

/// Runner functions of `http`.
pub static FUNCTIONS: &[Function<RunnerContext>] = registry!("http", [query]);

/// Request a resource from the master's host. The options are those of the execution function `http.query`.
///
/// url: the URL. output: ignored.
///
/// CLI Example:
///
///     salt-run http.query http://somelink.com/ method=POST params='{key1: val1}'
#[function]
pub fn query(
    context: &RunnerContext,
    url: String,
    #[default(true)] output: bool,
    #[keywords] kwargs: Map,
) -> CallResult {
    _ = output;
    let mut keyword = super::public(kwargs);
    for name in ["opts", "node"] {
        keyword.shift_remove(name);
    }
    context.call_host("http.query", Args { positional: vec![url.into()], keyword })
}
