//! The top-level modules of a crate depend on each other without circles. Its root (`lib.rs`) is left out: it wires the
//! modules together, and defines what all of them use.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use proc_macro2::{Delimiter, TokenStream, TokenTree};

use super::{Edges, metadata, sources};

/// Circles that remain, each with the number of its modules.
const REMAINING: &[(&str, usize)] = &[];

#[test]
fn modules_of_a_crate_have_no_circles() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut circles = Vec::new();
    let mut remaining = BTreeSet::new();
    for package in metadata() {
        let directory = Path::new(package["manifest_path"].as_str().unwrap()).parent().unwrap().to_owned();
        if !directory.join("src/lib.rs").exists() {
            continue;
        }
        let name = directory.strip_prefix(root).unwrap().display().to_string();
        for circle in circles_of(&edges(&directory.join("src"))) {
            match REMAINING.iter().find(|(other, size)| *other == name && circle.len() <= *size) {
                Some((crate_name, _)) => _ = remaining.insert(*crate_name),
                None => circles.push(format!("{name}: {}", circle.join(", "))),
            }
        }
    }
    assert!(circles.is_empty(), "move what several modules use into a module below them: {circles:#?}");
    let listed: BTreeSet<&str> = REMAINING.iter().map(|(name, _)| *name).collect();
    assert_eq!(remaining, listed, "remove the circles from the list that are gone");
}

#[test]
fn circles_are_found() {
    let edges = |text: &str| -> Edges {
        let arrow = |arrow: &str| arrow.split_once('>').map(|(from, to)| (from.to_owned(), to.to_owned())).unwrap();
        let mut edges = Edges::new();
        text.split(' ').map(arrow).for_each(|(from, to)| _ = edges.entry(from).or_default().insert(to));
        edges
    };
    for (arrows, circles) in [
        ("a>b b>c a>c", &[][..]),
        ("a>b b>a", &[&["a", "b"][..]]),
        ("a>b b>c c>a c>d d>e e>d", &[&["a", "b", "c"][..], &["d", "e"]]),
    ] {
        assert_eq!(circles_of(&edges(arrows)), circles, "{arrows}");
    }
    for (code, used) in [
        ("use crate::a::b::C;", &["a"][..]),
        ("use crate::{a, b::{c, d}, e::F as G};", &["a", "b", "e"]),
        ("fn x() { log!(\"{}\", crate::a::b()); super::c::d() }", &["a"]),
        ("#[cfg(test)] mod tests { use crate::a; } fn x() -> crate::b::C { todo!() }", &["b"]),
        ("#[cfg(test)] use crate::a::A; use crate::b::B;", &["b"]),
    ] {
        let expected: BTreeSet<String> = used.iter().map(|name| (*name).to_owned()).collect();
        assert_eq!(names_below_the_root(code.parse().unwrap(), 2), expected, "{code}");
    }
    let siblings = names_below_the_root("use super::a::B; mod c { use super::super::d; }".parse().unwrap(), 1);
    assert_eq!(siblings, ["a".to_owned(), "d".to_owned()].into());
}

/// Returns the modules that each top-level module of a crate uses.
fn edges(src: &Path) -> Edges {
    let is_test = |file: &PathBuf| file.file_stem().unwrap().to_str().unwrap().ends_with("_tests");
    let files: Vec<PathBuf> = sources(src).into_iter().filter(|file| !is_test(file)).collect();
    let module = |file: &Path| file.strip_prefix(src).unwrap().iter().next().unwrap().to_owned();
    let module = |file: &Path| module(file).to_str().unwrap().trim_end_matches(".rs").to_owned();
    let modules: BTreeSet<String> = files.iter().map(|file| module(file)).filter(|name| name != "lib").collect();
    let exported = exports(&std::fs::read_to_string(src.join("lib.rs")).unwrap());
    let mut edges = Edges::new();
    for file in files.iter().filter(|file| module(file) != "lib") {
        let from = module(file);
        let used = names_below_the_root(std::fs::read_to_string(file).unwrap().parse().unwrap(), depth(src, file));
        let used = used.into_iter().filter_map(|name| match exported.get(&name) {
            _ if modules.contains(&name) => Some(name),
            origin => origin.cloned(),
        });
        let own = edges.entry(from.clone()).or_default();
        own.extend(used.filter(|to| *to != from && modules.contains(to)));
    }
    edges
}

/// Returns the number of modules from the root to that of a file.
fn depth(src: &Path, file: &Path) -> usize {
    let parts = file.strip_prefix(src).unwrap().iter().count();
    if file.ends_with("mod.rs") { parts - 1 } else { parts }
}

