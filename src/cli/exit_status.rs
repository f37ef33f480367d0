//! The exit statuses of failures that Salt's tools report as success.

use std::process::ExitCode;

/// Chooses the exit status of a call that did nothing because it was wrong, where Salt exits with 0: a failure, or with
/// the option `salt_exit_status` what Salt exits with.
#[derive(Debug, Clone, Copy, Default)]
pub struct FailureStatus {
    is_salt: bool,
}

impl FailureStatus {
    /// Creates it from the option `salt_exit_status`.
    pub fn new(salt_exit_status: bool) -> Self {
        FailureStatus { is_salt: salt_exit_status }
    }

    /// Returns whether Salt's exit statuses are wanted.
    pub fn is_salt(self) -> bool {
        self.is_salt
    }

    /// Returns the exit status for a failure with this status.
    pub fn of(self, status: u8) -> ExitCode {
        if self.is_salt { ExitCode::SUCCESS } else { ExitCode::from(status) }
    }
}
