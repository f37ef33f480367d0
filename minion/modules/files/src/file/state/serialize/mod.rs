//! `file.serialize`: serialized data as the content of a file.

use brine_context::custom::Serialized;
use brine_context::{StateContext, StateReturn};
use brine_function::{Args, CallError, CallResult, function};
use brine_sls::toml;
use brine_system::files;
use brine_value::{Map, Value, json, list, map, msgpack, python};
use brine_yaml::{Dates, traverse};

use self::options::FormatOptions;
use super::{contents, managed};
use crate::file::backups;

mod configparser;
mod options;

/// The arguments of `file.serialize`.
#[derive(Args)]
pub struct SerializeArgs {
    /// Path of the file.
    name: String,
    /// Data to serialize.
    #[default]
    dataset: Value,
    /// Pillar key of the data to serialize.
    dataset_pillar: Option<String>,
    /// Format; `serializer` takes precedence.
    formatter: Option<String>,
    /// Format: `yaml` by default, `json`, `python`, `configparser`, `msgpack`, `toml`, or the name of a custom serializer module.
    serializer: Option<String>,
    /// Options of the serializer: `indent` and `sort_keys` for `json`; `indent`, `default_flow_style` and
    /// `allow_unicode` for `yaml`; `defaults` for `configparser`. Others are refused.
    #[default]
    serializer_opts: Value,
    /// Options of the deserializer that reads existing data: `defaults` for `configparser`, any for a custom module.
    #[default]
    deserializer_opts: Value,
    /// Whether the data is merged into the existing data of the file.
    #[default(false)]
    merge_if_exists: bool,
    #[args]
    permissions: managed::PermissionArgs,
    #[args]
    writing: managed::WritingArgs,
    #[args]
    drafts: managed::DraftArgs,
    /// Further arguments, ignored.
    #[keywords(super::further::further_serialize)]
    _kwargs: Map,
}

/// Ensure that a file contains this data, serialized as yaml, json, toml or python; `merge_if_exists` merges it into
/// existing data.
///
/// SLS Example:
///
///     /etc/app/config.json:
///       file.serialize:
///         - dataset:
///             listen: 0.0.0.0:8080
///             workers: 4
///         - serializer: json
///         - serializer_opts:
///             indent: 2
///         - mode: '0640'
///
///     /etc/app/users.yaml:
///       file.serialize:
///         - dataset_pillar: app:users
///         - serializer: yaml
///         - merge_if_exists: True
#[function]
pub fn serialize(context: &StateContext, #[args] args: SerializeArgs) -> CallResult {
    let name = &args.name;
    let format = args.serializer.or(args.formatter).unwrap_or_else(|| "yaml".into()).to_lowercase();
    let has_unused_options = args.deserializer_opts.is_truthy() && !args.merge_if_exists;
    let dataset = Dataset {
        dataset: args.dataset,
        pillar: args.dataset_pillar,
        format,
        options: args.serializer_opts,
        deserializer_options: args.deserializer_opts,
        merge_if_exists: args.merge_if_exists,
    };
    let (text, merged) = match text(context, name, dataset) {
        Ok(result) => result,
        Err(error) => return Ok(StateReturn::failed(name, error).into()),
    };
    if merged.as_ref().is_some_and(Map::is_empty) {
        return Ok(StateReturn::ok(name, format!("The file {name} is in the correct state")).into());
    }
    let contents = contents::Contents {
        contents: text.content,
        newline: !text.is_binary,
        verbatim: text.is_binary,
        ..contents::Contents::inline_text(String::new())
    };
    let how = managed::ManagedOptions {
        new_file_diff: false,
        follow_symlinks: true,
        attrs: None,
        makedirs: args.permissions.makedirs,
        dir_mode: Value::Nil,
        replace: true,
        create: args.writing.create,
        show_changes: args.writing.show_changes,
        backup: backups::is_enabled(&context.call, &args.writing.backup),
        umask: managed::umask(context),
        check_cmd: args.writing.check(args.drafts, true),
    };
    let mut outcome = managed::state(context, name, &contents, args.permissions.attributes(context), &how);
    if let (Some(merged), Some(diff)) = (merged, outcome.changes.get_mut("diff")) {
        *diff = merged.into();
    }
    if context.test && outcome.result.is_none() {
        outcome.comment = format!("Dataset will be serialized and stored into {name}");
    }
    if has_unused_options {
        let warning = "The 'deserializer_opts' option is ignored unless merge_if_exists is set to True.";
        outcome.more.insert("warnings".into(), list![warning]);
    }
    Ok(outcome.into())
}

