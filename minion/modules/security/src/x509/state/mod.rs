//! `x509`: the states of certificates, requests, revocation lists and private keys.
//!
//! Each state compares its file with the structure it would create, and replaces the file if they differ. Owner, mode
//! and path are managed by `file.managed`, whose result is returned as `sub_state_run`.

mod certificate;
mod private_key;
mod request;
mod revocation;

use std::path::PathBuf;

use brine_context::{StateContext, StateReturn};
use brine_function::{Args, CallError, CallResult, Functions, function, registry};
use brine_modules_files::file::backups;
use brine_system::files;
use brine_system::user_files;
use brine_value::{Map, Value, list, map};
use brine_x509::X509Error;

use super::source::{execution, failed, read_file};
use super::{pems, reject_unknown_kwargs};

/// State functions of `x509`.
pub static FUNCTIONS: Functions<StateContext> = registry!(
    "x509",
    [
        certificate::certificate_managed,
        revocation::crl_managed,
        request::csr_managed,
        pem_managed,
        private_key::private_key_managed
    ]
);

/// The arguments of `file.managed` that the states of `x509` accept.
#[derive(Args)]
pub struct FileArgs {
    /// Owner of the file.
    #[default]
    user: Value,
    /// Group of the file.
    #[default]
    group: Value,
    /// Permissions, as an octal string; `0400` for private keys by default.
    #[default]
    pub mode: Value,
    /// Attributes of the file system.
    #[default]
    attrs: Value,
    /// Whether missing parent directories are created.
    #[default]
    makedirs: Value,
    /// Permissions of directories that `makedirs` creates.
    #[default]
    dir_mode: Value,
    /// Whether a replaced file is kept in the minion's cache: `minion`.
    #[default]
    backup: Value,
    /// Whether a missing file is created.
    #[default]
    create: Value,
    /// Whether the target of a symbolic link is managed, not the link.
    #[default(true)]
    follow_symlinks: bool,
    /// Command that receives the path of a draft; the file is written only if it exits with 0. Not for binary encodings.
    #[default]
    check_cmd: Value,
    /// Directory of drafts for `check_cmd`.
    #[default]
    tmp_dir: Value,
    /// Suffix of drafts for `check_cmd`.
    #[default]
    tmp_ext: Value,
    /// SELinux context.
    #[default]
    selinux: Value,
    /// Character encoding of a file in a text form, the `encoding` of `file.managed`.
    #[default]
    file_encoding: Value,
    /// Handling of characters that `file_encoding` lacks, the `encoding_errors` of `file.managed`.
    #[default]
    encoding_errors: Value,
}

impl FileArgs {
    fn keyword(&self, name: &str) -> Map {
        let all = [
            ("user", &self.user),
            ("group", &self.group),
            ("mode", &self.mode),
            ("attrs", &self.attrs),
            ("makedirs", &self.makedirs),
            ("dir_mode", &self.dir_mode),
            ("backup", &self.backup),
            ("create", &self.create),
            ("check_cmd", &self.check_cmd),
            ("tmp_dir", &self.tmp_dir),
            ("tmp_ext", &self.tmp_ext),
            ("selinux", &self.selinux),
            ("encoding", &self.file_encoding),
            ("encoding_errors", &self.encoding_errors),
        ];
        let mut keyword = map! {"name" => name, "show_changes" => false, "follow_symlinks" => self.follow_symlinks};
        keyword.extend(
            all.into_iter().filter(|(_, value)| !value.is_nil()).map(|(key, value)| (key.into(), value.clone())),
        );
        keyword
    }
}

/// A file of a state.
struct Managed<'a> {
    context: &'a StateContext,
    name: &'a str,
    file: &'a FileArgs,
    /// The noun for the file in comments, such as `certificate`.
    noun: &'static str,
}

/// The new content of the file.
struct Content {
    bytes: Vec<u8>,
    is_text: bool,
}

/// The state of the file before its content is compared.
struct CurrentFile {
    /// The result of `file.managed` in test mode.
    dry_run: Map,
    /// The path of the file; with `follow_symlinks`, symbolic links are resolved.
    path: PathBuf,
    /// Whether a symbolic link at the path is replaced by the file.
    replaces_link: bool,
}

