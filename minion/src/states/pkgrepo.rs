//! `pkgrepo`: the repositories that packages come from.

use brine_core::function::{Args, CallError};
use brine_core::value::FromValue;
use brine_core::{Map, Value, functions};

use super::{StateContext, StateReturn};
use crate::modules::pkg::{Source, combined, described};

functions! {
    module "pkgrepo", context StateContext;

    /// A repository, said as a line of `sources.list`, in apt's files.
    fn managed(context, name: String, ppa: Value = Value::Nil, copr: Value = Value::Nil, aptkey: bool = true, **kwargs) {
        _ = copr;
        let repo = if ppa.is_truthy() { format!("ppa:{ppa}") } else { name.clone() };
        Ok(configured(context, &name, &repo, aptkey, kwargs).unwrap_or_else(|failed| *failed).into())
    }

    /// A repository that is in none of apt's files.
    fn absent(context, name: String, **kwargs) {
        Ok(removed(context, &name, &kwargs).unwrap_or_else(|failed| *failed).into())
    }
}

/// A return that ends the state early.
type Early = Box<StateReturn>;

/// The message of an error without what stands before it.
fn message(error: CallError) -> String {
    match error {
        CallError::Execution(message) => message,
        error => error.to_string(),
    }
}

fn call(context: &StateContext, function: &str, repo: &str, kwargs: &Map) -> Result<Value, String> {
    let args = Args { positional: vec![repo.into()], keyword: kwargs.clone() };
    context.call.call(function, args).map_err(message)
}

fn configured(
    context: &StateContext,
    name: &str,
    repo: &str,
    aptkey: bool,
    mut kwargs: Map,
) -> Result<StateReturn, Early> {
    let failed = |comment: &str| Box::new(StateReturn::failed(name, comment));
    if kwargs.contains_key("repo") {
        return Err(failed(
            "'repo' is not a supported argument for this state. The 'name' argument is probably what was intended.",
        ));
    }
    let (enabled, disabled) = (kwargs.shift_remove("enabled"), kwargs.shift_remove("disabled"));
    let (enabled, disabled) = (enabled.filter(|word| !word.is_nil()), disabled.filter(|word| !word.is_nil()));
    let is_true = |value: &Value| bool::from_value(value).unwrap_or_default();
    let disabled = match (enabled, disabled) {
        (Some(_), Some(_)) => return Err(failed("Only one of enabled/disabled is allowed")),
        (_, Some(disabled)) => is_true(&disabled),
        (enabled, None) => !enabled.is_none_or(|enabled| is_true(&enabled)),
    };
    let allow_insecure = kwargs.shift_remove("allow_insecure_key").is_none_or(|allow| allow.is_truthy());
    let is_insecure = kwargs.get("key_url").is_some_and(|url| url.to_string().trim().starts_with("http:"));
    if is_insecure && !allow_insecure {
        return Err(failed("Cannot have 'key_url' using http with 'allow_insecure_key' set to True"));
    }
    kwargs.insert("name".into(), name.into());
    kwargs.insert("disabled".into(), disabled.into());
    let pre = call(context, "pkg.get_repo", repo, &kwargs)
        .map_err(|error| failed(&format!("Failed to examine repo '{name}': {error}")))?;
    let mut pre = pre.as_map().cloned().unwrap_or_default();
    let mut wanted = described(repo, &kwargs);
    let file = kwargs.get("file").filter(|file| file.is_truthy()).map(ToString::to_string);
    let clean = kwargs.get("clean_file").is_some_and(Value::is_truthy);
    let cleans = clean && has_others(file.as_deref(), name);
    if !(pre.is_empty() || cleans) {
        pre.shift_remove("file");
        wanted.shift_remove("file");
        if !differs(&pre, &wanted, &kwargs) {
            return Ok(StateReturn::ok(name, format!("Package repo '{name}' already configured")));
        }
    }
    if context.test {
        let comment = format!(
            "Package repo '{name}' would be configured. This may cause pkg states to behave differently than stated if \
             this action is repeated without test=True, due to the differences in the configured repositories."
        );
        let changes = if pre.is_empty() {
            brine_core::map! {"repo" => name}
        } else {
            changes(&wanted, &pre, &wanted)
        };
        return Ok(StateReturn::would(name, comment).with_changes(changes));
    }
    if clean && let Some(file) = &file {
        std::fs::write(file, "").map_err(|error| failed(&format!("Failed to configure repo '{name}': {error}")))?;
    }
    let mut args = kwargs.clone();
    args.insert("saltenv".into(), context.saltenv.as_str().into());
    args.insert("aptkey".into(), aptkey.into());
    call(context, "pkg.mod_repo", repo, &args)
        .map_err(|error| failed(&format!("Failed to configure repo '{name}': {error}")))?;
    let post = call(context, "pkg.get_repo", repo, &kwargs).unwrap_or_default();
    let post = post.as_map().cloned().unwrap_or_default();
    let changes = if pre.is_empty() {
        brine_core::map! {"repo" => repo}
    } else {
        changes(&post, &pre, &wanted)
    };
    Ok(StateReturn::ok(name, format!("Configured package repo '{name}'")).with_changes(changes))
}

