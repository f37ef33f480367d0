//! Grains about the distribution and its kernel.

use std::collections::HashMap;
use std::ffi::OsStr;

use brine_value::{Map, Value, map};
use nix::sys::utsname::UtsName;

use super::read;

/// Salt's names of distributions: `ID` of os-release, `os`, `os_family`.
const DISTRIBUTIONS: &[(&str, &str, &str)] = &[
    ("debian", "Debian", "Debian"),
    ("ubuntu", "Ubuntu", "Debian"),
    ("raspbian", "Raspbian", "Debian"),
    ("linuxmint", "Mint", "Debian"),
    ("pop", "Pop", "Debian"),
    ("kali", "Kali", "Debian"),
    ("devuan", "Devuan", "Debian"),
    ("elementary", "elementary OS", "Debian"),
    ("neon", "KDE neon", "Debian"),
    ("rhel", "RedHat", "RedHat"),
    ("centos", "CentOS", "RedHat"),
    ("fedora", "Fedora", "RedHat"),
    ("rocky", "Rocky", "RedHat"),
    ("almalinux", "AlmaLinux", "RedHat"),
    ("ol", "OEL", "RedHat"),
    ("amzn", "Amazon", "RedHat"),
    ("opensuse-leap", "SUSE", "Suse"),
    ("opensuse-tumbleweed", "SUSE", "Suse"),
    ("sles", "SUSE", "Suse"),
    ("arch", "Arch", "Arch"),
    ("manjaro", "Manjaro", "Arch"),
    ("alpine", "Alpine", "Alpine"),
    ("gentoo", "Gentoo", "Gentoo"),
];

/// Returns the grains of the distribution and the kernel.
pub(super) fn grains() -> Map {
    let release = read("/etc/os-release").or_else(|| read("/usr/lib/os-release")).unwrap_or_default();
    let mut grains = distribution(&release, std::env::consts::ARCH);
    let kernel = nix::sys::utsname::uname().ok();
    let say = |part: fn(&UtsName) -> &OsStr| kernel.as_ref().map(part).unwrap_or_default().to_string_lossy();
    grains.extend(map! {
        "kernel" => &*say(UtsName::sysname),
        "kernelrelease" => &*say(UtsName::release),
        "kernelversion" => &*say(UtsName::version),
        "cpuarch" => std::env::consts::ARCH,
        "kernelparams" => parameters(&read("/proc/cmdline").unwrap_or_default()),
        "init" => init(),
    });
    // As in Salt, the grain exists if systemd is installed, whether or not it runs.
    if let Some(version) = systemd_version() {
        grains.insert("systemd".into(), map! {"version" => version, "features" => ""}.into());
    }
    grains
}

/// Returns the grains from os-release.
fn distribution(release: &str, arch: &str) -> Map {
    let release = variables(release);
    let say = |name: &str| release.get(name).map_or("", String::as_str);
    let id = say("ID");
    let fullname = if say("NAME").is_empty() { "Linux" } else { say("NAME") };
    let like = || say("ID_LIKE").split(' ').find_map(|like| DISTRIBUTIONS.iter().find(|(id, ..)| *id == like));
    let (os, family) = match DISTRIBUTIONS.iter().find(|(candidate, ..)| *candidate == id) {
        Some((_, os, family)) => (*os, *family),
        None => (fullname, like().map_or(fullname, |(.., family)| family)),
    };
    let osrelease = say("VERSION_ID");
    let info: Vec<Value> = osrelease
        .split('.')
        .filter(|part| !part.is_empty())
        .map(|part| part.parse::<i64>().map_or_else(|_| part.into(), Value::from))
        .collect();
    let finger_name = if matches!(os, "Debian" | "Raspbian") { os } else { fullname };
    let finger_release = if matches!(finger_name, "Ubuntu" | "Pop!_OS") {
        osrelease.to_owned()
    } else {
        info.first().map(ToString::to_string).unwrap_or_default()
    };
    let codename = match say("VERSION_CODENAME") {
        "" => say("VERSION").split_once('(').and_then(|(_, rest)| rest.split_once(')')).map_or("", |(name, _)| name),
        name => name,
    };
    map! {
        "os" => os,
        "os_family" => family,
        "osfullname" => fullname,
        "osrelease" => osrelease,
        "osmajorrelease" => info.first().cloned().unwrap_or_default(),
        "osfinger" => format!("{finger_name}-{finger_release}"),
        "osrelease_info" => info,
        "oscodename" => if codename.is_empty() { say("PRETTY_NAME") } else { codename },
        "osarch" => package_architecture(arch, family),
        "lsb_distrib_id" => fullname,
        "lsb_distrib_release" => osrelease,
        "lsb_distrib_codename" => codename,
    }
}

