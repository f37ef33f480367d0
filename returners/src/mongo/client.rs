//! The client. Returns have an id of job and minion, so that the first return is kept. Events have an id of master and
//! event, so that a repeated batch adds nothing.

use std::time::Duration;

use brine_event::Event;
use brine_ids::{Jid, MinionId};
use brine_job::{Load, Return, oldest_kept};
use brine_value::Map;
use mongodb::IndexModel;
use mongodb::bson::{Bson, Document, doc};
use mongodb::error::{Error, ErrorKind};
use mongodb::options::{Acknowledgment, ClientOptions, Credential, ServerAddress, WriteConcern};
use mongodb::sync::{Client, Collection, Database};
use parking_lot::Mutex;

use super::NAME;
use super::documents::{escaped, plain, to_document, to_map, unescaped, without_dots};
use crate::connection::TIMEOUT;
use crate::error::readable;
use crate::{Options, Returner, ReturnerError, sorted_ids};

/// The error number of an insert whose id exists already.
const DUPLICATE: i32 = 11000;
/// The indexed fields of the collections.
const INDEXES: [(&str, &[&str]); 4] =
    [("saltReturns", &["minion", "jid", "fun"]), ("jobs", &["jid"]), ("jobMinions", &["jid"]), ("events", &["tag"])];

pub(super) fn open(options: &Options) -> Result<Box<dyn Returner>, ReturnerError> {
    let text = |name: &str| options.get::<String>(NAME, name);
    let invalid = |name: &str, reason: &str| ReturnerError::Option {
        option: format!("{NAME}.{name}"),
        reason: reason.to_owned(),
    };
    let mut settings = match (text("uri")?, text("host")?) {
        (Some(_), Some(_)) => return Err(invalid("uri", "it cannot be used together with mongo.host")),
        // The client's error could contain the password.
        (Some(uri), None) => ClientOptions::parse(uri).run().map_err(|_| {
            invalid("uri", "it is invalid: expected a URL such as mongodb://user:password@host:27017/database")
        })?,
        (None, host) => {
            let host = host.unwrap_or_else(|| "localhost".to_owned());
            let port = options.get(NAME, "port")?.unwrap_or(27017);
            ClientOptions::builder().hosts(vec![ServerAddress::Tcp { host, port: Some(port) }]).build()
        }
    };
    if let Some((user, password)) = text("user")?.zip(text("password")?) {
        settings.credential = Some(Credential::builder().username(user).password(password).build());
    }
    let database = match text("db")?.or_else(|| settings.default_database.clone()) {
        Some(name) if name.is_empty() || name.len() > 63 || name.contains(['/', '\\', '.', ' ', '"', '$', '\0']) => {
            return Err(invalid(
                "db",
                "it is invalid: expected a name of up to 63 letters, digits, hyphens and underscores",
            ));
        }
        Some(name) => name,
        None => return Err(invalid("db", "it is required")),
    };
    settings.app_name = Some("brine".to_owned());
    // An acknowledged document is not sent again, so a server that is killed must still have it.
    let durable = WriteConcern::builder().w(Acknowledgment::Majority).journal(true).build();
    settings.write_concern.get_or_insert(durable);
    settings.connect_timeout = Some(TIMEOUT);
    settings.server_selection_timeout.get_or_insert(TIMEOUT);
    let hosts: Vec<String> = settings.hosts.iter().map(ToString::to_string).collect();
    Ok(Box::new(Mongo {
        server: format!("mongo server {}", hosts.join(",")),
        settings,
        database,
        open: Mutex::default(),
        makes_indexes: options.get(NAME, "indexes")?.unwrap_or(false),
        master: options.own_id().unwrap_or_default(),
    }))
}

struct Mongo {
    /// The servers, for messages.
    server: String,
    settings: ClientOptions,
    database: String,
    /// The client, which reconnects by itself; opened by the first operation.
    open: Mutex<Option<Database>>,
    makes_indexes: bool,
    master: String,
}

/// Returns the id of the document of a job and a minion.
fn key(jid: &Jid, id: &MinionId) -> String {
    format!("{jid}/{id}")
}

