//! Returners on real servers, as one program, because each program links all clients: a file here is a module.
#![allow(clippy::disallowed_methods, reason = "tests write as they like in their own directories")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests may fail as tests do")]

#[cfg(feature = "amqp")]
mod amqp;
mod conformance;
#[cfg(all(feature = "mysql", feature = "postgres"))]
mod databases;
mod http;
#[cfg(feature = "kafka")]
mod kafka;
mod large;
#[cfg(feature = "mongo")]
mod mongo;
#[cfg(all(feature = "mysql", feature = "postgres"))]
mod rates;
mod redis;
mod services;
mod support;
#[cfg(all(feature = "mysql", feature = "postgres"))]
mod tls;
