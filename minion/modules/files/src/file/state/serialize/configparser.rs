//! Files of sections with `name = value` lines, as Python's `configparser` reads and writes them.

use brine_value::{Map, Value};

/// The section whose values all sections have.
const DEFAULT: &str = "DEFAULT";

/// The number of references inside references after which a value is refused.
const MAX_DEPTH: usize = 10;

/// Values of a section by name, in lower case.
type Section = Vec<(String, String)>;

/// Formats sections, after a section of `defaults` unless this is empty.
pub(super) fn dump(data: &Map, defaults: &Map) -> String {
    let mut out = String::new();
    let mut section = |name: &str, values: &mut dyn Iterator<Item = (&Value, &Value)>| {
        out.push_str(&format!("[{name}]\n"));
        for (name, value) in values {
            // Further lines of a value are indented.
            let value = value.to_string().replace('\n', "\n\t");
            out.push_str(&format!("{} = {value}\n", name.to_string().to_lowercase()));
        }
        out.push('\n');
    };
    let own = data.get(DEFAULT).and_then(Value::as_map);
    if !defaults.is_empty() || own.is_some() {
        section(DEFAULT, &mut defaults.iter().chain(own.into_iter().flatten()));
    }
    for (name, values) in data.iter().filter(|(name, _)| name.as_str() != Some(DEFAULT)) {
        section(&name.to_string(), &mut values.as_map().into_iter().flatten());
    }
    out + "\n"
}

/// Parses sections. Each has the values of `defaults` and of the section `DEFAULT`, too, and references `%(name)s` are
/// replaced.
///
/// # Errors
/// The line that is no section and no value or that is there twice, or the value whose reference cannot be replaced.
pub(super) fn load(text: &str, defaults: &Map) -> Result<Map, String> {
    let mut common: Section =
        defaults.iter().map(|(name, value)| (name.to_string().to_lowercase(), value.to_string())).collect();
    let mut sections: Vec<(String, Section)> = Vec::new();
    for (name, values) in parsed(text)? {
        if name == DEFAULT {
            for (name, value) in values {
                common.retain(|(key, _)| *key != name);
                common.push((name, value));
            }
        } else {
            sections.push((name, values));
        }
    }
    let mut data = Map::new();
    for (name, own) in sections {
        let inherited = common.iter().filter(|(key, _)| own.iter().all(|(own_key, _)| own_key != key));
        let all: Section = own.iter().chain(inherited).cloned().collect();
        let mut values = Map::new();
        for (key, value) in &all {
            let value = replaced(value, &all, MAX_DEPTH).map_err(|error| format!("[{name}] {key}: {error}"))?;
            values.insert(key.into(), value.into());
        }
        data.insert(name.into(), values.into());
    }
    Ok(data)
}

/// Splits a text into sections. Lines that are further indented than the name of a value continue the value.
fn parsed(text: &str) -> Result<Vec<(String, Section)>, String> {
    let mut sections: Vec<(String, Section)> = Vec::new();
    let mut name_indent = 0;
    for (number, line) in (1..).zip(text.lines()) {
        let content = line.trim();
        let is_comment = content.starts_with(['#', ';']);
        let indent = line.len() - line.trim_start().len();
        let last = sections.last_mut().and_then(|(_, values)| values.last_mut());
        if content.is_empty() {
            if let Some((_, value)) = last {
                value.push('\n');
            }
        } else if is_comment {
        } else if let Some((_, value)) = last.filter(|_| indent > name_indent) {
            value.push('\n');
            value.push_str(content);
        } else if let Some(header) = content.strip_prefix('[').and_then(|rest| rest.rsplit_once(']')) {
            let name = header.0.to_owned();
            if name != DEFAULT && sections.iter().any(|(existing, _)| *existing == name) {
                return Err(format!("line {number}: section '{name}' already exists"));
            }
            sections.push((name, Section::new()));
            name_indent = indent;
        } else {
            let Some((section, values)) = sections.last_mut() else {
                return Err(format!("line {number}: expected a section header, got '{content}'"));
            };
            let (name, value) = content
                .split_once(['=', ':'])
                .filter(|(name, _)| !name.trim().is_empty())
                .ok_or_else(|| format!("line {number}: expected `name = value`, got '{content}'"))?;
            let name = name.trim().to_lowercase();
            if values.iter().any(|(existing, _)| *existing == name) {
                return Err(format!("line {number}: option '{name}' in section '{section}' already exists"));
            }
            values.push((name, value.trim().to_owned()));
            name_indent = indent;
        }
    }
    for value in sections.iter_mut().flat_map(|(_, values)| values).map(|(_, value)| value) {
        value.truncate(value.trim_end_matches('\n').len());
    }
    Ok(sections)
}

