//! `file`: files and folders as states.
//!
//! `managed.rs` owns whole files and `contents.rs` what is in them, `attributes.rs` modes and owners, `folder.rs`
//! folders, `tree.rs` whole trees from a source, `edits.rs` and `edit.rs` changes within files, `place.rs` links,
//! copies and the like.

mod accumulated;
pub(super) mod attributes;
pub(super) mod cached;
mod comment;
mod contents;
mod decode;
mod edit;
pub(super) mod edits;
mod encoding;
mod folder;
mod ignored;
mod keyvalue;
mod line;
mod managed;
mod node;
mod patch;
mod pattern;
mod place;
mod pruned;
mod retention;
mod serialize;
mod signature;
pub(super) mod source;
mod tidied;
mod tree;
mod tree_plan;

use brine_core::function::{Args, CallResult, Function, function, registry};
use std::path::Path;

use brine_core::{Map, Value, map};

use super::{StateContext, StateReturn};
use attributes::Attributes;
pub(super) use contents::content;
pub(super) use managed::difference;
pub(crate) use pattern::Choice;
use place::Folders;
pub(crate) use place::{copy_tree, replace_link};

/// In which order results of copies are told.
const COPY_TOLD: [&str; 4] = ["name", "changes", "comment", "result"];

/// State functions of `file`.
pub static FUNCTIONS: &[Function<StateContext>] = registry!(
    "file",
    [
        managed,
        directory,
        serialize,
        recurse,
        symlink,
        hardlink,
        touch,
        copy,
        rename,
        tidied,
        accumulated,
        cached,
        not_cached,
        pruned,
        decode,
        mknod,
        patch,
        retention_schedule,
        absent,
        exists,
        missing
    ]
);

/// The arguments of `file.managed`.
#[derive(Args)]
pub struct ManagedArgs {
    /// Path of the file.
    name: String,
    /// URL or path of the content, or a list of them of which the first that exists is used.
    #[default]
    source: Value,
    /// Expected checksum of the source (`sha256=...`), or the URL of a file that lists checksums.
    #[default]
    source_hash: Option<String>,
    /// Name that the checksum has in the file of `source_hash`, if it is not that of the source.
    #[default]
    source_hash_name: Option<String>,
    /// Whether a source from elsewhere is taken without a checksum.
    #[default(false)]
    skip_verify: bool,
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
    /// Template engine that renders the source, such as `jinja`.
    #[default]
    template: Option<String>,
    /// Variables of the template, below those of `context`.
    #[default]
    defaults: Value,
    /// Permissions, as an octal string such as `'0644'`; `keep` takes those of the source.
    #[default]
    mode: Value,
    /// Name or id of the owner.
    #[default]
    user: Value,
    /// Name or id of the owning group.
    #[default]
    group: Value,
    /// Whether missing parent directories are created.
    #[default(false)]
    makedirs: bool,
    /// Permissions of directories that `makedirs` creates, as an octal string.
    #[default]
    dir_mode: Value,
    /// Whether a file that exists gets this content; otherwise only its attributes are managed.
    #[default(true)]
    replace: bool,
    /// Whether a missing file is created.
    #[default(true)]
    create: bool,
    /// Whether changes are reported as a diff.
    #[default(true)]
    show_changes: bool,
    /// Whether a replaced file is kept in the minion's cache: `minion`.
    #[default]
    backup: Value,
    /// Command that receives the path of a draft; the file is written only if it exits with 0.
    #[default]
    check_cmd: Option<String>,
    /// Whether the diff of a new file is reported.
    #[default(false)]
    new_file_diff: bool,
    /// Attributes of the file system that the file has, as `chattr` writes them.
    #[default]
    attrs: Option<String>,
    /// Directory of drafts for `check_cmd`.
    #[default]
    tmp_dir: Option<String>,
    /// Suffix of drafts for `check_cmd`.
    #[default]
    tmp_ext: String,
    /// Whether certificates of web servers are verified.
    #[default(true)]
    verify_ssl: bool,
    /// Whether a copy of a web file is reused as long as the server's ETag is the same.
    #[default(false)]
    use_etag: bool,
    /// URL of a detached GPG signature of the source.
    #[default]
    signature: Value,
    /// Signature of the file of `source_hash`: a URL, or `true` for one within the file.
    #[default]
    source_hash_sig: Value,
    /// Fingerprints of keys, one of which must have made a valid signature.
    #[default]
    signed_by_any: Value,
    /// Fingerprints of keys, all of which must have made a valid signature.
    #[default]
    signed_by_all: Value,
    /// Keyring file that signatures are verified with.
    #[default]
    keyring: Option<String>,
    /// GnuPG home directory that signatures are verified with.
    #[default]
    gnupghome: Option<String>,
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
    /// Further arguments: `context`, the variables of the template, and the state's own.
    #[keywords]
    kwargs: Map,
}

