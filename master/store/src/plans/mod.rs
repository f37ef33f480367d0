//! Plans that need an approval: kept by the master, which made them from returns, and never changed afterwards. Each has
//! the digest of its content, who approved it, and the job that applied it.

use brine_bus::store::{Batch, BlockingStore, StoreError, Table};
use brine_digest::{Digest, hex};
use brine_job::plan::{InvalidPlan, Plan};
use brine_value::{Map, Value, map, msgpack};
use parking_lot::Mutex;

/// Records by the id of the plan, which is the id of the job that it was made from.
const TABLE: Table = Table("plans");
/// The maximum number of plans; the oldest make room.
const PLANS: usize = 1_000;
/// The maximum size of a plan, in bytes.
const SIZE: usize = 32 << 20;

/// The error of an operation on a plan.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// There is no such plan.
    #[error("there is no plan {0}: see plan.list")]
    Unknown(String),
    /// The content does not have the digest with which the plan was made.
    #[error("the plan {0} was changed after it was made: make a new one")]
    Changed(String),
    /// The stored data is no plan.
    #[error(transparent)]
    Invalid(#[from] InvalidPlan),
    /// The plan is too large.
    #[error("the plan is too large: expected at most {SIZE} bytes, got {0}; plan fewer minions at a time")]
    Large(usize),
    /// The approver saw another plan.
    #[error("the plan {id} has the digest {have}, not {given}: look at it again with plan.show")]
    Digest {
        /// The id of the plan.
        id: String,
        /// Its digest.
        have: String,
        /// The digest of the approver.
        given: String,
    },
    /// The approver made the plan.
    #[error("the plan {id} was made by {maker}: another user has to approve it")]
    Maker {
        /// The id of the plan.
        id: String,
        /// Who made it.
        maker: String,
    },
    /// The plan is not approved.
    #[error("the plan {0} is not approved: another user than the one who made it runs plan.approve {0}")]
    Unapproved(String),
    /// The plan was applied.
    #[error("the plan {id} was applied by job {jid}: make a new one")]
    Applied {
        /// The id of the plan.
        id: String,
        /// The job that applied it.
        jid: String,
    },
    /// The job is not the planned one.
    #[error("the job is not the one of the plan {id}: its {what} differs; make a new plan")]
    Other {
        /// The id of the plan.
        id: String,
        /// What differs.
        what: &'static str,
    },
}

/// A kept plan.
#[derive(Debug, Clone)]
pub struct KeptPlan {
    /// The plan.
    pub plan: Plan,
    /// The digest of its content.
    pub digest: String,
    /// Who approved it.
    pub approved_by: Option<String>,
    /// The job that applied it.
    pub applied: Option<String>,
}

impl KeptPlan {
    /// Returns who made the plan.
    pub fn maker(&self) -> &str {
        self.plan.map().get("user").and_then(Value::as_str).unwrap_or_default()
    }

    /// Returns the plan with its digest, approval and job.
    pub fn to_value(&self) -> Map {
        let mut map = self.plan.map().clone();
        map.insert("digest".into(), self.digest.as_str().into());
        map.insert("approved_by".into(), self.approved_by.clone().into());
        map.insert("applied".into(), self.applied.clone().into());
        map
    }

    fn pack(&self) -> Vec<u8> {
        msgpack::pack_map(&map! {
            "plan" => self.plan.map().clone(),
            "digest" => self.digest.as_str(),
            "approved_by" => self.approved_by.clone(),
            "applied" => self.applied.clone(),
        })
    }

    fn unpack(id: &str, packed: &[u8]) -> Result<Self, PlanError> {
        let changed = || PlanError::Changed(id.to_owned());
        let record = msgpack::unpack_map(packed).map_err(|_| changed())?;
        let text = |name: &str| record.get(name).and_then(Value::as_str).map(str::to_owned);
        let plan = Plan::from_map(record.get("plan").and_then(Value::as_map).cloned().unwrap_or_default())?;
        let digest = text("digest").ok_or_else(changed)?;
        if digest_of(&plan) != digest {
            return Err(changed());
        }
        Ok(KeptPlan { plan, digest, approved_by: text("approved_by"), applied: text("applied") })
    }
}

fn digest_of(plan: &Plan) -> String {
    hex(Digest::Sha256.of(msgpack::pack_map(plan.map())))
}

/// A job that applies a plan.
#[derive(Debug, Clone)]
pub struct Application {
    /// The id of the plan.
    pub id: String,
    /// The planned function.
    pub fun: String,
    /// The arguments of the planned function, as they are recorded: with masked secrets.
    pub arg: Vec<Value>,
    /// The minions by digest.
    pub digests: Map,
    /// The minions of the job.
    pub minions: Vec<String>,
    /// The id of the job.
    pub jid: String,
}

/// The plans of a master.
pub struct Plans {
    store: BlockingStore,
    /// Held while a plan is read and written.
    changing: Mutex<()>,
}

impl Plans {
    /// Creates the table.
    pub fn new(store: BlockingStore) -> Self {
        Plans { store, changing: Mutex::default() }
    }

