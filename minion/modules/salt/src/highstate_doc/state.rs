//! `highstate_doc`: a state that is only for documents.

use brine_context::{StateContext, StateReturn};
use brine_function::{CallResult, Functions, function, registry};
use brine_value::Map;

/// State functions of `highstate_doc`.
pub static FUNCTIONS: Functions<StateContext> = registry!("highstate_doc", [note]);

/// The length of texts that the comment shows, in characters.
const SHOWN: usize = 200;

/// Add a text to the document of `highstate_doc.render`, at the place of the state. Nothing is changed on the host.
///
/// SLS Example:
///
///     about_web:
///       highstate_doc.note:
///         - contents: |
///             Web servers are behind the load balancer lb1.
///         - require_in:
///           - pkg: nginx
#[function]
pub fn note(
    _context: &StateContext,
    /// Name of the state.
    name: String,
    /// File under `salt://` with the text.
    source: Option<String>,
    /// The text.
    contents: Option<String>,
    #[keywords(brine_function::unused)] _kwargs: Map,
) -> CallResult {
    let mut comment =
        source.filter(|path| !path.is_empty()).map_or_else(String::new, |path| format!("include file: {path}\n"));
    comment.extend(contents.filter(|text| text.chars().count() < SHOWN));
    Ok(StateReturn::ok(&name, comment).into())
}
