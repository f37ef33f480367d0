//! Free TCP ports for servers that need a number in their configuration.

use std::io::{Error, ErrorKind, Result};
use std::net::{Ipv4Addr, TcpListener};
use std::sync::atomic::{AtomicU32, Ordering};

/// The first port.
const FIRST: u16 = 10_000;

/// The number of ports. The last one is below the range that the kernel takes for outgoing connections and port 0.
const COUNT: u16 = 20_000;

/// Returns a TCP port that is free on the loopback interface, and different in each call and, with few exceptions, each
/// process.
///
/// A port of the kernel's choice (port 0) would not stay free: until the server listens, the kernel may give it to an
/// outgoing connection, even to the one that asks whether the server listens already.
///
/// # Errors
///
/// All ports are in use.
pub fn free_port() -> Result<u16> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let calls = NEXT.fetch_add(1, Ordering::Relaxed);
    free_from(u64::from(std::process::id()) * 101 + u64::from(calls))
}

fn free_from(number: u64) -> Result<u16> {
    let ports = (0..u64::from(COUNT)).map(|offset| port(number + offset));
    let mut free = ports.filter(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok());
    free.next().ok_or_else(|| Error::new(ErrorKind::AddrInUse, "every port from 10000 to 29999 is in use"))
}

/// Maps all numbers to the ports, consecutive numbers to different ones.
fn port(number: u64) -> u16 {
    // The remainder is below 20,000.
    FIRST + (number % u64::from(COUNT)) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_differ_and_are_outside_the_kernels_range() {
        let ports: Vec<u16> = (0..20).map(|_| free_port().unwrap()).collect();
        let different: std::collections::BTreeSet<_> = ports.iter().collect();
        assert_eq!(different.len(), ports.len());
        assert!(ports.iter().all(|port| (10_000..30_000).contains(port)), "{ports:?}");
    }

    #[test]
    fn a_port_in_use_is_passed_over() {
        let server = TcpListener::bind((Ipv4Addr::LOCALHOST, free_port().unwrap())).unwrap();
        let taken = server.local_addr().unwrap().port();
        assert_ne!(free_from(u64::from(taken - FIRST)).unwrap(), taken);
    }

    #[test]
    fn numbers_are_mapped_to_the_ports() {
        assert_eq!([0, 19_999, 20_000, u64::from(u32::MAX) * 102].map(port), [10_000, 29_999, 10_000, 14_090]);
    }
}
