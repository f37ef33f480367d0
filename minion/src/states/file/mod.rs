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

use std::path::Path;

use brine_function::functions;
use brine_value::{Value, map};

use super::{StateContext, StateReturn};
use attributes::Attributes;
pub(super) use contents::content;
pub(super) use managed::difference;
pub(crate) use pattern::Choice;
use place::Folders;
pub(crate) use place::{copy_tree, replace_link};

/// In which order results of copies are told.
const COPY_TOLD: [&str; 4] = ["name", "changes", "comment", "result"];

functions! {
    module "file", context StateContext;

    /// A file with this content: from a source under `salt://`, from `contents`, from pillar or grains.
    fn managed(
        context,
        name: String,
        source: Value = Value::Nil,
        source_hash: Option<String> = None,
        source_hash_name: Option<String> = None,
        skip_verify: bool = false,
        contents: Value = Value::Nil,
        contents_pillar: Value = Value::Nil,
        contents_grains: Value = Value::Nil,
        contents_newline: bool = true,
        template: Option<String> = None,
        defaults: Value = Value::Nil,
        mode: Value = Value::Nil,
        user: Value = Value::Nil,
        group: Value = Value::Nil,
        makedirs: bool = false,
        dir_mode: Value = Value::Nil,
        replace: bool = true,
        create: bool = true,
        show_changes: bool = true,
        backup: Value = Value::Nil,
        check_cmd: Option<String> = None,
        new_file_diff: bool = false,
        attrs: Option<String> = None,
        tmp_dir: Option<String> = None,
        tmp_ext: String = String::new(),
        verify_ssl: bool = true,
        use_etag: bool = false,
        signature: Value = Value::Nil,
        source_hash_sig: Value = Value::Nil,
        signed_by_any: Value = Value::Nil,
        signed_by_all: Value = Value::Nil,
        keyring: Option<String> = None,
        gnupghome: Option<String> = None,
        ignore_ordering: bool = false,
        ignore_whitespace: bool = false,
        ignore_comment_characters: Value = Value::Nil,
        follow_symlinks: bool = true,
        selinux: Value = Value::Nil,
        **kwargs
    ) {
        let hash = source_hash.filter(|hash| !hash.is_empty());
        let verify = source::Verify {
            hash, hash_name: source_hash_name, skip: skip_verify, use_etag, trust_anyone: !verify_ssl, signature, hash_signature: source_hash_sig,
            signers: source::Signers::new(&signed_by_any, &signed_by_all, keyring, gnupghome),
        };
        let contents = contents::Contents { source, contents, contents_pillar, contents_grains, newline: contents_newline, template, defaults, more: contents::variables(kwargs), verify };
        let attributes = Attributes::of_state(context, &mode, &user, &group);
        let backup = backup.is_truthy() && backup.as_str() != Some("False");
        let how = managed::How { attrs, makedirs, dir_mode, replace, create, show_changes, backup, umask: managed::umask(context), check_cmd: check_cmd.map(|command| managed::CheckCommand { command, folder: tmp_dir, ending: tmp_ext, tells_lines: false }), new_file_diff, follow_symlinks };
        let ignored = ignored::Ignored::new(ignore_ordering, ignore_whitespace, &ignore_comment_characters);
        let mut done = managed::managed(context, &name, &contents, attributes, &how);
        ignored.hide(&mut done);
        if selinux.is_truthy() && Path::new(&name).exists() {
            // As Salt on a host without SELinux.
            done.result = Some(false);
            done.comment = "Failed to get selinux attributes".into();
        }
        Ok(done.in_order(["changes", "comment", "name", "result"]))
    }

    /// A folder, its mode and owner; with `recurse`, also those of what is in it. `clean` removes what
    /// no state manages that this one requires.
    fn directory(
        context,
        name: String,
        mode: Value = Value::Nil,
        dir_mode: Value = Value::Nil,
        file_mode: Value = Value::Nil,
        user: Value = Value::Nil,
        group: Value = Value::Nil,
        recurse: Vec<String> = Vec::new(),
        max_depth: Option<usize> = None,
        clean: bool = false,
        exclude_pat: Value = Value::Nil,
        makedirs: bool = false,
        force: bool = false,
        backupname: Option<String> = None,
        allow_symlink: bool = true,
        children_only: bool = false,
        follow_symlinks: bool = false,
        **_kwargs
    ) {
        const INSIDE: [&str; 6] = ["user", "group", "mode", "ignore_files", "ignore_dirs", "silent"];
        if !allow_symlink && Path::new(&name).is_symlink() {
            return Ok(StateReturn::failed(&name, format!("Specified location {name} exists and is a symlink")).into());
        }
        if recurse.iter().any(|word| !INSIDE.contains(&word.as_str())) {
            let known = INSIDE.map(|word| format!("\"{word}\"")).join(", ");
            return Ok(StateReturn::failed(&name, format!("Types for \"recurse\" limited to {known}.")).into());
        }
        let own_mode = if dir_mode.is_truthy() { &dir_mode } else { &mode };
        let inside = |wanted: &str| recurse.iter().any(|word| word == wanted);
        let nothing = Value::Nil;
        let only = |wanted: &str, value: &Value| if inside(wanted) { value.clone() } else { nothing.clone() };
        let (user_inside, group_inside) = (only("user", &user), only("group", &group));
        let read = || Ok(folder::Folder {
            attributes: Attributes::of_state(context, own_mode, &user, &group)?,
            files: Attributes::of_state(context, &only("mode", &file_mode), &user_inside, &group_inside)?,
            folders: Attributes::of_state(context, &only("mode", own_mode), &user_inside, &group_inside)?,
            recurse: (!recurse.is_empty()).then_some(folder::Recurse {
                max_depth: max_depth.unwrap_or(usize::MAX),
                files: !inside("ignore_files"),
                folders: !inside("ignore_dirs"),
            }),
            follow: follow_symlinks,
            clean,
            exclude: pattern::patterns(&exclude_pat),
            makedirs,
            force,
            children_only,
            backup: backupname.clone(),
        });
        let done: Result<_, String> = read();
        Ok(done.map_or_else(|error| StateReturn::failed(&name, error), |wanted| folder::state(context, &name, &wanted)).into())
    }

    /// Data written to a file, as yaml, json or python; `merge_if_exists` keeps what the file has beside.
    fn serialize(
        context,
        name: String,
        dataset: Value = Value::Nil,
        dataset_pillar: Option<String> = None,
        formatter: Option<String> = None,
        serializer: Option<String> = None,
        serializer_opts: Value = Value::Nil,
        merge_if_exists: bool = false,
        mode: Value = Value::Nil,
        user: Value = Value::Nil,
        group: Value = Value::Nil,
        makedirs: bool = false,
        create: bool = true,
        show_changes: bool = true,
        backup: Value = Value::Nil,
        check_cmd: Option<String> = None,
        tmp_dir: Option<String> = None,
        tmp_ext: String = String::new(),
        **_kwargs
    ) {
        let format = serializer.or(formatter).unwrap_or_else(|| "yaml".into()).to_lowercase();
        let wanted = serialize::Dataset { dataset, pillar: dataset_pillar, format, options: serializer_opts, merge_if_exists };
        let (text, merged) = match serialize::text(context, &name, wanted) {
            Ok(done) => done,
            Err(error) => return Ok(StateReturn::failed(&name, error).into()),
        };
        let contents = contents::Contents::inline_text(text);
        let how = managed::How {
            new_file_diff: false,
            follow_symlinks: true,
            attrs: None,
            makedirs, dir_mode: Value::Nil, replace: true, create, show_changes, backup: backup.is_truthy(), umask: managed::umask(context),
            check_cmd: check_cmd.map(|command| managed::CheckCommand { command, folder: tmp_dir, ending: tmp_ext, tells_lines: true }),
        };
        let mut done = managed::managed(context, &name, &contents, Attributes::of_state(context, &mode, &user, &group), &how);
        if let (Some(merged), Some(diff)) = (merged, done.changes.get_mut("diff")) {
            *diff = merged.into();
        }
        if context.test && done.result.is_none() {
            done.comment = format!("Dataset will be serialized and stored into {name}");
        }
        Ok(done.into())
    }

    /// A tree of files as it is under `salt://`.
    fn recurse(
        context,
        name: String,
        source: Value,
        clean: bool = false,
        user: Value = Value::Nil,
        group: Value = Value::Nil,
        dir_mode: Value = Value::Nil,
        file_mode: Value = Value::Nil,
        template: Option<String> = None,
        defaults: Value = Value::Nil,
        include_empty: bool = false,
        include_pat: Value = Value::Nil,
        exclude_pat: Value = Value::Nil,
        replace: bool = true,
        backup: Value = Value::Nil,
        maxdepth: Option<usize> = None,
        keep_symlinks: bool = false,
        force_symlinks: bool = false,
        sym_mode: Value = Value::Nil,
        merge: bool = false,
        **kwargs
    ) {
        if kwargs.contains_key("mode") {
            let comment = "'mode' is not allowed in 'file.recurse'. Please use 'file_mode' and 'dir_mode'.";
            return Ok(StateReturn::failed(&name, comment).into());
        }
        let more = contents::variables(kwargs);
        let choice = Choice::new(&include_pat, &exclude_pat);
        let sources = tree_plan::Sources { source, merge, include_empty, keep_links: keep_symlinks, choice, max_depth: maxdepth.unwrap_or(usize::MAX) };
        let wanted = tree::Tree { sources, clean, user, group, dir_mode, file_mode, template, defaults, more, replace, backup: backup.is_truthy(), force_links: force_symlinks, link_mode: sym_mode };
        Ok(tree::state(context, &name, &wanted).into())
    }

    /// A symbolic link to a target. `force` removes a file that is in its place.
    fn symlink(context, name: String, target: String, force: bool = false, makedirs: bool = false, user: Value = Value::Nil, group: Value = Value::Nil, mode: Value = Value::Nil, backupname: Option<String> = None, **_kwargs) {
        if let Some(backup) = backupname.filter(|_| !context.test)
            && let Err(error) = place::put_aside(&name, &backup, force)
        {
            return Ok(StateReturn::failed(&name, error).into());
        }
        Ok(place::symlink(context, &name, &target, force, Folders::new(makedirs, &mode), &user, &group).into())
    }

    /// A hard link to a file. `force` removes what is in its place.
    fn hardlink(context, name: String, target: String, force: bool = false, makedirs: bool = false, dir_mode: Value = Value::Nil, **_kwargs) {
        Ok(place::hardlink(context, &name, &target, force, Folders::new(makedirs, &dir_mode)).into())
    }

    /// A file, made if it is missing, with its times set to now.
    fn touch(context, name: String, atime: Option<u64> = None, mtime: Option<u64> = None, makedirs: bool = false) {
        Ok(place::touch(context, &name, (atime, mtime), makedirs).into())
    }

    /// A copy of a file of this host, made if it is missing; `force` makes it again.
    fn copy(context, name: String, source: String, force: bool = false, makedirs: bool = false, user: Value = Value::Nil, group: Value = Value::Nil, mode: Value = Value::Nil, dir_mode: Value = Value::Nil, subdir: bool = false, **_kwargs) {
        // Who gets a file gets it for their group, too.
        let group = if group.is_truthy() || !user.is_truthy() { group } else { attributes::primary_group(&user) };
        let attributes = Attributes::of_state(context, &mode, &user, &group);
        let folders = Folders::new(makedirs, &dir_mode);
        if !(subdir && Path::new(&name).is_dir()) {
            let done = place::copy(context, &name, &source, force, folders, attributes);
            return Ok(done.in_order(COPY_TOLD));
        }
        let inside = Path::new(&name).join(Path::new(&source).file_name().unwrap_or_default()).display().to_string();
        let done = place::copy(context, &inside, &source, force, folders, attributes);
        // Salt tells of the folder once it has copied.
        let (from, to) = (format!("Copied \"{source}\" to \"{inside}\""), format!("Copied \"{source}\" to \"{name}\""));
        Ok(StateReturn { comment: done.comment.replace(&from, &to), name, ..done }.in_order(COPY_TOLD))
    }

    /// A file moved from another place, if it is still there.
    fn rename(context, name: String, source: String, force: bool = false, makedirs: bool = false, **_kwargs) {
        Ok(place::rename(context, &name, &source, force, makedirs).into())
    }

    /// A folder without what is older than `age` days or at least `size` large, both with
    /// `age_size_logical_operator: AND`, or one alone with `age_size_only`.
    fn tidied(
        context,
        name: String,
        age: f64 = 0.0,
        matches: Value = Value::Nil,
        rmdirs: bool = false,
        size: Value = 0.into(),
        exclude: Value = Value::Nil,
        full_path_match: bool = false,
        followlinks: bool = false,
        time_comparison: String = "atime".into(),
        age_size_logical_operator: String = "OR".into(),
        age_size_only: Option<String> = None,
        rmlinks: bool = true,
        **_kwargs
    ) {
        let matches = if matches.is_nil() { tidied::patterns(&".*".into()) } else { tidied::patterns(&matches) };
        let patterns = matches.and_then(|matches| Ok((matches, tidied::patterns(&exclude)?)));
        let (matches, exclude) = match patterns {
            Ok(patterns) => patterns,
            Err(error) => return Ok(StateReturn::failed(&name, error).into()),
        };
        let wanted = tidied::Wanted {
            age, matches, exclude, rmdirs, rmlinks, full_path_match, followlinks,
            size: tidied::bytes(&size.to_string()),
            time: tidied::Time::named(&time_comparison),
            judge: tidied::Judge::new(age_size_only.as_deref(), &age_size_logical_operator),
        };
        Ok(tidied::state(context, &name, &wanted).into())
    }

    /// Texts for a file that another state makes, which requires this one: they are `accumulator` in its template, or
    /// come into its block.
    fn accumulated(context, name: String, filename: String, text: Value, **_kwargs) {
        Ok(accumulated::state(context, &name, &filename, &text).into())
    }

    /// A file of the file server or a web server, kept in the cache folder.
    fn cached(
        context,
        name: String,
        source_hash: Option<String> = None,
        source_hash_name: Option<String> = None,
        skip_verify: bool = false,
        saltenv: Option<String> = None,
        use_etag: bool = false,
        source_hash_sig: Value = Value::Nil,
        signed_by_any: Value = Value::Nil,
        signed_by_all: Value = Value::Nil,
        keyring: Option<String> = None,
        gnupghome: Option<String> = None,
        sig_backend: Option<String> = None
    ) {
        // There is one backend.
        _ = sig_backend;
        let signers = source::Signers::new(&signed_by_any, &signed_by_all, keyring, gnupghome);
        let hash = source_hash.filter(|hash| !hash.is_empty());
        let verify = source::Verify { hash, hash_name: source_hash_name, skip: skip_verify, use_etag, hash_signature: source_hash_sig, signers, ..source::Verify::default() };
        let context = StateContext { saltenv: saltenv.unwrap_or_else(|| context.saltenv.clone()), ..context.clone() };
        Ok(cached::state(&context, &name, &verify).into())
    }

    /// No copy of a file in the cache.
    fn not_cached(context, name: String, saltenv: String = "base".into()) {
        Ok(cached::removed(context, &name, &saltenv).into())
    }

    /// No folder at this path if it is empty; with `recurse` neither the empty ones below it, and with `ignore_errors`
    /// those that are not empty may stay. With `older_than`, only those that have not changed for as many days.
    fn pruned(context, name: String, recurse: bool = false, ignore_errors: bool = false, older_than: Option<u64> = None) {
        pruned::state(context, &name, recurse || ignore_errors, ignore_errors, older_than)
    }

    /// A file with what a text in base64 means: one in the state or in the pillar.
    fn decode(context, name: String, encoded_data: Option<String> = None, contents_pillar: Option<String> = None, encoding_type: String = "base64".into(), checksum: String = "md5".into()) {
        // There is no other, and none in Salt.
        _ = encoding_type;
        Ok(decode::state(context, &name, encoded_data, contents_pillar, &checksum).unwrap_or_else(|error| StateReturn::failed(&name, error)).into())
    }

    /// A character device (`c`), a block device (`b`) or a pipe (`p`).
    fn mknod(context, name: String, ntype: String, major: i64 = 0, minor: i64 = 0, user: Value = Value::Nil, group: Value = Value::Nil, mode: Value = "0600".into()) {
        node::Node { kind: ntype, number: (major, minor), user, group, mode }.state(context, &name)
    }

    /// A file, or the files of a folder, with a patch applied.
    fn patch(
        context,
        name: String,
        source: Value = Value::Nil,
        source_hash: Option<String> = None,
        source_hash_name: Option<String> = None,
        skip_verify: bool = false,
        template: Option<String> = None,
        defaults: Value = Value::Nil,
        options: String = String::new(),
        reject_file: Option<String> = None,
        strip: Option<i64> = None,
        saltenv: Option<String> = None,
        **kwargs
    ) {
        let warnings: Vec<String> = ["hash", "dry_run_first"].iter().filter(|key| kwargs.contains_key(**key)).map(|key| format!("The '{key}' argument is no longer used and has been ignored.")).collect();
        let context = StateContext { saltenv: saltenv.unwrap_or_else(|| context.saltenv.clone()), ..context.clone() };
        let verify = source::Verify { skip: skip_verify, ..source::Verify::by_hash(source_hash, source_hash_name) };
        let contents = contents::Contents { source, contents: Value::Nil, template, defaults, verify, ..contents::Contents::inline_text(String::new()) };
        let done = patch::check(&name, &patch::Wanted { options, strip, reject_file: reject_file.clone() }).and_then(|how| {
            let patch = contents.get(&context, &name)?.unwrap_or_default();
            patch::state(&context, &name, &patch, how, reject_file.as_deref())
        });
        let mut done = done.unwrap_or_else(|error| StateReturn::failed(&name, error));
        if !warnings.is_empty() {
            done.more.insert("warnings".into(), warnings.into());
        }
        Ok(done.into())
    }

    /// A folder of backups that keeps those that `retain` names (`most_recent`, `first_of_hour`, `first_of_day`,
    /// `first_of_week`, `first_of_month`, `first_of_year`: how many of each, or `all`) and no others. With
    /// `strptime_format`, names say when their files are of, and files with other names stay.
    fn retention_schedule(context, name: String, retain: Value, strptime_format: Option<String> = None, timezone: Option<String> = None) {
        let rules = retain.as_map().cloned().unwrap_or_default();
        Ok(retention::state(context, &name, &rules, strptime_format.as_deref(), timezone.as_deref()).unwrap_or_else(|error| StateReturn::failed(&name, error)).into())
    }

    /// Nothing at this path.
    fn absent(context, name: String, **_kwargs) {
        Ok(absent_state(context, &name).into())
    }

    /// Something at this path: says whether there is.
    fn exists(_context, name: String, **_kwargs) {
        let there = Path::new(&name).exists();
        Ok(if there { StateReturn::ok(&name, format!("Path {name} exists")) } else { StateReturn::failed(&name, format!("Specified path {name} does not exist")) }.into())
    }

    /// Nothing at this path: says whether there is.
    fn missing(_context, name: String, **_kwargs) {
        let there = Path::new(&name).exists();
        Ok(if there { StateReturn::failed(&name, format!("Specified path {name} exists")) } else { StateReturn::ok(&name, format!("Path {name} is missing")) }.into())
    }
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
