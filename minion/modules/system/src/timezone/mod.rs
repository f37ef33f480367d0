//! `timezone`: the system time zone, and whether the hardware clock runs in UTC.

pub(crate) mod state;

use std::path::{Path, PathBuf};

use brine_context::programs::run;
use brine_context::{Context, Module};
use brine_function::{CallError, CallResult, Functions, function, registry};
use brine_host::lines::{self, Missing};
use brine_host::programs::which;
use brine_system::files::{self, FileError};
use brine_system::user_files;

/// Directory of the time zones.
const ZONES: &str = "/usr/share/zoneinfo";
/// Link to the system's time zone.
const LOCAL: &str = "/etc/localtime";

pub(super) static MODULE: Module = Module { functions: &[&FUNCTIONS], states: &[&state::FUNCTIONS], ..Module::EMPTY };

/// Execution functions of `timezone`.
pub static FUNCTIONS: Functions<Context> =
    registry!("timezone", [get_zone, get_zonecode, get_offset, set_zone, zone_compare, get_hwclock, set_hwclock]);

/// Return the time zone, such as `America/Denver`.
///
/// CLI Example:
///
///     salt '*' timezone.get_zone
#[function]
pub fn get_zone(context: &Context) -> CallResult {
    Ok(zone(context)?.into())
}

/// Return the abbreviation of the time zone, such as `MST`.
///
/// CLI Example:
///
///     salt '*' timezone.get_zonecode
#[function]
pub fn get_zonecode(context: &Context) -> CallResult {
    Ok(run(context, &["date".into(), "+%Z".into()], &[])?.stdout.into())
}

/// Return the offset from UTC, such as `-0700`.
///
/// CLI Example:
///
///     salt '*' timezone.get_offset
#[function]
pub fn get_offset(context: &Context) -> CallResult {
    Ok(run(context, &["date".into(), "+%z".into()], &[])?.stdout.into())
}

/// Set the time zone. Returns True, or fails with the reason.
///
/// CLI Example:
///
///     salt '*' timezone.set_zone 'America/Denver'
#[function]
pub fn set_zone(
    context: &Context,
    /// Name of the time zone, such as `Europe/Berlin`.
    timezone: String,
) -> CallResult {
    let Some(path) = file_of(&timezone) else {
        return Ok(format!("Zone does not exist: {ZONES}/{timezone}").into());
    };
    if which("timedatectl").is_some() {
        // timedatectl fails without D-Bus; the files written below have the same effect.
        run(context, &["timedatectl".into(), "set-timezone".into(), timezone.clone()], &[])?;
    }
    link(&path)?;
    match context.os_family().as_str() {
        "RedHat" => lines::set("/etc/sysconfig/clock", "ZONE=", &format!("ZONE=\"{timezone}\""), Missing::Leave)?,
        "Suse" => {
            lines::set("/etc/sysconfig/clock", "TIMEZONE=", &format!("TIMEZONE=\"{timezone}\""), Missing::Leave)?;
        }
        "Debian" | "Gentoo" => {
            let text = format!("{}\n", timezone.trim());
            files::rewrite("/etc/timezone", text.as_bytes(), 0o644).map_err(CallError::execution)?;
        }
        _ => {}
    }
    Ok(true.into())
}

/// Return whether this is the system's time zone, by name or by the content of its file.
///
/// CLI Example:
///
///     salt '*' timezone.zone_compare 'America/Denver'
#[function]
pub fn zone_compare(
    context: &Context,
    /// Name of the time zone, such as `Europe/Berlin`.
    timezone: String,
) -> CallResult {
    if let Ok(zone) = zone(context) {
        return Ok((zone == timezone).into());
    }
    let path = file_of(&timezone)
        .ok_or_else(|| CallError::Execution(format!("Can't find a local timezone \"{timezone}\"")))?;
    let have = std::fs::read(LOCAL).map_err(|error| {
        CallError::Execution(format!("Failed to read {LOCAL} to determine current timezone: {error}"))
    })?;
    let expected = std::fs::read(&path).map_err(FileError::at("read", &path)).map_err(CallError::execution)?;
    Ok((have == expected).into())
}

/// Return whether the hardware clock runs in `UTC` or in `localtime`.
///
/// CLI Example:
///
///     salt '*' timezone.get_hwclock
#[function]
pub fn get_hwclock(context: &Context) -> CallResult {
    if which("timedatectl").is_some() {
        let report = timedatectl(context)?;
        let local = report.lines().find_map(|line| value_of(line, "rtc in local tz"));
        let local =
            local.ok_or_else(|| CallError::Execution(format!("Failed to parse timedatectl output: {report}")))?;
        return Ok(if local == "yes" { "localtime" } else { "UTC" }.into());
    }
    let adjusted = || files::read_if_exists("/etc/adjtime").map_err(CallError::execution);
    if context.os_family() == "Debian" {
        let text = files::read_if_exists("/etc/default/rcS").map_err(CallError::execution)?.unwrap_or_default();
        let is_utc = text
            .lines()
            .filter(|line| !line.trim_start().starts_with('#'))
            .find_map(|line| line.split_once("UTC=").map(|(_, value)| value.trim().eq_ignore_ascii_case("yes")));
        if let Some(is_utc) = is_utc {
            return Ok(if is_utc { "UTC" } else { "localtime" }.into());
        }
    }
    match adjusted()? {
        Some(text) => Ok(text.trim_end().lines().last().unwrap_or_default().into()),
        None if Path::new("/dev/rtc").exists() => {
            Err(CallError::Execution("Unable to get hwclock timezone from /etc/adjtime".into()))
        }
        None => Ok(brine_value::Value::Nil),
    }
}

