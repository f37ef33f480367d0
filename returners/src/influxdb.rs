//! `influxdb`: jobs and returns in an InfluxDB database (version 1, or the same API of a later one), as points of Salt's
//! returner: `jids` with the field `load`, `returns` with the fields `return` and `full_ret`. Brine adds `jid_minions` for
//! [`Returner::save_minions`].

use std::collections::HashSet;
use std::time::Duration;

use brine_ids::{Jid, MinionId};
use brine_job::{Load, Return, oldest_kept};
use brine_value::{Map, Value, json};

use crate::error::readable;
use crate::http::{Body, Http, Trust};
use crate::{Backend, BackendOption, KEEP_JOBS_SECONDS, Options, Returner, ReturnerError, encoding, sorted_ids};

const NAME: &str = "influxdb";

pub(crate) const BACKEND: Backend = Backend {
    name: NAME,
    doc: "Jobs and returns in an InfluxDB database by version 1 of its API. `salt-run returner.setup influxdb` creates the \
          database.",
    options: &[
        BackendOption {
            name: "influxdb.host",
            default: Some("localhost"),
            doc: "The host name or address of the server, or a URL such as `https://influx:8086`.",
        },
        BackendOption { name: "influxdb.port", default: Some("8086"), doc: "The port of the server." },
        BackendOption { name: "influxdb.db", default: Some("salt"), doc: "The name of the database." },
        BackendOption { name: "influxdb.user", default: Some("salt"), doc: "The name of the user." },
        BackendOption { name: "influxdb.password", default: Some("salt"), doc: "The password of the user." },
        KEEP_JOBS_SECONDS,
    ],
    open,
    check: |options| open(options).map(drop),
};

/// The maximum number of job ids in one query.
const PAGE: usize = 100;

fn open(options: &Options) -> Result<Box<dyn Returner>, ReturnerError> {
    let text = |name: &str, default: &str| {
        Ok::<String, ReturnerError>(options.get(NAME, name)?.unwrap_or_else(|| default.to_owned()))
    };
    let host = text("host", "localhost")?;
    let port: u16 = options.get(NAME, "port")?.unwrap_or(8086);
    let url = if host.contains("://") { host } else { format!("http://{host}:{port}") };
    options.keep_jobs_seconds()?;
    let http = Http::new(NAME, "host", &url, Trust::default(), options)?;
    let http = http.with_login(&text("user", "salt")?, &text("password", "salt")?);
    Ok(Box::new(Influxdb { http, database: text("db", "salt")? }))
}

struct Influxdb {
    http: Http,
    database: String,
}

/// A series of a reply: its tags, and its rows in the order of the query's columns, after the time.
struct Series {
    tags: Map,
    rows: Vec<Vec<Value>>,
}

/// Encodes a tag's value in the line protocol.
fn tag(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            ',' | ' ' | '=' => out.extend(['\\', c]),
            c if c.is_control() => out.push('_'),
            c => out.push(c),
        }
    }
    // A backslash at the end would escape the delimiter behind the value.
    if out.ends_with('\\') {
        out.push('_');
    }
    out
}

/// Encodes a string field in the line protocol.
fn field(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// Quotes a string for InfluxQL.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"))
}

/// Returns the time of a job in nanoseconds: a point that is stored again replaces the first one.
fn time_of(jid: &Jid) -> i128 {
    let time = jid.time().and_then(|time| time.to_zoned(brine_clock::zone()).ok());
    time.unwrap_or_else(brine_clock::now).timestamp().as_nanosecond()
}

impl Influxdb {
    fn write(&self, lines: String) -> Result<(), ReturnerError> {
        if lines.is_empty() {
            return Ok(());
        }
        let database: String = form_urlencoded::byte_serialize(self.database.as_bytes()).collect();
        let path = format!("/write?db={database}&precision=ns");
        self.http.send("POST", &path, &Body::Text("text/plain; charset=utf-8", lines)).map(drop)
    }

