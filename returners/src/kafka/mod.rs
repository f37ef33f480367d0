//! `kafka`: publishes each return and event to a topic of Kafka. This file documents it; `client.rs` and `partitions.rs` are
//! built by the feature `kafka`.

#[cfg(feature = "kafka")]
mod client;
#[cfg(feature = "kafka")]
mod partitions;

use crate::{Backend, BackendOption};

const NAME: &str = "kafka";

pub(crate) const BACKEND: Backend = Backend {
    name: NAME,
    doc: "Publishes each return as JSON to a topic of Kafka, with the minion id as key, and each event, as a mapping with \
          `tag` and `data`, with the tag as key. A key decides the partition as in librdkafka, so messages of one key keep \
          their order. A missing topic is created if the servers allow it. Messages are acknowledged by all replicas in \
          sync; after an outage some may be there twice. Connections are neither encrypted nor authenticated. In builds \
          with `--features messaging`.",
    options: &[
        BackendOption {
            name: "returner.kafka.bootstrap",
            default: None,
            doc: "The servers that are connected to first, each as `host:port` or, with port 9092, as `host`: \
                  a list, or names separated by commas. Required.",
        },
        BackendOption { name: "returner.kafka.topic", default: None, doc: "The topic of returns. Required." },
        BackendOption {
            name: "returner.kafka.event_topic",
            default: None,
            doc: "The topic of events; that of returns if unset.",
        },
        BackendOption {
            name: "returner.kafka.message_max_bytes",
            default: Some("1000000"),
            doc: "The maximum size of a message in bytes, up to 100,000,000. The servers have a limit of their own, \
                  `message.max.bytes`.",
        },
    ],
    open,
    check: |options| open(options).map(drop),
};

#[cfg(feature = "kafka")]
use client::open;

#[cfg(not(feature = "kafka"))]
fn open(_: &crate::Options) -> Result<Box<dyn crate::Returner>, crate::ReturnerError> {
    Err(crate::ReturnerError::NotBuilt { name: NAME })
}