/// Returns the return in a document.
fn return_of(document: Document) -> Result<Return, ReturnerError> {
    let key = format!("{}/{}", document.get_str("jid").unwrap_or("?"), document.get_str("minion").unwrap_or("?"));
    let full = match document.get_document("full_ret") {
        Ok(full) => to_map(full.clone(), plain),
        Err(error) => return Err(ReturnerError::damaged(NAME, &key, error)),
    };
    Return::from_map(full).map_err(|error| ReturnerError::damaged(NAME, &key, error))
}

fn load_of(mut document: Document) -> Result<Load, ReturnerError> {
    document.remove("_id");
    let map = to_map(document, unescaped);
    let key = map.get("jid").map(ToString::to_string).unwrap_or_default();
    Load::from_map(map).map_err(|error| ReturnerError::damaged(NAME, &key, error))
}

/// Returns each minion's first return among these.
fn by_minion(returns: impl Iterator<Item = Result<Return, ReturnerError>>) -> Map {
    let mut summaries = Map::new();
    for one in returns.filter_map(readable) {
        summaries.entry(one.id().into()).or_insert_with(|| one.summary().into());
    }
    summaries.sort_by(|one, _, other, _| one.as_str().cmp(&other.as_str()));
    summaries
}

/// Whether documents were refused only because their ids exist already.
fn is_repetition(error: &Error) -> bool {
    match &*error.kind {
        ErrorKind::InsertMany(failed) => {
            failed.write_concern_error.is_none()
                && failed.write_errors.as_ref().is_some_and(|errors| errors.iter().all(|error| error.code == DUPLICATE))
        }
        _ => false,
    }
}

impl Mongo {
    fn run<T>(&self, operation: impl FnOnce(&Database) -> Result<T, Error>) -> Result<T, ReturnerError> {
        let failed = |error: Error| {
            let is_outage = matches!(
                &*error.kind,
                ErrorKind::Io(_) | ErrorKind::ServerSelection { .. } | ErrorKind::ConnectionPoolCleared { .. }
            );
            let reason = error.to_string();
            ReturnerError::Server { returner: NAME, server: self.server.clone(), reason, is_outage }
        };
        let database = {
            let mut open = self.open.lock();
            if let Some(database) = &*open {
                database.clone()
            } else {
                let client = Client::with_options(self.settings.clone()).map_err(failed)?;
                let database = client.database(&self.database);
                if self.makes_indexes {
                    make_indexes(&database).map_err(failed)?;
                }
                open.insert(database).clone()
            }
        };
        operation(&database).map_err(failed)
    }

    /// Inserts documents. Existing documents with the same ids are kept unchanged.
    fn insert(&self, collection: &str, documents: Vec<Document>) -> Result<(), ReturnerError> {
        if documents.is_empty() {
            return Ok(());
        }
        self.run(|database| match database.collection(collection).insert_many(documents).ordered(false).run() {
            Err(error) if !is_repetition(&error) => Err(error),
            _ => Ok(()),
        })
    }

    /// Returns the documents in which a field has this value, in ascending or descending order of another field.
    fn find(
        &self,
        collection: &str,
        filter: Document,
        sort: Document,
        limit: Option<usize>,
    ) -> Result<Vec<Document>, ReturnerError> {
        self.run(|database| {
            let collection: Collection<Document> = database.collection(collection);
            // Zero means no limit.
            let limit = limit.map_or(0, |limit| limit.try_into().unwrap_or(i64::MAX));
            collection.find(filter).sort(sort).limit(limit).run()?.collect()
        })
    }
}

fn make_indexes(database: &Database) -> Result<(), Error> {
    for (name, fields) in INDEXES {
        let collection: Collection<Document> = database.collection(name);
        for field in fields {
            collection.create_index(IndexModel::builder().keys(doc! {*field: 1}).build()).run()?;
        }
    }
    Ok(())
}

