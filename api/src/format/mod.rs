//! The formats of requests and responses: JSON, YAML and forms.

use axum::http::{HeaderMap, StatusCode, header};
use brine_function::arguments::parse_value;
use brine_value::{Map, Value, json};
use brine_yaml::Style;
use bytes::Bytes;
use tokio::sync::Semaphore;

use crate::error::ApiError;

/// The number of large or YAML bodies parsed concurrently.
static PARSERS: Semaphore = Semaphore::const_new(2);
/// The size in bytes from which bodies are parsed on another thread.
const LARGE: usize = 64 << 10;

/// The format of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    Json,
    Yaml,
}

impl Format {
    /// Selects the format of a response by the header `Accept`, as Salt does.
    pub fn accepted(headers: &HeaderMap) -> Result<Self, ApiError> {
        let lines: Vec<&str> = headers.get_all(header::ACCEPT).iter().filter_map(|line| line.to_str().ok()).collect();
        if lines.is_empty() {
            return Ok(Format::Json);
        }
        let mut ranges: Vec<(f32, &str)> =
            lines.iter().flat_map(|line| line.split(',')).filter_map(media_range).collect();
        ranges.sort_by(|(one, _), (other, _)| other.total_cmp(one));
        let format = ranges.into_iter().find_map(|(_, range)| match range {
            "*/*" | "application/*" | "application/json" => Some(Format::Json),
            "application/x-yaml" => Some(Format::Yaml),
            _ => None,
        });
        format.ok_or_else(|| {
            let message = "The response is application/json or application/x-yaml: accept one of them";
            ApiError::new(StatusCode::NOT_ACCEPTABLE, message)
        })
    }

    /// Returns the content type of the format.
    pub fn content_type(self) -> &'static str {
        match self {
            Format::Json => "application/json",
            Format::Yaml => "application/x-yaml",
        }
    }

    /// Serializes a value.
    pub fn write(self, value: &Value) -> String {
        match self {
            Format::Json => json::to_json(value),
            Format::Yaml => brine_yaml::dump(value, Style::BLOCK),
        }
    }
}

/// Parses a media range into quality and name; `None` if it is malformed or its quality is 0.
fn media_range(text: &str) -> Option<(f32, &str)> {
    let mut parts = text.split(';').map(str::trim);
    let name = parts.next().filter(|name| !name.is_empty())?;
    let quality = parts.find_map(|part| part.strip_prefix("q=")).map_or(Some(1.0), |q| q.parse().ok())?;
    (quality > 0.0).then_some((quality, name))
}

/// Whether a client prefers a page to data: its `Accept` admits `text/html` and is not exactly `*/*`.
pub(crate) fn wants_page(headers: &HeaderMap) -> bool {
    let lines = headers.get_all(header::ACCEPT).iter().filter_map(|line| line.to_str().ok());
    let mut ranges = lines.flat_map(|line| line.split(',')).filter_map(media_range);
    ranges.any(|(_, range)| matches!(range, "text/html" | "text/*"))
}

/// The body of a request.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Payload {
    /// The received bytes.
    pub raw: Bytes,
    /// The parsed data; `None` if the body is empty.
    pub data: Option<Value>,
}

/// The content type of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Json,
    Form,
    Yaml,
    /// JSON, or else a string.
    Text,
}

impl Kind {
    fn of(headers: &HeaderMap) -> Result<Self, ApiError> {
        let unsupported = || ApiError::new(StatusCode::NOT_ACCEPTABLE, "Content type not supported");
        let Some(named) = headers.get(header::CONTENT_TYPE) else { return Ok(Kind::Form) };
        let named = named.to_str().map_err(|_| unsupported())?;
        let name = named.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        match name.as_str() {
            "application/json" => Ok(Kind::Json),
            "application/x-www-form-urlencoded" => Ok(Kind::Form),
            "application/x-yaml" | "application/yaml" | "text/yaml" => Ok(Kind::Yaml),
            "text/plain" => Ok(Kind::Text),
            _ => Err(unsupported()),
        }
    }
}

