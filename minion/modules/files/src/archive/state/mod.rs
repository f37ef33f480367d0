//! `archive`: states that extract archives.
//!
//! `inspect.rs` checks the target and removes paths from it, `unpack.rs` lists and extracts, `owners.rs` sets
//! owners.

mod extracted;
mod inspect;
mod owners;
mod unpack;

use std::fs;
use std::path::{Path, PathBuf};

use brine_context::files::in_environment;
use brine_context::{StateContext, StateReturn};
use brine_function::{Args, CallError, Functions, registry};
use brine_system::{files, user_files};
use brine_value::{FromValue, Value, map};
use sha2::Digest;

use crate::archive::{Format, needs_password};
use crate::file::state::{cached, source};
use crate::private_copy::PrivateCopy;
use brine_host::web::redacted;
use owners::Enforced;

/// State functions of `archive`.
pub static FUNCTIONS: Functions<StateContext> = registry!("archive", [extracted::extracted]);

/// The desired extraction.
struct Extracted {
    source: Value,
    verify: source::Verify,
    hash_update: bool,
    skip_list: bool,
    password: Value,
    options: Option<String>,
    list_options: Option<String>,
    force: bool,
    overwrite: bool,
    clean: bool,
    clean_parent: bool,
    user: Option<String>,
    group: Option<String>,
    if_missing: Option<String>,
    trim: Value,
    by_unzip: Option<bool>,
    keep_modes: bool,
    one_top: bool,
    owned: Option<String>,
    format: Option<String>,
    keep: bool,
    /// Whether devices, FIFOs, and set-uid and set-gid bits are extracted.
    special: bool,
}

/// The result of a state that ends early.
type Early = Box<StateReturn>;

