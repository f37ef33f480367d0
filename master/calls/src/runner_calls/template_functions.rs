//! The functions of templates on the master: runner functions, wheel functions, and execution functions of the master's
//! host, in this order. The prefixes `runner.` and `wheel.` select one kind. Files come from the file server.

use std::sync::Arc;

use brine_function::{Args, CallError};
use brine_ids::Jid;
use brine_jinja::{Behaviour, Files, FilesError, Functions, Host, InThread};
use brine_master_custom::Kind;
use brine_runtime::executors::MayBlock;
use brine_value::{Map, Value};

use super::{Caller, REACTOR, RunnerCalls};

/// Returns the template host for a thread.
pub fn template_host(calls: &Arc<RunnerCalls>, thread: &MayBlock) -> Host {
    let host = calls.services.functions.as_ref().map(|host| InThread(host.functions(None)));
    let functions = host.into_iter().fold(Host::new(), Host::with_functions);
    let master = TemplateFunctions { calls: Arc::clone(calls), thread: thread.clone() };
    functions.with_files(master.clone()).with_functions(InThread(master))
}

/// The master's functions and files, for one thread.
#[derive(Clone)]
struct TemplateFunctions {
    calls: Arc<RunnerCalls>,
    thread: MayBlock,
}

/// The function to which a name in a template resolves.
enum Resolved<'a> {
    Master(Kind, &'a str),
    /// `saltutil.runner` and `saltutil.wheel`: the first argument names the function.
    ByArgument(Kind),
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
            _ => None,
        }
    }

    fn call_master(&self, kind: Kind, function: &str, args: Args) -> Result<Value, CallError> {
        let caller = Caller::new(Jid::new(), REACTOR.to_owned(), Map::new(), self.thread.clone());
        self.calls.call_function(kind, function, args, caller)
    }
}

/// Extracts the function and its arguments from a call `saltutil.runner(name, arg=[...], kwarg={...})`, or of
/// `saltutil.wheel`.
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

impl Functions for TemplateFunctions {
    fn call(&self, function: &str, args: Args) -> Result<Value, CallError> {
        match self.resolve(function) {
            Some(Resolved::Master(kind, name)) => self.call_master(kind, name, args),
            Some(Resolved::ByArgument(kind)) => {
                let (name, args) = unwrapped(args)?;
                self.call_master(kind, &name, args)
            }
            None => Err(CallError::NotAvailable(function.to_owned())),
        }
    }

    fn has(&self, function: &str) -> bool {
        self.resolve(function).is_some()
    }

    fn has_module(&self, module: &str) -> bool {
        module == "saltutil" || self.calls.has_module(module)
    }

    /// Returns the behaviour of the execution function of the same name.
    fn behaviour(&self, function: &str) -> Behaviour {
        let host = self.calls.services.functions.as_ref();
        host.map(|host| host.functions(None).behaviour(function)).unwrap_or_default()
    }
}

impl Files for TemplateFunctions {
    fn template(&self, path: &str, saltenv: &str) -> Result<Option<String>, FilesError> {
        let Some(file) = self.calls.services.storage.get(&self.thread).files.find(path, saltenv) else {
            return Ok(None);
        };
        Ok(Some(std::fs::read_to_string(&file.path)?))
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
