//! `config`: options by name, from the first source that has them.

mod bootstrap;

use brine_context::{Context, Module};
use brine_function::{Args, CallResult, Functions, function, registry};
use brine_text::glob;
use brine_value::{Map, Value, merge_deep};
use brine_yaml::entry_at;

pub(super) static MODULE: Module = Module { functions: &[&FUNCTIONS], ..Module::EMPTY };

/// Execution functions of `config`.
pub static FUNCTIONS: Functions<Context> = registry!(
    "config",
    [
        get,
        merge,
        dot_vals,
        items,
        option,
        backup_mode,
        manage_mode,
        valid_fileproto,
        bootstrap::gather_bootstrap_script
    ]
);

/// The arguments that name a value.
#[derive(Args)]
pub struct PathArgs {
    /// Path of the value, such as `pkg:apache`.
    pub(crate) key: String,
    /// Value that is returned if the path is missing.
    #[default("".into())]
    pub(crate) default: Value,
    /// Text between the keys of the path.
    #[default(":".into())]
    pub(crate) delimiter: String,
}

/// Return the value at a path from the first source that has it: the minion's options, its grains, its pillar, the
/// master's options in the pillar; with `merge` (recurse or overwrite), the merged values of all. `omit_opts` and
/// the like skip one source when `merge` is not used. For `sdb://<profile>/<key>` return the value of that key.
///
/// CLI Example:
///
///     salt '*' config.get pkg:apache
///     salt '*' config.get pkg merge=recurse
#[function]
pub fn get(
    context: &Context,
    #[args] path: PathArgs,
    /// Whether mappings of all sources are merged: `recurse` or `overwrite`.
    merge: Option<String>,
    /// Whether the minion's configuration is left out.
    #[default(false)]
    omit_opts: bool,
    /// Whether the pillar is left out.
    #[default(false)]
    omit_pillar: bool,
    /// Whether the master's configuration is left out.
    #[default(false)]
    omit_master: bool,
    /// Whether grains are left out.
    #[default(false)]
    omit_grains: bool,
) -> CallResult {
    let PathArgs { key, default, delimiter } = path;
    let pillar = context.pillar();
    let (opts, grains, nothing) = (context.opts(), context.grains(), Map::new());
    let master = pillar.get("master").and_then(Value::as_map).unwrap_or(&nothing);
    let places = [(omit_opts, &*opts), (omit_grains, &*grains), (omit_pillar, &*pillar), (omit_master, master)];
    let at = |place: &Map| entry_at(place, &key, &delimiter).cloned();
    // Salt's options also contain grains and pillar.
    let (first, rest) = key.split_once(&delimiter).map_or((&*key, None), |(first, rest)| (first, Some(rest)));
    let within =
        |tree: &Map| rest.map_or_else(|| Some(tree.clone().into()), |rest| entry_at(tree, rest, &delimiter).cloned());
    let in_opts = match first {
        _ if omit_opts || merge.is_some() => None,
        "pillar" => within(&pillar),
        "grains" => within(&grains),
        _ => None,
    };
    let value = match merge.as_deref() {
        None if in_opts.is_some() => in_opts,
        None => places.into_iter().filter(|(omit, _)| !omit).find_map(|(_, place)| at(place)),
        Some(strategy) => {
            let mut all = Map::new();
            for (_, place) in places.into_iter().rev() {
                if strategy == "overwrite" { all.extend(place.clone()) } else { merge_deep(&mut all, place, false) }
            }
            at(&all)
        }
    };
    resolved(context, value, default)
}

/// Returns a found value, that of an SDB if it is such a URI.
fn resolved(context: &Context, value: Option<Value>, default: Value) -> CallResult {
    match value {
        Some(Value::Str(uri)) if uri.starts_with("sdb://") => {
            context.call("sdb.get", Args::positional([Value::Str(uri)]))
        }
        value => Ok(value.unwrap_or(default)),
    }
}

/// Return a value merged from the minion's options, the master's options in the pillar, and the pillar.
///
/// CLI Example:
///
///     salt '*' config.merge schedule
#[function]
pub fn merge(
    context: &Context,
    /// Key of the option.
    value: String,
    /// Result if the option is not set.
    #[default("".into())]
    default: Value,
    /// Whether the minion's configuration is left out.
    #[default(false)]
    omit_opts: bool,
    /// Whether the master's configuration is left out.
    #[default(false)]
    omit_master: bool,
    /// Whether the pillar is left out.
    #[default(false)]
    omit_pillar: bool,
) -> CallResult {
    let pillar = context.pillar();
    let master = pillar.get("master").and_then(Value::as_map).cloned().unwrap_or_default();
    let places = [(omit_opts, context.config().opts.clone()), (omit_master, master), (omit_pillar, (*pillar).clone())];
    let mut result: Option<Value> = None;
    for (_, place) in places.into_iter().filter(|(omit, _)| !omit) {
        match (&mut result, place.get(value.as_str())) {
            (None, Some(Value::Str(text))) => return Ok(text.as_str().into()),
            (None, Some(first)) => result = Some(first.clone()),
            // The value found first wins.
            (Some(Value::Map(have)), Some(Value::Map(more))) => {
                let mut all = more.clone();
                all.extend(have.clone());
                *have = all;
            }
            (Some(Value::List(have)), Some(Value::List(more))) => have.extend(more.clone()),
            _ => {}
        }
    }
    Ok(result.unwrap_or(default))
}

