//! The arguments of states of files that they take as `**kwargs`.

use brine_function::{Others, ParamList};

/// Describes the further arguments of `file.managed`.
pub(super) fn further_managed(params: &mut ParamList) {
    params.others(Others::Variables);
    params.further(
        "allow_empty",
        "True or False",
        "Whether contents may be empty, which empties the file; `False` makes them a failure.",
    );
    params.further(
        "contents_delimiter",
        "a string",
        "Separator of a nested key in `contents_pillar` and `contents_grains`; `:` by default.",
    );
    params.further("context", "a mapping", "Variables of the template, above those of `defaults`.");
    params.further(
        "encoding",
        "a string",
        "Encoding in which the file is written, such as `utf-16` or `latin-1`; UTF-8 by default.",
    );
    params.further(
        "encoding_errors",
        "a string",
        "What happens to characters that the encoding does not have: `strict` (by default) fails.",
    );
    params.further("env", "a string", "Without effect: old name of `saltenv`.");
    params.further("file_mode", "a string", "Without effect but a warning: the argument is called `mode`.");
    params.further("keep_mode", "True or False", "Without effect: write `mode: keep`.");
    params.further("keep_source", "True or False", "Without effect: sources stay in the cache.");
    params.further("seuser", "a string", "Without effect: parts of a SELinux context.");
    params.further("serole", "a string", "Without effect: parts of a SELinux context.");
    params.further("setype", "a string", "Without effect: parts of a SELinux context.");
    params.further("serange", "a string", "Without effect: parts of a SELinux context.");
    params.further("sources", "a list", "Without effect: it is `source` that takes a list, too.");
    params.further("win_owner", "anything", "Without effect: permissions of Windows.");
    params.further("win_perms", "anything", "Without effect: permissions of Windows.");
    params.further("win_deny_perms", "anything", "Without effect: permissions of Windows.");
    params.further("win_inheritance", "anything", "Without effect: permissions of Windows.");
    params.further("win_perms_reset", "anything", "Without effect: permissions of Windows.");
}

/// Describes the further arguments of `file.directory`.
pub(super) fn further_directory(params: &mut ParamList) {
    params.others(Others::Unused);
    params.further("win_owner", "anything", "Without effect: permissions of Windows.");
    params.further("win_perms", "anything", "Without effect: permissions of Windows.");
    params.further("win_deny_perms", "anything", "Without effect: permissions of Windows.");
    params.further("win_inheritance", "anything", "Without effect: permissions of Windows.");
    params.further("win_perms_reset", "anything", "Without effect: permissions of Windows.");
}

/// Describes the further arguments of `file.recurse`.
pub(super) fn further_recurse(params: &mut ParamList) {
    params.others(Others::Variables);
    params.further("context", "a mapping", "Variables of the templates, above those of `defaults`.");
    params.further("env", "a string", "Without effect: old name of `saltenv`.");
    params.further("keep_mode", "True or False", "Without effect: write `file_mode: keep`.");
    params.further("keep_source", "True or False", "Without effect: sources stay in the cache.");
    params.further(
        "mode",
        "a string",
        "Not an argument of this state, which refuses it: it has `file_mode` and `dir_mode`.",
    );
    params.further("win_owner", "anything", "Without effect: permissions of Windows.");
    params.further("win_perms", "anything", "Without effect: permissions of Windows.");
    params.further("win_deny_perms", "anything", "Without effect: permissions of Windows.");
    params.further("win_inheritance", "anything", "Without effect: permissions of Windows.");
    params.further("win_perms_reset", "anything", "Without effect: permissions of Windows.");
}

/// Describes the further arguments of `file.symlink`.
pub(super) fn further_symlink(params: &mut ParamList) {
    params.others(Others::Unused);
    params.further("atomic", "True or False", "Without effect: links are always replaced at once.");
    params.further("disallow_copy_and_unlink", "True or False", "Without effect: links are always replaced at once.");
    params.further(
        "follow_symlinks",
        "True or False",
        "Without effect: the link is managed whether or not its target exists.",
    );
    params.further("win_owner", "anything", "Without effect: permissions of Windows.");
    params.further("win_perms", "anything", "Without effect: permissions of Windows.");
    params.further("win_deny_perms", "anything", "Without effect: permissions of Windows.");
    params.further("win_inheritance", "anything", "Without effect: permissions of Windows.");
    params.further("win_perms_reset", "anything", "Without effect: permissions of Windows.");
}

/// Describes the further arguments of `file.copy`.
pub(super) fn further_copy(params: &mut ParamList) {
    params.others(Others::Unused);
    params.further("user", "a string", "Owner or permissions of the copy.");
    params.further("group", "a string", "Owner or permissions of the copy.");
    params.further("mode", "a string", "Owner or permissions of the copy.");
}

/// Describes the further arguments of `file.serialize`.
pub(super) fn further_serialize(params: &mut ParamList) {
    params.others(Others::Variables);
    params.further("context", "a mapping", "Without effect: serialized data is no template.");
    params.further("defaults", "a mapping", "Without effect: serialized data is no template.");
    params.further("contents_newline", "True or False", "Without effect: the file always ends with a newline.");
    params.further("dir_mode", "a string", "Without effect: directories of `makedirs` get the default mode.");
    params.further("encoding", "a string", "Without effect: the file is written in UTF-8.");
    params.further("encoding_errors", "a string", "Without effect: the file is written in UTF-8.");
    params.further("env", "a string", "Without effect: the state reads no files of the file server.");
    params.further("file_mode", "a string", "Without effect: the argument is called `mode`.");
    params.further("follow_symlinks", "True or False", "Without effect: the target of a link is written.");
    params.further("keep_source", "True or False", "Without effect, as are all arguments about a source.");
    params.further("replace", "True or False", "Without effect, as are all arguments about a source.");
    params.further("skip_verify", "True or False", "Without effect, as are all arguments about a source.");
    params.further("source", "a string", "Without effect, as are all arguments about a source.");
    params.further("template", "a string", "Without effect, as are all arguments about a source.");
}

/// Describes the further arguments of `file.patch`.
pub(super) fn further_patch(params: &mut ParamList) {
    params.others(Others::Variables);
    params.further("context", "a mapping", "Variables of the template, above those of `defaults`.");
}
