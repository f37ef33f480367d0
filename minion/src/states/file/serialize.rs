//! `file.serialize`: data as the text of a file.

use brine_sls::pillar;
use brine_system::files;
use brine_value::{Map, Value, json, map, python};
use brine_yaml::traverse;

use crate::states::StateContext;

/// What stands for a value that is not there, in what is told of a merge.
const NOTHING: &str = "<_null_>";

/// The data, and how it is written.
pub(super) struct Dataset {
    pub dataset: Value,
    pub pillar: Option<String>,
    pub format: String,
    /// `serializer_opts`: a list of mappings.
    pub options: Value,
    pub merge_if_exists: bool,
}

/// The text, and for data merged into what a file has, how that differs.
pub(super) fn text(context: &StateContext, name: &str, wanted: Dataset) -> Result<(String, Option<Map>), String> {
    let mut data = match wanted.pillar {
        Some(_) if wanted.dataset.is_truthy() => {
            return Err("Only one of 'dataset' and 'dataset_pillar' is permitted".into());
        }
        Some(key) => {
            let pillar = Value::Map((*context.call.pillar()).clone());
            traverse(&pillar, &key, ":").cloned().unwrap_or_default()
        }
        None => wanted.dataset,
    };
    if data.is_nil() {
        return Err("Neither 'dataset' nor 'dataset_pillar' was defined".into());
    }
    let mut merged = None;
    if wanted.merge_if_exists
        && let Ok(Some(text)) = files::read_if_exists(name)
    {
        let failed = |error: String| format!("Failed to deserialize existing data: {error}");
        let have = match wanted.format.as_str() {
            "json" => json::from_json(&text).map_err(|error| failed(error.to_string()))?,
            "yaml" => brine_yaml::load(&text).map_err(|error| failed(error.to_string()))?,
            other => return Err(format!("merge_if_exists is not supported for the {other} serializer")),
        };
        if let (Value::Map(have), Value::Map(more)) = (have, &data) {
            let mut all = have.clone();
            pillar::merge(&mut all, more);
            merged = Some(difference(&have, &all));
            data = all.into();
        }
    }
    let option = |name: &str| {
        let of_list = wanted.options.as_list().into_iter().flatten().find_map(|item| item.get(name).cloned());
        of_list.or_else(|| wanted.options.get(name).cloned())
    };
    let text = match wanted.format.as_str() {
        "yaml" => brine_yaml::dump(&data, brine_yaml::Style { ascii: true, ..brine_yaml::Style::BLOCK }),
        "json" => {
            let indent = option("indent").and_then(|indent| indent.as_i64()).unwrap_or(2);
            let data = if option("sort_keys") == Some(Value::Bool(false)) { data } else { json::sorted(&data) };
            json::to_json_pretty(&data, usize::try_from(indent).unwrap_or(0).min(64))
        }
        "python" => python::repr(&data),
        "configparser" => ini(&data),
        other => {
            return Err(format!(
                "The {other} serializer could not be found. It either does not exist or its prerequisites are not \
                 installed."
            ));
        }
    };
    Ok((text, merged))
}

/// Sections of `name = value` lines.
fn ini(data: &Value) -> String {
    let mut out = String::new();
    for (section, values) in data.as_map().into_iter().flatten() {
        out.push_str(&format!("[{section}]\n"));
        for (name, value) in values.as_map().into_iter().flatten() {
            out.push_str(&format!("{} = {value}\n", name.to_string().to_lowercase()));
        }
        out.push('\n');
    }
    out + "\n"
}

/// `{key: {old, new}}` of what differs, at every depth.
fn difference(old: &Map, new: &Map) -> Map {
    let mut differ = Map::new();
    for (key, value) in new {
        match (old.get(key), value) {
            (Some(have), value) if have == value => {}
            (Some(Value::Map(have)), Value::Map(more)) => {
                _ = differ.insert(key.clone(), difference(have, more).into());
            }
            (have, value) => {
                let have = have.cloned().unwrap_or_else(|| NOTHING.into());
                differ.insert(key.clone(), map! {"old" => have, "new" => value.clone()}.into());
            }
        }
    }
    differ
}

#[cfg(test)]
mod tests {
    use super::*;
    use brine_value::list;

    #[test]
    fn differences_are_told_at_every_depth() {
        let old = map! {"a" => map! {"x" => 1, "y" => 2}, "b" => list![1]};
        let new = map! {"a" => map! {"x" => 1, "y" => 3}, "b" => list![1], "c" => "new"};
        let differ = map! {
            "a" => map! {"y" => map! {"old" => 2, "new" => 3}},
            "c" => map! {"old" => NOTHING, "new" => "new"},
        };
        assert_eq!(difference(&old, &new), differ);
    }

    #[test]
    fn sections_are_written_as_configparser_does() {
        let data = map! {"a" => map! {"Key" => 1}, "b" => map! {}};
        assert_eq!(ini(&data.into()), "[a]\nkey = 1\n\n[b]\n\n\n");
    }
}