/// A file with this content: from a source under `salt://`, from `contents`, from pillar or grains.
#[function]
pub fn managed(context: &StateContext, #[args] args: ManagedArgs) -> CallResult {
    let hash = args.source_hash.filter(|hash| !hash.is_empty());
    let verify = source::Verify {
        hash,
        hash_name: args.source_hash_name,
        skip: args.skip_verify,
        use_etag: args.use_etag,
        trust_anyone: !args.verify_ssl,
        signature: args.signature,
        hash_signature: args.source_hash_sig,
        signers: source::Signers::new(&args.signed_by_any, &args.signed_by_all, args.keyring, args.gnupghome),
    };
    let contents = contents::Contents {
        source: args.source,
        contents: args.contents,
        contents_pillar: args.contents_pillar,
        contents_grains: args.contents_grains,
        newline: args.contents_newline,
        template: args.template,
        defaults: args.defaults,
        more: contents::variables(args.kwargs),
        verify,
    };
    let attributes = Attributes::of_state(context, &args.mode, &args.user, &args.group);
    let backup = args.backup.is_truthy() && args.backup.as_str() != Some("False");
    let how = managed::How {
        attrs: args.attrs,
        makedirs: args.makedirs,
        dir_mode: args.dir_mode,
        replace: args.replace,
        create: args.create,
        show_changes: args.show_changes,
        backup,
        umask: managed::umask(context),
        check_cmd: args.check_cmd.map(|command| managed::CheckCommand {
            command,
            folder: args.tmp_dir,
            ending: args.tmp_ext,
            tells_lines: false,
        }),
        new_file_diff: args.new_file_diff,
        follow_symlinks: args.follow_symlinks,
    };
    let ignored = ignored::Ignored::new(args.ignore_ordering, args.ignore_whitespace, &args.ignore_comment_characters);
    let mut done = managed::managed(context, &args.name, &contents, attributes, &how);
    ignored.hide(&mut done);
    if args.selinux.is_truthy() && Path::new(&args.name).exists() {
        // As Salt on a host without SELinux.
        done.result = Some(false);
        done.comment = "Failed to get selinux attributes".into();
    }
    Ok(done.in_order(["changes", "comment", "name", "result"]))
}

/// The arguments of `file.directory`.
#[derive(Args)]
pub struct DirectoryArgs {
    /// Path of the directory.
    name: String,
    /// Permissions of the directory, as an octal string.
    #[default]
    mode: Value,
    /// Permissions of the directory and, with `recurse`, of those below it; that of `mode` by default.
    #[default]
    dir_mode: Value,
    /// Permissions of files below the directory, with `recurse`, as an octal string.
    #[default]
    file_mode: Value,
    /// Name or id of the owner.
    #[default]
    user: Value,
    /// Name or id of the owning group.
    #[default]
    group: Value,
    /// What is managed below the directory too: `user`, `group`, `mode`; `ignore_files` and `ignore_dirs` leave
    /// these out.
    #[default]
    recurse: Vec<String>,
    /// Number of levels that `recurse` descends.
    #[default]
    max_depth: Option<usize>,
    /// Whether files are removed that no state manages which this one requires.
    #[default(false)]
    clean: bool,
    /// Paths that `clean` keeps: a glob, or a regular expression after `E@`.
    #[default]
    exclude_pat: Value,
    /// Whether missing parent directories are created.
    #[default(false)]
    makedirs: bool,
    /// Whether a file in the directory's place is removed.
    #[default(false)]
    force: bool,
    /// Name that a file in the directory's place is moved to.
    #[default]
    backupname: Option<String>,
    /// Whether the directory may be a symbolic link to one.
    #[default(true)]
    allow_symlink: bool,
    /// Whether the directory itself keeps its attributes.
    #[default(false)]
    children_only: bool,
    /// Whether symbolic links below the directory are followed.
    #[default(false)]
    follow_symlinks: bool,
    /// Further arguments, ignored.
    #[keywords]
    _kwargs: Map,
}

