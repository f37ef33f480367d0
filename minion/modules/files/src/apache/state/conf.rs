//! `apache_conf`: states of Apache configurations on Debian.

use super::module::{Parts, states};

states! {
    "apache_conf", Parts { word: "conf", short: "conf" };
    /// Ensure that an Apache configuration is enabled.
    enabled;
    /// Ensure that an Apache configuration is disabled.
    disabled;
}
