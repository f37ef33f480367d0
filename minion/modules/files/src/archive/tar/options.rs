//! The options of `tar`: what it does, and where the archive is named.

use std::collections::VecDeque;

use crate::private_copy::Content;

/// What `tar` does with an archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operation {
    Extract,
    Write(Content),
    Read,
}

/// Where the archive is named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Archive {
    /// By the word after the options.
    Operand,
    /// By one of the options.
    Option,
    /// Nowhere: the default of `tar`.
    Default,
}

/// Parsed options.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Options {
    pub operation: Option<Operation>,
    pub archive: Archive,
    /// The options with `--list` in the place of `--extract`.
    pub listing: Vec<String>,
}

/// The letters whose option has a value.
const WITH_VALUE: &str = "bCfFgHIKLNTVX";

/// The long options whose value may be the next word.
const LONG_WITH_VALUE: [(&str, char); 12] = [
    ("file", 'f'),
    ("blocking-factor", 'b'),
    ("directory", 'C'),
    ("exclude", 'X'),
    ("exclude-from", 'X'),
    ("files-from", 'T'),
    ("format", 'H'),
    ("group", 'C'),
    ("listed-incremental", 'g'),
    ("owner", 'C'),
    ("transform", 'C'),
    ("use-compress-program", 'I'),
];

const LONG_OPERATIONS: [(&str, Operation); 10] = [
    ("extract", Operation::Extract),
    ("get", Operation::Extract),
    ("create", Operation::Write(Content::Replaced)),
    ("append", Operation::Write(Content::Kept)),
    ("update", Operation::Write(Content::Kept)),
    ("catenate", Operation::Write(Content::Kept)),
    ("concatenate", Operation::Write(Content::Kept)),
    ("delete", Operation::Write(Content::Kept)),
    ("list", Operation::Read),
    ("compare", Operation::Read),
];

fn operation(letter: char) -> Option<Operation> {
    match letter {
        'x' => Some(Operation::Extract),
        'c' => Some(Operation::Write(Content::Replaced)),
        'r' | 'u' | 'A' => Some(Operation::Write(Content::Kept)),
        't' | 'd' => Some(Operation::Read),
        _ => None,
    }
}

impl Options {
    pub fn parse(words: &[String]) -> Self {
        let mut options = Options { operation: None, archive: Archive::Default, listing: Vec::new() };
        // The options whose values follow.
        let mut expected: VecDeque<char> = VecDeque::new();
        for (number, word) in words.iter().enumerate() {
            if let Some(letter) = expected.pop_front() {
                if letter == 'f' {
                    options.archive = Archive::Option;
                }
                options.listing.push(word.clone());
            } else if let Some(long) = word.strip_prefix("--") {
                let listed = options.long(long, &mut expected);
                options.listing.push(if listed { "--list".into() } else { word.clone() });
            } else if let Some(letters) = word.strip_prefix('-') {
                let letters = options.letters(letters, false, &mut expected);
                options.listing.push(format!("-{letters}"));
            } else if number == 0 {
                let letters = options.letters(word, true, &mut expected);
                options.listing.push(letters);
            } else {
                options.listing.push(word.clone());
            }
        }
        if expected.front() == Some(&'f') && options.archive == Archive::Default {
            options.archive = Archive::Operand;
        } else if expected.contains(&'f') {
            options.archive = Archive::Option;
        }
        options
    }

    /// Reads a long option, which may be abbreviated, and returns whether it is `--extract`.
    fn long(&mut self, word: &str, expected: &mut VecDeque<char>) -> bool {
        let (name, value) = word.split_once('=').map_or((word, None), |(name, value)| (name, Some(value)));
        if name.is_empty() {
            return false;
        }
        if let Some((_, letter)) = LONG_WITH_VALUE.iter().find(|(long, _)| *long == name) {
            match value {
                None => expected.push_back(*letter),
                Some(_) if *letter == 'f' => self.archive = Archive::Option,
                Some(_) => {}
            }
            return false;
        }
        let Some((_, operation)) = LONG_OPERATIONS.iter().find(|(long, _)| long.starts_with(name)) else {
            return false;
        };
        self.operation = Some(*operation);
        *operation == Operation::Extract
    }

    /// Reads letters, and returns them with `t` in the place of `x`. In an old cluster, the first word without a dash, the
    /// values of all letters follow; otherwise the rest of the word is the value.
    fn letters(&mut self, word: &str, is_old: bool, expected: &mut VecDeque<char>) -> String {
        let mut listing = String::new();
        let mut letters = word.chars();
        while let Some(letter) = letters.next() {
            listing.push(if letter == 'x' { 't' } else { letter });
            if let Some(operation) = operation(letter) {
                self.operation = Some(operation);
            }
            if WITH_VALUE.contains(letter) {
                if is_old || letters.as_str().is_empty() {
                    expected.push_back(letter);
                } else {
                    if letter == 'f' {
                        self.archive = Archive::Option;
                    }
                    listing.push_str(letters.as_str());
                    break;
                }
            }
        }
        listing
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_tar_are_parsed() {
        const CREATE: Operation = Operation::Write(Content::Replaced);
        const CHANGE: Operation = Operation::Write(Content::Kept);
        for (options, operation, archive, listing) in [
            ("xf", Some(Operation::Extract), Archive::Operand, "tf"),
            ("-xzvf", Some(Operation::Extract), Archive::Operand, "-tzvf"),
            ("-x -C /x -f", Some(Operation::Extract), Archive::Operand, "-t -C /x -f"),
            ("--extract --file", Some(Operation::Extract), Archive::Operand, "--list --file"),
            (
                "--ext --strip-components=1 -f",
                Some(Operation::Extract),
                Archive::Operand,
                "--list --strip-components=1 -f",
            ),
            ("--get -Ixz -f", Some(Operation::Extract), Archive::Operand, "--list -Ixz -f"),
            ("-xf/x", Some(Operation::Extract), Archive::Option, "-tf/x"),
            ("--file=/x -x", Some(Operation::Extract), Archive::Option, "--file=/x -t"),
            ("-xf /x", Some(Operation::Extract), Archive::Option, "-tf /x"),
            ("xbf 20", Some(Operation::Extract), Archive::Operand, "tbf 20"),
            ("xfb /x", Some(Operation::Extract), Archive::Option, "tfb /x"),
            ("x", Some(Operation::Extract), Archive::Default, "t"),
            ("cjvf", Some(CREATE), Archive::Operand, "cjvf"),
            ("--create -f", Some(CREATE), Archive::Operand, "--create -f"),
            ("rf", Some(CHANGE), Archive::Operand, "rf"),
            ("--delete -f", Some(CHANGE), Archive::Operand, "--delete -f"),
            ("tvf", Some(Operation::Read), Archive::Operand, "tvf"),
            ("--exclude x -cf", Some(CREATE), Archive::Operand, "--exclude x -cf"),
        ] {
            let words: Vec<String> = options.split(' ').map(str::to_owned).collect();
            let actual = Options::parse(&words);
            assert_eq!((actual.operation, actual.archive), (operation, archive), "{options}");
            assert_eq!(actual.listing.join(" "), listing, "{options}");
        }
    }
}
