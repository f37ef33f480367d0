//! `local`: prints returns and events, for trying out `--return`.

use std::io::Write;

use brine_event::Event;
use brine_job::Return;
use brine_value::{Value, map, python};

use crate::{Backend, Returner, ReturnerError};

const NAME: &str = "local";

pub(crate) const BACKEND: Backend = Backend {
    name: NAME,
    doc: "Prints each return and event on the standard output of the daemon or command. It stores nothing.",
    options: &[],
    open: |_| Ok(Box::new(Local)),
    check: |_| Ok(()),
};

struct Local;

/// Prints a value in Python's notation, as Salt's `print` does.
fn print(value: &Value) -> Result<(), ReturnerError> {
    let mut line = python::repr(value);
    line.push('\n');
    let mut out = std::io::stdout().lock();
    let printed = out.write_all(line.as_bytes()).and_then(|()| out.flush());
    printed.map_err(|error| ReturnerError::Refused { returner: NAME, reason: format!("printing it failed: {error}") })
}

impl Returner for Local {
    fn name(&self) -> &'static str {
        NAME
    }

    fn stores_jobs(&self) -> bool {
        false
    }

    fn save_returns(&self, returns: &[Return]) -> Result<(), ReturnerError> {
        returns.iter().try_for_each(|job_return| print(&job_return.map().clone().into()))
    }

    fn event_return(&self, events: &[Event]) -> Result<(), ReturnerError> {
        if events.is_empty() {
            return Ok(());
        }
        let events = events.iter().map(|event| Value::Map(map! {"data" => event.data(), "tag" => event.tag()}));
        print(&events.collect::<Vec<_>>().into())
    }
}
