//! States that edit text in files.

use brine_context::StateContext;
use brine_function::{Args, CallResult, Functions, function, registry};
use brine_value::Value;

use super::attributes::{Attributes, OwnerArgs};
use super::{comment, contents, edit, keyvalue, line};
use crate::file::edit::{NotFoundArgs, PatternArgs};
use crate::file::line::{Line, PositionArgs};

/// State functions of `file`.
pub static FUNCTIONS: Functions<StateContext> =
    registry!("file", [append, prepend, replace, line, keyvalue, super::block::blockreplace, comment, uncomment]);

/// The lines that `file.append` and `file.prepend` add.
#[derive(Args)]
pub struct LinesArgs {
    /// Line or list of lines.
    #[default]
    text: Value,
    /// URL of a file with the lines.
    #[default]
    source: Value,
    /// Checksum of `source`.
    #[default]
    source_hash: Value,
    /// URLs of files with the lines.
    #[default]
    sources: Value,
    /// Checksums of `sources`.
    #[default]
    source_hashes: Value,
    /// Template engine that renders the source.
    #[default("jinja".into())]
    template: String,
    /// Variables of the template, below those of `context`.
    #[default]
    defaults: Value,
    /// Variables of the templates.
    #[default]
    context: Value,
    /// Whether missing parent directories are created.
    #[default(false)]
    makedirs: bool,
}

impl LinesArgs {
    fn adding(self) -> edit::TextArgs {
        contents::ignore_arguments([self.source_hash, self.source_hashes, self.context]);
        edit::TextArgs {
            text: self.text,
            sources: contents::Contents::of(&self.source, &self.sources, &self.template, &self.defaults),
            makedirs: self.makedirs,
            ignore_whitespace: true,
            header: false,
            show_changes: true,
        }
    }
}

/// The arguments of `file.append`.
#[derive(Args)]
pub struct AppendArgs {
    /// Path of the file.
    name: String,
    #[args]
    lines: LinesArgs,
    /// Whether lines that differ in whitespace alone count as the same.
    #[default(true)]
    ignore_whitespace: bool,
    /// Whether changes are reported as a diff.
    #[default(true)]
    show_changes: bool,
}

/// Ensure that a file contains these lines; missing ones are appended.
///
/// A line counts as present wherever it is in the file. The file is created if it is missing.
///
/// SLS Example:
///
///     /etc/profile.d/umask.sh:
///       file.append:
///         - text: umask 027
///
///     /etc/hosts.allow:
///       file.append:
///         - text:
///           - 'sshd: 10.0.0.0/8'
///           - 'sshd: 192.168.0.0/16'
#[function]
pub fn append(state: &StateContext, #[args] args: AppendArgs) -> CallResult {
    let adding = edit::TextArgs {
        ignore_whitespace: args.ignore_whitespace,
        show_changes: args.show_changes,
        ..args.lines.adding()
    };
    Ok(edit::add(state, &args.name, edit::End::Last, &adding).into())
}

/// The arguments of `file.prepend`.
#[derive(Args)]
pub struct PrependArgs {
    /// Path of the file.
    name: String,
    #[args]
    lines: LinesArgs,
    /// Whether the lines must be at the very start of the file.
    #[default(false)]
    header: bool,
    /// Whether changes are reported as a diff.
    #[default(true)]
    show_changes: bool,
}

/// Ensure that a file contains these lines; missing ones are prepended.
///
/// A line counts as present wherever it is in the file, unless `header` is set. The file is created if it is
/// missing.
///
/// SLS Example:
///
///     /etc/ssh/sshd_config:
///       file.prepend:
///         - text: '# This file is managed by Salt.'
///         - header: True
#[function]
pub fn prepend(state: &StateContext, #[args] args: PrependArgs) -> CallResult {
    let adding = edit::TextArgs { header: args.header, show_changes: args.show_changes, ..args.lines.adding() };
    Ok(edit::add(state, &args.name, edit::End::First, &adding).into())
}

/// The arguments about the report of a change, and about a missing file.
#[derive(Args)]
pub struct ReportArgs {
    /// Whether changes are reported as a diff.
    #[default(true)]
    show_changes: bool,
    /// Whether a missing file is not a failure.
    #[default(false)]
    ignore_if_missing: bool,
}

