//! Grains about the minion's process and its environment.

use std::env;

use brine_value::{Map, Value, list, map};
use nix::unistd::{Group, User, getegid, geteuid};

use super::read;

/// Returns the grains of the minion's process.
pub(super) fn grains() -> Map {
    let (uid, gid) = (geteuid(), getegid());
    let path = env::var("PATH").unwrap_or_default();
    map! {
        "uid" => uid.as_raw(),
        "gid" => gid.as_raw(),
        "pid" => std::process::id(),
        "username" => User::from_uid(uid).ok().flatten().map(|user| user.name),
        "groupname" => Group::from_gid(gid).ok().flatten().map(|group| group.name),
        "cwd" => env::current_dir().ok().map(|directory| directory.display().to_string()),
        "shell" => env::var("SHELL").unwrap_or_else(|_| "/bin/sh".into()),
        "ps" => "ps -efHww",
        "systempath" => path.split(':').collect::<Value>(),
        "path" => path,
        "machine_id" => read("/etc/machine-id").or_else(|| read("/var/lib/dbus/machine-id")).unwrap_or_default(),
        "locale_info" => locale(|name| env::var(name).ok()),
    }
}

/// Returns the version of this host's `python3`, which templates use in package names; without one, the version that
/// Salt bundles.
pub(super) fn python_version() -> Value {
    let directories = env::var_os("PATH").unwrap_or_default();
    let programs = env::split_paths(&directories).map(|directory| directory.join("python3"));
    let mut paths = programs.filter(|program| program.exists()).filter_map(|program| program.canonicalize().ok());
    let minor = paths.find_map(|path| path.file_name()?.to_str()?.strip_prefix("python3.")?.parse().ok());
    list![3, minor.unwrap_or(11), 0, "final", 0]
}

/// Returns language and encoding from the environment, and the time zone.
fn locale(variable: impl Fn(&str) -> Option<String>) -> Map {
    let asked = ["LC_ALL", "LC_CTYPE", "LANG"].iter().find_map(|name| variable(name).filter(|text| !text.is_empty()));
    let asked = asked.unwrap_or_default();
    let (language, encoding) = match asked.split_once('.') {
        // Python treats the C locale with an encoding as English.
        Some(("C" | "POSIX", encoding)) => ("en_US", encoding),
        Some((language, encoding)) => (language, encoding.split('@').next().unwrap_or_default()),
        None if matches!(asked.as_str(), "" | "C" | "POSIX") => ("", ""),
        None => (asked.as_str(), ""),
    };
    let or_nothing = |text: &str| if text.is_empty() { Value::Nil } else { text.into() };
    map! {
        "defaultlanguage" => or_nothing(language),
        "defaultencoding" => or_nothing(encoding),
        "detectedencoding" => "utf-8",
        "timezone" => brine_clock::now().strftime("%Z").to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locales_are_parsed_as_in_python() {
        for (variable, language, encoding) in [
            ("C.UTF-8", Value::from("en_US"), Value::from("UTF-8")),
            ("de_DE.UTF-8@euro", "de_DE".into(), "UTF-8".into()),
            ("de_DE", "de_DE".into(), Value::Nil),
            ("C", Value::Nil, Value::Nil),
            ("", Value::Nil, Value::Nil),
        ] {
            let info = locale(|name| (name == "LANG").then(|| variable.to_owned()));
            assert_eq!((info.get("defaultlanguage"), info.get("defaultencoding")), (Some(&language), Some(&encoding)));
        }
    }
}
