//! Versions of Python packages: their order, and requirements.

use std::cmp::Ordering;

use pep440_rs::Version;

/// Compares two versions. Versions that are invalid by PEP 440 sort first, as in releases of pip that accepted
/// them.
pub fn compare(a: &str, b: &str) -> Ordering {
    match (a.parse::<Version>().ok(), b.parse::<Version>().ok()) {
        (None, None) => a.cmp(b),
        (a, b) => a.cmp(&b),
    }
}

/// A package and its accepted versions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Requirement {
    /// The name; `None` for a URL or a path that does not contain it.
    pub name: Option<String>,
    /// Operators and versions.
    pub versions: Vec<(String, String)>,
}

impl Requirement {
    /// Parses `name[extras]>=1,<2; marker`. The error is a message.
    pub fn parse(text: &str) -> Result<Self, String> {
        let whole = text.split(';').next().unwrap_or(text).trim();
        let is_place = ["://", "git+", "svn+", "hg+", "bzr+"].iter().any(|mark| whole.contains(mark))
            || whole.starts_with(['/', '.'])
            || std::path::Path::new(whole).extension().is_some_and(|ending| ending == "whl");
        if is_place && !whole.contains(" @ ") {
            return Ok(Self::from_location(whole));
        }
        let end = whole.find(|c: char| !(c.is_ascii_alphanumeric() || "-_.".contains(c))).unwrap_or(whole.len());
        let (name, mut rest) = whole.split_at(end);
        let wrong = || {
            if text.contains('=') && !text.contains("==") {
                return format!(
                    "Invalid version specification in package {text}. '=' is not supported, use '==' instead."
                );
            }
            format!("pip raised an exception while parsing '{text}': Invalid requirement: '{text}'")
        };
        if name.is_empty() {
            return Err(wrong());
        }
        rest = rest.trim();
        if let Some(inside) = rest.strip_prefix('[') {
            rest = inside.split_once(']').ok_or_else(wrong)?.1.trim();
        }
        if rest.starts_with('@') {
            return Ok(Requirement { name: Some(name.to_owned()), versions: Vec::new() });
        }
        let rest = rest.trim_start_matches('(').trim_end_matches(')');
        let mut versions = Vec::new();
        for part in rest.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let operator =
                ["===", "==", "~=", "!=", ">=", "<=", ">", "<"].into_iter().find(|sign| part.starts_with(sign));
            let operator = operator.ok_or_else(wrong)?;
            versions.push((operator.to_owned(), part[operator.len()..].trim().to_owned()));
        }
        Ok(Requirement { name: Some(name.to_owned()), versions })
    }

    /// Returns the requirement in a URL or a path: `#egg=name`, or the name of a wheel, which includes a version.
    fn from_location(place: &str) -> Self {
        let (path, fragment) = place.split_once('#').unwrap_or((place, ""));
        let egg = fragment.split('&').find_map(|part| part.strip_prefix("egg="));
        if let Some(name) = egg.and_then(|egg| egg.split('[').next()).filter(|name| !name.is_empty()) {
            return Requirement { name: Some(name.to_owned()), versions: Vec::new() };
        }
        let file = path.rsplit('/').next().unwrap_or(path);
        let mut parts = file.strip_suffix(".whl").unwrap_or_default().split('-');
        match (parts.next(), parts.next()) {
            (Some(name), Some(version)) => {
                let versions = vec![("==".to_owned(), version.to_owned())];
                Requirement { name: Some(name.replace('_', "-")), versions }
            }
            _ => Requirement { name: None, versions: Vec::new() },
        }
    }

    /// Whether a version is accepted.
    pub fn is_fulfilled(&self, version: &str) -> bool {
        self.versions.iter().all(|(operator, bound)| fits(version, operator, bound))
    }
}

fn fits(version: &str, operator: &str, bound: &str) -> bool {
    if let Some(start) = bound.strip_suffix(".*") {
        let is_below = version == start || version.starts_with(&format!("{start}."));
        return is_below == (operator != "!=");
    }
    let order = compare(version, bound);
    match operator {
        "===" => version == bound,
        "==" => order.is_eq(),
        "!=" => order.is_ne(),
        ">=" => order.is_ge(),
        "<=" => order.is_le(),
        ">" => order.is_gt(),
        "<" => order.is_lt(),
        // Compatible release (`~=`): not older, and equal except for the last component.
        _ => {
            let start = bound.rsplit_once('.').map_or(bound, |(start, _)| start);
            order.is_ge() && (version == start || version.starts_with(&format!("{start}.")))
        }
    }
}

#[cfg(test)]
mod tests;
