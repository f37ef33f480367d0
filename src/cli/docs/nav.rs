//! The navigation of the site in mkdocs.yml: its pages in order, and the groups that they are in. The build script reads
//! it, too, to pack the files that pages are made of.

#![allow(dead_code, reason = "the build script and the program use parts of it")]

use std::io::{self, Write};
use std::path::Path;

/// The file with the navigation.
pub const NAVIGATION: &str = "mkdocs.yml";
/// The directory with drawings in text.
const DRAWINGS: &str = "explanation";

/// A page of the navigation.
#[derive(Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    /// The names of the groups that the page is in, from the outermost to the innermost one.
    pub groups: Vec<&'a str>,
    /// The path below the directory of the documentation.
    pub path: &'a str,
}

/// Returns the pages of a navigation, of which each line is a group `- NAME:` or a page.
pub fn entries(configuration: &str) -> Vec<Entry<'_>> {
    let lines = configuration.lines().skip_while(|line| *line != "nav:").skip(1);
    let mut groups: Vec<(usize, &str)> = Vec::new();
    let mut entries = Vec::new();
    for line in lines.take_while(|line| line.starts_with(' ')) {
        let text = line.trim_start();
        let depth = line.len() - text.len();
        let Some(item) = text.strip_prefix("- ") else { continue };
        groups.retain(|(of, _)| *of < depth);
        if let Some(name) = item.strip_suffix(':') {
            groups.push((depth, name));
        } else {
            let path = item.rsplit_once(": ").map_or(item, |(_, path)| path);
            entries.push(Entry { groups: groups.iter().map(|(_, name)| *name).collect(), path });
        }
    }
    entries
}

/// Returns the files below a source tree that the pages are made of: path and text. The path is that below its `docs`,
/// apart from the navigation.
///
/// # Errors
/// The path of a file that cannot be read, and why.
pub fn files(root: &Path) -> Result<Vec<(String, String)>, (String, io::Error)> {
    let read = |path: &str, below: &str| {
        let file = root.join(below).join(path);
        std::fs::read_to_string(&file).map_err(|error| (file.display().to_string(), error))
    };
    let navigation = read(NAVIGATION, "")?;
    let mut paths: Vec<String> = entries(&navigation).iter().map(|entry| entry.path.to_owned()).collect();
    let entries = std::fs::read_dir(root.join("docs").join(DRAWINGS)).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    paths.extend(
        names
            .iter()
            .filter(|name| Path::new(name).extension().is_some_and(|ending| ending == "txt"))
            .map(|name| format!("{DRAWINGS}/{name}")),
    );
    let mut files = Vec::new();
    for path in paths {
        let text = read(&path, "docs")?;
        files.push((path, text));
    }
    files.push((NAVIGATION.to_owned(), navigation));
    Ok(files)
}

/// Writes files into one: each has a line with its path and one with its length before it.
///
/// # Errors
/// The file cannot be written.
pub fn pack(files: &[(String, String)], into: &mut impl Write) -> io::Result<()> {
    files.iter().try_for_each(|(path, text)| write!(into, "{path}\n{}\n{text}", text.len()))
}

/// Returns the packed files; `None` if the pack is damaged.
pub fn unpack(pack: &str) -> Option<Vec<(String, String)>> {
    let (mut files, mut rest) = (Vec::new(), pack);
    while let Some((path, after)) = rest.split_once('\n') {
        let (length, after) = after.split_once('\n')?;
        let (text, after) = after.split_at_checked(length.parse().ok()?)?;
        files.push((path.to_owned(), text.to_owned()));
        rest = after;
    }
    Some(files)
}