/// A folder, its mode and owner; with `recurse`, also those of what is in it. `clean` removes what
/// no state manages that this one requires.
#[function]
pub fn directory(context: &StateContext, #[args] args: DirectoryArgs) -> CallResult {
    let name = &args.name;
    const INSIDE: [&str; 6] = ["user", "group", "mode", "ignore_files", "ignore_dirs", "silent"];
    if !args.allow_symlink && Path::new(name).is_symlink() {
        return Ok(StateReturn::failed(name, format!("Specified location {name} exists and is a symlink")).into());
    }
    if args.recurse.iter().any(|word| !INSIDE.contains(&word.as_str())) {
        let known = INSIDE.map(|word| format!("\"{word}\"")).join(", ");
        return Ok(StateReturn::failed(name, format!("Types for \"recurse\" limited to {known}.")).into());
    }
    let own_mode = if args.dir_mode.is_truthy() { &args.dir_mode } else { &args.mode };
    let inside = |wanted: &str| args.recurse.iter().any(|word| word == wanted);
    let nothing = Value::Nil;
    let only = |wanted: &str, value: &Value| if inside(wanted) { value.clone() } else { nothing.clone() };
    let (user_inside, group_inside) = (only("user", &args.user), only("group", &args.group));
    let read = || {
        Ok(folder::Folder {
            attributes: Attributes::of_state(context, own_mode, &args.user, &args.group)?,
            files: Attributes::of_state(context, &only("mode", &args.file_mode), &user_inside, &group_inside)?,
            folders: Attributes::of_state(context, &only("mode", own_mode), &user_inside, &group_inside)?,
            recurse: (!args.recurse.is_empty()).then_some(folder::Recurse {
                max_depth: args.max_depth.unwrap_or(usize::MAX),
                files: !inside("ignore_files"),
                folders: !inside("ignore_dirs"),
            }),
            follow: args.follow_symlinks,
            clean: args.clean,
            exclude: pattern::patterns(&args.exclude_pat),
            makedirs: args.makedirs,
            force: args.force,
            children_only: args.children_only,
            backup: args.backupname.clone(),
        })
    };
    let done: Result<_, String> = read();
    Ok(done
        .map_or_else(|error| StateReturn::failed(name, error), |wanted| folder::state(context, name, &wanted))
        .into())
}

/// The arguments of `file.serialize`.
#[derive(Args)]
pub struct SerializeArgs {
    /// Path of the file.
    name: String,
    /// Data to serialize.
    #[default]
    dataset: Value,
    /// Pillar key of the data to serialize.
    #[default]
    dataset_pillar: Option<String>,
    /// Format; `serializer` takes precedence.
    #[default]
    formatter: Option<String>,
    /// Format: `yaml` by default, `json`, `python`.
    #[default]
    serializer: Option<String>,
    /// Options of the serializer, such as `indent`.
    #[default]
    serializer_opts: Value,
    /// Whether the data is merged into what the file has.
    #[default(false)]
    merge_if_exists: bool,
    /// Permissions, as an octal string such as `'0644'`; `keep` takes those of the source.
    #[default]
    mode: Value,
    /// Name or id of the owner.
    #[default]
    user: Value,
    /// Name or id of the owning group.
    #[default]
    group: Value,
    /// Whether missing parent directories are created.
    #[default(false)]
    makedirs: bool,
    /// Whether a missing file is created.
    #[default(true)]
    create: bool,
    /// Whether changes are reported as a diff.
    #[default(true)]
    show_changes: bool,
    /// Whether a replaced file is kept in the minion's cache: `minion`.
    #[default]
    backup: Value,
    /// Command that receives the path of a draft; the file is written only if it exits with 0.
    #[default]
    check_cmd: Option<String>,
    /// Directory of drafts for `check_cmd`.
    #[default]
    tmp_dir: Option<String>,
    /// Suffix of drafts for `check_cmd`.
    #[default]
    tmp_ext: String,
    /// Further arguments, ignored.
    #[keywords]
    _kwargs: Map,
}

