//! Wire messages: any bytes are decoded or refused; a decoded value survives encoding and decoding.

use brine_event::Event;
use brine_value::msgpack::{Budget, entries, pack, unpack};
use brine_value::{Map, Value};
use brine_wire::{
    AuthReply, AuthRequest, Binding, ClientCommand, Envelope, MinionCommand, Publication, PublishRequest,
};

use crate::fingerprint;

/// Requests from the network.
pub fn envelope(bytes: &[u8]) -> u64 {
    let read = Envelope::unpack(&bytes.to_vec().into(), Budget::UNAUTHENTICATED);
    if let Ok(Envelope::Clear { load, .. }) = &read {
        _ = ClientCommand::from_map(load);
    }
    fingerprint(0, read)
}

/// Messages of a host of `salt-ssh`.
pub fn frame(bytes: &[u8]) -> u64 {
    let mut rest = bytes;
    let read = brine_ssh_host::frame::read(&mut rest);
    if let Ok(message) = &read {
        let mut again = Vec::new();
        brine_ssh_host::frame::write(&mut again, message).expect("a message that was read is written");
        // NaN is not equal to itself, so the text is compared.
        let copy = brine_ssh_host::frame::read(&mut &again[..]).map(|copy| Value::Map(copy).to_string());
        assert_eq!(copy.ok(), Some(Value::Map(message.clone()).to_string()));
    }
    fingerprint(u8::from(rest.is_empty()), read)
}

/// Values.
pub fn msgpack(bytes: &[u8]) -> u64 {
    let entries = entries(bytes);
    let read = unpack(bytes);
    if let Ok(value) = &read {
        assert_eq!(entries.is_ok(), value.as_map().is_some());
        // NaN is not equal to itself, so the encoded forms are compared.
        assert_eq!(unpack(&pack(value)).map(|again| again.to_string()), Ok(value.to_string()));
    }
    fingerprint(u8::from(entries.is_ok()), read)
}

/// Authentication: requests, and replies to minions.
pub fn auth(bytes: &[u8]) -> u64 {
    let Ok(Value::Map(load)) = unpack(bytes) else { return 0 };
    let request = AuthRequest::from_map(&load);
    let reply = Binding::of(&load).map(|binding| fingerprint(2, AuthReply::from_map(&load, &binding)));
    fingerprint(1, request) ^ reply.unwrap_or_default()
}

/// Frames of the event bus, sent by local programs.
pub fn event(bytes: &[u8]) -> u64 {
    let read = Event::from_frame(bytes.to_vec().into());
    if let Ok(event) = &read {
        _ = (event.data(), event.time(), event.stamped(7, "2026-01-01T00:00:00.000000"));
    }
    fingerprint(0, read)
}

/// Commands of minions and clients, and publishes.
pub fn command(bytes: &[u8]) -> u64 {
    let Ok(Value::Map(load)) = unpack(bytes) else { return 0 };
    commands(&load)
}

fn commands(load: &Map) -> u64 {
    fingerprint(1, MinionCommand::from_map(load.clone()))
        ^ fingerprint(2, ClientCommand::from_map(load))
        ^ fingerprint(3, PublishRequest::from_map(load))
        ^ fingerprint(4, Publication::from_map(load.clone()))
}
