use std::io::Write;

use brine_value::list;

use super::super::tests::wrong;
use super::*;

#[test]
fn new_lines_that_match_are_reported_once() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    writeln!(file, "error: old").unwrap();
    let tags = vec![("bad".into(), Regex::new("error").unwrap())];
    let mut log = Log { file: file.path().to_owned(), tags, errors: Vec::new(), offset: None };
    let raws = |report: Vec<Map>| report.iter().map(|event| event.get("raw").unwrap().to_string()).collect::<Vec<_>>();
    assert!(log.events().unwrap().is_empty());
    write!(file, "error: new\nno error\nerror: ha").unwrap();
    let report = log.events().unwrap();
    assert_eq!(report, [map! {"tag" => "bad", "match" => "yes", "raw" => "error: new", "error" => ""}]);
    assert!(log.events().unwrap().is_empty());
    writeln!(file, "lf").unwrap();
    assert_eq!(raws(log.events().unwrap()), ["error: half"]);
    // Rotated: the new file is read from its start.
    std::fs::write(file.path(), "error: anew\n").unwrap();
    assert_eq!(raws(log.events().unwrap()), ["error: anew"]);
    drop(file);
    assert!(log.events().is_err());
}

#[test]
fn an_invalid_regex_is_reported_once_and_the_file_is_required() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let path = file.path().display().to_string();
    let settings = list![map! {"file" => path}, map! {"tags" => map! {"a/b" => map! {"regex" => "("}}}];
    let mut beacon = start(&Settings::read("log", &settings).unwrap()).unwrap();
    let context = crate::testing::context(&[]);
    let poll = PollContext { context: &context, now: &brine_clock::now() };
    let bad = map! {"tag" => "a/b", "match" => "no", "raw" => "", "error" => "bad regex"};
    assert_eq!(beacon.poll(&poll).unwrap(), [bad]);
    assert!(beacon.poll(&poll).unwrap().is_empty());
    assert_eq!(wrong("log", &list![]), "option 'file' is missing");
}
