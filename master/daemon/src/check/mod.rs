//! Checks of a master's configuration before it starts. `salt-master --check` prints all findings. The start fails for
//! the errors of [`configuration`] and logs the other findings, so that both always agree.

use std::io::ErrorKind;
use std::sync::Arc;

use brine_auth::{AuthError, ExternalAuth};
use brine_bus::SocketNames;
use brine_check::Finding;
use brine_config::MasterConfig;
use brine_crypt::SignatureAlgorithm;
use brine_engines::Engine;
use brine_function::Registry;
use brine_master_access::admission::identity::Identity;
use brine_master_calls::MasterModules;
use brine_master_custom::{self as custom, BuiltIn, CustomModules, Kind};
use brine_master_store::keys::KeyState;
use brine_reactor::Entries;
use brine_runtime::executors::Executors;
use brine_target::{Target, TargetKind};
use brine_value::{Map, Value};
use brine_zmtp::{Endpoint, Listener};

use crate::StartError;

/// Checks whether a master with this configuration can start. Has no side effects.
pub fn check(config: &MasterConfig, modules: MasterModules) -> Vec<Finding> {
    let mut findings = configuration(config);
    findings.extend(parts(config, modules));
    findings.extend(host(config));
    findings.extend(keys(config));
    findings.extend(brine_check::repositories(&config.opts, &config.cachedir));
    findings
}

/// Checks the options and the files that they name, as [`check`], and nothing that only the user of the master may see.
pub fn check_options(config: &MasterConfig, modules: MasterModules) -> Vec<Finding> {
    let mut findings = configuration(config);
    findings.extend(parts(config, modules));
    findings.extend(sockets(config));
    findings
}

/// Checks the configuration and the files that it names. At startup each of these findings is reported once.
pub(crate) fn configuration(config: &MasterConfig) -> Vec<Finding> {
    let mut findings = Vec::new();
    findings.extend(brine_master_access::admission::ciphers(&config.ciphers).err().map(Finding::refused));
    findings.extend(crate::tasks::event_return_filters(config).err().map(Finding::refused));
    findings.extend(brine_master_access::access::socket_group(config).err().map(Finding::refused));
    findings.extend(Identity::check(config).err().map(Finding::refused));
    findings.extend(crate::cluster::settings(config).err().map(Finding::refused));
    match brine_master_store::storage::file_roots(config) {
        Ok(_) => {
            let is_own = |name: &str| custom::may_have(config, "fileserver", name);
            findings.extend(brine_check::file_server(&config.opts, is_own));
            if !config.file_recv && brine_fileserver::backends(&config.opts).iter().any(|name| name == "minionfs") {
                findings.push(Finding::warning(
                    "option 'fileserver_backend': minions cannot push files for 'minionfs': set 'file_recv: True'",
                ));
            }
        }
        Err(error) => findings.push(Finding::refused(error)),
    }
    let options = brine_returners::Options::new(&config.opts, None);
    let of_events = config.event_return.iter().map(|name| ("event_return", name));
    let of_jobs = config.ext_job_cache.iter().filter(|name| !name.is_empty()).map(|name| ("ext_job_cache", name));
    let of_jobs = std::iter::once(("master_job_cache", &config.master_job_cache)).chain(of_jobs);
    for (option, name) in of_jobs.chain(of_events) {
        if option != "master_job_cache" && custom::may_have(config, "returners", name) {
            continue;
        }
        if let Err(error) = brine_returners::check(name, &options) {
            findings.push(Finding::refused(format!("option '{option}': {error}")));
        }
    }
    let error = config.publish_signing_algorithm.parse::<SignatureAlgorithm>().err();
    findings.extend(error.map(|error| Finding::refused(format!("option 'publish_signing_algorithm': {error}"))));
    match Entries::usable(&config.opts) {
        Ok((entries, errors)) => {
            findings.extend(errors.iter().map(|error| Finding::broken(format!("option 'reactor': {error}"))));
            let files = brine_reactor::check_files(&entries, &config.renderer, config.reactor_strict_data);
            findings.extend(files.into_iter().map(Finding::broken));
        }
        Err(error) => findings.push(Finding::refused(crate::reactions::invalid_entries(&error))),
    }
    findings.extend(brine_check::words(&config.opts));
    findings.extend(brine_check::renderer(&config.renderer, |name| custom::may_have(config, "renderers", name)));
    findings.extend(
        brine_sls::pillar::check(&config.opts, |name| custom::may_have(config, "pillar", name))
            .into_iter()
            .map(Finding::broken),
    );
    findings.extend(brine_check::top_files(&config.file_roots, &config.state_top, &config.renderer));
    findings.extend(brine_check::top_files(&config.pillar_roots, &config.state_top, &config.renderer));
    for name in config.nodegroups.keys().map(ToString::to_string) {
        let target = Target::parse(TargetKind::Nodegroup, Value::from(name.as_str()), ":", &config.nodegroups);
        findings.extend(target.err().map(|error| Finding::warning(format!("option 'nodegroups': '{name}': {error}"))));
    }
    findings.extend(rights(config).into_iter().map(Finding::warning));
    let has_users = !config.publisher_acl.is_empty() || !config.external_auth.is_empty() || config.api_user.is_some();
    if config.sock_group.as_deref().is_some_and(|name| !name.is_empty()) && !has_users {
        findings.push(Finding::warning(
            "option 'sock_group' has no effect: no users have rights by 'publisher_acl', 'external_auth' or 'api_user'",
        ));
    }
    findings
}

