//! `amqp`: publishes each return and event to an exchange of an AMQP 0-9-1 server such as RabbitMQ. This file documents it;
//! `client.rs` is built by the feature `amqp`.

#[cfg(feature = "amqp")]
mod client;

use crate::{Backend, BackendOption};

const NAME: &str = "amqp";

pub(crate) const BACKEND: Backend = Backend {
    name: NAME,
    doc: "Publishes each return as JSON to a topic exchange of an AMQP 0-9-1 server such as RabbitMQ, with the routing key \
          `ret.<minion id>`, and each event, as a mapping with `tag` and `data`, with `event.<tag>`. Dots in minion ids become \
          `_`, and slashes in tags dots, so that queues can be bound to `ret.web1` or `event.salt.job.#`; keys are cut at \
          255 bytes. The exchange is declared as durable, and messages are persistent and published in transactions. Brine \
          only, in builds with `--features messaging`.",
    options: &[
        BackendOption { name: "amqp.host", default: Some("localhost"), doc: "The host name of the server." },
        BackendOption { name: "amqp.port", default: None, doc: "The port; 5672 if unset, 5671 with TLS." },
        BackendOption { name: "amqp.username", default: Some("guest"), doc: "The user name." },
        BackendOption { name: "amqp.password", default: Some("guest"), doc: "The password." },
        BackendOption { name: "amqp.vhost", default: Some("/"), doc: "The virtual host." },
        BackendOption { name: "amqp.exchange", default: Some("salt"), doc: "The name of the topic exchange." },
        BackendOption {
            name: "amqp.tls",
            default: Some("False"),
            doc: "Whether the connection uses TLS, with a verified certificate (`ca_bundle`).",
        },
    ],
    open,
    check: |options| open(options).map(drop),
};

#[cfg(feature = "amqp")]
use client::open;

#[cfg(not(feature = "amqp"))]
fn open(_: &crate::Options) -> Result<Box<dyn crate::Returner>, crate::ReturnerError> {
    Err(crate::ReturnerError::NotBuilt { name: NAME })
}
