//! `salt` in templates on the master: runner functions, wheel functions, and execution functions of the master's host, in
//! this order. The prefixes `runner.` and `wheel.` select one.

use std::sync::Arc;

use brine_function::{Args, CallError};
use brine_ids::Jid;
use brine_jinja::Host;
use brine_jinja::limits::hand_off;
use brine_runtime::executors::MayBlock;
use brine_value::{Map, Value};

use super::USER;
use crate::host_functions::HostFunctions;
use crate::runner_calls::{Caller, Kind, RunnerCalls};

/// The functions of templates, for one thread.
pub(crate) struct TemplateFunctions {
    pub calls: Arc<RunnerCalls>,
    pub thread: MayBlock,
}

/// The function that a name in a template resolves to.
enum Resolved<'a> {
    Master(Kind, &'a str),
    /// `saltutil.runner` and `saltutil.wheel`: the function's name is the first argument.
    ByArgument(Kind),
    Host,
}

impl TemplateFunctions {
    fn resolve<'a>(&self, function: &'a str) -> Option<Resolved<'a>> {
        if let Some(name) = function.strip_prefix("runner.") {
            return self.calls.has(Kind::Runner, name).then_some(Resolved::Master(Kind::Runner, name));
        }
        if let Some(name) = function.strip_prefix("wheel.") {
            return self.calls.has(Kind::Wheel, name).then_some(Resolved::Master(Kind::Wheel, name));
        }
        match function {
            "saltutil.runner" => Some(Resolved::ByArgument(Kind::Runner)),
            "saltutil.wheel" => Some(Resolved::ByArgument(Kind::Wheel)),
            name if self.calls.has(Kind::Runner, name) => Some(Resolved::Master(Kind::Runner, name)),
            name if self.calls.has(Kind::Wheel, name) => Some(Resolved::Master(Kind::Wheel, name)),
            name => self.host().is_some_and(|host| host.has(name)).then_some(Resolved::Host),
        }
    }

    fn host(&self) -> Option<&Arc<dyn HostFunctions>> {
        self.calls.services.functions.as_ref()
    }

    fn call_master(&self, kind: Kind, function: &str, args: Args) -> Result<Value, CallError> {
        let caller = Caller { jid: Jid::new(), user: USER.to_owned(), cause: Map::new(), thread: self.thread.clone() };
        in_thread(|| self.calls.call_function(kind, function, args, caller))
    }
}

/// Calls a function on a thread of its own: it may block on the runtime that the current thread belongs to.
fn in_thread<T: Send>(call: impl FnOnce() -> Result<T, CallError> + Send) -> Result<T, CallError> {
    let panicked = |_| Err(CallError::Exception("the function panicked".to_owned()));
    let budget = hand_off();
    std::thread::scope(|scope| scope.spawn(|| budget.run(call)).join().unwrap_or_else(panicked))
}

/// Returns the function and arguments of `saltutil.runner(name, arg=[...], kwarg={...})`, or of `saltutil.wheel`.
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

impl Host for TemplateFunctions {
    fn call(&self, function: &str, args: Args) -> Result<Value, CallError> {
        match self.resolve(function) {
            Some(Resolved::Master(kind, name)) => self.call_master(kind, name, args),
            Some(Resolved::ByArgument(kind)) => {
                let (name, args) = unwrapped(args)?;
                self.call_master(kind, &name, args)
            }
            Some(Resolved::Host) => match self.host() {
                Some(host) => in_thread(|| host.call(function, args)),
                None => Err(CallError::NotAvailable(function.to_owned())),
            },
            None => Err(CallError::NotAvailable(function.to_owned())),
        }
    }

    fn has(&self, function: &str) -> bool {
        self.resolve(function).is_some()
    }

    fn template(&self, path: &str, saltenv: &str) -> Result<Option<String>, String> {
        let Some(found) = self.calls.services.storage.get(&self.thread).files.find(path, saltenv) else {
            return Ok(None);
        };
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
