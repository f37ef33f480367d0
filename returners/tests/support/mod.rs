//! Servers for tests, each in the test's directory; terminated on drop.
#![allow(dead_code, unused_imports, reason = "each test program uses some of the servers")]

#[cfg(all(feature = "mysql", feature = "postgres"))]
mod database;
mod redis;

#[cfg(all(feature = "mysql", feature = "postgres"))]
pub use database::{DatabaseServer, Kind, hand_over};
pub use redis::RedisServer;
