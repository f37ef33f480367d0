//! `pillar`: data that the master compiles for this minion.
//!
//! Outside of templates, values are masked with masters of Brine and of Salt 3008 and later: `unmask=True` and
//! `pillar.raw` return them in clear. With masters of Salt 3006 and 3007 they are never masked, as on minions of
//! these releases.

#[cfg(test)]
mod tests;

use std::sync::Arc;

use brine_context::{Context, Module};
use brine_function::arguments::refuse;
use brine_function::{Args, CallError, CallResult, Functions, function, registry};
use brine_sls::pillar::PILLAR_ENC;
use brine_system::files::path_within;
use brine_value::{FromValue, Map, Value};
use brine_yaml::entry_at;

use super::grains::choose;

const MASK: &str = "**********";

pub(super) static MODULE: Module = Module { functions: &[&FUNCTIONS], ..Module::EMPTY };

/// Execution functions of `pillar`.
pub static FUNCTIONS: Functions<Context> =
    registry!("pillar", [get, fetch, items, data, obfuscate, item, filter_by, file_exists, raw, keys, ls, ext]);

/// The value for a missing path.
enum Fallback {
    Unset,
    Given(Value),
}

impl FromValue for Fallback {
    const EXPECTED: &'static str = "a value";
    fn from_value(value: &Value) -> Option<Self> {
        Some(Fallback::Given(value.clone()))
    }
}

impl From<Fallback> for Value {
    fn from(fallback: Fallback) -> Self {
        match fallback {
            Fallback::Unset => "".into(),
            Fallback::Given(value) => value,
        }
    }
}

/// The arguments of `pillar.get`.
#[derive(Args)]
pub struct GetArgs {
    /// Path of the value, such as `users:root:shell`.
    key: String,
    /// Value that is returned if the path is missing: by default an empty string; with the option
    /// `pillar_raise_on_missing` a missing path without default is an error.
    #[default(Fallback::Unset)]
    default: Fallback,
    /// Whether a mapping or list is merged into the default.
    #[default(false)]
    merge: bool,
    /// Whether lists within merged mappings are merged; `pillar_merge_lists` by default.
    merge_nested_lists: Option<bool>,
    /// Text between the keys of the path.
    #[default(":".into())]
    delimiter: String,
    /// Environment for which the pillar is compiled again.
    pillarenv: Option<String>,
    /// Environment of the file server for that pillar.
    saltenv: Option<String>,
    /// Whether masked values are returned in clear.
    unmask: Option<bool>,
}

/// Return the pillar value at a path such as `users:root:shell`, or the default; with `pillarenv` or `saltenv`,
/// from the pillar of that environment.
///
/// CLI Example:
///
///     salt '*' pillar.get pkg:apache
#[function]
pub fn get(context: &Context, #[args] args: GetArgs) -> CallResult {
    let pillar = compiled_pillar(context, args.saltenv.as_deref(), args.pillarenv.as_deref())?;
    let entry = entry_at(&pillar, &args.key, &args.delimiter).cloned();
    let lists = args.merge_nested_lists.unwrap_or(context.config().pillar_merge_lists);
    if entry.is_none() && matches!(args.default, Fallback::Unset) && context.config().pillar_raise_on_missing {
        return Err(CallError::Execution(format!("Pillar key not found: {}", args.key)));
    }
    let value = match (entry, Value::from(args.default)) {
        (Some(Value::Map(over)), Value::Map(mut under)) if args.merge => {
            brine_value::merge_deep(&mut under, &over, lists);
            Value::Map(under)
        }
        (Some(Value::List(over)), Value::List(mut under)) if args.merge => {
            let more: Vec<Value> = over.into_iter().filter(|item| !under.contains(item)).collect();
            under.extend(more);
            Value::List(under)
        }
        (Some(value), _) => value,
        (None, default) => default,
    };
    Ok(masked_unless(context, value, args.unmask))
}