/// Return all options whose names begin with this prefix and a dot.
///
/// CLI Example:
///
///     salt '*' config.dot_vals host
#[function]
pub fn dot_vals(
    context: &Context,
    /// Key of the option.
    value: String,
) -> CallResult {
    let begins = format!("{value}.");
    let pillar = context.pillar();
    let master = pillar.get("master").and_then(Value::as_map).cloned().unwrap_or_default();
    let all = master.iter().chain(context.config().opts.iter());
    Ok(Value::Map(
        all.filter(|(name, _)| name.to_string().starts_with(&begins))
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect(),
    ))
}

/// Return all options of the minion.
///
/// CLI Example:
///
///     salt '*' config.items
#[function]
pub fn items(context: &Context) -> CallResult {
    Ok(context.config().opts.clone().into())
}

/// The sources that an option is not taken from.
#[derive(Args)]
pub struct OmitArgs {
    /// Whether the options of the minion are skipped.
    #[default(false)]
    omit_opts: bool,
    /// Whether the grains are skipped.
    #[default(false)]
    omit_grains: bool,
    /// Whether the pillar is skipped.
    #[default(false)]
    omit_pillar: bool,
    /// Whether the options of the master in the pillar are skipped.
    #[default(false)]
    omit_master: bool,
    /// Whether all of them are skipped.
    #[default(false)]
    omit_all: bool,
}

/// Return an option from the sources of `get`, by its name alone: `a:b` is no path. Without a name the default is
/// returned.
///
/// CLI Examples:
///
///     salt '*' config.option root_dir
///     salt '*' config.option 'master*' wildcard=True
#[function]
pub fn option(
    context: &Context,
    /// Name of the option.
    value: Value,
    /// Result if the option is not set.
    #[default("".into())]
    default: Value,
    #[args] omit: OmitArgs,
    /// Whether the name is a pattern: the result are all options that it matches, by name.
    #[default(false)]
    wildcard: bool,
) -> CallResult {
    // Modules pass the name of a profile that may be absent.
    if value.is_nil() {
        return Ok(if default.is_nil() { "".into() } else { default });
    }
    let (name, pillar, nothing) = (value.to_string(), context.pillar(), Map::new());
    let (opts, grains) = (context.opts(), context.grains());
    let master = pillar.get("master").and_then(Value::as_map).unwrap_or(&nothing);
    let places = [
        (omit.omit_opts, &*opts),
        (omit.omit_grains, &*grains),
        (omit.omit_pillar, &*pillar),
        (omit.omit_master, master),
    ];
    let mut places = places.into_iter().filter(|(is_omitted, _)| !is_omitted && !omit.omit_all);
    if wildcard {
        let entries = places.rev().flat_map(|(_, place)| place.iter());
        let matching = entries.filter(|(key, _)| key.as_str().is_some_and(|key| glob::fnmatch(&name, key)));
        let options: Map = matching.map(|(key, value)| (key.clone(), value.clone())).collect();
        let nothing = if default == "".into() { Map::new().into() } else { default };
        return Ok(if options.is_empty() { nothing } else { options.into() });
    }
    // Salt's options also contain grains and pillar.
    let option_value = match name.as_str() {
        "grains" if !omit.omit_opts && !omit.omit_all => Some((*grains).clone().into()),
        "pillar" if !omit.omit_opts && !omit.omit_all => Some((*pillar).clone().into()),
        name => places.find_map(|(_, place)| place.get(name).cloned()),
    };
    resolved(context, option_value, default)
}

/// Return `backup`, or the option `backup_mode` if it is empty.
///
/// CLI Example:
///
///     salt '*' config.backup_mode
#[function]
pub fn backup_mode(
    context: &Context,
    /// Mode of a state; that of the configuration if it is empty.
    #[default("".into())]
    backup: Value,
) -> CallResult {
    if backup.is_truthy() {
        return Ok(backup);
    }
    let path = PathArgs { key: "backup_mode".to_owned(), default: "".into(), delimiter: ":".into() };
    get(context, path, None, false, false, false, false)
}

/// Return a mode in the form in which modes of files are compared: four digits.
///
/// CLI Example:
///
///     salt '*' config.manage_mode 644
#[function]
pub fn manage_mode(
    _context: &Context,
    /// Permissions, as a number or string.
    mode: Value,
) -> CallResult {
    if mode.is_nil() {
        return Ok(mode);
    }
    let text = mode.to_string();
    let digits = text.trim_matches('"').trim_start_matches("0o").trim_start_matches('0');
    Ok(format!("{digits:0>4}").into())
}

/// Return whether files can be fetched from this type of URL.
///
/// CLI Example:
///
///     salt '*' config.valid_fileproto salt://path/to/file
#[function]
pub fn valid_fileproto(
    _context: &Context,
    /// URL.
    uri: String,
) -> CallResult {
    const PROTOCOLS: [&str; 7] = ["salt", "file", "http", "https", "ftp", "s3", "swift"];
    Ok(uri.split_once(':').is_some_and(|(scheme, _)| PROTOCOLS.contains(&scheme.to_lowercase().as_str())).into())
}

#[cfg(test)]
mod tests;
