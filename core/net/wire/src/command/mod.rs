//! The commands of a master: from a minion in its session, and from a local client.

mod forward;

use brine_function::Args;
use brine_ids::Jid;
use brine_value::{Map, Value};

pub use forward::{Forwarded, HookEvent};

use crate::fields::is_wheel_argument;
use crate::peer::{self, FilePiece, MineQuery, PeerPublish, PeerRun};
use crate::publish::PublishRequest;
use crate::{AuthRequest, Binding, Proof, TokenRequest, WireError, field, optional, parsed};

/// A command of an authenticated minion about itself. It applies to the minion of the session, regardless of the id in
/// the message.
#[derive(Debug, Clone, PartialEq)]
pub enum MinionCommand {
    /// Renders the minion's pillar.
    Pillar {
        /// The minion's grains.
        grains: Map,
        /// The environment of states.
        saltenv: Option<String>,
        /// The environment of pillar.
        pillarenv: Option<String>,
        /// Data merged over the pillar.
        pillar_override: Map,
        /// An entry of `ext_pillar` for this request only, as module and arguments: Salt's `pillar.ext`.
        ext: Option<Map>,
        /// Options of the minion for `ext_pillar`; other types than mappings are ignored, as in Salt.
        extra_minion_data: Box<Map>,
        /// Whether the master drops its cached pillar and grains of the minion first.
        clean_cache: bool,
    },
    /// Publishes events on the master's bus.
    Events(MinionEvents),
    /// Stores the returns of jobs.
    Returns(Vec<Map>),
    /// Stores the returns of jobs from the minions of a master below this one.
    SyndicReturns {
        /// The returns, each as if its minion had sent it.
        loads: Vec<Map>,
        /// Whether the syndic resends returns after the reply `False`. Brine's syndics do (`ack`); Salt's ignore the
        /// reply.
        acknowledged: bool,
    },
    /// Returns the master's options for states.
    MasterOpts {
        /// Whether to return only the options about environments.
        env_only: bool,
    },
    /// Returns the SLS files that master tops assign to the minion.
    MasterTops {
        /// The options of the minion, with its grains.
        opts: Map,
    },
    /// Returns a chunk of a file.
    ServeFile {
        /// The file.
        path: String,
        /// The environment.
        saltenv: String,
        /// The offset of the chunk.
        loc: u64,
    },
    /// Returns the hash of a file.
    FileHash {
        /// The file.
        path: String,
        /// The environment.
        saltenv: String,
        /// Whether the reply includes the file's `stat`.
        stat: bool,
    },
    /// Returns the location of a file.
    FileFind {
        /// The file.
        path: String,
        /// The environment.
        saltenv: String,
    },
    /// Returns the list of files, directories or links.
    FileList {
        /// The kind of entries.
        kind: ListKind,
        /// The environment.
        saltenv: String,
        /// The prefix of the paths.
        prefix: String,
    },
    /// Returns the list of environments.
    FileEnvs,
    /// Stores a chunk of a file that the minion uploads.
    FileReceive(FilePiece),
    /// Updates the minion's mine.
    Mine {
        /// The results by function.
        data: Map,
        /// Whether the previous content is removed.
        clear: bool,
    },
    /// Returns mine data of other minions.
    MineGet(MineQuery),
    /// Removes one function from the minion's mine.
    MineDelete {
        /// The function.
        fun: String,
    },
    /// Removes the minion's mine.
    MineFlush,
    /// Publishes a job to other minions and returns its job id.
    PeerPublish(Box<PeerPublish>),
    /// Publishes a job to other minions and returns their returns.
    PeerPublishAndWait(Box<PeerPublish>),
    /// Returns the returns of a job that the minion has published.
    PeerReturns(Jid),
    /// Runs a runner function.
    PeerRun(PeerRun),
    /// Records the resources that the minion manages, by type.
    Resources(Map),
    /// Deletes the minion's key.
    RevokeAuth {
        /// Whether the minion's grains, pillar and mine stay.
        preserve_data: bool,
    },
    /// Returns the jobs that a minion has missed while it was disconnected. An extension of Brine.
    CatchUp(CatchUp),
}

