//! `etcd`: jobs and returns in an etcd server by version 3 of its API over HTTP, under the keys of Salt's returner:
//! `<root>/jobs/<jid>/.load.p`, `<root>/jobs/<jid>/<minion id>/<field>` and `<root>/minions/<minion id>` with the newest job
//! id. Values are JSON in msgpack, or JSON with `etcd.encode_values: False`. Brine adds `<root>/expected/<jid>/<minion id>`
//! for [`Returner::save_minions`] and `<root>/functions/<function>/<minion id>` with the newest job id.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use brine_ids::{Jid, MinionId};
use brine_job::{Load, Return, oldest_kept};
use brine_value::{FromValue, Map, Value, json, list, map, msgpack};
use parking_lot::Mutex;

use crate::error::readable;
use crate::http::{Body, Http, Reply, Trust, excerpt};
use crate::{Backend, BackendOption, KEEP_JOBS_SECONDS, Options, Returner, ReturnerError, encoding, sorted_ids};

const NAME: &str = "etcd";

pub(crate) const BACKEND: Backend = Backend {
    name: NAME,
    doc: "Jobs and returns in an etcd server (3.4 or later) by version 3 of its API over HTTP, under the keys of Salt's \
          returner. The server refuses requests over 1.5 MiB by default. `etcd.require_v2` is ignored.",
    options: &[
        BackendOption {
            name: "etcd.returner",
            default: None,
            doc: "The name of the mapping in the configuration that has the other options; without it they are at the top.",
        },
        BackendOption { name: "etcd.returner_root", default: Some("/salt/return"), doc: "The path of all keys." },
        BackendOption { name: "etcd.returner_read_profile", default: None, doc: "The mapping for reading." },
        BackendOption { name: "etcd.returner_write_profile", default: None, doc: "The mapping for writing." },
        BackendOption { name: "etcd.host", default: Some("127.0.0.1"), doc: "The host name or address of the server." },
        BackendOption { name: "etcd.port", default: Some("2379"), doc: "The port of the server." },
        BackendOption { name: "etcd.username", default: None, doc: "The user name." },
        BackendOption { name: "etcd.password", default: None, doc: "The password." },
        BackendOption { name: "etcd.ca", default: None, doc: "The PEM file of the trusted authorities; turns TLS on." },
        BackendOption { name: "etcd.encode_values", default: Some("True"), doc: "Whether values are msgpack." },
        BackendOption { name: "etcd.ttl", default: None, doc: "The seconds after which keys expire." },
        KEEP_JOBS_SECONDS,
    ],
    open,
    check: |options| open(options).map(drop),
};

/// The maximum number of operations in one transaction; the server's limit is 128.
const MAX_OPERATIONS: usize = 100;

fn open(options: &Options) -> Result<Box<dyn Returner>, ReturnerError> {
    let default: Option<String> = options.get(NAME, "returner")?;
    let profile = |name: &str| Ok::<_, ReturnerError>(options.get::<String>(NAME, name)?.or_else(|| default.clone()));
    let root: String = options.get(NAME, "returner_root")?.unwrap_or_else(|| "/salt/return".to_owned());
    options.keep_jobs_seconds()?;
    Ok(Box::new(Etcd {
        reader: Server::new(options, profile("returner_read_profile")?)?,
        writer: Server::new(options, profile("returner_write_profile")?)?,
        root: root.trim_end_matches('/').to_owned(),
    }))
}

/// The client of a server, with its credentials and options.
struct Server {
    http: Http,
    login: Option<(String, String)>,
    /// The token of the login, which expires after some minutes.
    token: Mutex<Option<String>>,
    packs: bool,
    ttl: Option<i64>,
}

/// Returns an option: from the profile if there is one, else from the configuration.
fn get<T: FromValue>(options: &Options, profile: Option<&Map>, name: &str) -> Result<Option<T>, ReturnerError> {
    let full = format!("etcd.{name}");
    match profile.map(|profile| profile.get(full.as_str()).filter(|value| !value.is_nil())) {
        None => options.get(NAME, name),
        Some(None) => Ok(None),
        Some(Some(value)) => match T::try_from_value(value) {
            Ok(value) => Ok(Some(value)),
            Err(error) => Err(ReturnerError::Option { option: full, reason: error.to_string() }),
        },
    }
}

