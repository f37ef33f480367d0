//! Runs the program `snapper`, and parses its output.

use brine_context::Context;
use brine_function::CallError;
use brine_host::process::Program;
use brine_host::programs::{argument, program};
use brine_value::json::from_json;
use brine_value::{Map, Value, map};
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

/// The columns of lists of snapshots.
const COLUMNS: &str = "number,type,pre-number,date,user,cleanup,description,userdata";

/// The statuses by the characters that stand for them, in the order of Salt.
const STATUSES: [(usize, char, &str); 9] = [
    (0, '+', "created"),
    (0, '-', "deleted"),
    (0, 't', "type changed"),
    (0, 'c', "modified"),
    (1, 'p', "permission changed"),
    (2, 'u', "owner changed"),
    (3, 'g', "group changed"),
    (4, 'x', "extended attributes changed"),
    (5, 'a', "ACL info changed"),
];

/// The configuration that commands of `snapper` apply to.
pub struct Snapper<'c> {
    /// The context that runs the program.
    pub context: &'c Context,
    /// The name of the configuration.
    pub config: &'c str,
}

impl Snapper<'_> {
    /// Runs a command, and returns its output. `doing` begins the message of a failure.
    pub fn run(&self, words: &[impl AsRef<str>], doing: &str) -> Result<String, CallError> {
        let mut all = vec!["snapper".to_owned(), "-c".to_owned(), argument(self.config)?];
        all.extend(words.iter().map(|word| word.as_ref().to_owned()));
        run(self.context, &all, self.config, doing)
    }

    /// Returns the snapshots in order; number 0 is the current system.
    pub fn list(&self, doing: &str) -> Result<Vec<Map>, CallError> {
        let words = ["--jsonout", "--utc", "--iso", "list", "--disable-used-space", "--columns", COLUMNS];
        let output = json(&self.run(&words, doing)?)?;
        let snapshots = output.get(self.config).and_then(Value::as_list).unwrap_or_default();
        Ok(snapshots.iter().map(snapshot).collect())
    }

    /// Returns the settings of the configuration.
    pub fn settings(&self, doing: &str) -> Result<Map, CallError> {
        let settings = json(&self.run(&["--jsonout", "get-config"], doing)?)?;
        Ok(settings.as_map().cloned().unwrap_or_default())
    }

    /// Returns the changed files between two snapshots, with their statuses.
    pub fn status(&self, pre: u32, post: u32, doing: &str) -> Result<Map, CallError> {
        Ok(statuses(&self.run(&["status", &format!("{pre}..{post}")], doing)?))
    }
}

/// Returns the configurations and their subvolumes.
pub fn configs(context: &Context, doing: &str) -> Result<Vec<String>, CallError> {
    let words = ["snapper", "--jsonout", "list-configs"].map(str::to_owned);
    let output = json(&run(context, &words, "", doing)?)?;
    let configs = output.get("configs").and_then(Value::as_list).unwrap_or_default();
    Ok(configs.iter().filter_map(|config| Some(config.get("config")?.to_string())).collect())
}

fn run(context: &Context, words: &[String], config: &str, doing: &str) -> Result<String, CallError> {
    // Names of files may end with blanks.
    let program = Program { keep_line_ends: true, ..program(words, &[]) };
    let output = context.run_program(&program).map_err(CallError::execution)?;
    if output.retcode == 0 {
        return Ok(output.stdout);
    }
    let reason = match output.stderr.trim() {
        "Unknown config." => format!("Unknown configuration '{config}'"),
        "Illegal snapshot." => "Invalid snapshot".to_owned(),
        text if text.starts_with("Snapshot '") && text.ends_with("not found.") => "Invalid snapshot".to_owned(),
        text => text.to_owned(),
    };
    Err(CallError::Execution(format!("{doing}: {reason}")))
}

fn json(text: &str) -> Result<Value, CallError> {
    from_json(text).map_err(|error| {
        CallError::Execution(format!("the output of snapper is invalid: expected JSON, got {text:?}: {error}"))
    })
}

/// Converts a snapshot of `snapper list` to the fields of Salt.
fn snapshot(listed: &Value) -> Map {
    let field = |name: &str| listed.get(name).cloned().unwrap_or_default();
    let kind = field("type");
    let mut about = map! {"id" => field("number"), "type" => kind.clone()};
    if kind.as_str() == Some("post") {
        about.insert("pre".into(), field("pre-number"));
    }
    // The current system has no date.
    let date = field("date").to_string().parse::<DateTime>().ok();
    let time = date.and_then(|date| date.to_zoned(TimeZone::UTC).ok()).unwrap_or_else(brine_clock::now);
    let userdata = field("userdata").as_map().cloned().unwrap_or_default();
    about.extend(map! {
        "timestamp" => time.timestamp().as_second(),
        "user" => field("user"),
        "description" => field("description"),
        "cleanup" => field("cleanup"),
        "userdata" => userdata,
    });
    about
}