    /// Runs statements and returns the series of all of them.
    fn query(&self, statements: &str) -> Result<Vec<Series>, ReturnerError> {
        let form = [("db", self.database.as_str()), ("q", statements)];
        let reply = self.http.send_json("POST", "/query", &Body::Form(&form))?;
        let mut all_series = Vec::new();
        for result in reply.get("results").and_then(Value::as_list).unwrap_or_default() {
            if let Some(error) = result.get("error") {
                let hint = match error.as_str() {
                    Some(text) if text.contains("not found") => "; `salt-run returner.setup influxdb` creates it",
                    _ => "",
                };
                return Err(self.http.failed(format!("{error}{hint}"), false));
            }
            for series in result.get("series").and_then(Value::as_list).unwrap_or_default() {
                let rows = series.get("values").and_then(Value::as_list).unwrap_or_default();
                all_series.push(Series {
                    tags: series.get("tags").and_then(Value::as_map).cloned().unwrap_or_default(),
                    rows: rows.iter().filter_map(|row| Some(row.as_list()?.to_vec())).collect(),
                });
            }
        }
        Ok(all_series)
    }

    /// Returns the values of a tag.
    fn tag_values(&self, measurement: &str, tag: &str) -> Result<Vec<String>, ReturnerError> {
        let series = self.query(&format!("SHOW TAG VALUES FROM \"{measurement}\" WITH KEY = \"{tag}\""))?;
        let rows = series.iter().flat_map(|series| &series.rows);
        Ok(rows.filter_map(|row| Some(row.get(1)?.as_str()?.to_owned())).collect())
    }

    /// Returns the summaries of returns from series by minion, of the first row or the last one of each.
    fn returns(&self, series: &[Series], takes_last: bool) -> Map {
        let mut returns = Map::new();
        for series in series {
            let Some(id) = series.tags.get("id").and_then(Value::as_str) else { continue };
            let row = if takes_last { series.rows.last() } else { series.rows.first() };
            let Some([_, value, full, ..]) = row.map(Vec::as_slice) else { continue };
            let decoded = || {
                let mut fields = encoding::to_map(NAME, id, full.as_str().unwrap_or_default())?;
                fields.insert("return".into(), encoding::to_value(NAME, id, value.as_str().unwrap_or_default())?);
                Return::from_map(fields).map_err(|error| ReturnerError::damaged(NAME, id, error))
            };
            if let Some(one) = readable(decoded()) {
                returns.insert(one.id().into(), one.summary().into());
            }
        }
        returns.sort_by(|one, _, other, _| one.as_str().cmp(&other.as_str()));
        returns
    }
}

