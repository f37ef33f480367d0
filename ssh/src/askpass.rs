//! Passwords for `ssh`, which runs the program in `SSH_ASKPASS`, a symbolic link to this one, and reads its output. The
//! password is in the environment of `ssh`, which only the same user and root can read, and in no command line.

use std::ffi::OsString;
use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use brine_system::files::FileError;

/// The name of the link.
pub const NAME: &str = "brine-ssh-askpass";
/// The environment variable that contains the password.
const PASSWORD: &str = "BRINE_SSH_PASSWORD";

/// A directory with the link; removed on drop.
#[derive(Debug)]
pub struct AskPass(tempfile::TempDir);

impl AskPass {
    /// Creates the link to this program in a private temporary directory.
    ///
    /// # Errors
    /// The directory cannot be written to.
    pub fn new(program: &Path) -> Result<Self, FileError> {
        let failed = || FileError::at("write to", std::env::temp_dir());
        let directory = tempfile::Builder::new().prefix("brine-ssh-").tempdir().map_err(failed())?;
        symlink(program, directory.path().join(NAME)).map_err(failed())?;
        Ok(AskPass(directory))
    }

    /// Returns the environment variables of an `ssh` process that uses this password.
    pub(crate) fn environment(&self, password: &str) -> Vec<(&'static str, OsString)> {
        vec![
            ("SSH_ASKPASS", PathBuf::from(self.0.path()).join(NAME).into()),
            ("SSH_ASKPASS_REQUIRE", "force".into()),
            // Older releases of `ssh` use the askpass program only if `DISPLAY` is set and there is no terminal.
            ("DISPLAY", ":0".into()),
            (PASSWORD, password.into()),
        ]
    }
}

/// Prints the password if `ssh` prompts for one. Returns the exit status.
#[must_use]
pub fn answer(prompt: &str) -> u8 {
    // A prompt to confirm a host key must not receive the password.
    let is_password = ["password", "passphrase"].iter().any(|word| prompt.to_lowercase().contains(word));
    match std::env::var_os(PASSWORD).filter(|_| is_password) {
        Some(password) => {
            let mut line = password.into_encoded_bytes();
            line.push(b'\n');
            u8::from(std::io::stdout().write_all(&line).is_err())
        }
        None => 1,
    }
}
