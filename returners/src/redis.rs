//! `redis`: jobs and returns in a Redis server, under the keys that Salt's returner of this name has:
//! `load:<jid>`, a hash `ret:<jid>` by minion, `<minion>:<fun>` for the job of the newest return, and a
//! set `minions`. Beside these: a set `minions:<jid>` for minions that are told late, a list `salt_events`.

use std::time::Duration;

use ::redis::{
    Client, Commands, Connection, ConnectionAddr, IntoConnectionInfo, Pipeline, RedisConnectionInfo, RedisError,
    RedisResult, ScanOptions,
};
use brine_event::Event;
use brine_ids::{Jid, MinionId};
use brine_job::{Load, Return, oldest_kept};
use brine_value::{Map, Value};
use jiff::Zoned;
use parking_lot::Mutex;

use crate::error::readable;
use crate::{Backend, Options, Returner, ReturnerError, text};

const NAME: &str = "redis";

pub(crate) const BACKEND: Backend = Backend {
    name: NAME,
    doc: "Jobs, returns and events in a Redis server.\n\n\
          redis.host, redis.port: where it listens (salt, 6379).\n\
          redis.unix_socket_path: its socket, which counts before host and port.\n\
          redis.db: the number of the database (0).\n\
          redis.password: its password, if it has one.\n\
          keep_jobs_seconds: how long Redis keeps a job (86400); 0 is for ever.",
    open,
    // Nothing is opened before it is first used.
    check: |options| open(options).map(|_| ()),
};

/// How long to wait for the server: for a connection, and for each answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// The waits before trying again over a new connection.
const RETRIES: [Duration; 2] = [Duration::from_millis(50), Duration::from_millis(250)];
/// How many events the list `salt_events` keeps.
const EVENTS: isize = 100_000;
/// How many keys are asked for, or removed, at once.
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
        Ok(client) => Ok(Box::new(Redis { client, connection: Mutex::new(None), address, lifetime })),
        Err(source) => Err(ReturnerError::Redis { address, source }),
    }
}

/// Connects when it is first used: who starts before the server does need not fail.
struct Redis {
    client: Client,
    connection: Mutex<Option<Connection>>,
    /// Which server, for messages.
    address: String,
    /// How many seconds the server keeps jobs; 0 is for ever.
    lifetime: i64,
}

impl Redis {
    fn connect(&self) -> RedisResult<Connection> {
        let connection = self.client.get_connection_with_timeout(PATIENCE)?;
        connection.set_read_timeout(Some(PATIENCE))?;
        connection.set_write_timeout(Some(PATIENCE))?;
        Ok(connection)
    }

    /// Runs commands, over a new connection if the one there was is broken. What is run may have
    /// been run before it broke: that changes nothing, but an event may be listed twice.
    fn run<T>(&self, commands: impl Fn(&mut Connection) -> RedisResult<T>) -> Result<T, ReturnerError> {
        let mut slot = self.connection.lock();
        let mut attempt = || {
            let mut connection = slot.take().map_or_else(|| self.connect(), Ok)?;
            let result = commands(&mut connection);
            // A connection on which something went wrong may still have answers coming: it is not used again.
            if result.is_ok() {
                *slot = Some(connection);
            }
            result
        };
        let mut result = attempt();
        for wait in RETRIES {
            match &result {
                Err(error) if is_of_connection(error) => {
                    tracing::debug!(address = self.address, %error, "redis is tried again");
                    std::thread::sleep(wait);
                    result = attempt();
                }
                _ => break,
            }
        }
        result.map_err(|source| ReturnerError::Redis { address: self.address.clone(), source })
    }

    /// All keys that start so, and the job ids behind.
    fn jids(&self, prefix: &str) -> Result<Vec<Jid>, ReturnerError> {
        let keys: Vec<String> = self.run(|connection| {
            let options = ScanOptions::default().with_pattern(format!("{prefix}*")).with_count(PAGE);
            connection.scan_options(options)?.collect()
        })?;
        let mut jids: Vec<Jid> = keys.iter().filter_map(|key| key.strip_prefix(prefix)?.parse().ok()).collect();
        jids.sort();
        // A scan may find a key twice.
        jids.dedup();
        Ok(jids)
    }

    fn expire(&self, pipe: &mut Pipeline, key: String) {
        if self.lifetime > 0 {
            pipe.expire(key, self.lifetime).ignore();
        }
    }
}

/// Whether another connection may help. A server that is loading its data says so and will be ready.
fn is_of_connection(error: &RedisError) -> bool {
    error.is_io_error()
        || error.is_connection_dropped()
        || error.is_connection_refusal()
        || error.code() == Some("LOADING")
}

