//! The configuration of logrotate: directives, and blocks of directives for logs.

use std::ops::Range;
use std::path::Path;

use brine_function::CallError;
use brine_system::files;
use brine_value::{Map, Value};

/// Maximum depth of included files.
const DEPTH: usize = 8;
/// Directives that are followed by a script.
const SCRIPTS: [&str; 5] = ["firstaction", "lastaction", "prerotate", "postrotate", "preremove"];

/// The block of directives for some logs.
#[derive(Debug, Clone, PartialEq)]
struct Block {
    /// Names of the logs, which may be globs.
    names: Vec<String>,
    commands: Map,
    /// Byte range from the first name to the closing brace.
    place: Range<usize>,
    /// Byte offset of the opening brace, where the names end.
    brace: usize,
}

/// A configuration file.
#[derive(Debug, Default, PartialEq)]
pub struct Conf {
    commands: Map,
    blocks: Vec<Block>,
}

/// Converts a string to an integer if it is one.
pub fn number(text: &str) -> Value {
    text.trim().parse::<i64>().map_or_else(|_| text.into(), Value::from)
}

fn names_log(word: &str) -> bool {
    word.starts_with(['/', '~', '"', '\'']) || word.contains(['*', '?', '['])
}

impl Conf {
    /// Parses the text of a file.
    pub fn parse(text: &str) -> Self {
        let mut conf = Conf::default();
        let mut open: Option<Block> = None;
        let mut script: Option<(String, Vec<Value>)> = None;
        let mut pending: Option<(usize, Vec<String>)> = None;
        let mut start = 0;
        for raw in text.split_inclusive('\n') {
            let begin = start + raw.len() - raw.trim_start().len();
            start += raw.len();
            let line = raw.trim();
            if let Some((name, mut body)) = script.take() {
                if line == "endscript" {
                    let commands = open.as_mut().map_or(&mut conf.commands, |block| &mut block.commands);
                    commands.insert(name.into(), body.into());
                } else {
                    body.push(line.into());
                    script = Some((name, body));
                }
                continue;
            }
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let words: Vec<&str> = line.split_whitespace().collect();
            if let Some(at) = raw.find('{').filter(|_| !line.contains('}')) {
                let (first, mut names) = pending.take().unwrap_or((begin, Vec::new()));
                let own = words.iter().map(|word| word.trim_end_matches('{')).filter(|word| !word.is_empty());
                names.extend(own.map(str::to_owned));
                let brace = start - raw.len() + at;
                open = Some(Block { names, commands: Map::new(), place: first..brace, brace });
            } else if line.contains('}') {
                if let Some(mut block) = open.take() {
                    block.place.end = start - raw.len() + raw.find('}').unwrap_or(0) + 1;
                    conf.blocks.push(block);
                }
            } else if open.is_none() && words.len() == 1 && names_log(words[0]) {
                pending.get_or_insert_with(|| (begin, Vec::new())).1.push(words[0].to_owned());
            } else if words.len() == 1 && SCRIPTS.contains(&words[0]) {
                script = Some((words[0].to_owned(), Vec::new()));
            } else {
                let commands = open.as_mut().map_or(&mut conf.commands, |block| &mut block.commands);
                let value = match &words[1..] {
                    [] => true.into(),
                    [one] => number(one),
                    several => several.join(" ").into(),
                };
                commands.insert(words[0].into(), value);
            }
        }
        conf
    }

    /// Returns the block of a log; the last one counts.
    fn block(&self, name: &str) -> Option<&Block> {
        self.blocks.iter().rfind(|block| block.names.iter().any(|own| own == name))
    }

    /// Returns the path of the `include` directive: a directory or a file.
    fn included(&self) -> Option<&str> {
        self.commands.get("include").and_then(Value::as_str)
    }

    /// Returns the whole configuration with included files, in Salt's form.
    pub fn describe(&self) -> Map {
        self.describe_within(DEPTH)
    }

    fn describe_within(&self, depth: usize) -> Map {
        let mut report = self.commands.clone();
        if let Some(directory) = self.included().filter(|_| depth > 0) {
            let mut file_names = Map::new();
            for (name, conf) in included(directory) {
                let more = conf.describe_within(depth - 1);
                file_names.insert(name.into(), more.keys().cloned().collect());
                report.extend(more);
            }
            report.insert("include files".into(), file_names.into());
        }
        for block in &self.blocks {
            report.extend(block.names.iter().map(|name| (name.as_str().into(), block.commands.clone().into())));
        }
        report
    }

    /// Returns the path of the file that contains the block of a log, or a directive: an included file, or by default
    /// this one, `own`.
    pub fn file_of(&self, own: &str, key: &str) -> String {
        let Some(directory) = self.included().filter(|_| self.block(key).is_none()) else { return own.to_owned() };
        let has = |(_, conf): &(String, Conf)| conf.block(key).is_some() || conf.commands.contains_key(key);
        let file = included(directory).into_iter().find(has);
        file.map_or_else(|| own.to_owned(), |(name, _)| path_of(directory, &name))
    }
}

