//! `log`: lines of a log file that a regular expression matches.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::PathBuf;

use brine_value::{Map, Value, map};
use fancy_regex::Regex;

use super::settings::{Settings, text};
use super::{Look, Moment};

/// The most that is read at one look. What is beyond is read at the next.
const AT_ONCE: u64 = 4 << 20;

struct Log {
    file: PathBuf,
    /// Tags, with what their lines begin with.
    tags: Vec<(String, Regex)>,
    /// What is wrong with the configuration of a tag, until it is told.
    wrong: Vec<Map>,
    /// How far the file has been read; nothing before the first look, which finds only its end.
    place: Option<u64>,
}

pub(super) fn start(settings: &Settings) -> Result<Box<dyn Look>, String> {
    let file = text("file", settings.get("file").ok_or("option 'file' is missing")?)?;
    let (mut tags, mut wrong) = (Vec::new(), Vec::new());
    for (tag, options) in settings.get("tags").and_then(Value::as_map).into_iter().flatten() {
        let Some(pattern) = options.get("regex").and_then(Value::as_str).filter(|text| !text.is_empty()) else {
            tracing::warn!(beacon = "log", file, %tag, "a tag has no regex and is left out");
            continue;
        };
        match Regex::new(&format!("^(?:{pattern})")) {
            Ok(regex) => tags.push((tag.to_string(), regex)),
            Err(error) => {
                tracing::error!(beacon = "log", file, %tag, %error, "a regex cannot be read");
                wrong.push(map! {"tag" => tag.to_string(), "match" => "no", "raw" => "", "error" => "bad regex"});
            }
        }
    }
    Ok(Box::new(Log { file: file.into(), tags, wrong, place: None }))
}

impl Log {
    fn tell(&mut self) -> std::io::Result<Vec<Map>> {
        let mut file = File::open(&self.file)?;
        let end = file.metadata()?.len();
        let mut told = std::mem::take(&mut self.wrong);
        let Some(place) = self.place.replace(end) else { return Ok(told) };
        // A file that is shorter than it was has been written anew.
        let place = if place > end { 0 } else { place };
        file.seek(SeekFrom::Start(place))?;
        let mut bytes = Vec::new();
        file.take(AT_ONCE).read_to_end(&mut bytes)?;
        let whole = match bytes.iter().rposition(|byte| *byte == b'\n') {
            Some(last) => last + 1,
            // A line that is still being written, unless it is longer than anything that is read.
            None if (bytes.len() as u64) < AT_ONCE => 0,
            None => bytes.len(),
        };
        self.place = Some(place + whole as u64);
        for line in String::from_utf8_lossy(&bytes[..whole]).lines() {
            for (tag, regex) in &self.tags {
                let event = |is: &str, raw, error| map! {"tag" => tag, "match" => is, "raw" => raw, "error" => error};
                match regex.is_match(line) {
                    Ok(true) => told.push(event("yes", line, "")),
                    Ok(false) => {}
                    Err(_) => told.push(event("no", "", "bad match")),
                }
            }
        }
        Ok(told)
    }
}

impl Look for Log {
    fn look(&mut self, _moment: &Moment<'_>) -> Result<Vec<Map>, String> {
        self.tell().map_err(|error| format!("{} cannot be read: {error}", self.file.display()))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use brine_value::list;

    use super::super::tests::wrong;
    use super::*;

    #[test]
    fn new_lines_that_match_from_their_start_are_told_once() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        writeln!(file, "error: old").unwrap();
        let tags = vec![("bad".into(), Regex::new("^(?:error)").unwrap())];
        let mut log = Log { file: file.path().to_owned(), tags, wrong: Vec::new(), place: None };
        let raws = |told: Vec<Map>| told.iter().map(|event| event.get("raw").unwrap().to_string()).collect::<Vec<_>>();
        assert!(log.tell().unwrap().is_empty());
        write!(file, "error: new\nno error\nerror: ha").unwrap();
        let told = log.tell().unwrap();
        assert_eq!(told, [map! {"tag" => "bad", "match" => "yes", "raw" => "error: new", "error" => ""}]);
        assert!(log.tell().unwrap().is_empty());
        writeln!(file, "lf").unwrap();
        assert_eq!(raws(log.tell().unwrap()), ["error: half"]);
        // Rotated: what is in the new file is read from its start.
        std::fs::write(file.path(), "error: anew\n").unwrap();
        assert_eq!(raws(log.tell().unwrap()), ["error: anew"]);
        drop(file);
        assert!(log.tell().is_err());
    }

    #[test]
    fn a_wrong_regex_is_told_once_and_the_file_must_be_named() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let path = file.path().display().to_string();
        let settings = list![map! {"file" => path}, map! {"tags" => map! {"a/b" => map! {"regex" => "("}}}];
        let mut beacon = start(&Settings::read("log", &settings).unwrap()).unwrap();
        let context = crate::testing::context(&[]);
        let moment = Moment { context: &context, now: &jiff::Zoned::now() };
        let bad = map! {"tag" => "a/b", "match" => "no", "raw" => "", "error" => "bad regex"};
        assert_eq!(beacon.look(&moment).unwrap(), [bad]);
        assert!(beacon.look(&moment).unwrap().is_empty());
        assert_eq!(wrong("log", &list![]), "option 'file' is missing");
    }
}