/// Returns the entries of rights that permit nothing.
fn rights(config: &MasterConfig) -> Vec<String> {
    let mut messages = Vec::new();
    let mut check = |location: &str, users: &Map| {
        // Lines such as `^model` are not entries of users.
        for (user, entries) in users.iter().filter(|(name, _)| !name.as_str().is_some_and(|name| name.starts_with('^')))
        {
            let reasons = brine_auth::ineffective(entries, &config.nodegroups);
            messages.extend(
                reasons
                    .iter()
                    .map(|reason| format!("option {location}: an entry of '{user}' permits nothing: {reason}")),
            );
        }
    };
    check("'publisher_acl'", &config.publisher_acl);
    for (system, users) in &config.external_auth {
        if let Value::Map(users) = users {
            check(&format!("'external_auth': '{system}'"), users);
        }
    }
    for (option, rules) in [("peer", &config.peer), ("peer_run", &config.peer_run)] {
        let mappings = rules.iter().filter(|(_, rules)| rules.as_map().is_some());
        messages.extend(mappings.map(|(id, _)| {
            format!(
                "option '{option}': an entry of '{id}' permits nothing: expected a list of functions, got a mapping"
            )
        }));
    }
    messages
}

/// Checks options whose errors are logged by the parts of a running master.
fn parts(config: &MasterConfig, modules: MasterModules) -> Vec<Finding> {
    let runners = Registry::new(modules.runners);
    let custom = CustomModules::new(config, None, BuiltIn::default());
    let may_be_custom = |function: &str| custom.may_have(Kind::Runner, function.split('.').next().unwrap_or_default());
    let is_known = |function: &str| runners.get(function).is_some() || may_be_custom(function);
    let mut findings = brine_check::schedule(&config.schedule, is_known);
    let is_own =
        |error: &AuthError| matches!(error, AuthError::Unsupported(name) if custom::may_have(config, "auth", name));
    let external = ExternalAuth::new(&config.opts).check().into_iter().filter(|error| !is_own(error));
    findings.extend(external.map(Finding::warning));
    let strict = config.reactor_strict_data;
    let rules = brine_reactor::check_rules(&config.reactor_rules, &config.renderer, strict, &config.opts);
    findings.extend(rules.into_iter().map(|error| Finding::broken(format!("a rule over time is skipped: {error}"))));
    let has_engine = |name: &str| custom.has_engine(name);
    let engines = Engine::check(&config.engines, config.python_fallback, has_engine);
    findings.extend(engines.into_iter().map(|error| Finding::broken(format!("option 'engines': {error}"))));
    findings.extend(brine_check::missing_roots("file_roots", &config.file_roots));
    findings.extend(brine_check::missing_roots("pillar_roots", &config.pillar_roots));
    findings
}

/// Checks the directories, files and ports that the master needs.
fn host(config: &MasterConfig) -> Vec<Finding> {
    let mut findings = brine_check::directories(&config.pki_dir, &config.cachedir, &config.sock_dir);
    findings.extend(brine_check::file(&config.store_path()));
    let mut ports = vec![
        ("publish_port", &config.interface, config.publish_port),
        ("ret_port", &config.interface, config.ret_port),
    ];
    if config.metrics_port > 0 {
        ports.push(("metrics_port", &config.metrics_interface, config.metrics_port));
    }
    findings.extend(ports.into_iter().filter_map(|(option, host, port)| brine_check::port(option, host, port)));
    findings.extend(sockets(config));
    findings
}

/// Checks the paths of the local sockets.
fn sockets(config: &MasterConfig) -> Option<Finding> {
    let sockets = [
        SocketNames::master().publish_endpoint(&config.sock_dir),
        Endpoint::Ipc(config.sock_dir.join(crate::listeners::PUBLISH_PULL)),
    ];
    sockets.iter().find_map(|socket| Listener::check(socket).err()).map(Finding::refused)
}

/// Checks that the keys can be read, and reports the number of minion keys.
fn keys(config: &MasterConfig) -> Vec<Finding> {
    let pki_dir = config.pki_dir.display();
    let mut findings = Vec::new();
    match Identity::load(config) {
        Ok(Some(key)) => {
            findings.push(Finding::note(format!("{pki_dir}: the master key {}", key.public().fingerprint())));
        }
        Ok(None) => findings.push(Finding::note(format!(
            "{pki_dir}: no master key: the first start generates one, which enrolled minions will refuse"
        ))),
        Err(error) => findings.push(Finding::refused(error)),
    }
    let mut counts = Vec::new();
    for state in KeyState::ALL {
        let directory = config.pki_dir.join(state.directory());
        match std::fs::read_dir(&directory) {
            Ok(entries) => counts.push(format!("{} {}", entries.count(), state.word())),
            Err(error) if error.kind() == ErrorKind::NotFound => counts.push(format!("0 {}", state.word())),
            Err(error) => findings.push(Finding::refused(format!("cannot read {}: {error}", directory.display()))),
        }
    }
    findings.push(Finding::note(format!("{pki_dir}: keys of minions: {}", counts.join(", "))));
    findings
}

/// Reports the findings at startup, each once.
///
/// # Errors
/// The first finding that prevents the start.
pub(crate) async fn report(config: &Arc<MasterConfig>, executors: &Executors) -> Result<(), StartError> {
    let examined = Arc::clone(config);
    // The check panicked, which is logged: the start continues, and will hit the same error.
    let findings = executors.render.run(move |_| configuration(&examined)).await.unwrap_or_default();
    brine_check::report(findings).map_err(|finding| StartError::Invalid(finding.message))
}

#[cfg(test)]
mod tests;
