//! The TCP keepalive: probes on silent connections, by which the system notices peers that have vanished.

use std::time::Duration;

use tokio::net::TcpStream;

/// The largest numbers that Linux accepts: seconds and probes.
const MAX_SECONDS: u64 = 32_767;
const MAX_PROBES: u32 = 127;

/// The keepalive of TCP connections. The system's value replaces one that is `None`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keepalive {
    is_on: bool,
    /// The time of silence before the first probe.
    idle: Option<Duration>,
    /// The time between two probes.
    interval: Option<Duration>,
    /// The number of unanswered probes that end the connection.
    probes: Option<u32>,
}

impl Default for Keepalive {
    fn default() -> Self {
        Keepalive::new(true, 60, 20, 3)
    }
}

impl Keepalive {
    /// Creates a keepalive from the options `tcp_keepalive`, `tcp_keepalive_idle`, `tcp_keepalive_intvl` and
    /// `tcp_keepalive_cnt`. For a number below 1, the system's value applies.
    pub fn new(is_on: bool, idle: i64, interval: i64, probes: i64) -> Self {
        let positive = |number: i64| u64::try_from(number).ok().filter(|number| *number > 0);
        let seconds = |number| positive(number).map(|seconds| Duration::from_secs(seconds.min(MAX_SECONDS)));
        let probes =
            positive(probes).map(|probes| u32::try_from(probes).map_or(MAX_PROBES, |probes| probes.min(MAX_PROBES)));
        Keepalive { is_on, idle: seconds(idle), interval: seconds(interval), probes }
    }

    /// Sets the options of a socket.
    pub(super) fn apply(&self, stream: &TcpStream) -> std::io::Result<()> {
        let socket = socket2::SockRef::from(stream);
        if !self.is_on {
            return socket.set_keepalive(false);
        }
        let mut probing = socket2::TcpKeepalive::new();
        if let Some(idle) = self.idle {
            probing = probing.with_time(idle);
        }
        if let Some(interval) = self.interval {
            probing = probing.with_interval(interval);
        }
        if let Some(probes) = self.probes {
            probing = probing.with_retries(probes);
        }
        socket.set_tcp_keepalive(&probing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn numbers_are_limited_to_what_the_system_accepts() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let socket = socket2::SockRef::from(&stream);
        let system = socket.tcp_keepalive_time().unwrap();
        Keepalive::new(true, -1, 0, -1).apply(&stream).unwrap();
        assert_eq!((socket.keepalive().unwrap(), socket.tcp_keepalive_time().unwrap()), (true, system));
        Keepalive::new(true, i64::MAX, i64::MAX, i64::MAX).apply(&stream).unwrap();
        assert_eq!(socket.tcp_keepalive_time().unwrap(), Duration::from_secs(MAX_SECONDS));
        assert_eq!(socket.tcp_keepalive_retries().unwrap(), MAX_PROBES);
        Keepalive::new(false, 60, 20, 3).apply(&stream).unwrap();
        assert!(!socket.keepalive().unwrap());
    }
}
