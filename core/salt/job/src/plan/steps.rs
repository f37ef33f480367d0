//! The plan of an orchestration: the groups of each of its steps that applies states on minions.

use brine_value::{Map, Value, map};
use indexmap::IndexMap;
use parking_lot::Mutex;

use super::request::{InvalidPlan, check_form, check_groups, digests_of};
use super::{FORM, Groups};
use crate::orchestration::{MinionResult, StepPlan};

/// The steps of an orchestration that is planned, or that applies a plan.
#[derive(Debug)]
pub struct Steps {
    /// The minions by step and digest; `None` while a plan is made.
    applied: Option<Map>,
    planned: Mutex<IndexMap<String, Groups>>,
    /// The steps of the same name.
    doubled: Mutex<Vec<String>>,
}

impl Steps {
    /// Reads the argument `plan` of an orchestration: `True` to make a plan, or minions by step and digest; `None` for
    /// neither.
    ///
    /// # Errors
    /// Data that is no plan.
    pub fn read(plan: &Value) -> Result<Option<Self>, InvalidPlan> {
        let applied = match plan {
            Value::Nil | Value::Bool(false) => return Ok(None),
            Value::Bool(true) => None,
            Value::Map(steps) if steps.values().all(|step| step.as_map().is_some()) => Some(steps.clone()),
            other => {
                let expected = "True, or a mapping of steps";
                return Err(InvalidPlan::Field { field: "plan", expected, got: other.type_name().to_owned() });
            }
        };
        Ok(Some(Steps { applied, planned: Mutex::default(), doubled: Mutex::default() }))
    }

    /// Returns whether a plan is made.
    pub fn makes_plan(&self) -> bool {
        self.applied.is_none()
    }

    /// Returns what a step does. A step that the plan does not name changes nothing.
    pub fn of(&self, name: &str) -> StepPlan {
        let Some(applied) = &self.applied else { return StepPlan::Plan };
        StepPlan::Apply(applied.get(name).and_then(Value::as_map).cloned().unwrap_or_default())
    }

    /// Adds the dry runs of a step.
    pub fn planned(&self, name: &str, results: &[MinionResult]) {
        let mut groups = Groups::default();
        for MinionResult { id, jid, returned, .. } in results {
            match returned.as_ref().and_then(|returned| returned.get("return")) {
                Some(value) => groups.add(id, value, jid.as_str()),
                None => groups.add_silent(id),
            }
        }
        if self.planned.lock().insert(name.to_owned(), groups).is_some() {
            self.doubled.lock().push(name.to_owned());
        }
    }

    /// Returns the steps of a plan from the results of the orchestration in test mode, in their order: the groups of
    /// those that apply states, `name`, `comment` and `failed` of others; and whether the plan has failures.
    ///
    /// # Errors
    /// The names of steps that are not unique.
    pub fn finish(&self, results: &Map) -> Result<(Vec<Value>, bool), InvalidPlan> {
        if let Some(name) = self.doubled.lock().first() {
            return Err(InvalidPlan::SameName(name.clone()));
        }
        let planned = self.planned.lock();
        let mut ordered: Vec<&Map> = results.values().filter_map(Value::as_map).collect();
        let number = |result: &Map| result.get("__run_num__").and_then(Value::as_i64).unwrap_or(i64::MAX);
        ordered.sort_by_key(|result| number(result));
        let mut has_failures = false;
        let steps = ordered.into_iter().map(|result| {
            let field = |name: &str| result.get(name).filter(|value| !value.is_nil()).map(ToString::to_string);
            let name = field("name").or_else(|| field("__id__")).unwrap_or_default();
            let is_failed = result.get("result") == Some(&Value::Bool(false));
            let mut step = map! {"name" => name.as_str()};
            match planned.get(&name) {
                Some(groups) if !groups.is_empty() => {
                    has_failures |= groups.has_failures();
                    step.extend(groups.to_value());
                }
                _ => {
                    has_failures |= is_failed;
                    step.insert("comment".into(), field("comment").unwrap_or_default().into());
                    step.insert("failed".into(), is_failed.into());
                }
            }
            Value::from(step)
        });
        let steps = steps.collect();
        Ok((steps, has_failures))
    }
}

/// The kept plan of an orchestration.
#[derive(Debug, Clone, PartialEq)]
pub struct OrchestrationPlan {
    map: Map,
}

impl OrchestrationPlan {
    /// Creates a plan: `job` has `fun`, `arg`, and further fields for display.
    ///
    /// # Errors
    /// Fields of another type.
    pub fn new(job: Map, steps: Value) -> Result<Self, InvalidPlan> {
        let mut map = map! {"plan" => FORM};
        map.extend(job);
        map.insert("steps".into(), steps);
        Self::from_map(map)
    }