/// The point from which on a minion may have missed jobs. Both fields are unverified claims of the minion.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CatchUp {
    /// The last job that the minion has received.
    pub last: Option<Jid>,
    /// The seconds since the minion last had a session. It is needed because a minion that changes its master has
    /// received `last` from another master, which may order jobs by another clock.
    pub away: Option<u64>,
}

impl CatchUp {
    fn from_map(map: &Map) -> Result<Self, WireError> {
        let last = match optional::<String>(map, "jid")?.filter(|jid| !jid.is_empty()) {
            Some(_) => Some(parsed(map, "jid")?),
            None => None,
        };
        Ok(CatchUp { last, away: optional(map, "away")? })
    }
}

/// Events that a minion publishes.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct MinionEvents {
    /// Tag and data of each event.
    pub events: Vec<(String, Map)>,
    /// The prefix of all tags, which a syndic requests.
    pub pretag: Option<String>,
}

/// The kind of entries in a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListKind {
    /// Files.
    Files,
    /// Directories.
    Directories,
    /// Empty directories.
    EmptyDirectories,
    /// Symbolic links.
    Links,
}

impl MinionCommand {
    /// Parses the fields of a command. Takes over what it contains: events and returns can be large.
    pub fn from_map(mut map: Map) -> Result<Self, WireError> {
        let cmd: String = field(&map, "cmd")?;
        match cmd.as_str() {
            "_minion_event" => return events(map),
            "_return" => {
                return match map.get_mut("load") {
                    // One message with several returns.
                    Some(Value::List(loads)) => mappings(std::mem::take(loads), "load").map(MinionCommand::Returns),
                    _ => Ok(MinionCommand::Returns(vec![map])),
                };
            }
            "_syndic_return" => {
                let acknowledged = optional(&map, "ack")?.unwrap_or_default();
                return Ok(MinionCommand::SyndicReturns { loads: peer::syndic_returns(map)?, acknowledged });
            }
            _ => {}
        }
        let map = &map;
        let saltenv = || Ok::<_, WireError>(optional(map, "saltenv")?.unwrap_or_else(|| "base".to_owned()));
        let list = |kind| {
            let prefix = optional(map, "prefix")?.unwrap_or_default();
            Ok(MinionCommand::FileList { kind, saltenv: saltenv()?, prefix })
        };
        match cmd.as_str() {
            "_pillar" => Ok(MinionCommand::Pillar {
                grains: field(map, "grains")?,
                saltenv: optional(map, "saltenv")?,
                pillarenv: optional(map, "pillarenv")?,
                pillar_override: optional(map, "pillar_override")?.unwrap_or_default(),
                ext: optional(map, "ext")?,
                extra_minion_data: Box::new(
                    map.get("extra_minion_data").and_then(Value::as_map).cloned().unwrap_or_default(),
                ),
                clean_cache: optional(map, "clean_cache")?.unwrap_or_default(),
            }),
            "_master_opts" => {
                Ok(MinionCommand::MasterOpts { env_only: optional(map, "env_only")?.unwrap_or_default() })
            }
            "_master_tops" | "_ext_nodes" => {
                Ok(MinionCommand::MasterTops { opts: optional(map, "opts")?.unwrap_or_default() })
            }
            "_serve_file" => Ok(MinionCommand::ServeFile {
                path: field(map, "path")?,
                saltenv: saltenv()?,
                loc: optional(map, "loc")?.unwrap_or(0),
            }),
            "_file_hash" => Ok(MinionCommand::FileHash { path: field(map, "path")?, saltenv: saltenv()?, stat: false }),
            "_file_hash_and_stat" => {
                Ok(MinionCommand::FileHash { path: field(map, "path")?, saltenv: saltenv()?, stat: true })
            }
            "_file_find" => Ok(MinionCommand::FileFind { path: field(map, "path")?, saltenv: saltenv()? }),
            "_file_list" => list(ListKind::Files),
            "_dir_list" => list(ListKind::Directories),
            "_file_list_emptydirs" => list(ListKind::EmptyDirectories),
            "_symlink_list" => list(ListKind::Links),
            "_file_envs" => Ok(MinionCommand::FileEnvs),
            "_file_recv" => FilePiece::from_map(map).map(MinionCommand::FileReceive),
            "_mine" => Ok(MinionCommand::Mine {
                data: field(map, "data")?,
                clear: optional(map, "clear")?.unwrap_or_default(),
            }),
            "_mine_get" => MineQuery::from_map(map).map(MinionCommand::MineGet),
            "_mine_delete" => Ok(MinionCommand::MineDelete { fun: field(map, "fun")? }),
            "_mine_flush" => Ok(MinionCommand::MineFlush),
            "minion_pub" => PeerPublish::from_map(map).map(|asked| MinionCommand::PeerPublish(Box::new(asked))),
            "minion_publish" => {
                PeerPublish::from_map(map).map(|asked| MinionCommand::PeerPublishAndWait(Box::new(asked)))
            }
            "pub_ret" => Ok(MinionCommand::PeerReturns(parsed(map, "jid")?)),
            "minion_runner" => PeerRun::from_map(map).map(MinionCommand::PeerRun),
            "_register_resources" => Ok(MinionCommand::Resources(field(map, "resources")?)),
            "revoke_auth" => Ok(MinionCommand::RevokeAuth {
                preserve_data: optional(map, "preserve_minion_cache")?.unwrap_or_default(),
            }),
            "_catch_up" => CatchUp::from_map(map).map(MinionCommand::CatchUp),
            other => Err(WireError::UnknownCommand(other.chars().take(64).collect())),
        }
    }
}

