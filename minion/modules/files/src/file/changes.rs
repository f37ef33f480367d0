//! Search and replacement in files.

use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use brine_context::Context;
use brine_function::{Args, CallError, CallResult, Functions, function, registry};
use brine_host::paths::expand;
use brine_system::files::{self, Attributes, Entry, Flush, Links};
use brine_system::user_files;
use brine_value::Value;

use super::diff::unified;
use super::edit::{self, Block, Commented, NotFoundArgs, PatternArgs, compile_for_bytes};
use super::encoding::Encoding;
use super::line::{self, Line, PositionArgs};
use super::{error_at, invalid, is_test};

/// Execution functions of `file`.
pub static FUNCTIONS: Functions<Context> = registry!(
    "file",
    [
        replace,
        blockreplace,
        line,
        comment,
        uncomment,
        comment_line,
        super::sed::sed,
        super::sed::psed,
        super::sed::sed_contains,
        super::search::search,
        super::search::grep,
        super::search::get_diff
    ]
);

/// The arguments of `file.replace`.
#[derive(Args)]
pub struct ReplaceArgs {
    /// Path of the file.
    path: String,
    #[args]
    search: PatternArgs,
    /// Without effect: files are read whole.
    #[default(1.into())]
    bufsize: Value,
    #[args]
    not_found: NotFoundArgs,
    /// Whether the file is left unchanged.
    #[default(false)]
    dry_run: bool,
    /// Whether the file is only searched; returns whether there is a match.
    #[default(false)]
    search_only: bool,
    /// Whether the diff is returned, not only whether there is one.
    #[default(true)]
    show_changes: bool,
    /// Whether a missing file is not a failure.
    #[default(false)]
    ignore_if_missing: bool,
    /// Without effect: files are replaced atomically.
    #[default(true)]
    preserve_inode: bool,
    /// Whether backslashes in `repl` are literal.
    #[default(false)]
    backslash_literal: bool,
    /// Encoding of the file, such as `utf-16` or `latin-1`; by default UTF-8, and files with null bytes are refused.
    encoding: Option<String>,
}

/// Replace the matches of a regular expression, and return the diff, or with `show_changes: False` whether there is
/// one. `dry_run` changes nothing; `search_only` returns whether the expression matches.
///
/// CLI Example:
///
///     salt '*' file.replace /etc/httpd/httpd.conf pattern='LogLevel warn' repl='LogLevel info'
#[function]
pub fn replace(_context: &Context, #[args] args: ReplaceArgs) -> CallResult {
    // Files are read whole, and replaced atomically.
    _ = (args.bufsize, args.preserve_inode);
    let file = Text::real(&args.path)?;
    if args.ignore_if_missing && !file.exists() {
        return Ok(false.into());
    }
    let encoding = encoding_of(args.encoding.as_deref())?;
    let before = match encoding {
        Some(encoding) => read_encoded(&file, "replace", encoding)?,
        None => read(&file, "replace")?,
    };
    let (search, not_found) = (args.search, args.not_found);
    if args.search_only && (not_found.append_if_not_found || not_found.prepend_if_not_found) {
        return Err(invalid("replace", "search_only cannot be used with append/prepend_if_not_found"));
    }
    if not_found.append_if_not_found && not_found.prepend_if_not_found {
        return Err(invalid("replace", "Only one of append and prepend_if_not_found is permitted"));
    }
    if args.search_only {
        let regex = compile_for_bytes(&search.pattern, &search.flags).map_err(CallError::Execution)?;
        return Ok(regex.is_match(&before).map_err(CallError::execution)?.into());
    }
    let content = &not_found.not_found_content;
    let content = (!content.is_nil()).then(|| content.to_string());
    let replacement = search.replacing(args.backslash_literal, &not_found, content);
    let replaced = edit::replaced(&before, &replacement).map_err(CallError::Execution)?;
    if !args.dry_run {
        let backup = &not_found.backup;
        Text { before: &before, after: &replaced.text, backup, encoding, keeps_links: true }.write(&file)?;
    }
    if !args.show_changes {
        return Ok((before != replaced.text).into());
    }
    Ok(match &replaced.added {
        Some(content) if before != replaced.text => edit::with_whole(&before, &replaced.text, content),
        _ => unified(&before, &replaced.text),
    }
    .into())
}

