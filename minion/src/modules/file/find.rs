//! Looking for files: `file.find`.

use std::path::Path;

use brine_core::function::CallError;
use brine_core::glob::fnmatch;
use brine_core::value::FromValue;
use brine_core::{Map, Value, functions};
use regex::Regex;

use super::{expand, kind};
use crate::context::Context;

functions! {
    module "file", context Context;

    /// The paths below a path that fit all of `name`, `iname`, `type` (letters of `bcdpfls`), `regex`,
    /// `mindepth`, `maxdepth` and `print` (`path` or `name`).
    ///
    /// CLI Example:
    ///
    ///     salt '*' file.find / type=f name=\*.bak
    fn find(_context, path: String, **kwargs) {
        find_paths(&expand(&path), &kwargs)
    }
}

/// `find`'s search. Links are not followed.
pub(super) fn find_paths(start: &Path, criteria: &Map) -> Result<Value, CallError> {
    let text = |name: &str| criteria.get(name).filter(|value| !value.is_nil()).map(ToString::to_string);
    let number = |name: &str| criteria.get(name).and_then(usize::from_value);
    let known = ["name", "iname", "type", "regex", "iregex", "mindepth", "maxdepth", "print"];
    let unknown = criteria.keys().filter_map(Value::as_str).find(|key| !known.contains(key) && !key.starts_with("__"));
    if let Some(unknown) = unknown {
        return Err(CallError::Execution(format!("error: invalid or not supported criterion: {unknown}")));
    }
    let regex = text("regex").map(|regex| Regex::new(&regex)).transpose().map_err(CallError::execution)?;
    let any_case = |regex: String| regex::RegexBuilder::new(&regex).case_insensitive(true).build();
    let iregex = text("iregex").map(any_case).transpose().map_err(CallError::execution)?;
    let (name, iname, types) = (text("name"), text("iname").map(|name| name.to_lowercase()), text("type"));
    let letter = |status: &std::fs::Metadata| match kind(status) {
        "dir" => 'd',
        "link" => 'l',
        "block" => 'b',
        "char" => 'c',
        "pipe" => 'p',
        "socket" => 's',
        _ => 'f',
    };
    let (least, most) = (number("mindepth").unwrap_or(0), number("maxdepth").unwrap_or(usize::MAX));
    let only_name = text("print").as_deref() == Some("name");
    let (mut found, mut open) = (Vec::new(), vec![(start.to_owned(), 0)]);
    while let Some((path, depth)) = open.pop() {
        let Ok(status) = std::fs::symlink_metadata(&path) else { continue };
        let full = path.to_string_lossy().into_owned();
        let own = path.file_name().map_or_else(|| full.clone(), |name| name.to_string_lossy().into_owned());
        let fits = depth >= least
            && name.as_ref().is_none_or(|pattern| fnmatch(pattern, &own))
            && iname.as_ref().is_none_or(|pattern| fnmatch(pattern, &own.to_lowercase()))
            && types.as_ref().is_none_or(|types| types.contains(letter(&status)))
            && [&regex, &iregex].iter().all(|regex| regex.as_ref().is_none_or(|regex| regex.is_match(&full)));
        if fits {
            found.push(if only_name { own } else { full });
        }
        if status.is_dir() && depth < most {
            open.extend(
                std::fs::read_dir(&path).into_iter().flatten().flatten().map(|entry| (entry.path(), depth + 1)),
            );
        }
    }
    found.sort();
    Ok(found.into())
}
