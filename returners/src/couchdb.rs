//! `couchdb`: returns as documents of a CouchDB database, with Salt's design document.
//!
//! As in Salt, a return's document has the job id as its id. Salt loses the returns of all but one minion of a job; here the
//! documents of the others have the id `<jid>:<minion id>`.

use brine_ids::{Jid, MinionId};
use brine_job::{Load, Return};
use brine_value::{Map, Value, json, map};

use crate::error::readable;
use crate::http::{Body, Http, Reply, Trust};
use crate::{Backend, BackendOption, Options, Returner, ReturnerError};

const NAME: &str = "couchdb";

pub(crate) const BACKEND: Backend = Backend {
    name: NAME,
    doc: "Returns as documents of a CouchDB database. The database and Salt's views are created by the first return, or by \
          `salt-run returner.setup couchdb`. It stores no jobs, so it cannot be the job cache.",
    options: &[
        BackendOption {
            name: "couchdb.url",
            default: Some("http://salt:5984/"),
            doc: "The URL of the server, which may contain a user and a password.",
        },
        BackendOption { name: "couchdb.db", default: Some("salt"), doc: "The name of the database." },
    ],
    open,
    check: |options| open(options).map(drop),
};

fn open(options: &Options) -> Result<Box<dyn Returner>, ReturnerError> {
    let url: String = options.get(NAME, "url")?.unwrap_or_else(|| "http://salt:5984/".to_owned());
    let database: String = options.get(NAME, "db")?.unwrap_or_else(|| "salt".to_owned());
    let http = Http::new(NAME, "url", &url, Trust::default(), options)?;
    Ok(Box::new(Couchdb { http, path: format!("/{}", encoded(&database)) }))
}

fn encoded(text: &str) -> String {
    brine_value::percent_encoded(text)
}

struct Couchdb {
    http: Http,
    /// The path of the database.
    path: String,
}

impl Couchdb {
    /// Stores a document. Returns `false` if there is one with its id.
    fn put(&self, id: &str, document: &Value) -> Result<bool, ReturnerError> {
        let path = format!("{}/{}", self.path, encoded(id));
        let mut reply = self.http.ask("PUT", &path, &Body::Json(document))?;
        if reply.status == 404 {
            self.setup()?;
            reply = self.http.ask("PUT", &path, &Body::Json(document))?;
        }
        match reply.status {
            409 => Ok(false),
            _ if reply.is_success() => Ok(true),
            _ => Err(self.http.refusal(&reply)),
        }
    }

    /// Returns a reply's rows, or none for a missing database or view.
    fn rows(&self, reply: &Reply) -> Result<Vec<Value>, ReturnerError> {
        if reply.status == 404 {
            return Ok(Vec::new());
        }
        if !reply.is_success() {
            return Err(self.http.refusal(reply));
        }
        Ok(self.http.json(reply)?.get("rows").and_then(Value::as_list).unwrap_or_default().to_vec())
    }

    /// Returns the documents of a job, even from a database that only Salt has written to.
    fn of_job(&self, jid: &Jid) -> Result<Vec<Map>, ReturnerError> {
        let path = format!("{}/_design/brine/_view/by-jid?include_docs=true", self.path);
        let keys = map! {"keys" => brine_value::list![jid]}.into();
        let mut reply = self.http.ask("POST", &path, &Body::Json(&keys))?;
        if reply.status == 404 {
            self.setup()?;
            reply = self.http.ask("POST", &path, &Body::Json(&keys))?;
        }
        Ok(documents(self.rows(&reply)?))
    }
}

/// Returns the documents of rows.
fn documents(rows: Vec<Value>) -> Vec<Map> {
    rows.into_iter().filter_map(|row| row.get("doc")?.as_map().cloned()).collect()
}

/// Returns the return in a document.
fn to_return(mut document: Map) -> Result<Return, ReturnerError> {
    let id = document.get("_id").map(ToString::to_string).unwrap_or_default();
    document.retain(|name, _| !matches!(name.as_str(), Some("_id" | "_rev" | "timestamp")));
    Return::from_map(document).map_err(|error| ReturnerError::damaged(NAME, &id, error))
}

