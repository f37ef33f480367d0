//! `file.decode`: a file with the decoded content of a base64 string.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use brine_context::{StateContext, StateReturn};
use brine_function::CallError;
use brine_system::files;
use brine_value::{Value, map};
use brine_yaml::traverse;

use super::invalid_path;
use crate::checksum::hex_digest;

pub(super) fn state(
    context: &StateContext,
    name: &str,
    encoded_data: Option<String>,
    contents_pillar: Option<String>,
    checksum: &str,
) -> Result<StateReturn, String> {
    let non_empty = |text: Option<String>| text.filter(|text| !text.is_empty());
    let text = match (non_empty(encoded_data), non_empty(contents_pillar)) {
        (None, None) => return Err("Specify either the 'encoded_data' or 'contents_pillar' argument.".into()),
        (Some(_), Some(_)) => return Err("Specify only one 'encoded_data' or 'contents_pillar' argument.".into()),
        (Some(text), None) => text,
        (None, Some(key)) => {
            let pillar = Value::Map((*context.call.pillar()).clone());
            traverse(&pillar, &key, ":").map(ToString::to_string).ok_or("Pillar data not found.")?
        }
    };
    if let Some(bad) = invalid_path(name) {
        return Ok(bad);
    }
    let text: String = text.split_whitespace().collect();
    let content = STANDARD.decode(text).map_err(|error| format!("The text is not base64: {error}"))?;
    let sum = |content: &[u8]| hex_digest(content, checksum).map_err(CallError::message);
    let old = std::fs::read(name).ok().map(|content| sum(&content)).transpose()?;
    let new = sum(&content)?;
    if old.as_ref() == Some(&new) {
        return Ok(StateReturn::ok(name, "File is in the correct state."));
    }
    let changes = map! {"old" => old.clone().map(Value::from), "new" => new};
    if context.test {
        let outcome = StateReturn::predicted(name, "File is set to be updated.");
        return Ok(if old.is_some() { outcome.with_changes(changes) } else { outcome });
    }
    files::rewrite(name, &content, 0o644).map_err(|error| error.to_string())?;
    Ok(StateReturn::ok(name, "File was updated.").with_changes(changes))
}