/// Placeholder for a missing value in the reported changes of a merge.
const MISSING: &str = "<_null_>";

/// The data and its serializer.
pub(super) struct Dataset {
    pub dataset: Value,
    pub pillar: Option<String>,
    pub format: String,
    /// `serializer_opts`: a list of mappings.
    pub options: Value,
    /// `deserializer_opts`, likewise.
    pub deserializer_options: Value,
    pub merge_if_exists: bool,
}

/// Returns the text, and for merged data the changes.
pub(super) fn text(context: &StateContext, name: &str, dataset: Dataset) -> Result<(Serialized, Option<Map>), String> {
    let mut data = match dataset.pillar {
        Some(_) if dataset.dataset.is_truthy() => {
            return Err("Only one of 'dataset' and 'dataset_pillar' is permitted".into());
        }
        Some(key) => {
            let pillar = Value::Map((*context.call.pillar()).clone());
            traverse(&pillar, &key, ":").cloned().unwrap_or_default()
        }
        None => dataset.dataset,
    };
    if data.is_nil() {
        return Err("Neither 'dataset' nor 'dataset_pillar' was defined".into());
    }
    let is_built_in =
        matches!(dataset.format.as_str(), "yaml" | "json" | "python" | "configparser" | "msgpack" | "toml");
    let (mut merged, mut dates) = (None, Dates::default());
    let failed = |error: String| format!("Failed to deserialize existing data: {error}");
    if dataset.merge_if_exists
        && let Some(text) = files::read_if_exists(name).map_err(|error| failed(error.to_string()))?
    {
        let own = &context.call.minion.custom;
        let options = merged_options(&dataset.deserializer_options);
        let own = own.deserialize(&context.call, &dataset.format, is_built_in, text.as_str().into(), options.clone());
        let is_own = own.is_some();
        let have = match dataset.format.as_str() {
            _ if is_own => own.unwrap_or(Ok(Value::Nil)).map_err(|error| failed(error.message()))?,
            "json" => json::from_json(&text).map_err(|error| failed(error.to_string()))?,
            "yaml" => {
                let read = brine_yaml::load_data(&text).map_err(|error| failed(error.to_string()))?;
                dates = read.dates;
                read.value
            }
            "toml" => toml::load(&text).map_err(|error| failed(error.to_string()))?,
            "configparser" => {
                let defaults = FormatOptions::new(&options, "deserializer_opts", "configparser")?.defaults();
                configparser::load(&text, &defaults).map_err(failed)?.into()
            }
            other => return Err(format!("merge_if_exists is not supported for the {other} serializer")),
        };
        if !is_own {
            FormatOptions::new(&options, "deserializer_opts", &dataset.format)?;
        }
        match (have, &data) {
            (Value::Nil, _) => {}
            (Value::Map(have), Value::Map(more)) => {
                let mut all = have.clone();
                brine_value::merge(&mut all, more);
                dates.replaced_by(more);
                merged = Some(difference(&have, &all));
                data = all.into();
            }
            (have, more) => {
                let (have, more) = (have.type_name(), more.type_name());
                return Err(format!(
                    "the data of {name} ({have}) and the dataset ({more}) cannot be merged: both must be mappings"
                ));
            }
        }
    }
    let options = merged_options(&dataset.options);
    let own = &context.call.minion.custom;
    if let Some(serialized) = own.serialize(&context.call, &dataset.format, is_built_in, data.clone(), options.clone())
    {
        return Ok((serialized.map_err(CallError::message)?, merged));
    }
    let options = FormatOptions::new(&options, "serializer_opts", &dataset.format)?;
    let text = match dataset.format.as_str() {
        "yaml" => brine_yaml::dump_data(&data, &dates, options.yaml_style()?),
        "json" => {
            let data = if options.is("sort_keys", true) { json::sorted(&data) } else { data };
            json::to_json_pretty(&data, options.indent(2)?.min(64))
        }
        "python" => python::repr(&data),
        "toml" => toml::dump(&data).map_err(|error| error.to_string())?,
        "msgpack" => {
            let content = Value::Bytes(msgpack::pack(&data));
            return Ok((Serialized { content, is_binary: true }, merged));
        }
        "configparser"
            if data.as_map().is_some_and(|sections| sections.values().all(|values| values.as_map().is_some())) =>
        {
            configparser::dump(data.as_map().unwrap_or(&Map::new()), &options.defaults())
        }
        "configparser" => return Err("dataset is invalid: expected a mapping of sections to mappings".into()),
        other => {
            return Err(format!(
                "The {other} serializer could not be found. It either does not exist or its prerequisites are not \
                 installed."
            ));
        }
    };
    Ok((Serialized { content: text.into(), is_binary: false }, merged))
}