/// The arguments of `file.blockreplace`.
#[derive(Args)]
pub struct BlockreplaceArgs {
    /// Path of the file.
    path: String,
    /// Line that starts the block; it is kept.
    #[default("#-- start managed zone --".into())]
    marker_start: String,
    /// Line that ends the block; it is kept.
    #[default("#-- end managed zone --".into())]
    marker_end: String,
    /// Content of the block.
    #[default]
    content: String,
    /// Whether the content is appended to the file if there is nothing to replace.
    #[default(false)]
    append_if_not_found: bool,
    /// Whether the content is prepended to the file if there is nothing to replace.
    #[default(false)]
    prepend_if_not_found: bool,
    /// Suffix of the backup of the file, or false for none.
    #[default(".bak".into())]
    backup: Value,
    /// Whether the file is left unchanged.
    #[default(false)]
    dry_run: bool,
    /// Whether the diff is returned, not only whether there is one.
    #[default(true)]
    show_changes: bool,
    /// Whether a newline follows the content; if unset, only where one is missing.
    #[default(false.into())]
    append_newline: Value,
    /// Regular expression of the line before which a new block is inserted.
    insert_before_match: Option<String>,
    /// Regular expression of the line after which a new block is inserted.
    insert_after_match: Option<String>,
}

/// Replace the lines between two markers, and return the diff, or with `show_changes: False` whether there is one.
///
/// CLI Example:
///
///     salt '*' file.blockreplace /etc/hosts '#-- start' '#-- end' '10.0.1.1 foo.foobar'
#[function]
pub fn blockreplace(_context: &Context, #[args] args: BlockreplaceArgs) -> CallResult {
    let places = [
        args.append_if_not_found,
        args.prepend_if_not_found,
        args.insert_before_match.is_some(),
        args.insert_after_match.is_some(),
    ];
    if places.iter().filter(|is_set| **is_set).count() > 1 {
        let message = "Only one of append_if_not_found, prepend_if_not_found, insert_before_match, and insert_after_match is permitted";
        return Err(invalid("blockreplace", message));
    }
    let file = expand(&args.path);
    let before = read(&file, "blockreplace")?;
    let append_newline = if args.append_newline.is_nil() { None } else { Some(args.append_newline.is_truthy()) };
    let block = Block {
        start: args.marker_start,
        end: args.marker_end,
        content: args.content,
        append_if_not_found: args.append_if_not_found,
        prepend_if_not_found: args.prepend_if_not_found,
        append_newline,
        insert_before_match: args.insert_before_match,
        insert_after_match: args.insert_after_match,
    };
    let after = edit::with_block(&before, &block).map_err(|message| CallError::Execution(message.into()))?;
    if !args.dry_run {
        Text { before: &before, after: &after, backup: &args.backup, encoding: None, keeps_links: false }
            .write(&file)?;
    }
    Ok(if args.show_changes { unified(&before, &after).into() } else { (before != after).into() })
}

/// The arguments of `file.line`.
#[derive(Args)]
pub struct LineArgs {
    /// Path of the file.
    path: String,
    /// Text of the line.
    content: Option<String>,
    /// Text or regular expression of the line to replace or delete.
    r#match: Option<String>,
    #[args]
    position: PositionArgs,
    /// Whether the diff is returned, not only whether there is one.
    #[default(true)]
    show_changes: bool,
    /// Whether a backup of the file is kept, with a timestamp.
    #[default(false)]
    backup: bool,
    /// Whether a missing file is not a failure.
    #[default(false)]
    quiet: bool,
    /// Whether the new line takes over the indentation of its surroundings.
    #[default(true)]
    indent: bool,
}