/// Data written to a file, as yaml, json or python; `merge_if_exists` keeps what the file has beside.
#[function]
pub fn serialize(context: &StateContext, #[args] args: SerializeArgs) -> CallResult {
    let name = &args.name;
    let format = args.serializer.or(args.formatter).unwrap_or_else(|| "yaml".into()).to_lowercase();
    let wanted = serialize::Dataset {
        dataset: args.dataset,
        pillar: args.dataset_pillar,
        format,
        options: args.serializer_opts,
        merge_if_exists: args.merge_if_exists,
    };
    let (text, merged) = match serialize::text(context, name, wanted) {
        Ok(done) => done,
        Err(error) => return Ok(StateReturn::failed(name, error).into()),
    };
    let contents = contents::Contents::inline_text(text);
    let how = managed::How {
        new_file_diff: false,
        follow_symlinks: true,
        attrs: None,
        makedirs: args.makedirs,
        dir_mode: Value::Nil,
        replace: true,
        create: args.create,
        show_changes: args.show_changes,
        backup: args.backup.is_truthy(),
        umask: managed::umask(context),
        check_cmd: args.check_cmd.map(|command| managed::CheckCommand {
            command,
            folder: args.tmp_dir,
            ending: args.tmp_ext,
            tells_lines: true,
        }),
    };
    let mut done = managed::managed(
        context,
        name,
        &contents,
        Attributes::of_state(context, &args.mode, &args.user, &args.group),
        &how,
    );
    if let (Some(merged), Some(diff)) = (merged, done.changes.get_mut("diff")) {
        *diff = merged.into();
    }
    if context.test && done.result.is_none() {
        done.comment = format!("Dataset will be serialized and stored into {name}");
    }
    Ok(done.into())
}

/// The arguments of `file.recurse`.
#[derive(Args)]
pub struct RecurseArgs {
    /// Path of the directory.
    name: String,
    /// URL of the directory to copy, such as `salt://code`, or a list of them.
    source: Value,
    /// Whether files are removed that the source does not have.
    #[default(false)]
    clean: bool,
    /// Name or id of the owner.
    #[default]
    user: Value,
    /// Name or id of the owning group.
    #[default]
    group: Value,
    /// Permissions of directories, as an octal string.
    #[default]
    dir_mode: Value,
    /// Permissions of files, as an octal string; `keep` takes those of the source.
    #[default]
    file_mode: Value,
    /// Template engine that renders the source, such as `jinja`.
    #[default]
    template: Option<String>,
    /// Variables of the template, below those of `context`.
    #[default]
    defaults: Value,
    /// Whether empty directories are created.
    #[default(false)]
    include_empty: bool,
    /// Paths that are copied: a glob, or a regular expression after `E@`.
    #[default]
    include_pat: Value,
    /// Paths that are not copied: a glob, or a regular expression after `E@`.
    #[default]
    exclude_pat: Value,
    /// Whether files that exist get the content of the source.
    #[default(true)]
    replace: bool,
    /// Whether a replaced file is kept in the minion's cache: `minion`.
    #[default]
    backup: Value,
    /// Number of levels to descend.
    #[default]
    maxdepth: Option<usize>,
    /// Whether symbolic links of the source become links.
    #[default(false)]
    keep_symlinks: bool,
    /// Whether a symbolic link replaces a file in its place.
    #[default(false)]
    force_symlinks: bool,
    /// Permissions of symbolic links.
    #[default]
    sym_mode: Value,
    /// Whether all sources are merged, not only the first that exists copied.
    #[default(false)]
    merge: bool,
    /// Further arguments: `context`, the variables of the template, and the state's own.
    #[keywords]
    kwargs: Map,
}

/// A tree of files as it is under `salt://`.
#[function]
pub fn recurse(context: &StateContext, #[args] args: RecurseArgs) -> CallResult {
    if args.kwargs.contains_key("mode") {
        let comment = "'mode' is not allowed in 'file.recurse'. Please use 'file_mode' and 'dir_mode'.";
        return Ok(StateReturn::failed(&args.name, comment).into());
    }
    let more = contents::variables(args.kwargs);
    let choice = Choice::new(&args.include_pat, &args.exclude_pat);
    let sources = tree_plan::Sources {
        source: args.source,
        merge: args.merge,
        include_empty: args.include_empty,
        keep_links: args.keep_symlinks,
        choice,
        max_depth: args.maxdepth.unwrap_or(usize::MAX),
    };
    let wanted = tree::Tree {
        sources,
        clean: args.clean,
        user: args.user,
        group: args.group,
        dir_mode: args.dir_mode,
        file_mode: args.file_mode,
        template: args.template,
        defaults: args.defaults,
        more,
        replace: args.replace,
        backup: args.backup.is_truthy(),
        force_links: args.force_symlinks,
        link_mode: args.sym_mode,
    };
    Ok(tree::state(context, &args.name, &wanted).into())
}

