//! The roster `scan`: the target consists of addresses or networks; its hosts are those that listen on an `ssh` port.

use std::net::{IpAddr, SocketAddr, TcpStream};
use std::time::Duration;

use brine_text::network::network;
use brine_value::{Value, map};
use parking_lot::Mutex;

use super::Fields;

/// The maximum number of addresses.
const MAX_ADDRESSES: usize = 65_536;
/// The maximum number of concurrent connection attempts.
const PARALLEL: usize = 64;

/// Returns the hosts of a target: an address, a network such as `10.0.0.0/24`, or a list of both. Only hosts that
/// answer are returned; Salt also returns those that do not, without a port.
pub(super) fn hosts(tgt: &Value, ports: &[u16], timeout: Duration) -> Fields {
    let words: Vec<String> = match tgt {
        Value::List(words) => words.iter().map(ToString::to_string).collect(),
        other => other.to_string().split(',').map(|word| word.trim().to_owned()).collect(),
    };
    let mut addresses: Vec<IpAddr> = words.iter().flat_map(|word| addresses(word)).take(MAX_ADDRESSES).collect();
    addresses.sort();
    addresses.dedup();
    let mut hosts = listening(addresses, |address| Some(*address), ports, timeout);
    hosts.sort();
    let fields = |(address, port): (IpAddr, u16)| {
        (address.to_string(), map! {"host" => address.to_string(), "port" => i64::from(port)})
    };
    hosts.into_iter().map(fields).collect()
}

/// Returns the hosts that listen, each with the first of the ports that answers within the timeout. Blocks.
pub(super) fn listening<H: Send>(
    hosts: Vec<H>,
    address: impl Fn(&H) -> Option<IpAddr> + Sync,
    ports: &[u16],
    timeout: Duration,
) -> Vec<(H, u16)> {
    let (waiting, listening) = (Mutex::new(hosts.into_iter()), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..PARALLEL {
            scope.spawn(|| {
                loop {
                    let next = waiting.lock().next();
                    let Some(host) = next else { return };
                    let Some(address) = address(&host) else { continue };
                    let is_open =
                        |port: &&u16| TcpStream::connect_timeout(&SocketAddr::new(address, **port), timeout).is_ok();
                    if let Some(port) = ports.iter().find(is_open) {
                        listening.lock().push((host, *port));
                    }
                }
            });
        }
    });
    listening.into_inner()
}

/// Returns the addresses of an address or a network; empty if `word` is neither.
fn addresses(word: &str) -> Vec<IpAddr> {
    if let Ok(address) = word.parse() {
        return vec![address];
    }
    network(word).map(|network| network.hosts().take(MAX_ADDRESSES).collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use brine_value::list;

    use super::*;

    #[test]
    fn listening_addresses_are_hosts() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let names = |tgt: Value, ports: &[u16]| {
            let hosts = hosts(&tgt, ports, Duration::from_secs(5));
            hosts.keys().cloned().collect::<Vec<_>>().join(" ")
        };
        assert_eq!(names("127.0.0.0/30".into(), &[1, port]), "127.0.0.1");
        assert_eq!(names(list!["127.0.0.1", "127.0.0.1", "name"], &[port]), "127.0.0.1");
        assert_eq!(names("127.0.0.1".into(), &[1]), "");
        assert_eq!(names("*".into(), &[port]), "");
        assert_eq!((addresses("10.0.0.0/24").len(), addresses("10.0.0.0/8").len()), (254, MAX_ADDRESSES));
    }
}