/// Insert, ensure, replace or delete one line, according to `mode`. Returns the diff, or false if nothing changed.
///
/// CLI Example:
///
///     salt '*' file.line /etc/nsswitch.conf "networks: files dns" after="hosts:.*?" mode="ensure"
#[function]
pub fn line(context: &Context, #[args] args: LineArgs) -> CallResult {
    let file = Text::real(&args.path)?;
    if !file.is_file() {
        let missing = || CallError::Execution(format!("File \"{}\" does not exists or is not a file.", file.display()));
        return if args.quiet { Ok(false.into()) } else { Err(missing()) };
    }
    let Some(mode) = args.position.mode.map(|mode| mode.to_lowercase()) else {
        return Err(CallError::Execution("Mode was not defined. How to process the file?".into()));
    };
    let desired = Line {
        content: args.content,
        matching: args.r#match,
        location: args.position.location,
        before: args.position.before,
        after: args.position.after,
        indent: args.indent,
    };
    let text = read(&file, "line")?;
    let changed = line::edited(&text, &mode, &desired).map_err(CallError::Execution)?;
    if changed == text {
        return Ok(false.into());
    }
    if !is_test(context) {
        if args.backup {
            keep_dated(&file)?;
        }
        rewrite_without_setuid(&file, changed.as_bytes()).map_err(|error| error_at(&args.path, &error))?;
    }
    Ok(if args.show_changes { unified(&text, &changed).into() } else { true.into() })
}

/// The arguments of `file.comment` and `file.uncomment`.
#[derive(Args)]
pub struct CommentArgs {
    /// Path of the file.
    path: String,
    /// Regular expression of the lines, without their comment prefix.
    regex: String,
    /// Characters that start a comment.
    #[default("#".into())]
    char: String,
    /// Suffix of the backup of the file, or false for none.
    #[default(".bak".into())]
    backup: Value,
}

/// Comment out matching lines, and return the diff, or false if none matches.
///
/// CLI Example:
///
///     salt '*' file.comment /etc/modules pcspkr
#[function]
pub fn comment(context: &Context, #[args] args: CommentArgs) -> CallResult {
    comment_line(context, args.path, args.regex, args.char, true, args.backup)
}

/// Uncomment matching lines, and return the diff, or false if none matches.
///
/// CLI Example:
///
///     salt '*' file.uncomment /etc/hosts.deny 'ALL: PARANOID'
#[function]
pub fn uncomment(context: &Context, #[args] args: CommentArgs) -> CallResult {
    comment_line(context, args.path, args.regex, args.char, false, args.backup)
}

/// Comment out matching lines as `comment`, or uncomment them as `uncomment` with `cmnt: False`.
///
/// CLI Example:
///
///     salt '*' file.comment_line /etc/modules pcspkr
#[function]
pub fn comment_line(
    _context: &Context,
    /// Path of the file.
    path: String,
    /// Regular expression.
    regex: String,
    /// Text that starts a comment.
    #[default("#".into())]
    char: String,
    /// Whether lines are commented out; otherwise they are uncommented.
    #[default(true)]
    cmnt: bool,
    /// Suffix of the backup of the file, or false for none.
    #[default(".bak".into())]
    backup: Value,
) -> CallResult {
    let file = Text::real(&path)?;
    let before = read(&file, "comment_line")?;
    let Commented { text: after, lines } =
        edit::commented(&before, &regex, &char, cmnt, false).map_err(CallError::Execution)?;
    if lines.is_empty() {
        return Ok(false.into());
    }
    Text { before: &before, after: &after, backup: &backup, encoding: None, keeps_links: false }.write(&file)?;
    let (old, new): (Vec<&str>, Vec<&str>) = lines.iter().map(|(old, new)| (old.as_str(), new.as_str())).unzip();
    Ok(super::diff::unified_lines(&old, &new).into())
}

/// A file's text before and after a change.
pub(super) struct Text<'t> {
    before: &'t str,
    after: &'t str,
    /// Suffix of the name of the backup.
    backup: &'t Value,
    /// UTF-8 by default.
    encoding: Option<Encoding>,
    /// Whether all names (hard links) of the file get the new text.
    keeps_links: bool,
}

