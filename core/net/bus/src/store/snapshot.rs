//! A copy of all rows at one moment in a file of its own, for backups. Reads and writes of the store continue.

use std::path::Path;

use redb::{ReadableDatabase, ReadableTable, TableHandle};

use super::copy::Definition;
use super::disk::{Disk, FileDisk};
use super::engine::{self, Engine, EngineError};

/// The size of the page cache of the copy, in bytes.
const CACHE: usize = 4 << 20;
/// The bytes of rows that are committed together.
const STEP: usize = 8 << 20;

/// Writes all rows to a new file.
pub(super) fn write(engine: &Engine, path: &Path) -> Result<(), EngineError> {
    let disk = FileDisk(path.to_owned());
    let (copy, _) = engine::open(&disk, CACHE, true)?;
    // The rows stay as they are for this transaction; the store need not wait for it.
    let rows = engine.with(|database| Ok(database.begin_read()?))?;
    engine::guarded(|| {
        for table in rows.list_tables()? {
            let definition = Definition::new(table.name());
            let table = rows.open_table(definition)?;
            let mut pairs = table.iter()?.peekable();
            while pairs.peek().is_some() {
                let transaction = copy.begin_write()?;
                let mut written = 0;
                {
                    let mut target = transaction.open_table(definition)?;
                    for pair in pairs.by_ref() {
                        let (key, value) = pair?;
                        written += key.value().len() + value.value().len();
                        target.insert(key.value(), value.value())?;
                        if written > STEP {
                            break;
                        }
                    }
                }
                transaction.commit()?;
            }
        }
        Ok(())
    })?;
    // Closed cleanly, so that it opens without a repair.
    engine::guarded(move || {
        drop(copy);
        Ok(())
    })?;
    Ok(disk.sync_directory()?)
}