/// Returns the architecture under the name that the distribution's packages use.
fn package_architecture<'a>(arch: &'a str, family: &str) -> &'a str {
    match (family, arch) {
        ("Debian", "x86_64") => "amd64",
        ("Debian", "aarch64") => "arm64",
        ("Debian", "x86") => "i386",
        ("Debian", "arm") => "armhf",
        ("Debian", "powerpc64") => "ppc64el",
        (_, arch) => arch,
    }
}

/// Parses lines of `NAME=value`, quoted or not, as shells do.
fn variables(text: &str) -> HashMap<String, String> {
    let lines = text.lines().filter_map(|line| line.trim().split_once('='));
    let pairs = lines.filter(|(name, _)| !name.starts_with('#')).map(|(name, value)| {
        let words = crate::process::split(value).unwrap_or_default();
        (name.to_owned(), words.into_iter().next().unwrap_or_default())
    });
    pairs.collect()
}

/// Returns the kernel's command line as pairs of name and value; null for names without value.
fn parameters(line: &str) -> Value {
    let pairs = line.split_whitespace().map(|word| match word.split_once('=') {
        Some((name, value)) => Value::List(vec![name.into(), value.into()]),
        None => Value::List(vec![word.into(), Value::Nil]),
    });
    pairs.collect()
}

/// Returns the name of the init system.
fn init() -> &'static str {
    if std::path::Path::new("/run/systemd/system").is_dir() {
        return "systemd";
    }
    let first = read("/proc/1/comm").unwrap_or_default();
    match first.as_str() {
        "systemd" => "systemd",
        "upstart" => "upstart",
        "runit" => "runit",
        "openrc-init" => "openrc",
        "init" if std::path::Path::new("/etc/inittab").exists() => "sysvinit",
        _ => "unknown",
    }
}

/// Returns systemd's version, from the name of its library: `libsystemd-shared-252.so`.
fn systemd_version() -> Option<String> {
    let arch = std::env::consts::ARCH;
    let directories =
        [format!("/usr/lib/{arch}-linux-gnu/systemd"), "/usr/lib/systemd".into(), "/usr/lib64/systemd".into()];
    let names = directories.iter().filter_map(|directory| std::fs::read_dir(directory).ok()).flatten().flatten();
    names.map(|entry| entry.file_name().to_string_lossy().into_owned()).find_map(|name| {
        let version = name.strip_prefix("libsystemd-shared-")?.strip_suffix(".so")?;
        Some(version.split(['.', '-']).next()?.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use brine_value::list;

    use super::*;

    #[test]
    fn distributions_have_salts_names() {
        let said = |release: &str| {
            let grains = distribution(release, "x86_64");
            ["os", "os_family", "osfinger", "oscodename", "osarch", "osmajorrelease"]
                .map(|name| grains.get(name).unwrap().to_string())
                .join(" ")
        };
        let debian = "NAME=\"Debian GNU/Linux\"\nVERSION_ID=\"12\"\nVERSION_CODENAME=bookworm\nID=debian\n";
        insta::assert_snapshot!(said(debian), @"Debian Debian Debian-12 bookworm amd64 12");
        let ubuntu = "NAME=\"Ubuntu\"\nVERSION_ID=\"22.04\"\nID=ubuntu\nID_LIKE=debian\nVERSION_CODENAME=jammy\n";
        insta::assert_snapshot!(said(ubuntu), @"Ubuntu Debian Ubuntu-22.04 jammy amd64 22");
        let rocky = "NAME=\"Rocky Linux\"\nVERSION=\"9.3 (Blue Onyx)\"\nID=\"rocky\"\nVERSION_ID=\"9.3\"\n";
        insta::assert_snapshot!(said(rocky), @"Rocky RedHat Rocky Linux-9 Blue Onyx x86_64 9");
        let own = "NAME=Own\nID=own\nID_LIKE=\"debian ubuntu\"\nVERSION_ID=7\nPRETTY_NAME='Own 7'\n# ID=not\n";
        insta::assert_snapshot!(said(own), @"Own Debian Own-7 Own 7 amd64 7");
        insta::assert_snapshot!(said(""), @"Linux Linux Linux-  x86_64 None");
    }

    #[test]
    fn releases_are_numbers_where_they_can_be() {
        let info =
            |version: &str| distribution(&format!("VERSION_ID={version}"), "x86_64").get("osrelease_info").cloned();
        assert_eq!(info("22.04"), Some(list![22, 4]));
        assert_eq!(info("20230501"), Some(list![20_230_501]));
        assert_eq!(info("3.x"), Some(list![3, "x"]));
    }

    #[test]
    fn kernel_parameters_are_pairs() {
        let expected = list![list!["quiet", Value::Nil], list!["root", "UUID=1-2"], list!["ro", ""]];
        assert_eq!(parameters("quiet  root=UUID=1-2 ro="), expected);
    }
}
