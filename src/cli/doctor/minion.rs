//! What the masters of a minion answer.

use brine_agent::{Answer, Try};
use brine_config::MinionConfig;
use brine_context::minion_id;
use brine_doctor::finding::quoted;
use brine_doctor::{Daemon, Finding, Installation, Role, kinds, minion, network};

/// Tries the masters, and whether a running daemon is connected with one.
pub(super) async fn examine(config: &MinionConfig, installation: &Installation, daemon: &Daemon) -> Vec<Finding> {
    let tries = brine_agent::try_masters(config).await;
    let id = minion_id(config).map_or_else(|_| "ID".to_owned(), |id| id.to_string());
    let mut findings: Vec<Finding> = tries.iter().filter_map(|one| of_try(one, installation, &id)).collect();
    let ports: Vec<u16> =
        tries.iter().filter_map(|one| if let Answer::Accepted(port) = one.answer { port } else { None }).collect();
    // A daemon with another connection works.
    if !ports.is_empty() && ports.len() == tries.len() {
        findings.extend(minion::connection(daemon, installation, &ports));
    }
    findings
}

fn of_try(tried: &Try, installation: &Installation, id: &str) -> Option<Finding> {
    let (host, port) = &tried.master;
    let place = format!("{host}:{port}");
    let why = &tried.finding.message;
    let finding = |kind, what: String| Finding::new(kind, Role::Minion, what).at(&place).because(why);
    let id = quoted(std::path::Path::new(id));
    let key = quoted(&installation.pki_dir.join(brine_context::MASTER_KEY));
    let check = format!("salt-minion{} --check", installation.options());
    Some(match tried.answer {
        // The names are examined without a session.
        Answer::Accepted(_) | Answer::Unresolved => return None,
        Answer::Unreachable => network::unreachable(Role::Minion, &place, why),
        Answer::NoPublishPort => finding(&kinds::PUBLISH_UNREACHABLE, format!("the publish port of {host} does not answer"))
            .mended_by("# on the master: open publish_port (4505) to this host, as ret_port (4506) is"),
        Answer::Pending => finding(&kinds::MINION_KEY_PENDING, format!("the master {host} has not accepted this minion's key"))
            .mended_by(format!("{check}; ssh {host} 'salt-key -f {id} && salt-key -a {id}'   # compare the fingerprints")),
        Answer::Rejected => finding(&kinds::MINION_KEY_REFUSED, format!("the master {host} refuses this minion's key"))
            .mended_by(format!(
                "{check}; ssh {host} 'salt-key -f {id} && salt-key -d {id}'   # compare, restart this minion, then salt-key -a {id}"
            )),
        Answer::ChangedKey => finding(&kinds::MASTER_KEY_CHANGED, format!("the master {host} has another key than before"))
            .mended_by(format!(
                "ssh {host} salt-key -F master; rm {key}   # compare the fingerprints first, and restart the minion"
            )),
        Answer::Refused => finding(&kinds::MASTER_REFUSES, format!("the master {host} opens no session for this minion")),
    })
}
