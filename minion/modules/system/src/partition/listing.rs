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
mod tests {
    use brine_value::json::to_json;

    use super::*;

    // As written by parted 3.5.
    #[test]
    fn disks_and_partitions_are_parsed_in_each_unit() {
        let disk = "/dev/ubda:67.1MB:ubd:512:512:gpt:User-Mode Linux UBD:;";
        for (output, partitions) in [
            (format!("BYT;\n{disk}"), "{}"),
            (
                format!("BYT;\n{disk}\n1:1049kB:21.0MB:19.9MB:ext4:My Documents:hp-service;"),
                r#"{"1": {"number": "1", "start": "1049kB", "end": "21.0MB", "size": "19.9MB", "file system": "ext4", "name": "My Documents", "flags": "hp-service"}}"#,
            ),
            (
                format!("BYT;\n{disk}\n2:1049kB:21.0MB:19.9MB::a:b;c:boot, esp;"),
                r#"{"2": {"number": "2", "start": "1049kB", "end": "21.0MB", "size": "19.9MB", "file system": "", "name": "a:b;c", "flags": "boot, esp"}}"#,
            ),
            (
                format!("CHS;\n{disk}\n257:255:2:261kB;\n1:4,4,0:80,79,1::My Documents:;"),
                r#"{"1": {"number": "1", "start": "4,4,0", "end": "80,79,1", "file system": "", "name": "My Documents", "flags": ""}}"#,
            ),
            (
                format!("CYL;\n{disk}\n257:255:2:261kB;\n1:4cyl:80cyl:76cyl::My Documents:;"),
                r#"{"1": {"number": "1", "start": "4cyl", "end": "80cyl", "size": "76cyl", "file system": "", "name": "My Documents", "flags": ""}}"#,
            ),
        ] {
            let found = parse(&output).unwrap();
            assert_eq!(to_json(found.get("partitions").unwrap()), partitions);
            assert_eq!(found.get("info").and_then(|info| info.get("model")), Some(&"User-Mode Linux UBD".into()));
        }
        assert_eq!(to_json(&parse("").unwrap().into()), r#"{"info": {}, "partitions": {}}"#);
        for output in
            ["Error: ", "BYT;\n/dev/a:1:2;", &format!("BYT;\n{disk}\n1:1049kB:21.0MB;"), &format!("{disk}\n\n")]
        {
            let error = parse(output).unwrap_err().to_string();
            assert_eq!(error, "ERROR: Problem encountered while parsing output from parted", "{output}");
        }
    }
}