impl Payload {
    /// Parses a body.
    pub async fn parse(headers: &HeaderMap, raw: Bytes) -> Result<Self, ApiError> {
        if raw.is_empty() {
            return Ok(Payload::default());
        }
        let kind = Kind::of(headers)?;
        if kind != Kind::Yaml && raw.len() < LARGE {
            let data = read(kind, &raw)?;
            return Ok(Payload { raw, data: Some(data) });
        }
        // Unauthenticated clients can send any body, and YAML aliases expand in memory: limit concurrent parsing.
        let _turn = PARSERS.acquire().await.map_err(|_| ApiError::internal())?;
        let body = raw.clone();
        let parsed = tokio::task::spawn_blocking(move || read(kind, &body)).await;
        let data = parsed.map_err(|_| ApiError::internal())??;
        Ok(Payload { raw, data: Some(data) })
    }

    /// Returns the chunks of a lowstate: a single mapping is a list of one.
    pub fn lowstate(self) -> Result<Vec<Map>, ApiError> {
        let no_list = || ApiError::bad_request("Lowstates must be a list");
        let chunks = match self.data {
            Some(Value::Map(one)) if !one.is_empty() => vec![Value::Map(one)],
            Some(Value::List(all)) => all,
            _ => return Err(no_list()),
        };
        let chunk = |chunk: Value| match chunk {
            Value::Map(mut chunk) => {
                // An `arg` that is not a list becomes a list of one.
                if let Some(arg) = chunk.get_mut("arg").filter(|arg| arg.as_list().is_none()) {
                    *arg = if arg.is_nil() { Value::List(Vec::new()) } else { Value::List(vec![arg.clone()]) };
                }
                Ok(chunk)
            }
            _ => Err(ApiError::bad_request("A lowstate must be a list of mappings")),
        };
        chunks.into_iter().map(chunk).collect()
    }
}

fn read(kind: Kind, raw: &[u8]) -> Result<Value, ApiError> {
    let text = std::str::from_utf8(raw).map_err(|_| ApiError::bad_request("The body is not UTF-8"))?;
    match kind {
        Kind::Json => json::from_json(text).map_err(|error| {
            tracing::debug!(%error, "the body of a request is not valid JSON");
            ApiError::bad_request("Invalid JSON document")
        }),
        Kind::Yaml => brine_yaml::load(text).map_err(|error| {
            tracing::debug!(%error, "the body of a request is not valid YAML");
            ApiError::bad_request("Invalid YAML document")
        }),
        Kind::Text => Ok(json::from_json(text).unwrap_or_else(|_| text.into())),
        Kind::Form => Ok(form(text).into()),
    }
}

/// Parses a form. Repeated fields become lists; `arg` and `kwarg` are parsed as on a command line.
fn form(text: &str) -> Map {
    let mut fields: Map = Map::new();
    for (name, value) in form_urlencoded::parse(text.as_bytes()) {
        // As in Salt, fields without a value are skipped.
        if value.is_empty() {
            continue;
        }
        let is_parsed = matches!(&*name, "arg" | "kwarg");
        let value = if is_parsed && !is_keyword(&value) { parse_value(&value) } else { Value::from(&*value) };
        match fields.get_mut(&Value::from(&*name)) {
            Some(Value::List(all)) if all.len() > 1 || name == "arg" => all.push(value),
            Some(first) => *first = Value::List(vec![std::mem::take(first), value]),
            None if name == "arg" => _ = fields.insert("arg".into(), Value::List(vec![value])),
            None => _ = fields.insert((&*name).into(), value),
        }
    }
    fields
}

/// Whether an argument has the form `name=value`, which stays a string here.
fn is_keyword(text: &str) -> bool {
    let parsed = brine_function::arguments::parse(&[text.to_owned()], &[]);
    !parsed.keyword.is_empty()
}

#[cfg(test)]
mod tests;