/// Returns the module of each name that the root uses or exports by `use module::name`.
fn exports(root: &str) -> BTreeMap<String, String> {
    let mut exports = BTreeMap::new();
    let mut tokens = root.parse::<TokenStream>().unwrap().into_iter();
    while let Some(token) = tokens.next() {
        if token.to_string() != "use" {
            continue;
        }
        let item = tokens.by_ref().take_while(|token| token.to_string() != ";").collect::<TokenStream>();
        let words = words(item);
        let mut words = words.iter().filter(|word| !["crate", "self", "as"].contains(&word.as_str()));
        if let Some(module) = words.next() {
            exports.extend(words.map(|name| (name.clone(), module.clone())));
        }
    }
    exports
}

/// Returns all identifiers, in order.
fn words(code: TokenStream) -> Vec<String> {
    let of = |token: TokenTree| match token {
        TokenTree::Ident(word) => vec![word.to_string()],
        TokenTree::Group(group) => words(group.stream()),
        _ => Vec::new(),
    };
    code.into_iter().flat_map(of).collect()
}

/// Returns the first names of paths below the root of the crate: after `crate`, and after as many `super` as there are
/// modules around the code. Code under `#[cfg(test)]` is left out.
fn names_below_the_root(code: TokenStream, depth: usize) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let tokens: Vec<TokenTree> = code.into_iter().collect();
    let word = |at: usize| match tokens.get(at) {
        Some(TokenTree::Ident(word)) => word.to_string(),
        Some(TokenTree::Punct(sign)) => sign.as_char().to_string(),
        _ => String::new(),
    };
    let is_colons = |at: usize| word(at) == ":" && word(at + 1) == ":";
    let mut at = 0;
    while at < tokens.len() {
        if word(at) == "#" && tokens.get(at + 1).is_some_and(|of| of.to_string().replace(' ', "") == "[cfg(test)]") {
            // Up to the end of the item.
            let is_end = |tree: &TokenTree| match tree {
                TokenTree::Punct(sign) => sign.as_char() == ';',
                TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
                _ => false,
            };
            at += 2;
            while at < tokens.len() && !is_end(&tokens[at]) {
                at += 1;
            }
            // The braces of `use a::{b, c};` are not its end.
            at += if word(at + 1) == ";" { 2 } else { 1 };
            continue;
        }
        let mut above = 0;
        let mut next = at;
        while word(next) == "super" && is_colons(next + 1) {
            above += 1;
            next += 3;
        }
        let is_root = word(at) == "crate" && is_colons(at + 1) || above > 0 && above == depth;
        if is_root && above == 0 {
            next = at + 3;
        }
        match tokens.get(next) {
            Some(TokenTree::Ident(name)) if is_root => _ = names.insert(name.to_string()),
            Some(TokenTree::Group(group)) if is_root => names.extend(first_names(group.stream())),
            _ => {}
        }
        if next > at {
            at = next;
            continue;
        }
        if let TokenTree::Group(group) = &tokens[at] {
            let is_module = group.delimiter() == Delimiter::Brace && at >= 2 && word(at - 2) == "mod";
            names.extend(names_below_the_root(group.stream(), depth + usize::from(is_module)));
        }
        at += 1;
    }
    names
}

/// Returns the first names in the braces of a `use`.
fn first_names(group: TokenStream) -> Vec<String> {
    let mut names = Vec::new();
    let mut is_first = true;
    for token in group {
        match token {
            TokenTree::Ident(name) if is_first => {
                names.push(name.to_string());
                is_first = false;
            }
            TokenTree::Punct(sign) if sign.as_char() == ',' => is_first = true,
            _ => {}
        }
    }
    names
}

/// Returns the sets of modules that reach each other.
fn circles_of(edges: &Edges) -> Vec<Vec<String>> {
    let reached = |from: &str| {
        let mut reached = BTreeSet::new();
        let mut left: Vec<&String> = edges.get(from).into_iter().flatten().collect();
        while let Some(next) = left.pop() {
            if reached.insert(next.clone()) {
                left.extend(edges.get(next).into_iter().flatten());
            }
        }
        reached
    };
    let all: BTreeMap<&String, BTreeSet<String>> = edges.keys().map(|name| (name, reached(name))).collect();
    let mut circles = BTreeSet::new();
    for (name, reached) in all.iter().filter(|(name, reached)| reached.contains(**name)) {
        let circle = reached.iter().filter(|other| all.get(other).is_some_and(|back| back.contains(*name)));
        circles.insert(circle.cloned().collect::<Vec<_>>());
    }
    circles.into_iter().collect()
}