/// Set the hardware clock to `UTC` or to `localtime`.
///
/// CLI Example:
///
///     salt '*' timezone.set_hwclock UTC
#[function]
pub fn set_hwclock(
    context: &Context,
    /// `UTC` or `localtime`.
    clock: String,
) -> CallResult {
    let is_local = clock == "localtime";
    if which("timedatectl").is_some() {
        let local = if is_local { "true" } else { "false" };
        let words = ["timedatectl", "set-local-rtc", local].map(str::to_owned);
        return Ok((run(context, &words, &[])?.retcode == 0).into());
    }
    let timezone = zone(context)?;
    let Some(path) = file_of(&timezone) else {
        return Err(CallError::Execution(format!("Zone '{ZONES}/{timezone}' does not exist")));
    };
    link(&path)?;
    match context.os_family().as_str() {
        "RedHat" => lines::set("/etc/sysconfig/clock", "ZONE=", &format!("ZONE=\"{timezone}\""), Missing::Leave)?,
        "Suse" => {
            lines::set("/etc/sysconfig/clock", "TIMEZONE=", &format!("TIMEZONE=\"{timezone}\""), Missing::Leave)?;
        }
        "Debian" => {
            let line = if is_local { "UTC=no" } else { "UTC=yes" };
            lines::set("/etc/default/rcS", "UTC=", line, Missing::Leave)?;
        }
        _ => {}
    }
    Ok(true.into())
}

fn timedatectl(context: &Context) -> Result<String, CallError> {
    let output = run(context, &["timedatectl".into()], &[])?;
    if output.retcode != 0 {
        return Err(CallError::Execution(format!("timedatectl failed: {}", output.stderr)));
    }
    Ok(output.stdout)
}

/// Returns the first word of the value in a line such as `Time zone: Europe/Berlin (CET, +0100)`.
fn value_of<'l>(line: &'l str, key: &str) -> Option<&'l str> {
    let (have, value) = line.split_once(':')?;
    have.trim().eq_ignore_ascii_case(key).then(|| value.split_whitespace().next())?
}

fn zone(context: &Context) -> Result<String, CallError> {
    if which("timedatectl").is_some() {
        let report = timedatectl(context)?;
        let zone = report.lines().find_map(|line| value_of(line, "time zone").or_else(|| value_of(line, "timezone")));
        let failed = || CallError::Execution(format!("Failed to parse timedatectl output: {report}"));
        return zone.map(str::to_owned).ok_or_else(failed);
    }
    let unknown = |path: &str| CallError::Execution(format!("Unable to get timezone from {path}"));
    match context.os_family().as_str() {
        "RedHat" | "Suse" => {
            let path = "/etc/sysconfig/clock";
            let text = files::read_to_string(path).map_err(CallError::execution)?;
            let lines = text.lines().filter(|line| !line.trim_start().starts_with('#'));
            let zone = lines.filter_map(|line| line.split_once('=')).find(|(name, _)| name.contains("ZONE"));
            zone.map(|(_, zone)| zone.trim().trim_matches(['"', '\'']).to_owned()).ok_or_else(|| unknown(path))
        }
        "Debian" | "Gentoo" => {
            Ok(files::read_to_string("/etc/timezone").map_err(CallError::execution)?.trim().to_owned())
        }
        _ => {
            let target = std::fs::read_link(LOCAL).map_err(|_| unknown(LOCAL))?;
            let target = Path::new("/etc").join(target);
            let zone = target.strip_prefix(ZONES).map_err(|_| unknown(LOCAL))?;
            Ok(zone.display().to_string())
        }
    }
}

/// Returns the file of a time zone, if it exists.
fn file_of(zone: &str) -> Option<PathBuf> {
    files::path_within(Path::new(ZONES), zone).filter(|path| path.is_file())
}

/// Links the system's time zone to a file.
fn link(zone: &Path) -> Result<(), CallError> {
    user_files::replace_symlink(zone, LOCAL).map_err(FileError::at("link", LOCAL)).map_err(CallError::execution)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_of_timedatectl_is_parsed() {
        for (line, key, value) in [
            ("       Time zone: Europe/Berlin (CET, +0100)", "time zone", Some("Europe/Berlin")),
            ("      Timezone: Etc/UTC", "timezone", Some("Etc/UTC")),
            (" RTC in local TZ: no", "rtc in local tz", Some("no")),
            ("      Local time: Mon 2024-01-01 10:00:00 CET", "time zone", None),
            ("", "time zone", None),
        ] {
            assert_eq!(value_of(line, key), value);
        }
        assert_eq!(file_of("../../../etc/passwd"), None);
    }
}