impl Extracted {
    fn state(&self, context: &StateContext, name: &str) -> Result<StateReturn, Early> {
        let failed = |comment: String| Box::new(StateReturn::failed(name, comment));
        self.check(name)?;
        let directory = format!("{}/", name.trim_end_matches('/'));
        if let Some(path) = self.if_missing.as_ref().filter(|path| Path::new(path).exists()) {
            return Ok(StateReturn::ok(name, format!("Path {path} exists")));
        }
        let owner = self.owner(name)?;
        let (source, verify) = self.first_source(context).map_err(failed)?;
        let local = match source.split_once("://") {
            None => Some(source.clone()),
            Some(("file", path)) => Some(path.to_owned()),
            Some(_) => None,
        };
        let local = local.map(|path| fs::canonicalize(&path).unwrap_or_else(|_| path.into()));
        if let Some(path) = local.as_ref().filter(|path| !path.is_file()) {
            return Err(failed(format!("Source file '{}' does not exist", path.display())));
        }
        let archive_name = local.as_ref().map_or_else(|| redacted(&source), |path| path.display().to_string());
        let format = self.format(&source).map_err(failed)?;
        let (by_unzip, mut warnings) = self.program(format).map_err(failed)?;
        let trim = match &self.trim {
            Value::Bool(true) => Value::from(100),
            other if !other.is_truthy() => Value::Bool(false),
            other => i64::from_value(other)
                .map(Value::from)
                .ok_or_else(|| failed("Invalid value for trim_output, must be True/False or an integer".into()))?,
        };
        let hash = match &verify.hash {
            Some(hash) => Some(source::hash_of(context, hash, &source, &verify).map_err(failed)?),
            None => None,
        };
        let archive = local.clone().or_else(|| cached::cache_path(context, &source));
        let Some(archive) = archive else { return Err(failed(format!("Invalid source \"{}\"", redacted(&source)))) };
        if self.skip_list
            && let (Some(hash), Some(before)) = (&hash, self.stored_hash(context, &archive))
            && hash.hex == before
        {
            let comment = format!(
                "Archive {archive_name} existing source sum is the same as the expected one and skip_files_list_verify \
                 argument was set to True. Extraction is not needed"
            );
            let outcome =
                if context.test { StateReturn::predicted(name, comment) } else { StateReturn::ok(name, comment) };
            return Ok(outcome);
        }
        if local.is_none() {
            if context.test {
                let comment = format!(
                    "Archive {archive_name} would be cached (if necessary) and checked to discover if extraction is needed"
                );
                return Ok(StateReturn::predicted(name, comment));
            }
            let cache_outcome = cached::state(context, &source, &verify);
            if cache_outcome.result != Some(true) {
                return Ok(cache_outcome);
            }
        }
        // What is checked is what is extracted: others may exchange a file of the host meanwhile.
        let copy = match &local {
            Some(path) => {
                PrivateCopy::for_input(&context.call, path, None).map_err(|error| failed(error.to_string()))?
            }
            None => None,
        };
        let checked = copy.as_ref().map_or(archive.as_path(), PrivateCopy::path);
        if verify.signature.is_truthy() {
            let content = fs::read(checked).map_err(|error| failed(format!("{}: {error}", archive.display())))?;
            if let Err(error) = source::check_signature(context, &content, &verify.signature, &verify) {
                // Nobody vouches for the cached copy. A file of the host stays.
                if local.is_none()
                    && let Err(error) = user_files::remove_file(&archive)
                {
                    tracing::warn!(path = %archive.display(), %error, "an archive without valid signature stays cached");
                }
                return Err(failed(format!("Failed verifying the source file's signature: {error}")));
            }
        }
        let before = self.stored_hash(context, &archive);
        if self.verify.hash.is_some() && self.hash_update && !self.verify.skip {
            self.store_hash(context, &archive).map_err(failed)?;
        }
        if format == Format::Zip && !self.password.is_truthy() && needs_password(checked).unwrap_or(false) {
            return Err(failed(format!(
                "Archive {archive_name} is password-protected, but no password was specified. Please set the 'password' argument."
            )));
        }
        let contents = self.contents(context, checked, &archive, format).map_err(failed)?;
        if self.one_top && (contents.top_level_dirs().len() > 1 || !contents.top_level_files().is_empty()) {
            return Err(failed(format!(
                "Archive does not have a single top-level directory. To allow this archive to be extracted, set \
                 'enforce_toplevel' to False. To avoid a '{}-bomb' it may also be advisable to set a top-level directory \
                 by adding it to the 'name' value (for example, setting 'name' to {directory}some_dir instead of {directory}).",
                format.name()
            )));
        }
        if self.clean && self.clean_parent {
            return Err(failed("Only one of 'clean' and 'clean_parent' can be set to True".into()));
        }
        let mut outcome = StateReturn::failed(name, "");
        let mut inspection = self.inspect(&directory, &contents).map_err(failed)?;
        if !inspection.wrong_kind.is_empty() {
            self.remove_obstacle(context, name, &directory, &mut inspection, &mut outcome)?;
        }
        let mut updated = false;
        if !inspection.needed
            && self.hash_update
            && before.as_ref().is_some_and(|before| sha256_of(checked).as_ref() != Some(before))
        {
            (inspection.needed, updated) = (true, true);
        }
        let why = match (updated, inspection.missing) {
            (true, _) => ", due to source_hash update",
            (false, true) => ", due to absence of one or more files/dirs",
            (false, false) => "",
        };
        let mut unpacked = Vec::new();
        let mut made = false;
        if inspection.needed {
            if let (Some(_), Some(hash), false) = (&local, &hash, self.verify.skip)
                && !fs::read(checked).is_ok_and(|content| hash.matches(&content))
            {
                return Err(failed(format!("{archive_name} does not match the desired source_hash {}", hash.hex)));
            }
            if context.test {
                let clean = if self.clean { ", after cleaning destination path(s)" } else { "" };
                outcome.result = None;
                outcome.comment = format!("Archive {archive_name} would be extracted to {directory}{clean}{why}");
                return Ok(outcome);
            }
            self.make_room(&directory, &contents, &mut outcome)?;
            if !Path::new(&directory).is_dir() {
                let args = map! {"name" => directory.as_str(), "user" => self.user.clone(), "makedirs" => true};
                _ = context.call_state("file.directory", Args::keyword(args));
                made = true;
            }
            unpacked = match self.unpack(
                context,
                checked,
                &directory,
                format,
                by_unzip,
                contents.has_set_id && !self.special,
                &trim,
            ) {
                Ok(Ok(files)) => files,
                Ok(Err(output)) => {
                    outcome.changes = output;
                    return Ok(outcome);
                }
                Err(CallError::Execution(error)) => return Err(failed(error)),
                Err(error) => return Err(failed(error.to_string())),
            };
        }
        let mut enforced = Enforced::default();
        if self.user.is_some() || self.group.is_some() {
            enforced = self.enforce(context, &directory, &contents, &owner);
            if enforced.changed {
                outcome.changes.insert("updated ownership".into(), true.into());
            }
        }
        self.report(
            context,
            &archive_name,
            &directory,
            why,
            inspection.needed.then_some((made, unpacked)),
            &trim,
            &mut outcome,
        );
        enforced.report(self.if_missing.is_some(), &mut outcome);
        if local.is_none()
            && !self.keep
            && let Err(error) = user_files::remove_file(&archive)
        {
            warnings.push(format!("{}: {error}", archive.display()));
        }
        if !warnings.is_empty() {
            outcome.more.insert("warnings".into(), warnings.into());
        }
        Ok(outcome)
    }

