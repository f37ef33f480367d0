//! What can be asked of a master: by a minion in its session, and by a client on the same machine.

use brine_function::Args;
use brine_ids::Jid;
use brine_value::{Map, Value};

use super::peer::{self, FilePiece, MineQuery, PeerPublish, PeerRun};
use super::publish::PublishRequest;
use super::{AuthRequest, Binding, Proof, TokenRequest, WireError, field, optional, parsed};

/// What an accepted minion can ask, all about itself: whatever id a message names, it speaks for its
/// own session.
#[derive(Debug, Clone, PartialEq)]
pub enum MinionCommand {
    /// The minion's pillar, rendered anew.
    Pillar {
        /// What the minion is.
        grains: Map,
        /// The environment of states.
        saltenv: Option<String>,
        /// The environment of pillar.
        pillarenv: Option<String>,
        /// What is merged over the pillar.
        pillar_override: Map,
        /// Whether the master is to forget what it has kept of it.
        clean_cache: bool,
    },
    /// Events for the master's bus.
    Events(MinionEvents),
    /// What came of jobs.
    Returns(Vec<Map>),
    /// What came of jobs at minions of another master below this one.
    SyndicReturns(Vec<Map>),
    /// Options of the master that states need.
    MasterOpts {
        /// Only those that environments need.
        env_only: bool,
    },
    /// SLS files that something beside the top file assigns.
    MasterTops,
    /// A piece of a file.
    ServeFile {
        /// The file.
        path: String,
        /// The environment.
        saltenv: String,
        /// Where the piece starts.
        loc: u64,
    },
    /// The digest of a file.
    FileHash {
        /// The file.
        path: String,
        /// The environment.
        saltenv: String,
        /// Whether the file's status is wanted too.
        stat: bool,
    },
    /// Where a file is.
    FileFind {
        /// The file.
        path: String,
        /// The environment.
        saltenv: String,
    },
    /// What files, folders or links there are.
    FileList {
        /// Of which kind.
        kind: ListKind,
        /// The environment.
        saltenv: String,
        /// Only below this folder.
        prefix: String,
    },
    /// What environments there are.
    FileEnvs,
    /// A piece of a file for the master to keep.
    FileReceive(FilePiece),
    /// What other minions may know of this one, by function.
    Mine {
        /// The functions' results.
        data: Map,
        /// Whether what was there before goes.
        clear: bool,
    },
    /// What other minions have put into their mines.
    MineGet(MineQuery),
    /// One function of the minion's mine goes.
    MineDelete {
        /// Which function.
        fun: String,
    },
    /// All of the minion's mine goes.
    MineFlush,
    /// A job for other minions: the answer is its id.
    PeerPublish(Box<PeerPublish>),
    /// A job for other minions: the answer is its returns.
    PeerPublishAndWait(Box<PeerPublish>),
    /// What has come back for a job of the minion's own.
    PeerReturns(Jid),
    /// A runner function.
    PeerRun(PeerRun),
    /// The things that the minion speaks for, by type.
    Resources(Map),
    /// The minion's key is to be forgotten.
    RevokeAuth,
    /// Jobs that went out while the minion was not connected: those after this one. Brine's own.
    CatchUp(Option<Jid>),
}

/// Events that a minion publishes.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct MinionEvents {
    /// Tag and body of each.
    pub events: Vec<(String, Map)>,
    /// What a syndic wants before the tags.
    pub pretag: Option<String>,
}

/// Of what a list is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListKind {
    /// Files.
    Files,
    /// Folders.
    Folders,
    /// Folders without files.
    EmptyFolders,
    /// Symbolic links.
    Links,
}

impl MinionCommand {
    /// Reads the fields of a command.
    pub fn from_map(map: &Map) -> Result<Self, WireError> {
        let cmd: String = field(map, "cmd")?;
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
                clean_cache: optional(map, "clean_cache")?.unwrap_or_default(),
            }),
            "_minion_event" => events(map),
            "_return" => match map.get("load") {
                // Several returns in one message.
                Some(Value::List(loads)) => {
                    let loads: Option<Vec<Map>> = loads.iter().map(|load| load.as_map().cloned()).collect();
                    let wrong = || WireError::Field { field: "load", reason: "expected a list of mappings".into() };
                    Ok(MinionCommand::Returns(loads.ok_or_else(wrong)?))
                }
                _ => Ok(MinionCommand::Returns(vec![map.clone()])),
            },
            "_syndic_return" => peer::syndic_returns(map).map(MinionCommand::SyndicReturns),
            "_master_opts" => {
                Ok(MinionCommand::MasterOpts { env_only: optional(map, "env_only")?.unwrap_or_default() })
            }
            "_master_tops" | "_ext_nodes" => Ok(MinionCommand::MasterTops),
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
            "_dir_list" => list(ListKind::Folders),
            "_file_list_emptydirs" => list(ListKind::EmptyFolders),
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
            "revoke_auth" => Ok(MinionCommand::RevokeAuth),
            "_catch_up" => match optional::<String>(map, "jid")?.filter(|jid| !jid.is_empty()) {
                Some(_) => Ok(MinionCommand::CatchUp(Some(parsed(map, "jid")?))),
                None => Ok(MinionCommand::CatchUp(None)),
            },
            other => Err(WireError::UnknownCommand(other.chars().take(64).collect())),
        }
    }
}

