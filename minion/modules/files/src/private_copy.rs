//! Private copies: programs read and write a file that other users can exchange in a directory that they cannot open.
//!
//! A program follows the links that others plant. Where only root can change a path, it uses the path itself.

use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use brine_context::Context;
use brine_function::CallError;
use brine_system::files::{self, Attributes};
use brine_system::user_files;
use nix::unistd::{User, geteuid};
use tempfile::TempDir;

/// A file in the place of another one, under the same name.
pub struct PrivateCopy {
    directory: TempDir,
    original: PathBuf,
    path: PathBuf,
}

/// Whether the copy of a file that a program writes begins with its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    /// The program changes the file.
    Kept,
    /// The program replaces the file.
    Replaced,
}

impl PrivateCopy {
    /// Returns a private place for a file that a program writes as this user; `None` if it may use the path itself.
    ///
    /// # Errors
    /// What is at the path cannot be replaced, for instance a link of another user, or not be read.
    pub fn for_output(
        context: &Context,
        original: &Path,
        runas: Option<&str>,
        content: Content,
    ) -> Result<Option<Self>, CallError> {
        if is_other_user(runas) || is_trusted(original)? {
            return Ok(None);
        }
        // A program that changes a file does not accept an empty one.
        if content == Content::Replaced && user_files::claim(original).map_err(|error| error_at(original, &error))? {
            return Ok(None);
        }
        let copy = Self::new(context, original)?;
        if user_files::real(original).map_err(|error| error_at(original, &error))?.symlink_metadata().is_ok() {
            let file = copy.open_original()?;
            if let (Some(mut file), Content::Kept) = (file, content) {
                user_files::write_from(&copy.path, &mut file, Attributes::default(), 0o600)
                    .map_err(|error| error_at(original, &error))?;
            }
        }
        Ok(Some(copy))
    }

    /// Returns a copy of a file that a program reads as this user, with its owner, mode and time; `None` if others cannot
    /// change the file meanwhile. The copy of a missing file is missing, too, which the program reports.
    ///
    /// # Errors
    /// The file cannot be read, or is longer than `archive_max_size`.
    pub fn for_input(context: &Context, original: &Path, runas: Option<&str>) -> Result<Option<Self>, CallError> {
        if is_other_user(runas) {
            return Ok(None);
        }
        if is_trusted(original)? {
            // The program says what it cannot read.
            let Ok(status) = original.metadata() else { return Ok(None) };
            let owner = status.uid();
            let is_fixed = (owner == 0 || owner == geteuid().as_raw()) && status.mode() & 0o022 == 0;
            if is_fixed || !status.is_file() {
                return Ok(None);
            }
        }
        let copy = Self::new(context, original)?;
        let failed = |error: std::io::Error| error_at(original, &error);
        let Some(file) = copy.open_original()? else { return Ok(Some(copy)) };
        let status = file.metadata().map_err(failed)?;
        let attributes =
            Attributes { uid: Some(status.uid()), gid: Some(status.gid()), mode: Some(status.mode() & 0o777) };
        let max = context.config().archive_max_size;
        let mut bounded = file.take(max.saturating_add(1));
        user_files::write_from(&copy.path, &mut bounded, attributes, 0o600).map_err(failed)?;
        if bounded.limit() == 0 {
            let more = "the option `archive_max_size` permits more";
            let message = format!("{} is longer than {max} bytes; {more}", original.display());
            return Err(CallError::Execution(message));
        }
        let modified = status.modified().map_err(failed)?;
        user_files::set_times(&copy.path, modified, modified).map_err(failed)?;
        Ok(Some(copy))
    }

    fn new(context: &Context, original: &Path) -> Result<Self, CallError> {
        let name = original.file_name().ok_or_else(|| {
            CallError::Execution(format!("{} cannot be used: it is not the path of a file", original.display()))
        })?;
        let parent = context.config().cachedir.join("private");
        files::create_private_dir(&parent).map_err(CallError::execution)?;
        let directory = tempfile::tempdir_in(&parent).map_err(|error| error_at(&parent, &error))?;
        Ok(PrivateCopy { path: directory.path().join(name), original: original.to_owned(), directory })
    }

