//! `file.managed`: compares a file with the desired content, and writes it.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use brine_context::{StateContext, StateReturn};
use brine_function::{Args, CallError, CallResult, function};
use brine_system::files::{Entry, Flush, Links};
use brine_system::user_files;
use brine_text::binary::is_binary;
use brine_value::{Map, Value, list, map};

use super::attributes::{Attributes, OwnerArgs, directory_mode, parse_mode, show_mode};
use super::contents::{self, Contents};
use super::{directory_of, ignored, invalid_path, source};
use crate::cmd;
use crate::file::backups;
use crate::file::encoding::decode_any;
use crate::file::flags::{self, Change};

/// The arguments about the permissions and the owner of a file, and its parent directories.
#[derive(Args)]
pub struct PermissionArgs {
    /// Permissions, as an octal string such as `'0644'`; `keep` takes those of the source.
    #[default]
    pub(super) mode: Value,
    #[args]
    pub(super) owner: OwnerArgs,
    /// Whether missing parent directories are created.
    #[default(false)]
    pub(super) makedirs: bool,
}

impl PermissionArgs {
    pub(super) fn attributes(&self, context: &StateContext) -> Result<Attributes, String> {
        Attributes::from_state(context, &self.mode, &self.owner.user, &self.owner.group)
    }
}

/// The arguments for writing a file and for reporting the change.
#[derive(Args)]
pub struct WritingArgs {
    /// Whether a missing file is created.
    #[default(true)]
    pub(super) create: bool,
    /// Whether changes are reported as a diff.
    #[default(true)]
    pub(super) show_changes: bool,
    /// Whether a replaced file is kept in the minion's cache: `minion`.
    #[default]
    pub(super) backup: Value,
    /// Command that receives the path of a draft; the file is written only if it exits with 0.
    check_cmd: Option<String>,
}

/// The arguments about drafts of a file.
#[derive(Args)]
pub struct DraftArgs {
    /// Directory of drafts for `check_cmd`.
    tmp_dir: Option<String>,
    /// Suffix of drafts for `check_cmd`.
    #[default]
    tmp_ext: String,
}

impl WritingArgs {
    /// Returns the command that validates drafts; `reports_lines` is whether the lines of a rejected draft are
    /// reported.
    pub(super) fn check(&self, drafts: DraftArgs, reports_lines: bool) -> Option<CheckCommand> {
        let DraftArgs { tmp_dir: directory, tmp_ext: ending } = drafts;
        // As in Salt, an empty command is none: templates write one where nothing is to be checked.
        let command = self.check_cmd.clone().filter(|command| !command.is_empty());
        command.map(|command| CheckCommand { command, directory, ending, reports_lines })
    }
}

/// The arguments of `file.managed`.
#[derive(Args)]
pub struct ManagedArgs {
    /// Path of the file.
    name: String,
    /// URL or path of the content, or a list of them of which the first that exists is used.
    #[default]
    source: Value,
    #[args]
    expected: source::HashArgs,
    /// Content, as a string or as a list of lines.
    #[default]
    contents: Value,
    /// Pillar key, or a list of keys, with the content.
    #[default]
    contents_pillar: Value,
    /// Grain, or a list of grains, with the content.
    #[default]
    contents_grains: Value,
    /// Whether a missing newline at the end of inline contents is added.
    #[default(true)]
    contents_newline: bool,
    #[args]
    rendering: source::TemplateArgs,
    #[args]
    permissions: PermissionArgs,
    /// Permissions of directories that `makedirs` creates, as an octal string.
    #[default]
    dir_mode: Value,
    /// Whether a file that exists gets this content; otherwise only its attributes are managed.
    #[default(true)]
    replace: bool,
    #[args]
    writing: WritingArgs,
    /// Whether the diff of a new file is reported.
    #[default(false)]
    new_file_diff: bool,
    /// Attributes of the file system that the file has, as `chattr` writes them.
    attrs: Option<String>,
    #[args]
    drafts: DraftArgs,
    /// Whether certificates of web servers are verified.
    #[default(true)]
    verify_ssl: bool,
    #[args]
    signed: source::SignatureArgs,
    /// Whether a diff in the order of lines alone is left out of the reported changes.
    #[default(false)]
    ignore_ordering: bool,
    /// Whether a diff in whitespace alone is left out of the reported changes.
    #[default(false)]
    ignore_whitespace: bool,
    /// Characters that start comments, whose diff is left out of the reported changes.
    #[default]
    ignore_comment_characters: Value,
    /// Whether the target of a symbolic link is managed, not the link.
    #[default(true)]
    follow_symlinks: bool,
    /// SELinux context; fails, as in Salt on a host without SELinux.
    #[default]
    selinux: Value,
    /// Further arguments: `context`, the variables of the template, and the state's own. `keep_source`, `win_owner`,
    /// `win_perms`, `win_deny_perms`, `win_inheritance` and `win_perms_reset` are without effect.
    #[keywords(super::further::further_managed)]
    kwargs: Map,
}

