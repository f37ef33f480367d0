//! `redis`: jobs, returns and events in a Redis server, under the keys of Salt's returner: `load:<jid>`, a hash
//! `ret:<jid>` by minion id, `<minion id>:<function>` with the job id of the newest return, and a set `minions`. Brine
//! adds the set `minions:<jid>` for [`Returner::save_minions`] and the list `salt_events`.

use std::time::Duration;

use ::redis::{
    Client, Commands, Connection, ConnectionAddr, IntoConnectionInfo, Pipeline, RedisConnectionInfo, RedisResult,
    ScanOptions,
};
use brine_event::Event;
use brine_ids::{Jid, MinionId};
use brine_job::{Load, Return, oldest_kept};
use brine_value::{Map, Value};

use crate::connection::{self, TIMEOUT};
use crate::error::{is_of_redis_connection, readable};
use crate::{Backend, BackendOption, KEEP_JOBS_SECONDS, Options, Returner, ReturnerError, encoding, sorted_ids};

const NAME: &str = "redis";

pub(crate) const BACKEND: Backend = Backend {
    name: NAME,
    doc: "Jobs, returns and events in a Redis server, under the keys of Salt's returner. The list `salt_events` keeps the \
          newest 100,000 events. Clusters are not supported.",
    options: &[
        BackendOption { name: "redis.host", default: Some("salt"), doc: "The host name or address of the server." },
        BackendOption { name: "redis.port", default: Some("6379"), doc: "The port of the server." },
        BackendOption {
            name: "redis.unix_socket_path",
            default: None,
            doc: "The path of the server's Unix socket; takes precedence over host and port.",
        },
        BackendOption { name: "redis.db", default: Some("0"), doc: "The number of the database." },
        BackendOption { name: "redis.password", default: None, doc: "The password of the server." },
        KEEP_JOBS_SECONDS,
    ],
    open,
    // The connection is opened by the first operation.
    check: |options| open(options).map(|_| ()),
};

/// The maximum length of the list `salt_events`.
const MAX_EVENTS: isize = 100_000;
/// The maximum number of keys that one command reads or removes.
const PAGE: usize = 1000;

fn open(options: &Options) -> Result<Box<dyn Returner>, ReturnerError> {
    if options.get(NAME, "cluster_mode")?.unwrap_or(false) {
        return Err(ReturnerError::Option {
            option: "redis.cluster_mode".into(),
            reason: "clusters are not supported: name one server".into(),
        });
    }
    let socket: Option<String> = options.get(NAME, "unix_socket_path")?;
    let (address, location) = if let Some(path) = socket {
        (path.clone(), ConnectionAddr::Unix(path.into()))
    } else {
        let host = options.get(NAME, "host")?.unwrap_or_else(|| "salt".to_owned());
        let port = options.get(NAME, "port")?.unwrap_or(6379u16);
        (format!("{host}:{port}"), ConnectionAddr::Tcp(host, port))
    };
    let mut settings = RedisConnectionInfo::default().set_db(options.get(NAME, "db")?.unwrap_or(0));
    if let Some(password) = options.get::<String>(NAME, "password")? {
        settings = settings.set_password(password);
    }
    let lifetime = i64::try_from(options.keep_jobs_seconds()?).unwrap_or(0);
    let client = location.into_connection_info().and_then(|info| Client::open(info.set_redis_settings(settings)));
    match client {
        Ok(client) => Ok(Box::new(Redis { client, connection: connection::Connection::new(), address, lifetime })),
        Err(source) => Err(ReturnerError::Redis { address, source }),
    }
}

struct Redis {
    client: Client,
    connection: connection::Connection<Connection>,
    /// The address of the server, for messages.
    address: String,
    /// The expiry of jobs in seconds; 0 for none.
    lifetime: i64,
}

impl Redis {
    fn connect(&self) -> RedisResult<Connection> {
        let connection = self.client.get_connection_with_timeout(TIMEOUT)?;
        connection.set_read_timeout(Some(TIMEOUT))?;
        connection.set_write_timeout(Some(TIMEOUT))?;
        Ok(connection)
    }

