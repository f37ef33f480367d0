//! Jobs on their way to minions.

use brine_digest::Digest;
use brine_ids::Jid;
use brine_value::{Map, Value, map};

use super::{Proof, WireError, field, optional, parsed};

/// The topic under which publishes with AES-256-GCM go out: minions that use it subscribe to it, others
/// drop what has a topic that is not theirs.
pub const TOPIC_GCM: &[u8] = b"brine/aes-256-gcm";

/// The topic of publishes for all minions, for those with `zmq_filtering`.
pub const TOPIC_BROADCAST: &[u8] = b"broadcast";

/// The topic of publishes for some minions, for the masters below this one (`order_masters`).
pub const TOPIC_SYNDIC: &[u8] = b"syndic";

/// Returns the topic of publishes for one minion: the digest of its id.
pub fn minion_topic(id: &str) -> String {
    brine_digest::hex(Digest::Sha1.of(id))
}

/// A client asks for a job to be published.
#[derive(Debug, Clone, PartialEq)]
pub struct PublishRequest {
    /// Which minions.
    pub tgt: Value,
    /// How the target is meant, such as `glob`.
    pub tgt_type: String,
    /// The function, or several.
    pub fun: Value,
    /// The arguments.
    pub arg: Vec<Value>,
    /// Returners that minions also return to, separated by commas.
    pub ret: String,
    /// The job id, if the client has chosen one.
    pub jid: Option<Jid>,
    /// The key that was shown.
    pub key: Option<String>,
    /// What the user shows in the place of a key.
    pub proof: Option<Proof>,
    /// Who asks.
    pub user: String,
    /// Further options, such as `delimiter` and `metadata`.
    pub kwargs: Map,
}

impl PublishRequest {
    /// A request without arguments for the minions of a glob.
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

    /// Returns the fields that a publish has for minions, and an event about it.
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

    /// Reads the fields of a `publish` command.
    pub fn from_map(map: &Map) -> Result<Self, WireError> {
        let jid: Option<String> = optional(map, "jid")?;
        let mut kwargs: Map = optional(map, "kwargs")?.unwrap_or_default();
        let proof = Proof::take(&mut kwargs)?;
        Ok(PublishRequest {
            tgt: map.get("tgt").cloned().ok_or(WireError::Missing("tgt"))?,
            tgt_type: optional(map, "tgt_type")?.unwrap_or_else(|| "glob".to_owned()),
            fun: map.get("fun").cloned().ok_or(WireError::Missing("fun"))?,
            arg: optional(map, "arg")?.unwrap_or_default(),
            ret: optional(map, "ret")?.unwrap_or_default(),
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

    /// The fields of the `publish` command.
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

/// A job as minions get it.
#[derive(Debug, Clone, PartialEq)]
pub struct Publication {
    /// The job id.
    pub jid: Jid,
    /// The function, or several.
    pub fun: Value,
    /// The arguments.
    pub arg: Vec<Value>,
    /// Which minions.
    pub tgt: Value,
    /// How the target is meant.
    pub tgt_type: String,
    /// Returners that minions also return to, separated by commas.
    pub ret: String,
    /// Who asked.
    pub user: String,
    /// Rises with every publish: what is not above the last one is a replay.
    pub serial: i64,
    /// The load as it came, with fields that only some functions look at.
    pub load: Map,
}

impl Publication {
    /// Reads a load that has been opened.
    pub fn from_map(map: Map) -> Result<Self, WireError> {
        Ok(Publication {
            jid: parsed(&map, "jid")?,
            fun: map.get("fun").cloned().ok_or(WireError::Missing("fun"))?,
            arg: optional(&map, "arg")?.unwrap_or_default(),
            tgt: map.get("tgt").cloned().ok_or(WireError::Missing("tgt"))?,
            tgt_type: optional(&map, "tgt_type")?.unwrap_or_else(|| "glob".to_owned()),
            ret: optional(&map, "ret")?.unwrap_or_default(),
            user: optional(&map, "user")?.unwrap_or_default(),
            serial: field(&map, "serial").unwrap_or(0),
            load: map,
        })
    }
}
