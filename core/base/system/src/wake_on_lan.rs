//! Wake-on-LAN: magic packets, which power on hosts.

use std::io;
use std::net::{Ipv4Addr, UdpSocket};

/// The reason why a packet was not sent.
#[derive(Debug, thiserror::Error)]
pub enum WakeError {
    /// The MAC address is invalid.
    #[error("MAC address '{0}' is invalid: expected a form such as 08:00:27:13:69:77")]
    Mac(String),
    /// The broadcast address is invalid.
    #[error("broadcast address '{0}' is invalid: expected one such as 192.168.1.255")]
    Broadcast(String),
    /// Sending the packet failed.
    #[error("sending the packet to {to} failed: {error}")]
    Network {
        /// The address and port.
        to: String,
        /// The error of the operating system.
        error: io::Error,
    },
}

/// Broadcasts the magic packet of a MAC address: six bytes `0xff`, then the address sixteen times.
pub fn wake(mac: &str, bcast: &str, port: u16) -> Result<(), WakeError> {
    let octets = octets(mac).ok_or_else(|| WakeError::Mac(mac.to_owned()))?;
    let address: Ipv4Addr = bcast.parse().map_err(|_| WakeError::Broadcast(bcast.to_owned()))?;
    let send = || -> io::Result<usize> {
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
        socket.set_broadcast(true)?;
        socket.send_to(&packet(octets), (address, port))
    };
    send().map_err(|error| WakeError::Network { to: format!("{bcast}:{port}"), error })?;
    Ok(())
}

fn packet(octets: [u8; 6]) -> Vec<u8> {
    let mut packet = vec![0xff; 6];
    packet.extend(octets.repeat(16));
    packet
}

/// Parses a MAC address of twelve hexadecimal digits, with or without a separator between the pairs.
pub fn octets(mac: &str) -> Option<[u8; 6]> {
    let bytes = mac.as_bytes();
    let digits: Vec<u8> = match bytes.len() {
        12 => bytes.to_vec(),
        17 => {
            let separator = bytes[2];
            let pairs: Vec<&[u8]> = bytes.split(|byte| *byte == separator).collect();
            (pairs.len() == 6 && pairs.iter().all(|pair| pair.len() == 2)).then(|| pairs.concat())?
        }
        _ => return None,
    };
    let mut octets = [0; 6];
    for (octet, pair) in octets.iter_mut().zip(digits.chunks(2)) {
        let pair = std::str::from_utf8(pair).ok().filter(|pair| pair.bytes().all(|c| c.is_ascii_hexdigit()))?;
        *octet = u8::from_str_radix(pair, 16).ok()?;
    }
    Some(octets)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mac_addresses_are_parsed_with_and_without_separators() {
        let expected = Some([0x08, 0x00, 0x27, 0x13, 0x69, 0x77]);
        for mac in ["08:00:27:13:69:77", "08-00-27-13-69-77", "080027136977", "08.00.27.13.69.77"] {
            assert_eq!(octets(mac), expected, "{mac}");
        }
        for mac in ["", "08:00:27:13:69", "0800271369zz", "08:00-27:13:69:77", "+80027136977", "é8:00:27:13:69:77"] {
            assert_eq!(octets(mac), None, "{mac}");
        }
    }

    #[test]
    fn a_magic_packet_reaches_its_port() {
        let receiver = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        wake("080027136977", "127.0.0.1", receiver.local_addr().unwrap().port()).unwrap();
        let mut buffer = [0; 200];
        let size = receiver.recv(&mut buffer).unwrap();
        assert_eq!(buffer[..size], packet([0x08, 0x00, 0x27, 0x13, 0x69, 0x77]));
        assert!(wake("080027136977", "nowhere", 9).unwrap_err().to_string().contains("'nowhere'"));
        assert!(wake("08", "127.0.0.1", 9).unwrap_err().to_string().contains("'08'"));
    }
}
