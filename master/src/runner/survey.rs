//! `survey`: groups minions by equal results.

use brine_function::{CallResult, Function, function, registry};
use brine_value::{Map, Value, map};
use brine_wire::PublishRequest;
use indexmap::IndexMap;

use super::RunnerContext;
use super::salt::with_keywords;

/// Runner functions of `survey`.
pub static FUNCTIONS: &[Function<RunnerContext>] = registry!("survey", [hash]);

/// Call an execution function on minions, and group the minions by their results, the largest group first.
///
/// survey_sort: `up` for the smallest group first.
///
/// CLI Example:
///
///     salt-run survey.hash '*' file.get_hash /etc/resolv.conf survey_sort=up
#[function]
pub fn hash(
    context: &RunnerContext,
    tgt: Value,
    fun: String,
    #[rest] args: Vec<Value>,
    #[keywords] kwargs: Map,
) -> CallResult {
    let mut kwargs = kwargs;
    kwargs.retain(|name, _| name.as_str().is_none_or(|name| !name.starts_with('_')));
    let smallest_first = kwargs.shift_remove("survey_sort").is_some_and(|sort| sort == "up".into());
    let tgt_type = match kwargs.shift_remove("tgt_type") {
        Some(kind) if kind == "pcre".into() => "pcre",
        _ => "compound",
    };
    let mut request =
        PublishRequest { tgt, tgt_type: tgt_type.into(), ..PublishRequest::new("*", &fun, &context.caller.user) };
    request.arg = with_keywords(args, kwargs);
    Ok(pools(context.ask(request, None)?, smallest_first).into())
}

/// Groups minions by their results.
fn pools(results: Map, smallest_first: bool) -> Vec<Value> {
    let mut results: Vec<(String, String)> =
        results.into_iter().map(|(id, result)| (id.to_string(), result.to_string())).collect();
    results.sort();
    let mut pools: IndexMap<String, Vec<Value>> = IndexMap::new();
    for (id, result) in results {
        pools.entry(result).or_default().push(id.into());
    }
    let mut pools: Vec<_> = pools.into_iter().collect();
    pools.sort_by_key(|(_, pool)| if smallest_first { pool.len() } else { usize::MAX - pool.len() });
    pools.into_iter().map(|(result, pool)| map! {"pool" => pool, "result" => result}.into()).collect()
}

#[cfg(test)]
mod tests {
    use brine_value::list;

    use super::*;

    #[test]
    fn minions_are_grouped_by_result() {
        let results = map! {"c" => true, "a" => true, "b" => 1};
        let (many, few) =
            (map! {"pool" => list!["a", "c"], "result" => "True"}, map! {"pool" => list!["b"], "result" => "1"});
        assert_eq!(pools(results.clone(), false), vec![many.clone().into(), few.clone().into()]);
        assert_eq!(pools(results, true), vec![few.into(), many.into()]);
    }
}
