//! `sqlite3`: jobs, returns and events in an SQLite database, in the tables of Salt's returner, `jids` and
//! `salt_returns`. As in Salt, `full_ret` contains only the return value; the other fields of a return are in the
//! additional column `rest`.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use brine_event::Event;
use brine_ids::{Jid, MinionId};
use brine_job::{Load, Return, oldest_kept};
use brine_value::{Map, Value, python};
use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;
use rusqlite::{Connection, ErrorCode, OptionalExtension, Row, Transaction, TransactionBehavior, params};

use crate::error::readable;
use crate::expiry::between;
use crate::{Backend, BackendOption, Options, Returner, ReturnerError, encoding};

const NAME: &str = "sqlite3";

pub(crate) const BACKEND: Backend = Backend {
    name: NAME,
    doc: "Jobs, returns and events in an SQLite database, in the tables of Salt's returner. Missing tables are \
          created.",
    options: &[
        BackendOption { name: "sqlite3.database", default: None, doc: "The path of the database file. Required." },
        BackendOption {
            name: "sqlite3.timeout",
            default: Some("5.0"),
            doc: "The number of seconds to wait for a lock that another process holds.",
        },
    ],
    open,
    check,
};

const TABLES: &str = "
    CREATE TABLE IF NOT EXISTS jids (jid TEXT PRIMARY KEY, load TEXT NOT NULL);
    CREATE TABLE IF NOT EXISTS salt_returns (
        fun TEXT, jid TEXT, id TEXT, fun_args TEXT, date TEXT NOT NULL, full_ret TEXT NOT NULL, success TEXT NOT NULL
    );
    CREATE INDEX IF NOT EXISTS salt_returns_jid_id ON salt_returns (jid, id);
    CREATE TABLE IF NOT EXISTS jid_minions (jid TEXT, id TEXT, PRIMARY KEY (jid, id)) WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS salt_events (
        id INTEGER PRIMARY KEY, tag TEXT NOT NULL, data TEXT NOT NULL, alter_time TEXT NOT NULL, master_id TEXT NOT NULL
    );
    CREATE INDEX IF NOT EXISTS salt_events_alter_time ON salt_events (alter_time);
";

/// The pause before opening a locked database again.
const BUSY_PAUSE: Duration = Duration::from_millis(10);

/// Reads the path of the database and the timeout.
fn settings(options: &Options) -> Result<(PathBuf, Duration), ReturnerError> {
    let path: Option<String> = options.get(NAME, "database")?;
    let missing = || ReturnerError::Option {
        option: "sqlite3.database".into(),
        reason: "it is required: set it to the path of the database file".into(),
    };
    let path = PathBuf::from(path.ok_or_else(missing)?);
    let timeout: f64 = options.get(NAME, "timeout")?.unwrap_or(5.0);
    let timeout = Duration::try_from_secs_f64(timeout)
        .map_err(|error| ReturnerError::Option { option: "sqlite3.timeout".into(), reason: error.to_string() })?;
    Ok((path, timeout))
}

fn check(options: &Options) -> Result<(), ReturnerError> {
    let (path, _) = settings(options)?;
    let directory = path.parent().filter(|directory| !directory.as_os_str().is_empty());
    match directory.filter(|directory| !directory.is_dir()) {
        None => Ok(()),
        Some(missing) => Err(ReturnerError::Option {
            option: "sqlite3.database".into(),
            reason: format!("{} is not a directory: create it", missing.display()),
        }),
    }
}

fn open(options: &Options) -> Result<Box<dyn Returner>, ReturnerError> {
    let (path, timeout) = settings(options)?;
    let connect = || -> rusqlite::Result<Connection> {
        let mut connection = Connection::open(&path)?;
        connection.busy_timeout(timeout)?;
        connection.pragma_update(None, "journal_mode", "WAL")?;
        // With a write-ahead log, a power failure may lose the last commits but does not corrupt the database.
        connection.pragma_update(None, "synchronous", "NORMAL")?;
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        make_tables(&transaction)?;
        transaction.commit()?;
        Ok(connection)
    };
    let start = Instant::now();
    let connection = loop {
        match connect() {
            // Another process is creating the database: the busy timeout does not apply to a change of the journal
            // mode.
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) && start.elapsed() < timeout => {
                std::thread::sleep(BUSY_PAUSE);
            }
            connected => break connected.map_err(|source| ReturnerError::Sqlite { path: path.clone(), source })?,
        }
    };
    let master = options.own_id().unwrap_or_default();
    Ok(Box::new(Sqlite { connection: Mutex::new(connection), path, master }))
}

fn make_tables(transaction: &Transaction) -> rusqlite::Result<()> {
    transaction.execute_batch(TABLES)?;
    if !transaction.column_exists(None, "salt_returns", "rest")? {
        transaction.execute_batch("ALTER TABLE salt_returns ADD COLUMN rest TEXT")?;
    }
    Ok(())
}

