//! The ports of a master or its REST API, and who holds them; the names and ports of the masters of a minion or syndic.

use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use crate::daemon::Daemon;
use crate::finding::{Finding, Role};
use crate::installation::{Installation, Port};
use crate::kinds;
use crate::places::user_name;
use crate::processes::{self, Listening};

/// The timeout of a connection.
const TIMEOUT: Duration = Duration::from_secs(2);
/// The timeout of names and the connections to their addresses.
const NAME_TIMEOUT: Duration = Duration::from_secs(5);
/// The time that the REST API has for the first byte of an answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(3);
/// The number of addresses of a name that are tried.
const MAX_ADDRESSES: usize = 2;
/// The maximum number of masters that are tried.
const MAX_MASTERS: usize = 16;

/// Whether a listening socket serves, or takes, an address.
fn overlaps(listening: &Listening, port: &Port) -> bool {
    let address: Option<IpAddr> = port.host.trim_matches(['[', ']']).parse().ok();
    listening.port == port.port
        && (listening.address.is_unspecified()
            || address.is_none_or(|address| address.is_unspecified() || address == listening.address))
}

/// Examines the ports on which the daemon listens, or would listen.
pub fn ports(installation: &Installation, daemon: &Daemon) -> Vec<Finding> {
    let role = installation.role;
    let open = processes::listening();
    let mut findings = Vec::new();
    for port in &installation.ports {
        let place = format!("{}:{} ({})", port.host, port.port, port.option);
        let taking: Vec<&Listening> = open.iter().filter(|one| overlaps(one, port)).collect();
        let Some(first) = taking.first() else {
            if let Some(process) = &daemon.process {
                findings.push(
                    Finding::new(
                        &kinds::PORT_CLOSED,
                        role,
                        format!("the {} does not listen on port {}", role.noun(), port.port),
                    )
                    .at(place)
                    .because(format!(
                        "process {} runs, and nobody listens there: the option was changed since",
                        process.pid
                    ))
                    .mended_by(daemon.restart_command(installation)),
                );
            }
            continue;
        };
        let holder = processes::holders(&[first.inode]).remove(&first.inode);
        let is_own = match (&holder, &daemon.process) {
            (Some(holder), Some(process)) => {
                holder.pid == process.pid || holder.is_daemon(&installation.tool()) && holder.owner == process.owner
            }
            // Not visible to this user: the owner of the socket tells as much.
            (None, Some(process)) => first.uid == process.owner.0,
            (_, None) => false,
        };
        if is_own {
            findings.extend(blocked(installation, daemon, port, &place));
            continue;
        }
        let (who, mend) = match &holder {
            Some(holder) => (
                format!("process {} of {}: {}", holder.pid, user_name(holder.owner.0), holder.name()),
                format!("kill {}   # or set {} to a free port", holder.pid, port.option),
            ),
            None => (
                format!("a process of {}", user_name(first.uid)),
                format!("sudo ss -ltnp sport = :{}   # shows it; or set {} to a free port", port.port, port.option),
            ),
        };
        findings.push(
            Finding::new(&kinds::PORT_TAKEN, role, format!("port {} is taken", port.port))
                .at(place)
                .because(format!("{who} listens there"))
                .mended_by(mend),
        );
    }
    findings
}

/// Connects to a port of this daemon, as a client would from this host.
fn blocked(installation: &Installation, daemon: &Daemon, port: &Port, place: &str) -> Option<Finding> {
    let role = installation.role;
    let host = match port.host.as_str() {
        "0.0.0.0" => "127.0.0.1",
        "::" => "::1",
        host => host,
    };
    let address = (host, port.port).to_socket_addrs().ok()?.next()?;
    match TcpStream::connect_timeout(&address, TIMEOUT) {
        Err(error) => Some(
            Finding::new(&kinds::PORT_BLOCKED, role, format!("port {} cannot be reached from this host", port.port))
                .at(place)
                .because(format!("the {} listens there, and connecting fails: {error}", role.noun()))
                .mended_by(format!(
                    "nft list ruleset; iptables -S   # look for a rule about port {}, also for minions",
                    port.port
                )),
        ),
        // A master is asked by its own protocol.
        Ok(stream) if role == Role::Api && is_silent(&stream, ANSWER_TIMEOUT) => Some(
            Finding::new(
                &kinds::DAEMON_HUNG,
                role,
                format!("the {} accepts connections and does not answer", role.noun()),
            )
            .at(place)
            .because(format!("no byte came within {} s after a request", ANSWER_TIMEOUT.as_secs()))
            .mended_by(daemon.restart_command(installation)),
        ),
        Ok(_) => None,
    }
}

/// Whether a server of HTTP says nothing to a request. One with TLS closes the connection, which is an answer as well.
fn is_silent(mut stream: &TcpStream, limit: Duration) -> bool {
    let is_set = [stream.set_read_timeout(Some(limit)), stream.set_write_timeout(Some(limit))];
    if is_set.iter().any(Result::is_err) || stream.write_all(b"GET / HTTP/1.0\r\n\r\n").is_err() {
        return false;
    }
    stream.read(&mut [0]).is_err_and(|error| matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut))
}

