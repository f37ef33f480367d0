//! `yaml`: files of this host, merged, whose values may be encrypted by GPG.

use std::path::PathBuf;

use brine_context::Context;
use brine_function::CallError;
use brine_sls::gpg::Gpg;
use brine_value::{FromValue, Map, Value, merge_deep};
use brine_yaml::entry_at;

pub fn get(context: &Context, profile: &Map, key: &str) -> Result<Value, CallError> {
    Ok(entry_at(&content(context, profile)?, key, ":").cloned().unwrap_or_default())
}

/// Returns the merged files of the profile.
fn content(context: &Context, profile: &Map) -> Result<Map, CallError> {
    let files = profile.get("files").and_then(Vec::<PathBuf>::from_value).unwrap_or_default();
    let option = |name: &str| profile.get("merge").and_then(|merge| merge.get(name));
    let lists = option("merge_lists").or_else(|| option("merge_list")).is_some_and(Value::is_truthy);
    let overwrite = option("strategy").is_some_and(|strategy| strategy.as_str() == Some("overwrite"));
    let mut all = Map::new();
    for path in files {
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) => {
                tracing::error!(path = %path.display(), %error, "reading a file of an SDB profile failed");
                continue;
            }
        };
        let failed = |error: String| CallError::Execution(format!("reading {} failed: {error}", path.display()));
        match brine_yaml::load_data(&text).map_err(|error| failed(error.to_string()))?.value {
            Value::Map(content) if overwrite => all.extend(content),
            Value::Map(content) => merge_deep(&mut all, &content, lists),
            Value::Nil => {}
            other => return Err(failed(format!("expected a mapping, got {}", other.type_name()))),
        }
    }
    let mut all = Value::Map(all);
    if profile.get("gpg").is_some_and(Value::is_truthy) {
        Gpg::of(&context.opts()).decrypt(&mut all).map_err(CallError::execution)?;
    }
    Ok(match all {
        Value::Map(all) => all,
        _ => Map::new(),
    })
}
