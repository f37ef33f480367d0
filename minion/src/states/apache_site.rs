//! `apache_site`: sites of a Debian's Apache as states.

use brine_function::functions;

use super::StateContext;
use super::apache_module::Parts;

functions! {
    module "apache_site", context StateContext;

    /// A site is enabled.
    fn enabled(context, name: String) {
        PARTS.have(context, &name, true)
    }

    /// A site is disabled.
    fn disabled(context, name: String) {
        PARTS.have(context, &name, false)
    }
}

const PARTS: Parts = Parts { word: "site", short: "site" };