impl Returner for Influxdb {
    fn name(&self) -> &'static str {
        NAME
    }

    fn setup(&self) -> Result<(), ReturnerError> {
        self.query(&format!("CREATE DATABASE \"{}\"", self.database.replace('"', "\\\""))).map(drop)
    }

    fn save_load(&self, load: &Load) -> Result<(), ReturnerError> {
        let (jid, text) = (load.jid(), field(&encoding::of_map(load.map())));
        self.write(format!("jids,jid={} load={text} {}\n", tag(jid.as_str()), time_of(jid)))
    }

    fn save_returns(&self, returns: &[Return]) -> Result<(), ReturnerError> {
        // Points of one series and request have the same time: the last one would replace the first.
        let mut seen = HashSet::new();
        let mut lines = String::new();
        for one in returns.iter().filter(|one| seen.insert((one.jid(), one.id()))) {
            let mut rest = one.map().clone();
            rest.shift_remove("return");
            let [fun, id, jid] = [one.fun(), one.id().as_str(), one.jid().as_str()].map(tag);
            // A tag cannot be empty.
            let fun = if fun.is_empty() { String::new() } else { format!(",fun={fun}") };
            let (value, full) = (field(&json::to_json(one.value())), field(&encoding::of_map(&rest)));
            lines += &format!("returns{fun},id={id},jid={jid} return={value},full_ret={full}\n");
        }
        self.write(lines)
    }

    fn save_minions(&self, jid: &Jid, minions: &[MinionId]) -> Result<(), ReturnerError> {
        let line = |id: &MinionId| {
            format!("jid_minions,jid={},id={} present=true {}\n", tag(jid.as_str()), tag(id.as_str()), time_of(jid))
        };
        self.write(minions.iter().map(line).collect())
    }

    fn get_load(&self, jid: &Jid) -> Result<Option<Load>, ReturnerError> {
        let series =
            self.query(&format!("SELECT last(\"load\") FROM \"jids\" WHERE \"jid\" = {}", quoted(jid.as_str())))?;
        let text = series.first().and_then(|series| series.rows.first()?.get(1)?.as_str());
        let Some(text) = text else { return Ok(None) };
        let load = encoding::to_load(NAME, jid.as_str(), text)?;
        let more =
            format!("SELECT \"present\" FROM \"jid_minions\" WHERE \"jid\" = {} GROUP BY \"id\"", quoted(jid.as_str()));
        let more = self.query(&more)?;
        let ids = more.iter().filter_map(|series| series.tags.get("id")?.as_str()?.parse().ok());
        Ok(Some(load.with_minions(ids)))
    }

    fn get_jid(&self, jid: &Jid) -> Result<Map, ReturnerError> {
        let query = "SELECT \"return\", \"full_ret\" FROM \"returns\" WHERE \"jid\" = ";
        let series = self.query(&format!("{query}{} GROUP BY \"id\"", quoted(jid.as_str())))?;
        Ok(self.returns(&series, false))
    }

    fn get_jids(&self, limit: Option<usize>) -> Result<Vec<Load>, ReturnerError> {
        if limit == Some(0) {
            return Ok(Vec::new());
        }
        let limit = limit.map(|limit| format!(" LIMIT {limit}")).unwrap_or_default();
        let series = self.query(&format!("SELECT \"load\" FROM \"jids\" ORDER BY time DESC{limit}"))?;
        let texts = series.iter().flat_map(|series| &series.rows).filter_map(|row| row.get(1)?.as_str());
        let mut loads: Vec<Load> = texts.filter_map(|text| readable(encoding::to_load(NAME, "jids", text))).collect();
        loads.sort_by(|one, other| other.jid().cmp(one.jid()));
        Ok(loads)
    }

    fn get_fun(&self, fun: &str) -> Result<Map, ReturnerError> {
        let query = "SELECT \"return\", \"full_ret\" FROM \"returns\" WHERE \"fun\" = ";
        let series = self.query(&format!("{query}{} GROUP BY \"id\" ORDER BY time DESC LIMIT 1", quoted(fun)))?;
        Ok(self.returns(&series, true))
    }

    fn get_minions(&self) -> Result<Vec<MinionId>, ReturnerError> {
        Ok(sorted_ids(self.tag_values("returns", "id")?.iter().map(String::as_str)))
    }

    fn stores_events(&self) -> bool {
        false
    }

    fn clean_old_jobs(&self, older_than: Duration) -> Result<(), ReturnerError> {
        let Some(oldest) = oldest_kept(&brine_clock::now_for_age(older_than), older_than.as_secs()) else {
            return Ok(());
        };
        for measurement in ["jids", "returns", "jid_minions"] {
            let jids = self.tag_values(measurement, "jid")?;
            let is_old = |jid: &&String| jid.parse::<Jid>().is_ok_and(|jid| jid < oldest);
            let old: Vec<&String> = jids.iter().filter(is_old).collect();
            for page in old.chunks(PAGE) {
                let drop_one =
                    |jid: &&String| format!("DROP SERIES FROM \"{measurement}\" WHERE \"jid\" = {}", quoted(jid));
                self.query(&page.iter().map(drop_one).collect::<Vec<_>>().join("; "))?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn special_characters_are_escaped() {
        assert_eq!(tag("a,b =c\n\\"), "a\\,b\\ \\=c_\\_");
        assert_eq!(field("a\"b\\\n"), "\"a\\\"b\\\\\n\"");
        assert_eq!(quoted("a' OR '1'='1\\"), "'a\\' OR \\'1\\'=\\'1\\\\'");
    }
}