impl Server {
    fn new(options: &Options, profile: Option<String>) -> Result<Self, ReturnerError> {
        let profile = match profile {
            None => None,
            Some(name) => Some(options.setting::<Map>(&name)?.ok_or_else(|| ReturnerError::Option {
                option: "etcd.returner".to_owned(),
                reason: format!("there is no mapping '{name}' in the configuration"),
            })?),
        };
        let profile = profile.as_ref();
        for name in ["client_key", "client_cert"] {
            if get::<String>(options, profile, name)?.is_some() {
                return Err(ReturnerError::Option {
                    option: format!("etcd.{name}"),
                    reason: "it is not supported: use etcd.username and etcd.password".to_owned(),
                });
            }
        }
        let host: String = get(options, profile, "host")?.unwrap_or_else(|| "127.0.0.1".to_owned());
        let port: u16 = get(options, profile, "port")?.unwrap_or(2379);
        let ca: Option<String> = get(options, profile, "ca")?;
        let scheme = if ca.is_some() { "https" } else { "http" };
        let trust = Trust { authorities: ca.map(Into::into), skip_verification: false };
        let http = Http::new(NAME, "host", &format!("{scheme}://{host}:{port}/v3"), trust, options)?;
        let user: Option<String> = get(options, profile, "username")?;
        let password: Option<String> = get(options, profile, "password")?;
        Ok(Server {
            http,
            login: user.zip(password),
            token: Mutex::new(None),
            packs: get(options, profile, "encode_values")?.unwrap_or(true),
            ttl: get(options, profile, "ttl")?,
        })
    }

    /// Sends a request; logs in first, and again if the token has expired.
    fn ask(&self, path: &str, body: &Value) -> Result<Value, ReturnerError> {
        let Some((user, password)) = &self.login else {
            let reply = self.http.ask("POST", path, &Body::Json(body))?;
            return self.parsed(&reply);
        };
        let mut is_new = false;
        loop {
            let cached_token = self.token.lock().clone();
            let token = if let Some(token) = cached_token {
                token
            } else {
                is_new = true;
                let login = map! {"name" => user.as_str(), "password" => password.as_str()}.into();
                let reply = self.http.send_json("POST", "/auth/authenticate", &Body::Json(&login))?;
                let token = reply.get("token").map(ToString::to_string).unwrap_or_default();
                *self.token.lock() = Some(token.clone());
                token
            };
            let reply = self.http.ask_with("POST", path, &Body::Json(body), Some(("Authorization", &token)))?;
            if reply.status == 401 && !is_new {
                *self.token.lock() = None;
                continue;
            }
            return self.parsed(&reply);
        }
    }

    fn parsed(&self, reply: &Reply) -> Result<Value, ReturnerError> {
        if reply.is_success() {
            return self.http.json(reply);
        }
        // The server replies to a request that is too large with the status of an overloaded server.
        if reply.text.contains("larger than max") {
            return Err(self.http.failed(format!("the request is too large: {}", excerpt(&reply.text)), false));
        }
        Err(self.http.refusal(reply))
    }

    fn encoded(&self, text: &str) -> String {
        if self.packs { STANDARD.encode(msgpack::pack(&text.into())) } else { base64_of(text) }
    }

    /// Decodes the text of a value.
    fn text(&self, value: &Value) -> String {
        let bytes = value.as_str().and_then(|text| STANDARD.decode(text).ok()).unwrap_or_default();
        let unpacked = if self.packs { msgpack::unpack(&bytes).ok() } else { None };
        match unpacked {
            Some(Value::Str(text)) => text,
            _ => String::from_utf8_lossy(&bytes).into_owned(),
        }
    }

    /// Returns the keys from `start` up to but excluding `end`, or only `start`, with the texts of their values.
    fn range(&self, start: &str, end: Option<&str>, keys_only: bool) -> Result<Vec<(String, String)>, ReturnerError> {
        let mut body = map! {"key" => base64_of(start), "keys_only" => keys_only};
        body.extend(end.map(|end| ("range_end".into(), base64_of(end).into())));
        let reply = self.ask("/kv/range", &body.into())?;
        Ok(self.pairs(&reply))
    }

    fn pairs(&self, reply: &Value) -> Vec<(String, String)> {
        let entries = reply.get("kvs").and_then(Value::as_list).unwrap_or_default();
        let pair = |pair: &Value| {
            let key = STANDARD.decode(pair.get("key")?.as_str()?).ok()?;
            let value = pair.get("value").map(|value| self.text(value)).unwrap_or_default();
            Some((String::from_utf8(key).ok()?, value))
        };
        entries.iter().filter_map(pair).collect()
    }

