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
                    if !each.iter().any(|known| known == name) {
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
        let (names, given): (String, Vec<Value>) = (field(map, "fun")?, field(map, "arg")?);
        let mut request = PublishRequest::new("", "", "");
        request.tgt = map.get("tgt").cloned().ok_or(WireError::Missing("tgt"))?;
        request.tgt_type = optional(map, "tgt_type")?.unwrap_or_else(|| "glob".to_owned());
        request.ret = optional(map, "ret")?.unwrap_or_default();
        if names.contains(',') {
            request.fun = names.split(',').collect();
            let words = |arg: &Value| arg.to_string().split_whitespace().map(Value::from).collect::<Value>();
            request.arg = given.iter().map(words).collect();
        } else {
            request.fun = names.into();
            request.arg = parsed_args(&given, &no_parse(map)?).to_wire();
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
        let given: Vec<Value> = field(map, "arg")?;
        Ok(PeerRun { fun: field(map, "fun")?, args: parsed_args(&given, &no_parse(map)?) })
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
fn parsed_args(given: &[Value], no_parse: &[String]) -> Args {
    let mut args = Args::default();
    for one in given {
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
pub(super) fn syndic_returns(map: &Map) -> Result<Vec<Map>, WireError> {
    let bundles: Vec<Map> = match map.get("load") {
        Some(Value::List(bundles)) => bundles.iter().filter_map(|bundle| bundle.as_map().cloned()).collect(),
        _ => vec![map.clone()],
    };
    let mut loads = Vec::new();
    for bundle in bundles {
        let jid = bundle.get("jid").cloned().ok_or(WireError::Missing("jid"))?;
        let returns = <Map as FromValue>::try_from_value(bundle.get("return").ok_or(WireError::Missing("return"))?);
        let returns = returns.map_err(|error| WireError::Field { field: "return", reason: error.to_string() })?;
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
mod tests {
    use super::*;
    use brine_value::{list, map};

    #[test]
    fn mine_queries_name_one_function_or_several() {
        for (fun, functions, by_function) in [
            ("a".into(), vec!["a"], false),
            ("a,b,a".into(), vec!["a", "b"], true),
            ("a,a".into(), vec!["a"], false),
            (list!["a"], vec!["a"], true),
        ] {
            let query = MineQuery::from_map(&map! {"tgt" => "*", "fun" => fun, "expr_form" => "pcre"}).unwrap();
            assert_eq!(
                (query.functions, query.by_function),
                (functions.iter().map(ToString::to_string).collect(), by_function)
            );
            assert_eq!(query.tgt_type, "pcre");
        }
        assert_eq!(MineQuery::from_map(&map! {"tgt" => "*"}), Err(WireError::Missing("fun")));
    }

    #[test]
    fn peer_arguments_are_parsed_like_a_command_line() {
        let given = map! {
            "fun" => "test.arg", "arg" => list!["1", "a=[x, y]", "b=2", list!["z"]], "tgt" => "web*", "tmo" => "7",
            "form" => "full", "no_parse" => list!["b"], "ret" => "",
        };
        let publish = PeerPublish::from_map(&given).unwrap();
        assert_eq!(
            publish.request.arg,
            vec![1.into(), list!["z"], map! {"a" => list!["x", "y"], "b" => "2", "__kwarg__" => true}.into()]
        );
        assert_eq!((publish.timeout, publish.full), (Some(Duration::from_secs(7)), true));
        assert_eq!(publish.functions(), ["test.arg"]);
    }

    #[test]
    fn several_functions_have_a_list_of_arguments_each() {
        let given = map! {"fun" => "cmd.run,test.ping", "arg" => list!["ls -l", ""], "tgt" => "*", "ret" => ""};
        let publish = PeerPublish::from_map(&given).unwrap();
        assert_eq!(publish.functions(), ["cmd.run", "test.ping"]);
        assert_eq!(publish.request.arg, vec![list!["ls", "-l"], list![]]);
    }

    #[test]
    fn a_syndics_message_holds_the_returns_of_many_minions() {
        let bundle = map! {
            "jid" => "1", "id" => "syndic", "fun" => "test.ping", "master_id" => "m",
            "return" => map! {"a" => map! {"return" => true, "retcode" => 0}, "b" => "text"},
        };
        let loads = syndic_returns(&bundle).unwrap();
        assert_eq!(
            loads,
            [
                map! {"jid" => "1", "id" => "a", "return" => true, "retcode" => 0, "master_id" => "m", "fun" => "test.ping"},
                map! {"jid" => "1", "id" => "b", "return" => "text", "master_id" => "m", "fun" => "test.ping"},
            ]
        );
        assert_eq!(syndic_returns(&map! {"load" => list![bundle.clone(), bundle]}).unwrap().len(), 4);
        assert!(syndic_returns(&map! {"jid" => "1", "return" => 5}).is_err());
    }
}
