//! The transport between masters and minions: the option `transport`.

use brine_value::{FromValue, Map, Value, WrongType};

use super::options::ANOTHER_WORD;

/// The transport of the request port and the publish port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Transport {
    /// ZeroMQ.
    #[default]
    ZeroMq,
    /// Streams of msgpack messages over TCP.
    Tcp,
}

impl Transport {
    /// Whether the transport is TCP without ZeroMQ.
    pub fn is_tcp(self) -> bool {
        self == Transport::Tcp
    }
}

impl FromValue for Transport {
    const EXPECTED: &'static str = "zeromq or tcp";

    fn from_value(value: &Value) -> Option<Self> {
        match value.as_str()? {
            "zeromq" => Some(Transport::ZeroMq),
            "tcp" => Some(Transport::Tcp),
            _ => None,
        }
    }

    fn try_from_value(value: &Value) -> Result<Self, WrongType> {
        Self::from_value(value).ok_or_else(|| WrongType {
            expected: Self::EXPECTED,
            got: match value.as_str() {
                Some("ws") => "ws, which Brine does not support",
                Some(_) => ANOTHER_WORD,
                None => value.type_name(),
            },
        })
    }
}

impl From<Transport> for Value {
    fn from(transport: Transport) -> Self {
        match transport {
            Transport::ZeroMq => "zeromq".into(),
            Transport::Tcp => "tcp".into(),
        }
    }
}

/// Whether the options ask for TLS on `transport: tcp`, which Brine does not support. As in Salt, an empty mapping of
/// `ssl` means TLS, too.
pub(super) fn needs_tls(options: &Map) -> bool {
    let is_tcp = options.get("transport").and_then(Transport::from_value).is_some_and(Transport::is_tcp);
    is_tcp && options.get("ssl").is_some_and(|ssl| !matches!(ssl, Value::Nil | Value::Bool(false)))
}
