//! Data by bank and key, for the runner functions `cache.store`, `fetch`, `list` and `flush`: in the store, or in the
//! driver that `cache` names.

use std::collections::BTreeSet;
use std::sync::Arc;

use brine_bus::store::{Batch, BlockingStore, StoreError, Table};
use brine_function::CallError;
use brine_master_custom::stores::CacheDriver;
use brine_value::{Value, msgpack};

/// Data by `<bank>\0<key>`.
const DATA: Table = Table("cache");

/// The maximum length of the name of a bank or a key, in bytes.
const MAX_NAME: usize = 1024;
/// The maximum size of the data of a key, in bytes.
const MAX_DATA: usize = 16 << 20;

/// The error of an operation.
#[derive(Debug, thiserror::Error)]
pub enum BankError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A name is invalid.
    #[error("the name '{0}' is invalid: expected 1 to {MAX_NAME} bytes without control characters and '..'")]
    Name(String),
    /// The data is too large. The value is its size in bytes.
    #[error("the data is too large: expected at most {MAX_DATA} bytes, got {0}")]
    Large(usize),
    /// The driver failed.
    #[error("the driver of 'cache' failed: {}", .0.clone().cause())]
    Driver(#[from] CallError),
}

/// The banks in a store or a driver. A bank `a/b` is also listed as the entry `b` of the bank `a`.
pub struct Banks {
    store: BlockingStore,
    driver: Option<Arc<CacheDriver>>,
}

impl Banks {
    /// Creates the banks of a store, or of a driver.
    pub fn new(store: BlockingStore, driver: Option<Arc<CacheDriver>>) -> Self {
        Banks { store, driver }
    }

    /// Sets the data of a key.
    pub fn store(&self, bank: &str, key: &str, data: &Value) -> Result<(), BankError> {
        let packed = msgpack::pack(data);
        if packed.len() > MAX_DATA {
            return Err(BankError::Large(packed.len()));
        }
        if let Some(driver) = &self.driver {
            return Ok(driver.store(driver_bank(bank)?, driver_key(key)?, data)?);
        }
        let mut batch = Batch::new();
        batch.put(DATA, row(bank, key)?, packed);
        Ok(self.store.write(batch).durable_blocking()?)
    }

    /// Returns the data of a key.
    pub fn fetch(&self, bank: &str, key: &str) -> Result<Option<Value>, BankError> {
        if let Some(driver) = &self.driver {
            return Ok(driver.fetch(driver_bank(bank)?, driver_key(key)?)?);
        }
        let packed = self.store.get(DATA, &row(bank, key)?)?;
        Ok(packed.and_then(|packed| msgpack::unpack(&packed).ok()))
    }

    /// Returns the keys of a bank and the names of the banks below it, sorted.
    pub fn list(&self, bank: &str) -> Result<Vec<String>, BankError> {
        if let Some(driver) = &self.driver {
            return Ok(driver.list(driver_bank(bank)?)?);
        }
        let bank = name(bank)?;
        let mut names = BTreeSet::new();
        for separator in [&[0][..], b"/"] {
            let prefix = [bank.as_bytes(), separator].concat();
            for (key, _) in self.store.scan_prefix(DATA, &prefix)? {
                let rest = String::from_utf8_lossy(&key[prefix.len()..]).into_owned();
                let end = if separator == b"/" { rest.find(['/', '\0']) } else { None };
                names.insert(rest[..end.unwrap_or(rest.len())].to_owned());
            }
        }
        Ok(names.into_iter().collect())
    }

    /// Removes a key, or a bank with all banks below it. Returns whether it existed.
    pub fn flush(&self, bank: &str, key: Option<&str>) -> Result<bool, BankError> {
        if let Some(driver) = &self.driver {
            let key = key.map(driver_key).transpose()?;
            return Ok(driver.flush(driver_bank(bank)?, key)?);
        }
        let mut batch = Batch::new();
        let existed = if let Some(key) = key {
            let row = row(bank, key)?;
            let existed = self.store.get(DATA, &row)?.is_some();
            batch.delete(DATA, row);
            existed
        } else {
            for separator in [&[0][..], b"/"] {
                batch.delete_prefix(DATA, [name(bank)?.as_bytes(), separator].concat());
            }
            !self.list(bank)?.is_empty()
        };
        self.store.write(batch).durable_blocking()?;
        Ok(existed)
    }
}

fn row(bank: &str, key: &str) -> Result<Vec<u8>, BankError> {
    Ok([name(bank)?.as_bytes(), &[0], name(key)?.as_bytes()].concat())
}

/// Checks the name of a bank before it is passed to a driver: many drivers build a path from it.
fn driver_bank(bank: &str) -> Result<&str, BankError> {
    let bank = name(bank)?;
    let is_safe = bank.split('/').all(|part| !matches!(part, "" | "." | ".."));
    if is_safe { Ok(bank) } else { Err(BankError::Name(bank.to_owned())) }
}

fn driver_key(key: &str) -> Result<&str, BankError> {
    let is_safe = !key.starts_with('/') && key.split('/').all(|part| part != "..");
    if is_safe { name(key) } else { Err(BankError::Name(key.to_owned())) }
}

fn name(text: &str) -> Result<&str, BankError> {
    let name = text.trim_matches('/');
    if name.is_empty() || name.len() > MAX_NAME || name.chars().any(char::is_control) {
        return Err(BankError::Name(text.to_owned()));
    }
    Ok(name)
}

#[cfg(test)]
mod tests {
    use brine_bus::store::Store;
    use brine_runtime::executors::MayBlock;

    use super::*;

    #[test]
    fn data_is_stored_listed_and_flushed_by_bank() {
        let directory = tempfile::tempdir().unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let (store, _) = Store::open(&directory.path().join("store"), 1 << 20).unwrap();
        let banks = Banks::new(store.blocking(&MayBlock::on_dedicated_thread(runtime.handle().clone())), None);
        for (bank, key) in [("a", "k"), ("a/b", "one"), ("a/b", "two"), ("a/b/c", "x"), ("ab", "k")] {
            banks.store(bank, key, &format!("{bank}:{key}").into()).unwrap();
        }
        assert_eq!(banks.fetch("a/b", "one").unwrap(), Some("a/b:one".into()));
        assert_eq!(banks.fetch("a", "b").unwrap(), None);
        for (bank, expected) in
            [("a", &["b", "k"][..]), ("a/b", &["c", "one", "two"]), ("/a/b/", &["c", "one", "two"]), ("c", &[])]
        {
            assert_eq!(banks.list(bank).unwrap(), expected, "{bank}");
        }
        assert!(banks.flush("a/b", Some("one")).unwrap() && !banks.flush("a/b", Some("one")).unwrap());
        assert!(banks.flush("a", None).unwrap() && !banks.flush("a", None).unwrap());
        assert_eq!((banks.list("a").unwrap().len(), banks.list("ab").unwrap().len()), (0, 1));
        for name in ["", "/", "a\0b"] {
            assert!(matches!(banks.store(name, "k", &Value::Nil), Err(BankError::Name(_))), "{name:?}");
        }
    }
}
