//! Who may call what on a master: users are authenticated by external systems (`external_auth`) or by a token, and each
//! call is compared with the entries that the configuration has for them (`external_auth`, `publisher_acl`).
//!
//! Nothing here knows the bus, requests or a running master. Authenticating waits for files, servers and programs: it
//! runs on threads that may block.

mod acl;
mod backends;
mod blacklist;
mod eauth;
mod events;
mod throttle;
mod tokens;

pub use acl::{Acl, CallKind, FIND_JOB, JobRequest};
pub use blacklist::Blacklist;
pub use eauth::{AuthError, Credentials, ExternalAuth, Identity};
pub use events::{EventPermissions, may_see};
pub use throttle::Throttle;
pub use tokens::{NewToken, Token, TokenStore};
