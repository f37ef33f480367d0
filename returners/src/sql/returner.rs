//! One implementation of [`Returner`] over the tables of Salt's returners (`jids`, `salt_returns`, `salt_events`) and a
//! table of Brine, `jid_minions`.
//!
//! `full_ret` contains a whole return, `return` its value; `success` is encoded as by Salt's database driver.

use std::collections::HashSet;
use std::time::Duration;

use brine_event::Event;
use brine_ids::{Jid, MinionId};
use brine_job::{Load, Return, oldest_kept};
use brine_value::Map;

use super::columns::Texts;
use super::layout::Layout;
use crate::connection::Connection;
use crate::error::readable;
use crate::error::sql::{Cause, SqlError};
use crate::expiry::between;
use crate::{Options, Returner, ReturnerError, sorted_ids};

/// The maximum number of rows that one statement inserts or looks up: servers accept at most 65,535 parameters.
const PAGE: usize = 500;
/// The size of parameters, in bytes, from which on no further row is added to a statement. MariaDB rejects statements
/// over 16 MiB.
const PAGE_BYTES: usize = 4 << 20;

/// The tables whose old rows `archive_jobs` moves to tables with the suffix `_archive`.
const ARCHIVED: [&str; 3] = ["jids", "salt_returns", "salt_events"];

/// A connection to a server. Parameters take the place of `?` in statements; columns are read as text.
pub(crate) trait Client: Send {
    /// Runs statements without parameters, separated by semicolons.
    fn batch(&mut self, statements: &str) -> Result<(), SqlError>;

    /// Runs a statement.
    fn execute(&mut self, statement: &str, parameters: &[&str]) -> Result<(), SqlError>;

    /// Runs a query and returns its rows.
    fn query(&mut self, query: &str, parameters: &[&str]) -> Result<Vec<Vec<String>>, SqlError>;
}

/// Opens a connection to one database.
pub(crate) type Connect = Box<dyn Fn() -> Result<Box<dyn Client>, SqlError> + Send + Sync>;

/// A returner over one database of a server.
struct Sql {
    layout: &'static Layout,
    connect: Connect,
    connection: Connection<Box<dyn Client>>,
    /// `host:port/database`, for messages.
    address: String,
    /// The id of this master, stored with its events.
    master: String,
    /// Whether old jobs and events are moved to other tables instead of being removed.
    archives: bool,
}

/// Creates a returner; the connection is opened by the first operation.
pub(super) fn create(
    layout: &'static Layout,
    options: &Options,
    address: String,
    connect: Connect,
) -> Box<dyn Returner> {
    let master = options.own_id().unwrap_or_default();
    // As in Salt, only `pgjsonb` archives.
    let archives = layout.name == "pgjsonb" && options.archive_jobs();
    Box::new(Sql { layout, connect, connection: Connection::new(), address, master, archives })
}

/// Returns `count` groups of placeholders, such as `(?, ?), (?, ?)`.
fn groups(group: &str, count: usize) -> String {
    vec![group; count].join(", ")
}

/// Splits rows of parameters into pages of at most [`PAGE`] rows and, beyond the first row, [`PAGE_BYTES`].
fn pages(rows: &[Vec<String>]) -> Vec<&[Vec<String>]> {
    let mut pages = Vec::new();
    let (mut start, mut bytes) = (0, 0);
    for (index, row) in rows.iter().enumerate() {
        let length: usize = row.iter().map(String::len).sum();
        if index > start && (index - start == PAGE || bytes + length > PAGE_BYTES) {
            pages.push(&rows[start..index]);
            (start, bytes) = (index, 0);
        }
        bytes += length;
    }
    if start < rows.len() {
        pages.push(&rows[start..]);
    }
    pages
}

impl Sql {
    fn run<T>(&self, operation: impl Fn(&mut dyn Client) -> Result<T, SqlError>) -> Result<T, ReturnerError> {
        let result = self
            .connection
            .run(&self.address, &self.connect, SqlError::is_of_connection, |client| operation(&mut **client));
        result.map_err(|source| {
            let hint = match source.cause() {
                Cause::Schema => format!("; `salt-run returner.setup {}` creates missing tables", self.layout.name),
                Cause::Connection | Cause::Other => String::new(),
            };
            ReturnerError::Sql { returner: self.layout.name, address: self.address.clone(), source, hint }
        })
    }

