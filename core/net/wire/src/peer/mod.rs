//! Commands of minions that concern other minions or the master: the mine, file uploads, and the peer interface (jobs
//! and runner functions).

use std::time::Duration;

use brine_function::{Args, arguments};
use brine_value::{FromValue, Map, Value};

use super::{PublishRequest, WireError, field, optional};

/// A query of other minions' mines (`mine.get`).
#[derive(Debug, Clone, PartialEq)]
pub struct MineQuery {
    /// The target.
    pub tgt: Value,
    /// The type of the target.
    pub tgt_type: String,
    /// The requested functions, without duplicates.
    pub functions: Vec<String>,
    /// Whether the reply is keyed by function. It is not if the request named a single function as a string.
    pub by_function: bool,
}

impl MineQuery {
    pub(super) fn from_map(map: &Map) -> Result<Self, WireError> {
        let fun = map.get("fun").ok_or(WireError::Missing("fun"))?;
        let functions: Vec<String> = match fun {
            Value::Str(names) => {
                let mut each: Vec<String> = Vec::new();
                for name in names.split(',') {
                    if !each.iter().any(|other| other == name) {
                        each.push(name.to_owned());
                    }
                }
                each
            }
            _ => field(map, "fun")?,
        };
        let by_function = functions.len() > 1 || matches!(fun, Value::List(_));
        let tgt_type = optional(map, "tgt_type")?.or(optional(map, "expr_form")?).unwrap_or_else(|| "glob".to_owned());
        let tgt = map.get("tgt").cloned().ok_or(WireError::Missing("tgt"))?;
        Ok(MineQuery { tgt, tgt_type, functions, by_function })
    }
}

/// A job that a minion asks the master to publish (`publish.publish`).
#[derive(Debug, Clone, PartialEq)]
pub struct PeerPublish {
    /// The job.
    pub request: PublishRequest,
    /// The time for which the minion waits for the returns, if the request contains it.
    pub timeout: Option<Duration>,
    /// Whether to return complete returns instead of only the results (`form: full`).
    pub full: bool,
}

impl PeerPublish {
    /// Parses the fields. Several functions are separated by commas; each argument is then split into the arguments of
    /// one function.
    pub(super) fn from_map(map: &Map) -> Result<Self, WireError> {
        let (names, arguments): (String, Vec<Value>) = (field(map, "fun")?, field(map, "arg")?);
        let mut request = PublishRequest::new("", "", "");
        request.tgt = map.get("tgt").cloned().ok_or(WireError::Missing("tgt"))?;
        request.tgt_type = optional(map, "tgt_type")?.unwrap_or_else(|| "glob".to_owned());
        request.ret = optional(map, "ret")?.unwrap_or_default();
        if names.contains(',') {
            request.fun = names.split(',').collect();
            let words = |arg: &Value| arg.to_string().split_whitespace().map(Value::from).collect::<Value>();
            request.arg = arguments.iter().map(words).collect();
        } else {
            request.fun = names.into();
            request.arg = parsed_args(&arguments, &no_parse(map)?).to_wire();
        }
        let seconds: Option<u64> = optional(map, "timeout")?.or(optional(map, "tmo")?);
        let full = optional::<String>(map, "form")?.is_some_and(|form| form == "full");
        Ok(PeerPublish { request, timeout: seconds.map(Duration::from_secs), full })
    }

    /// Returns the names of the functions.
    pub fn functions(&self) -> Vec<&str> {
        match &self.request.fun {
            Value::List(names) => names.iter().filter_map(Value::as_str).collect(),
            name => name.as_str().into_iter().collect(),
        }
    }
}

/// A runner function that a minion calls on the master (`publish.runner`).
#[derive(Debug, Clone, PartialEq)]
pub struct PeerRun {
    /// The function.
    pub fun: String,
    /// Its arguments.
    pub args: Args,
}

impl PeerRun {
    pub(super) fn from_map(map: &Map) -> Result<Self, WireError> {
        let arguments: Vec<Value> = field(map, "arg")?;
        Ok(PeerRun { fun: field(map, "fun")?, args: parsed_args(&arguments, &no_parse(map)?) })
    }
}

/// A chunk of a file that a minion uploads to the master (`cp.push`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilePiece {
    /// The path below the minion's directory, in components.
    pub path: Vec<String>,
    /// The offset of the chunk.
    pub loc: u64,
    /// The chunk; an empty one creates an empty file.
    pub data: Vec<u8>,
}

impl FilePiece {
    pub(super) fn from_map(map: &Map) -> Result<Self, WireError> {
        let path = match map.get("path") {
            Some(Value::List(names)) => names.iter().map(|name| name.as_str().map(str::to_owned)).collect(),
            _ => None,
        };
        let wrong = |field, reason: &str| WireError::Field { field, reason: reason.to_owned() };
        let data = match map.get("data") {
            Some(Value::Bytes(data)) => data.clone(),
            Some(Value::Str(text)) => text.clone().into_bytes(),
            _ => return Err(wrong("data", "expected bytes")),
        };
        let path = path.ok_or_else(|| wrong("path", "expected a list of names"))?;
        Ok(FilePiece { path, loc: field(map, "loc")?, data })
    }
}

fn no_parse(map: &Map) -> Result<Vec<String>, WireError> {
    Ok(optional(map, "no_parse")?.unwrap_or_default())
}

/// Parses strings like command-line arguments, and leaves other values unchanged.
fn parsed_args(arguments: &[Value], no_parse: &[String]) -> Args {
    let mut args = Args::default();
    for one in arguments {
        let more = match one {
            Value::Str(word) => arguments::parse(std::slice::from_ref(word), no_parse),
            other => Args::from_wire(std::slice::from_ref(other)),
        };
        args.positional.extend(more.positional);
        args.keyword.extend(more.keyword);
    }
    args
}

/// Returns the returns in a message of a master below this one (`_syndic_return`), each as if its minion had sent it.
pub(super) fn syndic_returns(mut map: Map) -> Result<Vec<Map>, WireError> {
    let bundles: Vec<Map> = match map.get_mut("load") {
        Some(Value::List(bundles)) => {
            let map = |bundle| if let Value::Map(bundle) = bundle { Some(bundle) } else { None };
            std::mem::take(bundles).into_iter().filter_map(map).collect()
        }
        _ => vec![map],
    };
    let mut loads = Vec::new();
    for mut bundle in bundles {
        let jid = bundle.get("jid").cloned().ok_or(WireError::Missing("jid"))?;
        let returns = match bundle.get_mut("return").ok_or(WireError::Missing("return"))? {
            Value::Map(returns) => std::mem::take(returns),
            other => <Map as FromValue>::try_from_value(other)
                .map_err(|error| WireError::Field { field: "return", reason: error.to_string() })?,
        };
        for (id, item) in returns {
            let mut load = brine_value::map! {"jid" => jid.clone(), "id" => id};
            match item {
                Value::Map(fields) => load.extend(fields),
                value => _ = load.insert("return".into(), value),
            }
            for name in ["master_id", "fun", "fun_args", "out"] {
                if let Some(value) = bundle.get(name) {
                    load.insert(name.into(), value.clone());
                }
            }
            loads.push(load);
        }
    }
    Ok(loads)
}

#[cfg(test)]
mod tests;