/// Returns the items of a list, which must be mappings.
fn mappings(items: Vec<Value>, field: &'static str) -> Result<Vec<Map>, WireError> {
    let one = |item| match item {
        Value::Map(map) => Ok(map),
        _ => Err(WireError::Field { field, reason: "expected a list of mappings".into() }),
    };
    items.into_iter().map(one).collect()
}

/// Parses an event whose data is the message itself, or a list of events.
fn events(mut map: Map) -> Result<MinionCommand, WireError> {
    let pretag: Option<String> = optional(&map, "pretag")?.filter(|pretag: &String| !pretag.is_empty());
    let Some(Value::List(events)) = map.get_mut("events") else {
        let tag = field(&map, "tag")?;
        map.retain(|key, _| !key.as_str().is_some_and(|key| TRANSPORT_FIELDS.contains(&key)));
        if map.get("data").is_none_or(|data| !data.is_truthy()) {
            map.insert("data".into(), Value::map());
        }
        return Ok(MinionCommand::Events(MinionEvents { events: vec![(tag, map)], pretag }));
    };
    let one = |mut event: Map| -> Result<(String, Map), WireError> {
        let tag: String = field(&event, "tag")?;
        let body = match event.get_mut("data") {
            Some(Value::Map(data)) => std::mem::take(data),
            _ => event,
        };
        Ok((tag, body))
    };
    let events = mappings(std::mem::take(events), "events")?.into_iter().map(one).collect::<Result<_, _>>()?;
    Ok(MinionCommand::Events(MinionEvents { events, pretag }))
}

/// The fields for transport, which are not part of the content.
pub(super) const TRANSPORT_FIELDS: &[&str] = &["tok", "nonce", "serial"];

/// An unencrypted command. Each requires a key, a proof, or nothing.
#[derive(Debug, Clone, PartialEq)]
pub enum ClientCommand {
    /// Checks that the master responds. Requires nothing.
    Ping,
    /// A minion's authentication request. Requires possession of the minion's key.
    Auth(Box<AuthRequest>, Binding),
    /// Publishes a job. Requires a key of the master, or a proof of an authorised user.
    Publish(Box<PublishRequest>),
    /// Runs a runner function. Same requirements as a publish.
    Runner(Call),
    /// Runs a wheel function. Same requirements as a publish.
    Wheel(Call),
    /// Creates a token for a user. Requires the user's password.
    MakeToken(Box<TokenRequest>),
    /// Returns the data of a token.
    GetToken(String),
    /// Carries out the request of a client of the REST API. Requires the API's key.
    Forwarded(Box<Forwarded>),
    /// Publishes the event of a webhook. Requires the key of the REST API.
    Hook(Box<HookEvent>),
}

