//! `carbon`: sends the numbers in returns and events to a Graphite server, as plain text or pickled.

mod pickle;

use std::io::Write;

use brine_event::Event;
use brine_job::Return;
use brine_value::{Value, python};

use crate::connection::connect;
use crate::{Backend, BackendOption, Options, Returner, ReturnerError};

const NAME: &str = "carbon";

pub(crate) const BACKEND: Backend = Backend {
    name: NAME,
    doc: "Sends the numbers in returns, and in the field `data` of events, to a Graphite server, each under its path in the \
          data. Write-only.",
    options: &[
        BackendOption { name: "carbon.host", default: None, doc: "The host name or address of the server. Required." },
        BackendOption {
            name: "carbon.port",
            default: None,
            doc: "The port of the server: commonly 2003 for text and 2004 for pickle. Required.",
        },
        BackendOption {
            name: "carbon.mode",
            default: Some("text"),
            doc: "The protocol of the port: `text` or `pickle`.",
        },
        BackendOption {
            name: "carbon.skip_on_error",
            default: Some("False"),
            doc: "Whether values other than numbers are left out of returns; otherwise one of them is an error. Events never \
                  have such errors.",
        },
        BackendOption {
            name: "carbon.metric_base_pattern",
            default: Some("[module].[function].[minion_id]"),
            doc: "The path in front of each number of a return. Functions of `virt` have no minion id in the default.",
        },
    ],
    open: |options| Ok(Box::new(Carbon::new(options)?)),
    check: |options| Carbon::new(options).map(drop),
};

/// The number of metrics in one pickled message: the server refuses messages over 1 MiB.
const PAGE: usize = 500;

/// A number, its path and its time in seconds.
struct Metric {
    path: String,
    value: f64,
    time: i64,
}

struct Carbon {
    host: String,
    port: u16,
    is_pickled: bool,
    skips: bool,
    pattern: Option<String>,
}

/// Returns a float as Python's `float()` does, or `None` for values that it refuses.
fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Bool(flag) => Some(f64::from(u8::from(*flag))),
        Value::Int(number) => Some(*number as f64),
        Value::UInt(number) => Some(*number as f64),
        Value::Float(number) => Some(*number),
        Value::Big(_) => value.to_string().parse().ok(),
        Value::Str(text) => text.trim().parse().ok(),
        Value::Nil | Value::Bytes(_) | Value::List(_) | Value::Map(_) => None,
    }
}

/// Returns a part of a path without the characters that would end it: data must not look like another metric.
fn part(text: &str) -> String {
    text.chars().map(|c| if c.is_whitespace() || c.is_control() { '_' } else { c }).collect()
}

impl Carbon {
    fn new(options: &Options) -> Result<Self, ReturnerError> {
        let mode: String = options.get(NAME, "mode")?.unwrap_or_else(|| "text".to_owned());
        let is_pickled = match mode.to_lowercase().as_str() {
            "text" => false,
            "pickle" => true,
            other => {
                let reason = format!("'{other}' is unknown: expected text or pickle");
                return Err(ReturnerError::Option { option: "carbon.mode".to_owned(), reason });
            }
        };
        Ok(Carbon {
            host: options.required(NAME, "host")?,
            port: options.required(NAME, "port")?,
            is_pickled,
            skips: options.get(NAME, "skip_on_error")?.unwrap_or(false),
            pattern: options.get(NAME, "metric_base_pattern")?,
        })
    }

    /// Returns the path in front of the numbers of a return.
    fn base(&self, job_return: &Return) -> String {
        let id = job_return.id().as_str().replace('.', "_");
        let fun = job_return.fun();
        match &self.pattern {
            None if fun.starts_with("virt.") => part(fun),
            None => part(&format!("{fun}.{id}")),
            Some(pattern) => {
                let (module, function) = fun.split_once('.').unwrap_or((fun, ""));
                let filled = pattern.replace("[module]", module).replace("[function]", function);
                part(&filled.replace("[minion_id]", &id))
            }
        }
    }

    /// Collects the numbers of a value.
    fn walk(path: &str, value: &Value, time: i64, skips: bool, to: &mut Vec<Metric>) -> Result<(), ReturnerError> {
        match value {
            Value::Map(map) => map.iter().try_for_each(|(key, value)| {
                Self::walk(&format!("{path}.{}", part(&key.to_string())), value, time, skips, to)
            }),
            Value::List(items) => items
                .iter()
                .try_for_each(|item| Self::walk(&format!("{path}.{}", part(&item.to_string())), item, time, skips, to)),
            other => match number(other) {
                Some(value) => {
                    to.push(Metric { path: path.to_owned(), value, time });
                    Ok(())
                }
                None if skips => Ok(()),
                None => Err(ReturnerError::Refused {
                    returner: NAME,
                    reason: format!(
                        "{path} is not a number: set `carbon.skip_on_error: True` to leave such values out"
                    ),
                }),
            },
        }
    }

    fn send(&self, metrics: &[Metric]) -> Result<(), ReturnerError> {
        if metrics.is_empty() {
            return Ok(());
        }
        let bytes = if self.is_pickled { pickle::messages(metrics, PAGE) } else { lines(metrics).into_bytes() };
        let sent = connect(&self.host, self.port).and_then(|mut stream| stream.write_all(&bytes));
        sent.map_err(|error| ReturnerError::unreachable(NAME, format!("carbon at {}:{}", self.host, self.port), error))
    }
}

/// Returns metrics in the plaintext protocol.
fn lines(metrics: &[Metric]) -> String {
    let line = |metric: &Metric| format!("{} {} {}\n", metric.path, python::repr(&metric.value.into()), metric.time);
    metrics.iter().map(line).collect()
}

impl Returner for Carbon {
    fn name(&self) -> &'static str {
        NAME
    }

    fn stores_jobs(&self) -> bool {
        false
    }

    fn save_returns(&self, returns: &[Return]) -> Result<(), ReturnerError> {
        let mut metrics = Vec::new();
        let time = brine_clock::now().timestamp().as_second();
        for job_return in returns {
            Self::walk(&self.base(job_return), job_return.value(), time, self.skips, &mut metrics)?;
        }
        self.send(&metrics)
    }

    fn event_return(&self, events: &[Event]) -> Result<(), ReturnerError> {
        let mut metrics = Vec::new();
        let time = brine_clock::now().timestamp().as_second();
        for event in events {
            if let Some(data) = event.data().get("data") {
                Self::walk(&part(event.tag()), data, time, true, &mut metrics)?;
            }
        }
        self.send(&metrics)
    }
}

#[cfg(test)]
mod tests;
