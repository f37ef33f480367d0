//! `elasticsearch`: returns, jobs and events as documents of Elasticsearch or OpenSearch.
//!
//! Documents have the form of Salt's returner. Unlike in Salt, returns have explicit ids: a repeated return is not
//! stored again.

use std::sync::atomic::{AtomicUsize, Ordering};

use brine_event::Event;
use brine_ids::Jid;
use brine_job::{Load, Return, retcode};
use brine_value::{Map, Value, json, map};

use crate::http::{Body, Http, Trust};
use crate::{Backend, BackendOption, Options, Returner, ReturnerError};

const NAME: &str = "elasticsearch";

pub(crate) const BACKEND: Backend = Backend {
    name: NAME,
    doc: "Returns, jobs and events as documents of Elasticsearch (7 or later) or OpenSearch: returns in an index for each \
          function, such as `salt-test_ping`. Returns cannot be read back, so it cannot be the job cache.",
    options: &[
        BackendOption {
            name: "elasticsearch.hosts",
            default: Some("['127.0.0.1:9200']"),
            doc: "The servers, each as `host:port` or as a URL. The next one is used when one is unreachable.",
        },
        BackendOption { name: "elasticsearch.use_ssl", default: Some("False"), doc: "Whether TLS is used." },
        BackendOption {
            name: "elasticsearch.ca_certs",
            default: None,
            doc: "The PEM file of the trusted authorities.",
        },
        BackendOption {
            name: "elasticsearch.verify_certs",
            default: Some("True"),
            doc: "Whether certificates are verified.",
        },
        BackendOption { name: "elasticsearch.username", default: None, doc: "The user name." },
        BackendOption { name: "elasticsearch.password", default: None, doc: "The password." },
        BackendOption {
            name: "elasticsearch.functions_blacklist",
            default: Some("[]"),
            doc: "Functions whose returns are not stored.",
        },
        BackendOption {
            name: "elasticsearch.index_date",
            default: Some("False"),
            doc: "Whether the date is added to the names of indexes of returns and events.",
        },
        BackendOption {
            name: "elasticsearch.master_event_index",
            default: Some("salt-master-event-cache"),
            doc: "The index of events.",
        },
        BackendOption {
            name: "elasticsearch.master_job_cache_index",
            default: Some("salt-master-job-cache"),
            doc: "The index of jobs.",
        },
        BackendOption {
            name: "elasticsearch.number_of_shards",
            default: Some("1"),
            doc: "The number of shards of new indexes.",
        },
        BackendOption {
            name: "elasticsearch.number_of_replicas",
            default: Some("0"),
            doc: "The number of replicas of new indexes.",
        },
        BackendOption {
            name: "elasticsearch.states_count",
            default: Some("False"),
            doc: "Whether succeeded and failed states are counted.",
        },
        BackendOption {
            name: "elasticsearch.states_order_output",
            default: Some("False"),
            doc: "Whether the number of the run is put in front of the names of states, in indexes whose names end in \
                  `-ordered`.",
        },
        BackendOption {
            name: "elasticsearch.states_single_index",
            default: Some("False"),
            doc: "Whether all state runs are in one index, `salt-state_apply`.",
        },
    ],
    open: |options| Ok(Box::new(Elasticsearch::new(options)?)),
    check: |options| Elasticsearch::new(options).map(drop),
};

const STATE_FUNCTIONS: &[&str] = &["state.apply", "state.highstate", "state.sls"];

struct Elasticsearch {
    /// The servers, at least one.
    servers: Vec<Http>,
    /// The index of the server that was reached last.
    current: AtomicUsize,
    blacklist: Vec<String>,
    has_date: bool,
    events: String,
    jobs: String,
    shards: i64,
    replicas: i64,
    counts: bool,
    orders: bool,
    has_single_index: bool,
}