impl Returner for Mongo {
    fn name(&self) -> &'static str {
        NAME
    }

    fn setup(&self) -> Result<(), ReturnerError> {
        self.run(make_indexes)
    }

    fn save_load(&self, load: &Load) -> Result<(), ReturnerError> {
        let document = to_document(load.map(), escaped);
        self.run(|database| {
            let jobs: Collection<Document> = database.collection("jobs");
            jobs.replace_one(doc! {"jid": load.jid().as_str()}, document).upsert(true).run().map(drop)
        })
    }

    fn save_returns(&self, returns: &[Return]) -> Result<(), ReturnerError> {
        let document = |one: &Return| {
            let full = to_document(one.map(), without_dots);
            let field = |name: &str| full.get(name).cloned().unwrap_or(Bson::Null);
            let mut document = doc! {
                "_id": key(one.jid(), one.id()), "minion": one.id().as_str(), "jid": one.jid().as_str(),
                "return": field("return"), "fun": one.fun(),
            };
            if full.contains_key("out") {
                document.insert("out", field("out"));
            }
            document.insert("full_ret", full);
            document
        };
        self.insert("saltReturns", returns.iter().map(document).collect())
    }

    fn save_minions(&self, jid: &Jid, minions: &[MinionId]) -> Result<(), ReturnerError> {
        let document = |id: &MinionId| doc! {"_id": key(jid, id), "jid": jid.as_str(), "minion": id.as_str()};
        self.insert("jobMinions", minions.iter().map(document).collect())
    }

    fn get_load(&self, jid: &Jid) -> Result<Option<Load>, ReturnerError> {
        let filter = || doc! {"jid": jid.as_str()};
        let Some(document) = self.find("jobs", filter(), doc! {}, Some(1))?.pop() else { return Ok(None) };
        let more = self.find("jobMinions", filter(), doc! {"minion": 1}, None)?;
        let more = more.iter().filter_map(|document| document.get_str("minion").ok()?.parse().ok());
        Ok(Some(load_of(document)?.with_minions(more)))
    }

    fn get_jid(&self, jid: &Jid) -> Result<Map, ReturnerError> {
        let documents = self.find("saltReturns", doc! {"jid": jid.as_str()}, doc! {}, None)?;
        Ok(by_minion(documents.into_iter().map(return_of)))
    }

    fn get_jids(&self, limit: Option<usize>) -> Result<Vec<Load>, ReturnerError> {
        if limit == Some(0) {
            return Ok(Vec::new());
        }
        let documents = self.find("jobs", doc! {}, doc! {"jid": -1}, limit)?;
        Ok(documents.into_iter().filter_map(|document| readable(load_of(document))).collect())
    }

    fn get_fun(&self, fun: &str) -> Result<Map, ReturnerError> {
        let documents = self.find("saltReturns", doc! {"fun": fun}, doc! {"jid": -1}, None)?;
        Ok(by_minion(documents.into_iter().map(return_of)))
    }

    fn get_minions(&self) -> Result<Vec<MinionId>, ReturnerError> {
        let minions =
            self.run(|database| database.collection::<Document>("saltReturns").distinct("minion", doc! {}).run())?;
        Ok(sorted_ids(minions.iter().filter_map(Bson::as_str)))
    }

    fn event_return(&self, events: &[Event]) -> Result<(), ReturnerError> {
        let document = |event: &Event| {
            let mut document = doc! {"tag": event.tag(), "data": to_document(&event.data(), plain)};
            // Events that were not published have no sequence number.
            if event.seq() > 0 {
                document.insert("_id", format!("{}/{}/{}", self.master, event.time().unwrap_or(0), event.seq()));
            }
            document
        };
        self.insert("events", events.iter().map(document).collect())
    }

    fn clean_old_jobs(&self, older_than: Duration) -> Result<(), ReturnerError> {
        let Some(oldest) = oldest_kept(&brine_clock::now_for_age(older_than), older_than.as_secs()) else {
            return Ok(());
        };
        self.run(|database| {
            ["jobs", "saltReturns", "jobMinions"].iter().try_for_each(|name| {
                let collection: Collection<Document> = database.collection(name);
                collection.delete_many(doc! {"jid": {"$lt": oldest.as_str()}}).run().map(drop)
            })
        })
    }
}