/// Replaces the references in a value by the values of its section.
fn replaced(value: &str, section: &Section, depth: usize) -> Result<String, String> {
    let mut out = String::new();
    let mut rest = value;
    while let Some(at) = rest.find('%') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix('%') {
            out.push('%');
            rest = after;
            continue;
        }
        let (name, after) = rest
            .strip_prefix('(')
            .and_then(|rest| rest.split_once(")s"))
            .ok_or_else(|| format!("'%' must be followed by '%' or '(', found: '%{rest}'"))?;
        if depth == 0 {
            return Err(format!("references in references are too deep at '{name}'"));
        }
        let name = name.to_lowercase();
        let (_, referenced) = section
            .iter()
            .find(|(key, _)| *key == name)
            .ok_or_else(|| format!("the reference to '{name}' is invalid: there is no such option"))?;
        out.push_str(&replaced(referenced, section, depth - 1)?);
        rest = after;
    }
    Ok(out + rest)
}

#[cfg(test)]
mod tests {
    use brine_value::map;

    use super::*;

    #[test]
    fn sections_are_written_as_by_configparser() {
        for (data, defaults, text) in [
            (map! {"s" => map! {"m" => "a\nb"}}, map! {}, "[s]\nm = a\n\tb\n\n\n"),
            (map! {"a" => map! {"Key" => 1}, "b" => map! {}}, map! {}, "[a]\nkey = 1\n\n[b]\n\n\n"),
            (map! {"a" => map! {"k" => 1}}, map! {"Y" => "n"}, "[DEFAULT]\ny = n\n\n[a]\nk = 1\n\n\n"),
            (map! {"a" => map! {}, "DEFAULT" => map! {"y" => 2}}, map! {}, "[DEFAULT]\ny = 2\n\n[a]\n\n\n"),
        ] {
            assert_eq!(dump(&data, &defaults), text);
        }
    }

    #[test]
    fn sections_are_read_as_by_configparser() {
        for (text, defaults, data) in [
            ("", map! {}, map! {}),
            ("[a]\nK = 1 ; c\n# c\n; c\nm: x = y\n\n[b]\n", map! {}, {
                map! {"a" => map! {"k" => "1 ; c", "m" => "x = y"}, "b" => map! {}}
            }),
            ("[a]\nk = 1\n  2\n\n  3\n\nm =\n", map! {}, map! {"a" => map! {"k" => "1\n2\n\n3", "m" => ""}}),
            ("  [a]\n  k = 1\n  m = 2\n", map! {}, map! {"a" => map! {"k" => "1", "m" => "2"}}),
            ("[a]\nk = %(X)s/%%\n", map! {"x" => "baz"}, map! {"a" => map! {"k" => "baz/%", "x" => "baz"}}),
            ("[a]\nk = %(m)s\nm = %(x)s\n[DEFAULT]\nx = 1\n", map! {"x" => "0"}, {
                map! {"a" => map! {"k" => "1", "m" => "1", "x" => "1"}}
            }),
        ] {
            assert_eq!(load(text, &defaults), Ok(data), "{text}");
        }
        for (text, error) in [
            ("k = 1\n", "line 1: expected a section header, got 'k = 1'"),
            ("[a]\nword\n", "line 2: expected `name = value`, got 'word'"),
            ("[a]\n[a]\n", "line 2: section 'a' already exists"),
            ("[a]\nk=1\nK=2\n", "line 3: option 'k' in section 'a' already exists"),
            ("[a]\nk = 50%\n", "[a] k: '%' must be followed by '%' or '(', found: '%'"),
            ("[a]\nk = %(no)s\n", "[a] k: the reference to 'no' is invalid: there is no such option"),
            ("[a]\nk = %(k)s\n", "[a] k: references in references are too deep at 'k'"),
        ] {
            assert_eq!(load(text, &Map::new()), Err(error.to_owned()), "{text}");
        }
    }
}
