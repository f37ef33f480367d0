//! Python's names for the types of values.

use minijinja::value::{Value as JinjaValue, ValueKind};

use super::{Dict, Range, View, is_ordered, is_plain_map};

/// Returns Python's name for the type of a value.
pub(crate) fn type_name(value: &JinjaValue) -> &'static str {
    match value.kind() {
        ValueKind::Undefined => "Undefined",
        ValueKind::None => "NoneType",
        ValueKind::Bool => "bool",
        ValueKind::Number if value.is_integer() => "int",
        ValueKind::Number => "float",
        ValueKind::String if value.is_safe() => "Markup",
        ValueKind::String => "str",
        ValueKind::Bytes => "bytes",
        ValueKind::Seq | ValueKind::Iterable if value.is_tuple() => "tuple",
        ValueKind::Seq | ValueKind::Iterable if value.downcast_object_ref::<Range>().is_some() => "range",
        ValueKind::Seq | ValueKind::Iterable => value.downcast_object_ref::<View>().map_or("list", |view| view.name()),
        ValueKind::Map if is_ordered(value) => "collections.OrderedDict",
        ValueKind::Map if value.downcast_object_ref::<Dict>().is_some() || is_plain_map(value) => "dict",
        _ => object_name(value),
    }
}

/// Returns Python's type name of a value that is not data, by the name of its type in the engine or in this crate.
fn object_name(value: &JinjaValue) -> &'static str {
    let name = value.as_object().map(|object| object.type_name().rsplit("::").next().unwrap_or_default());
    match name {
        Some("Namespace") => "Namespace",
        Some("LoadedModule") => "LoadedMod",
        Some("Module") => "TemplateModule",
        Some("Macro") => "Macro",
        Some("Loop") => "LoopContext",
        Some("Cycler") => "Cycler",
        Some("Salt") => "AliasedLoader",
        Some("Function") => "LoadedFunc",
        Some("BoundMethod") => "builtin_function_or_method",
        Some(_) | None => "object",
    }
}

/// Returns Jinja's type name of a value without the attribute.
pub(crate) fn type_name_in_errors(value: &JinjaValue) -> String {
    let name = match value.kind() {
        ValueKind::None => return "None".to_owned(),
        _ => match type_name(value) {
            "LoadedMod" => "salt.loader.lazy.LoadedMod",
            "LoadedFunc" => "salt.loader.lazy.LoadedFunc",
            "AliasedLoader" => "salt.utils.templates.AliasedLoader",
            "Macro" => "jinja2.runtime.Macro",
            "LoopContext" => "jinja2.runtime.LoopContext",
            "Namespace" => "jinja2.utils.Namespace",
            "Cycler" => "jinja2.utils.Cycler",
            "TemplateModule" => "jinja2.environment.TemplateModule",
            name => name,
        },
    };
    format!("{name} object")
}
