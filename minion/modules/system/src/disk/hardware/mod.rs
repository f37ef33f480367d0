//! `disk`: functions that query the hardware of disks, with the programs `hdparm`, `smartctl` and `iostat`.

use brine_context::Context;
use brine_context::programs::run;
use brine_function::arguments::names;
use brine_function::{CallError, CallResult, function};
use brine_host::programs::argument;
use brine_value::{Map, Value, map};
use indexmap::IndexMap;

/// The read-only flags of `hdparm`.
const FLAGS: &str = "aAbBcCdgHiJkMmNnQrRuW";
/// The maximum time of one `iostat` measurement, in seconds.
const MAX_SECONDS: u64 = 3600;

/// Return parameters of disks, as reported by `hdparm`. `args` are its flags; only the read-only ones are accepted.
///
/// CLI Example:
///
///     salt '*' disk.hdparms /dev/sda
#[function]
pub fn hdparms(
    context: &Context,
    /// Paths of devices, as a list.
    disks: Value,
    /// Flags of `hdparm`, as a text or a list, without their dashes.
    #[default(FLAGS.into())]
    args: Value,
) -> CallResult {
    let flags = names(&args).concat();
    Ok(parameters(context, &disks, &flags)?
        .into_iter()
        .map(|(disk, values)| (disk.into(), values.into()))
        .collect::<Map>()
        .into())
}

/// Return the numbers of total sectors of disks, and of those hidden in their Host Protected Area. With `size`, hide
/// this number of sectors, or this percentage.
///
/// CLI Example:
///
///     salt '*' disk.hpa /dev/sda
///     salt '*' disk.hpa /dev/sda 5%
#[function]
pub fn hpa(
    context: &Context,
    /// Paths of devices, as a list.
    disks: Value,
    /// Sectors to hide, or a percentage such as `10%`; nothing is changed without it.
    #[default]
    size: Value,
) -> CallResult {
    let mut areas = IndexMap::new();
    for (disk, values) in parameters(context, &disks, "N")? {
        let numbers = values.values().next().and_then(Value::as_list).unwrap_or_default();
        let number = |place: usize| numbers.get(place).and_then(Value::as_i64);
        let (Some(visible), Some(total)) = (number(0), number(1)) else {
            return Err(CallError::execution(format!("{disk} does not report its sectors")));
        };
        let is_off = numbers.get(2).is_some_and(|status| status.to_string().contains("disabled"));
        areas.insert(disk, (visible, total, visible == total || is_off));
    }
    if size.is_nil() {
        let area = |(visible, total, is_off): (i64, i64, bool)| {
            if is_off {
                map! {"total" => total}
            } else {
                map! {"total" => total, "visible" => visible, "hidden" => total - visible}
            }
        };
        return Ok(areas.into_iter().map(|(disk, values)| (disk.into(), area(values).into())).collect::<Map>().into());
    }
    for (disk, (_, total, _)) in areas {
        let visible = visible(total, &size)?;
        run_checked(
            context,
            vec!["hdparm".into(), "--yes-i-know-what-i-am-doing".into(), format!("-Np{visible}"), disk],
        )?;
    }
    Ok(Value::Nil)
}

/// Returns the number of sectors that remain visible if `size` sectors, or `size` percent of them, are hidden.
fn visible(total: i64, size: &Value) -> Result<i64, CallError> {
    let text = size.to_string();
    let hidden = match text.strip_suffix('%').map(str::parse::<i64>) {
        Some(Ok(percent @ 0..=100)) => Some((i128::from(total) * i128::from(percent) / 100) as i64),
        Some(_) => None,
        None => text.parse().ok(),
    };
    let hidden = hidden.filter(|hidden| *hidden >= 0);
    let hidden = hidden
        .ok_or_else(|| CallError::execution(format!("size is invalid: expected sectors or percent, got '{size}'")))?;
    Ok(if hidden >= total { total } else { total - hidden })
}

/// Returns the device file of a disk, named with or without `/dev`.
fn device(name: &str) -> Result<String, CallError> {
    let name = argument(name)?;
    Ok(if name.starts_with("/dev") { name } else { format!("/dev/{name}") })
}

