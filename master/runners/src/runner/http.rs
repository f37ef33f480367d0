//! `http`: HTTP requests from the master's host.

use brine_function::{Args, CallResult, Functions, function, registry};
use brine_value::{Map, Value, map};

use super::RunnerContext;

/// Runner functions of `http`.
pub static FUNCTIONS: Functions<RunnerContext> = registry!("http", [query, update_ca_bundle]);

/// Request a resource from the master's host. The options are those of the execution function `http.query`.
///
/// CLI Example:
///
///     salt-run http.query http://somelink.com/ method=POST params='{key1: val1}'
#[function]
pub fn query(
    context: &RunnerContext,
    /// The URL.
    url: String,
    /// Without effect.
    #[default(true)]
    output: bool,
    /// Further arguments of the execution function `http.query`.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    _ = output;
    let mut keyword = super::public(kwargs);
    for name in ["opts", "node"] {
        keyword.shift_remove(name);
    }
    context.call_host("http.query", Args { positional: vec![url.into()], keyword })
}

/// Download a bundle of certificate authorities, and replace the bundle of the master's host.
///
/// CLI Example:
///
///     salt-run http.update_ca_bundle merge_files=/path/to/mycert.pem
#[function]
pub fn update_ca_bundle(
    context: &RunnerContext,
    /// The file; by default that of the option `ca_bundle`, or of the distribution.
    #[default]
    target: Value,
    /// The URL; by default the option `ca_bundle_url`, or curl's bundle by HTTPS.
    #[default]
    source: Value,
    /// Files that are appended.
    #[default]
    merge_files: Value,
) -> CallResult {
    let keyword = map! {"target" => target, "source" => source, "merge_files" => merge_files};
    context.call_host("http.update_ca_bundle", Args { positional: Vec::new(), keyword })
}
