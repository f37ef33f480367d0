//! A copy of the store in a file beside it. Rows are copied table by table in the order of their keys, one step at a
//! time. Every commit of the store is applied to the copy, too.
//!
//! Rows before the current position are equal in the copy and the store. Of the rows behind it, the copy has some,
//! possibly with a value that [`Batch::put_new`] has set although the store kept another one; copying overwrites these
//! later. The copy never has a key that the store lacks, so each batch can be applied unchanged, including the removal
//! of the first keys of a range.

use redb::{Database, Durability, ReadableDatabase, TableDefinition, TableHandle};

use super::disk::{self, Disk};
use super::engine::{self, Engine, EngineError};
use super::{Batch, batch};

/// The maximum size of a step, in bytes and in rows. A step copies at least one row.
const STEP_BYTES: usize = 2 << 20;
const STEP_ROWS: usize = 10_000;
/// The size of the page cache of a copy, in bytes.
const CACHE: usize = 4 << 20;

/// A table by its name, with rows of bytes.
pub(super) type Definition<'a> = TableDefinition<'a, &'static [u8], &'static [u8]>;

/// A position among the rows of all tables.
pub(super) struct Position {
    /// The remaining tables, the current one last.
    tables: Vec<String>,
    /// The first key of the next step.
    start: Vec<u8>,
}

impl Position {
    /// Returns the position before all rows. Tables that are created later are not included.
    pub fn first(engine: &Engine) -> Result<Self, EngineError> {
        let tables = engine.with(|database| {
            Ok(database.begin_read()?.list_tables()?.map(|table| table.name().to_owned()).collect())
        })?;
        Ok(Position { tables, start: Vec::new() })
    }

    /// Whether all rows have been visited.
    pub fn is_end(&self) -> bool {
        self.tables.is_empty()
    }

    /// Visits the rows of a step and advances the position past them.
    pub fn step(
        &mut self,
        engine: &Engine,
        mut visit: impl FnMut(&str, &[u8], &[u8]) -> Result<(), redb::Error>,
    ) -> Result<(), EngineError> {
        let Some(name) = self.tables.last() else { return Ok(()) };
        let next = engine.with(|database| {
            let table = match database.begin_read()?.open_table(Definition::new(name)) {
                Err(redb::TableError::TableDoesNotExist(_)) => return Ok(None),
                table => table?,
            };
            let (mut rows, mut bytes) = (0, 0);
            for row in table.range::<&[u8]>(&*self.start..)? {
                let (key, value) = row?;
                let (key, value) = (key.value(), value.value());
                if rows >= STEP_ROWS || rows > 0 && bytes + value.len() > STEP_BYTES {
                    return Ok(Some(key.to_vec()));
                }
                visit(name, key, value)?;
                rows += 1;
                bytes += key.len() + value.len();
            }
            Ok(None)
        })?;
        if let Some(key) = next {
            self.start = key;
        } else {
            self.tables.pop();
            self.start.clear();
        }
        Ok(())
    }
}

/// A copy in progress. Its file is removed when it is dropped.
pub(super) struct Copy {
    database: Option<Database>,
    disk: Box<dyn Disk>,
    position: Position,
}

impl Copy {
    /// Creates an empty copy.
    pub fn begin(engine: &Engine) -> Result<Self, EngineError> {
        let disk = engine.disk.copy_disk();
        disk::remove(disk.path())?;
        let mut copy = Copy { database: None, disk, position: Position::first(engine)? };
        let (database, _) = engine::open(&*copy.disk, CACHE, true)?;
        copy.database = Some(database);
        Ok(copy)
    }

    /// Copies the rows of a step and flushes them, so that the last step has little left to flush.
    pub fn step(&mut self, engine: &Engine) -> Result<(), EngineError> {
        let Some(database) = &self.database else { return Ok(()) };
        let transaction = engine::guarded(|| Ok(database.begin_write()?))?;
        let mut table = None;
        let copied = self.position.step(engine, |name, key, value| {
            let table = match &mut table {
                Some(table) => table,
                table => table.insert(transaction.open_table(Definition::new(name))?),
            };
            table.insert(key, value)?;
            Ok(())
        });
        drop(table);
        copied?;
        engine::guarded(|| Ok(transaction.commit()?))
    }

    /// Applies batches that the store has committed. They are flushed by a later commit.
    pub fn apply(&self, batches: &[Batch]) -> Result<(), EngineError> {
        let Some(database) = &self.database else { return Ok(()) };
        engine::guarded(|| {
            let mut transaction = database.begin_write()?;
            transaction.set_durability(Durability::None)?;
            batch::apply(&transaction, batches)?;
            Ok(transaction.commit()?)
        })
    }

    /// Whether all rows are copied.
    pub fn is_complete(&self) -> bool {
        self.position.is_end()
    }

    /// Replaces the store's file by the complete copy.
    pub fn finish(mut self, engine: &Engine) -> Result<(), EngineError> {
        if let Some(database) = self.database.take() {
            // A commit flushes all earlier ones.
            engine::guarded(|| Ok(database.begin_write()?.commit()?))?;
            engine::guarded(move || {
                drop(database);
                Ok(())
            })?;
        }
        engine.swap(&*self.disk)
    }
}

impl Drop for Copy {
    fn drop(&mut self) {
        let database = self.database.take();
        // The store has all of its rows.
        _ = engine::guarded(move || {
            drop(database);
            Ok(())
        });
        if let Err(error) = disk::remove(self.disk.path()) {
            tracing::warn!(path = %self.disk.path().display(), %error, "removing a copy of the store failed");
        }
    }
}
