//! Publish requests of clients, and publications to minions.

use brine_digest::Digest;
use brine_ids::Jid;
use brine_value::{Map, Value, map};

use super::{Proof, WireError, field, optional, parsed};

/// The topic of publications encrypted with AES-256-GCM. Minions that use this cipher subscribe to it; others discard
/// messages with an unknown topic.
pub const TOPIC_GCM: &[u8] = b"brine/aes-256-gcm";

/// The topic of publications for all minions. Minions with `zmq_filtering` subscribe to it.
pub const TOPIC_BROADCAST: &[u8] = b"broadcast";

/// The topic of publications for some minions, to which the syndics of masters below subscribe (`order_masters`).
pub const TOPIC_SYNDIC: &[u8] = b"syndic";

/// Returns the topic of publications for one minion: the SHA-1 of its id in hexadecimal.
pub fn minion_topic(id: &str) -> String {
    brine_digest::hex(Digest::Sha1.of(id))
}

/// The option in `kwargs` by which a client declares that it does not read job files. Salt's `LocalClient` reads them.
/// The master removes the option.
pub const IGNORES_JOB_FILES: &str = "_reads_no_files";

/// A client's request to publish a job.
#[derive(Debug, Clone, PartialEq)]
pub struct PublishRequest {
    /// The target.
    pub tgt: Value,
    /// The type of the target, such as `glob`.
    pub tgt_type: String,
    /// The function, or a list of functions.
    pub fun: Value,
    /// The arguments.
    pub arg: Vec<Value>,
    /// Additional returners, separated by commas.
    pub ret: String,
    /// The job id, if the client has chosen it.
    pub jid: Option<Jid>,
    /// The master key that the client presents.
    pub key: Option<String>,
    /// The user's proof in place of a key.
    pub proof: Option<Proof>,
    /// The requesting user.
    pub user: String,
    /// Further options, such as `delimiter` and `metadata`.
    pub kwargs: Map,
}

impl PublishRequest {
    /// Creates a request without arguments for a glob target.
    pub fn new(tgt: &str, fun: &str, user: &str) -> Self {
        PublishRequest {
            tgt: tgt.into(),
            tgt_type: "glob".to_owned(),
            fun: fun.into(),
            arg: Vec::new(),
            ret: String::new(),
            jid: None,
            key: None,
            proof: None,
            user: user.to_owned(),
            kwargs: Map::new(),
        }
    }

    /// Returns the fields of the publication and of the event about it.
    pub fn fields(&self, jid: &Jid) -> Map {
        map! {
            "jid" => jid,
            "fun" => self.fun.clone(),
            "arg" => self.arg.clone(),
            "tgt" => self.tgt.clone(),
            "tgt_type" => &self.tgt_type,
            "ret" => &self.ret,
            "user" => &self.user,
        }
    }

    /// Parses the fields of a `publish` command.
    pub fn from_map(map: &Map) -> Result<Self, WireError> {
        let jid: Option<String> = optional(map, "jid")?;
        let mut kwargs: Map = optional(map, "kwargs")?.unwrap_or_default();
        let proof = Proof::take(&mut kwargs)?;
        Ok(PublishRequest {
            tgt: map.get("tgt").cloned().ok_or(WireError::Missing("tgt"))?,
            tgt_type: optional(map, "tgt_type")?.unwrap_or_else(|| "glob".to_owned()),
            fun: map.get("fun").cloned().ok_or(WireError::Missing("fun"))?,
            arg: optional(map, "arg")?.unwrap_or_default(),
            ret: returners(map)?,
            jid: match jid.as_deref() {
                None | Some("") => None,
                Some(_) => Some(parsed(map, "jid")?),
            },
            key: optional(map, "key")?,
            user: optional(map, "user")?.unwrap_or_else(|| "UNKNOWN".to_owned()),
            proof,
            kwargs,
        })
    }

    /// Returns the fields of the `publish` command.
    pub fn to_map(&self) -> Map {
        let mut kwargs = self.kwargs.clone();
        if let Some(proof) = &self.proof {
            proof.write(&mut kwargs);
        }
        map! {
            "cmd" => "publish",
            "tgt" => self.tgt.clone(),
            "tgt_type" => &self.tgt_type,
            "fun" => self.fun.clone(),
            "arg" => self.arg.clone(),
            "ret" => &self.ret,
            "jid" => self.jid.as_ref().map_or("", Jid::as_str),
            "key" => self.key.clone(),
            "user" => &self.user,
            "kwargs" => kwargs,
        }
    }
}

/// A job as published to minions.
#[derive(Debug, Clone, PartialEq)]
pub struct Publication {
    /// The job id.
    pub jid: Jid,
    /// The function, or a list of functions.
    pub fun: Value,
    /// The arguments.
    pub arg: Vec<Value>,
    /// The target.
    pub tgt: Value,
    /// The type of the target.
    pub tgt_type: String,
    /// Additional returners, separated by commas.
    pub ret: String,
    /// The requesting user.
    pub user: String,
    /// Increases with every publication: one that is not above the last is a replay.
    pub serial: i64,
    /// The received load, which includes fields that only some functions use.
    pub load: Map,
}

impl Publication {
    /// Parses a decrypted load.
    pub fn from_map(map: Map) -> Result<Self, WireError> {
        Ok(Publication {
            jid: parsed(&map, "jid")?,
            fun: map.get("fun").cloned().ok_or(WireError::Missing("fun"))?,
            arg: optional(&map, "arg")?.unwrap_or_default(),
            tgt: map.get("tgt").cloned().ok_or(WireError::Missing("tgt"))?,
            tgt_type: optional(&map, "tgt_type")?.unwrap_or_else(|| "glob".to_owned()),
            ret: returners(&map)?,
            user: optional(&map, "user")?.unwrap_or_default(),
            serial: field(&map, "serial").unwrap_or(0),
            load: map,
        })
    }
}

/// Returns the returners of a job, separated by commas: Salt's clients send one name, or a list.
fn returners(map: &Map) -> Result<String, WireError> {
    Ok(optional::<Vec<String>>(map, "ret")?.unwrap_or_default().join(","))
}