/// Return the pillar value at a path, as `get`.
///
/// CLI Example:
///
///     salt '*' pillar.fetch pkg:apache
#[function]
pub fn fetch(context: &Context, #[args] args: GetArgs) -> CallResult {
    get(context, args)
}

/// Compile the pillar again, and return all of it, or these top-level keys.
///
/// Accepts pillar, pillarenv, saltenv and unmask.
///
/// CLI Example:
///
///     salt '*' pillar.items
///     salt '*' pillar.items pillarenv=dev
#[function]
pub fn items(
    context: &Context,
    /// Keys of the pillar.
    #[rest]
    args: Vec<Value>,
    /// `pillar`, a mapping over the pillar; `saltenv`; `pillarenv`; and `unmask`: whether values are returned unmasked.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    let fresh = recompile(context, &kwargs)?;
    let shows = !brine_config::opts::modules::pillar_mask_output(&context.opts());
    let unmask = unmasked(&kwargs).or(shows.then_some(true));
    let named = |name: &Value| (name.clone(), fresh.get(name).cloned().unwrap_or_else(|| "".into()));
    let items = if args.is_empty() { fresh } else { args.iter().map(named).collect() };
    let errors = items.get("_errors").map(without_text);
    let mut items = masked_unless(context, items.into(), unmask);
    // What went wrong is no secret; lines of the files may be.
    if let (Some(errors), Value::Map(items)) = (errors, &mut items)
        && items.get("_errors").is_some_and(|errors| errors.as_list().is_some_and(|all| all.contains(&MASK.into())))
    {
        items.insert("_errors".into(), errors);
    }
    Ok(items)
}

/// Compile the pillar again and return it, as `items`.
///
/// CLI Example:
///
///     salt '*' pillar.data
#[function]
pub fn data(
    context: &Context,
    /// Keys of the pillar.
    #[rest]
    args: Vec<Value>,
    /// `pillar`, a mapping over the pillar; `saltenv`; `pillarenv`; and `unmask`: whether values are returned unmasked.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    items(context, args, kwargs)
}

/// Return the types of the pillar's values instead of the values. Masked values are strings. Accepts the arguments
/// of `items`.
///
/// CLI Example:
///
///     salt '*' pillar.obfuscate
#[function]
pub fn obfuscate(
    context: &Context,
    /// Keys of the pillar.
    #[rest]
    args: Vec<Value>,
    /// `pillar`, a mapping over the pillar; `saltenv`; `pillarenv`; and `unmask`: whether values are returned unmasked.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    Ok(kinds(&items(context, args, kwargs)?))
}

/// Return several pillar values by path.
///
/// Accepts default, delimiter, pillarenv, saltenv and unmask.
///
/// CLI Example:
///
///     salt '*' pillar.item foo bar
#[function]
pub fn item(
    context: &Context,
    /// Keys of the pillar.
    #[rest]
    args: Vec<Value>,
    /// `default`, the value of a missing path (an empty text); `delimiter` (`:`); `saltenv`; `pillarenv`; and `unmask`:
    /// whether values are returned unmasked.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    let text = |name: &str| kwargs.get(name).filter(|value| !value.is_nil()).map(ToString::to_string);
    let pillar = compiled_pillar(context, text("saltenv").as_deref(), text("pillarenv").as_deref())?;
    let default = kwargs.get("default").cloned().unwrap_or_else(|| "".into());
    let delimiter = text("delimiter").unwrap_or_else(|| ":".to_owned());
    let named: Map = args
        .iter()
        .map(|name| {
            (name.clone(), entry_at(&pillar, &name.to_string(), &delimiter).cloned().unwrap_or_else(|| default.clone()))
        })
        .collect();
    Ok(masked_unless(context, named.into(), unmasked(&kwargs)))
}

