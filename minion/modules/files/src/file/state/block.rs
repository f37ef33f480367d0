//! `file.blockreplace`.

use brine_context::{StateContext, StateReturn};
use brine_function::{Args, CallResult, function};
use brine_value::Value;

use super::{accumulated, contents, edit};
use crate::file::edit::Block;

/// The arguments of `file.blockreplace`.
#[derive(Args)]
pub struct BlockreplaceArgs {
    /// Path of the file.
    name: String,
    /// Line that starts the block; it is kept.
    #[default("#-- start managed zone --".into())]
    marker_start: String,
    /// Line that ends the block; it is kept.
    #[default("#-- end managed zone --".into())]
    marker_end: String,
    /// Content of the block.
    #[default("".into())]
    content: Value,
    /// URL of a file with the content.
    #[default]
    source: Value,
    /// Template engine that renders the source.
    #[default("jinja".into())]
    template: String,
    /// Variables of the template, below those of `context`.
    #[default]
    defaults: Value,
    /// Whether the content is appended to the file if there is nothing to replace.
    #[default(false)]
    append_if_not_found: bool,
    /// Whether the content is prepended to the file if there is nothing to replace.
    #[default(false)]
    prepend_if_not_found: bool,
    /// Whether a newline follows the content; if unset, only where one is missing.
    append_newline: Option<bool>,
    /// Regular expression of the line before which a new block is inserted.
    insert_before_match: Option<String>,
    /// Regular expression of the line after which a new block is inserted.
    insert_after_match: Option<String>,
    /// Suffix of the backup of the file, or false for none.
    #[default(".bak".into())]
    backup: Value,
    /// Whether changes are reported as a diff.
    #[default(true)]
    show_changes: bool,
    /// URLs of files with the lines.
    #[default]
    sources: Value,
    /// Checksum of `source`.
    #[default]
    source_hash: Value,
    /// Checksums of `sources`.
    #[default]
    source_hashes: Value,
    /// Variables of the templates.
    #[default]
    context: Value,
}

/// Ensure that a file has this content between two marker lines.
///
/// The rest of the file is left to others. A file without the markers is an error unless the block may be added:
/// `append_if_not_found`, `prepend_if_not_found`, `insert_before_match` or `insert_after_match`.
///
/// SLS Example:
///
///     /etc/hosts:
///       file.blockreplace:
///         - marker_start: '# START managed by Salt'
///         - marker_end: '# END managed by Salt'
///         - content: |
///             10.0.0.5 db
///             10.0.0.6 cache
///         - append_if_not_found: True
///         - backup: False
#[function]
pub fn blockreplace(state: &StateContext, #[args] args: BlockreplaceArgs) -> CallResult {
    contents::ignore_arguments([args.source_hash, args.source_hashes, args.context]);
    if matches!(args.content, Value::List(_) | Value::Map(_)) {
        let comment = format!("content is invalid: expected a string, got {}", args.content.type_name());
        return Ok(StateReturn::failed(&args.name, comment).into());
    }
    let sources = contents::Contents::of(&args.source, &args.sources, &args.template, &args.defaults);
    let of_sources = match contents::texts_of_sources(state, &args.name, &sources) {
        Ok(text) => text,
        Err(error) => return Ok(StateReturn::failed(&args.name, error).into()),
    };
    let gathered = accumulated::texts_of_block(state, &args.name);
    let mut content = accumulated::joined(args.content.to_string(), gathered);
    content.push_str(&of_sources);
    let block = edit::BlockReplace {
        block: Block {
            start: args.marker_start,
            end: args.marker_end,
            content,
            append_if_not_found: args.append_if_not_found,
            prepend_if_not_found: args.prepend_if_not_found,
            append_newline: args.append_newline,
            insert_before_match: args.insert_before_match,
            insert_after_match: args.insert_after_match,
        },
        backup: args.backup,
        show_changes: args.show_changes,
    };
    Ok(edit::block(state, &args.name, &block).into())
}
