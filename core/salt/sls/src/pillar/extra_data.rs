//! `ext_pillar` `extra_minion_data_in_pillar`: options that the minion sends with its request
//! (`pass_to_ext_pillars`).

use brine_value::{Map, Value, map};

use super::external::Call;

/// Returns the extra data of the minion, or the keys of it that `include` names.
pub(super) fn pillar(call: &Call<'_>) -> Result<Map, String> {
    let data = call.request.extra_minion_data;
    match call.argument(0, "include") {
        None => Err("include is missing: name the keys, or '<all>'".to_owned()),
        Some(Value::Str(all)) if matches!(all.as_str(), "*" | "<all>") => Ok(data.clone()),
        Some(Value::List(keys)) => {
            Ok(keys.iter().flat_map(|key| subtree(data, &key.to_string()).unwrap_or_default()).collect())
        }
        Some(other) => Err(format!("include is invalid: expected a list of keys, '*' or '<all>', got {other}")),
    }
}

/// Returns the value at a path such as `key:subkey`, inside of the mappings that lead to it.
fn subtree(data: &Map, path: &str) -> Option<Map> {
    let (key, rest) = path.split_once(':').map_or((path, None), |(key, rest)| (key, Some(rest)));
    let value = data.get(key)?;
    Some(match rest {
        None => map! {key => value.clone()},
        Some(rest) => map! {key => subtree(value.as_map()?, rest)?},
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_found_with_their_path() {
        let data = map! {"a" => 1, "b" => map! {"c" => map! {"d" => 2}, "e" => 3}};
        for (path, expected) in [
            ("a", Some(map! {"a" => 1})),
            ("b:c", Some(map! {"b" => map! {"c" => map! {"d" => 2}}})),
            ("b:c:d", Some(map! {"b" => map! {"c" => map! {"d" => 2}}})),
            ("b:x", None),
            ("a:b", None),
            ("", None),
        ] {
            assert_eq!(subtree(&data, path), expected, "{path}");
        }
    }
}
