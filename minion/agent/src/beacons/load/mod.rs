//! `load`: load averages outside their range.

use brine_value::{Map, Value};

use super::settings::{Settings, number};
use super::{Beacon, Kind, Options, PollContext, entry};

const NAMES: [&str; 3] = ["1m", "5m", "15m"];

struct Load {
    /// The accepted ranges of the averages over 1, 5 and 15 minutes.
    ranges: [Option<(f64, f64)>; 3],
    on_change: bool,
    at_start: bool,
    last: Option<[f64; 3]>,
}

pub(super) const KIND: Kind = Kind {
    name: "load",
    doc: "Load averages outside their range, at each poll.",
    options: Options::Named(&[
        entry(
            "averages",
            "Required. A mapping of `1m`, `5m`, `15m` to a list of the lowest and the highest accepted value.",
        ),
        entry("onchangeonly", "Whether an average is reported only when it leaves its range (False)."),
        entry("emitatstartup", "Whether the first poll may report, with `onchangeonly` (True)."),
    ]),
    fields: &[entry("1m, 5m, 15m", "The load averages.")],
    start,
    ..Kind::DEFAULT
};

fn start(settings: &Settings) -> Result<Box<dyn Beacon>, String> {
    let averages = settings.map("averages")?;
    let mut ranges = [None; 3];
    for (range, name) in ranges.iter_mut().zip(NAMES) {
        let Some(value) = averages.get(name) else { continue };
        let Some([low, high]) = value.as_list() else {
            return Err(format!("averages of {name}: expected a list of the lowest and highest value, got {value}"));
        };
        *range = Some((number(name, low)?, number(name, high)?));
    }
    if ranges.iter().all(Option::is_none) {
        return Err("option 'averages': expected at least one of 1m, 5m, 15m".into());
    }
    let (on_change, at_start) = (settings.flag("onchangeonly", false)?, settings.flag("emitatstartup", true)?);
    Ok(Box::new(Load { ranges, on_change, at_start, last: None }))
}

impl Load {
    fn events(&mut self, now: [f64; 3]) -> Vec<Map> {
        let mut ranges = self.ranges.iter().enumerate().filter_map(|(i, range)| Some((now[i], i, (*range)?)));
        let report = if self.on_change {
            let Some(last) = self.last.replace(now).or(self.at_start.then_some(now)) else { return Vec::new() };
            let crosses =
                |(now, i, (low, high)): (f64, usize, _)| (now > high && last[i] < high) || (now < low && last[i] > low);
            ranges.any(crosses)
        } else {
            ranges.any(|(now, _, (low, high))| now < low || now > high)
        };
        let all = || NAMES.into_iter().zip(now).map(|(name, value)| (name.into(), Value::Float(value))).collect();
        if report { vec![all()] } else { Vec::new() }
    }
}

impl Beacon for Load {
    fn poll(&mut self, _context: &PollContext<'_>) -> Result<Vec<Map>, String> {
        let text = super::read("/proc/loadavg")?;
        let mut numbers = text.split_whitespace().map(str::parse);
        match (numbers.next(), numbers.next(), numbers.next()) {
            (Some(Ok(one)), Some(Ok(five)), Some(Ok(fifteen))) => Ok(self.events([one, five, fifteen])),
            _ => Err(format!("parsing /proc/loadavg failed: {text}")),
        }
    }
}

#[cfg(test)]
mod tests;
