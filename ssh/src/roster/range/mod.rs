//! The roster `range`, and targets by range (`-R`): a range server resolves expressions such as `%%dc1.web,-web7`. As
//! with Salt's client library, the request is `GET /range/list?EXPRESSION` over HTTP, with one host per line in the
//! response. An error in the expression is reported in the header `RangeException`.

use std::time::Duration;

use brine_host::web;
use brine_target::TargetKind;
use brine_value::{Value, map, percent_encoded_path};

use super::{Fields, MAX_HOSTS, RosterError};

/// The timeout of the request.
const TIMEOUT: Duration = Duration::from_secs(60);
/// The maximum length of an expression, in bytes: servers reject longer URLs.
const MAX_EXPRESSION: usize = 7500;
/// The maximum size of a list of hosts, in bytes.
const MAX_LIST: u64 = 16 << 20;

/// Returns the fields of the hosts of an expression. As in Salt, `-R` and a target without a type mean the same.
pub(super) fn hosts(server: &str, tgt: &Value, kind: TargetKind) -> Result<Fields, RosterError> {
    if !matches!(kind, TargetKind::Range | TargetKind::Glob) {
        let message = "the roster 'range' takes an expression of its server as target, not a target of type";
        return Err(RosterError::Program(format!("{message} {kind}")));
    }
    let names = expand(server, tgt)?;
    Ok(names.into_iter().map(|host| (host.clone(), map! {"host" => host})).collect())
}

/// Resolves an expression to its hosts, sorted and deduplicated.
pub(super) fn expand(server: &str, tgt: &Value) -> Result<Vec<String>, RosterError> {
    let failed = |reason: String| {
        RosterError::Program(format!("asking the range server {} failed: {reason}", server.escape_debug()))
    };
    let is_address = |c: char| c.is_ascii_alphanumeric() || ".-_:[]".contains(c);
    if server.is_empty() || !server.chars().all(is_address) {
        return Err(failed("the option 'range_server' is invalid: expected HOST:PORT".into()));
    }
    let expression = tgt.to_string();
    if expression.len() > MAX_EXPRESSION {
        return Err(failed(format!("the expression has more than {MAX_EXPRESSION} bytes")));
    }
    let url = format!("http://{server}/range/list?{}", percent_encoded_path(&expression));
    let access = web::Access { max_body: MAX_LIST, ..web::Access::default() };
    let options = web::Options { timeout: TIMEOUT, access: access.clone(), ..web::Options::default() };
    let client = web::Client::new(options).map_err(|error| failed(error.to_string()))?;
    let mut response = client.get(&url).map_err(|error| failed(error.to_string()))?;
    if let Some(exception) = response.headers().get("RangeException") {
        let reason = String::from_utf8_lossy(exception.as_bytes()).escape_debug().to_string();
        return Err(failed(format!("'{expression}': {reason}")));
    }
    if response.status() != 200 {
        return Err(failed(web::WebError::Status(response.status().as_u16()).to_string()));
    }
    let body = web::read(&mut response, &access).map_err(|error| failed(error.to_string()))?;
    let text = String::from_utf8(body).map_err(|_| failed("its list of hosts is not UTF-8".into()))?;
    let mut names: Vec<String> =
        text.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned).collect();
    names.sort();
    names.dedup();
    if names.len() > MAX_HOSTS {
        return Err(failed(format!("it returned {} hosts, the limit is {MAX_HOSTS}", names.len())));
    }
    Ok(names)
}

#[cfg(test)]
mod tests;