    /// Runs commands. They are idempotent, except that an event may be listed twice.
    fn run<T>(&self, commands: impl Fn(&mut Connection) -> RedisResult<T>) -> Result<T, ReturnerError> {
        self.connection
            .run(&self.address, || self.connect(), is_of_redis_connection, commands)
            .map_err(|source| ReturnerError::Redis { address: self.address.clone(), source })
    }

    /// Returns the job ids of all keys with this prefix, sorted.
    fn jids(&self, prefix: &str) -> Result<Vec<Jid>, ReturnerError> {
        let keys: Vec<String> = self.run(|connection| {
            let options = ScanOptions::default().with_pattern(format!("{prefix}*")).with_count(PAGE);
            connection.scan_options(options)?.collect()
        })?;
        let mut jids: Vec<Jid> = keys.iter().filter_map(|key| key.strip_prefix(prefix)?.parse().ok()).collect();
        jids.sort();
        // SCAN may return a key twice.
        jids.dedup();
        Ok(jids)
    }

    fn expire(&self, pipe: &mut Pipeline, key: String) {
        if self.lifetime > 0 {
            pipe.expire(key, self.lifetime).ignore();
        }
    }
}

/// Decodes the replies of `HGET` or `HVALS` to returns by minion id.
fn by_minion<'a>(key: &str, texts: impl IntoIterator<Item = &'a String>) -> Map {
    let returns = texts.into_iter().filter_map(|text| readable(encoding::to_return(NAME, key, text)));
    let mut returns: Vec<Return> = returns.collect();
    returns.sort_by(|one, other| one.id().cmp(other.id()));
    returns.iter().map(|one| (Value::from(one.id()), one.summary().into())).collect()
}

