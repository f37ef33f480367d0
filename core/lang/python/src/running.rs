//! A running process with the mappings that it has: what calls share, and leases keep alive.

use std::sync::Arc;

use brine_value::{Map, map};
use parking_lot::Mutex;

use crate::PythonError;
use crate::process::Process;

/// The maximum number of shared mappings, such as `__opts__`, that a process keeps.
const MAX_DATA: usize = 16;

/// A process, and the data that has been sent to it.
pub(crate) struct Running {
    pub process: Arc<Process>,
    pub sent: Mutex<Sent>,
}

impl Running {
    /// Nothing has been sent to the process yet.
    pub fn new(process: Arc<Process>) -> Self {
        Running { process, sent: Mutex::default() }
    }
}

/// The data that has been sent to a process.
#[derive(Default)]
pub(crate) struct Sent {
    /// The sent mappings, each with its number, least recently used first. They are compared by address, so they are
    /// kept alive.
    data: Vec<(i64, Arc<Map>)>,
    next: i64,
}

impl Sent {
    /// Returns the number of a mapping. Sends the mapping if the process does not have it.
    pub fn share(&mut self, process: &Process, data: &Arc<Map>) -> Result<i64, PythonError> {
        if let Some(index) = self.data.iter().position(|(_, mapping)| Arc::ptr_eq(mapping, data)) {
            // The most recently used mapping moves to the end, so that a call does not evict the data that it refers
            // to.
            let entry = self.data.remove(index);
            let number = entry.0;
            self.data.push(entry);
            return Ok(number);
        }
        if self.data.len() >= MAX_DATA {
            let (number, _) = self.data.remove(0);
            process.send(&map! {"op" => "drop", "id" => number})?;
        }
        let number = self.next;
        self.next += 1;
        process.send(&map! {"op" => "data", "id" => number, "value" => (**data).clone()})?;
        self.data.push((number, Arc::clone(data)));
        Ok(number)
    }
}
