//! `network_info`: counters of network interfaces that equal or exceed a value.

use brine_value::{Map, Value, map};

use super::settings::{Settings, number};
use super::{Beacon, Kind, Options, PollContext, entry};

/// The counters with their columns in `/proc/net/dev`.
const COUNTERS: [(&str, usize); 8] = [
    ("bytes_sent", 8),
    ("bytes_recv", 0),
    ("packets_sent", 9),
    ("packets_recv", 1),
    ("errin", 2),
    ("errout", 10),
    ("dropin", 3),
    ("dropout", 11),
];

struct NetworkInfo(Vec<Interface>);

struct Interface {
    name: String,
    /// `type: greater`: reported when a counter exceeds its value, not when it equals it.
    above: bool,
    /// The configured values, in the order of [`COUNTERS`].
    values: [Option<u64>; 8],
}

pub(super) const KIND: Kind = Kind {
    name: "network_info",
    doc: "Interfaces with a counter that equals or exceeds a value, at each poll.",
    options: Options::Named(&[entry(
        "interfaces",
        "A mapping of interface names to `type` (`equal` or `greater`) and values of `bytes_sent`, `bytes_recv`, \
         `packets_sent`, `packets_recv`, `errin`, `errout`, `dropin`, `dropout`.",
    )]),
    fields: &[entry("interface", "The name of the interface."), entry("network_info", "A mapping of all counters.")],
    start,
    ..Kind::DEFAULT
};

fn start(settings: &Settings) -> Result<Box<dyn Beacon>, String> {
    let none = Map::new();
    let interfaces = settings.get("interfaces").map_or(Ok(&none), |_| settings.map("interfaces"))?;
    let one = |(name, options): (&Value, &Value)| {
        let wrong = || format!("interface '{name}': expected a mapping of type and counters, got {options}");
        let options = options.as_map().ok_or_else(wrong)?;
        let mut values = [None; 8];
        for (value, (counter, _)) in values.iter_mut().zip(COUNTERS) {
            *value = options.get(counter).map(|value| number(counter, value)).transpose()?.map(|value| value as u64);
        }
        let above = match options.get("type").map(Value::as_str) {
            Some(Some("greater")) => true,
            None | Some(Some("equal")) => false,
            Some(_) => return Err(format!("interface '{name}': option 'type': expected equal or greater")),
        };
        if values.iter().all(Option::is_none) {
            return Err(format!(
                "interface '{name}': expected at least one of {}",
                COUNTERS.map(|(name, _)| name).join(", ")
            ));
        }
        Ok(Interface { name: name.to_string(), above, values })
    };
    Ok(Box::new(NetworkInfo(interfaces.iter().map(one).collect::<Result<_, String>>()?)))
}

/// Parses an interface's counters in `/proc/net/dev`, in the order of [`COUNTERS`].
fn counters(table: &str, name: &str) -> Option<[u64; 8]> {
    let line = table.lines().find_map(|line| line.trim_start().strip_prefix(name)?.strip_prefix(':'))?;
    let columns: Vec<u64> = line.split_whitespace().map_while(|word| word.parse().ok()).collect();
    let mut counters = [0; 8];
    for (counter, (_, column)) in counters.iter_mut().zip(COUNTERS) {
        *counter = *columns.get(column)?;
    }
    Some(counters)
}

impl NetworkInfo {
    fn events(&self, table: &str) -> Vec<Map> {
        let one = |interface: &Interface| {
            let counters = counters(table, &interface.name)?;
            let report = counters.iter().zip(interface.values).any(|(counter, value)| {
                value.is_some_and(|value| if interface.above { *counter > value } else { *counter == value })
            });
            let all = || COUNTERS.iter().zip(counters).map(|((name, _), counter)| ((*name).into(), counter.into()));
            report.then(|| map! {"interface" => &interface.name, "network_info" => all().collect::<Map>()})
        };
        self.0.iter().filter_map(one).collect()
    }
}

impl Beacon for NetworkInfo {
    fn poll(&mut self, _context: &PollContext<'_>) -> Result<Vec<Map>, String> {
        Ok(self.events(&super::read("/proc/net/dev")?))
    }
}

#[cfg(test)]
mod tests;
