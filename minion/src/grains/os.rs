//! The operating system: from `/etc/os-release` and the kernel.

use brine_core::{Map, Value, map};

/// What distributions are called in grains, by the `ID` of their os-release: name and family.
const DISTRIBUTIONS: &[(&str, &str, &str)] = &[
    ("debian", "Debian", "Debian"),
    ("ubuntu", "Ubuntu", "Debian"),
    ("raspbian", "Raspbian", "Debian"),
    ("linuxmint", "Mint", "Debian"),
    ("rhel", "RedHat", "RedHat"),
    ("centos", "CentOS Stream", "RedHat"),
    ("rocky", "Rocky", "RedHat"),
    ("almalinux", "AlmaLinux", "RedHat"),
    ("fedora", "Fedora", "RedHat"),
    ("amzn", "Amazon", "RedHat"),
    ("ol", "OEL", "RedHat"),
    ("arch", "Arch", "Arch"),
    ("alpine", "Alpine", "Alpine"),
    ("opensuse-leap", "Leap", "Suse"),
    ("opensuse-tumbleweed", "Tumbleweed", "Suse"),
    ("sles", "SLES", "Suse"),
    ("gentoo", "Gentoo", "Gentoo"),
    ("void", "Void", "Void"),
];

pub(super) fn grains() -> Map {
    let release = std::fs::read_to_string("/etc/os-release").unwrap_or_default();
    let mut grains = of_release(&release);
    grains.extend(kernel());
    let init = std::fs::read_to_string("/proc/1/comm").unwrap_or_default();
    let init = match init.trim() {
        "systemd" => "systemd",
        "init" => "sysvinit",
        "runit" => "runit",
        _ => "unknown",
    };
    grains.insert("init".into(), init.into());
    let machine_id = std::fs::read_to_string("/etc/machine-id").unwrap_or_default();
    grains.insert("machine_id".into(), machine_id.trim().into());
    let container = std::path::Path::new("/.dockerenv").exists();
    grains.insert("virtual".into(), if container { "container" } else { "physical" }.into());
    if container {
        grains.insert("virtual_subtype".into(), "Docker".into());
    }
    let language = std::env::var("LANG").unwrap_or_default();
    let (default, encoding) = language.split_once('.').unwrap_or((&language, "utf-8"));
    grains.insert(
        "locale_info".into(),
        map! {
            "defaultlanguage" => default, "defaultencoding" => encoding, "detectedencoding" => "utf-8",
            "timezone" => jiff::tz::TimeZone::system().iana_name().unwrap_or("unknown"),
        }
        .into(),
    );
    grains
}

fn kernel() -> Map {
    let read =
        |name: &str| std::fs::read_to_string(format!("/proc/sys/kernel/{name}")).unwrap_or_default().trim().to_owned();
    map! {"kernel" => read("ostype"), "kernelrelease" => read("osrelease"), "kernelversion" => read("version")}
}

/// The grains that the text of an os-release file says.
fn of_release(text: &str) -> Map {
    let field = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
        line.unwrap_or_default().trim().trim_matches(['"', '\'']).to_owned()
    };
    let (id, version, codename) = (field("ID"), field("VERSION_ID"), field("VERSION_CODENAME"));
    let known = DISTRIBUTIONS.iter().find(|(known, ..)| *known == id);
    let (os, family) = known
        .map_or_else(|| (field("NAME"), field("NAME")), |(_, os, family)| ((*os).to_owned(), (*family).to_owned()));
    let info: Value =
        version.split('.').map(|part| part.parse::<i64>().map_or_else(|_| part.into(), Value::Int)).collect();
    let major = version.split('.').next().and_then(|major| major.parse::<i64>().ok());
    // Ubuntu's fingers carry the whole release, others' the first number.
    let finger_release =
        if os == "Ubuntu" { version.clone() } else { major.map_or(version.clone(), |major| major.to_string()) };
    let full = if field("NAME").is_empty() { os.clone() } else { field("NAME") };
    let codename = if codename.is_empty() { field("PRETTY_NAME") } else { codename };
    map! {
        "osfinger" => format!("{os}-{finger_release}"),
        "os" => os,
        "os_family" => family,
        "osfullname" => full.as_str(),
        "oscodename" => codename.as_str(),
        "osrelease" => version.as_str(),
        "osrelease_info" => info,
        "osmajorrelease" => major,
        "lsb_distrib_id" => full.as_str(),
        "lsb_distrib_release" => version.as_str(),
        "lsb_distrib_codename" => codename.as_str(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_are_told_as_salt_tells_them() {
        let debian = of_release("NAME=\"Debian GNU/Linux\"\nID=debian\nVERSION_ID=\"12\"\nVERSION_CODENAME=bookworm\n");
        for (name, value) in [
            ("os", Value::from("Debian")),
            ("os_family", "Debian".into()),
            ("osfullname", "Debian GNU/Linux".into()),
            ("osfinger", "Debian-12".into()),
            ("oscodename", "bookworm".into()),
            ("osmajorrelease", 12.into()),
        ] {
            assert_eq!(debian.get(name), Some(&value), "{name}");
        }
        let ubuntu = of_release("NAME=Ubuntu\nID=ubuntu\nVERSION_ID=\"22.04\"\nVERSION_CODENAME=jammy\n");
        assert_eq!(ubuntu.get("osfinger"), Some(&"Ubuntu-22.04".into()));
        assert_eq!(ubuntu.get("os_family"), Some(&"Debian".into()));
        assert_eq!(of_release("").get("os"), Some(&"".into()));
    }
}