    /// Runs `operation` in a transaction. If it fails, the transaction is rolled back by closing the connection.
    fn change(&self, operation: impl Fn(&mut dyn Client) -> Result<(), SqlError>) -> Result<(), ReturnerError> {
        self.run(|client| {
            client.batch("BEGIN")?;
            operation(client)?;
            client.batch("COMMIT")
        })
    }

    /// Inserts rows, several with one statement. `group` contains the placeholders of a row.
    fn insert(client: &mut dyn Client, into: &str, group: &str, rows: &[Vec<String>]) -> Result<(), SqlError> {
        for page in pages(rows) {
            let parameters: Vec<&str> = page.iter().flatten().map(String::as_str).collect();
            client.execute(&format!("{into} VALUES {}", groups(group, page.len())), &parameters)?;
        }
        Ok(())
    }

    /// Removes rows of a table, or moves them to its archive.
    fn remove(
        &self,
        client: &mut dyn Client,
        table: &str,
        condition: &str,
        parameters: &[&str],
    ) -> Result<(), SqlError> {
        let delete = format!("DELETE FROM {table} WHERE {condition}");
        if self.archives && ARCHIVED.contains(&table) {
            let archive = format!("INSERT INTO {table}_archive SELECT * FROM old");
            return client.execute(&format!("WITH old AS ({delete} RETURNING *) {archive}"), parameters);
        }
        client.execute(&delete, parameters)
    }

    fn texts(&self) -> Texts {
        Texts { booleans: self.layout.booleans, holds_nul: self.layout.holds_nul }
    }

    /// Returns the rows whose minions have no return for the job yet, the first of each minion.
    fn missing(client: &mut dyn Client, rows: &[Vec<String>]) -> Result<Vec<Vec<String>>, SqlError> {
        let mut present = HashSet::new();
        for page in rows.chunks(PAGE) {
            let query =
                format!("SELECT jid, id FROM salt_returns WHERE (jid, id) IN ({})", groups("(?, ?)", page.len()));
            let parameters: Vec<&str> = page.iter().flat_map(|row| [row[1].as_str(), row[3].as_str()]).collect();
            present.extend(client.query(&query, &parameters)?);
        }
        Ok(rows.iter().filter(|row| present.insert(vec![row[1].clone(), row[3].clone()])).cloned().collect())
    }

    /// Decodes rows of job id, minion id and text to returns by minion id. The first row of a minion wins.
    fn by_minion(&self, rows: Vec<Vec<String>>) -> Map {
        let mut returns = Map::new();
        for row in rows {
            let [jid, id, text] = &row[..] else { continue };
            if returns.contains_key(id.as_str()) {
                continue;
            }
            if let Some(summary) = readable((self.layout.columns.to_summary)(self.layout.name, jid, id, text)) {
                returns.insert(id.as_str().into(), summary.into());
            }
        }
        returns.sort_by(|one, _, other, _| one.as_str().cmp(&other.as_str()));
        returns
    }
}