/// The arguments of `file.replace`.
#[derive(Args)]
pub struct ReplaceArgs {
    /// Path of the file.
    name: String,
    #[args]
    search: PatternArgs,
    #[args]
    not_found: NotFoundArgs,
    #[args]
    report: ReportArgs,
    /// Whether backslashes in `repl` are literal.
    #[default(false)]
    backslash_literal: bool,
    /// Without effect: files are read whole.
    #[default]
    bufsize: Value,
    /// Encoding of the file, such as `utf-16` or `latin-1`; UTF-8 by default.
    encoding: Option<String>,
}

/// Replace the matches of a regular expression in a file.
///
/// All matches are replaced. If `repl` itself matches `pattern`, the state is idempotent only if the replaced text
/// is the same as before.
///
/// SLS Example:
///
///     /etc/ssh/sshd_config:
///       file.replace:
///         - pattern: '^#?PermitRootLogin .*$'
///         - repl: PermitRootLogin no
///         - append_if_not_found: True
///
///     /etc/app.conf:
///       file.replace:
///         - pattern: '(listen)=\d+'
///         - repl: '\1=8080'
///         - backup: False
#[function]
pub fn replace(context: &StateContext, #[args] args: ReplaceArgs) -> CallResult {
    // Files are read whole.
    _ = args.bufsize;
    let content = &args.not_found.not_found_content;
    let content = content.is_truthy().then(|| content.to_string());
    let replacement = edit::Replace {
        replacing: args.search.replacing(args.backslash_literal, &args.not_found, content),
        backup: args.not_found.backup,
        show_changes: args.report.show_changes,
        ignore_if_missing: args.report.ignore_if_missing,
        encoding: args.encoding.filter(|name| !name.is_empty()),
    };
    Ok(edit::replace(context, &args.name, &replacement).into())
}

/// The arguments of `file.line`.
#[derive(Args)]
pub struct LineArgs {
    /// Path of the file.
    name: String,
    /// Text of the line.
    content: Option<String>,
    #[args]
    position: PositionArgs,
    /// Whether changes are reported as a diff.
    #[default(true)]
    show_changes: bool,
    /// Whether a backup of the file is kept.
    #[default]
    backup: Value,
    /// Whether a missing file is not a failure.
    #[default(false)]
    quiet: bool,
    /// Whether the new line takes over the indentation of its surroundings.
    #[default(true)]
    indent: bool,
    /// Whether a missing file is created.
    #[default(false)]
    create: bool,
    /// Text or regular expression of the line to replace or delete.
    #[default]
    r#match: Value,
    #[args]
    owner: OwnerArgs,
    /// Permissions of a new file, as an octal string.
    #[default]
    file_mode: Value,
}

