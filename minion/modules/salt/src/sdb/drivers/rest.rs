//! `rest`: a query of a web server for each key of the profile, with variables in its URL.

use brine_context::Context;
use brine_function::{Args, CallError};
use brine_value::{Map, Value, map};

use crate::http;

/// Returns the decoded response to the query of a key, `NAME` or `NAME?VARIABLE=VALUE&...`.
pub fn get(context: &Context, profile: &Map, key: &str) -> Result<Value, CallError> {
    let (name, variables) = key.split_once('?').unwrap_or((key, ""));
    let query = profile.get(name).and_then(Value::as_map);
    let url = query.and_then(|query| query.get("url")).and_then(Value::as_str);
    let (Some(query), Some(url)) = (query, url) else {
        return Err(CallError::execution(format!("the SDB profile has no query '{name}' with a url")));
    };
    let mut kwargs: Map = query.clone();
    for name in ["url", "backend"] {
        kwargs.shift_remove(name);
    }
    kwargs.insert("decode".into(), true.into());
    let mut answer = match http::query(context, rendered(context, url, variables)?, kwargs)? {
        Value::Map(answer) => answer,
        _ => Map::new(),
    };
    match answer.get("error").filter(|error| error.is_truthy()) {
        Some(error) => Err(CallError::execution(format!("the query '{name}' of the SDB profile failed: {error}"))),
        None => Ok(answer.swap_remove("dict").unwrap_or_default()),
    }
}

fn rendered(context: &Context, url: &str, variables: &str) -> Result<String, CallError> {
    if !url.contains('{') {
        return Ok(url.to_owned());
    }
    let mut keyword = map! {"string" => url, "default_renderer" => "jinja"};
    for pair in variables.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').ok_or_else(|| {
            CallError::execution(format!("variable '{pair}' of the SDB URI is invalid: expected NAME=VALUE"))
        })?;
        if ["string", "path", "default_renderer"].contains(&name) {
            return Err(CallError::execution(format!("variable '{name}' of the SDB URI is reserved: rename it")));
        }
        keyword.insert(name.into(), value.into());
    }
    Ok(context.call("slsutil.renderer", Args::keyword(keyword))?.to_string().trim().to_owned())
}
