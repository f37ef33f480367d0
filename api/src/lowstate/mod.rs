//! Lowstates: chunks with a client, a function and its arguments, and their results in Salt's form.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use brine_auth::FIND_JOB;
use brine_client::Registry;
use brine_event::STAMP;
use brine_function::Args;
use brine_function::arguments::{Argument, parse_within};
use brine_http_server::Slot;
use brine_target::TargetKind;
use brine_value::{FromValue, Map, Value, map};
use brine_wire::{Call, Proof, PublishRequest};

use crate::Api;
use crate::auth::is_hex;
use crate::error::ApiError;
use crate::local::LocalJob;

/// The retcode that the master returns for an unknown runner function.
const UNKNOWN_RUNNER: i64 = 254;
/// The maximum timeout of a call, in seconds.
const MAX_TIMEOUT: f64 = 86_400.0;

/// The client of a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Client {
    Local,
    LocalAsync,
    LocalBatch,
    LocalSubset,
    Runner,
    RunnerAsync,
    Ssh,
    Wheel,
    WheelAsync,
}

impl Client {
    /// All clients with their names, in the order in which Salt lists them for `GET /`.
    pub const ALL: &[(&str, Client)] = &[
        ("local", Client::Local),
        ("local_async", Client::LocalAsync),
        ("local_batch", Client::LocalBatch),
        ("local_subset", Client::LocalSubset),
        ("runner", Client::Runner),
        ("runner_async", Client::RunnerAsync),
        ("ssh", Client::Ssh),
        ("wheel", Client::Wheel),
        ("wheel_async", Client::WheelAsync),
    ];

    fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(other, _)| *other == name).map(|(_, client)| *client)
    }
}

/// Fields of a runner or wheel chunk that are not arguments of the function.
const CHUNK_FIELDS: &[&str] = &[
    "client",
    "fun",
    "arg",
    "kwarg",
    "token",
    "eauth",
    "username",
    "password",
    "timeout",
    "full_return",
    "user",
    "token_expire",
];

/// Fields of an `ssh` chunk, in addition to the general ones.
const SSH_FIELDS: &[&str] = &["tgt", "tgt_type", "expr_form", "raw_shell"];

/// Fields of a minion chunk that have a place of their own in a request. All others are options of the job, and the
/// master decides whether the user may set them.
const REQUEST_FIELDS: &[&str] = &[
    "client",
    "fun",
    "arg",
    "kwarg",
    "tgt",
    "tgt_type",
    "expr_form",
    "ret",
    "jid",
    "token",
    "eauth",
    "username",
    "password",
    "user",
    "token_expire",
];

/// The maximum number of arguments in a lowstate.
const MAX_ARGUMENTS: usize = 10_000;

/// A chunk as received, with its arguments parsed.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct RawChunk {
    pub fields: Map,
    /// The items of `arg`.
    args: Vec<Arg>,
}

/// An item of `arg`.
#[derive(Debug, PartialEq)]
enum Arg {
    /// A string, and what it means as on a command line.
    Word(String, Argument),
    Value(Value),
}

impl RawChunk {
    /// Creates a chunk of the API itself, without arguments.
    pub fn own(fields: Map) -> Self {
        RawChunk { fields, args: Vec::new() }
    }

    /// Parses the arguments of chunks. Their values take at most `memory` bytes, from which their size is subtracted.
    pub fn parse(chunks: Vec<Map>, memory: &mut usize) -> Result<Vec<Self>, ApiError> {
        let too_large = |message: String| ApiError::new(axum::http::StatusCode::PAYLOAD_TOO_LARGE, message);
        let mut count = 0;
        let mut one = |mut fields: Map| {
            let args = match fields.shift_remove("arg") {
                Some(Value::List(args)) => args,
                Some(Value::Nil) | None => Vec::new(),
                Some(arg) => vec![arg],
            };
            count += args.len();
            if count > MAX_ARGUMENTS {
                return Err(too_large(format!("The request has more than {MAX_ARGUMENTS} arguments")));
            }
            let arg = |arg| match arg {
                Value::Str(word) => {
                    let read = parse_within(&word, memory);
                    Arg::Word(word, read)
                }
                value => Arg::Value(value),
            };
            let args = args.into_iter().map(arg).collect();
            if *memory == 0 {
                return Err(too_large("The arguments take too much memory when they are parsed".to_owned()));
            }
            Ok(RawChunk { fields, args })
        };
        chunks.into_iter().map(&mut one).collect()
    }
}

