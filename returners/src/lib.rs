//! Where job returns and events are stored: one file a backend, all of the same shape.
//!
//! A [`Returner`] is synchronous: masters and minions call it on threads that may wait, never on those
//! of a runtime. Which one is used is said by its Salt name (`--return redis`, `master_job_cache`,
//! `event_return`), and its options are Salt's (`redis.host`, ...). Nothing here knows of a bus, a
//! master or a minion.
//!
//! What comes twice is kept once: of several returns of one minion for one job the first stays, as in
//! Salt's job cache. So events may be handed over again after a crash, and a minion cannot change
//! what it has said.

mod error;
mod local_cache;
mod options;
mod rawfile_json;
mod redis;
mod sqlite3;
mod text;

use std::time::Duration;

use brine_event::Event;
use brine_ids::{Jid, MinionId};
use brine_job::{Call, Load, Return};
use brine_value::Map;

pub use error::ReturnerError;
pub use options::Options;

/// What stores job returns and events. What a backend cannot do, it says:
/// [`ReturnerError::Unsupported`].
pub trait Returner: Send + Sync {
    /// Salt's name of it.
    fn name(&self) -> &'static str;

    /// Stores what was asked; a job that is known is replaced.
    fn save_load(&self, load: &Load) -> Result<(), ReturnerError> {
        let _ = load;
        Err(self.cannot("store jobs"))
    }

    /// Stores what a minion returned.
    fn returner(&self, job_return: &Return) -> Result<(), ReturnerError> {
        let _ = job_return;
        Err(self.cannot("store returns"))
    }

    /// Stores many returns at once, which is quicker than one after the other.
    fn save_returns(&self, returns: &[Return]) -> Result<(), ReturnerError> {
        returns.iter().try_for_each(|one| self.returner(one))
    }

    /// Stores calls of the master's own functions, each a job with one return. A damaged one is logged and left out.
    fn save_calls(&self, calls: &[Call]) -> Result<(), ReturnerError> {
        for call in calls {
            let job = call.job().map_err(|error| ReturnerError::damaged(self.name(), call.jid().as_str(), error));
            if let Some((load, job_return)) = error::readable(job) {
                self.save_load(&load)?;
                self.returner(&job_return)?;
            }
        }
        Ok(())
    }

    /// Waits until what was stored so far is on disk, where storing does not wait for that by itself.
    fn flush(&self) -> Result<(), ReturnerError> {
        Ok(())
    }

    /// Adds minions that are expected to return for a job: batches and other masters tell them late.
    fn save_minions(&self, jid: &Jid, minions: &[MinionId]) -> Result<(), ReturnerError> {
        let _ = (jid, minions);
        Err(self.cannot("store the minions of a job"))
    }

    /// What was asked in a job, if it is known, with all minions that are expected to return.
    fn get_load(&self, jid: &Jid) -> Result<Option<Load>, ReturnerError> {
        let _ = jid;
        Err(self.cannot("find jobs"))
    }

    /// What came back for a job: by minion, sorted, a map of `return`, `retcode`, `success` and `out`,
    /// those of them that came. Empty if nothing is known.
    fn get_jid(&self, jid: &Jid) -> Result<Map, ReturnerError> {
        let _ = jid;
        Err(self.cannot("find returns"))
    }

    /// The jobs that are known, newest first, at most `limit` of them. [`Load::summary`] is what
    /// listings show of each. Those that cannot be read any more are left out and logged.
    fn get_jids(&self, limit: Option<usize>) -> Result<Vec<Load>, ReturnerError> {
        let _ = limit;
        Err(self.cannot("list jobs"))
    }

    /// The newest return of a function, by minion, sorted, in the form of [`Returner::get_jid`].
    fn get_fun(&self, fun: &str) -> Result<Map, ReturnerError> {
        let _ = fun;
        Err(self.cannot("find returns by function"))
    }

    /// The minions that have returned something, sorted.
    fn get_minions(&self) -> Result<Vec<MinionId>, ReturnerError> {
        Err(self.cannot("list minions"))
    }

    /// Stores events.
    fn event_return(&self, events: &[Event]) -> Result<(), ReturnerError> {
        let _ = events;
        Err(self.cannot("store events"))
    }

    /// Removes what was asked and returned longer ago than this. No time at all means that everything
    /// is kept, as `keep_jobs_seconds: 0` does.
    fn clean_old_jobs(&self, older_than: Duration) -> Result<(), ReturnerError> {
        let _ = older_than;
        Err(self.cannot("remove old jobs"))
    }