/// The arguments of `file.symlink`.
#[derive(Args)]
pub struct SymlinkArgs {
    /// Path of the link.
    name: String,
    /// Path that the link refers to.
    target: String,
    /// Whether a file in the link's place is removed.
    #[default(false)]
    force: bool,
    /// Whether missing parent directories are created.
    #[default(false)]
    makedirs: bool,
    /// Name or id of the owner.
    #[default]
    user: Value,
    /// Name or id of the owning group.
    #[default]
    group: Value,
    /// Permissions of directories that `makedirs` creates, as an octal string.
    #[default]
    mode: Value,
    /// Name that a file in the link's place is moved to.
    #[default]
    backupname: Option<String>,
    /// Further arguments, ignored.
    #[keywords]
    _kwargs: Map,
}

/// A symbolic link to a target. `force` removes a file that is in its place.
#[function]
pub fn symlink(context: &StateContext, #[args] args: SymlinkArgs) -> CallResult {
    if let Some(backup) = args.backupname.filter(|_| !context.test)
        && let Err(error) = place::put_aside(&args.name, &backup, args.force)
    {
        return Ok(StateReturn::failed(&args.name, error).into());
    }
    Ok(place::symlink(
        context,
        &args.name,
        &args.target,
        args.force,
        Folders::new(args.makedirs, &args.mode),
        &args.user,
        &args.group,
    )
    .into())
}

/// A hard link to a file. `force` removes what is in its place.
#[function]
pub fn hardlink(
    context: &StateContext,
    name: String,
    target: String,
    #[default(false)] force: bool,
    #[default(false)] makedirs: bool,
    #[default] dir_mode: Value,
    #[keywords] _kwargs: Map,
) -> CallResult {
    Ok(place::hardlink(context, &name, &target, force, Folders::new(makedirs, &dir_mode)).into())
}

/// A file, made if it is missing, with its times set to now.
#[function]
pub fn touch(
    context: &StateContext,
    name: String,
    #[default] atime: Option<u64>,
    #[default] mtime: Option<u64>,
    #[default(false)] makedirs: bool,
) -> CallResult {
    Ok(place::touch(context, &name, (atime, mtime), makedirs).into())
}

/// The arguments of `file.copy`.
#[derive(Args)]
pub struct CopyArgs {
    /// Path of the copy.
    name: String,
    /// Path of the file on this host.
    source: String,
    /// Whether a file that exists is replaced.
    #[default(false)]
    force: bool,
    /// Whether missing parent directories are created.
    #[default(false)]
    makedirs: bool,
    /// Name or id of the owner.
    #[default]
    user: Value,
    /// Name or id of the owning group.
    #[default]
    group: Value,
    /// Permissions of the copy, as an octal string.
    #[default]
    mode: Value,
    /// Permissions of directories that `makedirs` creates, as an octal string.
    #[default]
    dir_mode: Value,
    /// Whether the copy goes into `name` if that is a directory.
    #[default(false)]
    subdir: bool,
    /// Further arguments, ignored.
    #[keywords]
    _kwargs: Map,
}

/// A copy of a file of this host, made if it is missing; `force` makes it again.
#[function]
pub fn copy(context: &StateContext, #[args] args: CopyArgs) -> CallResult {
    let name = &args.name;
    let source = &args.source;
    // Who gets a file gets it for their group, too.
    let group = if args.group.is_truthy() || !args.user.is_truthy() {
        args.group
    } else {
        attributes::primary_group(&args.user)
    };
    let attributes = Attributes::of_state(context, &args.mode, &args.user, &group);
    let folders = Folders::new(args.makedirs, &args.dir_mode);
    if !(args.subdir && Path::new(name).is_dir()) {
        let done = place::copy(context, name, source, args.force, folders, attributes);
        return Ok(done.in_order(COPY_TOLD));
    }
    let inside = Path::new(name).join(Path::new(source).file_name().unwrap_or_default()).display().to_string();
    let done = place::copy(context, &inside, source, args.force, folders, attributes);
    // Salt tells of the folder once it has copied.
    let (from, to) = (format!("Copied \"{source}\" to \"{inside}\""), format!("Copied \"{source}\" to \"{name}\""));
    Ok(StateReturn { comment: done.comment.replace(&from, &to), name: args.name, ..done }.in_order(COPY_TOLD))
}

