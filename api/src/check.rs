//! Checks the options of the API: at its start and for `salt-api --check`.

use std::path::PathBuf;
use std::sync::Arc;

use brine_check::Finding;
use brine_config::{MasterConfig, RestConfig};

use crate::lowstate::Client;
use crate::{Api, routes, tls};

/// Checks whether the API can start with this configuration. Has no side effects.
pub fn check(config: &MasterConfig) -> Vec<Finding> {
    let (options, without_effect) = match RestConfig::new(config) {
        Ok(read) => read,
        Err(error) => return vec![Finding::refused(error)],
    };
    let mut findings = Vec::new();
    for (name, is_salts) in without_effect {
        findings.push(if is_salts {
            Finding::note(format!("the option '{name}' of the API has no effect in Brine"))
        } else {
            Finding::warning(format!("the option '{name}' of the API is unknown: it may be misspelt"))
        });
    }
    let clients = &config.netapi_enable_clients;
    if clients.is_empty() {
        let message =
            "netapi_enable_clients is empty, so the API runs no commands: name clients such as local and runner";
        findings.push(Finding::warning(message));
    }
    for name in clients.iter().filter(|name| !Client::ALL.iter().any(|(other, _)| other == name)) {
        findings.push(Finding::warning(format!("netapi_enable_clients names '{name}', which is not a client")));
    }
    if config.external_auth.is_empty() {
        findings.push(Finding::warning("external_auth is empty, so nobody can log in to the API"));
    }
    let files = [("app", &options.app), ("static", &options.static_dir), ("favicon", &options.favicon)];
    for (name, path) in files.into_iter().filter_map(|(name, path)| Some((name, path.as_ref()?))) {
        if !path.exists() {
            findings.push(Finding::broken(format!("option '{name}' of the API: {} does not exist", path.display())));
        }
    }
    if options.ssl_crt.is_some() || options.ssl_key.is_some() {
        findings.extend(tls::load(config, &options).err().map(Finding::refused));
    }
    let routes = Api::new(config, options, PathBuf::new()).and_then(|api| routes::router(&Arc::new(api)).map(|_| ()));
    findings.extend(routes.err().map(Finding::refused));
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use brine_value::map;

    fn messages(section: brine_value::Map) -> Vec<String> {
        let config = MasterConfig {
            rest_cherrypy: section,
            netapi_enable_clients: vec!["local".to_owned()],
            external_auth: map! {"auto" => brine_value::Value::map()},
            ..MasterConfig::default()
        };
        check(&config).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn invalid_options_are_found_before_the_start() {
        for (section, expected) in [
            (map! {"port" => 8000}, None),
            (map! {"port" => "x"}, Some("error: option 'rest_cherrypy.port' is invalid")),
            (map! {"prot" => 1}, Some("warning: the option 'prot' of the API is unknown")),
            (map! {"thread_pool" => 5}, Some("the option 'thread_pool' of the API has no effect")),
            (map! {"webhook_url" => "/run"}, Some("error: option 'rest_cherrypy.webhook_url' is invalid")),
            (map! {"webhook_secrets" => map! {"a" => 5}}, Some("error: option 'rest_cherrypy.webhook_secrets'")),
            (map! {"ssl_crt" => "/nonexistent"}, Some("error: loading the certificate of the API failed")),
            (map! {"app" => "/nonexistent"}, Some("error: option 'app' of the API: /nonexistent does not exist")),
        ] {
            let findings = messages(section.clone());
            match expected {
                None => assert!(findings.is_empty(), "{findings:?}"),
                Some(text) => assert!(findings.len() == 1 && findings[0].starts_with(text), "{section:?} {findings:?}"),
            }
        }
    }
}
