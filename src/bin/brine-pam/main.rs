//! Checks one user with PAM, for `external_auth: pam` of a master. It is a separate process because PAM modules block,
//! leak and crash. `master/auth/src/backends/pam/mod.rs` starts it and documents requests and responses.
//!
//! Not for interactive use: it reads passwords only from standard input. Its only argument is `--no-sandbox`.

#[cfg(libpam)]
mod check;

use std::process::ExitCode;

#[cfg(libpam)]
fn main() -> ExitCode {
    if check::run().is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Refuses everybody: `build.rs` has found no libpam to link with.
#[cfg(not(libpam))]
fn main() -> ExitCode {
    println!(
        "failed this brine-pam was built on a host without libpam: install libpam0g there, and build it again\nend"
    );
    ExitCode::SUCCESS
}