    /// Keeps a plan under an id. A plan that is there already stays as it is. Blocks.
    ///
    /// # Errors
    /// The plan is too large, or the store failed.
    pub fn add(&self, id: &str, mut plan: Plan) -> Result<KeptPlan, PlanError> {
        plan.insert("id", id);
        let digest = digest_of(&plan);
        let record = KeptPlan { plan, digest, approved_by: None, applied: None };
        let packed = record.pack();
        if packed.len() > SIZE {
            return Err(PlanError::Large(packed.len()));
        }
        let _changing = self.changing.lock();
        if let Some(bytes) = self.store.get(TABLE, id.as_bytes())? {
            return KeptPlan::unpack(id, &bytes);
        }
        let mut batch = Batch::new();
        let mut ids = Vec::new();
        self.visit(|key, _| ids.push(key))?;
        for oldest in ids.iter().take((ids.len() + 1).saturating_sub(PLANS)) {
            batch.delete(TABLE, oldest.clone());
        }
        batch.put(TABLE, id, packed);
        self.store.write(batch).durable_blocking()?;
        Ok(record)
    }

    /// Returns a plan. Blocks.
    ///
    /// # Errors
    /// There is no such plan, or it was changed.
    pub fn get(&self, id: &str) -> Result<KeptPlan, PlanError> {
        let packed = self.store.get(TABLE, id.as_bytes())?.ok_or_else(|| PlanError::Unknown(id.to_owned()))?;
        KeptPlan::unpack(id, &packed)
    }

    /// Returns what `summary` makes of each plan, newest first; of invalid ones it gets the error. Blocks.
    ///
    /// # Errors
    /// The store failed.
    pub fn list<T>(
        &self,
        mut summary: impl FnMut(String, Result<KeptPlan, PlanError>) -> T,
    ) -> Result<Vec<T>, PlanError> {
        let mut all = Vec::new();
        self.visit(|key, packed| {
            let id = String::from_utf8_lossy(&key).into_owned();
            let plan = KeptPlan::unpack(&id, &packed);
            all.push(summary(id, plan));
        })?;
        all.reverse();
        Ok(all)
    }

    /// Visits the records, oldest first, one at a time: together they may be larger than the memory.
    fn visit(&self, mut each: impl FnMut(Vec<u8>, Vec<u8>)) -> Result<(), StoreError> {
        let mut start = Vec::new();
        while let Some((key, packed)) = self.store.scan(TABLE, &start, 1)?.pop() {
            start.clone_from(&key);
            start.push(0);
            each(key, packed);
        }
        Ok(())
    }

    /// Records the approval of a plan by a user. With `digest`, only of the plan that has it. Blocks.
    ///
    /// # Errors
    /// The user made the plan, it has another digest, or it was applied.
    pub fn approve(&self, id: &str, user: &str, digest: Option<&str>) -> Result<KeptPlan, PlanError> {
        let _changing = self.changing.lock();
        let mut record = self.get(id)?;
        if let Some(digest) = digest.filter(|digest| *digest != record.digest) {
            return Err(PlanError::Digest { id: id.to_owned(), have: record.digest, given: digest.to_owned() });
        }
        if is_same_person(user, record.maker()) {
            return Err(PlanError::Maker { id: id.to_owned(), maker: record.maker().to_owned() });
        }
        if let Some(jid) = record.applied {
            return Err(PlanError::Applied { id: id.to_owned(), jid });
        }
        record.approved_by.get_or_insert_with(|| user.to_owned());
        self.put(id, &record)?;
        Ok(record)
    }

    /// Checks that a job is the one of an approved plan that no other job has applied, and records the job. Blocks.
    ///
    /// # Errors
    /// The job must not be published.
    pub fn apply(&self, job: &Application) -> Result<(), PlanError> {
        let _changing = self.changing.lock();
        let mut record = self.get(&job.id)?;
        let id = || job.id.clone();
        if record.approved_by.is_none() {
            return Err(PlanError::Unapproved(id()));
        }
        // The parts of a batch are published as one job.
        if let Some(jid) = record.applied.as_ref().filter(|jid| **jid != job.jid) {
            return Err(PlanError::Applied { id: id(), jid: jid.clone() });
        }
        let planned = record.plan.minions();
        let differs = [
            ("function", job.fun != record.plan.fun()),
            ("arguments", job.arg != record.plan.arg()),
            ("digests", job.digests != record.plan.digests()),
            ("target", !job.minions.iter().all(|minion| planned.binary_search(minion).is_ok())),
        ];
        if let Some((what, _)) = differs.into_iter().find(|(_, differs)| *differs) {
            return Err(PlanError::Other { id: id(), what });
        }
        if record.applied.is_none() {
            record.applied = Some(job.jid.clone());
            self.put(&job.id, &record)?;
        }
        Ok(())
    }

    /// Removes a plan. Blocks.
    ///
    /// # Errors
    /// There is no such plan, or the store failed.
    pub fn delete(&self, id: &str) -> Result<(), PlanError> {
        let _changing = self.changing.lock();
        if self.store.get(TABLE, id.as_bytes())?.is_none() {
            return Err(PlanError::Unknown(id.to_owned()));
        }
        let mut batch = Batch::new();
        batch.delete(TABLE, id.as_bytes().to_vec());
        Ok(self.store.write(batch).durable_blocking()?)
    }

    fn put(&self, id: &str, record: &KeptPlan) -> Result<(), PlanError> {
        let mut batch = Batch::new();
        batch.put(TABLE, id, record.pack());
        Ok(self.store.write(batch).durable_blocking()?)
    }
}

/// Whether two names of users may be one person: `sudo_alice` is alice, and root may be anybody who has used `sudo`.
fn is_same_person(one: &str, other: &str) -> bool {
    let bare = |name: &str| name.strip_prefix("sudo_").unwrap_or(name).to_owned();
    let is_root = |name: &str| name == "root";
    let by_sudo = |name: &str| name.starts_with("sudo_");
    bare(one) == bare(other) || (is_root(one) && by_sudo(other)) || (by_sudo(one) && is_root(other))
}

#[cfg(test)]
mod tests;
