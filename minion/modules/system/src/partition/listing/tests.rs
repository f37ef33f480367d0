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
        let listing = parse(&output).unwrap();
        assert_eq!(to_json(listing.get("partitions").unwrap()), partitions);
        assert_eq!(listing.get("info").and_then(|info| info.get("model")), Some(&"User-Mode Linux UBD".into()));
    }
    assert_eq!(to_json(&parse("").unwrap().into()), r#"{"info": {}, "partitions": {}}"#);
    for output in ["Error: ", "BYT;\n/dev/a:1:2;", &format!("BYT;\n{disk}\n1:1049kB:21.0MB;"), &format!("{disk}\n\n")] {
        let error = parse(output).unwrap_err().to_string();
        assert_eq!(error, "ERROR: Problem encountered while parsing output from parted", "{output}");
    }
}
