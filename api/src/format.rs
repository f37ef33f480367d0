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
mod tests {
    use super::*;
    use brine_value::{list, map};

    fn headers(name: header::HeaderName, value: Option<&str>) -> HeaderMap {
        value.into_iter().map(|value| (name.clone(), value.parse().unwrap())).collect()
    }

    #[test]
    fn the_format_follows_the_accept_header() {
        for (accept, format) in [
            (None, Some(Format::Json)),
            (Some("*/*"), Some(Format::Json)),
            (Some("application/json"), Some(Format::Json)),
            (Some("application/x-yaml"), Some(Format::Yaml)),
            (Some("application/json;q=0.5, application/x-yaml"), Some(Format::Yaml)),
            (Some("application/x-yaml;q=0.5, application/json;q=0.9"), Some(Format::Json)),
            (Some("text/html,application/xhtml+xml,*/*;q=0.8"), Some(Format::Json)),
            (Some("application/json;q=0"), None),
            (Some("text/html"), None),
            (Some("text/yaml"), None),
        ] {
            assert_eq!(Format::accepted(&headers(header::ACCEPT, accept)).ok(), format, "{accept:?}");
        }
        for (accept, wants) in [(Some("text/html"), true), (Some("*/*"), false), (Some("application/json"), false)] {
            assert_eq!(wants_page(&headers(header::ACCEPT, accept)), wants, "{accept:?}");
        }
    }

    #[tokio::test]
    async fn bodies_are_parsed_by_their_content_type() {
        let json = r#"{"a": [1, "x"]}"#;
        let data: Value = map! {"a" => list![1, "x"]}.into();
        for (kind, body, expected) in [
            (Some("application/json"), json, Ok(data.clone())),
            (Some("application/json;charset=UTF-8"), json, Ok(data.clone())),
            (Some("text/plain;charset=UTF-8"), json, Ok(data.clone())),
            (Some("text/plain"), "no json", Ok("no json".into())),
            (Some("application/x-yaml"), "a: [1, x]", Ok(data.clone())),
            (Some("text/yaml"), "a: [1, x]", Ok(data)),
            (None, "a=1&b=2&b=3", Ok(map! {"a" => "1", "b" => list!["2", "3"]}.into())),
            (Some("application/json"), "{", Err(400)),
            (Some("application/x-yaml"), "a: [", Err(400)),
            (Some("application/xml"), "<a/>", Err(406)),
        ] {
            let read = Payload::parse(&headers(header::CONTENT_TYPE, kind), Bytes::from_static(body.as_bytes())).await;
            let read = read.map(|payload| payload.data.unwrap()).map_err(|error| error.status.as_u16());
            assert_eq!(read, expected, "{kind:?} {body}");
        }
    }

    #[test]
    fn forms_parse_arguments_like_command_lines() {
        for (text, expected) in [
            ("client=local&tgt=*&fun=test.ping", map! {"client" => "local", "tgt" => "*", "fun" => "test.ping"}),
            ("arg=1", map! {"arg" => list![1]}),
            ("arg=1&arg=2&arg=x", map! {"arg" => list![1, 2, "x"]}),
            ("arg=[1,2]", map! {"arg" => list![list![1, 2]]}),
            ("arg=[1,2]&arg=3", map! {"arg" => list![list![1, 2], 3]}),
            ("arg=one%3D1", map! {"arg" => list!["one=1"]}),
            ("arg=", Map::new()),
            ("kwarg={a: 1}", map! {"kwarg" => map! {"a" => 1}}),
            ("tgt=a&tgt=b&tgt=c", map! {"tgt" => list!["a", "b", "c"]}),
            ("fun=", Map::new()),
        ] {
            assert_eq!(form(text), expected, "{text}");
        }
    }

    #[test]
    fn a_lowstate_is_a_list_of_chunks() {
        let chunk = map! {"fun" => "test.ping"};
        for (data, expected) in [
            (Some(Value::from(chunk.clone())), Ok(vec![chunk.clone()])),
            (Some(list![chunk.clone(), chunk.clone()]), Ok(vec![chunk.clone(), chunk])),
            (Some(map! {"arg" => "x"}.into()), Ok(vec![map! {"arg" => list!["x"]}])),
            (Some(list![]), Ok(vec![])),
            (None, Err("Lowstates must be a list")),
            (Some("text".into()), Err("Lowstates must be a list")),
            (Some(Value::map()), Err("Lowstates must be a list")),
            (Some(list![1]), Err("A lowstate must be a list of mappings")),
        ] {
            let read = Payload { raw: Bytes::new(), data: data.clone() }.lowstate();
            assert_eq!(read.map_err(|error| error.message), expected.map_err(str::to_owned), "{data:?}");
        }
    }
}
