//! The states that change text within files.

use brine_core::Value;
use brine_core::function::{CallResult, Function, function, registry};

use super::attributes::Attributes;
use super::{accumulated, comment, contents, edit, keyvalue, line};
use crate::modules::file::edit::{Block, Replacing};
use crate::modules::file::line::Line;
use crate::states::{StateContext, StateReturn};

/// State functions of `file`.
pub static FUNCTIONS: &[Function<StateContext>] =
    registry!("file", [append, prepend, replace, line, keyvalue, blockreplace, comment, uncomment]);

/// Lines at the end of a file, unless it has them.
#[function]
pub fn append(
    state: &StateContext,
    name: String,
    #[default] text: Value,
    #[default] source: Value,
    #[default] source_hash: Value,
    #[default] sources: Value,
    #[default] source_hashes: Value,
    #[default] template: Option<String>,
    #[default] defaults: Value,
    #[default] context: Value,
    #[default(false)] makedirs: bool,
    #[default(true)] ignore_whitespace: bool,
    #[default(true)] show_changes: bool,
) -> CallResult {
    read_elsewhere([source_hash, source_hashes, context]);
    let sources = contents::Contents::of(&source, &sources, template, defaults);
    let adding = edit::Adding { text, sources, makedirs, ignore_whitespace, header: false, show_changes };
    Ok(edit::add(state, &name, edit::End::Last, &adding).into())
}

/// Lines at the start of a file, unless it has them.
#[function]
pub fn prepend(
    state: &StateContext,
    name: String,
    #[default] text: Value,
    #[default] source: Value,
    #[default] source_hash: Value,
    #[default] sources: Value,
    #[default] source_hashes: Value,
    #[default] template: Option<String>,
    #[default] defaults: Value,
    #[default] context: Value,
    #[default(false)] makedirs: bool,
    #[default(false)] header: bool,
    #[default(true)] show_changes: bool,
) -> CallResult {
    read_elsewhere([source_hash, source_hashes, context]);
    let sources = contents::Contents::of(&source, &sources, template, defaults);
    let adding = edit::Adding { text, sources, makedirs, ignore_whitespace: true, header, show_changes };
    Ok(edit::add(state, &name, edit::End::First, &adding).into())
}

/// Replaces what a regular expression matches.
#[function]
pub fn replace(
    context: &StateContext,
    name: String,
    pattern: String,
    repl: Value,
    #[default(0)] count: usize,
    #[default(8.into())] flags: Value,
    #[default(false)] append_if_not_found: bool,
    #[default(false)] prepend_if_not_found: bool,
    #[default] not_found_content: Value,
    #[default(".bak".into())] backup: Value,
    #[default(true)] show_changes: bool,
    #[default(false)] ignore_if_missing: bool,
    #[default(false)] backslash_literal: bool,
    #[default] bufsize: Value,
    #[default] encoding: Value,
) -> CallResult {
    // Files are read whole, as UTF-8.
    _ = (bufsize, encoding);
    let repl = repl.to_string();
    let repl = if backslash_literal { repl.replace('\\', r"\\") } else { repl };
    let not_found_content = not_found_content.is_truthy().then(|| not_found_content.to_string());
    let wanted = edit::Replace {
        replacing: Replacing {
            pattern,
            repl,
            count,
            flags,
            append_if_not_found,
            prepend_if_not_found,
            not_found_content,
        },
        backup,
        show_changes,
        ignore_if_missing,
    };
    Ok(edit::replace(context, &name, &wanted).into())
}

