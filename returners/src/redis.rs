//! `redis`: jobs and returns in a Redis server, under the keys that Salt's returner of this name has:
//! `load:<jid>`, a hash `ret:<jid>` by minion, `<minion>:<fun>` for the newest return, a set `minions`.

use std::time::Duration;

use ::redis::{
    Client, Commands, Connection, ConnectionAddr, ConnectionInfo, IntoConnectionInfo, RedisConnectionInfo, RedisError,
};
use brine_core::event::Event;
use brine_core::job::{Load, Return};
use brine_core::value::json;
use brine_core::{Jid, Map, Value};
use parking_lot::Mutex;

use crate::{Options, Returner, ReturnerError};

/// Salt's name of it.
pub(crate) const NAME: &str = "redis";

const CONNECT_TIME: Duration = Duration::from_secs(5);
/// How many events are kept in the list `salt_events`.
const EVENTS: isize = 100_000;

pub(crate) fn open(options: &Options) -> Result<Box<dyn Returner>, ReturnerError> {
    let host = options.get(NAME, "host", "localhost".to_owned())?;
    let port = options.get(NAME, "port", 6379u16)?;
    let socket = options.get(NAME, "unix_socket_path", None::<String>)?;
    let database = options.get(NAME, "db", 0i64)?;
    let password = options.get(NAME, "password", None::<String>)?;
    let keep_hours = options.get("keep", "jobs", 24u64)?;
    let place = socket.clone().unwrap_or_else(|| format!("{host}:{port}"));
    let address = match socket {
        Some(path) => ConnectionAddr::Unix(path.into()),
        None => ConnectionAddr::Tcp(host, port),
    };
    let failed = |error: RedisError| failed(&place, &error);
    let mut settings = RedisConnectionInfo::default().set_db(database);
    if let Some(password) = password {
        settings = settings.set_password(password);
    }
    let info: ConnectionInfo = address.into_connection_info().map_err(failed)?.set_redis_settings(settings);
    let client = Client::open(info).map_err(failed)?;
    let lifetime = i64::try_from(keep_hours.saturating_mul(3600)).unwrap_or(i64::MAX);
    Ok(Box::new(Redis { client, connection: Mutex::new(None), place, lifetime }))
}

fn failed(place: &str, error: &RedisError) -> ReturnerError {
    ReturnerError::Backend { returner: NAME, place: place.to_owned(), reason: error.to_string() }
}

struct Redis {
    client: Client,
    connection: Mutex<Option<Connection>>,
    place: String,
    /// Seconds that jobs are kept.
    lifetime: i64,
}

impl Redis {
    /// Runs commands; once more over a new connection if the one there was is broken.
    fn run<T>(&self, commands: impl Fn(&mut Connection) -> Result<T, RedisError>) -> Result<T, ReturnerError> {
        let mut slot = self.connection.lock();
        let had = slot.is_some();
        let attempt = |slot: &mut Option<Connection>| {
            let connection = match slot {
                Some(connection) => connection,
                None => slot.insert(self.client.get_connection_with_timeout(CONNECT_TIME)?),
            };
            commands(connection)
        };
        let result = match attempt(&mut slot) {
            Err(error) if had && (error.is_io_error() || error.is_connection_dropped()) => {
                *slot = None;
                attempt(&mut slot)
            }
            result => result,
        };
        if result.is_err() {
            *slot = None;
        }
        result.map_err(|error| failed(&self.place, &error))
    }
}

fn text(map: &Map) -> String {
    json::to_json(&Value::Map(map.clone()))
}

fn return_of(text: &str) -> Option<Return> {
    match json::from_json(text) {
        Ok(Value::Map(map)) => Return::from_map(map).ok(),
        _ => None,
    }
}

impl Returner for Redis {
    fn name(&self) -> &'static str {
        NAME
    }

    fn save_load(&self, load: &Load) -> Result<(), ReturnerError> {
        let (key, value) = (format!("load:{}", load.jid()), text(load.map()));
        self.run(|connection| connection.set_ex(&key, &value, self.lifetime.cast_unsigned()))
    }

    fn returner(&self, job_return: &Return) -> Result<(), ReturnerError> {
        let (jid, id, value) = (job_return.jid(), job_return.id().as_str(), text(job_return.map()));
        self.run(|connection| {
            ::redis::pipe()
                .hset(format!("ret:{jid}"), id, &value)
                .expire(format!("ret:{jid}"), self.lifetime)
                .set(format!("{id}:{}", job_return.fun()), jid.as_str())
                .sadd("minions", id)
                .query(connection)
        })
    }

    fn get_load(&self, jid: &Jid) -> Result<Option<Load>, ReturnerError> {
        let found: Option<String> = self.run(|connection| connection.get(format!("load:{jid}")))?;
        let map = found.and_then(|text| json::from_json(&text).ok()?.as_map().cloned());
        Ok(map.and_then(|map| Load::from_map(map).ok()))
    }

    fn get_jid(&self, jid: &Jid) -> Result<Map, ReturnerError> {
        let found: Vec<(String, String)> = self.run(|connection| connection.hgetall(format!("ret:{jid}")))?;
        let mut returns: Vec<_> = found.iter().filter_map(|(_, text)| return_of(text)).collect();
        returns.sort_by(|one, other| one.id().cmp(other.id()));
        Ok(returns.iter().map(|one| (Value::from(one.id()), one.summary().into())).collect())
    }

    fn get_jids(&self) -> Result<Vec<Load>, ReturnerError> {
        let mut keys: Vec<String> = self.run(|connection| connection.scan_match("load:*")?.collect())?;
        keys.sort();
        let jids = keys.iter().filter_map(|key| key.strip_prefix("load:")?.parse().ok());
        let loads = jids.map(|jid| self.get_load(&jid)).collect::<Result<Vec<_>, _>>()?;
        Ok(loads.into_iter().flatten().collect())
    }

    fn get_fun(&self, fun: &str) -> Result<Map, ReturnerError> {
        let mut newest = Map::new();
        for id in self.get_minions()? {
            let jid: Option<String> = self.run(|connection| connection.get(format!("{id}:{fun}")))?;
            let Some(jid) = jid else { continue };
            let found: Option<String> = self.run(|connection| connection.hget(format!("ret:{jid}"), &id))?;
            if let Some(one) = found.and_then(|text| return_of(&text)) {
                newest.insert(id.into(), one.value().clone());
            }
        }
        Ok(newest)
    }

    fn get_minions(&self) -> Result<Vec<String>, ReturnerError> {
        let mut minions: Vec<String> = self.run(|connection| connection.smembers("minions"))?;
        minions.sort();
        Ok(minions)
    }

    fn event_return(&self, events: &[Event]) -> Result<(), ReturnerError> {
        let lines: Vec<String> = events
            .iter()
            .map(|event| json::to_json(&brine_core::map! {"tag" => event.tag(), "data" => event.data()}.into()))
            .collect();
        self.run(|connection| {
            ::redis::pipe().rpush("salt_events", &lines).ltrim("salt_events", -EVENTS, -1).query(connection)
        })
    }
}