/// Look up a value in a mapping by the pillar value at a path: `{'web': .., 'db*': .., 'default': ..}`.
///
/// CLI Example:
///
///     salt '*' pillar.filter_by '{web: Serve it up, db: I query}' role
#[function]
pub fn filter_by(
    context: &Context,
    /// Mapping of values to results.
    lookup_dict: Map,
    /// Key of the pillar whose value selects the result.
    pillar: String,
    /// Mapping that is merged into the result.
    #[default]
    merge: Value,
    /// Key of the result if no value matches.
    #[default("default".into())]
    default: Value,
    /// Key of a mapping that the result is merged into.
    #[default]
    base: Value,
) -> CallResult {
    choose(&lookup_dict, entry_at(&context.pillar(), &pillar, ":"), merge, &default, &base)
}

/// Return whether a file exists below the minion's own `pillar_roots`, in one environment or in any.
///
/// CLI Example:
///
///     salt '*' pillar.file_exists foo/bar.sls
#[function]
pub fn file_exists(
    context: &Context,
    /// Path below `pillar_roots`.
    path: String,
    /// Environment of the pillar.
    saltenv: Option<String>,
) -> CallResult {
    let opts = context.opts();
    let roots = brine_config::opts::shared::pillar_roots(&opts);
    let environments = roots.iter().filter(|(name, _)| saltenv.as_ref().is_none_or(|saltenv| saltenv == *name));
    let exists = environments
        .flat_map(|(_, directories)| directories)
        .any(|directory| path_within(directory, &path).is_some_and(|path| path.is_file()));
    Ok(exists.into())
}

/// Return the pillar in memory, or a key of it; masked only with `unmask=False`.
///
/// CLI Example:
///
///     salt '*' pillar.raw
#[function]
pub fn raw(
    context: &Context,
    /// Key of the pillar; `a:b` is the key `b` of the mapping `a`.
    key: Option<String>,
    /// Whether secrets are shown.
    #[default(true)]
    unmask: bool,
) -> CallResult {
    let pillar = context.pillar();
    let value = match key {
        Some(key) => pillar.get(key.as_str()).cloned().unwrap_or_else(Value::map),
        None => Value::Map((*pillar).clone()),
    };
    Ok(masked_unless(context, value, Some(unmask)))
}

/// Return the keys of the mapping at a path.
///
/// CLI Example:
///
///     salt '*' pillar.keys web:sites
#[function]
pub fn keys(
    context: &Context,
    /// Key of the pillar; `a:b` is the key `b` of the mapping `a`.
    key: String,
    /// Separator of the keys in `key`.
    #[default(":".into())]
    delimiter: String,
) -> CallResult {
    match entry_at(&context.pillar(), &key, &delimiter) {
        Some(Value::Map(map)) => Ok(map.keys().cloned().collect()),
        Some(_) => Err(CallError::Execution(format!("Pillar value in key {key} is not a dict"))),
        None => Err(CallError::Execution(format!("Pillar key not found: {key}"))),
    }
}

/// Return the top-level keys of the pillar. Accepts the arguments of `items`.
///
/// CLI Example:
///
///     salt '*' pillar.ls
#[function]
pub fn ls(
    context: &Context,
    /// `pillar`, a mapping over the pillar; `saltenv`; `pillarenv`.
    #[keywords]
    kwargs: Map,
) -> CallResult {
    Ok(recompile(context, &kwargs)?.keys().cloned().collect())
}

/// Compile the pillar with a further entry of `ext_pillar`, which the master has to allow (`on_demand_ext_pillar`), and
/// return it.
///
/// CLI Example:
///
///     salt '*' pillar.ext '{nodegroups: _}'
#[function]
pub fn ext(
    context: &Context,
    /// External pillars, as in the option `ext_pillar`.
    external: Map,
    /// Pillar that the result is merged into.
    pillar: Option<Map>,
    /// Whether secrets are shown.
    unmask: Option<bool>,
) -> CallResult {
    let compiled = context.minion.upstream.pillar_with(&external, &pillar.unwrap_or_default());
    Ok(masked_unless(context, compiled.map_err(CallError::execution)?.into(), unmask))
}

