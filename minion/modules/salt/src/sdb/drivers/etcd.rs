//! `etcd`: keys of an etcd server, by version 3 of its API over HTTP. Values are msgpack as Salt writes them, unless
//! `etcd.encode_values` is off; others are returned as text.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use brine_context::Context;
use brine_function::CallError;
use brine_value::{Map, Value, json, map, msgpack};

use crate::http;

pub fn get(context: &Context, profile: &Map, key: &str) -> Result<Value, CallError> {
    let answer = Server::of(context, profile)?.ask("kv/range", map! {"key" => encoded(key.as_bytes())})?;
    let value = answer.get("kvs").and_then(Value::as_list).and_then(|entries| entries.first()?.get("value"));
    let Some(value) = value.and_then(Value::as_str) else { return Ok(Value::Nil) };
    let bytes =
        STANDARD.decode(value).map_err(|error| CallError::execution(format!("etcd's reply is invalid: {error}")))?;
    let unpacked = if encodes(profile) { msgpack::unpack(&bytes).ok() } else { None };
    Ok(unpacked.unwrap_or_else(|| String::from_utf8_lossy(&bytes).into_owned().into()))
}

/// Sets a key and returns its value.
pub fn set(context: &Context, profile: &Map, key: &str, value: &Value) -> Result<Value, CallError> {
    let bytes = if encodes(profile) { msgpack::pack(value) } else { value.to_string().into_bytes() };
    let body = map! {"key" => encoded(key.as_bytes()), "value" => encoded(&bytes)};
    Server::of(context, profile)?.ask("kv/put", body)?;
    get(context, profile, key)
}

pub fn delete(context: &Context, profile: &Map, key: &str) -> Result<Value, CallError> {
    Server::of(context, profile)?.ask("kv/deleterange", map! {"key" => encoded(key.as_bytes())})?;
    Ok(true.into())
}

fn encoded(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

fn encodes(profile: &Map) -> bool {
    profile.get("etcd.encode_values").is_none_or(Value::is_truthy)
}

/// The server of a profile.
struct Server<'a> {
    context: &'a Context,
    url: String,
    ca: Option<Value>,
    token: Option<String>,
}

impl<'a> Server<'a> {
    fn of(context: &'a Context, profile: &Map) -> Result<Self, CallError> {
        let option = |name: &str| profile.get(&*format!("etcd.{name}")).filter(|value| value.is_truthy());
        if option("require_v2").is_some() {
            return Err(CallError::execution(
                "etcd.require_v2 is not supported: remove it; version 3 of the API is used, as etcd 3.4 and later have it",
            ));
        }
        if option("client_key").or_else(|| option("client_cert")).is_some() {
            return Err(CallError::execution(
                "etcd.client_key and etcd.client_cert are not supported: use etcd.username and etcd.password",
            ));
        }
        let ca = option("ca").cloned();
        let host = option("host").map_or_else(|| "127.0.0.1".to_owned(), ToString::to_string);
        let port = option("port").map_or_else(|| "2379".to_owned(), ToString::to_string);
        let scheme = if ca.is_some() { "https" } else { "http" };
        let mut server = Server { context, url: format!("{scheme}://{host}:{port}/v3"), ca, token: None };
        if let (Some(name), Some(password)) = (option("username"), option("password")) {
            let login = map! {"name" => name.to_string(), "password" => password.to_string()};
            let answer = server.ask("auth/authenticate", login)?;
            server.token = answer.get("token").and_then(Value::as_str).map(str::to_owned);
        }
        Ok(server)
    }

    fn ask(&self, path: &str, body: Map) -> Result<Map, CallError> {
        let mut headers = map! {"Content-Type" => "application/json"};
        headers.extend(self.token.as_ref().map(|token| ("Authorization".into(), token.as_str().into())));
        let mut kwargs = map! {
            "method" => "POST", "data" => json::to_json(&body.into()), "header_dict" => headers, "decode" => true,
            "decode_type" => "json", "timeout" => 60,
        };
        kwargs.extend(self.ca.clone().map(|ca| ("ca_bundle".into(), ca)));
        let answer = http::query(self.context, format!("{}/{path}", self.url), kwargs)?;
        let failed =
            |error: &dyn std::fmt::Display| Err(CallError::execution(format!("etcd at {} failed: {error}", self.url)));
        match (answer.get("error").filter(|error| error.is_truthy()), answer.get("dict")) {
            (Some(error), _) => failed(error),
            (None, Some(Value::Map(reply))) => Ok(reply.clone()),
            (None, _) => failed(&"its reply is not a mapping"),
        }
    }
}
