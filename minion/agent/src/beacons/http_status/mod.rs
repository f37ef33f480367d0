//! `http_status`: web pages whose status or content is not the expected one.

use std::time::Duration;

use brine_host::web;
use brine_text::python_regex::Regex;
use brine_value::json::from_json;
use brine_value::{Map, Value, map};

use super::settings::{Settings, number, text};
use super::{Beacon, Kind, Options, PollContext, entry};

/// The maximum timeout of a request: other beacons are not polled meanwhile.
const MAX_TIMEOUT: Duration = Duration::from_secs(5);
/// The maximum number of sites: all are requested at the same time.
const MAX_SITES: usize = 64;
/// The maximum size of a response that is read, in bytes.
const MAX_BODY: u64 = 1 << 20;

struct Sites(Vec<Site>);

/// A URL with the checks of its response.
#[derive(Debug, PartialEq)]
struct Site {
    url: String,
    timeout: Duration,
    status: Vec<Check>,
    content: Vec<Check>,
}

/// A comparison of the status or content of a response, or of the content's value at a path, with an expected value.
#[derive(Debug, PartialEq)]
struct Check {
    path: String,
    expected: Value,
    comparison: Comparison,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Comparison {
    Equal,
    Less,
    Greater,
    LessOrEqual,
    GreaterOrEqual,
    NotEqual,
    Search,
}

/// The operators of `comp`.
const COMPARISONS: &[(&str, Comparison)] = &[
    ("==", Comparison::Equal),
    ("<", Comparison::Less),
    (">", Comparison::Greater),
    ("<=", Comparison::LessOrEqual),
    (">=", Comparison::GreaterOrEqual),
    ("!=", Comparison::NotEqual),
    ("search", Comparison::Search),
];

pub(super) const KIND: Kind = Kind {
    name: "http_status",
    doc: "Web pages whose status or content is not the expected one.",
    options: Options::Named(&[entry(
        "sites",
        "Required. A mapping of names to `url`, `timeout` (5 seconds, and at most that), `status` and `content`: each \
         a list of checks with `value`, `comp` (`==`, `!=`, `<`, `<=`, `>`, `>=` or `search`) and `path`, such as \
         `disks:0:state`, into a content that is JSON. A check passes if `value` `comp` what was received is true: \
         `400 > status`.",
    )]),
    fields: &[
        entry("url", "The URL."),
        entry("expected", "`value` of the check that failed."),
        entry("received", "The status, the content, or the part at the path."),
        entry("path", "The path of the check, or an empty string."),
        entry("status_code", "Nothing, if there was no response."),
        entry("error", "The error of a request without a response, or of a content that is not JSON."),
    ],
    start,
    ..Kind::DEFAULT
};

fn start(settings: &Settings) -> Result<Box<dyn Beacon>, String> {
    let sites = settings.map("sites")?;
    if sites.is_empty() || sites.len() > MAX_SITES {
        return Err(format!("option 'sites': expected 1 to {MAX_SITES} sites, got {}", sites.len()));
    }
    let sites = sites.iter().map(|(name, options)| site(options).map_err(|error| format!("sites: {name}: {error}")));
    Ok(Box::new(Sites(sites.collect::<Result<_, _>>()?)))
}

fn site(options: &Value) -> Result<Site, String> {
    let options = options.as_map().ok_or_else(|| format!("expected a mapping of options, got {options}"))?;
    let url = text("url", options.get("url").ok_or("option 'url' is missing")?)?;
    let timeout = match options.get("timeout") {
        None => MAX_TIMEOUT,
        Some(value) => Duration::try_from_secs_f64(number("timeout", value)?)
            .ok()
            .filter(|timeout| !timeout.is_zero())
            .ok_or_else(|| format!("option 'timeout': expected seconds, got {value}"))?
            .min(MAX_TIMEOUT),
    };
    let checks = |name: &str| match options.get(name) {
        None | Some(Value::Nil) => Ok(Vec::new()),
        Some(Value::List(list)) => list.iter().map(check).collect(),
        Some(other) => Err(format!("option '{name}': expected a list of checks, got {other}")),
    };
    Ok(Site { url, timeout, status: checks("status")?, content: checks("content")? })
}

fn check(options: &Value) -> Result<Check, String> {
    let operator = options.get("comp").map(ToString::to_string).ok_or("a check has no 'comp'")?;
    let expected = options.get("value").cloned().ok_or("a check has no 'value'")?;
    let entry = COMPARISONS.iter().find(|(name, _)| *name == operator);
    let names = || COMPARISONS.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
    let (_, comparison) = entry.ok_or_else(|| format!("comp '{operator}' is none of {}", names()))?;
    if *comparison == Comparison::Search {
        Regex::new(&expected.to_string()).map_err(|error| format!("value '{expected}': {error}"))?;
    }
    let path = options.get("path").filter(|path| !path.is_nil()).map(ToString::to_string).unwrap_or_default();
    Ok(Check { path, expected, comparison: *comparison })
}

impl Comparison {
    /// Returns whether the comparison holds. Numbers are ordered with numbers and strings with strings; other values
    /// have no order.
    fn holds(self, expected: &Value, received: &Value) -> bool {
        use std::cmp::Ordering::{Greater, Less};
        let as_number = |value: &Value| match value {
            Value::Int(_) | Value::UInt(_) | Value::Float(_) => number("", value).ok(),
            _ => None,
        };
        let order = match (as_number(expected), as_number(received), expected, received) {
            (Some(expected), Some(received), ..) => expected.partial_cmp(&received),
            (_, _, Value::Str(expected), Value::Str(received)) => Some(expected.cmp(received)),
            _ => None,
        };
        let is_equal = || order.map_or_else(|| expected == received, std::cmp::Ordering::is_eq);
        match self {
            Comparison::Equal => is_equal(),
            Comparison::NotEqual => !is_equal(),
            Comparison::Less => order == Some(Less),
            Comparison::Greater => order == Some(Greater),
            Comparison::LessOrEqual => order.is_some_and(|order| order != Greater),
            Comparison::GreaterOrEqual => order.is_some_and(|order| order != Less),
            Comparison::Search => Regex::new(&expected.to_string())
                .is_ok_and(|regex| regex.is_match(&received.to_string()).unwrap_or(false)),
        }
    }
}

impl Site {
    /// Requests the URL and returns an event for each failed check.
    fn failures(&self, access: &web::Access) -> Vec<Map> {
        let (status, body) = match self.response(access) {
            Ok(response) => response,
            Err(error) => return vec![map! {"status_code" => Value::Nil, "url" => &self.url, "error" => error}],
        };
        let mut failures = failed(&self.url, &self.status, &status.into());
        if self.content.is_empty() {
            return failures;
        }
        match from_json(&String::from_utf8_lossy(&body)) {
            Ok(content) => failures.extend(failed(&self.url, &self.content, &content)),
            Err(error) => failures.push(map! {
                "status_code" => status, "url" => &self.url, "error" => format!("the content is not JSON: {error}"),
            }),
        }
        failures
    }

