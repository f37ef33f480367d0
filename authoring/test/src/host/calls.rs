//! Calls of gates: mocked ones, those that examine the files of the test, and the others, which are refused.

use brine_context::Context;
use brine_function::{Args, CallError, CallResult};
use brine_value::{Value, python};

use super::World;
use super::pure::{examines_files, reads_served};
use crate::format::Call;

impl World {
    /// Answers a call of a function that would touch the host.
    pub(super) fn call(&self, context: &Context, function: &str, args: Args) -> CallResult {
        let Some(mock) = self.given.mocks.get(function) else {
            let path = args.keyword.get("path").or_else(|| args.positional.first());
            let is_served = path.is_some_and(|path| path.as_str().is_some_and(|path| path.starts_with("salt://")));
            return match function {
                function if examines_files(function) => self.examine(context, function, args),
                function if reads_served(function) && (is_served || path.is_none()) => {
                    self.library.functions.call(context, function, args)
                }
                function => self.refused_call(function, &args, ""),
            };
        };
        let Some(index) = mock.calls.iter().position(|call| fits(call, &args)) else {
            let mocks: Vec<String> = mock.calls.iter().map(|call| expected(function, call)).collect();
            return self.refused_call(
                function,
                &args,
                &format!(" with these arguments; mocked are {}", mocks.join(", ")),
            );
        };
        let mut used = self.used.lock();
        let counts = used.entry(function.to_owned()).or_default();
        counts.resize(mock.calls.len(), 0);
        counts[index] += 1;
        drop(used);
        mock.calls[index].answer.clone().map_err(CallError::Execution)
    }

    fn refused_call(&self, function: &str, args: &Args, how: &str) -> CallResult {
        let call = written(function, &args.positional, args.keyword.iter());
        let message = format!("{call} is not mocked{how}: add `{function}: RESULT` to 'mocks'");
        self.refuse(&message);
        Err(CallError::Execution(message))
    }

    /// Calls a function that reads files, with the files of the test.
    fn examine(&self, context: &Context, function: &str, mut args: Args) -> CallResult {
        let place = |value: &mut Value| *value = self.place(&value.to_string()).into();
        match (args.keyword.get_mut("path"), args.positional.first_mut()) {
            (Some(named), _) => place(named),
            (None, Some(first)) => place(first),
            (None, None) => {}
        }
        self.library.functions.call(context, function, args).map(|value| self.root.shown(value)).map_err(|error| {
            match self.root.shown(error.clone().message().into()) {
                Value::Str(message) => CallError::Execution(message),
                _ => error,
            }
        })
    }

    /// Returns the mocked calls that were not made as often as expected.
    pub fn missed(&self) -> Vec<String> {
        let used = self.used.lock();
        let mut missed = Vec::new();
        for (function, mock) in &self.given.mocks {
            for (index, call) in mock.calls.iter().enumerate() {
                let made = used.get(function).and_then(|counts| counts.get(index)).copied().unwrap_or(0);
                if let Some(times) = call.times.filter(|times| *times != made) {
                    let call = expected(function, call);
                    missed.push(format!("line {}: {call} was called {made} times, expected {times}", mock.line));
                }
            }
        }
        missed
    }
}

/// Whether a mocked call has these arguments.
fn fits(call: &Call, args: &Args) -> bool {
    call.args.as_ref().is_none_or(|expected| *expected == args.positional)
        && call.kwargs.iter().flatten().all(|(name, value)| args.keyword.get(name) == Some(value))
}

fn expected(function: &str, call: &Call) -> String {
    match (&call.args, &call.kwargs) {
        (None, None) => function.to_owned(),
        (args, kwargs) => written(function, args.as_deref().unwrap_or_default(), kwargs.iter().flatten()),
    }
}

/// Returns a call as a template writes it.
fn written<'v>(function: &str, positional: &[Value], keyword: impl Iterator<Item = (&'v Value, &'v Value)>) -> String {
    let keyword = keyword.map(|(name, value)| format!("{name}={}", python::repr(value)));
    let all: Vec<String> = positional.iter().map(python::repr).chain(keyword).collect();
    format!("{function}({})", all.join(", "))
}