struct Sqlite {
    connection: Mutex<Connection>,
    path: PathBuf,
    /// The id of this master, stored with its events.
    master: String,
}

/// A row of `salt_returns`.
struct ReturnRow {
    jid: String,
    id: String,
    fun: Option<String>,
    full_ret: String,
    success: String,
    rest: Option<String>,
}

fn row_of(row: &Row) -> rusqlite::Result<ReturnRow> {
    Ok(ReturnRow {
        jid: row.get("jid")?,
        id: row.get("id")?,
        fun: row.get("fun")?,
        full_ret: row.get("full_ret")?,
        success: row.get("success")?,
        rest: row.get("rest")?,
    })
}

impl ReturnRow {
    /// Decodes the row.
    fn decode(self) -> Result<Return, ReturnerError> {
        let key = format!("jid {}, id {}", self.jid, self.id);
        let mut map = match &self.rest {
            Some(rest) => encoding::to_map(NAME, &key, rest)?,
            None => self.fields_of_salt(),
        };
        map.insert("jid".into(), self.jid.into());
        map.insert("id".into(), self.id.into());
        map.insert("return".into(), encoding::to_value(NAME, &key, &self.full_ret)?);
        Return::from_map(map).map_err(|error| ReturnerError::damaged(NAME, &key, error))
    }

    /// Returns the fields `fun` and `success` of a row written by Salt, which has no `rest`.
    fn fields_of_salt(&self) -> Map {
        let mut map = Map::new();
        if let Some(fun) = &self.fun {
            map.insert("fun".into(), fun.as_str().into());
        }
        let success = match self.success.as_str() {
            "1" | "True" => Some(true),
            "0" | "False" => Some(false),
            _ => None,
        };
        if let Some(success) = success {
            map.insert("success".into(), success.into());
        }
        map
    }
}

fn insert_return(transaction: &Transaction, one: &Return) -> rusqlite::Result<()> {
    let insert = "INSERT INTO salt_returns (fun, jid, id, fun_args, date, full_ret, success, rest)
        SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8
        WHERE NOT EXISTS (SELECT 1 FROM salt_returns WHERE jid = ?2 AND id = ?3)";
    let fun_args = one.map().get("fun_args").filter(|args| args.is_truthy()).map(python::repr);
    let success = match one.map().get("success") {
        Some(success) if success.is_truthy() => "1",
        Some(_) => "0",
        None => "",
    };
    let mut rest = one.map().clone();
    for elsewhere in ["jid", "id", "return"] {
        rest.shift_remove(elsewhere);
    }
    transaction.prepare_cached(insert)?.execute(params![
        one.fun(),
        one.jid().as_str(),
        one.id().as_str(),
        fun_args,
        brine_clock::now().strftime("%Y-%m-%d %H:%M:%S.%6f").to_string(),
        brine_value::json::to_json(one.value()),
        success,
        encoding::of_map(&rest),
    ])?;
    Ok(())
}

fn strings(connection: &Connection, query: &str, params: impl rusqlite::Params) -> rusqlite::Result<Vec<String>> {
    connection.prepare_cached(query)?.query_map(params, |row| row.get(0))?.collect()
}

impl Sqlite {
    fn run<T>(&self, work: impl FnOnce(&mut Connection) -> rusqlite::Result<T>) -> Result<T, ReturnerError> {
        work(&mut self.connection.lock()).map_err(|source| ReturnerError::Sqlite { path: self.path.clone(), source })
    }

    /// Runs `work` in a transaction.
    fn change(&self, work: impl FnOnce(&Transaction) -> rusqlite::Result<()>) -> Result<(), ReturnerError> {
        self.run(|connection| {
            // Takes the write lock at the start: upgrading a read lock later may fail with SQLITE_BUSY.
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            work(&transaction)?;
            transaction.commit()
        })
    }

    /// Returns the result of a query as returns by minion id.
    fn returns(&self, query: &str, parameter: &str) -> Result<Map, ReturnerError> {
        let rows: Vec<ReturnRow> =
            self.run(|connection| connection.prepare_cached(query)?.query_map([parameter], row_of)?.collect())?;
        let returns = rows.into_iter().filter_map(|row| readable(row.decode()));
        Ok(returns.map(|one| (Value::from(one.id()), one.summary().into())).collect())
    }
}