    /// Returns the keys that begin with a prefix.
    fn below(&self, prefix: &str, keys_only: bool) -> Result<Vec<(String, String)>, ReturnerError> {
        self.range(prefix, Some(&after(prefix)), keys_only)
    }

    /// Grants a lease for keys that expire; `None` without a `ttl`.
    fn lease(&self) -> Result<Option<Value>, ReturnerError> {
        let Some(ttl) = self.ttl.filter(|ttl| *ttl > 0) else { return Ok(None) };
        let reply = self.ask("/lease/grant", &map! {"TTL" => ttl}.into())?;
        Ok(reply.get("ID").cloned())
    }

    /// Stores keys in one transaction; with `unless`, only if that key does not exist.
    fn store(&self, pairs: &[(String, String)], unless: Option<&str>) -> Result<(), ReturnerError> {
        let lease = self.lease()?;
        for page in pairs.chunks(MAX_OPERATIONS) {
            let put = |(key, text): &(String, String)| {
                let mut put = map! {"key" => base64_of(key), "value" => self.encoded(text)};
                put.extend(lease.clone().map(|lease| ("lease".into(), lease)));
                Value::Map(map! {"request_put" => put})
            };
            let mut body = map! {"success" => page.iter().map(put).collect::<Vec<_>>()};
            if let Some(key) = unless {
                let absent =
                    map! {"key" => base64_of(key), "target" => "CREATE", "result" => "EQUAL", "create_revision" => "0"};
                body.insert("compare".into(), list![absent]);
            }
            self.ask("/kv/txn", &body.into())?;
        }
        Ok(())
    }

    fn delete(&self, start: &str, end: &str) -> Result<(), ReturnerError> {
        self.ask("/kv/deleterange", &map! {"key" => base64_of(start), "range_end" => base64_of(end)}.into()).map(drop)
    }
}

fn base64_of(text: &str) -> String {
    STANDARD.encode(text)
}

/// Returns the exclusive end of the range of keys with a prefix, which ends with `/`.
fn after(prefix: &str) -> String {
    format!("{}0", prefix.strip_suffix('/').unwrap_or(prefix))
}

struct Etcd {
    reader: Server,
    writer: Server,
    root: String,
}

impl Etcd {
    /// Returns the summaries of the returns among keys `<jid>/<minion id>/<field>` behind a prefix.
    fn returns(prefix: &str, pairs: &[(String, String)]) -> Map {
        let mut fields: std::collections::BTreeMap<&str, Map> = std::collections::BTreeMap::new();
        for (key, text) in pairs {
            let Some((id, name)) = key.strip_prefix(prefix).and_then(|rest| rest.split_once('/')) else { continue };
            if let Some(value) = readable(encoding::to_value(NAME, key, text)) {
                fields.entry(id).or_default().insert(name.into(), value);
            }
        }
        let returns = fields.into_iter().filter_map(|(id, fields)| {
            let decoded = Return::from_map(fields).map_err(|error| ReturnerError::damaged(NAME, id, error));
            readable(decoded)
        });
        returns.map(|one| (one.id().into(), one.summary().into())).collect()
    }
}

