//! `xfs`: parsers for the output of the programs of xfsprogs, xfsdump and blkid.

use brine_value::{Map, Value};

/// Parses the output of `xfs_info`: sections, each with its parameters.
pub(super) fn geometry(output: &str) -> Map {
    let mut sections = Map::new();
    let mut current: Option<Value> = None;
    for line in output.lines() {
        let plain = line.split_whitespace().collect::<Vec<_>>().join(" ").replace(", ", " ");
        let Some((section, rest)) = plain.split_once('=') else { continue };
        let rest = rest.trim_start();
        let section = section.trim();
        // The name of a section is followed by its device or type, which may contain blanks.
        let parameters = if section.is_empty() {
            pairs(rest)
        } else {
            let first = rest.split(' ').position(|word| word.contains('=')).unwrap_or(usize::MAX);
            let words: Vec<&str> = rest.split(' ').collect();
            let (kind, rest) = words.split_at(first.min(words.len()));
            let kind = if kind.is_empty() { section.to_owned() } else { kind.join(" ") };
            current = Some(section.into());
            sections.insert(section.into(), Map::from_iter([("section".into(), kind.into())]).into());
            pairs(&rest.join(" "))
        };
        if let Some(Value::Map(about)) = current.as_ref().and_then(|section| sections.get_mut(section)) {
            about.extend(parameters);
        }
    }
    sections
}

/// Parses pairs such as `agcount=4 agsize=25600 blks`; values may contain blanks.
fn pairs(text: &str) -> Map {
    let mut pairs: Vec<(String, String)> = Vec::new();
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        match (word.split_once('='), pairs.last_mut()) {
            (Some((name, value)), _) => pairs.push((name.to_owned(), value.to_owned())),
            (None, Some((_, value))) => {
                value.push(' ');
                value.push_str(word);
            }
            (None, None) => {}
        }
    }
    pairs.into_iter().map(|(name, value)| (name.into(), value.into())).collect()
}

/// Parses the output of `blkid -o export`, and adds the mounts of the devices.
pub(super) fn devices(output: &str, mounts: &Map) -> Map {
    let device = |block: &str| {
        let pairs = block.lines().filter_map(|line| line.split_once('='));
        let mut about: Map = pairs.map(|(name, value)| (name.to_lowercase().into(), value.into())).collect();
        let is_xfs = about.shift_remove("type").is_some_and(|kind| kind.as_str() == Some("xfs"));
        let name = about.shift_remove("devname").filter(|_| is_xfs)?;
        about.entry("label".into()).or_default();
        if let Some(Value::Map(mounted)) = mounts.get(&name) {
            about.extend(mounted.iter().map(|(name, value)| (name.clone(), value.clone())));
        }
        Some((name, about.into()))
    };
    output.split("\n\n").filter_map(device).collect()
}

/// Returns the mounts of XFS in the text of `/proc/mounts`, by device.
pub(super) fn mounts(text: &str) -> Map {
    let mount = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        let [device, place, "xfs", options, ..] = words[..] else { return None };
        let options: Value = options.split(',').collect();
        Some((device.into(), brine_value::map! {"mount_point" => place, "options" => options}.into()))
    };
    text.lines().filter_map(mount).collect()
}

/// Parses the output of `xfsdump`.
pub(super) fn summary(output: &str) -> Map {
    let mut fields = Map::new();
    let mut summary: Vec<&str> = Vec::new();
    let mut is_summary = false;
    for line in output.lines().map(|line| line.trim().trim_start_matches("xfsdump: ")) {
        let parts = [
            ("session id:", "Session ID"),
            ("session label:", "Session label"),
            ("media file size", "Media size"),
            ("dump complete:", "Dump complete"),
            ("Dump Status:", "Status"),
        ];
        for (start, name) in parts {
            if let Some(value) = line.strip_prefix(start) {
                fields.insert(name.into(), value.trim().into());
            }
        }
        if line.starts_with("Dump Summary:") {
            is_summary = true;
        } else if is_summary && line.starts_with(' ') {
            summary.push(line.trim());
        } else {
            is_summary = false;
        }
    }
    if !summary.is_empty() {
        fields.insert("Summary".into(), summary.join(" ").into());
    }
    fields
}

/// Parses the output of `xfsrestore -I` into mappings, nested by the number of leading tabs.
pub(super) fn inventory(output: &str) -> Map {
    let lines: Vec<&str> = output.lines().filter(|line| !line.trim().is_empty()).collect();
    let (status, lines) = match lines.split_last() {
        Some((status, rest)) if status.to_lowercase().contains("restore status") => (Some(*status), rest),
        _ => (None, &lines[..]),
    };
    let mut rest = lines;
    let mut inventory = nested(&mut rest, 0);
    if let Some(status) = status {
        inventory.insert("restore_status".into(), status.into());
    }
    inventory
}

fn nested(lines: &mut &[&str], depth: usize) -> Map {
    let mut fields = Map::new();
    while let [line, rest @ ..] = *lines {
        let own = line.len() - line.trim_start_matches('\t').len();
        if own < depth {
            break;
        }
        *lines = rest;
        let (name, value) = line.trim().split_once(':').unwrap_or((line.trim(), ""));
        let value = match value.trim() {
            "" => nested(lines, own + 1).into(),
            value => value.into(),
        };
        fields.insert(name.trim().into(), value);
    }
    fields
}

/// Parses the entry that `xfsinvutil` removed: its output has it between two lines of dashes.
pub(super) fn pruned(output: &str) -> Map {
    let entry = output.lines().map(str::trim).skip_while(|line| !line.starts_with('-')).skip(1);
    let pairs = entry.take_while(|line| !line.starts_with('-')).skip(1).filter_map(|line| line.split_once(':'));
    pairs.map(|(name, value)| (name.trim().to_lowercase().replace(' ', "_").into(), value.trim().into())).collect()
}

#[cfg(test)]
mod tests;