impl Returner for Sqlite {
    fn name(&self) -> &'static str {
        NAME
    }

    fn save_load(&self, load: &Load) -> Result<(), ReturnerError> {
        self.change(|transaction| {
            let insert = "INSERT OR REPLACE INTO jids (jid, load) VALUES (?1, ?2)";
            transaction.prepare_cached(insert)?.execute([load.jid().as_str(), &encoding::of_map(load.map())])?;
            Ok(())
        })
    }

    fn save_returns(&self, returns: &[Return]) -> Result<(), ReturnerError> {
        self.change(|transaction| returns.iter().try_for_each(|one| insert_return(transaction, one)))
    }

    fn save_minions(&self, jid: &Jid, minions: &[MinionId]) -> Result<(), ReturnerError> {
        self.change(|transaction| {
            let mut insert =
                transaction.prepare_cached("INSERT OR IGNORE INTO jid_minions (jid, id) VALUES (?1, ?2)")?;
            minions.iter().try_for_each(|id| insert.execute([jid.as_str(), id.as_str()]).map(drop))
        })
    }

    fn get_load(&self, jid: &Jid) -> Result<Option<Load>, ReturnerError> {
        let (text, more) = self.run(|connection| {
            let select = "SELECT load FROM jids WHERE jid = ?1";
            let text: Option<String> =
                connection.prepare_cached(select)?.query_row([jid.as_str()], |row| row.get(0)).optional()?;
            Ok((text, strings(connection, "SELECT id FROM jid_minions WHERE jid = ?1", [jid.as_str()])?))
        })?;
        let load = text.map(|text| encoding::to_load(NAME, jid.as_str(), &text)).transpose()?;
        Ok(load.map(|load| load.with_minions(more.iter().filter_map(|id| id.parse().ok()))))
    }

    fn get_jid(&self, jid: &Jid) -> Result<Map, ReturnerError> {
        // Salt may have written several rows of a minion: the first one is inserted last and wins.
        self.returns(
            "SELECT jid, id, fun, full_ret, success, rest FROM salt_returns WHERE jid = ?1 ORDER BY id, rowid DESC",
            jid.as_str(),
        )
    }

    fn get_jids(&self, limit: Option<usize>) -> Result<Vec<Load>, ReturnerError> {
        // A negative LIMIT means no limit.
        let limit = limit.map_or(-1, |limit| i64::try_from(limit).unwrap_or(-1));
        let loads =
            self.run(|connection| strings(connection, "SELECT load FROM jids ORDER BY jid DESC LIMIT ?1", [limit]))?;
        Ok(loads.iter().filter_map(|load| readable(encoding::to_load(NAME, "jids", load))).collect())
    }

    fn get_fun(&self, fun: &str) -> Result<Map, ReturnerError> {
        // With max(), SQLite takes the bare columns from the row with the maximum.
        self.returns(
            "SELECT max(jid) AS jid, id, fun, full_ret, success, rest FROM salt_returns WHERE fun = ?1
                GROUP BY id ORDER BY id",
            fun,
        )
    }

    fn get_minions(&self) -> Result<Vec<MinionId>, ReturnerError> {
        let ids = self.run(|connection| strings(connection, "SELECT DISTINCT id FROM salt_returns ORDER BY id", []))?;
        Ok(ids.iter().filter_map(|id| id.parse().ok()).collect())
    }

    fn event_return(&self, events: &[Event]) -> Result<(), ReturnerError> {
        self.change(|transaction| {
            let insert = "INSERT INTO salt_events (tag, data, alter_time, master_id) VALUES (?1, ?2, ?3, ?4)";
            let mut insert = transaction.prepare_cached(insert)?;
            for event in events {
                let data = event.data();
                let stamp =
                    data.get(brine_event::STAMP).and_then(Value::as_str).map_or_else(brine_event::stamp, str::to_owned);
                insert.execute([event.tag(), &encoding::of_map(&data), &stamp, &self.master])?;
            }
            Ok(())
        })
    }

    fn clean_old_jobs(&self, older_than: Duration) -> Result<(), ReturnerError> {
        let now = brine_clock::now_for_age(older_than);
        let Some(oldest) = oldest_kept(&now, older_than.as_secs()) else { return Ok(()) };
        let age = SignedDuration::try_from(older_than).unwrap_or(SignedDuration::MAX);
        let oldest_event = brine_event::stamp_of(Timestamp::now().checked_sub(age).unwrap_or(Timestamp::MIN));
        // In the format in which returns are stored, by Salt, too.
        let since = now.checked_sub(age).unwrap_or(now).strftime("%Y-%m-%d %H:%M:%S").to_string();
        self.change(|transaction| {
            let select = "SELECT DISTINCT jid FROM salt_returns WHERE jid < ?1 AND date >= ?2 ORDER BY jid";
            let ids = strings(transaction, select, [oldest.as_str(), &since])?;
            for table in ["jids", "salt_returns", "jid_minions"] {
                for range in between(&ids, oldest.as_str()) {
                    transaction.execute(&format!("DELETE FROM {table} WHERE jid > ?1 AND jid < ?2"), range)?;
                }
            }
            transaction.execute("DELETE FROM salt_events WHERE alter_time < ?1", [oldest_event]).map(drop)
        })
    }
}

#[cfg(test)]
mod tests;