    /// Reads a plan, such as that of a file.
    ///
    /// # Errors
    /// Data that is no plan of an orchestration.
    pub fn from_map(map: Map) -> Result<Self, InvalidPlan> {
        check_form(&map)?;
        let wrong = |field: &'static str, expected: &'static str| {
            let got = map.get(field).map_or("nothing".to_owned(), ToString::to_string);
            InvalidPlan::Field { field, expected, got }
        };
        map.get("fun").and_then(Value::as_str).ok_or_else(|| wrong("fun", "a function"))?;
        map.get("arg").and_then(Value::as_list).ok_or_else(|| wrong("arg", "a list"))?;
        let steps = map.get("steps").and_then(Value::as_list).ok_or_else(|| wrong("steps", "a list"))?;
        for step in steps {
            step.get("name").and_then(Value::as_str).ok_or_else(|| wrong("steps", "names"))?;
            check_groups(step.get("groups").and_then(Value::as_list).unwrap_or_default())?;
        }
        Ok(OrchestrationPlan { map })
    }

    /// Returns the plan as data.
    pub fn map(&self) -> &Map {
        &self.map
    }

    /// Returns the arguments in their wire format, without `test` and `plan`.
    pub fn arg(&self) -> &[Value] {
        self.map.get("arg").and_then(Value::as_list).unwrap_or_default()
    }

    /// Returns the argument `plan` of the orchestration that applies this plan: minions by step and digest.
    pub fn steps(&self) -> Map {
        let steps = self.map.get("steps").and_then(Value::as_list).unwrap_or_default();
        let digests =
            |step: &Value| Some((step.get("name")?.clone(), digests_of(step.get("groups")?.as_list()?).into()));
        steps.iter().filter_map(digests).collect()
    }
}

#[cfg(test)]
mod tests {
    use brine_ids::Jid;
    use brine_value::list;

    use super::*;

    fn result(id: &str, returned: Option<Value>) -> MinionResult {
        let returned = returned.map(|value| map! {"return" => value});
        MinionResult { id: id.to_owned(), jid: Jid::new(), returned, is_unknown: false }
    }

    fn changing(comment: &str) -> Value {
        let state = map! {
            "result" => Value::Nil, "comment" => comment, "changes" => map! {"a" => 1}, "__id__" => "a", "name" => "a",
            "__run_num__" => 0,
        };
        map! {"test_|-a_|-a_|-nop" => state}.into()
    }

    #[test]
    fn a_plan_has_the_groups_of_each_step_and_is_read_again() {
        let steps = Steps::read(&true.into()).unwrap().unwrap();
        assert_eq!(steps.of("web"), StepPlan::Plan);
        steps.planned(
            "web",
            &[result("w1", Some(changing("x"))), result("w2", Some(changing("x"))), result("w3", None)],
        );
        let results = map! {
            "salt_|-b_|-cmd.run_|-function" => map! {"__run_num__" => 1, "name" => "cmd.run", "comment" => "would", "result" => Value::Nil},
            "salt_|-web_|-web_|-state" => map! {"__run_num__" => 0, "name" => "web", "result" => Value::Nil},
        };
        let (entries, has_failures) = steps.finish(&results).unwrap();
        assert!(has_failures, "a minion is silent");
        assert_eq!(entries[1], map! {"name" => "cmd.run", "comment" => "would", "failed" => false}.into());
        let plan = OrchestrationPlan::new(
            map! {"fun" => "orchestrate", "arg" => list!["deploy"]},
            entries.into_iter().collect(),
        )
        .unwrap();
        let plan = OrchestrationPlan::from_map(plan.map().clone()).unwrap();
        let applied = Steps::read(&plan.steps().into()).unwrap().unwrap();
        let StepPlan::Apply(digests) = applied.of("web") else { panic!("{applied:?}") };
        assert_eq!(digests.values().collect::<Vec<_>>(), [&list!["w1", "w2"]]);
        assert_eq!(applied.of("other"), StepPlan::Apply(Map::new()));
    }

    #[test]
    fn doubled_steps_and_other_data_are_refused() {
        let steps = Steps::read(&true.into()).unwrap().unwrap();
        steps.planned("web", &[]);
        steps.planned("web", &[]);
        assert!(steps.finish(&Map::new()).unwrap_err().to_string().contains("several steps have the name 'web'"));
        assert!(Steps::read(&Value::Nil).unwrap().is_none());
        assert!(Steps::read(&map! {"web" => 1}.into()).is_err() && Steps::read(&"x".into()).is_err());
        let job = || map! {"fun" => "orchestrate", "arg" => list![]};
        assert!(OrchestrationPlan::new(map! {"arg" => list![]}, list![]).is_err());
        assert!(OrchestrationPlan::new(job(), list![map! {"groups" => list![]}]).is_err());
        let group = map! {"digest" => "x", "minions" => list!["a"]};
        assert!(OrchestrationPlan::new(job(), list![map! {"name" => "a", "groups" => list![group]}]).is_err());
    }
}