/// Ensure that a file has this content: from a source under `salt://`, from `contents`, from pillar or grains.
///
/// Exactly one source of the content is given: `source`, `contents`, `contents_pillar` or `contents_grains`. With
/// none of them, only mode, owner and existence are managed.
///
/// `test=True` reports the diff without writing. A file is replaced by renaming a finished draft, so readers never
/// see half of it.
///
/// SLS Example:
///
///     /etc/nginx/nginx.conf:
///       file.managed:
///         - source: salt://nginx/files/nginx.conf
///         - template: jinja
///         - context:
///             workers: 4
///         - user: root
///         - group: root
///         - mode: '0644'
///         - makedirs: True
///         - check_cmd: nginx -t -c
///
///     /etc/motd:
///       file.managed:
///         - contents: |
///             This host is managed.
///             Changes are overwritten.
///
///     /opt/app.tar.gz:
///       file.managed:
///         - source: https://example.com/app-1.2.tar.gz
///         - source_hash: https://example.com/app-1.2.tar.gz.sha256
#[function]
pub fn managed(context: &StateContext, #[args] args: ManagedArgs) -> CallResult {
    let verify = source::Verify { trust_anyone: !args.verify_ssl, ..args.signed.added_to(args.expected.verify()) };
    let has_file_mode = args.kwargs.contains_key("file_mode");
    let contents = Contents {
        source: args.source,
        contents: args.contents,
        contents_pillar: args.contents_pillar,
        contents_grains: args.contents_grains,
        newline: args.contents_newline,
        verbatim: false,
        template: args.rendering.template,
        defaults: args.rendering.defaults,
        more: contents::variables(args.kwargs),
        verify,
    };
    let attributes = args.permissions.attributes(context);
    let backup = backups::is_enabled(&context.call, &args.writing.backup);
    let how = ManagedOptions {
        attrs: args.attrs,
        makedirs: args.permissions.makedirs,
        dir_mode: args.dir_mode,
        replace: args.replace,
        create: args.writing.create,
        show_changes: args.writing.show_changes,
        backup,
        umask: umask(context),
        check_cmd: args.writing.check(args.drafts, false),
        new_file_diff: args.new_file_diff,
        follow_symlinks: args.follow_symlinks,
    };
    let ignored = ignored::Ignored::new(args.ignore_ordering, args.ignore_whitespace, &args.ignore_comment_characters);
    let mut outcome = state(context, &args.name, &contents, attributes, &how);
    ignored.hide(&mut outcome);
    if has_file_mode {
        let warning = "The 'file_mode' argument will be ignored.  Please use 'mode' instead to set file permissions.";
        outcome.more.insert("warnings".into(), list![warning]);
    }
    if args.selinux.is_truthy() && Path::new(&args.name).exists() {
        // As Salt on a host without SELinux.
        outcome.result = Some(false);
        outcome.comment = "Failed to get selinux attributes".into();
    }
    Ok(outcome.in_order(["changes", "comment", "name", "result"]))
}

/// The bytes that decide whether a diff of a file is shown.
const TEXT_START: usize = 512;

/// Options of a managed file.
pub(super) struct ManagedOptions {
    pub makedirs: bool,
    pub dir_mode: Value,
    pub replace: bool,
    pub create: bool,
    pub show_changes: bool,
    /// Whether a replaced file is backed up in the cache directory.
    pub backup: bool,
    /// Mode bits that a new file does not get, unless its mode is set.
    pub umask: u32,
    /// Whether all lines of a new file are reported.
    pub new_file_diff: bool,
    /// Whether the target of a link is managed, not the link.
    pub follow_symlinks: bool,
    /// Command that receives the path of a draft; its exit status accepts or rejects the draft.
    pub check_cmd: Option<CheckCommand>,
    /// Attributes of the file on its file system, as in `chattr`.
    pub attrs: Option<String>,
}

/// A command that validates drafts.
pub(super) struct CheckCommand {
    pub command: String,
    /// Directory of drafts; the temporary directory by default.
    pub directory: Option<String>,
    /// Suffix of drafts.
    pub ending: String,
    /// Whether the lines of a rejected draft are reported.
    pub reports_lines: bool,
}

impl ManagedOptions {
    /// Returns the pending change of `attrs`.
    fn flags(&self, context: &StateContext, path: &Path) -> Result<Option<Change>, String> {
        let Some(attrs) = &self.attrs else { return Ok(None) };
        flags::change(&context.call, path, attrs).map_err(CallError::message)
    }
}