/// One event in the message itself, whose body is then the message, or several in a list.
fn events(map: &Map) -> Result<MinionCommand, WireError> {
    let pretag: Option<String> = optional(map, "pretag")?.filter(|pretag: &String| !pretag.is_empty());
    let Some(Value::List(events)) = map.get("events") else {
        let mut body = map.clone();
        body.retain(|key, _| !key.as_str().is_some_and(|key| TRANSPORT_FIELDS.contains(&key)));
        if body.get("data").is_none_or(|data| !data.is_truthy()) {
            body.insert("data".into(), Value::map());
        }
        return Ok(MinionCommand::Events(MinionEvents { events: vec![(field(map, "tag")?, body)], pretag }));
    };
    let one = |event: &Value| -> Result<(String, Map), WireError> {
        let wrong = || WireError::Field { field: "events", reason: "expected a list of mappings".into() };
        let event = event.as_map().ok_or_else(wrong)?;
        let tag: String = field(event, "tag")?;
        let body = match event.get("data") {
            Some(Value::Map(data)) => data.clone(),
            _ => event.clone(),
        };
        Ok((tag, body))
    };
    let events = events.iter().map(one).collect::<Result<_, _>>()?;
    Ok(MinionCommand::Events(MinionEvents { events, pretag }))
}

/// Fields of a message that are for its way, not part of what it says.
pub(super) const TRANSPORT_FIELDS: &[&str] = &["tok", "nonce", "serial"];

/// What can be asked in clear: by anybody who shows the key that the command needs.
#[derive(Debug, Clone, PartialEq)]
pub enum ClientCommand {
    /// Whether the master is there. Needs nothing.
    Ping,
    /// A minion asks to be let in. The key that it needs is its own.
    Auth(Box<AuthRequest>, Binding),
    /// A job for minions. Needs a key of the master, or a proof of a user who may publish it.
    Publish(Box<PublishRequest>),
    /// A call of a runner function. Needs what a publish needs.
    Runner(Call),
    /// A call of a wheel function. Needs what a publish needs.
    Wheel(Call),
    /// A token for a user. Needs the user's password.
    MakeToken(Box<TokenRequest>),
    /// What a token stands for.
    GetToken(String),
}

/// A call of a function on the master.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// The function's name.
    pub fun: String,
    /// Its arguments.
    pub args: Args,
    /// The key that was shown.
    pub key: Option<String>,
    /// What the user shows in the place of a key.
    pub proof: Option<Proof>,
    /// Who asks.
    pub user: String,
    /// Whether the answer is the job id at once, and not the result.
    pub asynchronous: bool,
}

impl Call {
    fn from_map(map: &Map) -> Result<Self, WireError> {
        let positional: Vec<Value> = optional(map, "arg")?.unwrap_or_default();
        let mut args = Args::from_wire(&positional);
        args.keyword.extend(optional::<Map>(map, "kwarg")?.unwrap_or_default());
        Ok(Call {
            fun: field(map, "fun")?,
            args,
            key: optional(map, "key")?,
            proof: Proof::from_map(map)?,
            user: optional(map, "user")?.unwrap_or_else(|| "UNKNOWN".to_owned()),
            asynchronous: optional(map, "async")?.unwrap_or(false),
        })
    }
}

impl ClientCommand {
    /// Reads the fields of a command.
    pub fn from_map(map: &Map) -> Result<Self, WireError> {
        let cmd: String = field(map, "cmd")?;
        match cmd.as_str() {
            "ping" => Ok(ClientCommand::Ping),
            "_auth" => Ok(ClientCommand::Auth(Box::new(AuthRequest::from_map(map)?), Binding::of(map)?)),
            "publish" => PublishRequest::from_map(map).map(|request| ClientCommand::Publish(Box::new(request))),
            "runner" => Call::from_map(map).map(ClientCommand::Runner),
            "wheel" => Call::from_map(map).map(ClientCommand::Wheel),
            "mk_token" => TokenRequest::from_map(map).map(|request| ClientCommand::MakeToken(Box::new(request))),
            "get_token" => field(map, "token").map(ClientCommand::GetToken),
            other => Err(WireError::UnknownCommand(other.chars().take(64).collect())),
        }
    }

    /// The fields of a `runner` or `wheel` command.
    pub fn call_map(cmd: &'static str, call: &Call) -> Map {
        let mut map = brine_value::map! {
            "cmd" => cmd,
            "fun" => &call.fun,
            "arg" => call.args.to_wire(),
            "key" => call.key.clone(),
            "user" => &call.user,
            "async" => call.asynchronous,
        };
        if let Some(proof) = &call.proof {
            proof.write(&mut map);
        }
        map
    }
}
