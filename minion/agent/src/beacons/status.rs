//! `status`: results of functions of the execution module `status`, one event a poll.

use brine_function::{Args, CallError};
use brine_modules::MODULES;
use brine_value::{Map, Value, map};

use super::settings::Settings;
use super::{Beacon, Kind, Options, PollContext, entry};

/// The functions that are called without options.
const DEFAULT_FUNCTIONS: [&str; 5] = ["loadavg", "cpustats", "meminfo", "vmstats", "time"];

/// Functions, each with the parts of its result that are reported.
struct Status(Vec<(String, Vec<Value>)>);

pub(super) const KIND: Kind = Kind {
    name: "status",
    doc: "The results of functions of the execution module `status`, at each poll. Without options those of \
          `loadavg`, `cpustats`, `meminfo`, `vmstats` and `time`.",
    tag: "the time of the poll",
    options: Options::Keyed(entry(
        "<function>",
        "The keys or list indexes of the function's result that are reported, or `all`.",
    )),
    fields: &[entry("data", "A mapping of function to result.")],
    start,
    ..Kind::DEFAULT
};

fn start(settings: &Settings) -> Result<Box<dyn Beacon>, String> {
    let mut functions = Vec::new();
    for (function, items) in &settings.own {
        if !MODULES.has(&format!("status.{function}")) {
            return Err(format!("unknown function status.{function}"));
        }
        functions.push((function.clone(), items.as_list().map_or_else(|| vec![items.clone()], <[Value]>::to_vec)));
    }
    if functions.is_empty() {
        functions = DEFAULT_FUNCTIONS.iter().map(|function| ((*function).to_owned(), vec!["all".into()])).collect();
    }
    Ok(Box::new(Status(functions)))
}

/// Returns the requested parts of a value, by key or list index.
fn parts(data: Value, items: &[Value]) -> Value {
    let mut chosen = Map::new();
    for item in items {
        let place = || item.to_string().parse::<usize>().ok();
        let part = match &data {
            _ if item.as_str() == Some("all") => return data,
            Value::Map(map) => map.get(item),
            Value::List(list) => place().and_then(|place| list.get(place)),
            // A scalar is its own first part.
            one => Some(one).filter(|_| place() == Some(0)),
        };
        match part {
            Some(part) => _ = chosen.insert(item.clone(), part.clone()),
            None => return format!("unknown part '{item}': expected {}", known(&data)).into(),
        }
    }
    chosen.into()
}

fn known(data: &Value) -> String {
    match data {
        Value::Map(map) => {
            let names: Vec<String> = map.keys().map(ToString::to_string).collect();
            format!("one of {}", names.join(", "))
        }
        Value::List(list) => format!("an index below {}", list.len()),
        _ => "'all'".into(),
    }
}

impl Beacon for Status {
    fn poll(&mut self, poll: &PollContext<'_>) -> Result<Vec<Map>, String> {
        let mut report = Map::new();
        for (function, items) in &self.0 {
            let data = match poll.context.call(&format!("status.{function}"), Args::default()) {
                Ok(data) => parts(data, items),
                Err(CallError::Execution(error)) => {
                    tracing::warn!(beacon = "status", function, error, "reading a part of the status failed");
                    Value::map()
                }
                Err(error) => return Err(error.to_string()),
            };
            report.insert(function.as_str().into(), data);
        }
        let tag = poll.now.timestamp().strftime("%Y-%m-%dT%H:%M:%S.%6f").to_string();
        Ok(vec![map! {"tag" => tag, "data" => report}])
    }
}

#[cfg(test)]
mod tests {
    use brine_value::list;

    use super::super::tests::{poll_once, wrong};
    use super::*;

    #[test]
    fn parts_are_selected_by_name_or_index() {
        let load = || Value::from(map! {"1-min" => 0.5, "5-min" => 1.5});
        for (data, items, expected) in [
            (load(), list!["all"], load()),
            (load(), list!["1-min"], map! {"1-min" => 0.5}.into()),
            (load(), list!["2-min"], "unknown part '2-min': expected one of 1-min, 5-min".into()),
            (list!["a", "b"], list![1], map! {1 => "b"}.into()),
            ("now".into(), list![0], map! {0 => "now"}.into()),
            ("now".into(), list![1], "unknown part '1': expected 'all'".into()),
        ] {
            assert_eq!(parts(data, items.as_list().unwrap()), expected);
        }
    }

    #[test]
    fn everything_is_reported_unless_parts_are_named() {
        for (config, names) in [
            (list![], DEFAULT_FUNCTIONS.to_vec()),
            (list![map! {"time" => list!["all"]}, map! {"loadavg" => list!["1-min"]}], vec!["time", "loadavg"]),
        ] {
            let report = poll_once("status", &config).unwrap();
            let data = report[0].get("data").unwrap().as_map().unwrap();
            assert_eq!(data.keys().map(|name| name.as_str().unwrap()).collect::<Vec<_>>(), names);
            assert!(report[0].get("tag").unwrap().as_str().unwrap().parse::<jiff::civil::DateTime>().is_ok());
        }
        assert_eq!(wrong("status", &list![map! {"dance" => list!["all"]}]), "unknown function status.dance");
    }
}
