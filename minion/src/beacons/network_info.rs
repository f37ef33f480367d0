//! `network_info`: counters of network interfaces, when they have reached or passed a value.

use brine_value::{Map, Value, map};

use super::settings::{Settings, number};
use super::{Look, Moment};

/// The counters, and their columns in the kernel's table.
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
    /// Told when a counter is above its value, not when it is just that.
    above: bool,
    /// A value for some of [`COUNTERS`].
    values: [Option<u64>; 8],
}

pub(super) fn start(settings: &Settings) -> Result<Box<dyn Look>, String> {
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
            return Err(format!("interface '{name}': it has none of {}", COUNTERS.map(|(name, _)| name).join(", ")));
        }
        Ok(Interface { name: name.to_string(), above, values })
    };
    Ok(Box::new(NetworkInfo(interfaces.iter().map(one).collect::<Result<_, String>>()?)))
}

/// An interface's counters in the kernel's table, in the order of [`COUNTERS`].
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
    fn tell(&self, table: &str) -> Vec<Map> {
        let one = |interface: &Interface| {
            let counters = counters(table, &interface.name)?;
            let told = counters.iter().zip(interface.values).any(|(counter, value)| {
                value.is_some_and(|value| if interface.above { *counter > value } else { *counter == value })
            });
            let all = || COUNTERS.iter().zip(counters).map(|((name, _), counter)| ((*name).into(), counter.into()));
            told.then(|| map! {"interface" => &interface.name, "network_info" => all().collect::<Map>()})
        };
        self.0.iter().filter_map(one).collect()
    }
}

impl Look for NetworkInfo {
    fn look(&mut self, _moment: &Moment<'_>) -> Result<Vec<Map>, String> {
        Ok(self.tell(&super::read("/proc/net/dev")?))
    }
}

#[cfg(test)]
mod tests {
    use brine_value::list;

    use super::super::tests::{look_at, wrong};
    use super::*;

    const TABLE: &str = "Inter-|   Receive            |  Transmit\n face |bytes packets\n    \
                         lo: 10 2 3 4 0 0 0 0 20 5 6 7 0 0 0 0\n  eth0:1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1\n";

    #[test]
    fn counters_are_told_when_they_have_reached_or_passed_a_value() {
        for (above, values, told) in [
            (false, [Some(20), None, None, None, None, None, None, None], true),
            (false, [Some(19), None, None, None, None, None, None, None], false),
            (true, [Some(19), None, None, None, None, None, None, None], true),
            (true, [Some(20), None, None, None, None, None, None, None], false),
            (true, [Some(99), None, None, None, None, Some(5), None, None], true),
        ] {
            let beacon = NetworkInfo(vec![Interface { name: "lo".into(), above, values }]);
            let all = map! {
                "bytes_sent" => 20, "bytes_recv" => 10, "packets_sent" => 5, "packets_recv" => 2,
                "errin" => 3, "errout" => 6, "dropin" => 4, "dropout" => 7,
            };
            let event = map! {"interface" => "lo", "network_info" => all};
            assert_eq!(beacon.tell(TABLE), if told { vec![event] } else { vec![] }, "{values:?}");
        }
        assert_eq!(counters(TABLE, "eth"), None);
    }

    #[test]
    fn this_host_has_counters_and_options_are_checked() {
        let config = |options: Map| list![map! {"interfaces" => map! {"lo" => options}}];
        assert!(
            look_at("network_info", &config(map! {"type" => "greater", "bytes_sent" => 1u64 << 62}))
                .unwrap()
                .is_empty()
        );
        for (options, error) in [
            (map! {"type" => "less", "errin" => 1}, "interface 'lo': option 'type': expected equal or greater"),
            (map! {"errin" => "x"}, "option 'errin': expected a number, got x"),
        ] {
            assert_eq!(wrong("network_info", &config(options)), error);
        }
        assert!(wrong("network_info", &config(map! {})).starts_with("interface 'lo': it has none of bytes_sent, "));
    }
}
