//! Which reaction led to which job, so that what minions return and fire in it can say so.

use brine_ids::Jid;
use brine_value::Map;
use indexmap::IndexMap;
use parking_lot::Mutex;

/// How many jobs are remembered: the returns of older ones say nothing of their cause.
const JOBS: usize = 16_384;
/// The fields that are handed on.
const FIELDS: &[&str] = &["_cause", brine_reactor::DEPTH, "_sls"];

/// The causes of the newest jobs that reactions led to.
#[derive(Default)]
pub(crate) struct Causes(Mutex<IndexMap<Jid, Map>>);

impl Causes {
    /// Remembers what a job's `new` event says of its cause.
    pub fn remember(&self, jid: &Jid, fields: &Map) {
        let fields = fields.iter().filter(|(name, _)| name.as_str().is_some_and(|name| FIELDS.contains(&name)));
        let fields: Map = fields.map(|(name, value)| (name.clone(), value.clone())).collect();
        let mut jobs = self.0.lock();
        if jobs.len() >= JOBS {
            // The older half goes at once: one by one would move all others each time.
            jobs.drain(..JOBS / 2);
        }
        jobs.insert(jid.clone(), fields);
    }

    /// Adds to an event of a job what led to the job.
    pub fn mark(&self, jid: &Jid, body: &mut Map) {
        if let Some(fields) = self.0.lock().get(jid) {
            body.extend(fields.clone());
        }
    }
}
