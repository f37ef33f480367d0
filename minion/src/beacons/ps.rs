//! `ps`: processes that run or do not.

use std::collections::HashSet;
use std::path::Path;

use brine_value::{Map, Value, map};

use super::settings::Settings;
use super::{Look, Moment};

/// The kernel keeps so much of a program's name.
const KEPT: usize = 15;

/// Names of processes, and what is wanted of each.
struct Ps(Vec<(String, Wanted)>);

/// When a process is told.
#[derive(Clone, Copy)]
enum Wanted {
    Running,
    Stopped,
    /// Anything else: told, as false, when it does not run.
    Missing,
}

pub(super) fn start(settings: &Settings) -> Result<Box<dyn Look>, String> {
    let wanted = |value: &Value| match value.as_str() {
        Some("running") => Wanted::Running,
        Some("stopped") => Wanted::Stopped,
        _ => Wanted::Missing,
    };
    let processes = settings.map("processes")?;
    Ok(Box::new(Ps(processes.iter().map(|(name, value)| (name.to_string(), wanted(value))).collect())))
}

impl Ps {
    fn tell(&self, running: &HashSet<String>) -> Vec<Map> {
        let one = |(name, wanted): &(String, Wanted)| {
            let name = name.as_str();
            match (wanted, running.contains(name)) {
                (Wanted::Running, true) => Some(map! {name => "Running"}),
                (Wanted::Stopped, false) => Some(map! {name => "Stopped"}),
                (Wanted::Missing, false) => Some(map! {name => false}),
                _ => None,
            }
        };
        self.0.iter().filter_map(one).collect()
    }
}

/// The names of all processes.
fn names() -> Result<HashSet<String>, String> {
    let entries = std::fs::read_dir("/proc").map_err(|error| format!("/proc cannot be read: {error}"))?;
    Ok(entries.filter_map(|entry| name(&entry.ok()?.path())).collect())
}

/// The name of one process: what the kernel says or, where that is cut off, the program's.
pub(super) fn name(folder: &Path) -> Option<String> {
    folder.file_name()?.to_str()?.parse::<u32>().ok()?;
    // A process may end while it is looked at.
    let name = std::fs::read_to_string(folder.join("comm")).ok()?.trim_end_matches('\n').to_owned();
    if name.len() < KEPT {
        return Some(name);
    }
    let line = std::fs::read(folder.join("cmdline")).unwrap_or_default();
    let program = line.split(|byte| *byte == 0).next().unwrap_or_default();
    let program = String::from_utf8_lossy(program);
    let program = program.rsplit('/').next().unwrap_or_default();
    Some(if program.starts_with(&name) { program.to_owned() } else { name })
}

impl Look for Ps {
    fn look(&mut self, _moment: &Moment<'_>) -> Result<Vec<Map>, String> {
        Ok(self.tell(&names()?))
    }
}

#[cfg(test)]
mod tests {
    use brine_value::list;

    use super::super::tests::wrong;
    use super::*;

    #[test]
    fn processes_are_told_when_they_are_as_asked() {
        let ps = Ps(vec![
            ("a".into(), Wanted::Running),
            ("b".into(), Wanted::Running),
            ("a".into(), Wanted::Stopped),
            ("b".into(), Wanted::Stopped),
            ("c".into(), Wanted::Missing),
        ]);
        let running = HashSet::from(["a".to_owned()]);
        assert_eq!(ps.tell(&running), [map! {"a" => "Running"}, map! {"b" => "Stopped"}, map! {"c" => false}]);
    }

    #[test]
    fn names_are_whole() {
        let folder = tempfile::tempdir().unwrap();
        for (comm, line, whole) in [
            ("sh\n", &b"/bin/other\0-c"[..], "sh"),
            ("a-very-long-nam\n", &b"/usr/bin/a-very-long-name\0-x"[..], "a-very-long-name"),
            ("a-very-long-nam\n", &b"python3\0x"[..], "a-very-long-nam"),
        ] {
            let process = folder.path().join("17");
            std::fs::create_dir_all(&process).unwrap();
            std::fs::write(process.join("comm"), comm).unwrap();
            std::fs::write(process.join("cmdline"), line).unwrap();
            assert_eq!(name(&process).as_deref(), Some(whole));
        }
        assert_eq!(name(Path::new("/proc/sys")), None);
        assert!(!names().unwrap().is_empty());
    }

    #[test]
    fn options_are_checked() {
        assert_eq!(
            wrong("ps", &list![map! {"processes" => list!["a"]}]),
            "option 'processes': expected a mapping, got list"
        );
    }
}
