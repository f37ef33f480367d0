//! `status`: connections of this host to a master.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, ToSocketAddrs};

use brine_context::Context;
use brine_function::{CallError, CallResult, Functions, function, registry};
use brine_value::{Value, map};
use brine_wire::Envelope;
use brine_zmtp::{Endpoint, Limits, RequestClient};

/// Default publish port of Salt's masters.
const PUBLISH_PORT: u16 = 4505;
/// Code of an established connection in the kernel's tables.
const ESTABLISHED: &str = "01";

/// Execution functions of `status`.
pub static FUNCTIONS: Functions<Context> = registry!("status", [master, ping_master]);

/// Return whether this host has a connection to the publish port of a master, given by name or address; nothing if
/// it has none. If that differs from `connected`, an event is published on the minion's bus.
///
/// CLI Example:
///
///     salt '*' status.master salt.example.com
#[function]
pub fn master(
    context: &Context,
    /// Address of the master.
    master: Option<String>,
    /// Whether the master was connected at the last call.
    #[default(true)]
    connected: bool,
) -> CallResult {
    let port = context.minion.upstream.publish_port().or(context.config().publish_port).unwrap_or(PUBLISH_PORT);
    let addresses = master.as_deref().map(resolved).unwrap_or_default();
    let Some(master) = master.filter(|_| !addresses.is_empty()) else { return Ok(Value::Nil) };
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"].map(|path| std::fs::read_to_string(path).unwrap_or_default());
    let is_connected = tables.iter().flat_map(|table| peers(table, port)).any(|peer| addresses.contains(&peer));
    if is_connected != connected {
        fire(context, &master, if is_connected { "connected" } else { "disconnected" });
    }
    Ok(is_connected.into())
}

/// Return whether the master at a host answers. If so, an event is published on the minion's bus.
///
/// CLI Example:
///
///     salt '*' status.ping_master salt.example.com
#[function]
pub fn ping_master(
    context: &Context,
    /// Address of the master.
    #[required]
    master: Option<String>,
) -> CallResult {
    let Some(master) = master.filter(|master| !master.is_empty()) else { return Ok(false.into()) };
    let config = context.config();
    let client = RequestClient::new(Endpoint::Tcp(master.clone(), config.master_port), Limits::default());
    let timeout = config.auth_timeout.pause();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(CallError::execution)?;
    let answered = runtime.block_on(client.request(Envelope::clear(map! {"cmd" => "ping"}), timeout)).is_ok();
    if answered {
        fire(context, &master, "failback");
    }
    Ok(answered.into())
}

/// Publishes an event about the state of a master, with Salt's tags, on the minion's bus.
fn fire(context: &Context, master: &str, what: &str) {
    let tag = format!("__master_{what}");
    if let Err(error) = context.minion.local.fire(&tag, &map! {"master" => master}) {
        tracing::debug!(tag, %error, "publishing an event on the state of the master failed");
    }
}

/// Returns the addresses of a host.
fn resolved(host: &str) -> Vec<IpAddr> {
    (host, 0).to_socket_addrs().map(|addresses| addresses.map(|address| address.ip()).collect()).unwrap_or_default()
}

/// Returns the peers of established connections to a remote port, in a table such as `/proc/net/tcp`.
fn peers(table: &str, port: u16) -> impl Iterator<Item = IpAddr> {
    table.lines().skip(1).filter_map(move |line| {
        let mut fields = line.split_whitespace().skip(2);
        let (peer, state) = (fields.next()?, fields.next()?);
        let (address, own) = peer.split_once(':')?;
        (state == ESTABLISHED && u16::from_str_radix(own, 16) == Ok(port)).then(|| address_of(address))?
    })
}

/// Parses an address in the kernel's notation: 32-bit words in host byte order.
fn address_of(hex: &str) -> Option<IpAddr> {
    let word = |at: usize| Some(u32::from_str_radix(hex.get(at..at + 8)?, 16).ok()?.to_ne_bytes());
    match hex.len() {
        8 => Some(Ipv4Addr::from(word(0)?).into()),
        32 => {
            let words: Option<Vec<[u8; 4]>> = (0..4).map(|at| word(at * 8)).collect();
            let bytes: [u8; 16] = words?.concat().try_into().ok()?;
            // IPv4 connections of an IPv6 socket have mapped addresses.
            Some(Ipv6Addr::from(bytes).to_canonical())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests;