    /// The error for what this returner cannot do.
    #[doc(hidden)]
    fn cannot(&self, what: &'static str) -> ReturnerError {
        ReturnerError::Unsupported { returner: self.name(), what }
    }
}

/// A kind of returner: what its file tells of it.
#[derive(Debug, Clone, Copy)]
pub struct Backend {
    /// Salt's name of it.
    pub name: &'static str,
    /// What it is and which options it has.
    pub doc: &'static str,
    open: fn(&Options) -> Result<Box<dyn Returner>, ReturnerError>,
    /// Checks its options and changes nothing.
    check: fn(&Options) -> Result<(), ReturnerError>,
}

/// All returners, by name: one line a backend.
pub static BACKENDS: &[Backend] = &[local_cache::BACKEND, rawfile_json::BACKEND, redis::BACKEND, sqlite3::BACKEND];

/// Opens the returner of this name.
pub fn open(name: &str, options: &Options) -> Result<Box<dyn Returner>, ReturnerError> {
    match BACKENDS.iter().find(|backend| backend.name == name) {
        Some(backend) => (backend.open)(options),
        None => Err(unknown(name)),
    }
}

/// Checks that there is a returner of this name and that its options can be used. Opens and creates nothing.
///
/// # Errors
/// What [`open`] would fail of, as far as the options say it.
pub fn check(name: &str, options: &Options) -> Result<(), ReturnerError> {
    match BACKENDS.iter().find(|backend| backend.name == name) {
        Some(backend) => (backend.check)(options),
        None => Err(unknown(name)),
    }
}

fn unknown(name: &str) -> ReturnerError {
    let known: Vec<_> = BACKENDS.iter().map(|backend| backend.name).collect();
    let nearest = known.iter().map(|known| (strsim::jaro_winkler(name, known), *known));
    // What is less alike than this is another word, not the same one mistyped.
    let nearest = nearest.filter(|(alike, _)| *alike > 0.75).max_by(|one, other| one.0.total_cmp(&other.0));
    let hint = nearest.map(|(_, known)| format!(" (did you mean '{known}'?)")).unwrap_or_default();
    ReturnerError::Unknown { name: name.to_owned(), hint, known: known.join(", ") }
}

#[cfg(test)]
mod tests {
    use brine_value::map;

    use super::*;

    #[test]
    fn an_unknown_returner_is_answered_with_the_nearest_one() {
        let message = |name| open(name, &Options::default()).err().unwrap().to_string();
        insta::assert_snapshot!(message("redsi"), @"there is no returner 'redsi' (did you mean 'redis'?): local_cache, rawfile_json, redis, sqlite3 are known");
        insta::assert_snapshot!(message("sqlite"), @"there is no returner 'sqlite' (did you mean 'sqlite3'?): local_cache, rawfile_json, redis, sqlite3 are known");
        insta::assert_snapshot!(message("mongo"), @"there is no returner 'mongo': local_cache, rawfile_json, redis, sqlite3 are known");
    }

    #[test]
    fn every_returner_tells_its_options() {
        for backend in BACKENDS {
            assert!(backend.doc.lines().count() > 1, "{}", backend.name);
        }
    }

    #[test]
    fn what_a_returner_cannot_do_it_says() {
        struct Nothing;
        impl Returner for Nothing {
            fn name(&self) -> &'static str {
                "nothing"
            }
        }
        let jid = Jid::new();
        let one = Return::from_map(map! {"jid" => &jid, "id" => "a", "return" => 1}).unwrap();
        let load = Load::from_map(map! {"jid" => &jid}).unwrap();
        let said = [
            Nothing.save_load(&load).err(),
            Nothing.returner(&one).err(),
            Nothing.save_returns(&[one]).err(),
            Nothing.save_minions(&jid, &[]).err(),
            Nothing.get_load(&jid).err(),
            Nothing.get_jid(&jid).err(),
            Nothing.get_jids(None).err(),
            Nothing.get_fun("x").err(),
            Nothing.get_minions().err(),
            Nothing.event_return(&[]).err(),
            Nothing.clean_old_jobs(Duration::ZERO).err(),
        ];
        for error in said {
            assert!(matches!(error, Some(ReturnerError::Unsupported { returner: "nothing", .. })), "{error:?}");
        }
    }
}
