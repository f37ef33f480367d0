//! Elements of sets, compared with the entries that users write for them.

use std::collections::HashSet;
use std::net::IpAddr;

/// A part of an element: a range of addresses, ports or marks, or a name.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Part {
    /// Protocol of a port; text of a name; empty for addresses and marks.
    name: String,
    first: u128,
    last: u128,
}

/// An element of a set, or an entry that stands for one or several: addresses and ports may be ranges.
#[derive(Debug)]
pub(super) struct Element {
    parts: Vec<Part>,
    /// The names of its types, such as `ip` and `port`.
    kinds: Vec<String>,
    /// Options with their values: `timeout`, `comment`, `nomatch`, ...
    pub options: Vec<(String, String)>,
}

impl Element {
    /// Parses an element of a set of this type.
    pub(super) fn parse(kind: &str, text: &str) -> Self {
        let words = words(text);
        let mut words = words.iter().map(String::as_str);
        let kinds: Vec<String> =
            kind.split_once(':').map_or(kind, |(_, kinds)| kinds).split(',').map(str::to_owned).collect();
        let element = words.next().unwrap_or_default();
        let kind_at = |place: usize| kinds.get(place).map_or("", String::as_str);
        let parts = element.split(',').enumerate().map(|(place, part)| Part::parse(kind_at(place), part)).collect();
        let mut options = Vec::new();
        while let Some(name) = words.next() {
            let value = if name == "nomatch" { "" } else { words.next().unwrap_or_default() };
            options.push((name.to_owned(), value.to_owned()));
        }
        Element { parts, kinds, options }
    }

    /// Returns whether any of these elements is one that this entry stands for.
    pub(super) fn is_in(&self, elements: &[Element]) -> bool {
        elements.iter().any(|element| self.common(element).is_some())
    }

    /// Returns whether all elements that this entry stands for are among these.
    pub(super) fn is_covered(&self, elements: &[Element]) -> bool {
        let ranges: HashSet<Vec<(u128, u128)>> = elements.iter().filter_map(|element| self.common(element)).collect();
        let count = self.kinds.iter().zip(&self.parts).map(|(kind, part)| part.count(kind));
        let count = count.fold(1_u128, u128::saturating_mul);
        ranges.len() as u128 >= count && !self.parts.is_empty()
    }

    /// Returns whether these elements include all of this entry, without further options.
    pub(super) fn is_listed(&self, elements: Vec<Element>) -> bool {
        let same: Vec<Element> =
            elements.into_iter().filter(|element| element.options.len() == self.options.len()).collect();
        self.is_covered(&same)
    }

    /// Returns the ranges that an element of the set has in common with this entry; `None` if it is not one of those that
    /// the entry stands for, or lacks one of its options.
    fn common(&self, element: &Element) -> Option<Vec<(u128, u128)>> {
        let has_options = self.options.iter().all(|option| element.options.contains(option));
        // An exception from a network is the opposite of an element.
        if !has_options || element.is_exception() != self.is_exception() || self.parts.len() != element.parts.len() {
            return None;
        }
        let pairs = element.parts.iter().zip(&self.parts).zip(&self.kinds);
        pairs.map(|((part, other), kind)| part.common(kind, other)).collect()
    }

    fn is_exception(&self) -> bool {
        self.options.iter().any(|(name, _)| name == "nomatch")
    }
}

impl Part {
    fn parse(kind: &str, text: &str) -> Self {
        let range = match kind {
            "ip" | "net" => addresses(text).map(|(first, last)| (String::new(), first, last)),
            "port" => ports(text),
            "mark" => number(text).map(|mark| (String::new(), mark, mark)),
            _ => None,
        };
        // Hardware addresses are printed in upper case.
        let name = || if kind == "mac" { text.to_uppercase() } else { text.to_owned() };
        let (name, first, last) = range.unwrap_or_else(|| (name(), 0, 0));
        Part { name, first, last }
    }

    /// Returns how many elements this part of an entry stands for: one a point, or one a network.
    fn count(&self, kind: &str) -> u128 {
        if kind == "net" {
            networks(self.first, self.last).len() as u128
        } else {
            (self.last - self.first).saturating_add(1)
        }
    }

    /// Returns what this part of an element has in common with that of an entry: the element is one of those that the
    /// entry stands for, or a network that has the address of the entry.
    fn common(&self, kind: &str, other: &Part) -> Option<(u128, u128)> {
        if self.name != other.name {
            return None;
        }
        let range = (self.first, self.last);
        let is_one = match kind {
            "net" => networks(other.first, other.last).contains(&range),
            _ => other.first <= self.first && self.last <= other.last,
        };
        if is_one {
            return Some(range);
        }
        let is_within = other.first == other.last && self.first <= other.first && other.last <= self.last;
        is_within.then_some((other.first, other.last))
    }
}

/// Splits a text at blanks outside of quotation marks, which ipset has no escapes for.
pub(super) fn words(text: &str) -> Vec<String> {
    let (mut words, mut word, mut is_quoted) = (Vec::new(), None::<String>, false);
    for c in text.chars() {
        match c {
            '"' => {
                is_quoted = !is_quoted;
                word.get_or_insert_default();
            }
            c if c.is_whitespace() && !is_quoted => words.extend(word.take()),
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

/// Parses an address, a network or a range of addresses. IPv4 addresses are those of `::ffff:0:0/96`.
fn addresses(text: &str) -> Option<(u128, u128)> {
    let bits = |text: &str| {
        Some(match text.trim().parse().ok()? {
            IpAddr::V4(address) => (address.to_ipv6_mapped().to_bits(), 32_u32),
            IpAddr::V6(address) => (address.to_bits(), 128),
        })
    };
    if let Some((address, length)) = text.split_once('/') {
        let ((address, size), length) = (bits(address)?, length.parse::<u32>().ok()?);
        let host = u128::MAX.checked_shr(128_u32.checked_sub(size.checked_sub(length)?)?).unwrap_or(0);
        return Some((address & !host, address | host));
    }
    if let Some((first, last)) = text.split_once('-') {
        let ((first, size), (last, other)) = (bits(first)?, bits(last)?);
        return (size == other && first <= last).then_some((first, last));
    }
    bits(text).map(|(address, _)| (address, address))
}

/// Parses a port or a range of ports; the protocol is TCP unless it is named.
fn ports(text: &str) -> Option<(String, u128, u128)> {
    let (protocol, ports) = text.split_once(':').unwrap_or(("tcp", text));
    let (first, last) = ports.split_once('-').unwrap_or((ports, ports));
    let (first, last) = (first.parse::<u16>().ok()?, last.parse::<u16>().ok()?);
    (first <= last).then(|| (protocol.to_lowercase(), first.into(), last.into()))
}

fn number(text: &str) -> Option<u128> {
    match text.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16).ok().map(Into::into),
        None => text.parse::<u32>().ok().map(Into::into),
    }
}

/// Returns the networks that a range of addresses consists of, as few as possible.
fn networks(first: u128, last: u128) -> Vec<(u128, u128)> {
    if (first, last) == (0, u128::MAX) {
        return vec![(first, last)];
    }
    let (mut networks, mut start) = (Vec::new(), first);
    loop {
        // The largest network that begins here and does not end after the range.
        let mut host = (1_u128 << start.trailing_zeros().min(127)) - 1;
        while host > last - start {
            host >>= 1;
        }
        let end = start + host;
        networks.push((start, end));
        if end == last {
            return networks;
        }
        start = end + 1;
    }
}

#[cfg(test)]
mod tests;