/// Parses the output of `snapper status`. The name of a file may contain line ends.
fn statuses(output: &str) -> Map {
    let mut files: Vec<(String, &str)> = Vec::new();
    for line in output.split_inclusive('\n') {
        match line.split_at_checked(6).and_then(|(flags, rest)| Some((flags, rest.strip_prefix(' ')?))) {
            Some((flags, path)) if path.starts_with('/') && are_flags(flags) => files.push((path.to_owned(), flags)),
            _ => {
                if let Some((path, _)) = files.last_mut() {
                    path.push_str(line);
                }
            }
        }
    }
    let about = |flags: &str| {
        let is_set = |(at, flag, _): &&(usize, char, &str)| flags.chars().nth(*at) == Some(*flag);
        map! {"status" => STATUSES.iter().filter(is_set).map(|(_, _, name)| *name).collect::<Value>()}
    };
    let path = |path: &str| path.strip_suffix('\n').unwrap_or(path).to_owned();
    files.iter().map(|(name, flags)| (path(name).into(), about(flags).into())).collect()
}

fn are_flags(flags: &str) -> bool {
    let is_known =
        |(at, c): (usize, char)| c == '.' || STATUSES.iter().any(|(place, flag, _)| (at, c) == (*place, *flag));
    flags.chars().enumerate().all(is_known)
}

/// Returns the names of the statuses of a number, whose bits are in the order of [`STATUSES`].
pub fn status_names(bits: u32) -> Value {
    STATUSES.iter().enumerate().filter(|(bit, _)| bits & (1 << bit) != 0).map(|(_, (_, _, name))| *name).collect()
}

/// Formats the user data of a snapshot for the command line. Keys of `old` that are not in `new` are removed.
pub fn userdata(old: &Map, new: &Map) -> Result<Option<String>, CallError> {
    let mut pairs = Vec::new();
    for (key, value) in new {
        let (key, value) = (key.to_string(), value.to_string());
        let is_plain = |text: &str| !text.is_empty() && !text.contains(|c: char| ",=".contains(c) || c.is_control());
        if !is_plain(&key) || !is_plain(&value) {
            let message =
                "userdata is invalid: keys and values must not be empty or contain ',', '=' or control characters";
            return Err(CallError::execution(message));
        }
        pairs.push(format!("{key}={value}"));
    }
    pairs.extend(old.keys().filter(|key| !new.contains_key(*key)).map(|key| format!("{key}=")));
    Ok(Some(pairs.join(",")).filter(|pairs| !pairs.is_empty()))
}

#[cfg(test)]
mod tests {
    use brine_value::list;

    use super::*;

    // As written by snapper 0.10.4.
    #[test]
    fn statuses_are_parsed() {
        let output = "+..... /mnt/new\nline\n-..... /mnt/sp ace \n..u... /mnt/empty\nc..... /mnt/f\ntp.... /mnt/link\ncpugxa /all\n";
        let expected = map! {
            "/mnt/new\nline" => map! {"status" => list!["created"]},
            "/mnt/sp ace " => map! {"status" => list!["deleted"]},
            "/mnt/empty" => map! {"status" => list!["owner changed"]},
            "/mnt/f" => map! {"status" => list!["modified"]},
            "/mnt/link" => map! {"status" => list!["type changed", "permission changed"]},
            "/all" => map! {"status" => status_names(0b1_1111_1000)},
        };
        assert_eq!(statuses(output), expected);
        for odd in ["", "\n", "nothing to do", "+.... /a", "\u{e9}..... /a", "+.....", "q..... /a"] {
            assert!(statuses(odd).is_empty(), "{odd}");
        }
    }

    #[test]
    fn user_data_are_pairs() {
        for (old, new, expected) in [
            (map! {}, map! {}, Ok(None)),
            (map! {}, map! {"a" => "b", "n" => 1}, Ok(Some("a=b,n=1"))),
            (map! {"a" => "b", "gone" => "c"}, map! {"a" => "d"}, Ok(Some("a=d,gone="))),
            (map! {}, map! {"a" => "b,c=d"}, Err(())),
            (map! {}, map! {"a" => ""}, Err(())),
            (map! {}, map! {"a\n" => "b"}, Err(())),
        ] {
            assert_eq!(userdata(&old, &new).map_err(|_| ()), expected.map(|text| text.map(str::to_owned)));
        }
    }
}
