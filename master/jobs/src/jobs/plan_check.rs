//! `plan_approval`: jobs that apply a plan are published only if they are the job of an approved one.

use brine_carriers::{APPLY_PLAN, all_called};
use brine_function::Args;
use brine_ids::Jid;
use brine_master_store::plans::{Application, PlanError};
use brine_value::Value;
use brine_wire::PublishRequest;

use super::{Jobs, PublishError};

impl Jobs {
    /// Checks a job before it is published, and records it as the one that applies its plan.
    pub(super) async fn check_plan(
        &self,
        request: &PublishRequest,
        minions: &[String],
        jid: &Jid,
    ) -> Result<(), PublishError> {
        if request.fun.as_str() != Some(APPLY_PLAN) {
            return if leads_to_plan(request) { Err(PublishError::HiddenPlan) } else { Ok(()) };
        }
        let args = Args::from_wire(&request.arg);
        let argument = |at: usize, name: &str| args.positional.get(at).or_else(|| args.keyword.get(name));
        let planned = argument(1, "plan");
        let id = planned.and_then(|plan| plan.get("id")).and_then(Value::as_str);
        let id = id.ok_or_else(|| PlanError::Unknown("without an id".to_owned()))?.to_owned();
        let fun = argument(0, "fun").map(ToString::to_string).unwrap_or_default();
        let mut of_function = args.clone();
        of_function.positional.drain(..of_function.positional.len().min(2));
        for name in ["fun", "plan"] {
            of_function.keyword.shift_remove(name);
        }
        let arg = of_function.to_wire();
        let job = Application {
            id,
            arg: self.mask.arguments(&fun, &arg).unwrap_or(arg),
            fun,
            digests: planned.and_then(|plan| plan.get("digests")).and_then(Value::as_map).cloned().unwrap_or_default(),
            minions: minions.to_vec(),
            jid: jid.to_string(),
        };
        let checked = self.storage.run(move |storage| storage.plans.apply(&job)).await;
        Ok(checked.map_err(|error| PublishError::Failed(error.to_string()))??)
    }
}

/// Whether the arguments of a job lead to the function of plans, in another way than by `salt --apply`.
fn leads_to_plan(request: &PublishRequest) -> bool {
    let of = |function: &Value, arg: &[Value]| {
        let called = all_called(&function.to_string(), &Args::from_wire(arg)).unwrap_or_default();
        called.iter().any(|name| name == APPLY_PLAN)
    };
    match &request.fun {
        Value::List(functions) => functions.iter().enumerate().any(|(at, function)| {
            let arg = request.arg.get(at).and_then(Value::as_list).unwrap_or_default();
            function.as_str() == Some(APPLY_PLAN) || of(function, arg)
        }),
        function => of(function, &request.arg),
    }
}

#[cfg(test)]
mod tests {
    use brine_value::list;

    use super::*;

    #[test]
    fn other_functions_do_not_lead_to_plans() {
        for (fun, arg, expected) in [
            (Value::from("test.ping"), list![], false),
            ("test.cross_test".into(), list!["state.apply_plan", "state.apply"], true),
            ("schedule.add".into(), list!["x", map_of("function", "state.apply_plan")], true),
            (list!["test.ping", "state.apply_plan"], list![list![], list![]], true),
            (list!["test.ping", "state.apply"], list![list![], list!["web"]], false),
        ] {
            let arg = arg.as_list().unwrap().to_vec();
            let request = PublishRequest { fun: fun.clone(), arg, ..PublishRequest::new("*", "", "alice") };
            assert_eq!(leads_to_plan(&request), expected, "{fun}");
        }
    }

    fn map_of(name: &str, value: &str) -> Value {
        brine_value::map! {name => value, "__kwarg__" => true}.into()
    }
}
