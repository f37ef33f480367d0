//! Leases keep a process alive while the data of a rendered file refers to functions in it.
//!
//! A state run may call such a function long after the file was rendered. By then, the process might have ended because
//! it was idle, or have been replaced by one that has loaded other modules.

use std::collections::HashSet;
use std::sync::Arc;

use brine_value::Value;
use parking_lot::Mutex;

use crate::running::Running;

/// The key of a mapping that refers to a Python function.
const MARK: &str = "__python_function__";

/// Keeps a process alive until it is dropped.
pub struct Lease {
    running: Arc<Running>,
    tokens: HashSet<String>,
}

impl Lease {
    /// Creates a lease on the process of a result; `None` if the result refers to no function.
    pub(crate) fn of(running: &Arc<Running>, value: &Value) -> Option<Self> {
        let mut tokens = HashSet::new();
        find(value, &mut tokens);
        if tokens.is_empty() {
            return None;
        }
        running.process.lease();
        Some(Lease { running: Arc::clone(running), tokens })
    }

    pub(crate) fn running(&self) -> &Arc<Running> {
        &self.running
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.running.process.release();
    }
}

fn find(value: &Value, tokens: &mut HashSet<String>) {
    match value {
        Value::List(items) => items.iter().for_each(|item| find(item, tokens)),
        Value::Map(map) => {
            tokens.extend(token(value).map(str::to_owned));
            map.values().for_each(|value| find(value, tokens));
        }
        _ => {}
    }
}

/// Returns the token of a function, if the value refers to one.
pub fn token(value: &Value) -> Option<&str> {
    value.get(MARK).and_then(Value::as_str)
}

/// The leases of a job. They are released when the last clone is dropped.
#[derive(Clone, Default)]
pub struct Leases(Arc<Mutex<Vec<Arc<Lease>>>>);

impl Leases {
    /// Adds a lease.
    pub fn add(&self, lease: Lease) {
        self.0.lock().push(Arc::new(lease));
    }

    /// Returns the lease on the process that contains the function with this token.
    pub fn with(&self, token: &str) -> Option<Arc<Lease>> {
        self.0.lock().iter().find(|lease| lease.tokens.contains(token)).cloned()
    }
}
