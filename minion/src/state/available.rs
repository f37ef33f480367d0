//! Which modules of states this host can have: those of `cron` need `crontab`.
//!
//! It is looked up for each state, because an earlier one may have installed what was missing.

use brine_value::Value;

use crate::context::Context;
use crate::host::programs::which;

/// What a module's states call, and what is said where that is missing.
static PROGRAMS: &[(&str, &str, &str)] = &[
    ("cron", "crontab", "cron module could not be loaded"),
    ("debconf", "debconf-get-selections", "debconf module could not be loaded"),
    ("git", "git", "git module could not be loaded"),
];

/// Why this host has no states of a module, if so.
pub fn missing(context: &Context, module: &str) -> Option<String> {
    let grain = |name: &str| context.grains().get(name).map(Value::to_string).unwrap_or_default();
    match module {
        "debconf" if context.os_family() != "Debian" => Some("debconf state only runs on Debian systems".into()),
        // What starts services elsewhere is not known here.
        "service" if !matches!(grain("kernel").as_str(), "Linux" | "") => Some(format!(
            "No service execution module loaded: check support for service management on {} ",
            grain("osfinger")
        )),
        module => {
            let (_, program, reason) = PROGRAMS.iter().find(|(name, ..)| *name == module)?;
            which(program).is_none().then(|| (*reason).to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use brine_value::map;

    use super::*;
    use crate::testing;

    #[test]
    fn what_a_host_has_decides() {
        for (grains, module, reason) in [
            (map! {"os_family" => "RedHat"}, "debconf", Some("debconf state only runs on Debian systems")),
            (map! {"kernel" => "Linux"}, "service", None),
            (map! {}, "file", None),
            (
                map! {"kernel" => "FreeBSD", "osfinger" => "FreeBSD-13"},
                "service",
                Some("No service execution module loaded: check support for service management on FreeBSD-13 "),
            ),
        ] {
            let mut context = testing::state_context(true, &[]).call;
            context.own_grains = Some(std::sync::Arc::new(grains));
            assert_eq!(missing(&context, module).as_deref(), reason, "{module}");
        }
    }
}
