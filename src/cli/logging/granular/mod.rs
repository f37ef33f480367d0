//! `log_granular_levels`: log levels by target, or by the names of Salt's loggers.

use brine_value::Map;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;

use super::level;

/// Salt's loggers, and the prefixes of the targets that correspond to them.
const LOGGERS: &[(&str, &[&str])] = &[
    ("salt", &["brine"]),
    ("salt.auth", &["brine_auth", "brine_master_access::access"]),
    ("salt.beacons", &["brine_agent::beacons"]),
    (
        "salt.channel",
        &["brine_wire", "brine_agent::channel", "brine_master::requests", "brine_master_access::admission"],
    ),
    ("salt.cli", &["brine::cli"]),
    ("salt.client", &["brine_client"]),
    ("salt.client.ssh", &["brine_ssh"]),
    ("salt.config", &["brine_config"]),
    ("salt.crypt", &["brine_crypt"]),
    ("salt.engines", &["brine_engines", "brine_python"]),
    ("salt.fileclient", &["brine_agent::master_files", "brine_context::files"]),
    ("salt.fileserver", &["brine_fileserver"]),
    ("salt.key", &["brine_master_store::keys"]),
    ("salt.loader", &["brine_python", "brine_context::custom"]),
    ("salt.loaded", &["brine_python", "brine_context::custom"]),
    ("salt.master", &["brine_master"]),
    ("salt.metaproxy", &["brine_agent"]),
    ("salt.minion", &["brine_agent", "brine_context"]),
    ("salt.modules", &["brine_modules"]),
    ("salt.netapi", &["brine_api"]),
    ("salt.output", &["brine_output"]),
    ("salt.pillar", &["brine_sls::pillar"]),
    ("salt.renderers", &["brine_jinja", "brine_yaml"]),
    ("salt.returners", &["brine_returners"]),
    ("salt.runners", &["brine_master_runners::runner"]),
    ("salt.state", &["brine_state", "brine_sls::compile"]),
    ("salt.template", &["brine_sls", "brine_jinja"]),
    ("salt.transport", &["brine_zmtp"]),
    ("salt.utils.event", &["brine_bus", "brine_event"]),
    ("salt.utils.http", &["brine_host::web"]),
    ("salt.utils.jinja", &["brine_jinja"]),
    ("salt.utils.process", &["brine_runtime"]),
    ("salt.utils.reactor", &["brine_reactor"]),
    ("salt.utils.schedule", &["brine_schedule"]),
    ("salt.utils.yaml", &["brine_yaml"]),
    ("salt.wheel", &["brine_master_runners::wheel"]),
];
/// The loggers of Salt whose modules are targets of the same names, such as `salt.runners.jobs`.
const SAME_BELOW: &[&str] = &["salt.beacons", "salt.returners", "salt.runners", "salt.wheel"];
/// The crates of execution modules: `salt.modules.file` is in one of them.
const MODULE_GROUPS: &[&str] = &["databases", "files", "network", "packages", "salt", "security", "system"];

/// Log levels by the prefix of their targets.
#[derive(Debug, Default)]
pub struct GranularLevels(Vec<(String, LevelFilter)>);

impl GranularLevels {
    /// Parses the option. Also returns its errors, one for each invalid entry.
    pub fn read(option: &Map) -> (Self, Vec<String>) {
        let (mut levels, mut wrong) = (Vec::new(), Vec::new());
        for (name, word) in option {
            let (name, word) = (name.to_string(), word.to_string());
            match (prefixes(&name), level(&word)) {
                (_, Err(error)) => wrong.push(format!("option 'log_granular_levels': '{name}': {error}")),
                (prefixes, _) if prefixes.is_empty() => wrong.push(format!(
                    "option 'log_granular_levels': the logger '{name}' is unknown: expected a target as `%(name)s` shows it \
                     in log lines, such as brine_master, or a logger of Salt, such as salt.master"
                )),
                (prefixes, Ok(level)) => levels.extend(prefixes.into_iter().map(|prefix| (prefix, level))),
            }
        }
        (GranularLevels(levels), wrong)
    }

    /// Returns the filter of an output with this level. As in Salt, a target logs at most that level.
    pub fn filter(&self, most: LevelFilter) -> Targets {
        let levels = self.0.iter().map(|(prefix, level)| (prefix.clone(), (*level).min(most)));
        Targets::new().with_default(most).with_targets(levels)
    }
}

/// Returns the prefixes of targets for the name of a logger; none if it is unknown.
fn prefixes(name: &str) -> Vec<String> {
    if name.starts_with("brine") {
        return vec![name.replace('.', "::")];
    }
    if let Some((_, prefixes)) = LOGGERS.iter().find(|(logger, _)| *logger == name) {
        return prefixes.iter().map(ToString::to_string).collect();
    }
    if let Some(module) = name.strip_prefix("salt.modules.") {
        let module = module.replace('.', "::");
        return MODULE_GROUPS.iter().map(|group| format!("brine_modules_{group}::{module}")).collect();
    }
    let below = |(logger, prefixes): &(&str, &[&str])| {
        let rest = name.strip_prefix(logger)?.strip_prefix('.')?.replace('.', "::");
        SAME_BELOW.contains(logger).then(|| prefixes.iter().map(|prefix| format!("{prefix}::{rest}")).collect())
    };
    LOGGERS.iter().find_map(below).unwrap_or_default()
}

#[cfg(test)]
mod tests;
