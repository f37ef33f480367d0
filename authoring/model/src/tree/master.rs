//! What the master configurations of a tree say about its targets and reactions.

use std::collections::{BTreeSet, HashMap};

use brine_text::glob::{fnmatch, is_pattern};
use brine_yaml::SourceNode;

use super::Tree;
use crate::file::File;
use crate::layout::is_of_master;

/// What the master configurations of a tree define.
#[derive(Debug, Default)]
pub struct Master {
    /// The names of nodegroups; `None` if there are none, or if a render may add some.
    pub nodegroups: Option<BTreeSet<String>>,
    /// The patterns of tags by the directory and the name of a reactor file.
    patterns: HashMap<String, Vec<String>>,
    /// The patterns of tags of reactor files that a glob names.
    globs: Vec<(String, String)>,
}

impl Master {
    /// Reads the configurations of a tree.
    pub(super) fn of(tree: &Tree) -> Self {
        let (mut master, mut names, mut is_open) = (Master::default(), BTreeSet::new(), false);
        for file in tree.configurations().filter(|file| is_of_master(&file.path) == Some(true)) {
            is_open |= file.text.contains("{{") || file.text.contains("{%");
            for groups in file.documents.iter().filter_map(|document| document.get("nodegroups")) {
                is_open |= groups.map().is_none() && !groups.is_nil();
                let groups = groups.map().unwrap_or_default().iter();
                names.extend(groups.filter_map(|(name, _)| name.text()).map(str::to_owned));
            }
            for (pattern, files) in reactions(file) {
                let files = files.list().unwrap_or_else(|| std::slice::from_ref(files));
                for path in files.iter().filter_map(SourceNode::text) {
                    let (Some(pattern), end) = (pattern.text().map(str::to_owned), last_two(path)) else { continue };
                    if is_pattern(end) {
                        master.globs.push((end.to_owned(), pattern));
                    } else {
                        master.patterns.entry(end.to_owned()).or_default().push(pattern);
                    }
                }
            }
        }
        master.nodegroups = Some(names).filter(|names| !names.is_empty() && !is_open);
        master
    }

    /// Returns the patterns of tags of the entries that name a reactor file.
    pub fn patterns_of(&self, path: &str) -> Vec<&str> {
        let end = last_two(path);
        let named = self.patterns.get(end).into_iter().flatten();
        let by_glob = self.globs.iter().filter(|(glob, _)| fnmatch(glob, end)).map(|(_, pattern)| pattern);
        named.chain(by_glob).map(String::as_str).collect()
    }
}

/// Returns the entries of `reactor` in a configuration: patterns of tags with their files.
pub fn reactions(file: &File) -> impl Iterator<Item = (&SourceNode, &SourceNode)> {
    let options = file.documents.iter().filter_map(|document| document.get("reactor"));
    let maps = options.flat_map(|option| option.list().unwrap_or_else(|| std::slice::from_ref(option)));
    maps.filter_map(SourceNode::map).flatten().map(|(pattern, files)| (pattern, files))
}

/// Returns the directory and the name at the end of a path.
fn last_two(path: &str) -> &str {
    let start = path.rmatch_indices('/').nth(1).map_or(0, |(at, _)| at + 1);
    &path[start..]
}
