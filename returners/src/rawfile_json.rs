//! `rawfile_json`: every return and event as one line of JSON, appended to a file.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::PathBuf;

use brine_core::Value;
use brine_core::event::Event;
use brine_core::job::Return;
use brine_core::map;
use brine_core::value::json;

use crate::{Options, Returner, ReturnerError};

/// Salt's name of it.
pub(crate) const NAME: &str = "rawfile_json";

pub(crate) fn open(options: &Options) -> Result<Box<dyn Returner>, ReturnerError> {
    let path = options.get(NAME, "filename", PathBuf::from("/var/log/salt/events"))?;
    Ok(Box::new(RawfileJson { path }))
}

struct RawfileJson {
    path: PathBuf,
}

impl RawfileJson {
    /// Appends all lines in one write, so that lines of several processes do not mix.
    fn append(&self, lines: &str) -> Result<(), ReturnerError> {
        let failed = |error: std::io::Error| ReturnerError::Backend {
            returner: NAME,
            place: self.path.display().to_string(),
            reason: error.to_string(),
        };
        let mut file = OpenOptions::new().create(true).append(true).open(&self.path).map_err(failed)?;
        file.write_all(lines.as_bytes()).map_err(failed)
    }
}

impl Returner for RawfileJson {
    fn name(&self) -> &'static str {
        NAME
    }

    fn returner(&self, job_return: &Return) -> Result<(), ReturnerError> {
        self.append(&format!("{}\n", json::to_json(&Value::Map(job_return.map().clone()))))
    }

    fn event_return(&self, events: &[Event]) -> Result<(), ReturnerError> {
        let lines = events.iter().map(|event| {
            let line = map! {"tag" => event.tag(), "data" => event.data()};
            format!("{}\n", json::to_json(&line.into()))
        });
        self.append(&lines.collect::<String>())
    }
}