/// One line: put in, made sure of, replaced or deleted, as `mode` says. `match` says which line, `before`, `after`
/// and `location` say where.
#[function]
pub fn line(
    context: &StateContext,
    name: String,
    #[default] content: Option<String>,
    #[default] mode: Option<String>,
    #[default] location: Option<String>,
    #[default] before: Option<String>,
    #[default] after: Option<String>,
    #[default(true)] show_changes: bool,
    #[default] backup: Value,
    #[default(false)] quiet: bool,
    #[default(true)] indent: bool,
    #[default(false)] create: bool,
    #[default] r#match: Value,
    #[default] user: Value,
    #[default] group: Value,
    #[default] file_mode: Value,
) -> CallResult {
    let matching = (!r#match.is_nil()).then(|| r#match.to_string());
    let attributes = Attributes::of_state(context, &file_mode, &user, &group);
    let backup = backup.is_truthy();
    let wanted = line::Wanted {
        line: Line { content, matching, location, before, after, indent },
        mode: mode.map(|mode| mode.to_lowercase()),
        show_changes,
        backup,
        quiet,
        create,
        attributes,
    };
    Ok(line::line(context, &name, &wanted).into())
}

/// Values of keys in a file of `key = value` lines: one `key` and `value`, or several in `key_values`.
#[function]
pub fn keyvalue(
    context: &StateContext,
    name: String,
    #[default] key: Option<String>,
    #[default] value: Value,
    #[default] key_values: Value,
    #[default("=".into())] separator: String,
    #[default(false)] append_if_not_found: bool,
    #[default(false)] prepend_if_not_found: bool,
    #[default(false)] search_only: bool,
    #[default(true)] show_changes: bool,
    #[default(false)] ignore_if_missing: bool,
    #[default(1)] count: usize,
    #[default] uncomment: Option<String>,
    #[default(false)] key_ignore_case: bool,
    #[default(false)] value_ignore_case: bool,
    #[default(false)] create_if_missing: bool,
    #[default(false)] prune: bool,
) -> CallResult {
    let wanted = keyvalue::Wanted {
        key,
        value,
        key_values,
        separator,
        append_if_not_found,
        prepend_if_not_found,
        search_only,
        show_changes,
        ignore_if_missing,
        count,
        uncomment,
        key_ignore_case,
        value_ignore_case,
        create_if_missing,
        prune,
    };
    Ok(keyvalue::state(context, &name, &wanted).into())
}

/// Lines between two markers.
#[function]
pub fn blockreplace(
    state: &StateContext,
    name: String,
    #[default("#-- start managed zone --".into())] marker_start: String,
    #[default("#-- end managed zone --".into())] marker_end: String,
    #[default("".into())] content: Value,
    #[default] source: Value,
    #[default] template: Option<String>,
    #[default] defaults: Value,
    #[default(false)] append_if_not_found: bool,
    #[default(false)] prepend_if_not_found: bool,
    #[default] append_newline: Option<bool>,
    #[default] insert_before_match: Option<String>,
    #[default] insert_after_match: Option<String>,
    #[default(".bak".into())] backup: Value,
    #[default(true)] show_changes: bool,
    #[default] sources: Value,
    #[default] source_hash: Value,
    #[default] source_hashes: Value,
    #[default] context: Value,
) -> CallResult {
    read_elsewhere([source_hash, source_hashes, context]);
    let sources = contents::Contents::of(&source, &sources, template, defaults);
    let content = match contents::block_content(state, &name, &content, &sources) {
        Ok(content) => content,
        Err(error) => return Ok(StateReturn::failed(&name, error).into()),
    };
    let gathered = accumulated::of(state, &name);
    let more = gathered.values().filter_map(Value::as_list).flatten().map(ToString::to_string);
    let content = std::iter::once(content)
        .chain(more)
        .reduce(|all, text| {
            let gap = if all.is_empty() || all.ends_with('\n') { "" } else { "\n" };
            format!("{all}{gap}{text}")
        })
        .unwrap_or_default();
    let block = edit::BlockReplace {
        block: Block {
            start: marker_start,
            end: marker_end,
            content,
            append_if_not_found,
            prepend_if_not_found,
            append_newline,
            insert_before_match,
            insert_after_match,
        },
        backup,
        show_changes,
    };
    Ok(edit::block(state, &name, &block).into())
}

/// Lines that match made comments.
#[function]
pub fn comment(
    context: &StateContext,
    name: String,
    regex: String,
    #[default("#".into())] char: String,
    #[default(".bak".into())] backup: Value,
    #[default(false)] ignore_missing: bool,
) -> CallResult {
    Ok(comment::comment(context, &name, &regex, &char, &backup, ignore_missing, true).into())
}

/// Comments that match made lines again.
#[function]
pub fn uncomment(
    context: &StateContext,
    name: String,
    regex: String,
    #[default("#".into())] char: String,
    #[default(".bak".into())] backup: Value,
) -> CallResult {
    Ok(comment::comment(context, &name, &regex, &char, &backup, false, false).into())
}

/// What is read from the state itself, by who gets the sources and renders them.
fn read_elsewhere(_arguments: [Value; 3]) {}
