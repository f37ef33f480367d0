//! Checks of a minion before it starts. `salt-minion --check` prints all findings. A start fails on those findings of
//! [`configuration`] that are refusals, and logs the others, so that both report the same.

mod master;

use brine_bus::SocketNames;
use brine_check::Finding;
use brine_config::MinionConfig;
use brine_context::{MASTER_KEY, minion_id};
use brine_crypt::{Cipher, EncryptionAlgorithm, PrivateKey, PublicKey, SignatureAlgorithm};
use brine_engines::Engine;
use brine_modules::MODULES;
use brine_reactor::Entries;
use brine_system::files;

use crate::beacons;
use crate::daemon::MinionError;

pub use master::{Answer, Try, check_masters, try_masters};

/// The number of hexadecimal digits of the shortest fingerprint, one of MD5.
const MIN_FINGERPRINT: usize = 32;

/// Checks everything that a minion with this configuration needs to start, without changing anything.
pub fn check(config: &MinionConfig) -> Vec<Finding> {
    let mut findings = identity(config);
    findings.extend(configuration(config));
    findings.extend(parts(config));
    findings.extend(host(config));
    if config.is_local() {
        findings.extend(brine_check::repositories(&config.opts, &config.cachedir));
    }
    findings
}

/// Checks the options and the files that they name, as [`check`], and nothing that only the user of the minion may see.
pub fn check_options(config: &MinionConfig) -> Vec<Finding> {
    let mut findings = configuration(config);
    findings.extend(parts(config));
    findings.extend(socket(config));
    findings
}

/// Checks the configuration and the files that it names. The start reports these findings, each once.
pub(crate) fn configuration(config: &MinionConfig) -> Vec<Finding> {
    let mut findings = Vec::new();
    findings.extend(minion_id(config).err().map(Finding::refused));
    if config.master.is_empty() {
        findings.push(Finding::refused(MinionError::NoMaster));
    }
    if let Some(got) = config.master_finger.as_deref().filter(|finger| !finger.is_empty() && !is_fingerprint(finger)) {
        findings.push(Finding::broken(format!(
            "option 'master_finger' is invalid: expected a fingerprint as `salt-key -F master` shows it on the master, \
             got '{got}'"
        )));
    }
    for name in &config.ciphers {
        let error = name.parse::<Cipher>().err();
        findings.extend(error.map(|error| Finding::refused(format!("option 'ciphers': {error}"))));
    }
    let error = config.encryption_algorithm.parse::<EncryptionAlgorithm>().err();
    findings.extend(error.map(|error| Finding::refused(format!("option 'encryption_algorithm': {error}"))));
    findings.extend(brine_context::custom::check(config).map(Finding::refused));
    let error = config.signing_algorithm.parse::<SignatureAlgorithm>().err();
    findings.extend(error.map(|error| Finding::refused(format!("option 'signing_algorithm': {error}"))));
    match Entries::usable(&config.opts) {
        Ok((entries, errors)) => {
            findings.extend(errors.iter().map(|error| Finding::broken(format!("option 'reactor': {error}"))));
            let files = brine_reactor::check_files(&entries, &config.renderer, config.reactor_strict_data);
            findings.extend(files.into_iter().map(Finding::broken));
        }
        Err(error) => findings.push(Finding::refused(error)),
    }
    findings.extend(brine_check::words(&config.opts));
    findings.extend(brine_check::renderer(&config.renderer, |name| {
        brine_context::custom::may_have(config, "renderers", name)
    }));
    if !["local", "remote"].contains(&config.file_client.as_str()) {
        let got = &config.file_client;
        findings.push(Finding::broken(format!("option 'file_client' is invalid: expected local or remote, got {got}")));
    }
    if !["str", "failover", "distributed", "func", "disable"].contains(&config.master_type.as_str()) {
        let got = &config.master_type;
        findings.push(Finding::refused(format!(
            "option 'master_type' is invalid: expected str, failover, distributed, func or disable, got {got}"
        )));
    }
    if let Some(got) = config.startup_states.as_deref().filter(|got| !["highstate", "sls", "top", ""].contains(got)) {
        findings.push(Finding::broken(format!(
            "option 'startup_states' is invalid: expected highstate, sls or top, got {got}"
        )));
    }
    if config.is_local() {
        // Only a masterless minion has its own files and pillar.
        findings.extend(brine_check::file_server(&config.opts, |_| false));
        let options = brine_fileserver::Options::default();
        let served = brine_fileserver::configured(config.file_roots.clone(), &options, &config.opts, &config.cachedir);
        findings.extend(served.err().map(Finding::refused));
        findings.extend(brine_check::top_files(&config.file_roots, &config.state_top, &config.renderer));
    }
    if config.has_local_pillar() {
        let is_custom = |name: &str| brine_context::custom::may_have(config, "pillar", name);
        findings.extend(brine_sls::pillar::check(&config.opts, is_custom).into_iter().map(Finding::broken));
        findings.extend(brine_check::top_files(&config.pillar_roots, &config.state_top, &config.renderer));
    }
    for (state, conditions) in &config.global_state_conditions {
        let single = std::slice::from_ref(conditions);
        if conditions.as_list().unwrap_or(single).iter().any(|condition| condition.as_str().is_none()) {
            findings.push(Finding::broken(format!(
                "option 'global_state_conditions': '{state}': expected a compound target or a list of them, got \
                 {conditions}"
            )));
        }
    }
    findings
}