/// Ensure, insert, replace or delete one line of a file, according to `mode`. `match` selects the line; `before`,
/// `after` and `location` its position.
///
/// Use `file.replace`, `file.keyvalue` or `file.managed` where they fit: they are easier to predict.
///
/// SLS Example:
///
///     /etc/hosts:
///       file.line:
///         - content: 10.0.0.5 db.example.com db
///         - mode: ensure
///         - after: '^127\.0\.0\.1'
///
///     no_root_login:
///       file.line:
///         - name: /etc/securetty
///         - mode: delete
///         - match: tty1
#[function]
pub fn line(context: &StateContext, #[args] args: LineArgs) -> CallResult {
    let matching = (!args.r#match.is_nil()).then(|| args.r#match.to_string());
    let attributes = Attributes::from_state(context, &args.file_mode, &args.owner.user, &args.owner.group);
    let backup = args.backup.is_truthy();
    let desired = line::Desired {
        line: Line {
            content: args.content,
            matching,
            location: args.position.location,
            before: args.position.before,
            after: args.position.after,
            indent: args.indent,
        },
        mode: args.position.mode.map(|mode| mode.to_lowercase()),
        show_changes: args.show_changes,
        backup,
        quiet: args.quiet,
        create: args.create,
        attributes,
    };
    Ok(line::line(context, &args.name, &desired).into())
}

/// The arguments of `file.keyvalue`.
#[derive(Args)]
pub struct KeyvalueArgs {
    /// Path of the file.
    name: String,
    /// Key to set.
    key: Option<String>,
    /// Value to set.
    #[default]
    value: Value,
    /// Keys and values to set, as a mapping.
    #[default]
    key_values: Value,
    /// Text between key and value.
    #[default("=".into())]
    separator: String,
    /// Whether missing keys are appended to the file.
    #[default(false)]
    append_if_not_found: bool,
    /// Whether missing keys are prepended to the file.
    #[default(false)]
    prepend_if_not_found: bool,
    /// Whether the state only reports whether the values are set.
    #[default(false)]
    search_only: bool,
    #[args]
    report: ReportArgs,
    /// Number of lines that a key has: further ones are removed, 0 removes all. With -1 all lines of a key are set.
    #[default(1)]
    count: i64,
    /// Characters that start a comment, which is uncommented if its key is set.
    uncomment: Option<String>,
    /// Whether keys are compared without case.
    #[default(false)]
    key_ignore_case: bool,
    /// Whether values are compared without case.
    #[default(false)]
    value_ignore_case: bool,
    /// Whether a missing file is created.
    #[default(false)]
    create_if_missing: bool,
    /// Whether lines of other keys are removed.
    #[default(false)]
    prune: bool,
}

/// Ensure that keys of a file of `key = value` lines have these values: one `key` and `value`, or several in
/// `key_values`.
///
/// SLS Example:
///
///     /etc/ssh/sshd_config:
///       file.keyvalue:
///         - key_values:
///             PermitRootLogin: 'no'
///             PasswordAuthentication: 'no'
///         - separator: ' '
///         - uncomment: '#'
///         - append_if_not_found: True
///
///     /etc/default/app:
///       file.keyvalue:
///         - key: WORKERS
///         - value: 4
///         - append_if_not_found: True
#[function]
pub fn keyvalue(context: &StateContext, #[args] args: KeyvalueArgs) -> CallResult {
    let desired = keyvalue::Desired {
        key: args.key,
        value: args.value,
        key_values: args.key_values,
        separator: args.separator,
        append_if_not_found: args.append_if_not_found,
        prepend_if_not_found: args.prepend_if_not_found,
        search_only: args.search_only,
        show_changes: args.report.show_changes,
        ignore_if_missing: args.report.ignore_if_missing,
        count: args.count,
        uncomment: args.uncomment,
        key_ignore_case: args.key_ignore_case,
        value_ignore_case: args.value_ignore_case,
        create_if_missing: args.create_if_missing,
        prune: args.prune,
    };
    Ok(keyvalue::state(context, &args.name, &desired).into())
}

/// Comment out the lines that match a regular expression.
///
/// SLS Example:
///
///     /etc/fstab:
///       file.comment:
///         - regex: ^/dev/sdb1
#[function]
pub fn comment(
    context: &StateContext,
    /// Absolute path of the file.
    name: String,
    /// Regular expression of the lines; with `^` and `$` at its ends it must match whole lines. Lines that begin with a
    /// comment are left alone.
    regex: String,
    /// Text that starts a comment.
    #[default("#".into())]
    char: String,
    /// Suffix of the backup of the file, or false for none.
    #[default(".bak".into())]
    backup: Value,
    /// Whether the state succeeds if no line matches.
    #[default(false)]
    ignore_missing: bool,
) -> CallResult {
    Ok(comment::comment(context, &name, &regex, &char, &backup, ignore_missing, true).into())
}

/// Uncomment the lines that match a regular expression.
///
/// SLS Example:
///
///     /etc/locale.gen:
///       file.uncomment:
///         - regex: ^en_US\.UTF-8 UTF-8
#[function]
pub fn uncomment(
    context: &StateContext,
    /// Absolute path of the file.
    name: String,
    /// Regular expression of the lines without the comment character, with `^` and `$` for whole lines.
    regex: String,
    /// Text that starts a comment.
    #[default("#".into())]
    char: String,
    /// Suffix of the backup of the file, or false for none.
    #[default(".bak".into())]
    backup: Value,
) -> CallResult {
    Ok(comment::comment(context, &name, &regex, &char, &backup, false, false).into())
}
