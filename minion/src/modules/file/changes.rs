//! Changing text within files, and looking for it.

use std::path::{Path, PathBuf};

use brine_function::{CallError, functions};
use brine_system::files;
use brine_value::Value;

use super::diff::unified;
use super::edit::{self, Block, Replacing, compile};
use super::line::{self, Line};
use super::{at, expand, invalid, is_test};
use crate::context::Context;
use crate::modules::archive::split_options;
use crate::modules::cmd;
use crate::modules::programs::run;

functions! {
    module "file", context Context;

    /// Replaces what a regular expression matches, and tells the difference, or with `show_changes: False` whether there
    /// is one. `dry_run` changes nothing; `search_only` says whether the expression matches.
    ///
    /// CLI Example:
    ///
    ///     salt '*' file.replace /etc/httpd/httpd.conf pattern='LogLevel warn' repl='LogLevel info'
    fn replace(
        _context,
        path: String,
        pattern: String,
        repl: Value,
        count: usize = 0,
        flags: Value = 8.into(),
        bufsize: Value = 1.into(),
        append_if_not_found: bool = false,
        prepend_if_not_found: bool = false,
        not_found_content: Value = Value::Nil,
        backup: Value = ".bak".into(),
        dry_run: bool = false,
        search_only: bool = false,
        show_changes: bool = true,
        ignore_if_missing: bool = false,
        preserve_inode: bool = true,
        backslash_literal: bool = false,
        encoding: Value = Value::Nil
    ) {
        // Files are read whole, as UTF-8, and come into place whole.
        _ = (bufsize, preserve_inode, encoding);
        let file = Text::real(&path);
        if ignore_if_missing && !file.exists() {
            return Ok(false.into());
        }
        let before = read(&file, "replace")?;
        if search_only && (append_if_not_found || prepend_if_not_found) {
            return Err(invalid("replace", "search_only cannot be used with append/prepend_if_not_found"));
        }
        if append_if_not_found && prepend_if_not_found {
            return Err(invalid("replace", "Only one of append and prepend_if_not_found is permitted"));
        }
        if search_only {
            let regex = compile(&pattern, &flags).map_err(CallError::Execution)?;
            return Ok(regex.is_match(&before).map_err(CallError::execution)?.into());
        }
        let repl = repl.to_string();
        let repl = if backslash_literal { repl.replace('\\', r"\\") } else { repl };
        let not_found_content = (!not_found_content.is_nil()).then(|| not_found_content.to_string());
        let wanted = Replacing { pattern, repl, count, flags, append_if_not_found, prepend_if_not_found, not_found_content };
        let replaced = edit::replaced(&before, &wanted).map_err(CallError::Execution)?;
        if !dry_run {
            Text { before: &before, after: &replaced.text, backup: &backup }.write(&file)?;
        }
        if !show_changes {
            return Ok((before != replaced.text).into());
        }
        Ok(match &replaced.added {
            Some(content) if before != replaced.text => edit::with_whole(&before, &replaced.text, content),
            _ => unified(&before, &replaced.text),
        }.into())
    }

    /// Replaces the lines between two markers, and tells the difference, or with `show_changes: False` whether there is
    /// one.
    ///
    /// CLI Example:
    ///
    ///     salt '*' file.blockreplace /etc/hosts '#-- start' '#-- end' '10.0.1.1 foo.foobar'
    fn blockreplace(
        _context,
        path: String,
        marker_start: String = "#-- start managed zone --".into(),
        marker_end: String = "#-- end managed zone --".into(),
        content: String = String::new(),
        append_if_not_found: bool = false,
        prepend_if_not_found: bool = false,
        backup: Value = ".bak".into(),
        dry_run: bool = false,
        show_changes: bool = true,
        append_newline: Value = false.into(),
        insert_before_match: Option<String> = None,
        insert_after_match: Option<String> = None
    ) {
        let places = [append_if_not_found, prepend_if_not_found, insert_before_match.is_some(), insert_after_match.is_some()];
        if places.iter().filter(|wanted| **wanted).count() > 1 {
            let told = "Only one of append_if_not_found, prepend_if_not_found, insert_before_match, and insert_after_match is permitted";
            return Err(invalid("blockreplace", told));
        }
        let file = expand(&path);
        let before = read(&file, "blockreplace")?;
        let append_newline = if append_newline.is_nil() { None } else { Some(append_newline.is_truthy()) };
        let block = Block { start: marker_start, end: marker_end, content, append_if_not_found, prepend_if_not_found, append_newline, insert_before_match, insert_after_match };
        let after = edit::with_block(&before, &block).map_err(|told| CallError::Execution(told.into()))?;
        if !dry_run {
            Text { before: &before, after: &after, backup: &backup }.write(&file)?;
        }
        Ok(if show_changes { unified(&before, &after).into() } else { (before != after).into() })
    }

    /// One line: put in, made sure of, replaced or deleted, as `mode` says. Tells the difference, or false.
    ///
    /// CLI Example:
    ///
    ///     salt '*' file.line /etc/nsswitch.conf "networks: files dns" after="hosts:.*?" mode="ensure"
    fn line(
        context,
        path: String,
        content: Option<String> = None,
        r#match: Option<String> = None,
        mode: Option<String> = None,
        location: Option<String> = None,
        before: Option<String> = None,
        after: Option<String> = None,
        show_changes: bool = true,
        backup: bool = false,
        quiet: bool = false,
        indent: bool = true
    ) {
        let file = Text::real(&path);
        if !file.is_file() {
            let told = || CallError::Execution(format!("File \"{}\" does not exists or is not a file.", file.display()));
            return if quiet { Ok(false.into()) } else { Err(told()) };
        }
        let Some(mode) = mode.map(|mode| mode.to_lowercase()) else {
            return Err(CallError::Execution("Mode was not defined. How to process the file?".into()));
        };
        let wanted = Line { content, matching: r#match, location, before, after, indent };
        let text = read(&file, "line")?;
        let changed = line::edited(&text, &mode, &wanted).map_err(CallError::Execution)?;
        if changed == text {
            return Ok(false.into());
        }
        if !is_test(context) {
            if backup {
                let stamp = jiff::Zoned::now().strftime("%Y-%m-%d-%H-%M-%S");
                let kept = format!("{}.{stamp}", file.display());
                std::fs::copy(&file, &kept).map_err(|error| at(&kept, &error))?;
            }
            files::rewrite(&file, changed.as_bytes(), 0o644).map_err(CallError::execution)?;
        }
        Ok(if show_changes { unified(&text, &changed).into() } else { true.into() })
    }

    /// Makes lines that match comments, and tells the difference, or false if none matches.
    ///
    /// CLI Example:
    ///
    ///     salt '*' file.comment /etc/modules pcspkr
    fn comment(context, path: String, regex: String, char: String = "#".into(), backup: Value = ".bak".into()) {
        comment_line(context, path, regex, char, true, backup)
    }

    /// Makes comments that match lines again, and tells the difference, or false if none matches.
    ///
    /// CLI Example:
    ///
    ///     salt '*' file.uncomment /etc/hosts.deny 'ALL: PARANOID'
    fn uncomment(context, path: String, regex: String, char: String = "#".into(), backup: Value = ".bak".into()) {
        comment_line(context, path, regex, char, false, backup)
    }

    /// As `comment`, or with `cmnt: False` as `uncomment`.
    ///
    /// CLI Example:
    ///
    ///     salt '*' file.comment_line /etc/modules pcspkr
    fn comment_line(_context, path: String, regex: String, char: String = "#".into(), cmnt: bool = true, backup: Value = ".bak".into()) {
        let file = Text::real(&path);
        let before = read(&file, "comment_line")?;
        let bare = regex.trim_start_matches('^').trim_end_matches('$');
        let end = if regex.ends_with('$') { "$" } else { "" };
        let sign = if cmnt { String::new() } else { format!(r"{char}\s*") };
        let regex = compile(&format!("^{sign}(?:{bare}){end}"), &0.into()).map_err(CallError::Execution)?;
        let (mut old, mut new, mut after) = (Vec::new(), Vec::new(), String::new());
        for line in before.split_inclusive('\n') {
            if !regex.is_match(line.trim_end_matches('\n')).unwrap_or(false) {
                after.push_str(line);
                continue;
            }
            let changed = if cmnt { format!("{char}{line}") } else { line.trim_start_matches(|c| char.contains(c)).to_owned() };
            after.push_str(&changed);
            old.push(line);
            new.push(changed);
        }
        if old.is_empty() {
            return Ok(false.into());
        }
        Text { before: &before, after: &after, backup: &backup }.write(&file)?;
        let new: Vec<&str> = new.iter().map(String::as_str).collect();
        Ok(super::diff::unified_lines(&old, &new).into())
    }

    /// Changes a file by `sed`, and gives what it said. `replace` does more.
    ///
    /// CLI Example:
    ///
    ///     salt '*' file.sed /etc/httpd/httpd.conf 'LogLevel warn' 'LogLevel info'
    fn sed(
        context,
        path: String,
        before: Value,
        after: Value,
        limit: String = String::new(),
        backup: Value = ".bak".into(),
        options: String = "-r -e".into(),
        flags: String = "g".into(),
        escape_all: bool = false,
        negate_match: bool = false
    ) {
        let file = expand(&path);
        if !file.exists() {
            return Ok(false.into());
        }
        let limit = if limit.is_empty() { limit } else { format!("/{}/ ", escaped(&limit, escape_all)) };
        let script = format!(
            "{limit}{}s/{}/{}/{flags}",
            if negate_match { "!" } else { "" },
            escaped(&before.to_string(), escape_all),
            escaped(&after.to_string(), escape_all),
        );
        let keep = if backup.is_truthy() { format!("-i{backup}") } else { "-i".to_owned() };
        let options = split_options(&options)?;
        let words: Vec<String> = ["sed".to_owned(), keep].into_iter().chain(options).chain([script, file.display().to_string()]).collect();
        Ok(cmd::all(run(context, &words, &[])?).into())
    }

    /// As `sed`, without the program. The old content stays beside, with `backup` behind the name.
    ///
    /// CLI Example:
    ///
    ///     salt '*' file.psed /etc/httpd/httpd.conf 'LogLevel warn' 'LogLevel info'
    fn psed(_context, path: String, before: Value, after: Value, limit: String = String::new(), backup: Value = ".bak".into(), flags: String = "gMS".into(), escape_all: bool = false, multi: bool = false) {
        // Salt reads the first line letter by letter here; the whole text is meant.
        _ = multi;
        let file = expand(&path);
        let text = read(&file, "psed")?;
        let names = [('I', "IGNORECASE"), ('M', "MULTILINE"), ('S', "DOTALL"), ('X', "VERBOSE")];
        let names: Vec<&str> = names.iter().filter(|(letter, _)| flags.contains(*letter)).map(|(_, name)| *name).collect();
        let text_behind = match (limit.is_empty(), compile(&escaped(&limit, escape_all), &0.into())) {
            (true, _) => text.clone(),
            (false, Ok(regex)) => regex.split(&text).skip(1).flatten().collect(),
            (false, Err(error)) => return Err(CallError::Execution(error)),
        };
        let wanted = Replacing {
            pattern: escaped(&before.to_string(), escape_all),
            repl: after.to_string(),
            count: usize::from(!flags.contains('g')),
            flags: names.into_iter().collect(),
            append_if_not_found: false,
            prepend_if_not_found: false,
            not_found_content: None,
        };
        let replaced = edit::replaced(&text_behind, &wanted).map_err(CallError::Execution)?;
        keep(&file, &backup)?;
        files::rewrite(&file, replaced.text.as_bytes(), 0o644).map_err(CallError::execution)?;
        Ok(Value::Nil)
    }

    /// Whether a regular expression matches somewhere in a file.
    ///
    /// CLI Example:
    ///
    ///     salt '*' file.search /etc/crontab 'mymaintenance.sh'
    fn search(_context, path: String, pattern: String, flags: Value = 8.into(), bufsize: Value = 1.into(), ignore_if_missing: bool = false, multiline: bool = false) {
        // Files are read whole, and Salt's `multiline` is a flag that is there already.
        _ = (bufsize, multiline);
        let file = Text::real(&path);
        if ignore_if_missing && !file.exists() {
            return Ok(false.into());
        }
        let text = read(&file, "search")?;
        let regex = compile(&pattern, &flags).map_err(CallError::Execution)?;
        Ok(regex.is_match(&text).map_err(CallError::execution)?.into())
    }

    /// What `grep` says of a file, or of those that fit a path with wildcards. Further words are options.
    ///
    /// CLI Example:
    ///
    ///     salt '*' file.grep /etc/passwd nobody -i
    fn grep(context, path: String, pattern: String, *args) {
        let mut words = vec!["grep".to_owned()];
        for option in args.iter().map(ToString::to_string) {
            if option.contains(char::is_whitespace) {
                return Err(invalid("grep", &format!("Passing multiple command line arguments in a single string is not supported, please pass the following arguments separately: {option}")));
            }
            words.push(option);
        }
        words.push(pattern);
        let path = expand(&path);
        let found = brine_text::glob::paths(Path::new(""), &path.to_string_lossy());
        if found.is_empty() {
            words.push(path.display().to_string());
        }
        words.extend(found.iter().map(|path| path.display().to_string()));
        Ok(cmd::all(run(context, &words, &[])?).into())
    }

    /// The difference between two files, of this host or of the file server.
    ///
    /// CLI Example:
    ///
    ///     salt '*' file.get_diff /home/fred/.vimrc salt://users/fred/.vimrc
    fn get_diff(context, file1: String, file2: String, saltenv: String = "base".into(), show_filenames: bool = true, show_changes: bool = true, template: bool = false, **_kwargs) {
        // There is nothing to hide of templates.
        _ = template;
        let content = |name: &str| {
            if !name.contains("://") {
                let failed = |error| CallError::Execution(format!("Failed to read {name}: {}", super::reason(&error)));
                return std::fs::read(expand(name)).map_err(failed);
            }
            let found = crate::fileclient::content(context, name, &saltenv).ok().flatten();
            found.ok_or_else(|| CallError::Execution("Failed to cache one or more files".into()))
        };
        let (old, new) = (content(&file1)?, content(&file2)?);
        if old == new {
            return Ok("".into());
        }
        if !show_changes {
            return Ok("<show_changes=False>".into());
        }
        let binary = |bytes: &[u8]| bytes.contains(&0);
        Ok(match (binary(&old), binary(&new)) {
            (true, true) => "Replace binary file".into(),
            (true, false) => "Replace binary file with text file".into(),
            (false, true) => "Replace text file with binary file".into(),
            (false, false) => {
                let told = unified(&String::from_utf8_lossy(&old), &String::from_utf8_lossy(&new));
                match told.strip_prefix("--- \n+++ \n") {
                    Some(rest) if show_filenames => format!("--- {file1}\n+++ {file2}\n{rest}"),
                    _ => told,
                }
            }
        }.into())
    }
}

/// A text that has changed.
struct Text<'t> {
    before: &'t str,
    after: &'t str,
    /// What is behind the name of the file with the old content.
    backup: &'t Value,
}

