//! Requests that the REST API sends by its own key: those of its clients, each with the address of the client, and events
//! of webhooks.

use std::fmt;
use std::net::IpAddr;

use brine_value::{Map, map};

use super::ClientCommand;
use crate::{WireError, field, parsed};

/// The name of the command.
const NAME: &str = "forward";

/// A request of a client of the REST API. The API's key proves that the address is true.
#[derive(Clone, PartialEq)]
pub struct Forwarded {
    /// The key of the REST API.
    pub key: String,
    /// The address of the client.
    pub address: IpAddr,
    /// The request of the client: with its own proof, and without a key.
    pub command: ClientCommand,
}

/// Shows the request, but never the key.
impl fmt::Debug for Forwarded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Forwarded")
            .field("address", &self.address)
            .field("command", &self.command)
            .finish_non_exhaustive()
    }
}

impl Forwarded {
    /// Parses the fields of a `forward` command. Only requests that contain the proof of a user can be forwarded.
    pub(super) fn from_map(map: &Map) -> Result<Self, WireError> {
        let load: Map = field(map, "load")?;
        let wrong = |reason: &str| WireError::Field { field: "load", reason: reason.to_owned() };
        // Checked before parsing, so that a nested command costs no stack.
        if load.get("cmd").and_then(brine_value::Value::as_str) == Some(NAME) {
            return Err(wrong("a forwarded request cannot be forwarded again"));
        }
        let command = ClientCommand::from_map(&load)?;
        let (key, proof) = match &command {
            ClientCommand::Publish(request) => (request.key.as_ref(), request.proof.as_ref()),
            ClientCommand::Runner(call) | ClientCommand::Wheel(call) => (call.key.as_ref(), call.proof.as_ref()),
            ClientCommand::MakeToken(request) => (None, Some(&request.proof)),
            _ => return Err(wrong("expected publish, runner, wheel or mk_token")),
        };
        if key.is_some() || proof.is_none() {
            return Err(wrong("expected the token or the password of a user, and no key"));
        }
        Ok(Forwarded { key: field(map, "key")?, address: parsed(map, "address")?, command })
    }

    /// Returns the fields of the `forward` command for a request with these fields.
    pub fn to_map(key: &str, address: IpAddr, load: Map) -> Map {
        map! {"cmd" => NAME, "key" => key, "address" => address.to_string(), "load" => load}
    }
}

/// An event of a webhook. The reply confirms that it is persisted.
#[derive(Clone, PartialEq)]
pub struct HookEvent {
    /// The key of the REST API.
    pub key: String,
    /// The tag.
    pub tag: String,
    /// The data.
    pub data: Map,
}

/// Shows the tag, but never the key or the data, which may contain secrets of the sender.
impl fmt::Debug for HookEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HookEvent").field("tag", &self.tag).finish_non_exhaustive()
    }
}

impl HookEvent {
    /// The prefix of the tags of all webhooks.
    pub const PREFIX: &str = "salt/netapi/hook";

    /// Parses the fields of a `hook` command. The event must have a tag of a webhook.
    pub(super) fn from_map(map: &Map) -> Result<Self, WireError> {
        let tag: String = field(map, "tag")?;
        let below = tag.strip_prefix(Self::PREFIX);
        if !below.is_some_and(|below| below.is_empty() || below.starts_with('/')) {
            let reason = format!("expected a tag below {}", Self::PREFIX);
            return Err(WireError::Field { field: "tag", reason });
        }
        Ok(HookEvent { key: field(map, "key")?, tag, data: field(map, "data")? })
    }

    /// Returns the fields of the `hook` command.
    pub fn to_map(key: &str, tag: &str, data: Map) -> Map {
        map! {"cmd" => "hook", "key" => key, "tag" => tag, "data" => data}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_requests_with_the_proof_of_a_user_are_forwarded() {
        let address = IpAddr::from([10, 0, 0, 1]);
        let user = || map! {"eauth" => "file", "username" => "fred", "password" => "pw"};
        let with = |mut map: Map, more: Map| {
            map.extend(more);
            map
        };
        let publish = || map! {"cmd" => "publish", "tgt" => "*", "fun" => "test.ping"};
        let call = |cmd: &str| map! {"cmd" => cmd, "fun" => "jobs.active", "async" => false};
        let forwarded = Forwarded::to_map("k", address, with(call("runner"), user()));
        for (load, accepted) in [
            (with(publish(), map! {"kwargs" => user()}), true),
            (with(publish(), map! {"kwargs" => map! {"token" => "abc"}}), true),
            (publish(), false),
            (with(publish(), map! {"kwargs" => user(), "key" => "root"}), false),
            (with(call("runner"), user()), true),
            (with(call("wheel"), map! {"token" => "abc"}), true),
            (call("runner"), false),
            (with(call("wheel"), map! {"key" => "root"}), false),
            (with(map! {"cmd" => "mk_token"}, user()), true),
            (map! {"cmd" => "ping"}, false),
            (map! {"cmd" => "get_token", "token" => "abc"}, false),
            (forwarded.clone(), false),
        ] {
            let fields = Forwarded::to_map("k", address, load);
            let parsed = ClientCommand::from_map(&fields);
            assert_eq!(parsed.is_ok(), accepted, "{fields:?}: {parsed:?}");
            assert!(!format!("{parsed:?}").contains("\"k\""), "{parsed:?}");
        }
        for (name, value) in [("address", "10.0.0.256"), ("address", "host"), ("load", "text"), ("key", "")] {
            let mut fields = forwarded.clone();
            if value.is_empty() {
                fields.shift_remove(name);
            } else {
                fields.insert(name.into(), value.into());
            }
            assert!(ClientCommand::from_map(&fields).is_err(), "{name} {value}");
        }
    }
    #[test]
    fn webhooks_have_their_own_tags() {
        for (tag, accepted) in [
            ("salt/netapi/hook", true),
            ("salt/netapi/hook/github/a", true),
            ("salt/netapi/hooks", false),
            ("salt/netapi/other", false),
            ("salt/job/20261122000000000000/ret/web1", false),
            ("", false),
        ] {
            let fields = HookEvent::to_map("k", tag, map! {"post" => map! {}});
            assert_eq!(ClientCommand::from_map(&fields).is_ok(), accepted, "{tag}");
        }
    }
}