/// A file moved from another place, if it is still there.
#[function]
pub fn rename(
    context: &StateContext,
    name: String,
    source: String,
    #[default(false)] force: bool,
    #[default(false)] makedirs: bool,
    #[keywords] _kwargs: Map,
) -> CallResult {
    Ok(place::rename(context, &name, &source, force, makedirs).into())
}

/// The arguments of `file.tidied`.
#[derive(Args)]
pub struct TidiedArgs {
    /// Path of the directory.
    name: String,
    /// Age in days from which files are removed.
    #[default(0.0)]
    age: f64,
    /// Regular expressions of names, one of which must match.
    #[default]
    matches: Value,
    /// Whether directories are removed too.
    #[default(false)]
    rmdirs: bool,
    /// Size from which files are removed, such as `10m`.
    #[default(0.into())]
    size: Value,
    /// Regular expressions of names that are kept.
    #[default]
    exclude: Value,
    /// Whether the expressions are matched against whole paths.
    #[default(false)]
    full_path_match: bool,
    /// Whether symbolic links to directories are followed.
    #[default(false)]
    followlinks: bool,
    /// Which time the age is measured by: `atime`, `mtime` or `ctime`.
    #[default("atime".into())]
    time_comparison: String,
    /// Whether age and size must both be reached (`AND`) or one of them (`OR`).
    #[default("OR".into())]
    age_size_logical_operator: String,
    /// `age` or `size`: the other one is not looked at.
    #[default]
    age_size_only: Option<String>,
    /// Whether symbolic links are removed too.
    #[default(true)]
    rmlinks: bool,
    /// Further arguments, ignored.
    #[keywords]
    _kwargs: Map,
}

/// A folder without what is older than `age` days or at least `size` large, both with
/// `age_size_logical_operator: AND`, or one alone with `age_size_only`.
#[function]
pub fn tidied(context: &StateContext, #[args] args: TidiedArgs) -> CallResult {
    let matches = if args.matches.is_nil() { tidied::patterns(&".*".into()) } else { tidied::patterns(&args.matches) };
    let patterns = matches.and_then(|matches| Ok((matches, tidied::patterns(&args.exclude)?)));
    let (matches, exclude) = match patterns {
        Ok(patterns) => patterns,
        Err(error) => return Ok(StateReturn::failed(&args.name, error).into()),
    };
    let wanted = tidied::Wanted {
        age: args.age,
        matches,
        exclude,
        rmdirs: args.rmdirs,
        rmlinks: args.rmlinks,
        full_path_match: args.full_path_match,
        followlinks: args.followlinks,
        size: tidied::bytes(&args.size.to_string()),
        time: tidied::Time::named(&args.time_comparison),
        judge: tidied::Judge::new(args.age_size_only.as_deref(), &args.age_size_logical_operator),
    };
    Ok(tidied::state(context, &args.name, &wanted).into())
}

/// Texts for a file that another state makes, which requires this one: they are `accumulator` in its template, or
/// come into its block.
#[function]
pub fn accumulated(
    context: &StateContext,
    name: String,
    filename: String,
    text: Value,
    #[keywords] _kwargs: Map,
) -> CallResult {
    Ok(accumulated::state(context, &name, &filename, &text).into())
}

/// The arguments of `file.cached`.
#[derive(Args)]
pub struct CachedArgs {
    /// URL of the file.
    name: String,
    /// Expected checksum of the source (`sha256=...`), or the URL of a file that lists checksums.
    #[default]
    source_hash: Option<String>,
    /// Name that the checksum has in the file of `source_hash`, if it is not that of the source.
    #[default]
    source_hash_name: Option<String>,
    /// Whether a source from elsewhere is taken without a checksum.
    #[default(false)]
    skip_verify: bool,
    /// Environment of the file server; that of the SLS by default.
    #[default]
    saltenv: Option<String>,
    /// Whether a copy of a web file is reused as long as the server's ETag is the same.
    #[default(false)]
    use_etag: bool,
    /// Signature of the file of `source_hash`: a URL, or `true` for one within the file.
    #[default]
    source_hash_sig: Value,
    /// Fingerprints of keys, one of which must have made a valid signature.
    #[default]
    signed_by_any: Value,
    /// Fingerprints of keys, all of which must have made a valid signature.
    #[default]
    signed_by_all: Value,
    /// Keyring file that signatures are verified with.
    #[default]
    keyring: Option<String>,
    /// GnuPG home directory that signatures are verified with.
    #[default]
    gnupghome: Option<String>,
    /// Accepted and ignored: GPG verifies signatures.
    #[default]
    sig_backend: Option<String>,
}

