//! `nats`: publishes each return and event to a NATS server. This file documents it; `client.rs` is built by the feature
//! `nats`.

#[cfg(feature = "nats")]
mod client;

use crate::{Backend, BackendOption};

const NAME: &str = "nats";

pub(crate) const BACKEND: Backend = Backend {
    name: NAME,
    doc: "Publishes each return as JSON to the subject `salt.ret.<minion id>` of a NATS server, and each event, as a mapping \
          with `tag` and `data`, to `salt.event`. Dots in minion ids become `_`. The server refuses messages over 1 MiB by \
          default. Brine only, in builds with `--features messaging`.",
    options: &[
        BackendOption { name: "nats.url", default: Some("nats://127.0.0.1:4222"), doc: "The URL of the server." },
        BackendOption { name: "nats.subject", default: Some("salt"), doc: "The first part of all subjects." },
        BackendOption { name: "nats.username", default: None, doc: "The user name." },
        BackendOption { name: "nats.password", default: None, doc: "The password." },
        BackendOption { name: "nats.token", default: None, doc: "The token, in place of user name and password." },
        BackendOption {
            name: "nats.tls",
            default: Some("False"),
            doc: "Whether TLS is required, with a verified certificate.",
        },
        BackendOption {
            name: "nats.jetstream",
            default: Some("False"),
            doc: "Whether messages are stored by JetStream, which must have a stream of the subjects, and acknowledged.",
        },
    ],
    open,
    check: |options| open(options).map(drop),
};

#[cfg(feature = "nats")]
use client::open;

#[cfg(not(feature = "nats"))]
fn open(_: &crate::Options) -> Result<Box<dyn crate::Returner>, crate::ReturnerError> {
    Err(crate::ReturnerError::NotBuilt { name: NAME })
}
