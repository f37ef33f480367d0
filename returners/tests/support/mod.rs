//! Servers for tests, each in the test's directory; terminated on drop.
#![allow(dead_code, unused_imports, reason = "each test program uses some of the servers")]

mod certificates;
#[cfg(all(feature = "mysql", feature = "postgres"))]
mod database;
mod rabbitmq;
mod redis;
mod service;

pub use certificates::write_certificates;
#[cfg(all(feature = "mysql", feature = "postgres"))]
pub use database::{DatabaseServer, Kind, hand_over};
pub use rabbitmq::RabbitServer;
pub use redis::RedisServer;
pub use service::{MailServer, Request, Service, free_port, http_server};