/// A validated chunk.
#[derive(Debug, PartialEq)]
pub(crate) struct Chunk {
    pub client: Client,
    pub proof: Proof,
    fields: Map,
    args: Vec<Arg>,
}

impl Chunk {
    /// Validates a chunk. `token` is the session's token, which replaces credentials in the chunk.
    pub fn new(chunk: RawChunk, token: Option<&str>, enabled: &[String]) -> Result<Self, ApiError> {
        let RawChunk { mut fields, args } = chunk;
        if let Some(token) = token {
            fields.insert("token".into(), token.into());
        }
        let text = |name: &str| fields.get(name).and_then(Value::as_str);
        if fields.get("token").is_some_and(|token| !token.as_str().is_some_and(is_hex)) {
            return Err(ApiError::unauthorized("Invalid token"));
        }
        let named = fields.get("client").map_or_else(|| "None".to_owned(), ToString::to_string);
        let client = Client::named(&named)
            .ok_or_else(|| ApiError::bad_request(format!("Invalid client specified: '{named}'")))?;
        if !enabled.contains(&named) {
            tracing::warn!(client = named, "a client is refused: netapi_enable_clients does not name it");
            return Err(ApiError::bad_request(format!(
                "Client disabled: '{named}'. Add to 'netapi_enable_clients' master config option to enable."
            )));
        }
        let proof = match (text("token"), text("eauth")) {
            (Some(token), _) => Proof::Token(token.to_owned()),
            (None, Some(eauth)) => Proof::Password {
                eauth: eauth.to_owned(),
                username: text("username").unwrap_or_default().to_owned(),
                password: text("password").unwrap_or_default().to_owned(),
            },
            (None, None) => return Err(ApiError::unauthorized("No authentication credentials given")),
        };
        Ok(Chunk { client, proof, fields, args })
    }

    fn field(&self, name: &str) -> Option<&Value> {
        self.fields.get(name).filter(|value| !value.is_nil())
    }

    fn fun(&self) -> Result<&Value, ApiError> {
        let fun = self.field("fun").filter(|fun| fun.is_truthy());
        fun.ok_or_else(|| ApiError::bad_request("The chunk lacks 'fun': name a function"))
    }

    /// Returns a field such as `timeout`, in seconds.
    fn seconds(&self, name: &str) -> Result<Option<Duration>, ApiError> {
        let Some(value) = self.field(name) else { return Ok(None) };
        let number = value.as_f64().or_else(|| i64::from_value(value).map(|n| n as f64));
        let number = number.or_else(|| value.as_str().and_then(|text| text.trim().parse().ok()));
        match number {
            Some(number) if number.is_finite() && number >= 0.0 => {
                Ok(Some(Duration::from_secs_f64(number.min(MAX_TIMEOUT))))
            }
            _ => Err(ApiError::bad_request(format!("'{name}' is invalid: expected a number of seconds, got {value}"))),
        }
    }

    /// Returns `timeout`; `None` if it is 0 or missing, for the default.
    fn timeout(&self) -> Result<Option<Duration>, ApiError> {
        Ok(self.seconds("timeout")?.filter(|time| !time.is_zero()))
    }

    fn is_full_return(&self) -> bool {
        self.field("full_return").is_some_and(Value::is_truthy)
    }