impl Text<'_> {
    /// Through a link, the file behind it is what is changed.
    fn real(path: &str) -> PathBuf {
        let path = expand(path);
        path.canonicalize().unwrap_or(path)
    }

    fn write(&self, file: &Path) -> Result<(), CallError> {
        if self.before == self.after {
            return Ok(());
        }
        keep(file, self.backup)?;
        files::rewrite(file, self.after.as_bytes(), 0o644).map_err(CallError::execution)
    }
}

/// Leaves a file beside under its name and an ending, if there is one.
fn keep(file: &Path, ending: &Value) -> Result<(), CallError> {
    if !ending.is_truthy() {
        return Ok(());
    }
    let kept = format!("{}{ending}", file.display());
    std::fs::copy(file, &kept).map(|_| ()).map_err(|error| at(&kept, &error))
}

fn read(file: &Path, function: &str) -> Result<String, CallError> {
    let bytes = std::fs::read(file).map_err(|_| invalid(function, &format!("File not found: {}", file.display())))?;
    let binary =
        || invalid(function, &format!("Cannot perform string replacements on a binary file: {}", file.display()));
    String::from_utf8(bytes).ok().filter(|text| !text.contains('\0')).ok_or_else(binary)
}

/// A text within the strokes of `sed`; with `all`, what is special in regular expressions is not.
fn escaped(text: &str, all: bool) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\'' => escaped.push_str("'\"'\"'"),
            '/' => escaped.push_str("\\/"),
            special if all && "^.[$()|*+?{".contains(special) => escaped.extend(['\\', special]),
            other => escaped.push(other),
        }
    }
    escaped
}
