//! `salt_monitor`: results of execution functions.

use brine_function::Args;
use brine_value::{Map, Value, map};

use super::settings::Settings;
use super::{Beacon, Kind, Options, PollContext, entry};

/// The maximum number of functions that one beacon calls.
const MAX_FUNCTIONS: usize = 1_000;

struct Functions {
    calls: Vec<Call>,
    /// Whether false and empty results are reported, too: only if the beacon has a single function without arguments.
    reports_all: bool,
}

/// A function with its arguments.
#[derive(Debug, Default, PartialEq)]
struct Call {
    function: String,
    args: Vec<Value>,
    kwargs: Map,
}

pub(super) const KIND: Kind = Kind {
    name: "salt_monitor",
    doc: "Results of execution functions that are not false or empty. The functions are called one after the other, \
          and other beacons are not polled meanwhile.",
    options: Options::Named(&[entry(
        "salt_fun",
        "Required. The name of a function, whose result is always reported; or a list of names and of mappings of a \
         name to `args` (a list) and `kwargs` (a list of mappings).",
    )]),
    fields: &[
        entry("salt_fun", "The name of the function."),
        entry("ret", "Its result."),
        entry("args", "Its positional arguments, if there are any."),
        entry("kwargs", "Its keyword arguments, if there are any."),
    ],
    start,
    ..Kind::DEFAULT
};

fn start(settings: &Settings) -> Result<Box<dyn Beacon>, String> {
    functions(settings).map(|functions| Box::new(functions) as Box<dyn Beacon>)
}

fn functions(settings: &Settings) -> Result<Functions, String> {
    let value = settings.get("salt_fun").ok_or("option 'salt_fun' is missing")?;
    if let Value::Str(function) = value {
        let only = Call { function: function.clone(), ..Call::default() };
        return Ok(Functions { calls: vec![only], reports_all: true });
    }
    let list = value
        .as_list()
        .filter(|list| list.len() <= MAX_FUNCTIONS)
        .ok_or_else(|| format!("option 'salt_fun': expected at most {MAX_FUNCTIONS} functions, got {value}"))?;
    Ok(Functions { calls: list.iter().map(call).collect::<Result<_, _>>()?, reports_all: false })
}

/// Parses a name, or a mapping of a name to arguments.
fn call(entry: &Value) -> Result<Call, String> {
    let (name, options) = match entry {
        Value::Str(name) => (name, None),
        Value::Map(map) => match map.first() {
            Some((Value::Str(name), options)) => (name, Some(options).filter(|options| !options.is_nil())),
            _ => return Err(format!("option 'salt_fun': expected a function, got {entry}")),
        },
        _ => return Err(format!("option 'salt_fun': expected a function, got {entry}")),
    };
    let mut call = Call { function: name.clone(), ..Call::default() };
    let Some(options) = options else { return Ok(call) };
    let options = options.as_map().ok_or_else(|| format!("{name}: expected a mapping of options, got {options}"))?;
    for (key, value) in options {
        let list = || value.as_list().ok_or_else(|| format!("{name}: option '{key}': expected a list, got {value}"));
        match key.as_str() {
            Some("args") => call.args = list()?.to_vec(),
            Some("kwargs") => {
                for one in list()? {
                    let pairs = one.as_map().ok_or_else(|| format!("{name}: kwargs: expected a mapping, got {one}"))?;
                    call.kwargs.extend(pairs.iter().map(|(key, value)| (key.clone(), value.clone())));
                }
            }
            _ => return Err(format!("{name}: unknown option '{key}': expected args or kwargs")),
        }
    }
    Ok(call)
}

impl Beacon for Functions {
    fn poll(&mut self, poll: &PollContext<'_>) -> Result<Vec<Map>, String> {
        let mut report = Vec::new();
        for Call { function, args, kwargs } in &self.calls {
            let words = Args { positional: args.clone(), keyword: kwargs.clone() };
            let result = poll.context.call(function, words).map_err(|error| format!("{function}: {error}"))?;
            if !self.reports_all && !result.is_truthy() {
                continue;
            }
            let mut event = map! {"salt_fun" => function, "ret" => result};
            if !args.is_empty() {
                event.insert("args".into(), args.clone().into());
            }
            if !kwargs.is_empty() {
                event.insert("kwargs".into(), kwargs.clone().into());
            }
            report.push(event);
        }
        Ok(report)
    }
}

#[cfg(test)]
mod tests;