/// A file of the file server or a web server, kept in the cache folder.
#[function]
pub fn cached(context: &StateContext, #[args] args: CachedArgs) -> CallResult {
    // There is one backend.
    _ = args.sig_backend;
    let signers = source::Signers::new(&args.signed_by_any, &args.signed_by_all, args.keyring, args.gnupghome);
    let hash = args.source_hash.filter(|hash| !hash.is_empty());
    let verify = source::Verify {
        hash,
        hash_name: args.source_hash_name,
        skip: args.skip_verify,
        use_etag: args.use_etag,
        hash_signature: args.source_hash_sig,
        signers,
        ..source::Verify::default()
    };
    let context = StateContext { saltenv: args.saltenv.unwrap_or_else(|| context.saltenv.clone()), ..context.clone() };
    Ok(cached::state(&context, &args.name, &verify).into())
}

/// No copy of a file in the cache.
#[function]
pub fn not_cached(context: &StateContext, name: String, #[default("base".into())] saltenv: String) -> CallResult {
    Ok(cached::removed(context, &name, &saltenv).into())
}

/// No folder at this path if it is empty; with `recurse` neither the empty ones below it, and with `ignore_errors`
/// those that are not empty may stay. With `older_than`, only those that have not changed for as many days.
#[function]
pub fn pruned(
    context: &StateContext,
    name: String,
    #[default(false)] recurse: bool,
    #[default(false)] ignore_errors: bool,
    #[default] older_than: Option<u64>,
) -> CallResult {
    pruned::state(context, &name, recurse || ignore_errors, ignore_errors, older_than)
}

/// A file with what a text in base64 means: one in the state or in the pillar.
#[function]
pub fn decode(
    context: &StateContext,
    name: String,
    #[default] encoded_data: Option<String>,
    #[default] contents_pillar: Option<String>,
    #[default("base64".into())] encoding_type: String,
    #[default("md5".into())] checksum: String,
) -> CallResult {
    // There is no other, and none in Salt.
    _ = encoding_type;
    Ok(decode::state(context, &name, encoded_data, contents_pillar, &checksum)
        .unwrap_or_else(|error| StateReturn::failed(&name, error))
        .into())
}

/// A character device (`c`), a block device (`b`) or a pipe (`p`).
#[function]
pub fn mknod(
    context: &StateContext,
    name: String,
    ntype: String,
    #[default(0)] major: i64,
    #[default(0)] minor: i64,
    #[default] user: Value,
    #[default] group: Value,
    #[default("0600".into())] mode: Value,
) -> CallResult {
    node::Node { kind: ntype, number: (major, minor), user, group, mode }.state(context, &name)
}

/// The arguments of `file.patch`.
#[derive(Args)]
pub struct PatchArgs {
    /// Path of the file or directory to patch.
    name: String,
    /// URL of the patch, or a list of them of which the first that exists is used.
    #[default]
    source: Value,
    /// Expected checksum of the source (`sha256=...`), or the URL of a file that lists checksums.
    #[default]
    source_hash: Option<String>,
    /// Name that the checksum has in the file of `source_hash`, if it is not that of the source.
    #[default]
    source_hash_name: Option<String>,
    /// Whether a source from elsewhere is taken without a checksum.
    #[default(false)]
    skip_verify: bool,
    /// Template engine that renders the source, such as `jinja`.
    #[default]
    template: Option<String>,
    /// Variables of the template, below those of `context`.
    #[default]
    defaults: Value,
    /// Further options of the program `patch`.
    #[default]
    options: String,
    /// Path of the file for rejected hunks.
    #[default]
    reject_file: Option<String>,
    /// Number of leading components to strip from paths in the patch.
    #[default]
    strip: Option<i64>,
    /// Environment of the file server; that of the SLS by default.
    #[default]
    saltenv: Option<String>,
    /// Further arguments, ignored; `hash` and `dry_run_first` with a warning.
    #[keywords]
    kwargs: Map,
}

