//! `http`: requests to web servers.

mod ca_bundle;
pub(crate) mod state;

use std::time::Instant;

use base64::Engine;
use brine_context::{Context, Module};
use brine_function::{CallError, CallResult, Functions, function, registry};
use brine_host::process::cancelled_within;
use brine_host::web;
use brine_system::user_files;
use brine_value::json::from_json;
use brine_value::{FromValue, Map, Value};

pub(super) static MODULE: Module = Module { functions: &[&FUNCTIONS], states: &[&state::FUNCTIONS], ..Module::EMPTY };

/// Execution functions of `http`.
pub static FUNCTIONS: Functions<Context> =
    registry!("http", [query, wait_for_successful_query, ca_bundle::update_ca_bundle]);

/// Query a web server, and return `body` and, as requested, `status`, `headers`, `text`, and the parsed body as
/// `dict` (`decode=True`). Failures are returned as `error`.
///
/// Accepts method, params, data, data_file, header_dict, header_list, username, password, decode, decode_type,
/// status, headers, text, verify_ssl, ca_bundle, timeout, text_out, raise_error, test and test_url.
///
/// CLI Example:
///
///     salt '*' http.query http://example.org/ method=POST data='<xml>somecontent</xml>'
#[function]
pub fn query(
    context: &Context,
    /// URL.
    url: String,
    /// `method` (GET), `params`, `data` or `data_file`, `header_dict`, `header_list`, `username` and `password`,
    /// `timeout`, `verify_ssl`, `ca_bundle`, `raise_error`, `status`, `headers` and `text` (what is returned, too),
    /// `text_out`, `decode` and `decode_type`, and `test` with `test_url`.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    Ok(ask(context, &url, &kwargs)?.into())
}

/// Query a web server repeatedly until it answers without an error, for up to `wait_for` seconds.
///
/// CLI Example:
///
///     salt '*' http.wait_for_successful_query http://example.org/ wait_for=160 request_interval=1
#[function]
pub fn wait_for_successful_query(
    context: &Context,
    /// URL.
    url: String,
    /// Seconds for which the query is repeated.
    #[default(300.0)]
    wait_for: f64,
    /// Arguments of `http.query`, and `request_interval`, the seconds between queries (1).
    #[keywords]
    kwargs: Map,
) -> CallResult {
    let interval = kwargs.get("request_interval").and_then(f64::from_value).unwrap_or(1.0);
    let end = Instant::now() + brine_runtime::seconds::within(0.0..=1e6, wait_for);
    loop {
        let response = ask(context, &url, &kwargs)?;
        let is_over = !response.get("error").is_some_and(Value::is_truthy) || Instant::now() > end;
        if is_over || cancelled_within(&context.job.cancel, brine_runtime::seconds::within(0.01..=3600.0, interval)) {
            return Ok(response.into());
        }
    }
}

/// Returns the headers given by the arguments.
fn headers(kwargs: &Map) -> Vec<(String, String)> {
    let mut headers: Vec<(String, String)> = Vec::new();
    let lines = kwargs.get("header_list").and_then(Vec::<String>::from_value).unwrap_or_default();
    let line =
        |line: &String| line.split_once(':').map(|(name, value)| (name.trim().to_owned(), value.trim().to_owned()));
    headers.extend(lines.iter().filter_map(line));
    let named = kwargs.get("header_dict").and_then(Value::as_map).into_iter().flatten();
    headers.extend(named.map(|(name, value)| (name.to_string(), value.to_string())));
    let text = |key: &str| kwargs.get(key).filter(|value| !value.is_nil()).map(ToString::to_string);
    if let Some(user) = text("username") {
        let login = format!("{user}:{}", text("password").unwrap_or_default());
        let login = base64::engine::general_purpose::STANDARD.encode(login);
        headers.push(("Authorization".into(), format!("Basic {login}")));
    }
    headers
}

/// Encodes pairs as in the query of a URL or in a form.
fn encoded(pairs: &Map) -> String {
    let word = |value: &Value| brine_value::percent_encoded(&value.to_string());
    pairs.iter().map(|(name, value)| format!("{}={}", word(name), word(value))).collect::<Vec<_>>().join("&")
}

fn body(kwargs: &Map) -> Result<Option<Vec<u8>>, CallError> {
    if let Some(path) = kwargs.get("data_file").filter(|path| path.is_truthy()) {
        let failed = |error| CallError::Execution(format!("{path}: {error}"));
        return std::fs::read(path.to_string()).map(Some).map_err(failed);
    }
    Ok(match kwargs.get("data") {
        None | Some(Value::Nil) => None,
        Some(Value::Map(pairs)) => Some(encoded(pairs).into_bytes()),
        Some(Value::Bytes(bytes)) => Some(bytes.clone()),
        Some(text) => Some(text.to_string().into_bytes()),
    })
}