/// Returns the pillar in memory, or compiles that of an environment.
fn compiled_pillar(context: &Context, saltenv: Option<&str>, pillarenv: Option<&str>) -> Result<Arc<Map>, CallError> {
    if saltenv.is_none() && pillarenv.is_none() {
        return Ok(context.pillar());
    }
    let pillarenv = context.config().pillarenv_of(saltenv, pillarenv);
    let compiled = context.minion.upstream.pillar(saltenv, pillarenv.as_deref(), &Map::new());
    compiled.map(Arc::new).map_err(CallError::execution)
}

/// Compiles the pillar again, with the arguments of `items`.
fn recompile(context: &Context, kwargs: &Map) -> Result<Map, CallError> {
    let config = context.config();
    let argument = |name: &str| kwargs.get(name).filter(|value| !value.is_nil()).map(ToString::to_string);
    let saltenv = argument("saltenv").or_else(|| config.saltenv.clone());
    let pillarenv = config.pillarenv_of(argument("saltenv").as_deref(), argument("pillarenv").as_deref());
    refuse("pillar.items", kwargs, &[PILLAR_ENC])?;
    let over = match kwargs.get("pillar") {
        None | Some(Value::Nil) => Map::new(),
        Some(Value::Map(over)) => over.clone(),
        Some(_) => {
            let message = "Pillar data must be formatted as a dictionary, unless pillar_enc is specified.".into();
            return Err(CallError::Invocation { function: "pillar.items".into(), message });
        }
    };
    let upstream = &context.minion.upstream;
    let fresh = upstream.pillar(saltenv.as_deref(), pillarenv.as_deref(), &over).map_err(CallError::execution)?;
    // Salt reports success. A template that asks does not change the outcome of its job.
    if fresh.contains_key("_errors") && is_asked_for(context) && !config.salt_exit_status {
        context.set_retcode(1);
    }
    Ok(fresh)
}

/// Whether the job calls a function of `pillar`.
fn is_asked_for(context: &Context) -> bool {
    context.job.fun.split(',').any(|fun| fun.starts_with("pillar."))
}

/// Returns the argument `unmask`, if it is given.
fn unmasked(kwargs: &Map) -> Option<bool> {
    kwargs.get("unmask").filter(|value| !value.is_nil()).map(Value::is_truthy)
}

/// Returns a value masked, unless `unmask` is true. If that is not given, values are masked outside of templates,
/// if the master's release does so.
fn masked_unless(context: &Context, value: Value, unmask: Option<bool>) -> Value {
    let unmask = unmask.unwrap_or_else(|| context.in_template || !context.minion.upstream.masks_pillar());
    if unmask { value } else { masked(&value) }
}

/// Returns the errors of a pillar without lines of its files: the messages, and their places and causes.
fn without_text(errors: &Value) -> Value {
    let brief = |error: &Value| {
        let text = error.to_string();
        let is_kept =
            |(number, line): &(usize, &str)| *number == 0 || line.starts_with("  --> ") || line.starts_with("  hint: ");
        let lines: Vec<&str> = text.lines().enumerate().filter(is_kept).map(|(_, line)| line).collect();
        Value::from(lines.join("\n"))
    };
    errors.as_list().unwrap_or_default().iter().map(brief).collect()
}

/// Returns the type of each value in its place.
fn kinds(value: &Value) -> Value {
    match value {
        Value::Map(map) => Value::Map(map.iter().map(|(key, value)| (key.clone(), kinds(value))).collect()),
        Value::List(items) => items.iter().map(kinds).collect(),
        scalar => format!("<{}>", scalar.type_name()).into(),
    }
}

/// Replaces every value by the mask.
fn masked(value: &Value) -> Value {
    match value {
        Value::Map(map) => Value::Map(map.iter().map(|(key, value)| (key.clone(), masked(value))).collect()),
        Value::List(items) => items.iter().map(masked).collect(),
        scalar if scalar.is_truthy() => MASK.into(),
        scalar => scalar.clone(),
    }
}
