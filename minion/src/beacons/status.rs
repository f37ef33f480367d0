//! `status`: what functions of the execution module `status` say, one event a look.

use brine_function::{Args, CallError};
use brine_value::{Map, Value, map};

use super::settings::Settings;
use super::{Look, Moment};

/// What is told where nothing is configured.
const DEFAULT: [&str; 5] = ["loadavg", "cpustats", "meminfo", "vmstats", "time"];

/// Functions, and the parts of what they say.
struct Status(Vec<(String, Vec<Value>)>);

pub(super) fn start(settings: &Settings) -> Result<Box<dyn Look>, String> {
    let mut wanted = Vec::new();
    for (function, items) in &settings.own {
        if !crate::modules::has(&format!("status.{function}")) {
            return Err(format!("there is no function status.{function}"));
        }
        wanted.push((function.clone(), items.as_list().map_or_else(|| vec![items.clone()], <[Value]>::to_vec)));
    }
    if wanted.is_empty() {
        wanted = DEFAULT.iter().map(|function| ((*function).to_owned(), vec!["all".into()])).collect();
    }
    Ok(Box::new(Status(wanted)))
}

/// The parts of a value that are asked for, by name or, of lists, by place.
fn parts(data: Value, items: &[Value]) -> Value {
    let mut chosen = Map::new();
    for item in items {
        let place = || item.to_string().parse::<usize>().ok();
        let part = match &data {
            _ if item.as_str() == Some("all") => return data,
            Value::Map(map) => map.get(item),
            Value::List(list) => place().and_then(|place| list.get(place)),
            // One value is its own first part.
            one => Some(one).filter(|_| place() == Some(0)),
        };
        match part {
            Some(part) => _ = chosen.insert(item.clone(), part.clone()),
            None => return format!("there is no '{item}': it is {}", known(&data)).into(),
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
        Value::List(list) => format!("a list of {}", list.len()),
        _ => "one value, 'all'".into(),
    }
}

impl Look for Status {
    fn look(&mut self, moment: &Moment<'_>) -> Result<Vec<Map>, String> {
        let mut told = Map::new();
        for (function, items) in &self.0 {
            let data = match moment.context.call(&format!("status.{function}"), Args::default()) {
                Ok(data) => parts(data, items),
                Err(CallError::Execution(error)) => {
                    tracing::warn!(beacon = "status", function, error, "a part of the status cannot be told");
                    Value::map()
                }
                Err(error) => return Err(error.to_string()),
            };
            told.insert(function.as_str().into(), data);
        }
        let tag = moment.now.timestamp().strftime("%Y-%m-%dT%H:%M:%S.%6f").to_string();
        Ok(vec![map! {"tag" => tag, "data" => told}])
    }
}

#[cfg(test)]
mod tests {
    use brine_value::list;

    use super::super::tests::{look_at, wrong};
    use super::*;

    #[test]
    fn parts_are_chosen_by_name_or_place() {
        let load = || Value::from(map! {"1-min" => 0.5, "5-min" => 1.5});
        for (data, items, expected) in [
            (load(), list!["all"], load()),
            (load(), list!["1-min"], map! {"1-min" => 0.5}.into()),
            (load(), list!["2-min"], "there is no '2-min': it is one of 1-min, 5-min".into()),
            (list!["a", "b"], list![1], map! {1 => "b"}.into()),
            ("now".into(), list![0], map! {0 => "now"}.into()),
            ("now".into(), list![1], "there is no '1': it is one value, 'all'".into()),
        ] {
            assert_eq!(parts(data, items.as_list().unwrap()), expected);
        }
    }

    #[test]
    fn everything_is_told_unless_something_is_named() {
        for (config, names) in [
            (list![], DEFAULT.to_vec()),
            (list![map! {"time" => list!["all"]}, map! {"loadavg" => list!["1-min"]}], vec!["time", "loadavg"]),
        ] {
            let told = look_at("status", &config).unwrap();
            let data = told[0].get("data").unwrap().as_map().unwrap();
            assert_eq!(data.keys().map(|name| name.as_str().unwrap()).collect::<Vec<_>>(), names);
            assert!(told[0].get("tag").unwrap().as_str().unwrap().parse::<jiff::civil::DateTime>().is_ok());
        }
        assert_eq!(wrong("status", &list![map! {"dance" => list!["all"]}]), "there is no function status.dance");
    }
}
