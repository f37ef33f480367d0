//! `salt` in reactor templates: runner functions, wheel functions, and the execution functions of the
//! master's host, looked for in this order. `runner.` and `wheel.` in front of a name choose.

use std::sync::Arc;

use brine_function::{Args, CallError};
use brine_ids::Jid;
use brine_jinja::Host;
use brine_jinja::limits::hand_off;
use brine_runtime::executors::MayBlock;
use brine_value::{Map, Value};

use super::USER;
use crate::Shared;
use crate::calls::{Caller, Kind};
use crate::runner::RunnerContext;

pub(crate) struct ReactorHost {
    pub shared: Arc<Shared>,
    pub thread: MayBlock,
}

/// What a name in a template means.
enum Meant<'a> {
    Master(Kind, &'a str),
    /// `saltutil.runner` and `saltutil.wheel`: the function's name is the first argument.
    ByArgument(Kind),
    Host,
}

impl ReactorHost {
    fn meant<'a>(&self, function: &'a str) -> Option<Meant<'a>> {
        if let Some(name) = function.strip_prefix("runner.") {
            return self.shared.has_call(Kind::Runner, name).then_some(Meant::Master(Kind::Runner, name));
        }
        if let Some(name) = function.strip_prefix("wheel.") {
            return self.shared.has_call(Kind::Wheel, name).then_some(Meant::Master(Kind::Wheel, name));
        }
        match function {
            "saltutil.runner" => Some(Meant::ByArgument(Kind::Runner)),
            "saltutil.wheel" => Some(Meant::ByArgument(Kind::Wheel)),
            name if self.shared.has_call(Kind::Runner, name) => Some(Meant::Master(Kind::Runner, name)),
            name if self.shared.has_call(Kind::Wheel, name) => Some(Meant::Master(Kind::Wheel, name)),
            name => self.shared.functions.as_ref().is_some_and(|host| host.has(name)).then_some(Meant::Host),
        }
    }

    fn call_master(&self, kind: Kind, function: &str, args: Args) -> Result<Value, CallError> {
        let caller = Caller { jid: Jid::new(), user: USER.to_owned(), caused: Map::new(), thread: self.thread.clone() };
        // A function may wait on the runtime whose thread this is: that is for a thread of its own.
        let call = || match kind {
            Kind::Runner => {
                let context = RunnerContext { master: Arc::clone(&self.shared), caller };
                self.shared.runners.call(&context, function, args)
            }
            Kind::Wheel => self.shared.wheels.call(&self.shared.wheel_context(caller), function, args),
        };
        in_thread(call)
    }
}

fn in_thread<T: Send>(call: impl FnOnce() -> Result<T, CallError> + Send) -> Result<T, CallError> {
    let panicked = |_| Err(CallError::Exception("the function panicked".to_owned()));
    let budget = hand_off();
    std::thread::scope(|scope| scope.spawn(|| budget.run(call)).join().unwrap_or_else(panicked))
}

/// The function and arguments of `saltutil.runner(name, arg=[...], kwarg={...})`, and of the same for wheel.
fn unwrapped(mut args: Args) -> Result<(String, Args), String> {
    let mut positional = args.positional.into_iter();
    let name = positional.next().or_else(|| args.keyword.shift_remove("name"));
    let name = name.ok_or("the first argument is the name of a function, such as 'manage.up'")?.to_string();
    let mut inner = Args { positional: positional.collect(), keyword: Map::new() };
    match args.keyword.shift_remove("arg") {
        Some(Value::List(arg)) => inner.positional.extend(arg),
        Some(Value::Nil) | None => {}
        Some(one) => inner.positional.push(one),
    }
    if let Some(Value::Map(kwarg)) = args.keyword.shift_remove("kwarg") {
        inner.keyword = kwarg;
    }
    inner.keyword.extend(args.keyword);
    Ok((name, inner))
}

impl Host for ReactorHost {
    fn call(&self, function: &str, args: Args) -> Result<Value, CallError> {
        match self.meant(function) {
            Some(Meant::Master(kind, name)) => self.call_master(kind, name, args),
            Some(Meant::ByArgument(kind)) => {
                let (name, args) = unwrapped(args)?;
                self.call_master(kind, &name, args)
            }
            Some(Meant::Host) => match &self.shared.functions {
                Some(host) => in_thread(|| host.call(function, args)),
                None => Err(CallError::NotAvailable(function.to_owned())),
            },
            None => Err(CallError::NotAvailable(function.to_owned())),
        }
    }

    fn has(&self, function: &str) -> bool {
        self.meant(function).is_some()
    }

    fn template(&self, path: &str, saltenv: &str) -> Result<Option<String>, String> {
        let Some(found) = self.shared.disk.get(&self.thread).files.find(path, saltenv) else { return Ok(None) };
        std::fs::read_to_string(&found.path).map(Some).map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use brine_value::{list, map};

    use super::*;

    #[test]
    fn functions_called_through_saltutil_are_unwrapped() {
        let keyword = map! {"arg" => list![1], "kwarg" => map! {"a" => 2}, "b" => 3};
        let args = Args { positional: vec!["jobs.active".into(), 0.into()], keyword };
        let expected = Args { positional: vec![0.into(), 1.into()], keyword: map! {"a" => 2, "b" => 3} };
        assert_eq!(unwrapped(args), Ok(("jobs.active".into(), expected)));
        assert!(unwrapped(Args::default()).is_err());
    }
}