/// Examines whether the names of the masters of a minion or syndic have addresses, and with `connect` whether their request port
/// answers.
pub fn masters(installation: &Installation, connect: bool) -> Vec<Finding> {
    let (sender, receiver) = mpsc::channel();
    let mut waiting: Vec<(String, u16)> = installation.masters.iter().take(MAX_MASTERS).cloned().collect();
    let role = installation.role;
    for master in waiting.clone() {
        let sender = sender.clone();
        std::thread::spawn(move || {
            let finding = try_master(role, &master.0, master.1, connect);
            _ = sender.send((master, finding));
        });
    }
    let end = Instant::now() + NAME_TIMEOUT;
    let mut findings = Vec::new();
    while !waiting.is_empty() {
        let Ok((master, one)) = receiver.recv_timeout(end.saturating_duration_since(Instant::now())) else { break };
        waiting.retain(|other| *other != master);
        findings.extend(one);
    }
    let why = format!("the name servers have not answered within {} s", NAME_TIMEOUT.as_secs());
    findings.extend(waiting.iter().map(|(host, _)| unresolved(role, host).because(&why)));
    findings
}

fn try_master(role: Role, host: &str, port: u16, connect: bool) -> Option<Finding> {
    let addresses: Vec<SocketAddr> = match (host, port).to_socket_addrs() {
        Ok(addresses) => addresses.collect(),
        Err(error) => return Some(unresolved(role, host).because(error)),
    };
    if addresses.is_empty() {
        return Some(unresolved(role, host).because("the name has no address"));
    }
    if !connect {
        return None;
    }
    let tried = addresses.iter().take(MAX_ADDRESSES).map(|address| TcpStream::connect_timeout(address, TIMEOUT));
    let mut last = None;
    for one in tried {
        match one {
            Ok(_) => return None,
            Err(error) => last = Some(error),
        }
    }
    Some(unreachable(role, &format!("{host}:{port}"), &last.map_or_else(String::new, |error| error.to_string())))
}

/// Returns the options that name the masters of a role, and their port.
fn options_of(role: Role) -> (&'static str, &'static str) {
    match role {
        Role::Syndic => ("syndic_master", "syndic_master_port"),
        Role::Minion | Role::Master | Role::Api => ("master", "master_port"),
    }
}

fn unresolved(role: Role, host: &str) -> Finding {
    let (option, _) = options_of(role);
    Finding::new(&kinds::NAME_UNRESOLVED, role, format!("the name '{host}' of the master has no address"))
        .at(format!("option '{option}'"))
        .mended_by(format!("getent hosts {}   # correct '{option}', the name server or /etc/hosts", word(host)))
}

/// Returns the finding about a master whose request port does not answer.
pub fn unreachable(role: Role, place: &str, why: &str) -> Finding {
    let (host, port) = place.rsplit_once(':').unwrap_or((place, "4506"));
    let (option, port_option) = options_of(role);
    Finding::new(&kinds::MASTER_UNREACHABLE, role, format!("the master {place} does not answer"))
        .at(place)
        .because(why)
        .mended_by(format!(
            "ssh {} brine doctor   # is the master up, and its port {port} open to this host? compare '{option}' and '{port_option}'",
            word(host)
        ))
}

fn word(text: &str) -> String {
    crate::finding::quoted(std::path::Path::new(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sockets_take_an_address_or_all() {
        let listening = |address: &str| Listening { address: address.parse().unwrap(), port: 1, uid: 0, inode: 1 };
        let port = |host: &str| Port { option: "ret_port", host: host.to_owned(), port: 1 };
        for (socket, host, expected) in [
            ("0.0.0.0", "10.0.0.1", true),
            ("10.0.0.1", "0.0.0.0", true),
            ("10.0.0.1", "10.0.0.1", true),
            ("10.0.0.2", "10.0.0.1", false),
            ("::", "::", true),
        ] {
            assert_eq!(overlaps(&listening(socket), &port(host)), expected, "{socket} {host}");
        }
    }

    #[test]
    fn names_without_an_address_are_found() {
        let config = brine_config::MinionConfig {
            master: vec!["no-such-host.invalid".into()],
            ..brine_config::MinionConfig::default()
        };
        let findings = masters(&Installation::minion(&config, &[]), true);
        assert_eq!(findings[0].kind.name, "name-unresolved");
    }

    #[test]
    fn the_masters_above_a_syndic_are_tried() {
        let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let config = brine_config::MasterConfig {
            syndic_master: vec!["no-such-host.invalid".into(), "127.0.0.1".into()],
            ..brine_config::MasterConfig::default()
        };
        let findings = masters(&Installation::syndic(&config, closed), true);
        let mut names: Vec<_> = findings.iter().map(|one| (one.kind.name, one.role.name())).collect();
        names.sort_unstable();
        assert_eq!(names, [("master-unreachable", "syndic"), ("name-unresolved", "syndic")]);
        assert!(findings.iter().all(|one| one.mend.contains("'syndic_master'")), "{findings:?}");
    }

    #[test]
    fn an_api_that_says_nothing_is_found_in_time() {
        let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let connect = || TcpStream::connect(server.local_addr().unwrap()).unwrap();
        let limit = Duration::from_millis(200);
        // Its backlog accepts connections, and nobody answers.
        assert!(is_silent(&connect(), limit));
        let answering = connect();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                drop(server.accept().unwrap());
                drop(server.accept().unwrap());
            });
            assert!(!is_silent(&answering, Duration::from_secs(60)), "a closed connection is an answer");
        });
    }
}
