//! `memcache`: jobs and returns in a memcached server, under the keys of Salt's returner: `<jid>` for the load,
//! `<jid>:<minion id>` and `<function>:<minion id>` for returns, and `jids` and `minions` with the text `a,b,`. Brine adds
//! `minions:<jid>` for [`Returner::save_minions`].
//!
//! The crate `memcache` retries an unreachable server for 30 seconds; this client needs six commands of the text protocol.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use brine_ids::{Jid, MinionId};
use brine_job::{Load, Return, oldest_kept};
use brine_value::Map;

use crate::connection::{Connection, connect};
use crate::error::readable;
use crate::{Backend, BackendOption, KEEP_JOBS_SECONDS, Options, Returner, ReturnerError, encoding, sorted_ids};

const NAME: &str = "memcache";

pub(crate) const BACKEND: Backend = Backend {
    name: NAME,
    doc: "Jobs and returns in a memcached server, under the keys of Salt's returner. The server drops what it has no memory \
          for, and refuses values over 1 MiB by default; the list of jobs keeps the newest 40,000.",
    options: &[
        BackendOption {
            name: "memcache.host",
            default: Some("localhost"),
            doc: "The host name or address of the server.",
        },
        BackendOption { name: "memcache.port", default: Some("11211"), doc: "The port of the server." },
        KEEP_JOBS_SECONDS,
    ],
    open,
    // The connection is opened by the first operation.
    check: |options| open(options).map(drop),
};

/// The maximum number of job ids in the key `jids`: with a PID in each they take less than 1 MB.
const MAX_JIDS: usize = 40_000;
/// The maximum number of keys that one command reads.
const PAGE: usize = 100;
/// The number of attempts to change a list that other processes change concurrently.
const MAX_ATTEMPTS: usize = 50;
/// The maximum size of a value in a reply, in bytes: the server's own limit is 1 GiB.
const MAX_VALUE: usize = 256 << 20;

fn open(options: &Options) -> Result<Box<dyn Returner>, ReturnerError> {
    let host: String = options.get(NAME, "host")?.unwrap_or_else(|| "localhost".to_owned());
    let port: u16 = options.get(NAME, "port")?.unwrap_or(11_211);
    options.keep_jobs_seconds()?;
    Ok(Box::new(Memcache { host, port, connection: Connection::new() }))
}

#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Connection(#[from] std::io::Error),
    #[error("{0}")]
    Refused(String),
}

impl Failure {
    fn protocol(reply: &str) -> Self {
        Failure::Refused(format!("unexpected reply '{}'", reply.chars().take(100).collect::<String>()))
    }
}

/// A connection to the server.
struct Client(BufReader<TcpStream>);

/// A value, and its version.
struct Item {
    text: String,
    version: u64,
}

impl Client {
    fn line(&mut self) -> Result<String, Failure> {
        let mut line = String::new();
        (&mut self.0).take(4096).read_line(&mut line)?;
        if !line.ends_with('\n') {
            return Err(std::io::Error::from(std::io::ErrorKind::UnexpectedEof).into());
        }
        let line = line.trim_end();
        if line.starts_with("SERVER_ERROR") || line.starts_with("CLIENT_ERROR") || line == "ERROR" {
            return Err(Failure::Refused(line.to_owned()));
        }
        Ok(line.to_owned())
    }

    /// Stores a value by a storage command, and returns whether it was stored.
    fn store(&mut self, command: &str, key: &str, version: Option<u64>, value: &str) -> Result<bool, Failure> {
        let version = version.map(|version| format!(" {version}")).unwrap_or_default();
        let head = format!("{command} {} 0 0 {}{version}\r\n", checked(key)?, value.len());
        let stream = self.0.get_mut();
        stream.write_all(&[head.as_bytes(), value.as_bytes(), b"\r\n"].concat())?;
        match self.line()?.as_str() {
            "STORED" => Ok(true),
            "NOT_STORED" | "EXISTS" | "NOT_FOUND" => Ok(false),
            other => Err(Failure::protocol(other)),
        }
    }

    fn delete(&mut self, key: &str) -> Result<(), Failure> {
        self.0.get_mut().write_all(format!("delete {}\r\n", checked(key)?).as_bytes())?;
        self.line().map(drop)
    }

