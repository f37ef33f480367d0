//! minijinja's own filters over items, with Python's errors for undefined items and for values that cannot be iterated.

use std::cmp::Ordering;

use minijinja::functions::Function;
use minijinja::value::{FunctionArgs, FunctionResult, Kwargs, Value as JinjaValue, ValueKind};
use minijinja::{Environment, Error, ErrorKind, filters};

use super::super::data::{raise, refuse_undefined, split_kwargs, type_name, type_name_in_errors};
use super::super::limits;
use super::super::operators::order;
use super::prepared;

/// The use of items by a filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Items {
    /// Returned unchanged.
    Unchanged,
    /// Evaluated.
    Evaluated,
    /// Compared by this operator.
    Compared(&'static str),
}

pub(super) fn add_to(environment: &mut Environment<'static>) {
    add_strict(environment, "list", Items::Unchanged, filters::list);
    add_strict(environment, "first", Items::Unchanged, filters::first);
    add_strict(environment, "join", Items::Evaluated, filters::join);
    add_strict(environment, "select", Items::Evaluated, filters::select);
    add_strict(environment, "reject", Items::Evaluated, filters::reject);
    add_strict(environment, "sort", Items::Compared("<"), filters::sort);
    add_strict(environment, "min", Items::Compared("<"), |value: JinjaValue| extreme("<", &value));
    add_strict(environment, "max", Items::Compared(">"), |value: JinjaValue| extreme(">", &value));
    add_strict(environment, "groupby", Items::Evaluated, filters::groupby);
}

fn add_strict<F, Rv, FilterArgs>(environment: &mut Environment<'static>, name: &'static str, does: Items, filter: F)
where
    F: Function<Rv, FilterArgs>,
    Rv: FunctionResult,
    FilterArgs: for<'a> FunctionArgs<'a>,
{
    prepared(environment, name, filter, move |args| {
        let args = named(name, args)?;
        check(name, does, &args)?;
        Ok(args)
    });
}

/// Converts positional arguments to names if minijinja requires them.
fn named(filter: &str, args: Vec<JinjaValue>) -> Result<Vec<JinjaValue>, Error> {
    let names: &[&str] = match filter {
        "sort" => &["reverse", "case_sensitive", "attribute"],
        "groupby" => &["attribute", "default", "case_sensitive"],
        _ => return Ok(args),
    };
    let (mut positional, named) = split_kwargs(&args)?;
    if positional.len() < 2 {
        return Ok(args);
    }
    let arguments = positional.split_off(1);
    if arguments.len() > names.len() {
        return Ok(args);
    }
    let arguments = names.iter().map(ToString::to_string).zip(arguments);
    // None means a missing argument.
    let all: Kwargs = arguments.filter(|(_, value)| !value.is_none()).chain(named).collect();
    positional.push(all.into());
    Ok(positional)
}

/// Returns the item that comes last in this order, as Python's `max` and `min`: unlike Jinja's, they distinguish cases.
fn extreme(operator: &'static str, value: &JinjaValue) -> Result<JinjaValue, Error> {
    let ordering = if operator == ">" { Ordering::Greater } else { Ordering::Less };
    let mut items = value.try_iter()?;
    let Some(mut best) = items.next() else { return Ok(JinjaValue::UNDEFINED) };
    for item in items {
        if order(operator, &item, &best)? == ordering {
            best = item;
        }
    }
    Ok(best)
}

fn check(name: &str, does: Items, args: &[JinjaValue]) -> Result<(), Error> {
    let (positional, named) = split_kwargs(args)?;
    let Some((value, rest)) = positional.split_first() else { return Ok(()) };
    positional.iter().try_for_each(refuse_undefined)?;
    if matches!(value.kind(), ValueKind::None | ValueKind::Bool | ValueKind::Number) {
        return Err(raise(format_args!("'{}' object is not iterable", type_name(value))));
    }
    let tested = matches!(name, "select" | "reject") && !rest.is_empty();
    if does == Items::Unchanged || tested {
        return Ok(());
    }
    let attribute = named.iter().find(|(name, _)| name == "attribute").map(|(_, attribute)| attribute);
    let has_default = named.iter().any(|(name, _)| name == "default");
    let attribute = attribute.or(rest.first().filter(|_| name == "groupby")).filter(|_| !has_default);
    let mut items: Vec<JinjaValue> = value.try_iter()?.collect();
    if let Some(attributes) = attribute.and_then(JinjaValue::as_str) {
        let mut values = Vec::new();
        for attribute in attributes.split(',') {
            for item in &items {
                values.push(reached(item, attribute)?);
            }
        }
        items = values;
    }
    items.iter().try_for_each(refuse_undefined)?;
    if name == "join" {
        let separator = rest.first().and_then(JinjaValue::as_str).map_or(0, str::len);
        let size = |item: &JinjaValue| item.as_str().map_or(0, str::len).saturating_add(separator);
        limits::reserve(items.iter().map(size).fold(0, usize::saturating_add))?;
    }
    if items.is_empty() && matches!(name, "min" | "max") {
        return Err(raise(format_args!("{name}() arg is an empty sequence")));
    }
    if let Items::Compared(operator) = does
        && attribute.is_none()
    {
        for pair in items.windows(2) {
            order(operator, &pair[1], &pair[0])?;
        }
    }
    Ok(())
}

/// Returns the value at a path of names and indices.
pub(super) fn reached(item: &JinjaValue, path: &str) -> Result<JinjaValue, Error> {
    let mut at = item.clone();
    for part in path.split('.') {
        let key = part.parse::<usize>().map_or_else(|_| JinjaValue::from(part), JinjaValue::from);
        let value = at.get_item(&key)?;
        if value.is_undefined() {
            let message = format!("Jinja variable '{}' has no attribute '{part}'", type_name_in_errors(&at));
            return Err(Error::new(ErrorKind::UndefinedError, message));
        }
        at = value;
    }
    Ok(at)
}
