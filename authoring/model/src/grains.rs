//! The grains that minions have by themselves, with their documentation, and names that are common for own ones.

/// A grain: its name and meaning.
pub type Entry = (&'static str, &'static str);

/// Grains that minions have.
pub static GRAINS: &[Entry] = &[
    ("biosreleasedate", "The date of the firmware."),
    ("biosversion", "The version of the firmware."),
    ("cpu_flags", "The features of the processor, as a list."),
    ("cpu_model", "The name of the processor."),
    ("cpuarch", "The architecture of the kernel, such as `x86_64`."),
    ("cwd", "The working directory of the minion."),
    ("disks", "The names of block devices, as a list."),
    ("dns", "The configuration of the resolver: `nameservers`, `search` and others."),
    ("domain", "The domain of the full host name."),
    ("efi", "Whether the system was started by EFI."),
    ("fc_wwn", "The names of Fibre Channel ports, as a list."),
    ("fqdn", "The full host name."),
    ("fqdn_ip4", "The IPv4 addresses of the full host name, as a list."),
    ("fqdn_ip6", "The IPv6 addresses of the full host name, as a list."),
    ("fqdns", "All full host names of the addresses, as a list."),
    ("gid", "The number of the group that the minion runs as."),
    ("gpus", "Graphics cards: a list of `model` and `vendor`."),
    ("groupname", "The group that the minion runs as."),
    ("host", "The host name without its domain."),
    ("hwaddr_interfaces", "The hardware address of each interface."),
    ("id", "The id of the minion."),
    ("init", "The init system, such as `systemd`."),
    ("ip4_gw", "The default gateway for IPv4."),
    ("ip4_interfaces", "The IPv4 addresses of each interface."),
    ("ip6_gw", "The default gateway for IPv6."),
    ("ip6_interfaces", "The IPv6 addresses of each interface."),
    ("ip_gw", "Whether there is a default gateway."),
    ("ip_interfaces", "All addresses of each interface."),
    ("ipv4", "All IPv4 addresses, as a list."),
    ("ipv6", "All IPv6 addresses, as a list."),
    ("iscsi_iqn", "The names of iSCSI initiators, as a list."),
    ("kernel", "The kernel, such as `Linux`."),
    ("kernelparams", "The command line of the kernel, as a list of pairs."),
    ("kernelrelease", "The release of the kernel."),
    ("kernelversion", "The build of the kernel."),
    ("locale_info", "The language, encoding and time zone."),
    ("localhost", "The host name as the system has it."),
    ("lsb_distrib_codename", "The code name of the distribution, as LSB has it."),
    ("lsb_distrib_description", "The description of the distribution, as LSB has it."),
    ("lsb_distrib_id", "The name of the distribution, as LSB has it."),
    ("lsb_distrib_release", "The release of the distribution, as LSB has it."),
    ("lvm", "The logical volumes of each volume group."),
    ("machine_id", "The id of the installation, from `/etc/machine-id`."),
    ("manufacturer", "The manufacturer of the machine."),
    ("master", "The master of the minion."),
    ("mdadm", "The names of software RAID devices, as a list."),
    ("mem_total", "The memory in MiB."),
    ("nodename", "The host name."),
    ("num_cpus", "The number of processors."),
    ("num_gpus", "The number of graphics cards."),
    ("os", "The distribution or system, such as `Debian`, `Ubuntu`, `RedHat`."),
    ("os_family", "The family, such as `Debian`, `RedHat`, `Suse`, `Arch`."),
    ("osarch", "The architecture of packages, such as `amd64`."),
    ("oscodename", "The code name of the release."),
    ("osfinger", "Name and major release, such as `Ubuntu-24.04`."),
    ("osfullname", "The full name of the distribution."),
    ("osmajorrelease", "The major release, as a number."),
    ("osrelease", "The release, as a string."),
    ("osrelease_info", "The parts of the release, as a list."),
    ("path", "The variable `PATH` of the minion."),
    ("pid", "The process id of the minion."),
    ("productname", "The model of the machine."),
    ("ps", "The command that lists processes."),
    ("pythonexecutable", "The Python that runs custom modules."),
    ("pythonpath", "The search path of Python, as a list."),
    ("pythonversion", "The parts of the version of Python, as a list."),
    ("saltpath", "The directory of the minion's program."),
    ("saltversion", "The version of Salt that the minion is compatible with."),
    ("saltversioninfo", "The parts of that version, as a list."),
    ("selinux", "The state of SELinux: `enabled` and `enforced`."),
    ("serialnumber", "The serial number of the machine."),
    ("server_id", "A number made from the id of the minion."),
    ("shell", "The default shell."),
    ("ssds", "The names of solid-state disks, as a list."),
    ("swap_total", "The swap space in MiB."),
    ("systemd", "The version and the features of systemd."),
    ("systempath", "The directories of `PATH`, as a list."),
    ("transactional", "Whether the root file system changes by transactions."),
    ("uid", "The number of the user that the minion runs as."),
    ("username", "The user that the minion runs as."),
    ("uuid", "The id of the machine in its firmware."),
    ("virtual", "The kind of virtual machine; `physical` without one."),
    ("virtual_subtype", "The kind of container or guest, such as `Docker`."),
    ("zfs_feature_flags", "Whether ZFS has feature flags."),
    ("zfs_support", "Whether ZFS is there."),
    ("zmqversion", "The version of ZeroMQ."),
];

/// Names that are common for own grains.
pub static COMMON: &[&str] =
    &["roles", "role", "environment", "datacenter", "location", "osversion", "package_provider"];

/// Returns all names.
pub fn names() -> impl Iterator<Item = &'static str> {
    GRAINS.iter().map(|(name, _)| *name).chain(COMMON.iter().copied())
}

/// Returns the documentation of a grain.
pub fn documentation(name: &str) -> Option<&'static str> {
    GRAINS.iter().find(|(other, _)| *other == name).map(|(_, text)| *text)
}