    /// Returns the publish request of a minion chunk.
    fn request(&self) -> Result<PublishRequest, ApiError> {
        let tgt = self.field("tgt").ok_or_else(|| ApiError::bad_request("The chunk lacks 'tgt': name a target"))?;
        // The library `pepper` sends `expr_form`.
        let tgt_type = self.field("tgt_type").or_else(|| self.field("expr_form"));
        let tgt_type = tgt_type.map_or_else(|| TargetKind::Glob.name().to_owned(), ToString::to_string);
        let tgt = match tgt {
            Value::Str(ids) if tgt_type == TargetKind::List.name() => {
                ids.split([',', ' ']).filter(|id| !id.is_empty()).collect()
            }
            tgt => tgt.clone(),
        };
        let fun = self.fun()?.clone();
        let keyword = match self.field("kwarg") {
            None => Map::new(),
            Some(Value::Map(keyword)) => keyword.clone(),
            Some(_) => return Err(ApiError::bad_request("'kwarg' is invalid: expected a mapping")),
        };
        let arg = if fun.as_list().is_none() {
            wire_args(&self.args, keyword)
        } else if keyword.is_empty() {
            self.args.iter().map(Arg::value).collect()
        } else {
            return Err(ApiError::bad_request("'kwarg' is invalid with several functions: put it into 'arg'"));
        };
        let is_option = |(name, value): &(&Value, &Value)| {
            !value.is_nil() && name.as_str().is_some_and(|name| !REQUEST_FIELDS.contains(&name))
        };
        let options = self.fields.iter().filter(is_option).map(|(name, value)| (name.clone(), value.clone()));
        let jid = self.field("jid").map(ToString::to_string).filter(|jid| !jid.is_empty());
        let jid = jid.map(|jid| jid.parse()).transpose();
        Ok(PublishRequest {
            tgt,
            tgt_type,
            fun,
            arg,
            ret: self.field("ret").map(ToString::to_string).unwrap_or_default(),
            jid: jid.map_err(|error| ApiError::bad_request(format!("'jid' is invalid: {error}")))?,
            key: None,
            proof: Some(self.proof.clone()),
            // The master sets the authenticated user.
            user: String::new(),
            kwargs: options.collect(),
        })
    }

    /// Returns the master call of a runner or wheel chunk.
    fn call(&self, asynchronous: bool) -> Result<Call, ApiError> {
        let fun = self.fun()?.to_string();
        let mut args = Args::default();
        for arg in &self.args {
            match arg {
                Arg::Word(_, Argument::Keyword(name, value)) => {
                    args.keyword.insert(name.as_str().into(), value.clone());
                }
                Arg::Word(_, Argument::Positional(value)) | Arg::Value(value) => args.positional.push(value.clone()),
            }
        }
        match self.field("kwarg") {
            None => {}
            Some(Value::Map(keyword)) => args.keyword.extend(keyword.clone()),
            Some(_) => return Err(ApiError::bad_request("'kwarg' is invalid: expected a mapping")),
        }
        let further =
            self.fields.iter().filter(|(name, _)| !name.as_str().is_some_and(|name| CHUNK_FIELDS.contains(&name)));
        args.keyword.extend(further.map(|(name, value)| (name.clone(), value.clone())));
        Ok(self.call_of(fun, args, asynchronous))
    }

    /// Returns the master call of an `ssh` chunk. Only the master's configuration determines how a host is reached:
    /// further fields are rejected, because options of `ssh` can run programs on this machine.
    fn call_by_ssh(&self, allows_raw_shell: bool) -> Result<Call, ApiError> {
        let is_own = |name: &str| CHUNK_FIELDS.contains(&name) || SSH_FIELDS.contains(&name);
        if let Some(name) = self.fields.keys().find(|name| !name.as_str().is_some_and(is_own)) {
            return Err(ApiError::bad_request(format!(
                "'{name}' is not accepted by the client 'ssh': hosts are reached as the master's roster and configuration say"
            )));
        }
        let is_raw = self.field("raw_shell").is_some_and(Value::is_truthy);
        if is_raw && !allows_raw_shell {
            return Err(ApiError::unauthorized("Raw shell option not allowed."));
        }
        let request = self.request()?;
        let Value::Str(fun) = &request.fun else {
            return Err(ApiError::bad_request("'fun' is invalid: the client 'ssh' calls one function"));
        };
        let mut keyword = map! {
            "tgt" => request.tgt,
            "tgt_type" => request.tgt_type,
            "fun" => fun.clone(),
            "arg" => request.arg,
            "raw_shell" => is_raw,
        };
        if let Some(timeout) = self.timeout()? {
            keyword.insert("timeout".into(), timeout.as_secs().max(1).into());
        }
        Ok(self.call_of("ssh.cmd".to_owned(), Args::keyword(keyword), false))
    }

