//! Tracks which reaction caused which job, so that the job's returns and events name their cause.

use brine_ids::Jid;
use brine_value::Map;
use indexmap::IndexMap;
use parking_lot::Mutex;

/// The maximum number of jobs; the returns of older ones do not name their cause.
const MAX_JOBS: usize = 16_384;
/// The fields of the cause in returns and events.
const FIELDS: &[&str] = &["_cause", brine_reactor::DEPTH, "_sls"];

/// The causes of the newest jobs of reactions.
#[derive(Default)]
pub struct Causality(Mutex<IndexMap<Jid, Map>>);

impl Causality {
    /// Records the cause in the `new` event of a job.
    pub fn record(&self, jid: &Jid, fields: &Map) {
        let fields = fields.iter().filter(|(name, _)| name.as_str().is_some_and(|name| FIELDS.contains(&name)));
        let fields: Map = fields.map(|(name, value)| (name.clone(), value.clone())).collect();
        let mut jobs = self.0.lock();
        if jobs.len() >= MAX_JOBS {
            // Removes the older half at once, because each removal moves all following entries.
            jobs.drain(..MAX_JOBS / 2);
        }
        jobs.insert(jid.clone(), fields);
    }

    /// Adds the cause of a job to one of its events.
    pub fn mark(&self, jid: &Jid, body: &mut Map) {
        if let Some(fields) = self.0.lock().get(jid) {
            body.extend(fields.clone());
        }
    }
}