pub(super) fn state(
    context: &StateContext,
    name: &str,
    contents: &Contents,
    attributes: Result<Attributes, String>,
    how: &ManagedOptions,
) -> StateReturn {
    if let Some(bad) = invalid_path(name) {
        return bad;
    }
    let path = Path::new(name);
    let attributes = match attributes.and_then(|attributes| contents.with_source_mode(context, attributes)) {
        Ok(attributes) => attributes,
        Err(error) => return StateReturn::failed(name, error),
    };
    let metadata = std::fs::metadata(path).ok();
    if metadata.as_ref().is_some_and(Metadata::is_dir) {
        return StateReturn::failed(name, format!("Specified target {name} is a directory"));
    }
    let exists = metadata.is_some();
    if !exists && !how.create {
        return StateReturn::ok(name, format!("File {name} is not present and is not set for creation"));
    }
    let new_content = match contents.get(context, name) {
        Ok(content) => content.filter(|_| how.replace || !exists),
        // In test mode, Salt checks the source first, and reports its error without the usual prefix.
        Err(error)
            if context.test
                && ["ource ", "file: Unable to", "Failed to cache", "template format"]
                    .iter()
                    .any(|about| error.contains(about)) =>
        {
            return StateReturn::failed(name, error.strip_prefix("Unable to manage file: ").unwrap_or(&error));
        }
        Err(error) => return StateReturn::failed(name, error),
    };
    let has_no_content = new_content.is_none();
    // Contents that are null keep those of the file.
    let is_compared = new_content.is_some() || contents.is_inline() && how.replace;
    let have = if exists && is_compared { user_files::read(path).ok() } else { None };
    let Some(new_content) = new_content.or_else(|| if exists { have.clone() } else { Some(Vec::new()) }) else {
        return only_attributes(context, name, path, &attributes, how);
    };
    let mut changes = if have.as_deref() == Some(&new_content[..]) {
        Map::new()
    } else {
        difference(have.as_deref().or(how.new_file_diff.then_some(b"")), &new_content, how.show_changes)
    };
    if let Some(status) = &metadata {
        changes.extend(attributes.differences_from(status));
    } else {
        changes.extend(attributes.on_new_file(contents.source.is_truthy()));
    }
    if exists {
        match how.flags(context, path) {
            Ok(Some(change)) => _ = changes.insert("attrs".into(), change.to_map().into()),
            Ok(None) => {}
            Err(error) => return StateReturn::failed(name, error),
        }
    }
    if context.test {
        if changes.is_empty() {
            return StateReturn::ok(name, format!("The file {name} is in the correct state"));
        }
        let comment = format!(
            "The file {name} is set to be changed\nNote: No changes made, actual changes may\nbe different due to other states."
        );
        let mut changes = if exists || how.new_file_diff {
            changes
        } else {
            map! {"newfile" => name}
        };
        // A plan holds for this content only, also where no diff shows it.
        if have.as_deref() != Some(&new_content[..]) && context.call.is_planning() {
            changes.insert("sha256".into(), brine_digest::hex(brine_digest::Digest::Sha256.of(&new_content)).into());
        }
        return StateReturn::predicted(name, comment).with_changes(changes);
    }
    if changes.is_empty() {
        return StateReturn::ok(name, format!("File {name} is in the correct state"));
    }
    if let Some(command) = how.check_cmd.as_ref().filter(|_| have.as_deref() != Some(&new_content[..])) {
        match is_draft_accepted(context, command, &new_content) {
            Ok(true) => {}
            Ok(false) => {
                let mut failed = StateReturn::failed(name, "check_cmd execution failed");
                failed.more.insert("skip_watch".into(), true.into());
                if command.reports_lines {
                    failed.changes =
                        difference(Some(have.as_deref().unwrap_or_default()), &new_content, how.show_changes);
                }
                return failed;
            }
            Err(error) => return StateReturn::failed(name, error),
        }
    }
    if how.backup
        && exists
        && let Err(error) = backups::create(&context.call, path)
    {
        return StateReturn::failed(name, error);
    }
    let written = write(path, &new_content, have.as_deref(), &attributes, how).and_then(|()| {
        let Some(change) = how.flags(context, path)? else { return Ok(()) };
        changes.insert("attrs".into(), change.to_map().into());
        change.make(&context.call, path).map_err(CallError::message)
    });
    match written {
        Ok(()) if !exists && has_no_content => {
            changes.shift_remove("diff");
            let mut report = map! {"new" => format!("file {name} created")};
            report.extend(changes);
            StateReturn::ok(name, "Empty file").with_changes(report)
        }
        Ok(()) => StateReturn::ok(name, format!("File {name} updated")).with_changes(changes),
        Err(error) => StateReturn::failed(name, error),
    }
}

