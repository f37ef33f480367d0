//! Filters for lists: set operations, samples, sorting and comparison.

use brine_digest::random::MersenneTwister;
use brine_value::Value;
use minijinja::value::{Tuple, Value as JinjaValue, ValueKind};
use minijinja::{Environment, Error};
use rand::seq::IndexedRandom;

use super::{Args, Defined, Options, by_name, defined, is_list, iterable, lacks};

use super::super::data::{pairs, raise, refuse_undefined, text, to_jinja, to_mutable, type_name};
use super::super::operators::add;

pub(super) fn add_to(environment: &mut Environment<'static>) {
    environment.add_filter("unique", |value: JinjaValue| items(&value).map(|items| listed(unique(items))));
    by_name(environment, "union", &["lst2"], |a: JinjaValue, b: JinjaValue| -> Result<_, Error> {
        addable(&a, &b)?;
        Ok(listed(unique(items(&a)?.into_iter().chain(items(&b)?))))
    });
    by_name(environment, "intersect", &["lst2"], |a: JinjaValue, b: JinjaValue| -> Result<_, Error> {
        let b = items(&b)?;
        Ok(listed(unique(items(&a)?).into_iter().filter(|item| b.contains(item))))
    });
    by_name(environment, "difference", &["lst2"], |a: JinjaValue, b: JinjaValue| -> Result<_, Error> {
        let b = items(&b)?;
        Ok(listed(unique(items(&a)?).into_iter().filter(|item| !b.contains(item))))
    });
    by_name(environment, "symmetric_difference", &["lst2"], |a: JinjaValue, b: JinjaValue| -> Result<_, Error> {
        addable(&a, &b)?;
        let (a, b) = (unique(items(&a)?), unique(items(&b)?));
        let only_b: Vec<_> = b.iter().filter(|item| !a.contains(item)).cloned().collect();
        Ok(listed(a.into_iter().filter(|item| !b.contains(item)).chain(only_b)))
    });
    environment.add_filter("flatten", flatten);
    environment.add_filter("dictsort", sort_entries);
    environment.add_filter("is_list", |value: JinjaValue| is_list(&value));
    environment.add_filter("is_iter", |value: Defined| {
        matches!(value.kind(), ValueKind::Seq | ValueKind::Iterable | ValueKind::Map | ValueKind::Bytes)
    });
    environment.add_filter("skip", |_: JinjaValue| "");
    environment.add_filter("sequence", |value: JinjaValue| match value.kind() {
        ValueKind::Seq | ValueKind::Iterable | ValueKind::Map => value,
        _ => listed([value]),
    });
    by_name(
        environment,
        "substring_in_list",
        &["list_to_search"],
        |what: Defined, list: JinjaValue| -> Result<bool, Error> {
            let message = "'in <string>' requires string as left operand, not";
            let what = what.as_str().ok_or_else(|| raise(format_args!("{message} {}", type_name(&what))))?;
            Ok(items(&list)?.iter().any(|item| item.as_str().is_some_and(|item| item.contains(what))))
        },
    );
    by_name(environment, "exactly_n_true", &["amount"], |list: JinjaValue, n: Option<usize>| {
        count_true(&list, n.unwrap_or(1))
    });
    environment.add_filter("exactly_one_true", |list: JinjaValue| count_true(&list, 1));
    environment.add_filter("random", |value: JinjaValue| -> Result<JinjaValue, Error> {
        Ok(items(&value)?.choose(&mut rand::rng()).cloned().unwrap_or_default())
    });
    for name in ["shuffle", "random_shuffle"] {
        environment.add_filter(name, |value: JinjaValue, args: Args| -> Result<JinjaValue, Error> {
            let items = items(&value)?;
            sample(&items, items.len(), Options::new(&args)?.get(0, "seed"))
        });
    }
    for name in ["sample", "random_sample"] {
        by_name(environment, name, &["size", "seed"], |value: JinjaValue, size: usize, args: Args| {
            sample(&items(&value)?, size, Options::new(&args)?.get(0, "seed"))
        });
    }
    environment.add_filter("sorted_ignorecase", |value: JinjaValue| -> Result<JinjaValue, Error> {
        let mut items = items(&value)?;
        if let Some(other) = items.iter().find(|item| item.as_str().is_none()) {
            return Err(lacks(other, "lower"));
        }
        items.sort_by_cached_key(|item| text(item).to_lowercase());
        Ok(listed(items))
    });
    by_name(environment, "compare_dicts", &["new"], compare_dicts);
    by_name(environment, "compare_lists", &["new"], compare_lists);
}

fn items(value: &JinjaValue) -> Result<Vec<JinjaValue>, Error> {
    Ok(iterable(value.clone())?.try_iter()?.collect())
}

