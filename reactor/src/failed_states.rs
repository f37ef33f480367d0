//! The failed states in the return of a state run or an orchestration, for `reactor.history` and `reactor.explain`.

use brine_core::{Map, Value};

/// The most states of one return that are named.
const MOST: usize = 5;

/// Returns the ids and functions of the states that failed, such as `nginx (pkg.installed)`; of more than a few the
/// number of the others.
pub(crate) fn of_return(data: &Map) -> Vec<String> {
    let returned = data.get("return").unwrap_or(&Value::Nil);
    // An orchestration's states are below the master's id, beside the outputter.
    let runs: Vec<&Value> = match returned.get("data").and_then(Value::as_map) {
        Some(runs) if returned.get("outputter").is_some() => runs.values().collect(),
        _ => vec![returned],
    };
    let states = runs.into_iter().filter_map(Value::as_map).flatten();
    let mut failed: Vec<String> = states.filter_map(|(key, state)| failed(key.as_str()?, state)).collect();
    let others = failed.len().saturating_sub(MOST);
    failed.truncate(MOST);
    if others > 0 {
        failed.push(format!("{others} more"));
    }
    failed
}

/// The name of a state if it failed; keys are `module_|-id_|-name_|-function`.
fn failed(key: &str, state: &Value) -> Option<String> {
    let mut parts = key.split("_|-");
    let (module, id, function) = (parts.next()?, parts.next()?, parts.nth(1)?);
    (state.get("result") == Some(&Value::Bool(false))).then(|| format!("{id} ({module}.{function})"))
}

#[cfg(test)]
mod tests {
    use brine_core::map;

    use super::*;

    #[test]
    fn failed_states_are_named() {
        let states = || {
            map! {
                "pkg_|-nginx_|-nginx_|-installed" => map! {"result" => false},
                "file_|-conf_|-/etc/x_|-managed" => map! {"result" => true},
                "cmd_|-test_|-x_|-run" => map! {"result" => Value::Nil},
                "no state" => map! {"result" => false},
            }
        };
        let orchestration =
            map! {"data" => map! {"host_master" => states()}, "outputter" => "highstate", "retcode" => 1};
        for (returned, names) in [
            (Value::from(states()), vec!["nginx (pkg.installed)"]),
            (orchestration.into(), vec!["nginx (pkg.installed)"]),
            ("a compile error".into(), vec![]),
            (map! {"data" => map! {"x" => 1}}.into(), vec![]),
        ] {
            assert_eq!(of_return(&map! {"return" => returned}), names);
        }
        let many: Map = (0..8).map(|n| (format!("a_|-s{n}_|-x_|-b").into(), map! {"result" => false}.into())).collect();
        let names = of_return(&map! {"return" => many});
        assert_eq!((names.len(), names.last().map(String::as_str)), (MOST + 1, Some("3 more")));
    }
}
