//! The REST API, compatible with Salt's rest_cherrypy and rest_tornado, as a client of the master.
//!
//! It holds no state of the master and opens none of its files but its own key. Jobs, calls and tokens are requests to
//! the master on behalf of the user; events come from the bus. With the key of the REST API, which permits nothing else,
//! it names the addresses of users who log in, reads the journal for subscribers and revokes tokens at logout.
//!
//! `listener.rs` serves the connections that `brine-http-server` accepts, `limits/` bounds what clients occupy, `routes/` is
//! the table of resources, `resources/` contains their handlers, `lowstate/` and `local.rs` run commands, `hub/`
//! distributes events, `stream.rs` selects and `handover.rs` sends them, `visibility/` decides who may see them, `auth/`
//! manages sessions.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests write as they like in their own directories"))]

mod answer;
mod api;
mod auth;
mod check;
mod client;
mod console;
mod context;
mod error;
mod format;
pub mod fuzzing;
mod handover;
mod headers;
mod hub;
mod limits;
mod listener;
mod local;
mod lowstate;
mod master;
pub mod metrics;
mod resources;
mod routes;
mod stream;
mod tls;
mod visibility;
mod webhook;

pub(crate) use api::Api;
pub use check::check;
pub use error::StartError;
pub use listener::Server;
