//! `apache_site`: states of Apache sites on Debian.

use super::module::{Parts, states};

states! {
    "apache_site", Parts { word: "site", short: "site" };
    /// Ensure that an Apache site is enabled.
    ///
    /// SLS Example:
    ///
    ///     app:
    ///       apache_site.enabled: []
    enabled;
    /// Ensure that an Apache site is disabled.
    ///
    /// SLS Example:
    ///
    ///     app:
    ///       apache_site.disabled: []
    disabled;
}