/// Runs a program, and returns its output; a failure is an error with the program's message.
fn run_checked(context: &Context, words: Vec<String>) -> Result<String, CallError> {
    let output = run(context, &words, &[("LC_ALL", "C")])?;
    if output.retcode != 0 {
        let why = if output.stderr.is_empty() { output.stdout } else { output.stderr };
        return Err(CallError::execution(why));
    }
    Ok(output.stdout)
}

fn parameters(context: &Context, disks: &Value, flags: &str) -> Result<IndexMap<String, Map>, CallError> {
    if flags.is_empty() || !flags.chars().all(|flag| FLAGS.contains(flag)) {
        return Err(CallError::execution(format!("args are invalid: expected flags among {FLAGS}, got '{flags}'")));
    }
    let mut all = IndexMap::new();
    for disk in names(disks) {
        let disk = device(&disk)?;
        // hdparm also fails if the disk supports only some of the flags, so the exit status is ignored.
        let output = run(context, &["hdparm".into(), format!("-{flags}"), disk.clone()], &[("LC_ALL", "C")])?;
        let head = format!("{disk}:");
        let lines = output.stdout.lines().map(str::trim).filter(|line| *line != head);
        all.insert(disk, lines.filter_map(parameter).collect());
    }
    Ok(all)
}

/// Parses `multcount = 16 (on)` or `readahead: 256`.
fn parameter(line: &str) -> Option<(Value, Value)> {
    let (key, value) = match line.split_once(':') {
        Some((key, value)) => (key.strip_suffix(" is").unwrap_or(key), value),
        None => line.split_once('=')?,
    };
    let (key, value) = (key.trim().to_lowercase().replace(' ', "_"), value.trim());
    if let Some((number, word)) = value.split_once(' ')
        && let Ok(number) = number.parse::<i64>()
        && word.starts_with('(')
        && word.ends_with(')')
    {
        let word = word.split(' ').next().unwrap_or_default().trim_matches(['(', ')']);
        return Some((key.into(), Value::List(vec![number.into(), word.into()])));
    }
    let (mut parts, mut named) = (Vec::<Value>::new(), Map::new());
    for part in value.split(['/', ',']).map(str::trim).filter(|part| !part.is_empty()) {
        match (part.parse::<i64>(), part.split_once('=')) {
            (Ok(number), _) => parts.push(number.into()),
            (_, Some((name, value))) if !value.trim().is_empty() => {
                named.insert(name.trim().into(), value.trim().into());
            }
            (_, Some(_)) => {}
            (_, None) => parts.push(part.into()),
        }
    }
    if !named.is_empty() {
        parts.push(named.into());
    }
    match parts.len() {
        0 => None,
        1 => Some((key.into(), parts.remove(0))),
        _ => Some((key.into(), parts.into())),
    }
}

/// Return the SMART attributes of a disk by their numbers, as reported by `smartctl`: all, or those listed in
/// `attributes`, with all columns or those listed in `values`.
///
/// CLI Example:
///
///     salt '*' disk.smart_attributes /dev/sda attributes='[5,187,188,197,198]'
#[function]
pub fn smart_attributes(
    context: &Context,
    /// Path of the device.
    dev: String,
    /// Numbers of attributes; all by default.
    #[default]
    attributes: Value,
    /// Names of columns in lower case, such as `raw_value`; all by default.
    values: Option<Vec<String>>,
) -> CallResult {
    let text = run_checked(context, vec!["smartctl".into(), "--attributes".into(), device(&dev)?])?;
    let mut lines = text.lines().skip_while(|line| !line.starts_with("ID#"));
    let header = lines.next().unwrap_or_default();
    let fields = header.split_whitespace().skip(1).map(str::to_lowercase).collect::<Vec<_>>();
    let numbers = names(&attributes);
    let mut rows = Map::new();
    for line in lines.take_while(|line| line.trim_start().starts_with(|c: char| c.is_ascii_digit())) {
        let mut words = line.split_whitespace();
        let Some(number) = words.next().and_then(|word| word.parse::<i64>().ok()) else { continue };
        if !attributes.is_nil() && !numbers.contains(&number.to_string()) {
            continue;
        }
        let words = words.collect::<Vec<_>>();
        let mut one = Map::new();
        for (place, field) in fields.iter().enumerate() {
            if values.as_ref().is_some_and(|names| !names.contains(field)) {
                continue;
            }
            // The last column may contain blanks.
            let last = place + 1 == fields.len();
            let word = if last {
                words.get(place..).unwrap_or_default().join(" ")
            } else {
                words.get(place).map_or(String::new(), |word| (*word).to_owned())
            };
            let numbers =
                word.split(' ').map(|part| part.parse::<i64>().ok().map(Value::from)).collect::<Option<Vec<_>>>();
            one.insert(
                field.as_str().into(),
                match numbers {
                    Some(numbers) if numbers.len() == 1 => numbers[0].clone(),
                    Some(numbers) => numbers.into(),
                    None => word.into(),
                },
            );
        }
        rows.insert(number.into(), one.into());
    }
    Ok(rows.into())
}