/// Whether a file has lines beside this one and comments.
fn has_others(file: Option<&str>, name: &str) -> bool {
    let text = file.and_then(|file| std::fs::read_to_string(file).ok()).unwrap_or_default();
    text.lines().map(str::trim).any(|line| !line.is_empty() && !line.starts_with('#') && line != name.trim())
}

/// What is new, of the keys that are compared.
fn changes(new: &Map, old: &Map, keys: &Map) -> Map {
    let of = |map: &Map, key: &Value| map.get(key).cloned().unwrap_or_default();
    keys.keys()
        .filter(|key| of(new, key) != of(old, key))
        .map(|key| (key.clone(), brine_core::map! {"new" => of(new, key), "old" => of(old, key)}.into()))
        .collect()
}

/// The words of a line, those behind the distribution in order.
fn in_order(line: &str) -> Vec<String> {
    let mut words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    if let Some(comps) = words.get_mut(3..) {
        comps.sort();
    }
    words
}

fn differs(pre: &Map, wanted: &Map, kwargs: &Map) -> bool {
    let sorted = |value: &Value| {
        let mut names = Vec::<String>::from_value(value).unwrap_or_default();
        names.sort();
        names.dedup();
        names
    };
    wanted.iter().any(|(key, value)| {
        let Some(have) = pre.get(key) else { return false };
        match key.as_str().unwrap_or_default() {
            "comps" => sorted(value) != sorted(have),
            "architectures" if value.is_truthy() => sorted(value) != sorted(have),
            "line" => {
                let have = have.to_string();
                let (line, comment) = have.split_once('#').unwrap_or((&have, ""));
                let is_enabled = !wanted.get("disabled").is_some_and(Value::is_truthy);
                let told = kwargs.get("comments").map(combined);
                is_enabled
                    && (in_order(&value.to_string()) != in_order(line)
                        || told.is_some_and(|told| told != comment.trim()))
            }
            _ => value.to_string() != have.to_string(),
        }
    })
}

fn removed(context: &StateContext, name: &str, kwargs: &Map) -> Result<StateReturn, Early> {
    let failed = |comment: String| Box::new(StateReturn::failed(name, comment));
    let repo = without_slashes(name);
    let found = call(context, "pkg.get_repo", &repo, kwargs)
        .map_err(|error| failed(format!("Failed to configure repo '{name}': {error}")))?;
    let sorted = |mut names: Vec<String>| {
        names.sort();
        names
    };
    let have = found.get("architectures").and_then(Vec::from_value).unwrap_or_default();
    if !found.is_truthy() || sorted(have) != sorted(Source::line(&repo).architectures()) {
        return Ok(StateReturn::ok(name, format!("Package repo {name} is absent")));
    }
    if context.test {
        let comment = format!(
            "Package repo '{name}' will be removed. This may cause pkg states to behave differently than stated if this \
             action is repeated without test=True, due to the differences in the configured repositories."
        );
        return Ok(StateReturn::would(name, comment));
    }
    call(context, "pkg.del_repo", &repo, kwargs).map_err(failed)?;
    let mut done = StateReturn::ok(name, format!("Removed repo {name}"));
    done.changes.insert("repo".into(), name.into());
    if kwargs.get("keyid").is_none_or(Value::is_nil) {
        return Ok(done);
    }
    match call(context, "pkg.del_repo_key", &repo, kwargs) {
        Ok(key) => {
            done.comment += &format!(", and keyid {key}");
            done.changes.insert("keyid".into(), key);
        }
        Err(error) => {
            done.result = Some(false);
            done.comment += &format!(", but failed to remove key: {error}");
        }
    }
    Ok(done)
}

/// The line with addresses that do not end with a slash.
fn without_slashes(repo: &str) -> String {
    let is_address = |word: &&str| ["http://", "https://", "ftp://"].iter().any(|start| word.starts_with(start));
    let bare = |word: &str| if is_address(&word) { word.trim_end_matches('/').to_owned() } else { word.to_owned() };
    repo.split_whitespace().map(bare).collect::<Vec<_>>().join(" ")
}
