//! `survey`: groups minions by equal results.

use std::time::Duration;

use brine_function::{Args, CallError, CallResult, Functions, function, registry};
use brine_value::{Map, Value, map};
use brine_wire::PublishRequest;
use indexmap::IndexMap;

use super::RunnerContext;
use super::salt::with_keywords;

/// Runner functions of `survey`.
pub static FUNCTIONS: Functions<RunnerContext> = registry!("survey", [hash, diff]);

/// The timeout of one comparison.
const DIFF_TIMEOUT: Duration = Duration::from_secs(2);

/// A call of an execution function on minions.
#[derive(Args)]
pub struct SurveyArgs {
    /// Target: which minions.
    tgt: Value,
    /// Full name of the execution function.
    fun: String,
    /// Positional arguments of the function.
    #[rest]
    args: Vec<Value>,
    /// Keyword arguments of the function, `survey_sort` and `tgt_type`.
    #[keywords]
    kwargs: Map,
}

/// Call an execution function on minions, and group the minions by their results, the largest group first.
///
/// survey_sort: `up` for the smallest group first.
///
/// CLI Example:
///
///     salt-run survey.hash '*' file.get_hash /etc/resolv.conf survey_sort=up
#[function]
pub fn hash(context: &RunnerContext, #[args] survey: SurveyArgs) -> CallResult {
    Ok(run_survey(context, survey)?.into())
}

/// Call an execution function on minions, and group the minions by their results as `hash` does. Each group but the first
/// has a `diff`: its result compared with that of the first group.
///
/// survey_sort: `up` for the smallest group first.
///
/// CLI Example:
///
///     salt-run survey.diff survey_sort=up '*' cp.get_file_str file:///etc/hosts
#[function]
pub fn diff(context: &RunnerContext, #[args] survey: SurveyArgs) -> CallResult {
    Ok(with_diffs(run_survey(context, survey)?).into())
}

fn run_survey(context: &RunnerContext, survey: SurveyArgs) -> Result<Vec<Value>, CallError> {
    let SurveyArgs { tgt, fun, args, mut kwargs } = survey;
    kwargs.retain(|name, _| name.as_str().is_none_or(|name| !name.starts_with('_')));
    let smallest_first = kwargs.shift_remove("survey_sort").is_some_and(|sort| sort == "up".into());
    let tgt_type = match kwargs.shift_remove("tgt_type") {
        Some(kind) if kind == "pcre".into() => "pcre",
        _ => "compound",
    };
    let mut request =
        PublishRequest { tgt, tgt_type: tgt_type.into(), ..PublishRequest::new("*", &fun, &context.caller.user) };
    request.arg = with_keywords(args, kwargs);
    Ok(pools(context.publish_and_wait(request, None)?, smallest_first))
}

/// Adds the difference from the first group's result to every other group.
fn with_diffs(mut pools: Vec<Value>) -> Vec<Value> {
    let parts = |pool: &Value| {
        let text = |value: Option<&Value>| value.map(ToString::to_string).unwrap_or_default();
        let first = pool.get("pool").and_then(Value::as_list).and_then(|ids| ids.first());
        (text(first), text(pool.get("result")))
    };
    let Some((first_id, first)) = pools.first().map(parts) else { return pools };
    for pool in pools.iter_mut().skip(1) {
        let (id, result) = parts(pool);
        let mut diff = similar::TextDiff::configure();
        // A comparison that would take longer becomes coarser.
        let diff = diff.timeout(DIFF_TIMEOUT).diff_lines(&first, &result);
        let text = diff.unified_diff().context_radius(0).header(&first_id, &id).to_string();
        if let Value::Map(pool) = pool {
            pool.insert("diff".into(), text.into());
        }
    }
    pools
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

    #[test]
    fn groups_are_compared_with_the_first() {
        let pool = |id: &str, result: &str| map! {"pool" => list![id], "result" => result}.into();
        let pools = with_diffs(vec![pool("a", "1\n2\n3\n"), pool("b", "1\n3\n")]);
        assert!(pools[0].get("diff").is_none());
        assert_eq!(pools[1].get("diff").unwrap().to_string(), "--- a\n+++ b\n@@ -2 +1,0 @@\n-2\n");
        assert!(with_diffs(Vec::new()).is_empty());
    }
}
