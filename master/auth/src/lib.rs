//! Authentication and authorisation of users. Users authenticate with an external backend (`external_auth`) or a token,
//! and each call is checked against their configured entries (`external_auth`, `publisher_acl`).
//!
//! The crate does not depend on the bus, on requests or on a running master. Authentication blocks on files, servers
//! and programs, so it must run on threads that may block.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests write as they like in their own directories"))]

mod acl;
mod backends;
mod blacklist;
mod eauth;
mod events;
mod names;
mod throttle;
mod tokens;

pub use brine_carriers::{APPLY_PLAN, ORCHESTRATE, PLANNED};

pub use acl::{Acl, CallKind, FIND_JOB, JobRequest, LIST_FUNCTIONS, PING, ineffective, may_be_masters};
pub use backends::CustomAuthModules;
pub use blacklist::Blacklist;
pub use eauth::{AuthError, Credentials, ExternalAuth, Identity};
pub use events::{EventPermissions, may_see};
pub use names::{UserName, fold};
pub use throttle::{Attempt, Outcome, Throttle, network};
pub use tokens::{CustomTokens, NewToken, Token, TokenError, TokenStore};