    /// Validates the arguments.
    fn check(&self, name: &str) -> Result<(), Early> {
        let failed = |comment: String| Err(Box::new(StateReturn::failed(name, comment)));
        if self.skip_list && self.verify.skip {
            return failed("Only one of \"skip_files_list_verify\" and \"skip_verify\" can be set to True".into());
        }
        if !name.starts_with('/') {
            return failed(format!("{name} is not an absolute path"));
        }
        let bare = name.trim_end_matches('/');
        if Path::new(bare).is_file() {
            return failed(format!("{bare} exists and is not a directory"));
        }
        for (key, path) in [("if_missing", &self.if_missing), ("enforce_ownership_on", &self.owned)] {
            if path.as_ref().is_some_and(|path| !path.starts_with('/')) {
                return failed(format!("Value for '{key}' is not an absolute path"));
            }
        }
        if self.owned.as_ref().is_some_and(|path| !Path::new(path).starts_with(bare)) {
            return failed(format!("Value for 'enforce_ownership_on' must be within {bare}/"));
        }
        Ok(())
    }

    /// Returns the first source that exists, with its expected checksum.
    fn first_source(&self, context: &StateContext) -> Result<(String, source::Verify), String> {
        let Some(several) = self.source.as_list() else {
            let source = self.source.to_string();
            return if source.is_empty() {
                Err(format!("Invalid source \"{}\"", redacted(&source)))
            } else {
                Ok((source, self.verify.clone()))
            };
        };
        for item in several {
            let (source, verify) = source::entry(item, &self.verify);
            let there = match source.split_once("://") {
                None => Path::new(&source).exists(),
                Some(("file", path)) => Path::new(path).exists(),
                Some(("salt", path)) => {
                    let (path, saltenv) = in_environment(path, &context.saltenv);
                    context.call.minion.files.hash(path, saltenv).map_err(|error| error.to_string())?.is_some()
                }
                Some(_) => source::url_exists(context, &source),
            };
            if there {
                return Ok((source, verify));
            }
        }
        Err("none of the specified sources were found".into())
    }

    fn format(&self, source: &str) -> Result<Format, String> {
        const KNOWN: &str = "tar, rar, zip";
        match &self.format {
            None => Format::guess(source.split(['?', '#']).next().unwrap_or(source).trim_end_matches('/')).ok_or_else(
                || {
                    format!(
                        "Could not guess archive_format from the value of the 'source' argument. Please set this \
                     archive_format to one of the following: {KNOWN}"
                    )
                },
            ),
            Some(format) => Format::named(format).ok_or_else(|| {
                format!(
                    "Invalid archive_format '{}'. Either set it to a supported value ({KNOWN}) or remove this argument \
                     and the archive format will be guessed based on file extension.",
                    format.to_lowercase()
                )
            }),
        }
    }

