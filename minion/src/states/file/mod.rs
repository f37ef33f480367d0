//! `file`: files and folders as states.
//!
//! `managed.rs` owns contents, `attributes.rs` modes and owners, `folder.rs` folders, `tree.rs` whole
//! trees from a source, `edit.rs` changes within files, `place.rs` links, copies and the like.

mod accumulated;
pub(super) mod attributes;
pub(super) mod cached;
mod comment;
mod diff;
mod edit;
mod encoding;
mod folder;
mod keyvalue;
mod line;
mod managed;
mod place;
mod serialize;
pub(super) mod source;
mod tidied;
mod tree;

use std::path::Path;

use brine_core::function::CallError;
use brine_core::{Map, Value, functions, map};

use super::{StateContext, StateReturn};
use attributes::Attributes;
pub(super) use managed::{content, difference};
pub(crate) use place::copy_tree;

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
        follow_symlinks: bool = true,
        selinux: Value = Value::Nil,
        **_kwargs
    ) {
        let hash = source_hash.filter(|hash| !hash.is_empty());
        let verify = source::Verify { hash, hash_name: source_hash_name, skip: skip_verify };
        let contents = managed::Contents { source, contents, contents_pillar, contents_grains, newline: contents_newline, template, defaults, verify };
        let attributes = Attributes::of_state(context, &mode, &user, &group);
        let backup = backup.is_truthy() && backup.as_str() != Some("False");
        let how = managed::How { makedirs, dir_mode, replace, create, show_changes, backup, umask: managed::umask(context), check_cmd, new_file_diff, follow_symlinks };
        let mut done = managed::managed(context, &name, &contents, attributes, &how);
        if selinux.is_truthy() && Path::new(&name).exists() {
            // As Salt on a host without SELinux.
            done.result = Some(false);
            done.comment = "Failed to get selinux attributes".into();
        }
        Ok(done.into())
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
        allow_symlink: bool = true,
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
            clean,
            exclude: folder::patterns(&exclude_pat),
            makedirs,
            force,
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
        **_kwargs
    ) {
        let format = serializer.or(formatter).unwrap_or_else(|| "yaml".into()).to_lowercase();
        let wanted = serialize::Dataset { dataset, pillar: dataset_pillar, format, options: serializer_opts, merge_if_exists };
        let (text, merged) = match serialize::text(context, &name, wanted) {
            Ok(done) => done,
            Err(error) => return Ok(StateReturn::failed(&name, error).into()),
        };
        let contents = managed::Contents::inline_text(text);
        let how = managed::How {
            new_file_diff: false,
            follow_symlinks: true,
            makedirs, dir_mode: Value::Nil, replace: true, create, show_changes, backup: backup.is_truthy(), umask: managed::umask(context), check_cmd,
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
        **_kwargs
    ) {
        let wanted = tree::Tree {
            max_depth: maxdepth.unwrap_or(usize::MAX),
            source, clean, user, group, dir_mode, file_mode, template, defaults, include_empty, replace,
            include: folder::patterns(&include_pat),
            exclude: folder::patterns(&exclude_pat),
            backup: backup.is_truthy(),
        };
        Ok(tree::state(context, &name, &wanted).into())
    }

    /// A symbolic link to a target. `force` removes a file that is in its place.
    fn symlink(context, name: String, target: String, force: bool = false, makedirs: bool = false, user: Value = Value::Nil, group: Value = Value::Nil, backupname: Option<String> = None, **_kwargs) {
        if let Some(backup) = backupname.filter(|_| !context.test)
            && let Err(error) = place::put_aside(&name, &backup, force)
        {
            return Ok(StateReturn::failed(&name, error).into());
        }
        Ok(place::symlink(context, &name, &target, force, makedirs, &user, &group).into())
    }

    /// A hard link to a file. `force` removes what is in its place.
    fn hardlink(context, name: String, target: String, force: bool = false, makedirs: bool = false, **_kwargs) {
        Ok(place::hardlink(context, &name, &target, force, makedirs).into())
    }

    /// A file, made if it is missing, with its times set to now.
    fn touch(context, name: String, atime: Option<u64> = None, mtime: Option<u64> = None, makedirs: bool = false) {
        Ok(place::touch(context, &name, (atime, mtime), makedirs).into())
    }

    /// A copy of a file of this host, made if it is missing; `force` makes it again.
    fn copy(context, name: String, source: String, force: bool = false, makedirs: bool = false, user: Value = Value::Nil, group: Value = Value::Nil, mode: Value = Value::Nil, subdir: bool = false, **_kwargs) {
        // Who gets a file gets it for their group, too.
        let group = if group.is_truthy() || !user.is_truthy() { group } else { attributes::primary_group(&user) };
        let attributes = Attributes::of_state(context, &mode, &user, &group);
        if !(subdir && Path::new(&name).is_dir()) {
            return Ok(place::copy(context, &name, &source, force, makedirs, attributes).into());
        }
        let inside = Path::new(&name).join(Path::new(&source).file_name().unwrap_or_default()).display().to_string();
        let done = place::copy(context, &inside, &source, force, makedirs, attributes);
        // Salt tells of the folder once it has copied.
        let (from, to) = (format!("Copied \"{source}\" to \"{inside}\""), format!("Copied \"{source}\" to \"{name}\""));
        Ok(StateReturn { comment: done.comment.replace(&from, &to), name, ..done }.into())
    }

    /// A file moved from another place, if it is still there.
    fn rename(context, name: String, source: String, force: bool = false, makedirs: bool = false, **_kwargs) {
        Ok(place::rename(context, &name, &source, force, makedirs).into())
    }

    /// Lines at the end of a file, unless it has them.
    fn append(context, name: String, text: Value = Value::Nil, source: Value = Value::Nil, sources: Value = Value::Nil, template: Option<String> = None, defaults: Value = Value::Nil, makedirs: bool = false, ignore_whitespace: bool = true, show_changes: bool = true, **kwargs) {
        known("file.append", &kwargs, &OF_SOURCES)?;
        let sources = managed::Contents::of(&source, &sources, template, defaults);
        let adding = edit::Adding { text, sources, makedirs, ignore_whitespace, header: false, show_changes };
        Ok(edit::add(context, &name, edit::End::Last, &adding).into())
    }

    /// Lines at the start of a file, unless it has them.
    fn prepend(context, name: String, text: Value = Value::Nil, source: Value = Value::Nil, sources: Value = Value::Nil, template: Option<String> = None, defaults: Value = Value::Nil, makedirs: bool = false, header: bool = false, show_changes: bool = true, **kwargs) {
        known("file.prepend", &kwargs, &OF_SOURCES)?;
        let sources = managed::Contents::of(&source, &sources, template, defaults);
        let adding = edit::Adding { text, sources, makedirs, ignore_whitespace: true, header, show_changes };
        Ok(edit::add(context, &name, edit::End::First, &adding).into())
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
        let wanted = edit::Replacing {
            pattern, repl, count, flags, append_if_not_found, prepend_if_not_found,
            not_found_content: not_found_content.is_truthy().then(|| not_found_content.to_string()),
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
        **kwargs
    ) {
        known("file.line", &kwargs, &["match", "user", "group", "file_mode"])?;
        // `match` cannot be the name of a parameter here.
        let matching = kwargs.get("match").filter(|value| !value.is_nil()).map(ToString::to_string);
        let backup = backup.is_truthy();
        let wanted = line::Wanted {
            content, matching, mode: mode.map(|mode| mode.to_lowercase()), location, before, after, show_changes, backup, quiet, indent, create,
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
        context,
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
        **kwargs
    ) {
        known("file.blockreplace", &kwargs, &OF_SOURCES)?;
        let sources = managed::Contents::of(&source, &sources, template, defaults);
        let content = match managed::block_content(context, &name, &content, &sources) {
            Ok(content) => content,
            Err(error) => return Ok(StateReturn::failed(&name, error).into()),
        };
        let gathered = accumulated::of(context, &name);
        let more = gathered.values().filter_map(Value::as_list).flatten().map(ToString::to_string);
        let content = std::iter::once(content).chain(more).reduce(|all, text| {
            let gap = if all.is_empty() || all.ends_with('\n') { "" } else { "\n" };
            format!("{all}{gap}{text}")
        }).unwrap_or_default();
        let block = edit::Block {
            start: marker_start, end: marker_end, content, append_if_not_found, prepend_if_not_found, append_newline, insert_before_match, insert_after_match, backup, show_changes,
        };
        Ok(edit::block(context, &name, &block).into())
    }

    /// Lines that match made comments.
    fn comment(context, name: String, regex: String, char: String = "#".into(), backup: Value = ".bak".into(), ignore_missing: bool = false) {
        Ok(comment::comment(context, &name, &regex, &char, &backup, ignore_missing, true).into())
    }

    /// Comments that match made lines again.
    fn uncomment(context, name: String, regex: String, char: String = "#".into(), backup: Value = ".bak".into()) {
        Ok(comment::comment(context, &name, &regex, &char, &backup, false, false).into())
    }

    /// A folder without what is older than `age` days, larger than `size`, or both with `age_size_logical_operator: AND`.
    fn tidied(
        context,
        name: String,
        age: f64 = 0.0,
        matches: Vec<String> = Vec::new(),
        rmdirs: bool = false,
        size: Value = 0.into(),
        exclude: Value = Value::Nil,
        full_path_match: bool = false,
        followlinks: bool = false,
        time_comparison: String = "atime".into(),
        age_size_logical_operator: String = "OR".into(),
        age_size_only: Value = Value::Nil,
        rmlinks: bool = true,
    ) {
        if exclude.is_truthy() || full_path_match || followlinks || age_size_only.is_truthy() {
            let comment = "exclude, full_path_match, followlinks and age_size_only are not supported by file.tidied yet";
            return Ok(StateReturn::failed(&name, comment).into());
        }
        let size = match tidied::bytes(&size.to_string()) {
            Ok(size) => size,
            Err(error) => return Ok(StateReturn::failed(&name, error).into()),
        };
        let time = match time_comparison.to_lowercase().as_str() {
            "mtime" | "modified" | "modify" => tidied::Time::Modified,
            "ctime" | "changed" | "change" => tidied::Time::Changed,
            _ => tidied::Time::Accessed,
        };
        let matches = if matches.is_empty() { vec![".*".to_owned()] } else { matches };
        let all_of = age_size_logical_operator.eq_ignore_ascii_case("and");
        let wanted = tidied::Wanted { age, matches, rmdirs, size, rmlinks, all_of, time };
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
        **kwargs
    ) {
        known("file.cached", &kwargs, &["saltenv", "use_etag", "source_hash_sig", "signed_by_any", "signed_by_all", "keyring", "gnupghome", "sig_backend"])?;
        let verify = source::Verify { hash: source_hash, hash_name: source_hash_name, skip: skip_verify };
        Ok(cached::state(context, &name, &verify).into())
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

/// What states with sources take that is read from the state itself, as `context` cannot be a parameter here.
const OF_SOURCES: [&str; 3] = ["context", "source_hash", "source_hashes"];

/// Refuses arguments that a state does not have.
fn known(function: &str, kwargs: &Map, names: &[&str]) -> Result<(), CallError> {
    match kwargs.keys().map(ToString::to_string).find(|key| !names.contains(&key.as_str())) {
        Some(key) => Err(CallError::Arguments {
            function: function.into(),
            message: format!("'{key}' is an invalid keyword argument for '{function}'."),
        }),
        None => Ok(()),
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