/// The returns in answers to `HGET` or `HGETALL`, by minion.
fn by_minion<'a>(key: &str, found: impl IntoIterator<Item = &'a String>) -> Map {
    let returns = found.into_iter().filter_map(|found| readable(text::to_return(NAME, key, found)));
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
        pipe.set(format!("load:{}", load.jid()), text::of_map(load.map())).ignore();
        self.expire(pipe.atomic(), format!("load:{}", load.jid()));
        self.run(|connection| pipe.query(connection))
    }

    fn returner(&self, job_return: &Return) -> Result<(), ReturnerError> {
        self.save_returns(std::slice::from_ref(job_return))
    }

    fn save_returns(&self, returns: &[Return]) -> Result<(), ReturnerError> {
        for page in returns.chunks(PAGE) {
            let mut pipe = ::redis::pipe();
            for one in page {
                let (key, id) = (format!("ret:{}", one.jid()), one.id().as_str());
                pipe.hset_nx(&key, id, text::of_map(one.map())).ignore();
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
        let (found, more): (Option<String>, Vec<String>) =
            self.run(|connection| ::redis::pipe().get(&key).smembers(&minions).query(connection))?;
        let load = found.map(|found| text::to_load(NAME, &key, &found)).transpose()?;
        Ok(load.map(|load| load.with_minions(more.iter().filter_map(|id| id.parse().ok()))))
    }

    fn get_jid(&self, jid: &Jid) -> Result<Map, ReturnerError> {
        let key = format!("ret:{jid}");
        let found: Vec<String> = self.run(|connection| connection.hvals(&key))?;
        Ok(by_minion(&key, &found))
    }

    fn get_jids(&self, limit: Option<usize>) -> Result<Vec<Load>, ReturnerError> {
        let jids = self.jids("load:")?;
        let keys: Vec<String> =
            jids.iter().rev().take(limit.unwrap_or(usize::MAX)).map(|jid| format!("load:{jid}")).collect();
        let mut loads = Vec::with_capacity(keys.len());
        for page in keys.chunks(PAGE) {
            let found: Vec<Option<String>> = self.run(|connection| connection.mget(page))?;
            // One that is not there any more has expired meanwhile.
            let found = page.iter().zip(found).filter_map(|(key, found)| Some((key, found?)));
            loads.extend(found.filter_map(|(key, found)| readable(text::to_load(NAME, key, &found))));
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
            let found: Vec<Option<String>> = self.run(|connection| pipe.query(connection))?;
            newest.extend(by_minion(&format!("<minion>:{fun}"), found.iter().flatten()));
        }
        Ok(newest)
    }

    fn get_minions(&self) -> Result<Vec<MinionId>, ReturnerError> {
        let ids: Vec<String> = self.run(|connection| connection.smembers("minions"))?;
        let mut ids: Vec<MinionId> = ids.iter().filter_map(|id| id.parse().ok()).collect();
        ids.sort();
        Ok(ids)
    }

    fn event_return(&self, events: &[Event]) -> Result<(), ReturnerError> {
        if events.is_empty() {
            return Ok(());
        }
        let lines: Vec<String> = events.iter().map(text::of_event).collect();
        self.run(|connection| {
            ::redis::pipe().rpush("salt_events", &lines).ltrim("salt_events", -EVENTS, -1).query(connection)
        })
    }

    /// Redis forgets by itself what has its time; this removes what was stored to be kept longer.
    fn clean_old_jobs(&self, older_than: Duration) -> Result<(), ReturnerError> {
        let Some(oldest) = oldest_kept(&Zoned::now(), older_than.as_secs()) else { return Ok(()) };
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
    fn a_server_that_is_not_there_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("nobody.sock").display().to_string();
        let returner = open(&Options::new(&map! {"redis.unix_socket_path" => socket.as_str()}, None)).unwrap();
        let error = returner.get_minions().unwrap_err().to_string();
        assert!(error.starts_with(&format!("redis at {socket}: ")), "{error}");
    }

    #[test]
    fn options_that_cannot_be_are_named() {
        for (option, value) in
            [("redis.cluster_mode", "true"), ("redis.port", "70000"), ("redis.db", "x"), ("keep_jobs_seconds", "-1")]
        {
            let error = open(&Options::new(&map! {option => value}, None)).err().unwrap().to_string();
            assert!(error.starts_with(&format!("option '{option}': ")), "{error}");
        }
    }
}
