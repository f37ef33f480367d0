//! Parses the output of `parted -m`: lines of fields that are separated by colons.

use brine_function::CallError;
use brine_value::{Map, Value, map};

/// The fields of the line about the disk. Releases of parted before 3.0 print no flags.
const DISK: &[&str] =
    &["disk", "size", "interface", "logical sector", "physical sector", "partition table", "model", "disk flags"];
/// The fields of a partition.
const PARTITION: &[&str] = &["number", "start", "end", "size", "file system", "name", "flags"];
/// The fields of a partition in the unit `chs`.
const PARTITION_CHS: &[&str] = &["number", "start", "end", "file system", "name", "flags"];

/// Returns the disk as `info`, and the `partitions` by number.
pub(super) fn parse(output: &str) -> Result<Map, CallError> {
    let malformed = || CallError::Execution("Problem encountered while parsing output from parted".into());
    let (mut info, mut partitions) = (Map::new(), Map::new());
    let (mut fields, mut geometry) = (PARTITION, false);
    for line in output.lines() {
        match line {
            "BYT;" => continue,
            "CYL;" => {
                geometry = true;
                continue;
            }
            "CHS;" => {
                (fields, geometry) = (PARTITION_CHS, true);
                continue;
            }
            _ => {}
        }
        let columns: Vec<&str> = line.trim_end_matches(';').split(':').collect();
        if info.is_empty() {
            if !(DISK.len() - 1..=DISK.len()).contains(&columns.len()) {
                return Err(malformed());
            }
            info = mapping(DISK, &columns);
        } else if geometry {
            // Cylinders, heads and sectors of the disk.
            geometry = false;
        } else {
            let columns = with_whole_name(columns, fields.len()).ok_or_else(malformed)?;
            let number = columns.first().map(String::as_str).unwrap_or_default();
            partitions.insert(number.into(), mapping(fields, &columns).into());
        }
    }
    Ok(map! {"info" => info, "partitions" => partitions})
}

/// Joins the columns of a name with colons, which parted does not escape.
fn with_whole_name(columns: Vec<&str>, count: usize) -> Option<Vec<String>> {
    let name = count.checked_sub(2)?;
    let last = columns.len().checked_sub(1).filter(|last| *last > name)?;
    let start = columns[..name].iter().map(|column| (*column).to_owned());
    Some(start.chain([columns[name..last].join(":"), columns[last].to_owned()]).collect())
}

fn mapping<T: AsRef<str>>(fields: &[&str], columns: &[T]) -> Map {
    fields.iter().zip(columns).map(|(field, column)| ((*field).into(), Value::from(column.as_ref()))).collect()
}

#[cfg(test)]
mod tests;
