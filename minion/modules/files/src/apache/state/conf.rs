//! `apache_conf`: states of Apache configurations on Debian.

use super::module::{Parts, states};

states! {
    "apache_conf", Parts { word: "conf", short: "conf" };
    /// Ensure that an Apache configuration is enabled.
    ///
    /// SLS Example:
    ///
    ///     security:
    ///       apache_conf.enabled: []
    enabled;
    /// Ensure that an Apache configuration is disabled.
    ///
    /// SLS Example:
    ///
    ///     security:
    ///       apache_conf.disabled: []
    disabled;
}