/// Return the I/O statistics of disks and the processor usage (`sys`), as reported by `iostat`: the averages of `count`
/// measurements of `interval` seconds each.
///
/// CLI Example:
///
///     salt '*' disk.iostat 1 5 disks=sda
#[function]
pub fn iostat(
    context: &Context,
    /// Seconds between two measurements.
    #[default(1)]
    interval: u64,
    /// Number of measurements.
    #[default(5)]
    count: u64,
    /// Paths of devices, as a list.
    #[default]
    disks: Value,
) -> CallResult {
    let seconds = interval.checked_mul(count).filter(|seconds| (1..=MAX_SECONDS).contains(seconds));
    seconds.ok_or_else(|| {
        CallError::execution(format!("interval and count are invalid: expected 1 to {MAX_SECONDS} seconds together"))
    })?;
    let mut words = vec!["iostat".to_owned(), if disks.is_nil() { "-x" } else { "-xd" }.to_owned()];
    words.extend([interval.to_string(), count.to_string()]);
    for disk in names(&disks) {
        words.push(argument(&disk)?);
    }
    Ok(averages(&run_checked(context, words)?).into())
}

/// Sums of rows with the same header, and the number of rows, for averages.
#[derive(Default)]
struct Sums {
    header: Vec<String>,
    sums: Vec<f64>,
    count: u32,
}

impl Sums {
    fn add(&mut self, header: &[String], numbers: &[&str]) {
        self.header = header.to_vec();
        self.sums.resize(numbers.len(), 0.0);
        for (sum, number) in self.sums.iter_mut().zip(numbers) {
            *sum += number.replace(',', ".").parse::<f64>().unwrap_or(0.0);
        }
        self.count += 1;
    }

    fn average(&self) -> Map {
        let round = |sum: &f64| (sum / f64::from(self.count.max(1)) * 100.0).round() / 100.0;
        self.header.iter().zip(&self.sums).map(|(name, sum)| (name.as_str().into(), round(sum).into())).collect()
    }
}

fn averages(text: &str) -> Map {
    let mut all = IndexMap::<String, Sums>::new();
    let mut header = Vec::new();
    let mut of_processors = false;
    for line in text.lines() {
        let words = line.split_whitespace().collect::<Vec<_>>();
        match words[..] {
            [] => header.clear(),
            [first, ref rest @ ..] if first == "avg-cpu:" || first.trim_end_matches(':') == "Device" => {
                header = rest.iter().map(|word| (*word).to_owned()).collect();
                of_processors = first == "avg-cpu:";
            }
            ref numbers if of_processors && !header.is_empty() => {
                all.entry("sys".into()).or_default().add(&header, numbers);
            }
            [disk, ref numbers @ ..] if !header.is_empty() => all.entry(disk.into()).or_default().add(&header, numbers),
            _ => {}
        }
    }
    all.into_iter().map(|(name, sums)| (name.into(), sums.average().into())).collect()
}

#[cfg(test)]
mod tests;