fn is_fingerprint(text: &str) -> bool {
    let digits = text.replace(':', "");
    digits.len() >= MIN_FINGERPRINT && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Checks the options whose errors a running minion logs itself: the schedule, beacons, engines, and roots of a
/// masterless minion.
fn parts(config: &MinionConfig) -> Vec<Finding> {
    let mut findings = brine_check::schedule(&config.schedule, |function| MODULES.has(function));
    for (name, beacon) in &config.beacons {
        let name = name.to_string();
        if name == "enabled" {
            continue;
        }
        if brine_context::custom::may_have(config, "beacons", &beacons::module(&name, beacon)) {
            continue;
        }
        let problems = beacons::check(&name, beacon).err().into_iter().chain(beacons::unknown_options(&name, beacon));
        findings.extend(problems.map(|error| Finding::broken(format!("option 'beacons': '{name}': {error}"))));
    }
    let has_engine = |name: &str| brine_context::custom::has_file(config, "engines", name);
    let engines = Engine::check(&config.engines, config.python_fallback, has_engine);
    findings.extend(engines.into_iter().map(|error| Finding::broken(format!("option 'engines': {error}"))));
    if config.is_local() {
        findings.extend(brine_check::missing_roots("file_roots", &config.file_roots));
    }
    if config.has_local_pillar() {
        findings.extend(brine_check::missing_roots("pillar_roots", &config.pillar_roots));
    }
    findings
}

/// Checks the directories that the start needs.
fn host(config: &MinionConfig) -> Vec<Finding> {
    let mut findings = brine_check::directories(&config.pki_dir, &config.cachedir, &config.sock_dir);
    findings.extend(socket(config));
    findings
}

/// Checks the path of the minion's own socket.
fn socket(config: &MinionConfig) -> Option<Finding> {
    let id = minion_id(config).ok()?;
    let socket = SocketNames::minion(id.as_str()).publish_endpoint(&config.sock_dir);
    brine_zmtp::Listener::check(&socket).err().map(Finding::refused)
}

/// Checks the minion's id and the master that it would trust.
fn identity(config: &MinionConfig) -> Vec<Finding> {
    let pki_dir = config.pki_dir.display();
    let mut findings = Vec::new();
    // The masters of `func` are only known after the call of the function.
    let masters =
        if ["func", "disable"].contains(&config.master_type.as_str()) { Vec::new() } else { config.masters() };
    for (host, port) in masters {
        if let Ok(id) = minion_id(config) {
            findings.push(Finding::note(format!("the minion '{id}' of the master {host}:{port}")));
        }
    }
    match PrivateKey::load(config.pki_dir.join("minion.pem"), None) {
        Ok(Some(key)) => {
            findings.push(Finding::note(format!("{pki_dir}: this minion's key {}", key.public().fingerprint())));
        }
        Ok(None) => findings.push(Finding::note(format!(
            "{pki_dir}: no minion key: the first start generates one, which the master has to accept"
        ))),
        Err(error) => findings.push(Finding::refused(error)),
    }
    let path = config.pki_dir.join(MASTER_KEY);
    match files::read_if_exists(&path).map(|pem| pem.map(|pem| PublicKey::from_pem(&pem))) {
        Ok(Some(Ok(key))) => findings.push(Finding::note(format!("{pki_dir}: the master's key {}", key.fingerprint()))),
        Ok(None) => findings.push(Finding::note(format!(
            "{pki_dir}: no master key: the first master that answers is trusted from then on (set master_finger to pin it)"
        ))),
        Ok(Some(Err(error))) => findings.push(Finding::refused(format!("{}: {error}", path.display()))),
        Err(error) => findings.push(Finding::refused(error)),
    }
    findings
}

/// Reports the findings of the start, each once.
///
/// # Errors
/// The first finding that prevents the start.
pub fn report(config: &MinionConfig) -> Result<(), MinionError> {
    brine_check::report(configuration(config)).map_err(|finding| MinionError::Invalid(finding.message))
}

#[cfg(test)]
mod tests;