/// A call of a runner or wheel function.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// The function's name.
    pub fun: String,
    /// Its arguments.
    pub args: Args,
    /// The master key that the client presents.
    pub key: Option<String>,
    /// The user's proof in place of a key.
    pub proof: Option<Proof>,
    /// The requesting user.
    pub user: String,
    /// Whether to return the job id at once instead of the result.
    pub asynchronous: bool,
    /// The job id that the client has chosen. Only for clients with a key of the master.
    pub jid: Option<Jid>,
    /// Whether the client is Salt's own: its reply has no envelope.
    pub is_salt: bool,
}

impl Call {
    /// Parses a `runner` or `wheel` command. Salt's clients do not send the field `async`. They pass the arguments of
    /// runner functions in `kwarg`, either as keywords or as nested `arg` and `kwarg`, and those of wheel functions as
    /// further fields of the command.
    fn from_map(map: &Map, is_wheel: bool) -> Result<Self, WireError> {
        let is_salt = !map.contains_key("async");
        let positional: Vec<Value> = optional(map, "arg")?.unwrap_or_default();
        let mut args = Args::from_wire(&positional);
        let kwarg = optional::<Map>(map, "kwarg")?.unwrap_or_default();
        match (kwarg.get("arg"), kwarg.get("kwarg")) {
            (Some(Value::List(arg)), Some(Value::Map(kwarg))) if is_salt => {
                args = Args::from_wire(arg);
                args.keyword.extend(kwarg.clone());
            }
            _ => args.keyword.extend(kwarg),
        }
        if is_salt && is_wheel {
            let further = map.iter().filter(|(name, _)| name.as_str().is_some_and(is_wheel_argument));
            args.keyword.extend(further.map(|(name, value)| (name.clone(), value.clone())));
        }
        Ok(Call {
            is_salt,
            fun: field(map, "fun")?,
            args,
            key: optional(map, "key")?,
            proof: Proof::from_map(map)?,
            user: optional(map, "user")?.unwrap_or_else(|| "UNKNOWN".to_owned()),
            asynchronous: optional(map, "async")?.unwrap_or(false),
            // Salt's clients send no job id, but a wheel function may have an argument of this name.
            jid: match map.get("jid") {
                Some(jid) if !is_salt && !jid.is_nil() => Some(parsed(map, "jid")?),
                _ => None,
            },
        })
    }
}

impl ClientCommand {
    /// Parses the fields of a command.
    pub fn from_map(map: &Map) -> Result<Self, WireError> {
        let cmd: String = field(map, "cmd")?;
        match cmd.as_str() {
            "ping" => Ok(ClientCommand::Ping),
            "_auth" => Ok(ClientCommand::Auth(Box::new(AuthRequest::from_map(map)?), Binding::of(map)?)),
            "publish" => PublishRequest::from_map(map).map(|request| ClientCommand::Publish(Box::new(request))),
            "runner" => Call::from_map(map, false).map(ClientCommand::Runner),
            "wheel" => Call::from_map(map, true).map(ClientCommand::Wheel),
            "mk_token" => TokenRequest::from_map(map).map(|request| ClientCommand::MakeToken(Box::new(request))),
            "get_token" => field(map, "token").map(ClientCommand::GetToken),
            "hook" => HookEvent::from_map(map).map(|event| ClientCommand::Hook(Box::new(event))),
            "forward" => Forwarded::from_map(map).map(|request| ClientCommand::Forwarded(Box::new(request))),
            other => Err(WireError::UnknownCommand(other.chars().take(64).collect())),
        }
    }

    /// Returns the fields of a `runner` or `wheel` command.
    pub fn call_map(cmd: &'static str, call: &Call) -> Map {
        let mut map = brine_value::map! {
            "cmd" => cmd,
            "fun" => &call.fun,
            "arg" => call.args.to_wire(),
            "key" => call.key.clone(),
            "user" => &call.user,
            "async" => call.asynchronous,
        };
        map.extend(call.jid.as_ref().map(|jid| ("jid".into(), jid.into())));
        if let Some(proof) = &call.proof {
            proof.write(&mut map);
        }
        map
    }
}