/// Merges options, a mapping or a list of mappings, into one mapping.
fn merged_options(options: &Value) -> Map {
    let of_list = options.as_list().into_iter().flatten().filter_map(Value::as_map);
    of_list.chain(options.as_map()).flatten().map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// Returns `{key: {old, new}}` for all differences, at every depth.
fn difference(old: &Map, new: &Map) -> Map {
    let mut differ = Map::new();
    for (key, value) in new {
        match (old.get(key), value) {
            (Some(have), value) if have == value => {}
            (Some(Value::Map(have)), Value::Map(more)) => {
                _ = differ.insert(key.clone(), difference(have, more).into());
            }
            (have, value) => {
                let have = have.cloned().unwrap_or_else(|| MISSING.into());
                differ.insert(key.clone(), map! {"old" => have, "new" => value.clone()}.into());
            }
        }
    }
    differ
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_reported_at_every_depth() {
        let old = map! {"a" => map! {"x" => 1, "y" => 2}, "b" => list![1]};
        let new = map! {"a" => map! {"x" => 1, "y" => 3}, "b" => list![1], "c" => "new"};
        let differ = map! {
            "a" => map! {"y" => map! {"old" => 2, "new" => 3}},
            "c" => map! {"old" => MISSING, "new" => "new"},
        };
        assert_eq!(difference(&old, &new), differ);
    }

    #[test]
    fn options_that_a_format_lacks_are_refused() {
        for (format, options, expected) in [
            ("json", map! {"indent" => 4, "sort_keys" => false}, ""),
            ("json", map! {"separators" => list![",", ": "]}, ""),
            ("yaml", map! {"indent" => 4, "default_flow_style" => true, "allow_unicode" => true}, ""),
            ("configparser", map! {"defaults" => map! {}}, ""),
            ("json", map! {"separators" => list![",", ":"]}, "expected [\",\", \": \"], got [\",\", \":\"]"),
            ("yaml", map! {"width" => 200, "explicit_start" => true, "sort_keys" => false}, ""),
            ("yaml", map! {"width" => "wide"}, "expected an integer from 0 to 65535, got wide"),
            ("yaml", map! {"tags" => 1}, "explicit_end, explicit_start, indent, sort_keys, width, got tags"),
            ("toml", map! {"pretty" => true}, "expected no options for toml, got pretty"),
            ("yaml", map! {"indent" => 12}, "expected a number from 2 to 9, got 12"),
        ] {
            let built = FormatOptions::new(&options, "serializer_opts", format)
                .and_then(|options| if format == "yaml" { options.yaml_style().map(|_| ()) } else { Ok(()) });
            match built {
                Ok(()) => assert_eq!(expected, "", "{format} {options:?}"),
                Err(error) => assert!(error.ends_with(expected) && !expected.is_empty(), "{error}"),
            }
        }
    }
}