impl Returner for Etcd {
    fn name(&self) -> &'static str {
        NAME
    }

    fn save_load(&self, load: &Load) -> Result<(), ReturnerError> {
        let key = format!("{}/jobs/{}/.load.p", self.root, load.jid());
        self.writer.store(&[(key, encoding::of_map(load.map()))], None)
    }

    fn save_returns(&self, returns: &[Return]) -> Result<(), ReturnerError> {
        returns.iter().try_for_each(|job_return| {
            let (root, jid, id) = (&self.root, job_return.jid(), job_return.id());
            let of_return = format!("{root}/jobs/{jid}/{id}/return");
            let mut pairs = vec![
                (format!("{root}/minions/{id}"), jid.to_string()),
                (format!("{root}/functions/{}/{id}", job_return.fun()), jid.to_string()),
            ];
            let field =
                |(name, value): (&Value, &Value)| (format!("{root}/jobs/{jid}/{id}/{name}"), json::to_json(value));
            pairs.extend(job_return.map().iter().map(field));
            self.writer.store(&pairs, Some(&of_return))
        })
    }

    fn save_minions(&self, jid: &Jid, minions: &[MinionId]) -> Result<(), ReturnerError> {
        let pair = |id: &MinionId| (format!("{}/expected/{jid}/{id}", self.root), "true".to_owned());
        self.writer.store(&minions.iter().map(pair).collect::<Vec<_>>(), None)
    }

    fn get_load(&self, jid: &Jid) -> Result<Option<Load>, ReturnerError> {
        let key = format!("{}/jobs/{jid}/.load.p", self.root);
        let pairs = self.reader.range(&key, None, false)?;
        let Some((_, text)) = pairs.first() else { return Ok(None) };
        let prefix = format!("{}/expected/{jid}/", self.root);
        let more = self.reader.below(&prefix, true)?;
        let ids = more.iter().filter_map(|(key, _)| key.strip_prefix(&prefix)?.parse().ok());
        Ok(Some(encoding::to_load(NAME, &key, text)?.with_minions(ids)))
    }

    fn get_jid(&self, jid: &Jid) -> Result<Map, ReturnerError> {
        let prefix = format!("{}/jobs/{jid}/", self.root);
        Ok(Self::returns(&prefix, &self.reader.below(&prefix, false)?))
    }

    fn get_jids(&self, limit: Option<usize>) -> Result<Vec<Load>, ReturnerError> {
        let keys = self.reader.below(&format!("{}/jobs/", self.root), true)?;
        let mut keys: Vec<&String> = keys.iter().map(|(key, _)| key).filter(|key| key.ends_with("/.load.p")).collect();
        keys.sort();
        keys.reverse();
        keys.truncate(limit.unwrap_or(usize::MAX));
        let mut loads = Vec::with_capacity(keys.len());
        for page in keys.chunks(MAX_OPERATIONS) {
            let get = |key: &&String| Value::Map(map! {"request_range" => map! {"key" => base64_of(key)}});
            let body = map! {"success" => page.iter().map(get).collect::<Vec<_>>()}.into();
            let reply = self.reader.ask("/kv/txn", &body)?;
            for one in reply.get("responses").and_then(Value::as_list).unwrap_or_default() {
                let Some(range) = one.get("response_range") else { continue };
                let pairs = self.reader.pairs(range);
                loads.extend(pairs.iter().filter_map(|(key, text)| readable(encoding::to_load(NAME, key, text))));
            }
        }
        Ok(loads)
    }

    fn get_fun(&self, fun: &str) -> Result<Map, ReturnerError> {
        let prefix = format!("{}/functions/{fun}/", self.root);
        let mut newest = Map::new();
        for (key, jid) in self.reader.below(&prefix, false)? {
            let Some(id) = key.strip_prefix(&prefix).filter(|id| !id.contains('/')) else { continue };
            let of_job = format!("{}/jobs/{jid}/", self.root);
            newest.extend(Self::returns(&of_job, &self.reader.below(&format!("{of_job}{id}/"), false)?));
        }
        Ok(newest)
    }

    fn get_minions(&self) -> Result<Vec<MinionId>, ReturnerError> {
        let prefix = format!("{}/minions/", self.root);
        let keys = self.reader.below(&prefix, true)?;
        Ok(sorted_ids(keys.iter().filter_map(|(key, _)| key.strip_prefix(&prefix))))
    }

    fn stores_events(&self) -> bool {
        false
    }

    fn clean_old_jobs(&self, older_than: Duration) -> Result<(), ReturnerError> {
        let Some(oldest) = oldest_kept(&brine_clock::now_for_age(older_than), older_than.as_secs()) else {
            return Ok(());
        };
        for directory in ["jobs", "expected"] {
            self.writer
                .delete(&format!("{}/{directory}/", self.root), &format!("{}/{directory}/{oldest}", self.root))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_end_behind_the_last_key_of_a_prefix() {
        assert_eq!(after("/salt/jobs/"), "/salt/jobs0");
    }

    #[test]
    fn invalid_options_are_named() {
        for (opts, expected) in [
            (map! {"etcd.returner" => "nowhere"}, "option 'etcd.returner': there is no mapping 'nowhere'"),
            (map! {"etcd.client_key" => "/x"}, "option 'etcd.client_key': it is not supported: "),
            (map! {"etcd.returner" => "mine", "mine" => map! {"etcd.port" => "x"}}, "option 'etcd.port': expected"),
        ] {
            let error = open(&Options::new(&opts, None)).err().unwrap().to_string();
            assert!(error.starts_with(expected), "{error}");
        }
    }
}
