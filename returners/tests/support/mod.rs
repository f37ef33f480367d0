//! Servers for tests, each in the test's directory; terminated on drop.

mod certificates;
#[cfg(all(feature = "mysql", feature = "postgres"))]
#[allow(dead_code, reason = "the end-to-end tests use the rest")]
mod database;
#[allow(dead_code, reason = "the end-to-end tests use the rest")]
mod rabbitmq;
mod redis;
mod service;

pub use certificates::write_certificates;
#[cfg(all(feature = "mysql", feature = "postgres"))]
pub use database::{DatabaseServer, Kind, hand_over};
pub use rabbitmq::RabbitServer;
pub use redis::RedisServer;
pub use service::{MailServer, Request, Service, free_port, http_server};