    /// Opens the original; `None` if it is missing.
    fn open_original(&self) -> Result<Option<std::fs::File>, CallError> {
        let file = match user_files::open(&self.original) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            opened => opened.map_err(|error| error_at(&self.original, &error))?,
        };
        match file.metadata() {
            Ok(status) if status.is_file() => Ok(Some(file)),
            Ok(_) => {
                let message = "it is not a regular file, and other users can write its directory";
                Err(CallError::Execution(format!("{} cannot be used: {message}", self.original.display())))
            }
            Err(error) => Err(error_at(&self.original, &error)),
        }
    }

    /// Returns the path for the program.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the path for a program: that of the copy, or else the given one.
    pub fn path_or(copy: Option<&Self>, original: String) -> String {
        copy.map_or(original, |copy| copy.path.display().to_string())
    }

    /// Returns the output of a program with the path of the original in the place of that of a copy.
    pub fn shown_or(copy: Option<&Self>, output: String) -> String {
        match copy {
            Some(copy) => copy.shown(&output),
            None => output,
        }
    }

    /// Returns the output of the program with the path of the original.
    pub fn shown(&self, output: &str) -> String {
        output.replace(&self.path.display().to_string(), &self.original.display().to_string())
    }

    /// Whether the program left the file in its place.
    pub fn exists(&self) -> bool {
        self.path.exists()
    }

    /// Writes the files that a program left under other names beside the original, with their owners, modes and times.
    ///
    /// # Errors
    /// A file cannot be written, or exists and `overwrites` is not set.
    pub fn hand_over_others(&self, overwrites: bool) -> Result<(), CallError> {
        for entry in std::fs::read_dir(self.directory.path()).map_err(CallError::execution)? {
            let entry = entry.map_err(CallError::execution)?;
            let target = self.original.with_file_name(entry.file_name());
            if entry.path() == self.path {
                continue;
            }
            if !overwrites && target.symlink_metadata().is_ok() {
                return Err(CallError::Execution(format!("{} already exists; not overwritten", target.display())));
            }
            let failed = |error: std::io::Error| error_at(&target, &error);
            let mut file = user_files::open(entry.path()).map_err(failed)?;
            let status = file.metadata().map_err(failed)?;
            let mode = status.mode() & 0o777;
            let attributes = Attributes { uid: Some(status.uid()), gid: Some(status.gid()), mode: Some(mode) };
            user_files::write_from(&target, &mut file, attributes, mode).map_err(failed)?;
            let modified = status.modified().map_err(failed)?;
            user_files::set_times(&target, modified, modified).map_err(failed)?;
        }
        Ok(())
    }

    /// Writes the file that a program left to the place of the original, which keeps its owner and mode.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn hand_over(&self) -> Result<(), CallError> {
        self.hand_over_with(Attributes::default())
    }

    /// As [`PrivateCopy::hand_over`]; the original loses setuid and setgid, as by programs that write a new file.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn hand_over_without_set_id(&self) -> Result<(), CallError> {
        let original = self.open_original()?.and_then(|file| file.metadata().ok());
        self.hand_over_with(Attributes { mode: original.map(|status| status.mode() & 0o777), ..Attributes::default() })
    }

    fn hand_over_with(&self, attributes: Attributes) -> Result<(), CallError> {
        if !self.exists() {
            return Ok(());
        }
        let failed = |error: std::io::Error| error_at(&self.original, &error);
        let mut file = user_files::open(&self.path).map_err(failed)?;
        let mode = file.metadata().map_err(failed)?.mode() & 0o777;
        user_files::write_from(&self.original, &mut file, attributes, mode).map_err(failed)
    }
}

/// Whether a program runs with the rights of another user than this process.
fn is_other_user(runas: Option<&str>) -> bool {
    let user = runas.and_then(|name| User::from_name(name).ok().flatten());
    user.is_some_and(|user| user.uid != geteuid())
}

fn is_trusted(path: &Path) -> Result<bool, CallError> {
    user_files::is_trusted(path).map_err(|error| error_at(path, &error))
}

fn error_at(path: &Path, error: &std::io::Error) -> CallError {
    CallError::Execution(format!("{} cannot be used: {error}", path.display()))
}