    fn response(&self, access: &web::Access) -> Result<(u16, Vec<u8>), String> {
        let access = web::Access { max_body: MAX_BODY, ..access.clone() };
        let options = web::Options { timeout: self.timeout, access: access.clone(), ..web::Options::default() };
        let client = web::Client::new(options).map_err(|error| error.to_string())?;
        let mut response = client.get(&self.url).map_err(|error| error.to_string())?;
        let status = response.status().as_u16();
        if self.content.is_empty() {
            return Ok((status, Vec::new()));
        }
        Ok((status, web::read(&mut response, &access).map_err(|error| error.to_string())?))
    }
}

fn failed(url: &str, checks: &[Check], received: &Value) -> Vec<Map> {
    let one = |Check { path, expected, comparison }: &Check| {
        let received = if path.is_empty() { Some(received) } else { brine_yaml::traverse(received, path, ":") };
        let Some(received) = received.filter(|value| !value.is_nil()) else {
            tracing::info!(beacon = "http_status", url = web::redacted(url), path, "the response has no such path");
            return None;
        };
        let passes = comparison.holds(expected, received);
        (!passes).then(
            || map! {"expected" => expected.clone(), "received" => received.clone(), "url" => url, "path" => path},
        )
    };
    checks.iter().filter_map(one).collect()
}

impl Beacon for Sites {
    fn poll(&mut self, poll: &PollContext<'_>) -> Result<Vec<Map>, String> {
        let access = &poll.context.web();
        Ok(std::thread::scope(|scope| {
            let running: Vec<_> = self.0.iter().map(|site| scope.spawn(move || site.failures(access))).collect();
            running.into_iter().flat_map(|site| site.join().unwrap_or_default()).collect()
        }))
    }
}

#[cfg(test)]
mod tests;
