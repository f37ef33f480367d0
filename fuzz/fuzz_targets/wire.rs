//! Any bytes are a message of the wire or are refused, and what was read is packed so that it reads the same.
#![no_main]

use brine_core::event::Event;
use brine_core::value::msgpack::{Budget, entries, pack, unpack};
use brine_core::wire::{
    AuthReply, AuthRequest, Binding, ClientCommand, Envelope, MinionCommand, Publication, PublishRequest,
};
use brine_core::{Map, Value};
use libfuzzer_sys::fuzz_target;

fn commands(load: &Map) {
    let _ = MinionCommand::from_map(load);
    let _ = ClientCommand::from_map(load);
    let _ = AuthRequest::from_map(load);
    let _ = Binding::of(load).map(|binding| AuthReply::from_map(load, &binding));
    let _ = PublishRequest::from_map(load);
    let _ = Publication::from_map(load.clone());
}

fuzz_target!(|bytes: &[u8]| {
    let entries = entries(bytes);
    if let Ok(value) = unpack(bytes) {
        assert_eq!(entries.is_ok(), value.as_map().is_some());
        // What is not a number is not equal to itself: texts are compared.
        assert_eq!(unpack(&pack(&value)).map(|again| again.to_string()), Ok(value.to_string()));
        if let Value::Map(load) = &value {
            commands(load);
        }
    }
    if let Ok(Envelope::Clear { load, .. }) = Envelope::unpack(&bytes.to_vec().into(), Budget::UNAUTHENTICATED) {
        commands(&load);
    }
    if let Ok(event) = Event::from_frame(bytes.to_vec().into()) {
        let _ = (event.data(), event.time(), event.stamped(7, "2026-01-01T00:00:00.000000"));
    }
});