    /// Returns a call on behalf of the user of this chunk.
    fn call_of(&self, fun: String, args: Args, asynchronous: bool) -> Call {
        Call {
            fun,
            args,
            key: None,
            proof: Some(self.proof.clone()),
            user: String::new(),
            asynchronous,
            jid: None,
            is_salt: false,
        }
    }
}

impl Arg {
    /// Returns the argument as received.
    fn value(&self) -> Value {
        match self {
            Arg::Word(word, _) => word.as_str().into(),
            Arg::Value(value) => value.clone(),
        }
    }
}

/// Converts arguments to their wire format. As on Salt's minions, `name=value` strings are keyword arguments.
fn wire_args(arguments: &[Arg], keyword: Map) -> Vec<Value> {
    let mut args = Args::from_wire(&[]);
    for arg in arguments {
        match arg {
            Arg::Value(Value::Map(map)) if map.get("__kwarg__").is_some_and(Value::is_truthy) => {
                args.keyword.extend(Args::from_wire(&[map.clone().into()]).keyword);
            }
            Arg::Word(_, Argument::Keyword(name, value)) => {
                args.keyword.insert(name.as_str().into(), value.clone());
            }
            arg => args.positional.push(arg.value()),
        }
    }
    args.keyword.extend(keyword);
    args.to_wire()
}

impl Api {
    /// Runs the chunks of a lowstate of a user at this address in sequence and returns their results. The first error
    /// ends it, as in Salt. `slot` is that of the connection, which counts as authenticated when the master has accepted
    /// a job.
    pub(crate) async fn run(
        &self,
        (address, slot): (IpAddr, &Arc<Slot>),
        lowstate: Vec<RawChunk>,
        token: Option<&str>,
    ) -> Result<Vec<Value>, ApiError> {
        let mut answers = Vec::with_capacity(lowstate.len());
        for chunk in lowstate {
            let chunk = Chunk::new(chunk, token, &self.enabled)?;
            self.run_chunk(address, slot, &chunk, &mut answers).await?;
        }
        Ok(answers)
    }

    async fn run_chunk(
        &self,
        address: IpAddr,
        slot: &Arc<Slot>,
        chunk: &Chunk,
        answers: &mut Vec<Value>,
    ) -> Result<(), ApiError> {
        let answer = match chunk.client {
            Client::Local => self.local(address, chunk, slot)?.run().await?,
            Client::LocalAsync => self.local(address, chunk, slot)?.publish_only().await?,
            Client::LocalSubset => {
                // Forms send `batch` and `sub` as strings.
                let count = chunk.field("sub").or_else(|| chunk.field("subset")).map_or(Some(3), usize::from_value);
                let count = count.ok_or_else(|| ApiError::bad_request("'sub' is invalid: expected a number"))?;
                self.local(address, chunk, slot)?.subset(count).await?
            }
            Client::LocalBatch => {
                let size = chunk.field("batch").map_or_else(|| "10%".to_owned(), ToString::to_string);
                let failhard = chunk.field("failhard").is_some_and(Value::is_truthy);
                let wait = chunk.seconds("batch_wait")?.unwrap_or_default();
                let returned = self.local(address, chunk, slot)?.batch(&size, wait, failhard).await?;
                answers.extend(returned.into_iter().map(|(id, value)| Value::Map([(id, value)].into_iter().collect())));
                return Ok(());
            }
            Client::Runner => self.call(address, Registry::Runner, chunk).await?,
            Client::Wheel => self.call(address, Registry::Wheel, chunk).await?,
            Client::RunnerAsync => self.call_async(address, Registry::Runner, chunk).await?,
            Client::WheelAsync => self.call_async(address, Registry::Wheel, chunk).await?,
            Client::Ssh => self.by_ssh(address, chunk).await?,
        };
        answers.push(answer);
        Ok(())
    }

