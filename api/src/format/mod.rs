//! The formats of requests and responses: JSON, YAML and forms.

use std::sync::Arc;

use axum::http::{HeaderMap, StatusCode, header};
use brine_function::arguments::{Argument, parse_within};
use brine_value::json::{JsonError, from_json_within};
use brine_value::{Map, Value, json};
use brine_yaml::Style;
use bytes::Bytes;

use crate::error::ApiError;
use crate::limits::{Owner, Parsers};
use crate::metrics;

/// The sizes in bytes from which JSON and forms are parsed on another thread: a tenth of a millisecond of work.
const LARGE_JSON: usize = 16 << 10;
const LARGE_FORM: usize = 1 << 10;
/// The maximum number of fields of a form.
const MAX_FIELDS: usize = 1000;

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
    /// The memory of the data, in bytes.
    pub memory: usize,
    /// The further memory that values within the data may take, once they are parsed, in bytes.
    pub left: usize,
}

/// The content type of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
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
    /// Parses a body whose value may take `limit` bytes. Work that takes long is done when it is the owner's turn.
    pub async fn parse(
        headers: &HeaderMap,
        raw: Bytes,
        parsers: &Arc<Parsers>,
        owner: Owner,
        limit: usize,
    ) -> Result<Self, ApiError> {
        if raw.is_empty() {
            return Ok(Payload { left: limit, ..Payload::default() });
        }
        let kind = Kind::of(headers)?;
        let is_quick = match kind {
            Kind::Json | Kind::Text => raw.len() < LARGE_JSON,
            Kind::Form => raw.len() < LARGE_FORM,
            Kind::Yaml => false,
        };
        let (data, left) = if is_quick {
            read_within(kind, &raw, limit)?
        } else {
            let body = raw.clone();
            parsers.run(owner, move || read_within(kind, &body, limit)).await??
        };
        Ok(Payload { raw, data: Some(data), memory: limit - left, left })
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
            Value::Map(chunk) => Ok(chunk),
            _ => Err(ApiError::bad_request("A lowstate must be a list of mappings")),
        };
        chunks.into_iter().map(chunk).collect()
    }
}

/// Parses a body. Returns the data, and the memory that is left.
pub(crate) fn read_within(kind: Kind, raw: &[u8], limit: usize) -> Result<(Value, usize), ApiError> {
    let mut left = limit;
    let data = read(kind, raw, &mut left)?;
    Ok((data, left))
}

fn read(kind: Kind, raw: &[u8], memory: &mut usize) -> Result<Value, ApiError> {
    let text = std::str::from_utf8(raw).map_err(|_| ApiError::bad_request("The body is not UTF-8"))?;
    let limit = *memory;
    match kind {
        Kind::Json => from_json_within(text, memory).map_err(|error| match error {
            JsonError::TooLarge(_) => too_large(limit),
            JsonError::Syntax(error) => {
                tracing::debug!(%error, "the body of a request is not valid JSON");
                ApiError::bad_request("Invalid JSON document")
            }
        }),
        Kind::Yaml => brine_yaml::load_untrusted(text, memory).map_err(|error| {
            if *memory == 0 {
                return too_large(limit);
            }
            tracing::debug!(%error, "the body of a request is not valid YAML");
            ApiError::bad_request("Invalid YAML document")
        }),
        Kind::Text => match from_json_within(text, memory) {
            Ok(value) => Ok(value),
            Err(JsonError::TooLarge(_)) => Err(too_large(limit)),
            Err(JsonError::Syntax(_)) => {
                *memory = memory.saturating_sub(text.len());
                Ok(text.into())
            }
        },
        Kind::Form => form(text, memory).map(Value::from),
    }
}

fn too_large(limit: usize) -> ApiError {
    metrics::BODIES_REFUSED.with(&["memory"]).add(1);
    let message = format!("The body takes too much memory when it is parsed: {limit} bytes are allowed for its size");
    ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, message)
}

/// The memory of a field of a form beyond its text, in bytes.
const FIELD_COST: usize = 200;

/// Parses a form. Repeated fields become lists; `arg` and `kwarg` are parsed as on a command line, except for
/// `name=value`, which stays a string here.
fn form(text: &str, memory: &mut usize) -> Result<Map, ApiError> {
    let limit = *memory;
    let mut fields: Map = Map::new();
    for (number, (name, value)) in form_urlencoded::parse(text.as_bytes()).enumerate() {
        if number >= MAX_FIELDS {
            metrics::BODIES_REFUSED.with(&["size"]).add(1);
            let message = format!("The form has more than {MAX_FIELDS} fields: send JSON");
            return Err(ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, message));
        }
        // As in Salt, fields without a value are skipped.
        if value.is_empty() {
            continue;
        }
        let cost = FIELD_COST + 2 * (name.len() + value.len());
        *memory = memory.checked_sub(cost).ok_or_else(|| too_large(limit))?;
        let read = if matches!(&*name, "arg" | "kwarg") {
            match parse_within(&value, memory) {
                Argument::Positional(read) => read,
                Argument::Keyword(..) => Value::from(&*value),
            }
        } else {
            Value::from(&*value)
        };
        if *memory == 0 {
            return Err(too_large(limit));
        }
        match fields.get_mut(&Value::from(&*name)) {
            Some(Value::List(all)) if all.len() > 1 || name == "arg" => all.push(read),
            Some(first) => *first = Value::List(vec![std::mem::take(first), read]),
            None if name == "arg" => _ = fields.insert("arg".into(), Value::List(vec![read])),
            None => _ = fields.insert((&*name).into(), read),
        }
    }
    Ok(fields)
}

#[cfg(test)]
mod tests;
