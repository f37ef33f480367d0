//! The states that change text within files.

use brine_function::functions;
use brine_value::Value;

use super::attributes::Attributes;
use super::{accumulated, comment, contents, edit, keyvalue, line};
use crate::modules::file::edit::{Block, Replacing};
use crate::modules::file::line::Line;
use crate::states::{StateContext, StateReturn};

functions! {
    module "file", context StateContext;

    /// Lines at the end of a file, unless it has them.
    fn append(state, name: String, text: Value = Value::Nil, source: Value = Value::Nil, source_hash: Value = Value::Nil, sources: Value = Value::Nil, source_hashes: Value = Value::Nil, template: Option<String> = None, defaults: Value = Value::Nil, context: Value = Value::Nil, makedirs: bool = false, ignore_whitespace: bool = true, show_changes: bool = true) {
        read_elsewhere([source_hash, source_hashes, context]);
        let sources = contents::Contents::of(&source, &sources, template, defaults);
        let adding = edit::Adding { text, sources, makedirs, ignore_whitespace, header: false, show_changes };
        Ok(edit::add(state, &name, edit::End::Last, &adding).into())
    }

    /// Lines at the start of a file, unless it has them.
    fn prepend(state, name: String, text: Value = Value::Nil, source: Value = Value::Nil, source_hash: Value = Value::Nil, sources: Value = Value::Nil, source_hashes: Value = Value::Nil, template: Option<String> = None, defaults: Value = Value::Nil, context: Value = Value::Nil, makedirs: bool = false, header: bool = false, show_changes: bool = true) {
        read_elsewhere([source_hash, source_hashes, context]);
        let sources = contents::Contents::of(&source, &sources, template, defaults);
        let adding = edit::Adding { text, sources, makedirs, ignore_whitespace: true, header, show_changes };
        Ok(edit::add(state, &name, edit::End::First, &adding).into())
    }

    /// Replaces what a regular expression matches.
    fn replace(
        context,
        name: String,
        pattern: String,
        repl: Value,
        count: usize = 0,
        flags: Value = 8.into(),
        append_if_not_found: bool = false,
        prepend_if_not_found: bool = false,
        not_found_content: Value = Value::Nil,
        backup: Value = ".bak".into(),
        show_changes: bool = true,
        ignore_if_missing: bool = false,
        backslash_literal: bool = false,
        bufsize: Value = Value::Nil,
        encoding: Value = Value::Nil
    ) {
        // Files are read whole, as UTF-8.
        _ = (bufsize, encoding);
        let repl = repl.to_string();
        let repl = if backslash_literal { repl.replace('\\', r"\\") } else { repl };
        let not_found_content = not_found_content.is_truthy().then(|| not_found_content.to_string());
        let wanted = edit::Replace {
            replacing: Replacing { pattern, repl, count, flags, append_if_not_found, prepend_if_not_found, not_found_content },
            backup, show_changes, ignore_if_missing,
        };
        Ok(edit::replace(context, &name, &wanted).into())
    }

    /// One line: put in, made sure of, replaced or deleted, as `mode` says. `match` says which line, `before`, `after`
    /// and `location` say where.
    fn line(
        context,
        name: String,
        content: Option<String> = None,
        mode: Option<String> = None,
        location: Option<String> = None,
        before: Option<String> = None,
        after: Option<String> = None,
        show_changes: bool = true,
        backup: Value = Value::Nil,
        quiet: bool = false,
        indent: bool = true,
        create: bool = false,
        r#match: Value = Value::Nil,
        user: Value = Value::Nil,
        group: Value = Value::Nil,
        file_mode: Value = Value::Nil
    ) {
        let matching = (!r#match.is_nil()).then(|| r#match.to_string());
        let attributes = Attributes::of_state(context, &file_mode, &user, &group);
        let backup = backup.is_truthy();
        let wanted = line::Wanted {
            line: Line { content, matching, location, before, after, indent },
            mode: mode.map(|mode| mode.to_lowercase()),
            show_changes, backup, quiet, create, attributes,
        };
        Ok(line::line(context, &name, &wanted).into())
    }

    /// Values of keys in a file of `key = value` lines: one `key` and `value`, or several in `key_values`.
    fn keyvalue(
        context,
        name: String,
        key: Option<String> = None,
        value: Value = Value::Nil,
        key_values: Value = Value::Nil,
        separator: String = "=".into(),
        append_if_not_found: bool = false,
        prepend_if_not_found: bool = false,
        search_only: bool = false,
        show_changes: bool = true,
        ignore_if_missing: bool = false,
        count: usize = 1,
        uncomment: Option<String> = None,
        key_ignore_case: bool = false,
        value_ignore_case: bool = false,
        create_if_missing: bool = false,
        prune: bool = false,
    ) {
        let wanted = keyvalue::Wanted {
            key, value, key_values, separator, append_if_not_found, prepend_if_not_found, search_only, show_changes,
            ignore_if_missing, count, uncomment, key_ignore_case, value_ignore_case, create_if_missing, prune,
        };
        Ok(keyvalue::state(context, &name, &wanted).into())
    }

    /// Lines between two markers.
    fn blockreplace(
        state,
        name: String,
        marker_start: String = "#-- start managed zone --".into(),
        marker_end: String = "#-- end managed zone --".into(),
        content: Value = "".into(),
        source: Value = Value::Nil,
        template: Option<String> = None,
        defaults: Value = Value::Nil,
        append_if_not_found: bool = false,
        prepend_if_not_found: bool = false,
        append_newline: Option<bool> = None,
        insert_before_match: Option<String> = None,
        insert_after_match: Option<String> = None,
        backup: Value = ".bak".into(),
        show_changes: bool = true,
        sources: Value = Value::Nil,
        source_hash: Value = Value::Nil,
        source_hashes: Value = Value::Nil,
        context: Value = Value::Nil
    ) {
        read_elsewhere([source_hash, source_hashes, context]);
        let sources = contents::Contents::of(&source, &sources, template, defaults);
        let content = match contents::block_content(state, &name, &content, &sources) {
            Ok(content) => content,
            Err(error) => return Ok(StateReturn::failed(&name, error).into()),
        };
        let gathered = accumulated::of(state, &name);
        let more = gathered.values().filter_map(Value::as_list).flatten().map(ToString::to_string);
        let content = std::iter::once(content).chain(more).reduce(|all, text| {
            let gap = if all.is_empty() || all.ends_with('\n') { "" } else { "\n" };
            format!("{all}{gap}{text}")
        }).unwrap_or_default();
        let block = edit::BlockReplace {
            block: Block {
                start: marker_start, end: marker_end, content, append_if_not_found, prepend_if_not_found, append_newline,
                insert_before_match, insert_after_match,
            },
            backup, show_changes,
        };
        Ok(edit::block(state, &name, &block).into())
    }

    /// Lines that match made comments.
    fn comment(context, name: String, regex: String, char: String = "#".into(), backup: Value = ".bak".into(), ignore_missing: bool = false) {
        Ok(comment::comment(context, &name, &regex, &char, &backup, ignore_missing, true).into())
    }

    /// Comments that match made lines again.
    fn uncomment(context, name: String, regex: String, char: String = "#".into(), backup: Value = ".bak".into()) {
        Ok(comment::comment(context, &name, &regex, &char, &backup, false, false).into())
    }
}

/// What is read from the state itself, by who gets the sources and renders them.
fn read_elsewhere(_arguments: [Value; 3]) {}
