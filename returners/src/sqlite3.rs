//! `sqlite3`: jobs and returns in an SQLite database, in the tables that Salt's returner of this name has.

use std::path::PathBuf;
use std::time::Duration;

use brine_core::event::{Event, STAMP};
use brine_core::job::{Load, Return};
use brine_core::value::json;
use brine_core::{Jid, Map, Value};
use parking_lot::Mutex;
use rusqlite::{Connection, OptionalExtension, params};

use crate::{Options, Returner, ReturnerError, oldest_jid};

/// Salt's name of it.
pub(crate) const NAME: &str = "sqlite3";

const TABLES: &str = "
    CREATE TABLE IF NOT EXISTS jids (jid TEXT PRIMARY KEY, load TEXT NOT NULL);
    CREATE TABLE IF NOT EXISTS salt_returns (
        fun TEXT, jid TEXT, id TEXT, fun_args TEXT, date TEXT NOT NULL, full_ret TEXT NOT NULL, success TEXT NOT NULL
    );
    CREATE INDEX IF NOT EXISTS salt_returns_jid ON salt_returns (jid);
    CREATE TABLE IF NOT EXISTS salt_events (tag TEXT NOT NULL, data TEXT NOT NULL, alter_time TEXT NOT NULL, master_id TEXT);
";

pub(crate) fn open(options: &Options) -> Result<Box<dyn Returner>, ReturnerError> {
    let path = options.get(NAME, "database", PathBuf::from("/var/lib/salt/salt.db"))?;
    let timeout = options.get(NAME, "timeout", 5.0f64)?;
    let place = path.display().to_string();
    let connect = || {
        let connection = Connection::open(&path)?;
        connection.busy_timeout(Duration::from_secs_f64(timeout.clamp(0.0, 3600.0)))?;
        connection.pragma_update(None, "journal_mode", "WAL")?;
        connection.pragma_update(None, "synchronous", "NORMAL")?;
        connection.execute_batch(TABLES)?;
        Ok(connection)
    };
    let connection = connect().map_err(failed(&place))?;
    Ok(Box::new(Sqlite { connection: Mutex::new(connection), place }))
}

fn failed(place: &str) -> impl FnOnce(rusqlite::Error) -> ReturnerError + '_ {
    move |error| ReturnerError::Backend { returner: NAME, place: place.to_owned(), reason: error.to_string() }
}

struct Sqlite {
    connection: Mutex<Connection>,
    place: String,
}

fn text(map: &Map) -> String {
    json::to_json(&Value::Map(map.clone()))
}

fn map_of(text: &str) -> Map {
    match json::from_json(text) {
        Ok(Value::Map(map)) => map,
        _ => Map::new(),
    }
}

impl Sqlite {
    /// Runs a query and reads the first column of each row.
    fn column(&self, query: &str, parameter: &str) -> Result<Vec<String>, ReturnerError> {
        let connection = self.connection.lock();
        let read = || {
            let mut statement = connection.prepare_cached(query)?;
            let with = if statement.parameter_count() == 0 { vec![] } else { vec![parameter] };
            statement.query_map(rusqlite::params_from_iter(with), |row| row.get(0))?.collect::<Result<Vec<String>, _>>()
        };
        read().map_err(failed(&self.place))
    }

    fn returns(&self, query: &str, parameter: &str) -> Result<Vec<Return>, ReturnerError> {
        let rows = self.column(query, parameter)?;
        Ok(rows.iter().filter_map(|row| Return::from_map(map_of(row)).ok()).collect())
    }
}

impl Returner for Sqlite {
    fn name(&self) -> &'static str {
        NAME
    }

    fn save_load(&self, load: &Load) -> Result<(), ReturnerError> {
        let insert = "INSERT OR REPLACE INTO jids (jid, load) VALUES (?1, ?2)";
        let connection = self.connection.lock();
        connection.execute(insert, params![load.jid().as_str(), text(load.map())]).map_err(failed(&self.place))?;
        Ok(())
    }

    fn returner(&self, job_return: &Return) -> Result<(), ReturnerError> {
        let insert = "INSERT INTO salt_returns (fun, jid, id, fun_args, date, full_ret, success) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
        let fun_args = job_return.map().get("fun_args").map(json::to_json);
        let row = params![
            job_return.fun(),
            job_return.jid().as_str(),
            job_return.id().as_str(),
            fun_args,
            brine_core::event::stamp(),
            text(job_return.map()),
            if job_return.success() { "True" } else { "False" },
        ];
        self.connection.lock().execute(insert, row).map_err(failed(&self.place))?;
        Ok(())
    }

    fn get_load(&self, jid: &Jid) -> Result<Option<Load>, ReturnerError> {
        let connection = self.connection.lock();
        let select = "SELECT load FROM jids WHERE jid = ?1";
        let found: Option<String> =
            connection.query_row(select, [jid.as_str()], |row| row.get(0)).optional().map_err(failed(&self.place))?;
        Ok(found.and_then(|text| Load::from_map(map_of(&text)).ok()))
    }

    fn get_jid(&self, jid: &Jid) -> Result<Map, ReturnerError> {
        let returns = self.returns("SELECT full_ret FROM salt_returns WHERE jid = ?1 ORDER BY rowid", jid.as_str())?;
        Ok(returns.iter().map(|one| (Value::from(one.id()), one.summary().into())).collect())
    }

    fn get_jids(&self) -> Result<Vec<Load>, ReturnerError> {
        let rows = self.column("SELECT load FROM jids ORDER BY jid", "")?;
        Ok(rows.iter().filter_map(|row| Load::from_map(map_of(row)).ok()).collect())
    }

    fn get_fun(&self, fun: &str) -> Result<Map, ReturnerError> {
        let returns = self.returns("SELECT full_ret FROM salt_returns WHERE fun = ?1 ORDER BY jid, rowid", fun)?;
        Ok(returns.iter().map(|one| (Value::from(one.id()), one.value().clone())).collect())
    }

    fn get_minions(&self) -> Result<Vec<String>, ReturnerError> {
        self.column("SELECT DISTINCT id FROM salt_returns ORDER BY id", "")
    }

    fn event_return(&self, events: &[Event]) -> Result<(), ReturnerError> {
        let mut connection = self.connection.lock();
        let mut store = || {
            let transaction = connection.transaction()?;
            for event in events {
                let data = event.data();
                let stamp = data.get(STAMP).map(ToString::to_string);
                let insert = "INSERT INTO salt_events (tag, data, alter_time) VALUES (?1, ?2, ?3)";
                transaction.prepare_cached(insert)?.execute(params![
                    event.tag(),
                    text(&data),
                    stamp.unwrap_or_default()
                ])?;
            }
            transaction.commit()
        };
        store().map_err(failed(&self.place))
    }

    fn clean_old_jobs(&self, lifetime: Duration) -> Result<(), ReturnerError> {
        let oldest = oldest_jid(lifetime);
        let connection = self.connection.lock();
        for delete in ["DELETE FROM jids WHERE jid < ?1", "DELETE FROM salt_returns WHERE jid < ?1"] {
            connection.execute(delete, [&oldest]).map_err(failed(&self.place))?;
        }
        Ok(())
    }
}