impl Text<'_> {
    /// Returns the path of the file to change: of a symbolic link, that of its target.
    pub(super) fn real(path: &str) -> Result<PathBuf, CallError> {
        user_files::real(expand(path)).map_err(|error| error_at(path, &error))
    }

    fn write(&self, file: &Path) -> Result<(), CallError> {
        if self.before == self.after {
            return Ok(());
        }
        let encoded = self.encoding.unwrap_or(Encoding::Utf8).encode(self.after, "strict");
        let encoded = encoded.map_err(|error| CallError::Execution(format!("{}: {error}", file.display())))?;
        keep(file, self.backup)?;
        if self.keeps_links && has_links(file) {
            return write_to_links(file, &encoded).map_err(|error| error_at(&file.display().to_string(), &error));
        }
        files::rewrite(file, &encoded, 0o644).map_err(CallError::execution)
    }
}

/// Whether a file has several names (hard links).
fn has_links(file: &Path) -> bool {
    file.metadata().is_ok_and(|status| status.is_file() && status.nlink() > 1)
}

/// Writes a file as [`user_files::write`]. One with several names (hard links) is written in place, so that all of them
/// have the new content.
pub(super) fn write_to_links(file: &Path, bytes: &[u8]) -> std::io::Result<()> {
    if !has_links(file) {
        return user_files::write(file, bytes);
    }
    let mut open = user_files::open_in_place(file)?;
    // Another file may have its name now: only of one with several names it is checked that nobody has put it there.
    if open.metadata()?.nlink() < 2 {
        return user_files::write(file, bytes);
    }
    open.write_all(bytes)?;
    open.set_len(bytes.len() as u64)?;
    open.sync_all()
}

/// Copies a file to a backup under its name and this suffix; no suffix, no backup.
pub(super) fn keep(file: &Path, ending: &Value) -> Result<(), CallError> {
    if !ending.is_truthy() {
        return Ok(());
    }
    let backup = format!("{}{ending}", file.display());
    user_files::back_up(file, &backup).map_err(|error| error_at(&backup, &error))
}

/// Copies a file that `file.line` is about to change to its name with the date and time.
pub(super) fn keep_dated(file: &Path) -> Result<(), CallError> {
    keep(file, &format!(".{}", brine_clock::now().strftime("%Y-%m-%d-%H-%M-%S")).into())
}

/// Writes an existing file, which keeps its owner and permissions, but not setuid and setgid.
pub(super) fn rewrite_without_setuid(file: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let entry = Entry::resolve(file, Links::Follow)?;
    let mode = entry.path().metadata()?.mode() & 0o777;
    user_files::write_with(entry, bytes, Attributes::mode(mode), 0o644, Flush::Now)
}

/// Parses the argument `encoding`.
fn encoding_of(name: Option<&str>) -> Result<Option<Encoding>, CallError> {
    name.filter(|name| !name.is_empty()).map(Encoding::parse).transpose().map_err(CallError::Execution)
}

fn read_bytes(file: &Path, function: &str) -> Result<Vec<u8>, CallError> {
    user_files::read(file).map_err(|error| match error.kind() {
        ErrorKind::Other => error_at(&file.display().to_string(), &error),
        _ => invalid(function, &format!("File not found: {}", file.display())),
    })
}

/// Reads a file in this encoding, which may be one with null bytes.
fn read_encoded(file: &Path, function: &str, encoding: Encoding) -> Result<String, CallError> {
    let text = encoding.decode(&read_bytes(file, function)?);
    text.map_err(|error| CallError::Execution(format!("{}: {error}", file.display())))
}

pub(super) fn read(file: &Path, function: &str) -> Result<String, CallError> {
    let bytes = read_bytes(file, function)?;
    let binary =
        || invalid(function, &format!("Cannot perform string replacements on a binary file: {}", file.display()));
    String::from_utf8(bytes).ok().filter(|text| !text.contains('\0')).ok_or_else(binary)
}