fn ask(context: &Context, url: &str, kwargs: &Map) -> Result<Map, CallError> {
    let flag = |key: &str| kwargs.get(key).is_some_and(Value::is_truthy);
    let text = |key: &str| kwargs.get(key).filter(|value| value.is_truthy()).map(ToString::to_string);
    let mut answer = Map::new();
    let mut url = url.to_owned();
    if flag("test") {
        let Some(test_url) = text("test_url") else { return Ok(answer) };
        url = test_url;
        answer.insert("test".into(), true.into());
    }
    if let Some(params) = kwargs.get("params").and_then(Value::as_map).filter(|params| !params.is_empty()) {
        url = format!("{url}{}{}", if url.contains('?') { '&' } else { '?' }, encoded(params));
    }
    let mut access = context.web();
    access.ca_bundle = text("ca_bundle").map(Into::into).or(access.ca_bundle);
    let seconds = kwargs.get("timeout").and_then(f64::from_value);
    let timeout =
        seconds.map_or(access.request_timeout, |seconds| brine_runtime::seconds::within(0.001..=1e6, seconds));
    let options = web::Options {
        access,
        timeout,
        trust_anyone: kwargs.get("verify_ssl").is_some_and(|verify| !verify.is_nil() && !verify.is_truthy()),
        ..web::Options::default()
    };
    let access = options.access.clone();
    let client = web::Client::new(options).map_err(CallError::execution)?;
    let method = text("method").unwrap_or_else(|| "GET".into()).to_uppercase();
    let mut request = web::Request::builder().method(method.as_str()).uri(&url);
    for (name, value) in headers(kwargs) {
        request = request.header(name, value);
    }
    let request = request.body(body(kwargs)?.unwrap_or_default()).map_err(CallError::execution)?;
    let mut response = match client.send(request) {
        Ok(response) => response,
        Err(error) => {
            if flag("status") {
                answer.insert("status".into(), 0.into());
            }
            answer.insert("error".into(), error.to_string().into());
            return Ok(answer);
        }
    };
    let content = match web::read(&mut response, &access) {
        Ok(content) => content,
        Err(error) => {
            answer.insert("error".into(), error.to_string().into());
            return Ok(answer);
        }
    };
    let content = String::from_utf8(content).map_or_else(|bytes| Value::Bytes(bytes.into_bytes()), Value::from);
    answer.insert("body".into(), content.clone());
    let status = response.status();
    if !(200..300).contains(&status.as_u16()) && kwargs.get("raise_error").is_none_or(Value::is_truthy) {
        answer.insert("status".into(), status.as_u16().into());
        let reason = status.canonical_reason().unwrap_or("Unknown");
        answer.insert("error".into(), format!("HTTP {}: {reason}", status.as_u16()).into());
        return Ok(answer);
    }
    if let Some(path) = text("text_out") {
        user_files::write(path, content.as_bytes().unwrap_or_default()).map_err(CallError::execution)?;
    }
    if flag("status") {
        answer.insert("status".into(), status.as_u16().into());
    }
    if flag("headers") {
        let header = |name: &ureq::http::HeaderName, value: &ureq::http::HeaderValue| {
            (Value::from(name.as_str()), Value::from(String::from_utf8_lossy(value.as_bytes()).into_owned()))
        };
        let headers: Map = response.headers().iter().map(|(name, value)| header(name, value)).collect();
        answer.insert("headers".into(), headers.into());
    }
    let kind = response.headers().get("content-type").and_then(|kind| kind.to_str().ok()).unwrap_or("application/json");
    let mut wants_text = flag("text");
    if flag("decode") {
        match decoded(&content, kwargs.get("decode_type"), kind) {
            Ok(Some(value)) => _ = answer.insert("dict".into(), value),
            Ok(None) => wants_text = true,
            Err(error) => _ = answer.insert("error".into(), error.into()),
        }
    }
    if wants_text {
        answer.insert("text".into(), content);
    }
    Ok(answer)
}

/// Parses a body; returns `None` for plain text.
fn decoded(body: &Value, format: Option<&Value>, kind: &str) -> Result<Option<Value>, String> {
    let format = format.map_or_else(|| "auto".to_owned(), ToString::to_string);
    let detected = ["xml", "json", "yaml"].into_iter().find(|name| kind.contains(name)).unwrap_or("plain");
    let format = if format == "auto" { detected } else { &format };
    let text = body.as_str().ok_or_else(|| "the body is not a string".to_owned())?;
    match format {
        "json" => from_json(text).map(Some).map_err(|error| error.to_string()),
        "yaml" => brine_yaml::load(text).map(Some).map_err(|error| error.to_string()),
        "xml" => Err("XML is not decoded: ask for the text".into()),
        "plain" => Ok(None),
        _ => Err("Invalid decode_type specified. Valid decode types are: ('json', 'xml', 'yaml', 'plain')".into()),
    }
}

#[cfg(test)]
mod tests;
