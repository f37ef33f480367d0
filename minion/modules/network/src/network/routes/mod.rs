//! `network` functions on routes, neighbours and connections.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, ToSocketAddrs, UdpSocket};
use std::time::Duration;

use brine_context::Context;
use brine_context::programs::run;
use brine_function::{CallError, CallResult, Functions, function, registry};
use brine_host::programs::argument;
use brine_value::{Map, Value, map};

/// Execution functions of `network`.
pub static FUNCTIONS: Functions<Context> =
    registry!("network", [routes, default_route, get_route, ip_neighs, ipneighs, ip_neighs6, ipneighs6, connect, ping]);

/// Return the routes of this host, or those of one family: inet or inet6.
///
/// CLI Example:
///
///     salt '*' network.routes
#[function]
pub fn routes(
    _context: &Context,
    /// Address family: `inet` or `inet6`.
    family: Option<String>,
) -> CallResult {
    Ok(of_family(family.as_deref())?.iter().map(Route::to_value).collect())
}

/// Return the default routes of this host.
///
/// CLI Example:
///
///     salt '*' network.default_route inet
#[function]
pub fn default_route(
    _context: &Context,
    /// Address family: `inet` or `inet6`.
    family: Option<String>,
) -> CallResult {
    let all = of_family(family.as_deref())?;
    Ok(all
        .iter()
        .filter(|route| matches!(route.destination.as_str(), "0.0.0.0" | "::/0"))
        .map(Route::to_value)
        .collect())
}

/// Return the route to an address: the interface, the source address, and the gateway if there is one.
///
/// CLI Example:
///
///     salt '*' network.get_route 10.10.10.10
#[function]
pub fn get_route(
    context: &Context,
    /// Address.
    ip: String,
) -> CallResult {
    let words = ["ip".into(), "route".into(), "get".into(), argument(&ip)?];
    let output = run(context, &words, &[])?;
    let report: Vec<&str> = output.stdout.lines().next().unwrap_or_default().split_whitespace().collect();
    let behind = |word: &str| report.windows(2).find(|pair| pair[0] == word).map(|pair| pair[1]);
    if behind("dev").is_none() {
        return Err(CallError::Execution(format!("there is no route to '{ip}': {}", output.stderr)));
    }
    let way = map! {"destination" => &ip, "gateway" => behind("via"), "interface" => behind("dev"), "source" => behind("src")};
    Ok(way.into())
}

/// Return the IPv4 addresses of neighbours, by hardware address.
///
/// CLI Example:
///
///     salt '*' network.ip_neighs
#[function]
pub fn ip_neighs(context: &Context) -> CallResult {
    neighbours(context, '.')
}

/// Return the IPv4 addresses of neighbours, as `ip_neighs`.
///
/// CLI Example:
///
///     salt '*' network.ipneighs
#[function]
pub fn ipneighs(context: &Context) -> CallResult {
    neighbours(context, '.')
}

/// Return the IPv6 addresses of neighbours, by hardware address.
///
/// CLI Example:
///
///     salt '*' network.ip_neighs6
#[function]
pub fn ip_neighs6(context: &Context) -> CallResult {
    neighbours(context, ':')
}

/// Return the IPv6 addresses of neighbours, as `ip_neighs6`.
///
/// CLI Example:
///
///     salt '*' network.ipneighs6
#[function]
pub fn ipneighs6(context: &Context) -> CallResult {
    neighbours(context, ':')
}

/// Return whether a port of a host is reachable.
///
/// CLI Example:
///
///     salt '*' network.connect archlinux.org 80 timeout=3
///     salt '*' network.connect archlinux.org 80 family=ipv6
#[function]
pub fn connect(
    _context: &Context,
    /// Host name or address.
    #[default]
    host: String,
    /// Port.
    port: Option<u16>,
    /// Seconds to wait.
    #[default(5)]
    timeout: u64,
    /// `tcp`, or `udp`: then the host must answer a packet with random text.
    #[default("tcp".into())]
    proto: String,
    /// `ipv4` or `ipv6`, if the address must be one of them.
    family: Option<String>,
) -> CallResult {
    let missing = |what: &str| {
        Ok(map! {"result" => false, "comment" => format!("Required argument, {what}, is missing.")}.into())
    };
    if host.is_empty() {
        return missing("host");
    }
    let Some(port) = port else { return missing("port") };
    let proto = if proto == "udp" { "udp" } else { "tcp" };
    let fits = |address: &SocketAddr| match family.as_deref() {
        Some("ipv4") => address.is_ipv4(),
        Some("ipv6") => address.is_ipv6(),
        _ => true,
    };
    let Some(address) = (host.as_str(), port).to_socket_addrs().ok().and_then(|mut all| all.find(fits)) else {
        let comment = format!("Unable to resolve host {host} on {proto} port {port}");
        return Ok(map! {"result" => false, "comment" => comment}.into());
    };
    let timeout = Duration::from_secs(timeout.max(1));
    let connected = match proto {
        "udp" => answers(address, timeout).is_ok(),
        _ => TcpStream::connect_timeout(&address, timeout).is_ok(),
    };
    let how = if connected { "Successfully connected" } else { "Unable to connect" };
    let comment = format!("{how} to {host} ({}) on {proto} port {port}", address.ip());
    Ok(map! {"result" => connected, "comment" => comment}.into())
}

