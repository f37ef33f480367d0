//! `service`: services that run or do not run, at each poll or on a change.

use std::path::Path;

use brine_function::Args;
use brine_value::{Map, Value, map};

use super::settings::{Settings, flag, number, text};
use super::{Beacon, Kind, Options, PollContext, entry};

struct Services(Vec<Service>);

struct Service {
    name: String,
    on_change: bool,
    at_start: bool,
    /// The number of seconds that a change must last before it is reported.
    delay: i64,
    /// The state to which reports are limited (`is_running_state`).
    only: Option<bool>,
    /// The path of a PID file that remains after a crash (`uncleanshutdown`).
    pid_file: Option<String>,
    last: Option<bool>,
    /// The time of a change that is not reported yet.
    since: Option<i64>,
}

pub(super) const KIND: Kind = Kind {
    name: "service",
    doc: "Services that run or do not run, at each poll.",
    tag: "the name of the service",
    options: Options::Named(&[entry(
        "services",
        "Required. A mapping of service names to options, or nothing: `onchangeonly` (False), `emitatstartup` (True: \
         report at the first poll, with `onchangeonly`), `delay` (0: the number of seconds that a change must last), \
         `is_running_state` (report only this state), `uncleanshutdown` (the path of a PID file that remains after a \
         crash).",
    )]),
    fields: &[
        entry(
            "<service>",
            "A mapping with `running`, and with `uncleanshutdown` for a stopped service whether the PID file exists.",
        ),
        entry("service_name", "The name of the service."),
    ],
    start,
    ..Kind::DEFAULT
};

fn start(settings: &Settings) -> Result<Box<dyn Beacon>, String> {
    let services = settings.map("services")?;
    let one = |(name, options): (&Value, &Value)| {
        let none = Map::new();
        let options = match options {
            Value::Nil => &none,
            Value::Map(options) => options,
            other => return Err(format!("service '{name}': expected a mapping of options, got {other}")),
        };
        let flagged = |name: &str, default| options.get(name).map_or(Ok(default), |value| flag(name, value));
        Ok(Service {
            name: name.to_string(),
            on_change: flagged("onchangeonly", false)?,
            at_start: flagged("emitatstartup", true)?,
            delay: options.get("delay").map_or(Ok(0.0), |delay| number("delay", delay))?.round() as i64,
            only: options.get("is_running_state").and_then(Value::as_bool),
            pid_file: options.get("uncleanshutdown").map(|path| text("uncleanshutdown", path)).transpose()?,
            last: None,
            since: None,
        })
    };
    Ok(Box::new(Services(services.iter().map(one).collect::<Result<_, String>>()?)))
}

impl Service {
    /// Returns whether the service is reported at this time in seconds.
    fn is_reported(&mut self, running: bool, now: i64) -> bool {
        if self.only.is_some_and(|only| only != running) {
            return false;
        }
        if !self.on_change {
            return true;
        }
        let last = self.last.replace(running);
        if last.is_none() && !self.at_start {
            return false;
        }
        if last != Some(running) {
            if self.delay <= 0 {
                return true;
            }
            self.since = Some(now);
        }
        let report = self.since.is_some_and(|since| now - since > self.delay);
        if report {
            self.since = None;
        }
        report
    }

    fn event(&self, running: bool) -> Map {
        let mut status = map! {"running" => running};
        if let Some(path) = self.pid_file.as_ref().filter(|_| !running) {
            status.insert("uncleanshutdown".into(), Path::new(path).exists().into());
        }
        map! {self.name.as_str() => status, "service_name" => &self.name, "tag" => &self.name}
    }
}

impl Beacon for Services {
    fn poll(&mut self, poll: &PollContext<'_>) -> Result<Vec<Map>, String> {
        let now = poll.now.timestamp().as_second();
        let mut report = Vec::new();
        for service in &mut self.0 {
            let status = poll.context.call("service.status", Args::positional([service.name.as_str().into()]));
            let running = status.map_err(|error| error.to_string())?.is_truthy();
            if service.is_reported(running, now) {
                report.push(service.event(running));
            }
        }
        Ok(report)
    }
}

#[cfg(test)]
mod tests;
