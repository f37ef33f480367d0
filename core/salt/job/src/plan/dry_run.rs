//! The dry run that a plan is made from, and the job as the plan names it.

use brine_function::Args;
use brine_value::{Map, map};

use super::PLANNING;

/// Returns the arguments of the dry run of a job.
pub fn dry_run(mut args: Args) -> Args {
    args.keyword.extend(map! {"test" => true, PLANNING => true});
    args
}

/// Returns a job as a plan names it: with the arguments that it will be applied with, and the time. `args` are those of
/// the job or of its dry run. The caller adds the target, if there is one, and what it knows beside that.
pub fn describe(fun: &str, mut args: Args, user: &str) -> Map {
    for name in ["test", PLANNING] {
        args.keyword.shift_remove(name);
    }
    map! {
        "fun" => fun,
        "arg" => args.to_wire(),
        "user" => user,
        "time" => jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
    }
}

#[cfg(test)]
mod tests {
    use brine_value::{Value, list};

    use super::*;

    #[test]
    fn a_planned_job_becomes_its_dry_run_and_back() {
        for (arg, dry, original) in [
            (list!["web"], list!["web", map! {"test" => true, PLANNING => true, "__kwarg__" => true}], list!["web"]),
            (
                list!["web", map! {"test" => false, "pillar" => 1, "__kwarg__" => true}],
                list!["web", map! {"pillar" => 1, "test" => true, PLANNING => true, "__kwarg__" => true}],
                list!["web", map! {"pillar" => 1, "__kwarg__" => true}],
            ),
        ] {
            let read = |arg: &Value| Args::from_wire(arg.as_list().unwrap_or_default());
            assert_eq!(dry_run(read(&arg)), read(&dry));
            for args in [read(&arg), read(&dry)] {
                let described = describe("state.apply", args, "root");
                assert_eq!(read(&described["arg"]), read(&original));
            }
        }
    }
}
