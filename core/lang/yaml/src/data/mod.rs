//! Reads data files, which Salt reads by the plain loader of YAML 1.1 instead of its own: `0644` is an octal number,
//! a date is a date, and the last of equal keys has their value.

use std::collections::{HashMap, HashSet};

use brine_value::{Map, Value};

use super::compose::{Content, Mark, Node};
use super::scalar::{self, Kind};
use super::{Limits, Located, NodePosition, YamlError, document};

/// Data, and where its dates are: a [`Value`] has none, they are texts in it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Data {
    /// The data. A date has the form `2020-01-31` or `2020-01-31 10:00:00+00:00`.
    pub value: Value,
    /// Its dates.
    pub dates: Dates,
}

/// Where dates are: those of a value, with those inside of it by key or index.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Dates {
    /// Whether the value is a date.
    pub(super) is_date: bool,
    /// Whether its key is a date.
    pub(super) is_key: bool,
    pub(super) inside: HashMap<Value, Dates>,
}

impl Dates {
    /// Forgets the dates that a mapping which is merged over the data replaces.
    pub fn replaced_by(&mut self, over: &Map) {
        for (key, value) in over {
            match (self.inside.get_mut(key), value) {
                (Some(dates), Value::Map(over)) if !dates.is_date => dates.replaced_by(over),
                (Some(_), _) => _ = self.inside.remove(key),
                (None, _) => {}
            }
        }
    }

    /// Keeps the dates of the entries of a mapping that are the same in another.
    pub fn kept(&mut self, before: &Map, after: &Map) {
        self.inside.retain(|key, _| before.get(key) == after.get(key));
    }
}

/// Parses one YAML document as data.
///
/// # Examples
/// ```
/// use brine_yaml::{Style, dump_data, load_data};
/// use brine_value::map;
///
/// let data = load_data("mode: 0600\nday: 2020-01-31\nmode: 0644").unwrap();
/// assert_eq!(data.value, map! {"mode" => 420, "day" => "2020-01-31"}.into());
/// assert_eq!(dump_data(&data.value, &data.dates, Style::BLOCK), "day: 2020-01-31\nmode: 420\n");
/// ```
pub fn load_data(text: &str) -> Result<Data, YamlError> {
    let read = document(text, None, &mut None, Limits::TRUSTED, |constructor, root| {
        let mut marks = DateMarks::default();
        marks.note_value(root.at, root);
        constructor.dates = Some(marks);
        let (value, position) = constructor.value(root, 0)?;
        Ok((Located { value, position }, constructor.dates.take().unwrap_or_default()))
    })?;
    let Some((located, marks)) = read else { return Ok(Data::default()) };
    let dates = marks.collect(&located.value, &located.position).unwrap_or_default();
    Ok(Data { value: located.value, dates })
}

/// The positions of dates while a document is constructed. That of an entry of a mapping is the position of its key.
#[derive(Debug, Default)]
pub(super) struct DateMarks {
    values: HashSet<Mark>,
    keys: HashSet<Mark>,
}

impl DateMarks {
    pub fn note_value(&mut self, at: Mark, node: &Node) {
        if is_date(node) {
            self.values.insert(at);
        }
    }

    pub fn note_key(&mut self, node: &Node) {
        if is_date(node) {
            self.keys.insert(node.at);
        }
    }

    /// Returns the dates of a value, if it has any.
    fn collect(&self, value: &Value, position: &NodePosition) -> Option<Dates> {
        let mut own_dates = Dates::default();
        match value {
            Value::Map(map) => {
                for ((key, value), inside) in map.iter().zip(&position.inside) {
                    let is_key = self.keys.contains(&inside.at);
                    if let Some(dates) = self.collect(value, inside).or_else(|| is_key.then(Dates::default)) {
                        own_dates.inside.insert(key.clone(), Dates { is_key, ..dates });
                    }
                }
            }
            Value::List(items) => {
                for ((index, item), inside) in items.iter().enumerate().zip(&position.inside) {
                    if let Some(dates) = self.collect(item, inside) {
                        own_dates.inside.insert(index.into(), dates);
                    }
                }
            }
            Value::Str(_) => own_dates.is_date = self.values.contains(&position.at),
            _ => {}
        }
        (own_dates.is_date || !own_dates.inside.is_empty()).then_some(own_dates)
    }
}

fn is_date(node: &Node) -> bool {
    match (&node.tag, &node.content) {
        (Some(tag), Content::Scalar { .. }) => tag == "tag:yaml.org,2002:timestamp",
        (None, Content::Scalar { text, plain: true }) => scalar::kind(text) == Kind::Timestamp,
        _ => false,
    }
}

/// Returns a date, or a date with a time, in the form in which Python shows it; `None` if there is no such date.
pub(super) fn date(text: &str) -> Option<String> {
    let mut parts = text.splitn(3, '-');
    let (year, month, rest) = (parts.next()?, parts.next()?, parts.next()?);
    let (day, time) = rest.split_at(rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len()));
    let (year, month, day): (u32, u32, u32) = (year.parse().ok()?, month.parse().ok()?, day.parse().ok()?);
    if !(1..=9999).contains(&year) || !(1..=12).contains(&month) || !(1..=days(year, month)).contains(&day) {
        return None;
    }
    let date = format!("{year:04}-{month:02}-{day:02}");
    if time.is_empty() {
        return Some(date);
    }
    let time = time.trim_start_matches(['T', 't', ' ', '\t']);
    let (clock, zone) =
        time.split_at(time.find(|c: char| !c.is_ascii_digit() && c != ':' && c != '.').unwrap_or(time.len()));
    let (clock, fraction) = clock.split_once('.').unwrap_or((clock, ""));
    let mut parts = clock.split(':').map(str::parse::<u32>);
    let mut part = |limit: u32| parts.next()?.ok().filter(|part| *part < limit);
    let (hour, minute, second) = (part(24)?, part(60)?, part(60)?);
    let micros: u32 = format!("{fraction:0<6.6}").parse().ok()?;
    let fraction = if micros == 0 { String::new() } else { format!(".{micros:06}") };
    Some(format!("{date} {hour:02}:{minute:02}:{second:02}{fraction}{}", offset(zone)?))
}

/// Returns the offset of a time zone, such as `+01:30`; `None` if it is a day or more.
fn offset(zone: &str) -> Option<String> {
    let zone = zone.trim_start_matches([' ', '\t']);
    let Some(amount) = zone.strip_prefix(['+', '-']) else {
        return Some(if zone == "Z" { "+00:00" } else { "" }.to_owned());
    };
    let (hours, minutes) = amount.split_once(':').unwrap_or((amount, "0"));
    let minutes = hours.parse::<u32>().ok()? * 60 + minutes.parse::<u32>().ok()?;
    let sign = if zone.starts_with('-') && minutes != 0 { '-' } else { '+' };
    (minutes < 24 * 60).then(|| format!("{sign}{:02}:{:02}", minutes / 60, minutes % 60))
}

fn days(year: u32, month: u32) -> u32 {
    match month {
        2 if year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400)) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

#[cfg(test)]
mod tests;