impl Returner for Redis {
    fn name(&self) -> &'static str {
        NAME
    }

    fn save_load(&self, load: &Load) -> Result<(), ReturnerError> {
        let mut pipe = ::redis::pipe();
        pipe.set(format!("load:{}", load.jid()), encoding::of_map(load.map())).ignore();
        self.expire(pipe.atomic(), format!("load:{}", load.jid()));
        self.run(|connection| pipe.query(connection))
    }

    fn save_returns(&self, returns: &[Return]) -> Result<(), ReturnerError> {
        for page in returns.chunks(PAGE) {
            let mut pipe = ::redis::pipe();
            for one in page {
                let (key, id) = (format!("ret:{}", one.jid()), one.id().as_str());
                pipe.hset_nx(&key, id, encoding::of_map(one.map())).ignore();
                pipe.set(format!("{id}:{}", one.fun()), one.jid().as_str()).ignore();
                pipe.sadd("minions", id).ignore();
                self.expire(&mut pipe, key);
            }
            self.run(|connection| pipe.query::<()>(connection))?;
        }
        Ok(())
    }

    fn save_minions(&self, jid: &Jid, minions: &[MinionId]) -> Result<(), ReturnerError> {
        if minions.is_empty() {
            return Ok(());
        }
        let ids: Vec<&str> = minions.iter().map(MinionId::as_str).collect();
        let mut pipe = ::redis::pipe();
        pipe.sadd(format!("minions:{jid}"), ids).ignore();
        self.expire(pipe.atomic(), format!("minions:{jid}"));
        self.run(|connection| pipe.query(connection))
    }

    fn get_load(&self, jid: &Jid) -> Result<Option<Load>, ReturnerError> {
        let (key, minions) = (format!("load:{jid}"), format!("minions:{jid}"));
        let (load_text, more): (Option<String>, Vec<String>) =
            self.run(|connection| ::redis::pipe().get(&key).smembers(&minions).query(connection))?;
        let load = load_text.map(|text| encoding::to_load(NAME, &key, &text)).transpose()?;
        Ok(load.map(|load| load.with_minions(more.iter().filter_map(|id| id.parse().ok()))))
    }

    fn get_jid(&self, jid: &Jid) -> Result<Map, ReturnerError> {
        let key = format!("ret:{jid}");
        let texts: Vec<String> = self.run(|connection| connection.hvals(&key))?;
        Ok(by_minion(&key, &texts))
    }

    fn get_jids(&self, limit: Option<usize>) -> Result<Vec<Load>, ReturnerError> {
        let jids = self.jids("load:")?;
        let keys: Vec<String> =
            jids.iter().rev().take(limit.unwrap_or(usize::MAX)).map(|jid| format!("load:{jid}")).collect();
        let mut loads = Vec::with_capacity(keys.len());
        for page in keys.chunks(PAGE) {
            let texts: Vec<Option<String>> = self.run(|connection| connection.mget(page))?;
            // A missing key has expired since the scan.
            let entries = page.iter().zip(texts).filter_map(|(key, text)| Some((key, text?)));
            loads.extend(entries.filter_map(|(key, text)| readable(encoding::to_load(NAME, key, &text))));
        }
        Ok(loads)
    }

    fn get_fun(&self, fun: &str) -> Result<Map, ReturnerError> {
        let mut newest = Map::new();
        for page in self.get_minions()?.chunks(PAGE) {
            let keys: Vec<String> = page.iter().map(|id| format!("{id}:{fun}")).collect();
            let jids: Vec<Option<String>> = self.run(|connection| connection.mget(&keys))?;
            let mut pipe = ::redis::pipe();
            for (id, jid) in page.iter().zip(&jids).filter_map(|(id, jid)| Some((id, jid.as_ref()?))) {
                pipe.hget(format!("ret:{jid}"), id.as_str());
            }
            if pipe.is_empty() {
                continue;
            }
            let texts: Vec<Option<String>> = self.run(|connection| pipe.query(connection))?;
            newest.extend(by_minion(&format!("<minion>:{fun}"), texts.iter().flatten()));
        }
        Ok(newest)
    }

    fn get_minions(&self) -> Result<Vec<MinionId>, ReturnerError> {
        let ids: Vec<String> = self.run(|connection| connection.smembers("minions"))?;
        Ok(sorted_ids(ids.iter().map(String::as_str)))
    }

    fn event_return(&self, events: &[Event]) -> Result<(), ReturnerError> {
        if events.is_empty() {
            return Ok(());
        }
        let lines: Vec<String> = events.iter().map(encoding::of_event).collect();
        self.run(|connection| {
            ::redis::pipe().rpush("salt_events", &lines).ltrim("salt_events", -MAX_EVENTS, -1).query(connection)
        })
    }

    /// Redis expires keys itself; this removes those that were stored with a longer expiry.
    fn clean_old_jobs(&self, older_than: Duration) -> Result<(), ReturnerError> {
        let Some(oldest) = oldest_kept(&brine_clock::now_for_age(older_than), older_than.as_secs()) else {
            return Ok(());
        };
        for prefix in ["load:", "ret:", "minions:"] {
            let old: Vec<String> = self
                .jids(prefix)?
                .iter()
                .take_while(|jid| **jid < oldest)
                .map(|jid| format!("{prefix}{jid}"))
                .collect();
            for page in old.chunks(PAGE) {
                self.run(|connection| connection.del::<_, ()>(page))?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use brine_value::map;

    use super::*;

    #[test]
    fn connection_errors_name_the_server() {
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().join("nobody.sock").display().to_string();
        let returner = open(&Options::new(&map! {"redis.unix_socket_path" => socket.as_str()}, None)).unwrap();
        let error = returner.get_minions().unwrap_err().to_string();
        assert!(error.starts_with(&format!("redis server {socket} failed: ")), "{error}");
    }

    #[test]
    fn invalid_options_are_named() {
        for (option, value) in
            [("redis.cluster_mode", "true"), ("redis.port", "70000"), ("redis.db", "x"), ("keep_jobs_seconds", "-1")]
        {
            let error = open(&Options::new(&map! {option => value}, None)).err().unwrap().to_string();
            assert!(error.starts_with(&format!("option '{option}': ")), "{error}");
        }
    }
}