/// A file, or the files of a folder, with a patch applied.
#[function]
pub fn patch(context: &StateContext, #[args] args: PatchArgs) -> CallResult {
    let warnings: Vec<String> = ["hash", "dry_run_first"]
        .iter()
        .filter(|key| args.kwargs.contains_key(**key))
        .map(|key| format!("The '{key}' argument is no longer used and has been ignored."))
        .collect();
    let context = StateContext { saltenv: args.saltenv.unwrap_or_else(|| context.saltenv.clone()), ..context.clone() };
    let verify =
        source::Verify { skip: args.skip_verify, ..source::Verify::by_hash(args.source_hash, args.source_hash_name) };
    let contents = contents::Contents {
        source: args.source,
        contents: Value::Nil,
        template: args.template,
        defaults: args.defaults,
        verify,
        ..contents::Contents::inline_text(String::new())
    };
    let done = patch::check(
        &args.name,
        &patch::Wanted { options: args.options, strip: args.strip, reject_file: args.reject_file.clone() },
    )
    .and_then(|how| {
        let patch = contents.get(&context, &args.name)?.unwrap_or_default();
        patch::state(&context, &args.name, &patch, how, args.reject_file.as_deref())
    });
    let mut done = done.unwrap_or_else(|error| StateReturn::failed(&args.name, error));
    if !warnings.is_empty() {
        done.more.insert("warnings".into(), warnings.into());
    }
    Ok(done.into())
}

/// A folder of backups that keeps those that `retain` names (`most_recent`, `first_of_hour`, `first_of_day`,
/// `first_of_week`, `first_of_month`, `first_of_year`: how many of each, or `all`) and no others. With
/// `strptime_format`, names say when their files are of, and files with other names stay.
#[function]
pub fn retention_schedule(
    context: &StateContext,
    name: String,
    retain: Value,
    #[default] strptime_format: Option<String>,
    #[default] timezone: Option<String>,
) -> CallResult {
    let rules = retain.as_map().cloned().unwrap_or_default();
    Ok(retention::state(context, &name, &rules, strptime_format.as_deref(), timezone.as_deref())
        .unwrap_or_else(|error| StateReturn::failed(&name, error))
        .into())
}

/// Nothing at this path.
#[function]
pub fn absent(context: &StateContext, name: String, #[keywords] _kwargs: Map) -> CallResult {
    Ok(absent_state(context, &name).into())
}

/// Something at this path: says whether there is.
#[function]
pub fn exists(_context: &StateContext, name: String, #[keywords] _kwargs: Map) -> CallResult {
    let there = Path::new(&name).exists();
    Ok(if there {
        StateReturn::ok(&name, format!("Path {name} exists"))
    } else {
        StateReturn::failed(&name, format!("Specified path {name} does not exist"))
    }
    .into())
}

/// Nothing at this path: says whether there is.
#[function]
pub fn missing(_context: &StateContext, name: String, #[keywords] _kwargs: Map) -> CallResult {
    let there = Path::new(&name).exists();
    Ok(if there {
        StateReturn::failed(&name, format!("Specified path {name} exists"))
    } else {
        StateReturn::ok(&name, format!("Path {name} is missing"))
    }
    .into())
}

/// Why a path cannot be one.
fn bad_path(name: &str) -> Option<StateReturn> {
    if name.is_empty() {
        return Some(StateReturn::failed(name, "Must provide name to file.managed"));
    }
    (!Path::new(name).is_absolute())
        .then(|| StateReturn::failed(name, format!("Specified file {name} is not an absolute path")))
}

fn absent_state(context: &StateContext, name: &str) -> StateReturn {
    if name.is_empty() {
        return StateReturn::failed(name, "Must provide name to file.absent");
    }
    if let Some(bad) = bad_path(name) {
        return bad;
    }
    if name == "/" {
        return StateReturn::failed(name, "Refusing to make \"/\" absent");
    }
    let path = Path::new(name);
    let Ok(status) = std::fs::symlink_metadata(path) else {
        return StateReturn::ok(name, format!("File {name} is not present"));
    };
    let (kind, is_folder) = if status.is_dir() { ("Directory", true) } else { ("File", false) };
    if context.test {
        return StateReturn::would(name, format!("{kind} {name} is set for removal"))
            .with_changes(map! {"removed" => name});
    }
    let removed = if is_folder { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) };
    match removed {
        Ok(()) => StateReturn::ok(name, format!("Removed {} {name}", kind.to_lowercase()))
            .with_changes(map! {"removed" => name}),
        Err(error) => StateReturn::failed(name, format!("Failed to remove {name}: {error}")),
    }
}

#[cfg(test)]
mod tests;