/// Runs the check command on the content before it is written.
fn is_draft_accepted(context: &StateContext, check: &CheckCommand, content: &[u8]) -> Result<bool, String> {
    let directory = check.directory.as_ref().map_or_else(std::env::temp_dir, PathBuf::from);
    let draft = cmd::Scratch::within(&directory, content, &check.ending).map_err(|error| error.to_string())?;
    cmd::succeeds(&context.call, &format!("{} {}", check.command, draft.path().display()))
        .map_err(|error| error.to_string())
}

fn only_attributes(
    context: &StateContext,
    name: &str,
    path: &Path,
    attributes: &Attributes,
    how: &ManagedOptions,
) -> StateReturn {
    let mut changes = attributes.differences_of(path, how.follow_symlinks);
    let flags = match how.flags(context, path) {
        Ok(flags) => flags,
        Err(error) => return StateReturn::failed(name, error),
    };
    if let Some(change) = &flags {
        changes.insert("attrs".into(), change.to_map().into());
    }
    if context.test {
        if changes.is_empty() {
            return StateReturn::ok(name, format!("File {name} not updated"));
        }
        let comment = match changes.get("mode") {
            Some(mode) => {
                let have = std::fs::metadata(path).map_or(0, |status| status.mode());
                let have = show_mode(have & 0o7777);
                format!("File {name} will be updated with permissions {mode} from its current state of {have}")
            }
            None => format!("File {name} will be updated"),
        };
        return StateReturn::predicted(name, comment).with_changes(changes);
    }
    if changes.is_empty() {
        return StateReturn::ok(name, format!("File {name} exists with proper permissions. No changes made."));
    }
    let applied = attributes
        .apply_to(path, how.follow_symlinks)
        .and_then(|_| flags.map_or(Ok(()), |change| change.make(&context.call, path).map_err(CallError::message)));
    match applied {
        Ok(()) => StateReturn::ok(name, "").with_changes(changes),
        Err(error) => StateReturn::failed(name, error),
    }
}

fn write(
    path: &Path,
    content: &[u8],
    have: Option<&[u8]>,
    attributes: &Attributes,
    how: &ManagedOptions,
) -> Result<(), String> {
    // A link that is not followed becomes a file: its target belongs to somebody else.
    let is_link = !how.follow_symlinks && path.is_symlink();
    if have != Some(content) || is_link && !attributes.differences(path).is_empty() {
        let directory = directory_of(path);
        if !directory.is_dir() {
            if !how.makedirs {
                return Err("Parent directory not present".into());
            }
            let mode = parse_mode(&how.dir_mode).or(attributes.mode.map(directory_mode));
            user_files::create_dir_all_with(directory, attributes.of_directories(mode))
                .map_err(|error| format!("Failed to create {}: {error}", directory.display()))?;
        }
        let links = if how.follow_symlinks { Links::Follow } else { Links::Keep };
        // An existing file keeps its mode and owner unless the state sets them. Not flushed per file: after a power
        // failure the next run writes it again.
        let target_mode = is_link.then(|| std::fs::metadata(path).ok()).flatten().map(|target| target.mode() & 0o7777);
        let mode = target_mode.unwrap_or(0o666 & !how.umask);
        Entry::resolve(path, links)
            .and_then(|entry| user_files::write_with(entry, content, attributes.to_write(), mode, Flush::Later))
            .map_err(|error| format!("Unable to manage file: writing {} failed: {error}", path.display()))?;
    }
    attributes.apply_to(path, how.follow_symlinks).map(|_| ())
}

/// Returns the `umask` of a state; 022 by default.
pub(super) fn umask(context: &StateContext) -> u32 {
    context.chunk.get("umask").and_then(parse_mode).unwrap_or(0o022)
}

/// Returns the change of the content, as `{diff}`; without `show`, a placeholder instead of the diff.
pub fn difference(have: Option<&[u8]>, new_content: &[u8], show: bool) -> Map {
    let Some(have) = have else { return map! {"diff" => "New file"} };
    if !show {
        return map! {"diff" => "<show_changes=False>"};
    }
    // As in Salt, a text that is not UTF-8 is read as Latin-1.
    let text = |bytes: &[u8]| {
        let is_text = !bytes.contains(&0) && !is_binary(&bytes[..bytes.len().min(TEXT_START)]);
        is_text.then(|| decode_any(bytes))
    };
    match (text(have), text(new_content)) {
        (Some(have), Some(new_content)) => {
            map! {"diff" => crate::file::diff::unified(&have, &new_content)}
        }
        (None, Some(_)) => map! {"diff" => "Replace binary file with text file"},
        (Some(_), None) => map! {"diff" => "Replace text file with binary file"},
        (None, None) => map! {"diff" => "Replace binary file"},
    }
}
