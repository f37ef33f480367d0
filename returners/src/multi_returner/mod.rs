//! `multi_returner`: several returners as one. Everything is stored in each of them; reads merge their contents.

use std::time::Duration;

use brine_event::Event;
use brine_ids::{Jid, MinionId};
use brine_job::{Call, Load, Return};
use brine_value::Map;

use crate::{Backend, BackendOption, JobOutline, Options, Returner, ReturnerError};

const NAME: &str = "multi_returner";

pub(crate) const BACKEND: Backend = Backend {
    name: NAME,
    doc: "Stores everything in each of several returners. Reads merge what they have; those that cannot do an operation are \
          left out of it. While one of them is unreachable, the events of all wait and are stored again later.",
    options: &[BackendOption {
        name: "multi_returner",
        default: None,
        doc: "The names of the returners, such as `[local_cache, redis]`.",
    }],
    open,
    check: |options| names(options)?.iter().try_for_each(|name| crate::check(name, options)),
};

fn open(options: &Options) -> Result<Box<dyn Returner>, ReturnerError> {
    let returners = names(options)?.iter().map(|name| crate::open(name, options)).collect::<Result<_, _>>()?;
    Ok(Box::new(Multi { returners }))
}

fn names(options: &Options) -> Result<Vec<String>, ReturnerError> {
    let names: Vec<String> = options.setting(NAME)?.unwrap_or_default();
    let reason = if names.is_empty() {
        "it is required: expected a list of returners"
    } else if names.iter().any(|name| name == NAME) {
        "it contains itself: name other returners"
    } else {
        return Ok(names);
    };
    Err(ReturnerError::Option { option: NAME.to_owned(), reason: reason.to_owned() })
}

struct Multi {
    /// The returners, at least one.
    returners: Vec<Box<dyn Returner>>,
}

impl Multi {
    /// Runs an operation with each returner that implements it, also after an error, and returns the results.
    ///
    /// # Errors
    /// The first error of a returner, or the last one if none implements the operation.
    fn each<T>(&self, operation: impl Fn(&dyn Returner) -> Result<T, ReturnerError>) -> Result<Vec<T>, ReturnerError> {
        let (mut results, mut failed, mut unsupported) = (Vec::new(), None, None);
        for returner in &self.returners {
            match operation(&**returner) {
                Ok(result) => results.push(result),
                Err(error @ ReturnerError::Unsupported { .. }) => unsupported = Some(error),
                // The error of an unreachable server takes precedence: it makes the caller retry later.
                Err(error) if error.is_outage() => failed = Some(error),
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        match (failed, unsupported) {
            (Some(error), _) => Err(error),
            (None, Some(error)) if results.is_empty() => Err(error),
            (None, _) => Ok(results),
        }
    }

    /// Merges mappings by minion id. As in Salt, the last returner that has a minion wins.
    fn merged(&self, operation: impl Fn(&dyn Returner) -> Result<Map, ReturnerError>) -> Result<Map, ReturnerError> {
        let mut merged: Map = self.each(operation)?.into_iter().flatten().collect();
        merged.sort_by(|one, _, other, _| one.as_str().cmp(&other.as_str()));
        Ok(merged)
    }
}

/// Merges lists of jobs, newest first.
fn merge_jobs(lists: Vec<Vec<Load>>, limit: Option<usize>) -> Vec<Load> {
    let mut loads: Vec<Load> = lists.into_iter().flatten().collect();
    loads.sort_by(|one, other| other.jid().cmp(one.jid()));
    loads.dedup_by(|one, other| one.jid() == other.jid());
    loads.truncate(limit.unwrap_or(usize::MAX));
    loads
}

impl Returner for Multi {
    fn name(&self) -> &'static str {
        NAME
    }

    fn setup(&self) -> Result<(), ReturnerError> {
        self.each(|one| one.setup()).map(drop)
    }

    fn save_load(&self, load: &Load) -> Result<(), ReturnerError> {
        self.each(|one| one.save_load(load)).map(drop)
    }

    fn save_returns(&self, returns: &[Return]) -> Result<(), ReturnerError> {
        self.each(|one| one.save_returns(returns)).map(drop)
    }

    fn save_calls(&self, calls: &[Call]) -> Result<(), ReturnerError> {
        self.each(|one| one.save_calls(calls)).map(drop)
    }

    fn flush(&self) -> Result<(), ReturnerError> {
        self.each(|one| one.flush()).map(drop)
    }

    fn flush_with_others(&self) -> Result<(), ReturnerError> {
        self.each(|one| one.flush_with_others()).map(drop)
    }

    fn save_minions(&self, jid: &Jid, minions: &[MinionId]) -> Result<(), ReturnerError> {
        self.each(|one| one.save_minions(jid, minions)).map(drop)
    }

    fn get_load(&self, jid: &Jid) -> Result<Option<Load>, ReturnerError> {
        let loads = self.each(|one| one.get_load(jid))?.into_iter().flatten();
        Ok(loads.reduce(|load, other| {
            let minions = load.minions();
            other.with_minions(minions)
        }))
    }

    fn get_jid(&self, jid: &Jid) -> Result<Map, ReturnerError> {
        self.merged(|one| one.get_jid(jid))
    }

    fn get_jids(&self, limit: Option<usize>) -> Result<Vec<Load>, ReturnerError> {
        Ok(merge_jobs(self.each(|one| one.get_jids(limit))?, limit))
    }

    fn find_jobs(
        &self,
        limit: Option<usize>,
        predicate: &dyn Fn(&JobOutline<'_>) -> bool,
    ) -> Result<Vec<Load>, ReturnerError> {
        Ok(merge_jobs(self.each(|one| one.find_jobs(limit, predicate))?, limit))
    }

    fn get_fun(&self, fun: &str) -> Result<Map, ReturnerError> {
        self.merged(|one| one.get_fun(fun))
    }

    fn get_minions(&self) -> Result<Vec<MinionId>, ReturnerError> {
        let mut minions: Vec<MinionId> = self.each(|one| one.get_minions())?.into_iter().flatten().collect();
        minions.sort();
        minions.dedup();
        Ok(minions)
    }

    fn stores_jobs(&self) -> bool {
        self.returners.iter().any(|one| one.stores_jobs())
    }

    fn stores_events(&self) -> bool {
        self.returners.iter().any(|one| one.stores_events())
    }

    fn stores_events_together(&self) -> bool {
        self.returners.iter().all(|one| !one.stores_events() || one.stores_events_together())
    }

    fn event_return(&self, events: &[Event]) -> Result<(), ReturnerError> {
        self.each(|one| one.event_return(events)).map(drop)
    }

    fn clean_old_jobs(&self, older_than: Duration) -> Result<(), ReturnerError> {
        self.each(|one| one.clean_old_jobs(older_than)).map(drop)
    }
}

#[cfg(test)]
mod tests;
