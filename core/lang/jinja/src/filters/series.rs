//! Combinations of lists, as in Python's `itertools`.

use minijinja::value::{Tuple, Value as JinjaValue};
use minijinja::{Environment, Error};

use super::super::limits;
use super::{Args, by_name, iterable};
use crate::data::{Keywords, raise, split_kwargs, to_mutable};

/// The maximum number of results, to limit memory.
const MAX: usize = 100_000;

pub(super) fn add_to(environment: &mut Environment<'static>) {
    by_name(environment, "combinations", &["r"], |value: JinjaValue, n: usize| {
        tuples(chosen(&items(&value)?, n, |next, at| next > at)?)
    });
    by_name(environment, "combinations_with_replacement", &["r"], |value: JinjaValue, n: usize| {
        tuples(chosen(&items(&value)?, n, |next, at| next >= at)?)
    });
    by_name(environment, "permutations", &["r"], |value: JinjaValue, n: Option<usize>| {
        let items = items(&value)?;
        let n = n.unwrap_or(items.len());
        let mut out = Vec::new();
        permute(&items, n, &mut Vec::new(), &mut out)?;
        tuples(out)
    });
    environment.add_filter("product", |value: JinjaValue, args: Args| {
        let (lists, named) = lists(value, &args)?;
        let repeat = named.iter().find(|(name, _)| name == "repeat").and_then(|(_, n)| n.as_usize()).unwrap_or(1);
        let mut rows = vec![Vec::new()];
        for list in (0..repeat).flat_map(|_| &lists) {
            if rows.len().saturating_mul(list.len()) > MAX {
                return Err(too_many());
            }
            limits::reserve_values(
                rows.len().saturating_mul(list.len()).saturating_mul(rows.first().map_or(0, Vec::len) + 2),
            )?;
            rows = rows.iter().flat_map(|row: &Vec<JinjaValue>| list.iter().map(|item| with(row, item))).collect();
        }
        tuples(rows)
    });
    environment.add_filter("zip", |value: JinjaValue, args: Args| {
        let (lists, _) = lists(value, &args)?;
        let length = lists.iter().map(Vec::len).min().unwrap_or(0);
        tuples((0..length).map(|at| lists.iter().map(|list| list[at].clone()).collect()).collect())
    });
    environment.add_filter("zip_longest", |value: JinjaValue, args: Args| {
        let (lists, named) = lists(value, &args)?;
        let fill =
            named.iter().find(|(name, _)| name == "fillvalue").map_or(JinjaValue::from(()), |(_, fill)| fill.clone());
        let length = lists.iter().map(Vec::len).max().unwrap_or(0);
        let row = |at: usize| lists.iter().map(|list| list.get(at).unwrap_or(&fill).clone()).collect();
        tuples((0..length).map(row).collect())
    });
    by_name(
        environment,
        "compress",
        &["selectors"],
        |value: JinjaValue, chosen: JinjaValue| -> Result<JinjaValue, Error> {
            let pairs = items(&value)?.into_iter().zip(items(&chosen)?).filter(|(_, chosen)| chosen.is_true());
            Ok(to_mutable(&JinjaValue::from(pairs.map(|(item, _)| item).collect::<Vec<_>>())))
        },
    );
}

fn items(value: &JinjaValue) -> Result<Vec<JinjaValue>, Error> {
    Ok(iterable(value.clone())?.try_iter()?.collect())
}

/// Returns the items of the value and of each argument, and the keyword arguments.
fn lists(value: JinjaValue, args: &Args) -> Result<(Vec<Vec<JinjaValue>>, Keywords), Error> {
    let args: Vec<_> = args.iter().cloned().map(minijinja::value::ValueOrKwargs::into_value).collect();
    let (positional, named) = split_kwargs(&args)?;
    let all = std::iter::once(&value).chain(&positional).map(items).collect::<Result<_, _>>()?;
    Ok((all, named))
}

fn with(row: &[JinjaValue], item: &JinjaValue) -> Vec<JinjaValue> {
    row.iter().chain([item]).cloned().collect()
}

fn too_many() -> Error {
    raise(format_args!("more than {MAX} results"))
}

fn tuples(rows: Vec<Vec<JinjaValue>>) -> Result<JinjaValue, Error> {
    if rows.len() > MAX {
        return Err(too_many());
    }
    let rows: Vec<JinjaValue> = rows.into_iter().map(|row| JinjaValue::from(Tuple::from(row))).collect();
    Ok(to_mutable(&JinjaValue::from(rows)))
}

/// Returns all selections of `n` items, in order: `follows` decides whether a position may follow another.
fn chosen(items: &[JinjaValue], n: usize, follows: fn(usize, usize) -> bool) -> Result<Vec<Vec<JinjaValue>>, Error> {
    let mut rows: Vec<Vec<usize>> = vec![Vec::new()];
    for _ in 0..n {
        let longer = |row: &Vec<usize>| {
            let last = row.last().copied();
            let row = row.clone();
            (0..items.len()).filter(move |next| last.is_none_or(|last| follows(*next, last))).map(move |next| {
                let mut row = row.clone();
                row.push(next);
                row
            })
        };
        let most = rows.len().saturating_mul(items.len()).min(MAX + 1);
        limits::reserve_values(most.saturating_mul(rows.first().map_or(0, Vec::len) + 2))?;
        rows = rows.iter().flat_map(longer).take(MAX + 1).collect();
    }
    limits::reserve_values(rows.len().saturating_mul(n + 1))?;
    Ok(rows.into_iter().map(|row| row.into_iter().map(|at| items[at].clone()).collect()).collect())
}

fn permute(items: &[JinjaValue], n: usize, row: &mut Vec<usize>, out: &mut Vec<Vec<JinjaValue>>) -> Result<(), Error> {
    if out.len() > MAX {
        return Ok(());
    }
    // Each position is looked up in the row.
    limits::work(row.len().saturating_mul(items.len()))?;
    if row.len() == n {
        limits::reserve_values(n)?;
        out.push(row.iter().map(|at| items[*at].clone()).collect());
        return Ok(());
    }
    for at in 0..items.len() {
        if !row.contains(&at) {
            row.push(at);
            permute(items, n, row, out)?;
            row.pop();
        }
    }
    Ok(())
}
