//! Names that templates may use.

use brine_jinja::reference;

/// Grains that minions have by themselves.
pub(crate) const GRAINS: &[&str] = &[
    "biosreleasedate",
    "biosversion",
    "cpu_flags",
    "cpu_model",
    "cpuarch",
    "cwd",
    "disks",
    "dns",
    "domain",
    "efi",
    "fc_wwn",
    "fqdn",
    "fqdn_ip4",
    "fqdn_ip6",
    "fqdns",
    "gid",
    "gpus",
    "groupname",
    "host",
    "hwaddr_interfaces",
    "id",
    "init",
    "ip4_gw",
    "ip4_interfaces",
    "ip6_gw",
    "ip6_interfaces",
    "ip_gw",
    "ip_interfaces",
    "ipv4",
    "ipv6",
    "iscsi_iqn",
    "kernel",
    "kernelparams",
    "kernelrelease",
    "kernelversion",
    "locale_info",
    "localhost",
    "lsb_distrib_codename",
    "lsb_distrib_description",
    "lsb_distrib_id",
    "lsb_distrib_release",
    "lvm",
    "machine_id",
    "manufacturer",
    "master",
    "mdadm",
    "mem_total",
    "nodename",
    "num_cpus",
    "num_gpus",
    "os",
    "os_family",
    "osarch",
    "oscodename",
    "osfinger",
    "osfullname",
    "osmajorrelease",
    "osrelease",
    "osrelease_info",
    "path",
    "pid",
    "productname",
    "ps",
    "pythonexecutable",
    "pythonpath",
    "pythonversion",
    "saltpath",
    "saltversion",
    "saltversioninfo",
    "selinux",
    "serialnumber",
    "server_id",
    "shell",
    "ssds",
    "swap_total",
    "systemd",
    "systempath",
    "transactional",
    "uid",
    "username",
    "uuid",
    "virtual",
    "virtual_subtype",
    "zfs_feature_flags",
    "zfs_support",
    "zmqversion",
    "roles",
    "role",
    "environment",
    "datacenter",
    "location",
    "osversion",
    "package_provider",
];

/// Variables that Salt provides beside those of the reference.
const VARIABLES: &[&str] = &[
    "minion_id",
    "pillarenv",
    "env",
    "opts",
    "id",
    "__env__",
    "__sls__",
    "__opts__",
    "__grains__",
    "__pillar__",
    "__salt__",
    "ext_pillar",
    "loop",
    "caller",
    "varargs",
    "kwargs",
    "self",
    "super",
    "namespace",
    "slspath",
    "sls_path",
    "slsdotpath",
    "slscolonpath",
    "tplfile",
    "tpldir",
    "tpldot",
    "tplpath",
    "true",
    "false",
    "none",
    "salt",
    "grains",
    "pillar",
    "data",
    "tag",
    "saltenv",
    "sls",
    "proxy",
    "utils",
];

/// Variables of the reactions of rules over time.
pub(crate) const OF_RULES: [&str; 8] = ["rule", "key", "count", "events", "members", "share", "value", "registers"];

/// Whether Salt or Jinja provides a variable.
pub(crate) fn is_provided(name: &str) -> bool {
    VARIABLES.contains(&name)
        || first_words(reference::VARIABLES).any(|known| known == name)
        || first_words(reference::GLOBALS).any(|known| known == name)
}

/// Returns the names of filters.
pub(crate) fn filters() -> impl Iterator<Item = &'static str> {
    first_words(reference::FILTERS)
}

/// Returns the names of tests.
pub(crate) fn tests() -> impl Iterator<Item = &'static str> {
    first_words(reference::TESTS)
}

fn first_words(entries: &'static [reference::Entry]) -> impl Iterator<Item = &'static str> {
    entries.iter().map(|(syntax, _)| syntax.split(['(', ' ']).next().unwrap_or(syntax))
}
