//! The modules that the configuration of the minion allows: `disable_modules`, `whitelist_modules` and their
//! counterparts for states.

use brine_config::MinionConfig;
use brine_function::Registry;

/// Salt's names of files whose modules have other names. The options name files, as in Salt, or modules.
const FILES: &[(&str, &str)] = &[
    ("apkpkg", "pkg"),
    ("aptpkg", "pkg"),
    ("cmdmod", "cmd"),
    ("deb_apache", "apache"),
    ("debconfmod", "debconf"),
    ("debian_ip", "ip"),
    ("debian_service", "service"),
    ("dpkg_lowpkg", "lowpkg"),
    ("etcd_mod", "etcd"),
    ("gentoo_service", "service"),
    ("groupadd", "group"),
    ("ini_manage", "ini"),
    ("kernelpkg_linux_apt", "kernelpkg"),
    ("kernelpkg_linux_yum", "kernelpkg"),
    ("linux_acl", "acl"),
    ("linux_ip", "ip"),
    ("linux_lvm", "lvm"),
    ("linux_service", "service"),
    ("linux_shadow", "shadow"),
    ("linux_sysctl", "sysctl"),
    ("localemod", "locale"),
    ("logmod", "log"),
    ("mdadm_raid", "raid"),
    ("mod_random", "random"),
    ("netplan_ip", "ip"),
    ("nm_ip", "ip"),
    ("pacmanpkg", "pkg"),
    ("parted_partition", "partition"),
    ("rh_ip", "ip"),
    ("rh_service", "service"),
    ("rpm_lowpkg", "lowpkg"),
    ("systemd_service", "service"),
    ("upstart_service", "service"),
    ("useradd", "user"),
    ("virtualenv_mod", "virtualenv"),
    ("x509_v2", "x509"),
    ("yumpkg", "pkg"),
    ("zypperpkg", "pkg"),
];

/// The allowed modules of one type.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Allowed {
    /// The names of disabled modules and files.
    disabled: Vec<String>,
    /// The names of the only allowed modules; empty for all.
    only: Vec<String>,
}

impl Allowed {
    /// Reads the options of execution modules.
    pub fn functions(config: &MinionConfig) -> Self {
        Allowed { disabled: config.disable_modules.clone(), only: config.whitelist_modules.clone() }
    }

    /// Reads the options of the functions that custom modules may call: as in Salt, `whitelist_modules` is about calls
    /// from outside, and a listed module may use the others. `None` if these are the same functions.
    pub fn inside(config: &MinionConfig) -> Option<Self> {
        let all = || Allowed { disabled: config.disable_modules.clone(), only: Vec::new() };
        (!config.whitelist_modules.is_empty()).then(all)
    }

    /// Reads the options of state modules. As in Salt, a state module does not work without the execution module of its
    /// name, so `disable_modules` disables it, too.
    pub fn states(config: &MinionConfig) -> Self {
        let disabled = [&config.disable_states[..], &config.disable_modules].concat();
        Allowed { disabled, only: config.whitelist_state_modules.clone() }
    }

    /// Returns whether a module is allowed.
    pub fn has(&self, module: &str) -> bool {
        let is_it = |name: &String| name == module || FILES.contains(&(name.as_str(), module));
        !self.disabled.iter().any(is_it) && (self.only.is_empty() || self.only.iter().any(|name| name == module))
    }

    /// Returns the functions of a registry that are allowed.
    pub fn of<C>(self, functions: Registry<C>) -> Registry<C> {
        if self.disabled.is_empty() && self.only.is_empty() {
            return functions;
        }
        functions.without(move |module| !self.has(module))
    }
}

#[cfg(test)]
mod tests {
    use brine_value::{list, map};

    use super::*;

    #[test]
    fn modules_are_allowed_by_the_configuration() {
        let options = map! {
            "disable_modules" => list!["cmdmod", "test", "useradd"],
            "disable_states" => list!["cron"],
            "whitelist_state_modules" => list!["file", "cmd", "cron", "pkg"],
        };
        let config = MinionConfig::load(std::path::Path::new("/nonexistent"), &options).unwrap().config;
        let (functions, states) = (Allowed::functions(&config), Allowed::states(&config));
        for (module, function, state) in [
            ("cmd", false, false),
            ("test", false, false),
            ("user", false, false),
            ("group", true, false),
            ("cron", true, false),
            ("file", true, true),
            ("pkg", true, true),
            ("cmdmod", false, false),
        ] {
            assert_eq!((functions.has(module), states.has(module)), (function, state), "{module}");
        }
        assert!(Allowed::default().has("cmd"));
        assert_eq!(Allowed::inside(&config), None);
        let options = map! {"disable_modules" => list!["cron"], "whitelist_modules" => list!["sec", "cron"]};
        let config = MinionConfig::load(std::path::Path::new("/nonexistent"), &options).unwrap().config;
        let (outside, inside) = (Allowed::functions(&config), Allowed::inside(&config).unwrap());
        for (module, from_outside, from_inside) in [("sec", true, true), ("cmd", false, true), ("cron", false, false)] {
            assert_eq!((outside.has(module), inside.has(module)), (from_outside, from_inside), "{module}");
        }
    }

    #[test]
    fn the_names_of_files_are_sorted() {
        assert!(FILES.is_sorted());
    }
}
