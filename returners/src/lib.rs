//! Where job returns and events are stored: one file a backend, all of the same shape.
//!
//! A [`Returner`] is synchronous: masters and minions call it on threads that may wait. Which one is
//! used is said by its Salt name (`--return redis`, `master_job_cache`, `event_return`), and its options
//! are Salt's (`redis.host`, ...).

mod local_cache;
mod options;
mod rawfile_json;
mod redis;
mod sqlite3;

use std::time::Duration;

use brine_core::event::Event;
use brine_core::job::{Load, Return};
use brine_core::store::StoreError;
use brine_core::{Jid, Map};

pub use options::Options;

/// Why something could not be stored or found.
#[derive(Debug, thiserror::Error)]
pub enum ReturnerError {
    /// There is no such returner.
    #[error("there is no returner '{name}': {known} are known")]
    Unknown {
        /// The name that was asked for.
        name: String,
        /// The names that there are.
        known: String,
    },
    /// The returner cannot do this.
    #[error("the returner {returner} cannot {what}: use another one for that")]
    Unsupported {
        /// Which returner.
        returner: &'static str,
        /// What it cannot do.
        what: &'static str,
    },
    /// An option is wrong or missing.
    #[error("option '{option}': {reason}")]
    Option {
        /// Which option.
        option: String,
        /// What is wrong.
        reason: String,
    },
    /// The store does not work.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The service or file behind the returner does not work.
    #[error("{returner} at {place}: {reason}")]
    Backend {
        /// Which returner.
        returner: &'static str,
        /// Which server or file.
        place: String,
        /// What it says.
        reason: String,
    },
}

/// What stores job returns and events.
pub trait Returner: Send + Sync {
    /// Salt's name of it.
    fn name(&self) -> &'static str;

    /// Stores what was asked.
    fn save_load(&self, load: &Load) -> Result<(), ReturnerError> {
        let _ = load;
        Err(self.cannot("store jobs"))
    }

    /// Stores what a minion returned.
    fn returner(&self, job_return: &Return) -> Result<(), ReturnerError>;

    /// What was asked in a job, if it is known.
    fn get_load(&self, jid: &Jid) -> Result<Option<Load>, ReturnerError> {
        let _ = jid;
        Err(self.cannot("find jobs"))
    }

    /// What came back for a job: by minion `return`, `retcode`, `success`, and `out` if there is one.
    fn get_jid(&self, jid: &Jid) -> Result<Map, ReturnerError> {
        let _ = jid;
        Err(self.cannot("find returns"))
    }

    /// All jobs that are known.
    fn get_jids(&self) -> Result<Vec<Load>, ReturnerError> {
        Err(self.cannot("list jobs"))
    }

    /// The newest return of a function, by minion.
    fn get_fun(&self, fun: &str) -> Result<Map, ReturnerError> {
        let _ = fun;
        Err(self.cannot("find returns by function"))
    }

    /// All minions that ever returned, sorted.
    fn get_minions(&self) -> Result<Vec<String>, ReturnerError> {
        Err(self.cannot("list minions"))
    }

    /// Stores events.
    fn event_return(&self, events: &[Event]) -> Result<(), ReturnerError> {
        let _ = events;
        Err(self.cannot("store events"))
    }

    /// Removes jobs that are older than this.
    fn clean_old_jobs(&self, lifetime: Duration) -> Result<(), ReturnerError> {
        let _ = lifetime;
        Ok(())
    }

    /// The error for what this returner cannot do.
    #[doc(hidden)]
    fn cannot(&self, what: &'static str) -> ReturnerError {
        ReturnerError::Unsupported { returner: self.name(), what }
    }
}

type Open = fn(&Options) -> Result<Box<dyn Returner>, ReturnerError>;

/// All returners: one line a backend.
static RETURNERS: &[(&str, Open)] = &[
    (local_cache::NAME, local_cache::open),
    (rawfile_json::NAME, rawfile_json::open),
    (redis::NAME, redis::open),
    (sqlite3::NAME, sqlite3::open),
];

/// Opens the returner of this name.
pub fn open(name: &str, options: &Options) -> Result<Box<dyn Returner>, ReturnerError> {
    let found = RETURNERS.iter().find(|(known, _)| *known == name);
    let (_, open) = found.ok_or_else(|| {
        let known: Vec<_> = RETURNERS.iter().map(|(known, _)| *known).collect();
        ReturnerError::Unknown { name: name.to_owned(), known: known.join(", ") }
    })?;
    open(options)
}

/// Jobs made before this id are older than `lifetime`.
fn oldest_jid(lifetime: Duration) -> String {
    let now = jiff::Zoned::now();
    let oldest = now.checked_sub(lifetime).unwrap_or(now);
    oldest.strftime("%Y%m%d%H%M%S").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_returner_is_answered_with_those_there_are() {
        let error = open("mongo", &Options::default()).err().unwrap();
        assert_eq!(
            error.to_string(),
            "there is no returner 'mongo': local_cache, rawfile_json, redis, sqlite3 are known"
        );
    }
}