    /// Reads the values of keys; missing ones are left out.
    fn get(&mut self, keys: &[String]) -> Result<HashMap<String, Item>, Failure> {
        let mut items = HashMap::new();
        for page in keys.chunks(PAGE) {
            let mut command = "gets".to_owned();
            for key in page {
                command.push(' ');
                command.push_str(checked(key)?);
            }
            command.push_str("\r\n");
            self.0.get_mut().write_all(command.as_bytes())?;
            loop {
                let line = self.line()?;
                if line == "END" {
                    break;
                }
                let parts: Vec<&str> = line.split(' ').collect();
                let &["VALUE", key, _, length, version] = &parts[..] else { return Err(Failure::protocol(&line)) };
                let (Ok(length), Ok(version)) = (length.parse::<usize>(), version.parse()) else {
                    return Err(Failure::protocol(&line));
                };
                if length > MAX_VALUE {
                    return Err(Failure::Refused(format!("the value of {key} has {length} bytes")));
                }
                let mut bytes = Vec::new();
                (&mut self.0).take(length as u64 + 2).read_to_end(&mut bytes)?;
                if bytes.len() < length + 2 {
                    return Err(std::io::Error::from(std::io::ErrorKind::UnexpectedEof).into());
                }
                bytes.truncate(length);
                let text = String::from_utf8_lossy(&bytes).into_owned();
                items.insert(key.to_owned(), Item { text, version });
            }
        }
        Ok(items)
    }

    fn list(&mut self, key: &str) -> Result<Vec<String>, Failure> {
        Ok(self.get(&[key.to_owned()])?.remove(key).map(|item| items(&item.text)).unwrap_or_default())
    }

    /// Changes a list, also while other processes change it. The list is only written if `change` modifies it.
    fn change_list(&mut self, key: &str, change: impl Fn(&mut Vec<String>)) -> Result<(), Failure> {
        for _ in 0..MAX_ATTEMPTS {
            let item = self.get(&[key.to_owned()])?.remove(key);
            let before = item.as_ref().map(|item| items(&item.text)).unwrap_or_default();
            let mut list = before.clone();
            change(&mut list);
            if list == before {
                return Ok(());
            }
            let text: String = list.iter().flat_map(|item| [item, ","]).collect();
            let stored = match item {
                Some(item) => self.store("cas", key, Some(item.version), &text)?,
                None => self.store("add", key, None, &text)?,
            };
            if stored {
                return Ok(());
            }
        }
        Err(Failure::Refused(format!("other processes changed the key {key} {MAX_ATTEMPTS} times")))
    }

    /// Appends an item to a list of at most `limit` items, unless it contains the item; the first ones are dropped.
    fn append(&mut self, key: &str, item: &str, limit: usize) -> Result<(), Failure> {
        self.change_list(key, |list| {
            if !list.iter().any(|one| one == item) {
                list.push(item.to_owned());
                list.drain(..list.len().saturating_sub(limit));
            }
        })
    }
}

/// Returns the items of a list's text.
fn items(text: &str) -> Vec<String> {
    text.split(',').filter(|item| !item.is_empty()).map(str::to_owned).collect()
}

/// Returns the key if the protocol can express it.
fn checked(key: &str) -> Result<&str, Failure> {
    let is_valid = key.len() <= 250 && !key.contains(|c: char| c.is_whitespace() || c.is_control());
    if is_valid {
        Ok(key)
    } else {
        Err(Failure::Refused(format!("the key '{key}' is longer than 250 bytes or has spaces")))
    }
}

struct Memcache {
    host: String,
    port: u16,
    connection: Connection<Client>,
}

impl Memcache {
    /// Runs commands, which are idempotent.
    fn run<T>(&self, commands: impl Fn(&mut Client) -> Result<T, Failure>) -> Result<T, ReturnerError> {
        let address = format!("memcached at {}:{}", self.host, self.port);
        let open = || Ok(Client(BufReader::new(connect(&self.host, self.port)?)));
        let is_lost = |failure: &Failure| matches!(failure, Failure::Connection(_));
        self.connection.run(&address, open, is_lost, commands).map_err(|failure| match failure {
            Failure::Connection(error) => ReturnerError::unreachable(NAME, address.clone(), error),
            Failure::Refused(reason) => {
                ReturnerError::Server { returner: NAME, server: address.clone(), reason, is_outage: false }
            }
        })
    }

    /// Decodes the returns of all minions under `<prefix>:<minion id>`.
    fn returns(&self, prefix: &str) -> Result<Map, ReturnerError> {
        let items = self.run(|client| {
            let minions = client.list("minions")?;
            let keys: Vec<String> = minions.iter().map(|id| format!("{prefix}:{id}")).collect();
            client.get(&keys)
        })?;
        let returns = items.iter().filter_map(|(key, item)| readable(encoding::to_return(NAME, key, &item.text)));
        let mut returns: Vec<Return> = returns.collect();
        returns.sort_by(|one, other| one.id().cmp(other.id()));
        Ok(returns.iter().map(|one| (one.id().into(), one.summary().into())).collect())
    }
}

