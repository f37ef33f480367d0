//! The systemd units of a daemon. A host without systemd has none.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use brine_system::processes;

/// The timeout of `systemctl`.
const TIMEOUT: Duration = Duration::from_secs(2);
/// The number of restarts from which a unit counts as failing.
const RESTARTS: u64 = 3;

/// The state of a unit.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Unit {
    /// The name without `.service`.
    pub name: String,
    /// Whether it is masked.
    pub is_masked: bool,
    /// Whether it starts with the host.
    pub is_enabled: bool,
    /// Whether it runs, or is being started.
    pub is_active: bool,
    /// Why it has failed, or is being restarted; `None` if it has not.
    pub failure: Option<String>,
    /// The user that it starts the daemon as.
    pub user: Option<String>,
    /// The PID of its daemon.
    pub pid: Option<u32>,
}

/// Returns the unit of a tool with this configuration: Brine's, or else Salt's.
pub fn find(role: &str, config_dir: &Path) -> Option<Unit> {
    let names = [format!("brine-{role}.service"), format!("salt-{role}.service")];
    let mut command = Command::new("systemctl");
    command.args([
        "show",
        "--no-pager",
        "--property=Id,LoadState,ActiveState,SubState,UnitFileState,Result,MainPID,NRestarts,User,ExecStart",
    ]);
    command.args(&names).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).env("LC_ALL", "C");
    // Absent or not in charge: there are no units.
    let output = processes::output(&mut command, TIMEOUT).ok().filter(|output| output.status.success())?;
    let mut units = parse(&String::from_utf8_lossy(&output.stdout), config_dir);
    units.retain(|unit| names.iter().any(|name| name.strip_suffix(".service") == Some(&unit.name)));
    let best = units.iter().position(|unit| unit.is_active || unit.is_enabled || unit.failure.is_some()).unwrap_or(0);
    (!units.is_empty()).then(|| units.swap_remove(best))
}

/// Returns the units in the output of `systemctl show` that are installed and start a daemon with this configuration.
fn parse(text: &str, config_dir: &Path) -> Vec<Unit> {
    let mut units = Vec::new();
    for block in text.split("\n\n") {
        let fields: HashMap<&str, &str> = block.lines().filter_map(|line| line.split_once('=')).collect();
        let field = |name: &str| fields.get(name).copied().unwrap_or_default();
        let (load, active) = (field("LoadState"), field("ActiveState"));
        // The unit file of a masked unit is not read.
        let is_masked = load == "masked";
        if !(load == "loaded" && started_with(field("ExecStart")) == config_dir || is_masked && is_default(config_dir))
        {
            continue;
        }
        let restarts: u64 = field("NRestarts").parse().unwrap_or(0);
        let is_looping = field("SubState") == "auto-restart" || restarts >= RESTARTS && active == "activating";
        let failure = (active == "failed" || is_looping).then(|| {
            let times = if restarts > 0 { format!(", restarted {restarts} times") } else { String::new() };
            format!("{active} ({}): {}{times}", field("SubState"), field("Result"))
        });
        units.push(Unit {
            name: field("Id").trim_end_matches(".service").to_owned(),
            is_masked,
            is_enabled: field("UnitFileState").starts_with("enabled"),
            is_active: matches!(active, "active" | "activating" | "reloading"),
            failure,
            user: Some(field("User").to_owned()).filter(|user| !user.is_empty()),
            pid: field("MainPID").parse().ok().filter(|pid| *pid > 0),
        });
    }
    units
}

fn is_default(config_dir: &Path) -> bool {
    config_dir == Path::new(brine_config::DEFAULT_DIRECTORY)
}

/// Returns the directory of the configuration in `ExecStart`.
fn started_with(command: &str) -> PathBuf {
    let mut words = command.split_whitespace();
    while let Some(word) = words.next() {
        let value = match word {
            "-c" | "--config-dir" => words.next(),
            long => long.strip_prefix("--config-dir="),
        };
        if let Some(path) = value {
            return path.into();
        }
    }
    brine_config::DEFAULT_DIRECTORY.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHOWN: &str = "Id=brine-master.service\nLoadState=loaded\nActiveState=ACTIVE\nSubState=SUB\nUnitFileState=FILE\n\
                         Result=exit-code\nMainPID=12\nNRestarts=5\nUser=salt\n\
                         ExecStart={ path=/usr/bin/brine ; argv[]=/usr/bin/brine master --pid-file=/run/salt/p ; }\n\n\
                         Id=salt-master.service\nLoadState=not-found\nActiveState=inactive\n";

    fn of(active: &str, sub: &str, file: &str) -> Unit {
        let text = SHOWN.replace("ACTIVE", active).replace("SUB", sub).replace("FILE", file);
        parse(&text, Path::new("/etc/salt")).remove(0)
    }

    #[test]
    fn states_of_units_are_read() {
        let running = of("active", "running", "enabled");
        assert!(running.is_active && running.is_enabled && !running.is_masked && running.failure.is_none());
        assert_eq!(
            (running.user.as_deref(), running.pid, running.name.as_str()),
            (Some("salt"), Some(12), "brine-master")
        );
        let failed = of("failed", "failed", "disabled");
        assert_eq!(failed.failure.as_deref(), Some("failed (failed): exit-code, restarted 5 times"));
        assert!(!failed.is_enabled);
        assert!(of("activating", "auto-restart", "enabled").failure.is_some());
        assert_eq!(parse(SHOWN, Path::new("/other")), []);
        let masked = "Id=brine-minion.service\nLoadState=masked\nActiveState=inactive\nUnitFileState=masked\n";
        assert!(parse(masked, Path::new("/etc/salt"))[0].is_masked);
        assert_eq!(started_with("argv[]=/usr/bin/brine minion -c /srv/etc ;"), Path::new("/srv/etc"));
    }
}