impl Elasticsearch {
    fn new(options: &Options) -> Result<Self, ReturnerError> {
        let flag = |name: &str, default| Ok::<bool, ReturnerError>(options.get(NAME, name)?.unwrap_or(default));
        let text = |name: &str, default: &str| {
            Ok::<String, ReturnerError>(options.get(NAME, name)?.unwrap_or_else(|| default.to_owned()))
        };
        let named = options.get::<Value>(NAME, "host")?.or(options.get(NAME, "hosts")?);
        let hosts: Vec<String> = match named {
            None => vec!["127.0.0.1:9200".to_owned()],
            Some(Value::List(hosts)) => hosts.iter().map(ToString::to_string).collect(),
            Some(host) => vec![host.to_string()],
        };
        let scheme = if flag("use_ssl", false)? { "https" } else { "http" };
        let authorities: Option<String> = options.get(NAME, "ca_certs")?;
        let login = options.get::<String>(NAME, "username")?.zip(options.get::<String>(NAME, "password")?);
        let skip_verification = !flag("verify_certs", true)?;
        let server = |host: &String| {
            let url = if host.contains("://") { host.clone() } else { format!("{scheme}://{host}") };
            let trust = Trust { authorities: authorities.clone().map(Into::into), skip_verification };
            let http = Http::new(NAME, "hosts", &url, trust, options)?;
            Ok(match &login {
                Some((user, password)) => http.with_login(user, password),
                None => http,
            })
        };
        let servers: Vec<Http> = hosts.iter().map(server).collect::<Result<_, ReturnerError>>()?;
        if servers.is_empty() {
            let reason = "it names no server".to_owned();
            return Err(ReturnerError::Option { option: "elasticsearch.hosts".to_owned(), reason });
        }
        Ok(Elasticsearch {
            servers,
            current: AtomicUsize::new(0),
            blacklist: options.get(NAME, "functions_blacklist")?.unwrap_or_default(),
            has_date: flag("index_date", false)?,
            events: text("master_event_index", "salt-master-event-cache")?,
            jobs: text("master_job_cache_index", "salt-master-job-cache")?,
            shards: options.get(NAME, "number_of_shards")?.unwrap_or(1),
            replicas: options.get(NAME, "number_of_replicas")?.unwrap_or(0),
            counts: flag("states_count", false)?,
            orders: flag("states_order_output", false)?,
            has_single_index: flag("states_single_index", false)?,
        })
    }

    /// Runs requests with the server that was reached last, and with the others while none is reached.
    fn run<T>(&self, requests: impl Fn(&Http) -> Result<T, ReturnerError>) -> Result<T, ReturnerError> {
        let start = self.current.load(Ordering::Relaxed);
        let mut result = requests(&self.servers[start % self.servers.len()]);
        for number in 1..self.servers.len() {
            match &result {
                Err(error) if error.is_outage() => {
                    self.current.store(start + number, Ordering::Relaxed);
                    result = requests(&self.servers[(start + number) % self.servers.len()]);
                }
                _ => break,
            }
        }
        result
    }

    fn dated(&self, index: String) -> String {
        if self.has_date { format!("{index}-{}", brine_clock::now().strftime("%Y.%m.%d")) } else { index }
    }

    /// Creates an index, and its alias, if it does not exist.
    fn ensure(&self, http: &Http, index: &str) -> Result<(), ReturnerError> {
        let path = path_of(index);
        let exists = http.ask("HEAD", &path, &Body::Nothing)?;
        if exists.is_success() {
            return Ok(());
        }
        if exists.status != 404 {
            return Err(http.refusal(&exists));
        }
        let settings = map! {"number_of_shards" => self.shards, "number_of_replicas" => self.replicas};
        let body = map! {"settings" => settings}.into();
        let made = http.ask("PUT", &format!("{path}-v1"), &Body::Json(&body))?;
        // Another process may have created the index meanwhile.
        if !made.is_success() && !made.text.contains("resource_already_exists_exception") {
            return Err(http.refusal(&made));
        }
        http.send("PUT", &format!("{path}-v1/_alias{path}"), &Body::Nothing).map(drop)
    }

    /// Stores a document under an id, unless it exists.
    fn create(&self, index: &str, id: &str, document: &Value) -> Result<(), ReturnerError> {
        self.run(|http| {
            self.ensure(http, index)?;
            let path = format!("{}/_create{}", path_of(index), path_of(id));
            let reply = http.ask("PUT", &path, &Body::Json(document))?;
            if reply.is_success() || reply.status == 409 { Ok(()) } else { Err(http.refusal(&reply)) }
        })
    }

    /// Returns the index and the document of a return, or `None` for one that is not stored.
    fn document(&self, one: &Return) -> Option<(String, Value)> {
        let fun = one.fun();
        if self.blacklist.iter().any(|name| name == fun) || one.value().is_nil() && one.map().get("data").is_none() {
            return None;
        }
        let is_run = STATE_FUNCTIONS.contains(&fun);
        let name = if is_run && self.has_single_index { "state_apply".to_owned() } else { fun.replace('.', "_") };
        // Names of indexes are in lower case.
        let mut index = self.dated(format!("salt-{}", name.to_lowercase()));
        let mut value = one.value().clone();
        let mut counts = Map::new();
        if is_run {
            match &value {
                Value::Map(states) if self.orders => {
                    index += "-ordered";
                    value = ordered(states).into();
                }
                Value::Map(_) => {}
                _ => value = map! {"return" => value}.into(),
            }
            if self.counts {
                let states = one.value().as_map().map(|states| states.values().collect::<Vec<_>>()).unwrap_or_default();
                let failed = states.iter().filter(|state| state.get("result") == Some(&false.into())).count();
                counts = map! {"succeeded" => (states.len() - failed) as i64, "failed" => failed as i64};
            }
        }
        // As in Salt, a return without a retcode has failed.
        let code = if one.map().contains_key("retcode") { retcode(one.map()) } else { 1 };
        let document = map! {
            "@timestamp" => now(), "success" => code == 0, "retcode" => code, "minion" => one.id(), "fun" => fun,
            "jid" => one.jid(), "counts" => counts, "data" => without_dots(&value),
        };
        Some((index, document.into()))
    }
}