impl Returner for Memcache {
    fn name(&self) -> &'static str {
        NAME
    }

    fn save_load(&self, load: &Load) -> Result<(), ReturnerError> {
        let text = encoding::of_map(load.map());
        self.run(|client| {
            client.store("set", load.jid().as_str(), None, &text)?;
            client.append("jids", load.jid().as_str(), MAX_JIDS)
        })
    }

    fn save_returns(&self, returns: &[Return]) -> Result<(), ReturnerError> {
        returns.iter().try_for_each(|job_return| {
            let (jid, id, fun) = (job_return.jid(), job_return.id().as_str(), job_return.fun());
            let text = encoding::of_map(job_return.map());
            self.run(|client| {
                if client.store("add", &format!("{jid}:{id}"), None, &text)? {
                    client.store("set", &format!("{fun}:{id}"), None, &text)?;
                }
                client.append("minions", id, usize::MAX)?;
                client.append("jids", jid.as_str(), MAX_JIDS)
            })
        })
    }

    fn save_minions(&self, jid: &Jid, minions: &[MinionId]) -> Result<(), ReturnerError> {
        self.run(|client| {
            client.change_list(&format!("minions:{jid}"), |list| {
                for id in minions {
                    if !list.iter().any(|one| one == id.as_str()) {
                        list.push(id.to_string());
                    }
                }
            })
        })
    }

    fn get_load(&self, jid: &Jid) -> Result<Option<Load>, ReturnerError> {
        let more = format!("minions:{jid}");
        let mut items_by_key = self.run(|client| client.get(&[jid.to_string(), more.clone()]))?;
        let load = items_by_key.remove(jid.as_str()).map(|item| encoding::to_load(NAME, jid.as_str(), &item.text));
        let more = items_by_key.remove(&more).map(|item| items(&item.text)).unwrap_or_default();
        Ok(load.transpose()?.map(|load| load.with_minions(more.iter().filter_map(|id| id.parse().ok()))))
    }

    fn get_jid(&self, jid: &Jid) -> Result<Map, ReturnerError> {
        self.returns(jid.as_str())
    }

    fn get_jids(&self, limit: Option<usize>) -> Result<Vec<Load>, ReturnerError> {
        let mut items_by_jid = self.run(|client| {
            let jids = client.list("jids")?;
            client.get(&jids)
        })?;
        let mut jids: Vec<Jid> = items_by_jid.keys().filter_map(|jid| jid.parse().ok()).collect();
        jids.sort();
        let newest = jids.iter().rev().take(limit.unwrap_or(usize::MAX));
        let loads = newest.filter_map(|jid| items_by_jid.remove(jid.as_str()).map(|item| (jid, item)));
        Ok(loads.filter_map(|(jid, item)| readable(encoding::to_load(NAME, jid.as_str(), &item.text))).collect())
    }

    fn get_fun(&self, fun: &str) -> Result<Map, ReturnerError> {
        self.returns(fun)
    }

    fn get_minions(&self) -> Result<Vec<MinionId>, ReturnerError> {
        let ids = self.run(|client| client.list("minions"))?;
        Ok(sorted_ids(ids.iter().map(String::as_str)))
    }

    fn stores_events(&self) -> bool {
        false
    }

    fn clean_old_jobs(&self, older_than: Duration) -> Result<(), ReturnerError> {
        let Some(oldest) = oldest_kept(&brine_clock::now_for_age(older_than), older_than.as_secs()) else {
            return Ok(());
        };
        let is_old = |jid: &String| jid.parse::<Jid>().is_ok_and(|jid| jid < oldest);
        self.run(|client| {
            let minions = client.list("minions")?;
            let old: Vec<String> = client.list("jids")?.into_iter().filter(is_old).collect();
            for jid in &old {
                client.delete(jid)?;
                client.delete(&format!("minions:{jid}"))?;
                for id in &minions {
                    client.delete(&format!("{jid}:{id}"))?;
                }
            }
            client.change_list("jids", |list| list.retain(|jid| !old.contains(jid)))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_that_the_protocol_cannot_express_are_refused() {
        assert!(checked("20261120235852025555:web1").is_ok());
        for key in [String::from("a b"), "a\r\nflush_all".to_owned(), "x".repeat(251)] {
            assert!(checked(&key).is_err(), "{key}");
        }
    }

    #[test]
    fn lists_are_texts_with_commas() {
        assert_eq!(items("a,b,"), ["a", "b"]);
        assert_eq!(items(""), Vec::<String>::new());
    }
}
