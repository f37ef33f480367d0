//! `archive.extracted` and its arguments.

use brine_context::StateContext;
use brine_function::{Args, CallResult, Others, ParamList, function};
use brine_value::{Map, Value};

use super::Extracted;
use crate::file::state::source;

/// The arguments of `archive.extracted`.
#[derive(Args)]
pub struct ExtractedArgs {
    /// Directory to extract into.
    name: String,
    /// URL or path of the archive, or a list of them of which the first that exists is used.
    source: Value,
    /// Expected checksum of the source (`sha256=...`), or the URL of a file that lists checksums.
    source_hash: Option<String>,
    /// Name that the checksum has in the file of `source_hash`, if it is not that of the source.
    source_hash_name: Option<String>,
    /// Whether the archive is extracted again when `source_hash` changes.
    #[default(false)]
    source_hash_update: bool,
    /// Whether the archive is extracted by its checksum alone, without listing its content.
    #[default(false)]
    skip_files_list_verify: bool,
    /// Whether a remote source is accepted without a checksum.
    #[default(false)]
    skip_verify: bool,
    /// Password of a ZIP archive.
    #[default]
    password: Value,
    /// Further options of `tar` or `unzip`.
    options: Option<String>,
    /// Command that decompresses a `tar` archive to standard output, for listing its content.
    list_options: Option<String>,
    /// Whether a file at the path of a directory of the archive is removed, and the reverse.
    #[default(false)]
    force: bool,
    /// Whether the archive is extracted in any case.
    #[default(false)]
    overwrite: bool,
    /// Whether paths of the archive are removed before it is extracted.
    #[default(false)]
    clean: bool,
    /// Whether the directory is emptied before the archive is extracted.
    #[default(false)]
    clean_parent: bool,
    /// User that owns the extracted files.
    user: Option<String>,
    /// Group that owns the extracted files.
    group: Option<String>,
    /// Path that must be missing for the archive to be extracted.
    if_missing: Option<String>,
    /// Highest number of reported files, or `true` for 100.
    #[default(false.into())]
    trim_output: Value,
    /// Whether a ZIP archive is extracted by the program `unzip`.
    use_cmd_unzip: Option<bool>,
    /// Whether files of a ZIP archive get the permissions stored in it.
    #[default(true)]
    extract_perms: bool,
    /// Whether an archive with several paths at its top is a failure.
    #[default(true)]
    enforce_toplevel: bool,
    /// Path below the directory; `user` and `group` apply to it alone.
    enforce_ownership_on: Option<String>,
    /// `tar`, `rar` or `zip`; that of the file name by default.
    archive_format: Option<String>,
    #[args]
    signed: source::SignatureArgs,
    /// Whether devices, FIFOs, and set-uid and set-gid bits of the archive are extracted. Without it, an archive with
    /// devices or FIFOs is refused, and the bits are cleared.
    #[default(false)]
    special_files: bool,
    /// Further arguments: `keep_source`, or `keep`, is whether the copy in the cache is kept.
    #[keywords(further_extracted)]
    kwargs: Map,
}

/// Ensure that an archive is extracted into the directory `name`, unless all of its content exists there.
///
/// The state lists the archive and compares the paths: if all exist with the right owner, nothing is done. With
/// `source_hash_update`, a new checksum extracts the archive again.
///
/// SLS Example:
///
///     /opt/app:
///       archive.extracted:
///         - source: https://example.com/app-1.2.tar.gz
///         - source_hash: https://example.com/app-1.2.tar.gz.sha256
///         - user: app
///         - group: app
///         - enforce_toplevel: False
///
///     /srv/www:
///       archive.extracted:
///         - source: salt://site/site.zip
///         - if_missing: /srv/www/index.html
///         - enforce_toplevel: False
#[function]
pub fn extracted(context: &StateContext, #[args] args: ExtractedArgs) -> CallResult {
    let keep = args.kwargs.get("keep_source").or_else(|| args.kwargs.get("keep")).is_none_or(Value::is_truthy);
    let mut warnings = Vec::new();
    if args.kwargs.contains_key("keep_source") && args.kwargs.contains_key("keep") {
        warnings
            .push("Both 'keep_source' and 'keep' were used. Since these both do the same thing, 'keep' was ignored.");
    }
    let source_hash = args.source_hash.filter(|hash| !hash.is_empty());
    if args.source_hash_update && source_hash.is_none() {
        warnings.push("The 'source_hash_update' argument is ignored when 'source_hash' is not also specified.");
    }
    let filled = |text: Option<String>| text.filter(|text| !text.is_empty());
    let desired = Extracted {
        source: args.source,
        verify: args.signed.added_to(source::Verify {
            skip: args.skip_verify,
            ..source::Verify::by_hash(source_hash, args.source_hash_name)
        }),
        hash_update: args.source_hash_update,
        skip_list: args.skip_files_list_verify,
        password: args.password,
        options: filled(args.options),
        list_options: args.list_options,
        force: args.force,
        overwrite: args.overwrite,
        clean: args.clean,
        clean_parent: args.clean_parent,
        user: filled(args.user),
        group: filled(args.group),
        if_missing: args.if_missing,
        trim: args.trim_output,
        by_unzip: args.use_cmd_unzip,
        keep_modes: args.extract_perms,
        one_top: args.enforce_toplevel,
        owned: args.enforce_ownership_on,
        format: filled(args.archive_format),
        keep,
        special: args.special_files,
    };
    let mut outcome = desired.state(context, &args.name).unwrap_or_else(|failed| *failed);
    if !warnings.is_empty() {
        outcome.more.insert("warnings".into(), warnings.into_iter().collect::<Value>());
    }
    Ok(outcome.into())
}

/// Describes the further arguments of `archive.extracted`.
pub(crate) fn further_extracted(params: &mut ParamList) {
    params.others(Others::Unused);
    for name in ["keep_source", "keep"] {
        params.further(
            name,
            "True or False",
            "Whether the copy of the archive in the minion's cache is kept; true by default.",
        );
    }
    for name in ["excludes", "archive_user", "tar_options", "zip_options", "template"] {
        params.further(name, "a string", "Without effect.");
    }
}