    /// Returns whether the program `unzip` is used, and warnings for the comment.
    fn program(&self, format: Format) -> Result<(bool, Vec<String>), String> {
        let mut warnings = Vec::new();
        if format != Format::Zip {
            if self.password.is_truthy() {
                return Err("The 'password' argument is only supported for zip archives".into());
            }
            if format == Format::Rar && self.options.is_some() {
                return Err(
                    "The 'options' argument is only compatible with the following archive formats: tar, zip".into()
                );
            }
            return Ok((false, warnings));
        }
        let mut by_unzip = self.by_unzip;
        if self.options.is_some() {
            if by_unzip == Some(false) {
                return Err("'use_cmd_unzip' cannot be set to False if CLI options are being specified (via the \
                            'options' argument). Either remove 'use_cmd_unzip', or set it to True."
                    .into());
            }
            by_unzip = Some(true);
        }
        if self.password.is_truthy() && by_unzip == Some(true) {
            warnings.push(
                "Using a password in combination with setting 'use_cmd_unzip' to True is considered insecure. It is \
                 recommended to remove the 'use_cmd_unzip' argument (or set it to False) and allow Salt to extract the \
                 archive using Python's built-in ZIP file support."
                    .into(),
            );
        }
        Ok((by_unzip.unwrap_or(false), warnings))
    }

    /// Builds the final comment and changes.
    #[allow(clippy::too_many_arguments)]
    fn report(
        &self,
        context: &StateContext,
        archive_name: &str,
        directory: &str,
        why: &str,
        unpacked: Option<(bool, Vec<String>)>,
        trim: &Value,
        outcome: &mut StateReturn,
    ) {
        match unpacked {
            Some((_, files)) if files.is_empty() => {
                outcome.comment = format!("No files were extracted from {archive_name}");
            }
            Some((made, files)) => {
                if made {
                    outcome.changes.insert("directories_created".into(), brine_value::list![directory]);
                }
                outcome.changes.insert("extracted_files".into(), files.into());
                let trimmed = format!(". Output was trimmed to {trim} number of lines");
                let trimmed = if trim.is_truthy() { trimmed } else { String::new() };
                outcome.comment = format!("{archive_name} extracted to {directory}{why}{trimmed}");
                outcome.result = Some(true);
            }
            None => {
                outcome.comment = "All files in archive are already present".into();
                outcome.result = Some(true);
                if context.test && outcome.changes.contains_key("updated ownership") {
                    outcome.result = None;
                    outcome.comment += ". Ownership would be updated on one or more files/directories.";
                }
            }
        }
    }

    /// Returns the path at which the hash of a source is stored, to detect changed sources.
    fn hash_file(context: &StateContext, archive: &Path) -> PathBuf {
        let cache = &context.call.config().cachedir;
        let below = archive
            .strip_prefix(cache)
            .map_or_else(|_| Path::new("local").join(archive.strip_prefix("/").unwrap_or(archive)), Path::to_owned);
        let mut path = cache.join("archive_hash").join(below).into_os_string();
        path.push(".hash");
        path.into()
    }

    fn stored_hash(&self, context: &StateContext, path: &Path) -> Option<String> {
        let text = files::read_if_exists(Self::hash_file(context, path)).ok()??;
        text.lines().find_map(|line| line.strip_prefix("sha256:")).map(str::to_owned)
    }

    fn store_hash(&self, context: &StateContext, archive: &Path) -> Result<(), String> {
        let path = Self::hash_file(context, archive);
        let Some(sum) = sha256_of(archive) else { return Ok(()) };
        files::create_private_dir(path.parent().unwrap_or(&path)).map_err(|error| error.to_string())?;
        files::write_atomic(&path, format!("sha256:{sum}\n").as_bytes(), 0o600).map_err(|error| error.to_string())
    }
}

/// Returns the SHA-256 of a file.
fn sha256_of(path: &Path) -> Option<String> {
    Some(source::hex(&sha2::Sha256::digest(fs::read(path).ok()?)))
}
