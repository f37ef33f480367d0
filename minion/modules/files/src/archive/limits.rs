//! The limits of extractions: `archive_max_size` and `archive_max_entries`, and special files.

use brine_config::MinionConfig;
use brine_context::Context;
use brine_function::CallError;
use brine_host::process::Output;
use brine_value::Map;
use nix::sys::signal::Signal;

use super::contents::Contents;
use super::{arguments, command_line};
use crate::cmd;

/// An archive exceeds a limit.
#[derive(Debug, thiserror::Error)]
pub enum LimitError {
    /// The size of all files.
    #[error("the archive extracts to more than {0} bytes; the option `archive_max_size` permits more")]
    Size(u64),
    /// The number of entries.
    #[error("the archive has more than {0} entries; the option `archive_max_entries` permits more")]
    Entries(usize),
    /// A device or FIFO.
    #[error("the archive contains devices or FIFOs, such as {0}: set 'special_files' to True to extract them")]
    Devices(String),
    /// A set-uid or set-gid bit.
    #[error(
        "the archive contains files with set-uid or set-gid bits, such as {0}: set 'special_files' to True to extract them"
    )]
    SetId(String),
}

impl Contents {
    /// Checks that the archive can be extracted within the limits of the configuration, and has no devices and FIFOs
    /// unless they are permitted.
    pub fn check_limits(&self, config: &MinionConfig, special_files: bool) -> Result<(), LimitError> {
        let count = self.dirs.len() + self.files.len() + self.links.len();
        if count > config.archive_max_entries {
            return Err(LimitError::Entries(config.archive_max_entries));
        }
        if self.size > config.archive_max_size {
            return Err(LimitError::Size(config.archive_max_size));
        }
        match self.special.first().filter(|_| !special_files) {
            Some(special) => Err(LimitError::Devices(special.clone())),
            None => Ok(()),
        }
    }

    /// As [`Contents::check_limits`], for programs that extract set-uid and set-gid bits: files with one are refused, too.
    pub fn check_all(&self, config: &MinionConfig, special_files: bool) -> Result<(), LimitError> {
        self.check_limits(config, special_files)?;
        match self.set_id.first().filter(|_| !special_files) {
            Some(file) => Err(LimitError::SetId(file.clone())),
            None => Ok(()),
        }
    }
}

/// Runs a program that can write no file larger than `archive_max_size`, and returns its output with its errors.
pub(super) fn run(context: &Context, words: &[String], kwargs: &Map) -> Result<Output, CallError> {
    let max = context.config().archive_max_size;
    let output = cmd::execute_limited(context, &command_line(words), &arguments(kwargs)?, max)?;
    // A program ends by the signal, or handles it and reports the error.
    if output.retcode == -(Signal::SIGXFSZ as i64) || output.retcode != 0 && output.stdout.contains("File too large") {
        return Err(CallError::execution(LimitError::Size(max)));
    }
    Ok(output)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn archives_are_limited() {
        let config = |archive_max_size, archive_max_entries| MinionConfig {
            archive_max_size,
            archive_max_entries,
            ..MinionConfig::default()
        };
        let contents = Contents {
            files: vec!["a".into(), "b".into()],
            special: vec!["a".into()],
            set_id: vec!["b".into()],
            size: 10,
            ..Contents::default()
        };
        let default = MinionConfig::default();
        assert!(contents.check_all(&default, true).is_ok() && contents.check_all(&config(10, 2), true).is_ok());
        let error = |config| contents.check_limits(&config, true).unwrap_err().to_string();
        assert!(error(config(9, 2)).contains("more than 9 bytes; the option `archive_max_size`"));
        assert!(error(config(10, 1)).contains("more than 1 entries; the option `archive_max_entries`"));
        assert!(
            contents.check_limits(&default, false).unwrap_err().to_string().contains("such as a: set 'special_files'")
        );
        let contents = Contents { special: Vec::new(), ..contents };
        assert!(contents.check_limits(&default, false).is_ok());
        assert!(
            contents.check_all(&default, false).unwrap_err().to_string().contains("such as b: set 'special_files'")
        );
    }
}
