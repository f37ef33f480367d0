//! Logs and counts refused requests and ignored fields.

use brine_ids::MinionId;
use brine_value::{Map, Value, msgpack};
use brine_zmtp::Peer;
use bytes::Bytes;

/// The reply to malformed or forbidden requests: Salt's message, which deliberately reveals nothing.
pub(super) const BAD_LOAD: &str = "bad load";

/// Logs a refused request and returns the reply to it.
pub(super) fn refuse(peer: &Peer, id: Option<&MinionId>, error: &dyn std::error::Error) -> Bytes {
    log_refused(peer, id, error);
    msgpack::pack(&BAD_LOAD.into()).into()
}

/// Logs and counts fields of a request that have no effect.
pub(super) fn report_unknown(peer: &Peer, id: Option<&MinionId>, load: &Map) {
    // The REST API forwards requests whole.
    let is_forwarded = load.get("cmd").and_then(Value::as_str) == Some("forward");
    let load = load.get("load").and_then(Value::as_map).filter(|_| is_forwarded).unwrap_or(load);
    let command = load.get("cmd").and_then(Value::as_str).unwrap_or_default();
    let unknown = brine_wire::unknown_fields(command, load.keys().filter_map(Value::as_str));
    if !unknown.is_empty() {
        brine_job::metrics::FIELDS_DROPPED.add(unknown.len() as u64);
        let (minion, fields) = (id.map(MinionId::as_str), unknown.join(", "));
        tracing::warn!(peer = %peer.address, minion, command, fields, "unknown fields of a request are ignored");
    }
}

/// Logs and counts a refused request.
pub(super) fn log_refused(peer: &Peer, id: Option<&MinionId>, error: &dyn std::error::Error) {
    brine_wire::metrics::REQUESTS_REFUSED.add(1);
    let minion = id.map(MinionId::as_str);
    tracing::warn!(peer = %peer.address, minion, %error, "request refused");
}