    fn local(&self, address: IpAddr, chunk: &Chunk, slot: &Arc<Slot>) -> Result<LocalJob<'_>, ApiError> {
        let times = brine_job::Times {
            timeout: chunk.timeout()?.unwrap_or(self.timeout),
            gather: chunk.seconds("gather_job_timeout")?.unwrap_or(self.gather),
            find_job: FIND_JOB,
        };
        let (request, slot) = (chunk.request()?, Arc::clone(slot));
        Ok(LocalJob { api: self, address, request, slot, times, is_full: chunk.is_full_return() })
    }

    /// Calls a function of the master and returns the result in Salt's form.
    async fn call(&self, address: IpAddr, registry: Registry, chunk: &Chunk) -> Result<Value, ApiError> {
        let time = chunk.timeout()?.unwrap_or(self.call_timeout);
        let call = chunk.call(false)?;
        let mut reply = self.master.call(address, registry, &call, time).await?;
        let tag = reply.get("tag").map(ToString::to_string).unwrap_or_default();
        let mut data = match reply.shift_remove("data") {
            Some(Value::Map(data)) => data,
            _ => Map::new(),
        };
        if data.get("retcode").and_then(Value::as_i64) == Some(UNKNOWN_RUNNER) {
            return Err(ApiError::bad_request(data.get("return").map(ToString::to_string).unwrap_or_default()));
        }
        let name = self.name_of(&chunk.proof).await;
        let user = name.map(|name| ("user".into(), name.into()));
        Ok(match registry {
            Registry::Runner if chunk.is_full_return() => {
                data.extend(user);
                map! {"tag" => format!("{tag}/ret"), "data" => data}.into()
            }
            Registry::Runner => data.shift_remove("return").unwrap_or_default(),
            Registry::Wheel => {
                data.retain(|name, _| !matches!(name.as_str(), Some("fun_args" | STAMP)));
                data.extend(user);
                map! {"tag" => tag, "data" => data}.into()
            }
        })
    }

    /// Runs a function by `salt-ssh` through the master, which also checks the permissions.
    async fn by_ssh(&self, address: IpAddr, chunk: &Chunk) -> Result<Value, ApiError> {
        let call = chunk.call_by_ssh(self.allows_raw_shell)?;
        let time = chunk.timeout()?.unwrap_or(self.call_timeout);
        let mut reply = self.master.call(address, Registry::Runner, &call, time).await?;
        let Some(Value::Map(mut data)) = reply.shift_remove("data") else { return Err(ApiError::internal()) };
        let returned = data.shift_remove("return").unwrap_or_default();
        if data.get("success").is_some_and(Value::is_truthy) {
            return Ok(returned);
        }
        Err(ApiError::bad_request(returned.to_string()))
    }

    async fn call_async(&self, address: IpAddr, registry: Registry, chunk: &Chunk) -> Result<Value, ApiError> {
        let reply = self.master.call(address, registry, &chunk.call(true)?, self.call_timeout).await?;
        let field = |name: &str| reply.get(name).cloned().unwrap_or_default();
        Ok(map! {"tag" => field("tag"), "jid" => field("jid")}.into())
    }

    async fn name_of(&self, proof: &Proof) -> Option<String> {
        match proof {
            Proof::Password { username, .. } => Some(username.clone()),
            Proof::Token(token) => self.auth.user(token).await.ok()?.map(|user| user.identity.username().to_string()),
        }
    }
}

#[cfg(test)]
mod tests;