/// Sends a packet to an address, and waits for the answer.
fn answers(address: SocketAddr, timeout: Duration) -> std::io::Result<()> {
    let own: SocketAddr =
        if address.is_ipv4() { (Ipv4Addr::UNSPECIFIED, 0).into() } else { (Ipv6Addr::UNSPECIFIED, 0).into() };
    let socket = UdpSocket::bind(own)?;
    // A connected socket only receives packets of its peer.
    socket.connect(address)?;
    socket.set_read_timeout(Some(timeout))?;
    socket.send(format!("{:032x}", rand::random::<u128>()).as_bytes())?;
    socket.recv(&mut [0; 255]).map(|_| ())
}

/// Ping a host four times, and return the output, or with `return_boolean` whether it answered.
///
/// CLI Example:
///
///     salt '*' network.ping archlinux.org return_boolean=True
#[function]
pub fn ping(
    context: &Context,
    /// Host name or address.
    host: String,
    /// Seconds to wait.
    timeout: Option<u32>,
    /// Whether the result is only whether the host answers.
    #[default(false)]
    return_boolean: bool,
) -> CallResult {
    let mut words = vec!["ping".to_owned()];
    words.extend(timeout.into_iter().flat_map(|seconds| ["-W".into(), seconds.to_string()]));
    words.extend(["-c".into(), "4".into(), argument(&host)?]);
    let output = run(context, &words, &[])?;
    Ok(if return_boolean { (output.retcode == 0).into() } else { output.stdout.into() })
}

/// A route as shown by `netstat`.
struct Route {
    family: &'static str,
    destination: String,
    gateway: String,
    netmask: String,
    flags: String,
    interface: String,
}

impl Route {
    fn to_value(&self) -> Value {
        map! {
            "addr_family" => self.family, "destination" => &self.destination, "gateway" => &self.gateway,
            "netmask" => &self.netmask, "flags" => &self.flags, "interface" => &self.interface,
        }
        .into()
    }

    /// Parses a line of `/proc/net/route`.
    fn v4(line: &str) -> Option<Self> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let number = |index: usize| u32::from_str_radix(words.get(index)?, 16).ok();
        // The kernel writes addresses as integers in host byte order, whose bytes are in network byte order.
        let address = |index: usize| Some(Ipv4Addr::from(number(index)?.to_ne_bytes()).to_string());
        Some(Route {
            family: "inet",
            destination: address(1)?,
            gateway: address(2)?,
            netmask: address(7)?,
            flags: flag_letters(number(3)?, &FLAGS),
            interface: (*words.first()?).to_owned(),
        })
    }

    /// Parses a line of `/proc/net/ipv6_route`.
    fn v6(line: &str) -> Option<Self> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let number = |index: usize| u32::from_str_radix(words.get(index)?, 16).ok();
        let address = |index: usize| Some(Ipv6Addr::from(u128::from_str_radix(words.get(index)?, 16).ok()?));
        Some(Route {
            family: "inet6",
            destination: format!("{}/{}", address(0)?, number(1)?),
            gateway: address(4)?.to_string(),
            netmask: String::new(),
            flags: flag_letters(number(8)?, &FLAGS_6),
            interface: (*words.get(9)?).to_owned(),
        })
    }
}

/// Flag of a reject route.
const REJECT: u32 = 0x200;

const FLAGS: [(u32, char); 5] = [(0x2, 'G'), (0x4, 'H'), (0x8, 'R'), (0x10, 'D'), (0x20, 'M')];

const FLAGS_6: [(u32, char); 9] = [
    (0x2, 'G'),
    (0x4, 'H'),
    (0x1_0000, 'D'),
    (0x4_0000, 'A'),
    (0x100_0000, 'C'),
    (0x2_0000, 'a'),
    (0x40_0000, 'e'),
    (0x20, 'm'),
    (0x20_0000, 'n'),
];

fn flag_letters(flags: u32, letters: &[(u32, char)]) -> String {
    let first = if flags & REJECT == 0 { 'U' } else { '!' };
    std::iter::once(first)
        .chain(letters.iter().filter(|(bit, _)| flags & bit != 0).map(|(_, letter)| *letter))
        .collect()
}

fn of_family(family: Option<&str>) -> Result<Vec<Route>, CallError> {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let v4 = || read("/proc/net/route").lines().skip(1).filter_map(Route::v4).collect::<Vec<_>>();
    let v6 = || read("/proc/net/ipv6_route").lines().filter_map(Route::v6).collect::<Vec<_>>();
    match family {
        None => Ok(v4().into_iter().chain(v6()).collect()),
        Some("inet") => Ok(v4()),
        Some("inet6") => Ok(v6()),
        Some(other) => Err(CallError::Execution(format!("Invalid address family {other}"))),
    }
}

/// Returns the neighbours whose addresses contain this character.
fn neighbours(context: &Context, sign: char) -> Result<Value, CallError> {
    let output = run(context, &["ip".into(), "neigh".into(), "show".into()], &[])?;
    let report = output.stdout.lines().filter_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (address, hardware) = (words.first()?, words.get(4)?);
        address.contains(sign).then(|| ((*hardware).into(), (*address).into()))
    });
    Ok(report.collect::<Map>().into())
}

#[cfg(test)]
mod tests;
