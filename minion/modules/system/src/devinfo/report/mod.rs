//! Parses the output of `hwinfo`.

use brine_value::{Map, Value, list, map};

/// Parses a summary: by class, the descriptions of devices by device file, or by index for devices without one.
pub(super) fn short(text: &str) -> Value {
    let mut result = Map::new();
    let mut current = Map::new();
    let mut class: Option<Value> = None;
    let mut count = 0;
    for line in text.trim_end().lines() {
        if line.starts_with("    ") {
            current.insert(count.into(), line.trim().into());
            count += 1;
        } else if line.starts_with("  ") {
            let (file, about) = line.trim().split_once(' ').unwrap_or((line.trim(), ""));
            current.insert(file.into(), about.trim().into());
        } else if let Some(name) = line.strip_suffix(':') {
            if let Some(class) = class.replace(name.into()) {
                result.insert(class, std::mem::take(&mut current).into());
            }
            (current, count) = (Map::new(), 0);
        } else {
            tracing::error!(line, "a line of hwinfo is not understood");
        }
    }
    if let Some(class) = class {
        result.insert(class, current.into());
    }
    result.into()
}

/// Parses a full description into mappings, nested by indentation.
pub(super) fn full(text: &str) -> Value {
    let mut result = Map::new();
    // The path of the innermost mapping at each level.
    let mut stack: Vec<Vec<Value>> = Vec::new();
    for line in text.trim().lines() {
        let level = line.matches("  ").count();
        stack.truncate(level);
        let line = line.trim();
        if line.is_empty() {
            continue;
        }
        if level == 0 {
            let Some((number, rest)) = line.split_once(':') else { continue };
            let (place, about) = rest.trim().split_once(": ").unwrap_or((rest.trim(), ""));
            result.insert(number.into(), map! {place => about}.into());
            stack.push(vec![number.into()]);
            continue;
        }
        let Some(path) = stack.last().cloned() else { continue };
        let Some(target) = inner(&mut result, &path) else { continue };
        let Some((key, value)) = line.split_once(':').filter(|_| !line.starts_with('[')) else {
            let note = line.strip_prefix('[').map_or(line, |line| line.strip_suffix(']').unwrap_or(line));
            target.insert("Note".into(), note.into());
            continue;
        };
        let (key, value) = (key.trim(), value.trim());
        if !value.is_empty() && !value.starts_with('#') && key != "El Torito info" {
            add(target, key, value);
            continue;
        }
        let value = match key {
            _ if value.starts_with('#') => map! {"Handle" => value},
            "El Torito info" => {
                let mut parts = value.split(", ");
                let platform = parts.next().and_then(|part| part.split_whitespace().last()).unwrap_or_default();
                let bootable = !parts.next().unwrap_or_default().contains("not");
                map! {"platform" => platform, "bootable" => if bootable { "yes" } else { "no" }}
            }
            _ => Map::new(),
        };
        target.insert(key.into(), value.into());
        stack.push(path.into_iter().chain([key.into()]).collect());
    }
    result.into()
}

/// Adds a value. If the key exists, its values become a list.
fn add(target: &mut Map, key: &str, value: &str) {
    let pieces = |text: &str, separator: &str| -> Value { text.split(separator).map(str::trim).collect() };
    let key = if key == "I/O Port" { "I/O Ports" } else { key };
    let mut value: Value = match key {
        "Config Status" => value
            .split(", ")
            .filter_map(|item| item.split_once('='))
            .map(|(a, b)| (a.into(), b.into()))
            .collect::<Map>()
            .into(),
        "Driver" | "Driver Modules" => pieces(&value.replace('"', ""), ", "),
        "Tags" | "Device Files" | "Features" => pieces(value, ","),
        _ => value.strip_prefix('"').map_or(value, |value| value.strip_suffix('"').unwrap_or(value)).into(),
    };
    if let Some(have) = target.get(key) {
        let mut items = match have {
            Value::List(items) => items.clone(),
            one => list![one.clone()].as_list().unwrap_or_default().to_vec(),
        };
        if !items.contains(&value) {
            items.push(value);
        }
        value = if items.len() == 1 { items.remove(0) } else { Value::List(items) };
    }
    target.insert(key.into(), value);
}

/// Returns the mapping at a path.
fn inner<'a>(map: &'a mut Map, path: &[Value]) -> Option<&'a mut Map> {
    path.iter().try_fold(map, |map, key| map.get_mut(key)?.as_map_mut())
}

#[cfg(test)]
mod tests;