/// Returns the design documents: Salt's, and one of Brine.
fn designs() -> [(&'static str, Map); 2] {
    let by_time = "function( doc ){ emit( [doc.id,doc.fun,doc.timestamp], doc ); }";
    let salt = map! {
        "language" => "javascript",
        "views" => map! {
            "minions" => map! {
                "map" => "function( doc ){ emit( doc.id, null ); }",
                "reduce" => "function( keys,values,rereduce ){ return key[0]; }",
            },
            "by-minion-fun-timestamp" => map! {"map" => by_time},
        },
    };
    let by_jid = "function (doc) { if (doc.jid) { emit(doc.jid, null); } }";
    // The reduce function of Salt's view `minions` fails.
    let minions = map! {"map" => "function (doc) { if (doc.jid) { emit(doc.id, null); } }", "reduce" => "_count"};
    let views = map! {"by-jid" => map! {"map" => by_jid}, "minions" => minions};
    let brine = map! {"language" => "javascript", "views" => views};
    [("salt", salt), ("brine", brine)]
}

impl Returner for Couchdb {
    fn name(&self) -> &'static str {
        NAME
    }

    fn stores_jobs(&self) -> bool {
        false
    }

    fn setup(&self) -> Result<(), ReturnerError> {
        let made = self.http.ask("PUT", &self.path, &Body::Nothing)?;
        // 412: the database exists.
        if !made.is_success() && made.status != 412 {
            return Err(self.http.refusal(&made));
        }
        for (name, design) in designs() {
            let made = self.http.ask("PUT", &format!("{}/_design/{name}", self.path), &Body::Json(&design.into()))?;
            if !made.is_success() && made.status != 409 {
                return Err(self.http.refusal(&made));
            }
        }
        Ok(())
    }

    fn save_returns(&self, returns: &[Return]) -> Result<(), ReturnerError> {
        returns.iter().try_for_each(|job_return| {
            let jid = job_return.jid().as_str();
            let mut document = job_return.map().clone();
            document.insert("timestamp".into(), brine_clock::now().timestamp().as_duration().as_secs_f64().into());
            let stored = |id: &str, mut document: Map| {
                document.insert("_id".into(), id.into());
                self.put(id, &document.into())
            };
            if stored(jid, document.clone())? {
                return Ok(());
            }
            let first = self.http.send_json("GET", &format!("{}/{}", self.path, encoded(jid)), &Body::Nothing)?;
            if first.get("id") == Some(&job_return.id().into()) {
                return Ok(());
            }
            stored(&format!("{jid}:{}", job_return.id()), document).map(drop)
        })
    }

    fn get_jid(&self, jid: &Jid) -> Result<Map, ReturnerError> {
        let returns = self.of_job(jid)?.into_iter().filter_map(|document| readable(to_return(document)));
        let mut returns: Vec<Return> = returns.collect();
        returns.sort_by(|one, other| one.id().cmp(other.id()));
        Ok(returns.iter().map(|one| (one.id().into(), one.summary().into())).collect())
    }

    /// Returns a job for each return: its function and arguments, and nothing about its target.
    fn get_jids(&self, limit: Option<usize>) -> Result<Vec<Load>, ReturnerError> {
        let mut loads: Vec<Load> = Vec::new();
        let path = format!("{}/_all_docs?include_docs=true", self.path);
        let rows = self.rows(&self.http.ask("GET", &path, &Body::Nothing)?)?;
        for document in documents(rows) {
            // Others are design documents.
            if !document.contains_key("jid") {
                continue;
            }
            let Some(one) = readable(to_return(document)) else { continue };
            let mut load = map! {"jid" => one.jid(), "fun" => one.fun(), "minions" => brine_value::list![one.id()]};
            load.extend(one.map().get("fun_args").map(|args| ("arg".into(), args.clone())));
            if let Ok(load) = Load::from_map(load) {
                loads.push(load);
            }
        }
        loads.sort_by(|one, other| other.jid().cmp(one.jid()));
        loads.dedup_by(|next, previous| {
            let is_same = next.jid() == previous.jid();
            if is_same {
                *previous = previous.clone().with_minions(next.minions());
            }
            is_same
        });
        loads.truncate(limit.unwrap_or(usize::MAX));
        Ok(loads)
    }

    fn get_fun(&self, fun: &str) -> Result<Map, ReturnerError> {
        let mut newest = Map::new();
        for id in self.get_minions()? {
            let key = |last: f64| encoded(&json::to_json(&brine_value::list![&id, fun, last]));
            let query = format!("descending=true&limit=1&startkey={}&endkey={}", key(9_999_999_999.0), key(0.0));
            let path = format!("{}/_design/salt/_view/by-minion-fun-timestamp?{query}", self.path);
            let rows = self.rows(&self.http.ask("GET", &path, &Body::Nothing)?)?;
            let document = rows.first().and_then(|row| row.get("value")?.as_map().cloned());
            if let Some(one) = document.and_then(|document| readable(to_return(document))) {
                newest.insert(one.id().into(), one.summary().into());
            }
        }
        Ok(newest)
    }

    fn get_minions(&self) -> Result<Vec<MinionId>, ReturnerError> {
        let path = format!("{}/_design/brine/_view/minions?group=true", self.path);
        let rows = self.rows(&self.http.ask("GET", &path, &Body::Nothing)?)?;
        let mut ids: Vec<MinionId> = rows.iter().filter_map(|row| row.get("key")?.as_str()?.parse().ok()).collect();
        ids.sort();
        ids.dedup();
        Ok(ids)
    }

    fn stores_events(&self) -> bool {
        false
    }
}