impl Managed<'_> {
    /// Calls `file.managed`.
    fn file(&self, test: bool, more: Map) -> Result<Map, CallError> {
        let mut keyword = self.file.keyword(self.name);
        keyword.extend(more);
        let context = StateContext { test: test || self.context.test, ..self.context.clone() };
        match context.call_state("file.managed", Args::keyword(keyword))? {
            Value::Map(result) => Ok(result),
            other => Err(execution(format!("Failed running file.managed in x509_v2 state: {other}"))),
        }
    }

    /// Adds a result of `file.managed` as `sub_state_run`.
    fn with_file(&self, mut state: StateReturn, mut result: Map) -> StateReturn {
        let low = map! {"name" => self.name, "state" => "file", "__id__" => &self.context.id, "fun" => "managed"};
        result.insert("low".into(), low.into());
        state.more.insert("sub_state_run".into(), list![result]);
        state
    }

    fn correct(&self) -> StateReturn {
        StateReturn::ok(self.name, format!("The {} is in the correct state", self.noun))
    }

    /// Inspects the file. The inner `Err` is the result of a state that ends early.
    fn inspect(&self) -> Result<Result<CurrentFile, StateReturn>, CallError> {
        let dry_run = self.file(true, map! {"replace" => false})?;
        if dry_run.get("result") == Some(&Value::Bool(false)) {
            let failed = StateReturn::failed(self.name, "Problem while testing file.managed changes, see its output");
            return Ok(Err(self.with_file(failed, dry_run)));
        }
        let comment = dry_run.get("comment").map(ToString::to_string).unwrap_or_default();
        if comment.contains("is not present and is not set for creation") {
            return Ok(Err(self.with_file(self.correct(), dry_run)));
        }
        let mut path = PathBuf::from(self.name);
        let mut replaces_link = false;
        if path.is_symlink() {
            if self.file.follow_symlinks {
                path = user_files::real(&path).map_err(CallError::execution)?;
            } else {
                // Never write through a link. Test mode leaves it in place.
                if !self.context.test {
                    user_files::remove_file(&path).map_err(CallError::execution)?;
                }
                replaces_link = true;
            }
        }
        Ok(Ok(CurrentFile { dry_run, path, replaces_link }))
    }

    /// Compares the file with the desired structure. Returns the changes, and the result of `compare` if the file could
    /// be loaded.
    fn compared<L, T>(
        &self,
        before: &CurrentFile,
        load: impl FnOnce(&[u8]) -> Result<L, X509Error>,
        compare: impl FnOnce(L, &mut Map) -> Result<T, CallError>,
    ) -> Result<(Map, Option<T>), CallError> {
        let (mut changes, mut current) = (Map::new(), None);
        let mut replaced = before.replaces_link;
        if !before.replaces_link && before.path.is_file() {
            match load(&read_file(&before.path)?) {
                Ok(loaded) => current = Some(compare(loaded, &mut changes)?),
                Err(X509Error::Unreadable(_)) => replaced = true,
                Err(error) => return Err(failed(error)),
            }
        } else if !before.replaces_link {
            changes.insert("created".into(), self.name.into());
        }
        if replaced {
            changes.insert("replaced".into(), self.name.into());
        }
        Ok((changes, current))
    }

    /// Makes the changes, unless there are none or in test mode. `exists` selects the wording of comments: created, or
    /// recreated.
    fn finish(
        &self,
        before: CurrentFile,
        changes: Map,
        exists: bool,
        create: impl FnOnce() -> Result<Content, CallError>,
    ) -> Result<StateReturn, CallError> {
        let file_changes = before.dry_run.get("changes").is_some_and(Value::is_truthy);
        if changes.is_empty() && !file_changes {
            return Ok(self.with_file(self.correct(), before.dry_run));
        }
        let verb = if exists && !changes.is_empty() { "recreated" } else { "created" };
        if self.context.test {
            let state = if changes.is_empty() {
                self.correct()
            } else {
                StateReturn::predicted(self.name, format!("The {} would have been {verb}", self.noun))
                    .with_changes(changes)
            };
            return Ok(self.with_file(state, before.dry_run));
        }
        if changes.is_empty() {
            let result = self.file(false, map! {"replace" => false})?;
            return Ok(self.checked(self.correct(), result, exists));
        }
        let content = create()?;
        let state = StateReturn::ok(self.name, format!("The {} has been {verb}", self.noun)).with_changes(changes);
        if content.is_text {
            let text = String::from_utf8_lossy(&content.bytes).into_owned();
            let result = self.file(false, map! {"contents" => text, "replace" => true})?;
            return Ok(self.checked(state, result, exists));
        }
        // `file.managed` takes text only: it sets the owner and mode first, then the bytes are written.
        let result = self.file(false, map! {"replace" => false})?;
        let state = self.checked(state, result, exists);
        if state.result == Some(true) {
            backups::create_if_enabled(&self.context.call, &before.path, &self.file.backup).map_err(execution)?;
            files::rewrite(&before.path, &content.bytes, 0o600).map_err(CallError::execution)?;
        }
        Ok(state)
    }

    fn checked(&self, state: StateReturn, result: Map, exists: bool) -> StateReturn {
        if result.get("result") != Some(&Value::Bool(false)) {
            return self.with_file(state, result);
        }
        let verb = if exists { "update" } else { "create" };
        let comment = format!("Could not {verb} file, see file.managed output");
        self.with_file(StateReturn::failed(self.name, comment), result)
    }

    /// Converts an error to a failed state with the error as its comment.
    fn result(&self, state: Result<StateReturn, CallError>) -> CallResult {
        Ok(state.unwrap_or_else(|error| StateReturn::failed(self.name, error.message())).into())
    }
}

/// Ensure that a file has the content of a PEM entry, with its line breaks corrected.
///
/// SLS Example:
///
///     /etc/pki/ca.crt:
///       x509.pem_managed:
///         - text: |
///             -----BEGIN CERTIFICATE-----
///             MIIB...
///             -----END CERTIFICATE-----
///         - mode: '0644'
#[function]
pub fn pem_managed(
    context: &StateContext,
    /// Path of the file.
    name: String,
    /// The entry.
    text: Value,
    #[args] file: FileArgs,
    /// Further arguments of `file.managed`.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    reject_unknown_kwargs(&kwargs)?;
    let managed = Managed { context, name: &name, file: &file, noun: "PEM" };
    match pems::entry(&text, None) {
        Ok(contents) => Ok(managed.file(false, map! {"contents" => contents})?.into()),
        Err(error) => Ok(StateReturn::failed(&name, error.message()).into()),
    }
}