/// Refuses operands that Salt cannot combine: both must be lists, or both hashable.
fn addable(a: &JinjaValue, b: &JinjaValue) -> Result<(), Error> {
    refuse_undefined(a)?;
    refuse_undefined(b)?;
    let is_hashable = |value: &JinjaValue| !matches!(type_name(value), "list" | "dict");
    if is_hashable(a) && is_hashable(b) { Ok(()) } else { add(a, b).map(|_| ()) }
}

fn listed(items: impl IntoIterator<Item = JinjaValue>) -> JinjaValue {
    to_mutable(&JinjaValue::from(items.into_iter().collect::<Vec<_>>()))
}

/// Returns a sample of items, random or from a seed.
fn sample(items: &[JinjaValue], count: usize, seed: Option<Value>) -> Result<JinjaValue, Error> {
    let chosen = MersenneTwister::chosen(items, count, &seed.unwrap_or_default());
    chosen.map(listed).ok_or_else(|| raise("Sample larger than population or is negative"))
}

fn unique(items: impl IntoIterator<Item = JinjaValue>) -> Vec<JinjaValue> {
    items.into_iter().collect::<indexmap::IndexSet<_>>().into_iter().collect()
}

fn count_true(list: &JinjaValue, n: usize) -> Result<bool, Error> {
    Ok(items(list)?.iter().filter(|item| item.is_true()).count() == n)
}

/// `flatten(levels=None, preserve_nulls=False)`.
fn flatten(value: JinjaValue, args: Args) -> Result<JinjaValue, Error> {
    let options = Options::new(&args)?;
    let levels =
        options.get(0, "levels").and_then(|levels| levels.as_i64()).map_or(u64::MAX, |n| u64::try_from(n).unwrap_or(0));
    let keep_nothing = options.flag(1, "preserve_nulls", false);
    let list = items(&value)?.iter().map(defined).collect::<Result<_, _>>()?;
    let mut out = Vec::new();
    flatten_into(list, levels, keep_nothing, &mut out);
    Ok(to_jinja(&Value::List(out)))
}

/// `dictsort(case_sensitive=False, by='key', reverse=False)`.
fn sort_entries(value: JinjaValue, args: Args) -> Result<JinjaValue, Error> {
    let options = Options::new(&args)?;
    defined(&value)?;
    if value.kind() != ValueKind::Map {
        return Err(raise(format_args!("'{}' object has no attribute 'items'", type_name(&value))));
    }
    let exact = options.flag(0, "case_sensitive", false);
    let by_value = options.get(1, "by").is_some_and(|by| by.as_str() == Some("value"));
    let mut entries: Vec<_> = pairs(&value).collect();
    entries.sort_by_cached_key(|(key, value)| {
        let by = if by_value { value } else { key };
        by.as_str().filter(|_| !exact).map_or_else(|| by.clone(), |text| JinjaValue::from(text.to_lowercase()))
    });
    if options.flag(2, "reverse", false) {
        entries.reverse();
    }
    Ok(listed(entries.into_iter().map(|(key, value)| JinjaValue::from(Tuple::from([key, value])))))
}

fn flatten_into(list: Vec<Value>, levels: u64, keep_nothing: bool, out: &mut Vec<Value>) {
    for item in list {
        match item {
            Value::Nil if !keep_nothing => {}
            Value::Str(text) if matches!(text.as_str(), "None" | "null") && !keep_nothing => {}
            Value::List(inner) if levels > 0 => flatten_into(inner, levels - 1, keep_nothing, out),
            other => out.push(other),
        }
    }
}

/// `{key: {old, new}}` for differing values; a missing one is an empty string.
fn compare_dicts(old: JinjaValue, new: JinjaValue) -> Result<JinjaValue, Error> {
    let (Value::Map(old), Value::Map(new)) = (defined(&old)?, defined(&new)?) else {
        return Err(raise("compare_dicts requires two mappings"));
    };
    let missing = || Value::from("");
    let keys: indexmap::IndexSet<_> = old.keys().chain(new.keys()).collect();
    let differ = keys.into_iter().filter(|key| old.get(*key) != new.get(*key)).map(|key| {
        let [old, new] = [&old, &new].map(|map| map.get(key).cloned().unwrap_or_else(missing));
        (key.clone(), Value::from(brine_value::map! {"old" => old, "new" => new}))
    });
    Ok(to_jinja(&Value::Map(differ.collect())))
}

/// `{new: [...], old: [...]}` with the items that only one list has.
fn compare_lists(old: JinjaValue, new: JinjaValue) -> Result<JinjaValue, Error> {
    let (Value::List(old), Value::List(new)) = (defined(&old)?, defined(&new)?) else {
        return Err(raise("compare_lists requires two lists"));
    };
    let only =
        |a: &[Value], b: &[Value]| -> Vec<Value> { a.iter().filter(|item| !b.contains(item)).cloned().collect() };
    let mut differ = brine_value::Map::new();
    for (name, items) in [("new", only(&new, &old)), ("old", only(&old, &new))] {
        if !items.is_empty() {
            differ.insert(name.into(), items.into());
        }
    }
    Ok(to_jinja(&differ.into()))
}
