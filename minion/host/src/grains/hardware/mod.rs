//! Grains about processors, memory, disks and virtualization.

use std::path::Path;

use brine_value::{Map, Value, map};

use super::read;

/// Returns the grains of the machine.
pub(super) fn grains() -> Map {
    let mut grains = processors(&read("/proc/cpuinfo").unwrap_or_default());
    grains.extend(memory(&read("/proc/meminfo").unwrap_or_default()));
    let (disks, ssds) = disks();
    grains.extend(map! {
        "disks" => disks,
        "ssds" => ssds,
        "efi" => Path::new("/sys/firmware/efi").is_dir(),
        "efi-secure-boot" => secure_boot(),
        "fibre_channel_host" => Path::new("/sys/class/fc_host").is_dir(),
        "transactional" => Path::new("/usr/sbin/transactional-update").exists(),
    });
    if let Some(enforced) = read("/sys/fs/selinux/enforce") {
        let enforced = if enforced == "1" { "Enforcing" } else { "Permissive" };
        grains.insert("selinux".into(), map! {"enabled" => true, "enforced" => enforced}.into());
    }
    let dmi = |name: &str| read(&format!("/sys/class/dmi/id/{name}")).map(|text| text.trim().to_owned());
    for (grain, file) in [
        ("manufacturer", "sys_vendor"),
        ("productname", "product_name"),
        ("serialnumber", "product_serial"),
        ("uuid", "product_uuid"),
        ("boardname", "board_name"),
        ("biosvendor", "bios_vendor"),
        ("biosversion", "bios_version"),
        ("biosreleasedate", "bios_date"),
    ] {
        if let Some(text) = dmi(file).filter(|text| !text.is_empty()) {
            let text = if grain == "uuid" { text.to_lowercase() } else { text };
            grains.insert(grain.into(), text.into());
        }
    }
    let signs = VirtualizationSigns {
        vendor: dmi("sys_vendor").unwrap_or_default(),
        product: dmi("product_name").unwrap_or_default(),
        hypervisor: read("/sys/hypervisor/type").unwrap_or_default(),
        cpu: grains.get("cpu_model").map(ToString::to_string).unwrap_or_default(),
        docker: Path::new("/.dockerenv").exists(),
        podman: Path::new("/run/.containerenv").exists(),
        container: read("/run/systemd/container").or_else(container_variable).unwrap_or_default(),
    };
    let (kind, subtype) = signs.virtual_type();
    grains.insert("virtual".into(), kind.into());
    if let Some(subtype) = subtype {
        grains.insert("virtual_subtype".into(), subtype.into());
    }
    grains
}

/// Returns the variable `container` of the init process.
fn container_variable() -> Option<String> {
    let environment = read("/proc/1/environ")?;
    environment.split('\0').find_map(|entry| entry.strip_prefix("container=")).map(str::to_owned)
}

/// The signs of a virtual machine.
#[derive(Default)]
struct VirtualizationSigns {
    vendor: String,
    product: String,
    hypervisor: String,
    cpu: String,
    docker: bool,
    podman: bool,
    container: String,
}

impl VirtualizationSigns {
    /// Returns `virtual` and `virtual_subtype`.
    fn virtual_type(&self) -> (&'static str, Option<&'static str>) {
        let has = |text: &str, part: &str| text.contains(part);
        match self.container.as_str() {
            "lxc" | "lxc-libvirt" => return ("container", Some("LXC")),
            "systemd-nspawn" => return ("container", Some("systemd-nspawn")),
            "podman" => return ("container", Some("Podman")),
            "docker" => return ("container", Some("Docker")),
            "openvz" => return ("openvzve", None),
            _ => {}
        }
        if self.docker {
            ("container", Some("Docker"))
        } else if self.podman {
            ("container", Some("Podman"))
        } else if self.hypervisor == "xen" {
            ("xen", None)
        } else if has(&self.vendor, "VMware") {
            ("VMware", None)
        } else if has(&self.product, "VirtualBox") {
            ("VirtualBox", None)
        } else if has(&self.vendor, "Microsoft") && has(&self.product, "Virtual Machine") {
            ("HyperV", None)
        } else if has(&self.vendor, "Amazon EC2") {
            ("kvm", Some("Amazon EC2"))
        } else if has(&self.vendor, "Google") {
            ("gce", None)
        } else if [&self.vendor, &self.product, &self.cpu].iter().any(|text| has(text, "QEMU") || has(text, "KVM")) {
            ("kvm", None)
        } else {
            ("physical", None)
        }
    }
}

fn processors(info: &str) -> Map {
    let lines =
        || info.lines().filter_map(|line| line.split_once(':')).map(|(name, value)| (name.trim(), value.trim()));
    let first = |names: &[&str]| lines().find(|(name, _)| names.contains(name)).map(|(_, value)| value);
    map! {
        "num_cpus" => lines().filter(|(name, _)| *name == "processor").count(),
        "cpu_model" => first(&["model name", "Processor", "cpu model"]).unwrap_or("Unknown"),
        "cpu_flags" => first(&["flags", "Features"]).unwrap_or_default().split_whitespace().collect::<Value>(),
    }
}

/// Returns sizes in MiB.
fn memory(info: &str) -> Map {
    let size = |key: &str| {
        let line = info.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'));
        line.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or(0) / 1024
    };
    map! {"mem_total" => size("MemTotal"), "swap_total" => size("SwapTotal")}
}

/// Returns rotational disks, and SSDs.
fn disks() -> (Value, Value) {
    let (mut disks, mut ssds) = (Vec::new(), Vec::new());
    let mut names: Vec<_> =
        std::fs::read_dir("/sys/block").into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    names.sort();
    for path in names {
        // Loop devices, RAM disks and device mappings are not disks.
        if std::fs::read_link(&path).is_ok_and(|target| target.to_string_lossy().contains("/virtual/")) {
            continue;
        }
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        match read(&path.join("queue/rotational").to_string_lossy()).as_deref() {
            Some("0") => ssds.push(name),
            Some("1") => disks.push(name),
            _ => {}
        }
    }
    (disks.into(), ssds.into())
}

fn secure_boot() -> bool {
    let variable = "/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c";
    std::fs::read(variable).is_ok_and(|bytes| bytes.last() == Some(&1))
}

#[cfg(test)]
mod tests;
