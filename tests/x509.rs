//! Certificates across minions: an authority on one minion signs for another by a policy, if the master permits it.
//! `openssl` verifies the results.

use std::process::Command;

use crate::support::System;
use brine_value::Value;

const MASTER: &str = "peer: {'.*': [x509.sign_remote_certificate]}
peer_run: {ca: [match.compound_matches]}
";

const POLICIES: &str = "x509_signing_policies:
  www:
    - minions: 'web*'
    - signing_private_key: ROOT/ssl/ca.key
    - signing_cert: ROOT/ssl/ca.crt
    - O: Brine
    - basicConstraints: critical, CA:FALSE
    - keyUsage: critical, digitalSignature
    - authorityKeyIdentifier: keyid:always
    - days_valid: 200
    - copypath: ROOT/ssl
  compound:
    - minions: 'L@web1 and E@web.*'
    - signing_private_key: ROOT/ssl/ca.key
    - signing_cert: ROOT/ssl/ca.crt
";

const AUTHORITY: &str = "{{ opts.x509_root }}/ca.key:
  x509.private_key_managed:
    - algo: ec
    - makedirs: True
{{ opts.x509_root }}/ca.crt:
  x509.certificate_managed:
    - signing_private_key: {{ opts.x509_root }}/ca.key
    - CN: authority
    - basicConstraints: critical, CA:TRUE
    - keyUsage: critical, keyCertSign, cRLSign
    - subjectKeyIdentifier: hash
    - require: [x509: {{ opts.x509_root }}/ca.key]
";

const WEB: &str = "{{ opts.x509_root }}/web.key:
  x509.private_key_managed:
    - algo: ed25519
    - makedirs: True
{{ opts.x509_root }}/web.crt:
  x509.certificate_managed:
    - ca_server: ca
    - signing_policy: {{ pillar.policy }}
    - private_key: {{ opts.x509_root }}/web.key
    - CN: {{ grains.id }}
    - subjectAltName: DNS:{{ grains.id }}.example.com
    - subject: CN=root
";

/// Applies states on a minion, and returns their tags and results in order.
fn applied(system: &System, minion: &str, sls: &str, pillar: &str) -> Vec<(String, Value)> {
    let returned = system.salt_json(&[minion, "state.apply", sls, pillar]);
    let states = returned.get(minion).and_then(Value::as_map).unwrap_or_else(|| panic!("{returned}"));
    states.iter().map(|(tag, result)| (tag.to_string(), result.clone())).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn ca_minion_signs_certificates_of_other_minions_by_policy() {
    let mut system = System::start(MASTER).await;
    let root = system.path("").display().to_string();
    system.write("srv/salt/authority.sls", AUTHORITY);
    system.write("srv/salt/web.sls", WEB);
    system.write("srv/pillar/top.sls", "base: {ca: [policies]}\n");
    system.write("srv/pillar/policies.sls", &POLICIES.replace("ROOT", root.trim_end_matches('/')));
    for id in ["ca", "web1", "db1"] {
        let directory = if id == "ca" { "ssl" } else { "web" };
        system.configure_minion(id, &format!("x509_root: {}/{directory}\n", root.trim_end_matches('/')));
        let mut events = system.events("salt/minion/").await;
        system.spawn_minion(id);
        events.until(&format!("salt/minion/{id}/start")).await;
    }
    let results = applied(&system, "ca", "authority", "pillar={}");
    // Two states, each with the result of its file.
    assert_eq!(results.len(), 4, "{results:?}");
    assert!(results.iter().all(|(_, result)| result.get("result") == Some(&true.into())), "{results:?}");
    // The file has the number of the state after it, as in Salt.
    assert!(results[1].0.starts_with("file_|-") && results[1].1.get("__run_num__") == Some(&2.into()), "{results:?}");

    for (policy, subject) in [("www", "O = Brine, CN = web1"), ("compound", "CN = root")] {
        let results = applied(&system, "web1", "web", &format!("pillar={{policy: {policy}}}"));
        assert!(results.iter().all(|(_, result)| result.get("result") == Some(&true.into())), "{results:?}");
        let again = applied(&system, "web1", "web", &format!("pillar={{policy: {policy}}}"));
        assert!(again.iter().all(|(_, result)| result.get("changes") == Some(&Value::map())), "{again:?}");
        let openssl = |args: &[&str]| {
            let output = Command::new("openssl").args(args).current_dir(system.path("")).output().unwrap();
            format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
        };
        assert_eq!(openssl(&["verify", "-CAfile", "ssl/ca.crt", "web/web.crt"]), "web/web.crt: OK\n");
        let text = openssl(&["x509", "-in", "web/web.crt", "-noout", "-text"]);
        assert!(text.contains("DNS:web1.example.com") && text.contains(subject), "{text}");
    }
    // The authority keeps a copy of certificates that it signs by the first policy.
    let files = std::fs::read_dir(system.path("ssl")).unwrap().map(|entry| entry.unwrap().file_name());
    let files = files.collect::<Vec<_>>();
    assert_eq!(files.len(), 3, "{files:?}");

    let refused = applied(&system, "db1", "web", "pillar={policy: www}");
    let (_, last) = refused.iter().find(|(tag, _)| tag.ends_with("certificate_managed")).unwrap();
    assert_eq!(last.get("result"), Some(&false.into()));
    let comment = last.get("comment").unwrap().to_string();
    assert_eq!(comment, "ca_server reported errors:\nminion not permitted to use specified signing policy");
}