fn path_of(directory: &str, name: &str) -> String {
    let directory = Path::new(directory);
    if directory.is_dir() { directory.join(name) } else { directory.to_owned() }.display().to_string()
}

/// Parses the files of a directory, or a single file, sorted by name. Unreadable files are skipped.
fn included(directory: &str) -> Vec<(String, Conf)> {
    let path = Path::new(directory);
    let mut names: Vec<String> = match std::fs::read_dir(path) {
        Ok(entries) => entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect(),
        Err(_) => path.file_name().map(|name| name.to_string_lossy().into_owned()).into_iter().collect(),
    };
    names.sort();
    let read = |name: String| {
        let text = files::read_to_string(path_of(directory, &name)).ok()?;
        Some((name, Conf::parse(&text)))
    };
    names.into_iter().filter_map(read).collect()
}

/// Parses a configuration file.
pub fn read(path: &str) -> Result<Conf, CallError> {
    Ok(Conf::parse(&files::read_to_string(path).map_err(CallError::execution)?))
}

/// Returns the text with a directive, replaced outside of blocks or added at the top. False removes it.
pub fn with_command(text: &str, key: &str, value: &Value) -> String {
    let line = match value {
        Value::Bool(true) => key.to_owned(),
        value if value.is_truthy() => format!("{key} {value}"),
        _ => String::new(),
    };
    let is_it =
        |have: &str| have.strip_prefix(key).is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\t']));
    if !text.lines().any(is_it) {
        return format!("{line}\n{text}");
    }
    text.lines().flat_map(|have| [if is_it(have) { &line } else { have }, "\n"]).collect()
}

/// Returns the text with a directive in a log's block, replaced there or in a new block at the end. False removes
/// it.
pub fn with_setting(text: &str, key: &str, command: &str, setting: &Value) -> String {
    let conf = Conf::parse(text);
    let block = conf.block(key);
    let mut commands = block.map(|block| block.commands.clone()).unwrap_or_default();
    if setting.is_truthy() {
        commands.insert(command.into(), setting.clone());
    } else {
        commands.shift_remove(command);
    }
    let lines: String = commands.iter().map(|(name, value)| render(&name.to_string(), value)).collect();
    let Some(block) = block else {
        let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
        return format!("{text}{end}{key} {{\n{lines}}}\n");
    };
    let names = text[block.place.start..block.brace].trim_end();
    format!("{}{names} {{\n{lines}}}{}", &text[..block.place.start], &text[block.place.end..])
}

fn render(name: &str, value: &Value) -> String {
    match value {
        Value::List(script) => {
            let script: Vec<String> = script.iter().map(|line| format!("        {line}\n")).collect();
            format!("    {name}\n{}    endscript\n", script.concat())
        }
        Value::Bool(true) => format!("    {name} \n"),
        value => format!("    {name} {value}\n"),
    }
}

/// Returns the value of a directive, the whole block of a log, or one directive of the block. False if it is not
/// set.
pub fn get(conf: &Conf, key: &str, command: Option<&str>) -> Value {
    let all = conf.describe();
    let value = all.get(key);
    match command.filter(|command| !command.is_empty()) {
        None => value.cloned().unwrap_or(false.into()),
        Some(command) => value.and_then(|block| block.get(command)).cloned().unwrap_or(false.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# all\nweekly\nrotate 4\n/var/a\n/var/b {\n  daily\n  postrotate\n    echo a b\n  endscript\n}\n\
        /var/c* {\n  size 5M\n}\n";

    #[test]
    fn directives_and_blocks_are_parsed() {
        let conf = Conf::parse(TEXT);
        assert_eq!(get(&conf, "rotate", None), 4.into());
        assert_eq!(get(&conf, "/var/a", None), get(&conf, "/var/b", None));
        assert_eq!(get(&conf, "/var/b", Some("postrotate")), brine_value::list!["echo a b"]);
        assert_eq!(get(&conf, "/var/c*", Some("size")), "5M".into());
        assert_eq!((get(&conf, "rotate", Some("x")), get(&conf, "/x", None)), (false.into(), false.into()));
        assert_eq!(conf.file_of("/etc/x", "/var/a"), "/etc/x");
        assert_eq!(Conf::parse("a }\n{ b\n").describe(), Map::new());
    }

    #[test]
    fn surrounding_text_is_preserved() {
        let edited = with_setting(TEXT, "/var/b", "daily", &false.into());
        let scripted = "{\n    postrotate\n        echo a b\n    endscript\n}";
        assert_eq!(edited, TEXT.replace("{\n  daily\n  postrotate\n    echo a b\n  endscript\n}", scripted));
        assert_eq!(with_setting("x", "/n", "size", &5.into()), "x\n/n {\n    size 5\n}\n");
        assert_eq!(with_command(TEXT, "rotate", &9.into()), TEXT.replace("rotate 4", "rotate 9"));
        assert_eq!(with_command("a\n", "dateext", &true.into()), "dateext\na\n");
        assert_eq!(with_command("a 1\n", "a", &false.into()), "\n");
    }
}
