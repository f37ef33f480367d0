//! The pages of the documentation: packed into the program by the build script, or, in programs for development, read
//! from the tree that they were built from.

use std::collections::BTreeMap;

use super::nav;

/// A page.
#[derive(Debug)]
pub struct Page {
    /// The names of the groups of the navigation that it is in.
    pub groups: Vec<String>,
    /// The path without `.md`, such as `how-to/no-answer`.
    pub name: String,
    /// The first heading.
    pub title: String,
    /// The text, without comments.
    pub text: String,
}

/// A section of a page: a heading, and the text up to the next heading of its level.
#[derive(Debug, Clone, Copy)]
pub struct Section<'a> {
    /// The heading.
    pub heading: &'a str,
    /// The text, with the heading.
    pub text: &'a str,
}

/// All pages, in the order of the navigation.
pub struct Pages {
    /// The pages.
    pub list: Vec<Page>,
    /// Drawings in text, by their path without `.txt`.
    drawings: BTreeMap<String, String>,
}

impl Pages {
    /// Reads the pages.
    ///
    /// # Errors
    /// The tree that this program was built from is gone.
    pub fn load() -> anyhow::Result<Pages> {
        let files = files()?;
        let navigation = files.iter().find(|(name, _)| name == nav::NAVIGATION).map_or("", |(_, text)| text);
        let page = |entry: nav::Entry<'_>| {
            let (_, text) = files.iter().find(|(name, _)| name == entry.path)?;
            let text = without_comments(text);
            let title = text.lines().find_map(|line| line.strip_prefix("# ")).unwrap_or(entry.path).to_owned();
            let name = entry.path.strip_suffix(".md").unwrap_or(entry.path).to_owned();
            let groups = entry.groups.iter().map(|&group| group.to_owned()).collect();
            Some(Page { groups, name, title, text })
        };
        let list = nav::entries(navigation).into_iter().filter_map(page).collect();
        let drawing = |(name, text): &(String, String)| Some((name.strip_suffix(".txt")?.to_owned(), text.clone()));
        Ok(Pages { list, drawings: files.iter().filter_map(drawing).collect() })
    }

    /// Returns a page by its name.
    pub fn get(&self, name: &str) -> Option<&Page> {
        self.list.iter().find(|page| page.name == name)
    }

    /// Returns the text of the drawing that a page shows as `FILE.svg`.
    pub fn drawing(&self, page: &str, image: &str) -> Option<&str> {
        let name = resolve(page, image.strip_suffix(".svg")?);
        self.drawings.get(&name).map(String::as_str)
    }
}

impl Page {
    /// Returns the sections, from the first to the last heading.
    pub fn sections(&self) -> Vec<Section<'_>> {
        let mut headings: Vec<(usize, usize, &str)> = Vec::new();
        let (mut at, mut is_code) = (0, false);
        for line in self.text.split_inclusive('\n') {
            is_code ^= line.trim_start().starts_with("```");
            let level = line.chars().take_while(|c| *c == '#').count();
            if !is_code && level > 0 && line[level..].starts_with(' ') {
                headings.push((at, level, line[level..].trim()));
            }
            at += line.len();
        }
        let section = |index: usize| {
            let (start, level, heading) = headings[index];
            let end = headings[index + 1..].iter().find(|(_, next, _)| *next <= level);
            Section { heading, text: &self.text[start..end.map_or(self.text.len(), |(end, ..)| *end)] }
        };
        (0..headings.len()).map(section).collect()
    }

    /// Returns the section with an anchor.
    pub fn section(&self, anchor: &str) -> Option<Section<'_>> {
        self.sections().into_iter().find(|section| slug(section.heading) == anchor)
    }
}

/// Returns the anchor of a heading, as the site makes it.
pub fn slug(heading: &str) -> String {
    let text = heading.trim().to_lowercase();
    let characters = text.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    characters.map(|c| if c == ' ' { '-' } else { c }).collect()
}

/// Returns the path of a link on a page, from the root of the documentation.
pub fn resolve(page: &str, link: &str) -> String {
    let mut parts: Vec<&str> = page.split('/').collect();
    parts.pop();
    for part in link.split('/') {
        match part {
            ".." => _ = parts.pop(),
            "." => {}
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// Returns a text without its comments, which are for tests and translators of the pages.
fn without_comments(text: &str) -> String {
    let (mut output, mut is_comment) = (String::new(), false);
    for line in text.split_inclusive('\n') {
        is_comment |= line.starts_with("<!--");
        if !is_comment {
            output.push_str(line);
        }
        is_comment &= !line.contains("-->");
    }
    output
}

/// Returns the files of the documentation that pages are made of, by their paths.
#[cfg(packed_docs)]
fn files() -> anyhow::Result<Vec<(String, String)>> {
    use std::io::Read as _;

    use anyhow::Context as _;

    const PACK: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/docs.z"));
    let mut text = String::new();
    flate2::read::ZlibDecoder::new(PACK).read_to_string(&mut text).context("unpacking the documentation failed")?;
    nav::unpack(&text).context("the packed documentation is damaged")
}

/// Returns the files of the documentation that pages are made of, by their paths.
#[cfg(not(packed_docs))]
fn files() -> anyhow::Result<Vec<(String, String)>> {
    nav::files(std::path::Path::new(env!("CARGO_MANIFEST_DIR"))).map_err(|(path, error)| {
        anyhow::anyhow!(
            "reading {path} failed: {error}: this program was built for development, and shows the pages of its tree"
        )
    })
}
