//! `btmp`: failed logins, from the system's records.

use std::path::Path;

use super::settings::Settings;
use super::wtmp::{LOGIN_FIELDS, LOGIN_OPTIONS, start_for};
use super::{Beacon, Kind, Options};

/// The file of failed logins.
const BTMP: &str = "/var/log/btmp";

pub(super) const KIND: Kind = Kind {
    name: "btmp",
    doc: "Failed logins, read from `/var/log/btmp`.",
    options: Options::Named(LOGIN_OPTIONS),
    fields: LOGIN_FIELDS,
    is_available: || Path::new(BTMP).is_file(),
    start,
    ..Kind::DEFAULT
};

fn start(settings: &Settings) -> Result<Box<dyn Beacon>, String> {
    start_for(settings, BTMP, false)
}