impl Returner for Sql {
    fn name(&self) -> &'static str {
        self.layout.name
    }

    fn setup(&self) -> Result<(), ReturnerError> {
        self.run(|client| self.layout.setup.iter().try_for_each(|statement| client.batch(statement)))
    }

    fn save_load(&self, load: &Load) -> Result<(), ReturnerError> {
        let columns = (self.layout.columns.of_load)(load, self.texts());
        let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
        self.run(|client| client.execute(self.layout.replace_load, &columns))
    }

    fn save_returns(&self, returns: &[Return]) -> Result<(), ReturnerError> {
        if returns.is_empty() {
            return Ok(());
        }
        let rows: Vec<Vec<String>> =
            returns.iter().map(|one| (self.layout.columns.of_return)(one, self.texts())).collect();
        self.change(|client| {
            let missing = Self::missing(client, &rows)?;
            Self::insert(client, self.layout.insert_return, self.layout.return_group, &missing)
        })
    }

    fn save_minions(&self, jid: &Jid, minions: &[MinionId]) -> Result<(), ReturnerError> {
        let rows: Vec<Vec<String>> = minions.iter().map(|id| vec![jid.to_string(), id.to_string()]).collect();
        let [before, after] = self.layout.insert_minions;
        self.change(|client| {
            pages(&rows).into_iter().try_for_each(|page| {
                let parameters: Vec<&str> = page.iter().flatten().map(String::as_str).collect();
                client.execute(&format!("{before} VALUES {} {after}", groups("(?, ?)", page.len())), &parameters)
            })
        })
    }

    fn get_load(&self, jid: &Jid) -> Result<Option<Load>, ReturnerError> {
        let (rows, more) = self.run(|client| {
            let rows = client.query(self.layout.load_of_jid, &[jid.as_str()])?;
            Ok((rows, client.query("SELECT id FROM jid_minions WHERE jid = ?", &[jid.as_str()])?))
        })?;
        let to_load = self.layout.columns.to_load;
        let load = rows.first().map(|row| to_load(self.layout.name, row)).transpose()?;
        Ok(load.map(|load| load.with_minions(more.iter().flatten().filter_map(|id| id.parse().ok()))))
    }

    fn get_jid(&self, jid: &Jid) -> Result<Map, ReturnerError> {
        Ok(self.by_minion(self.run(|client| client.query(self.layout.returns_of_jid, &[jid.as_str()]))?))
    }

    fn get_jids(&self, limit: Option<usize>) -> Result<Vec<Load>, ReturnerError> {
        let limit = limit.map_or_else(String::new, |limit| format!(" LIMIT {limit}"));
        let rows = self.run(|client| client.query(&format!("{}{limit}", self.layout.loads), &[]))?;
        let to_load = self.layout.columns.to_load;
        Ok(rows.iter().filter_map(|row| readable(to_load(self.layout.name, row))).collect())
    }

    fn get_fun(&self, fun: &str) -> Result<Map, ReturnerError> {
        Ok(self.by_minion(self.run(|client| client.query(self.layout.newest_returns, &[fun]))?))
    }

    fn get_minions(&self) -> Result<Vec<MinionId>, ReturnerError> {
        let rows = self.run(|client| client.query("SELECT DISTINCT id FROM salt_returns", &[]))?;
        Ok(sorted_ids(rows.iter().flatten().map(|id| &**id)))
    }

    fn event_return(&self, events: &[Event]) -> Result<(), ReturnerError> {
        if events.is_empty() {
            return Ok(());
        }
        let texts = self.texts();
        let row = |event: &Event| vec![event.tag().to_owned(), texts.json(&event.data().into()), self.master.clone()];
        let rows: Vec<Vec<String>> = events.iter().map(row).collect();
        self.change(|client| Self::insert(client, self.layout.insert_event, self.layout.event_group, &rows))
    }

    fn clean_old_jobs(&self, older_than: Duration) -> Result<(), ReturnerError> {
        let Some(oldest) = oldest_kept(&brine_clock::now_for_age(older_than), older_than.as_secs()) else {
            return Ok(());
        };
        let within = |statement: &str| statement.replace("SECONDS", &older_than.as_secs().to_string());
        let (since, events) = (within(self.layout.returned_since), within(self.layout.old_events));
        self.change(|client| {
            if self.archives {
                for table in ARCHIVED {
                    client.batch(&format!("CREATE TABLE IF NOT EXISTS {table}_archive (LIKE {table})"))?;
                }
            }
            let ids: Vec<String> = client.query(&since, &[oldest.as_str()])?.into_iter().flatten().collect();
            for table in ["jids", "salt_returns", "jid_minions"] {
                for range in between(&ids, oldest.as_str()) {
                    self.remove(client, table, "jid > ? AND jid < ?", &range)?;
                }
            }
            self.remove(client, "salt_events", &events, &[])
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_bounded_by_rows_and_bytes() {
        for (sizes, expected) in [
            (vec![], vec![]),
            (vec![1; PAGE], vec![PAGE]),
            (vec![1; PAGE + 1], vec![PAGE, 1]),
            (vec![PAGE_BYTES + 1, 1, PAGE_BYTES], vec![1, 1, 1]),
            (vec![PAGE_BYTES / 2; 3], vec![2, 1]),
        ] {
            let rows: Vec<Vec<String>> = sizes.iter().map(|size| vec!["x".repeat(*size)]).collect();
            assert_eq!(pages(&rows).iter().map(|page| page.len()).collect::<Vec<_>>(), expected);
        }
    }
}
