//! `apache_conf`: configurations of a Debian's Apache as states.

use brine_function::functions;

use super::StateContext;
use super::apache_module::Parts;

functions! {
    module "apache_conf", context StateContext;

    /// A configuration is enabled.
    fn enabled(context, name: String) {
        PARTS.have(context, &name, true)
    }

    /// A configuration is disabled.
    fn disabled(context, name: String) {
        PARTS.have(context, &name, false)
    }
}

const PARTS: Parts = Parts { word: "conf", short: "conf" };
