//! `btmp`: logins that failed, as the system keeps them.

use super::Look;
use super::settings::Settings;
use super::wtmp::start_for;

/// The file of logins that failed.
pub(super) const BTMP: &str = "/var/log/btmp";

pub(super) fn start(settings: &Settings) -> Result<Box<dyn Look>, String> {
    start_for(settings, BTMP, false)
}