fn now() -> String {
    brine_clock::now().timestamp().strftime("%Y-%m-%dT%H:%M:%S%.6f+00:00").to_string()
}

/// Returns a name as a path with one segment.
fn path_of(name: &str) -> String {
    format!("/{}", brine_value::percent_encoded(name))
}

/// Returns states with their run numbers in front of their names, and with their functions as `_func`.
fn ordered(states: &Map) -> Map {
    let width = states.len().to_string().len();
    let pairs = states.iter().map(|(name, state)| {
        let name = name.to_string();
        let mut state = state.clone();
        if let Value::Map(fields) = &mut state {
            let parts: Vec<&str> = name.split("_|-").collect();
            let function = format!("{}.{}", parts.first().unwrap_or(&""), parts.last().unwrap_or(&""));
            fields.insert("_func".into(), function.into());
        }
        let number = state.get("__run_num__").and_then(Value::as_i64).unwrap_or_default();
        (format!("{number:0width$}_|-{name}").into(), state)
    });
    pairs.collect()
}

/// Replaces the dots in the keys of a value, which Elasticsearch would treat as paths. As in Salt, `_orig_key` is the
/// last replaced key.
fn without_dots(value: &Value) -> Value {
    match value {
        Value::Map(map) => {
            let mut out = Map::new();
            for (key, value) in map {
                let mut key = key.to_string();
                if key.contains('.') {
                    out.insert("_orig_key".into(), key.as_str().into());
                    key = key.replace('.', "_");
                }
                out.insert(key.into(), without_dots(value));
            }
            out.into()
        }
        Value::List(items) => items.iter().map(without_dots).collect::<Vec<_>>().into(),
        other => other.clone(),
    }
}

impl Returner for Elasticsearch {
    fn name(&self) -> &'static str {
        NAME
    }

    fn save_load(&self, load: &Load) -> Result<(), ReturnerError> {
        let document = map! {"jid" => load.jid(), "load" => load.map().clone()}.into();
        self.run(|http| {
            self.ensure(http, &self.jobs)?;
            let path = format!("{}/_doc{}", path_of(&self.jobs), path_of(load.jid().as_str()));
            http.send("PUT", &path, &Body::Json(&document)).map(drop)
        })
    }

    fn save_returns(&self, returns: &[Return]) -> Result<(), ReturnerError> {
        returns.iter().try_for_each(|job_return| match self.document(job_return) {
            None => Ok(()),
            Some((index, document)) => {
                self.create(&index, &format!("{}_{}", job_return.jid(), job_return.id()), &document)
            }
        })
    }

    fn get_load(&self, jid: &Jid) -> Result<Option<Load>, ReturnerError> {
        let path = format!("{}/_doc{}", path_of(&self.jobs), path_of(jid.as_str()));
        let document = self.run(|http| {
            let reply = http.ask("GET", &path, &Body::Nothing)?;
            match reply.status {
                404 => Ok(None),
                _ if reply.is_success() => http.json(&reply).map(Some),
                _ => Err(http.refusal(&reply)),
            }
        })?;
        let load = document.as_ref().and_then(|document| document.get("_source")?.get("load")?.as_map());
        let load = load.map(|load| Load::from_map(load.clone()));
        load.transpose().map_err(|error| ReturnerError::damaged(NAME, jid.as_str(), error))
    }

    fn event_return(&self, events: &[Event]) -> Result<(), ReturnerError> {
        if events.is_empty() {
            return Ok(());
        }
        let index = self.dated(self.events.clone());
        let mut lines = String::new();
        for event in events {
            // With the sequence number in its id, an event that is sent again is stored once.
            let action = match event.seq() {
                0 => map! {"create" => Map::new()},
                seq => {
                    map! {"create" => map! {"_id" => format!("{}_{seq}", event.data().get("_stamp").unwrap_or(&Value::Nil))}}
                }
            };
            let document = map! {"tag" => event.tag(), "data" => event.data()};
            for line in [action, document] {
                lines += &json::to_json(&line.into());
                lines.push('\n');
            }
        }
        self.run(|http| {
            self.ensure(http, &index)?;
            let path = format!("{}/_bulk", path_of(&index));
            let reply = http.send_json("POST", &path, &Body::Text("application/x-ndjson", lines.clone()))?;
            let items = reply.get("items").and_then(Value::as_list).unwrap_or_default();
            let refused = items.iter().find_map(|item| {
                let item = item.get("create")?;
                let is_error =
                    item.get("status").and_then(Value::as_i64).is_some_and(|status| status > 299 && status != 409);
                item.get("error").filter(|_| is_error)
            });
            match refused {
                Some(error) => Err(http.failed(crate::http::excerpt(&error.to_string()), false)),
                None => Ok(()),
            }
        })
    }
}

#[cfg(test)]
mod tests;
