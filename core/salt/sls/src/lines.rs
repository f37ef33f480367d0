//! The lines of states and their arguments in the text of an SLS file, before it is rendered: for messages.

/// Returns the line of an argument of a state, counted from 1: that below the id, or, if the id is no text of the file
/// because a template writes it, the only line with this argument.
///
/// ```
/// use brine_sls::lines::of_argument;
///
/// let sls = "a:\n  file.managed:\n    - mode: 644\n{{ id }}:\n  file.managed:\n    - contens: x\n";
/// assert_eq!(of_argument(sls, "a", "mode"), Some(3));
/// assert_eq!(of_argument(sls, "b", "contens"), Some(6));
/// assert_eq!(of_argument(sls, "a", "user"), None);
/// ```
pub fn of_argument(sls: &str, id: &str, name: &str) -> Option<usize> {
    let lines = || sls.lines().enumerate().map(|(index, line)| (index + 1, line));
    if let Some(start) = of_id(sls, id) {
        let is_outside = |line: &str| !line.starts_with([' ', '\t', '-', '#', '{']) && !line.trim().is_empty();
        let inside = lines().skip(start).take_while(|(_, line)| !is_outside(line));
        let line = lines().skip(start - 1).take(1).chain(inside).find(|(_, line)| has_key(line, name));
        if let Some((number, _)) = line {
            return Some(number);
        }
    }
    let mut all = lines().filter(|(_, line)| has_key(line, name));
    all.next().map(|(number, _)| number).filter(|_| all.next().is_none())
}

/// Returns the line of the first state with this id, counted from 1.
pub fn of_id(sls: &str, id: &str) -> Option<usize> {
    let is_it = |line: &str| {
        let line = line.trim_start_matches("extend:").trim_start();
        ["", "'", "\""].iter().any(|quote| {
            let rest = line.strip_prefix(quote).and_then(|rest| rest.strip_prefix(id)?.strip_prefix(quote));
            rest.is_some_and(|rest| rest.trim_start().starts_with(':'))
        })
    };
    sls.lines().position(is_it).map(|index| index + 1)
}

/// Returns the first line with an item of a list, such as a name below `include`.
pub fn of_item(sls: &str, item: &str) -> Option<usize> {
    let is_it = |line: &str| {
        let text = line.trim().trim_start_matches("- ").trim_matches(['"', '\'', ' ']);
        line.trim_start().starts_with('-') && (text == item || text.ends_with(&format!(": {item}")))
    };
    sls.lines().position(is_it).map(|index| index + 1)
}

/// Whether a line has this key of a mapping.
fn has_key(line: &str, key: &str) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '-' | '/');
    let text = line.split(" #").next().unwrap_or_default();
    text.match_indices(key).any(|(at, _)| {
        let after = text[at + key.len()..].trim_start_matches(['"', '\'']);
        !text[..at].ends_with(is_word) && after.starts_with(':') && !text.trim_start().starts_with('#')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_argument_is_found_below_its_id() {
        let sls = "# contens: x\na: {test.nop: [{contens: 1}]}\n'b c':\n  test.nop:\n\n    - contens: 2\n\
                   \"d\":\n{% if x %}\n  test.nop:\n    - contens: 3\n{% endif %}\n    - name: contens\ne: test.nop\n";
        for (id, line) in [("a", Some(2)), ("b c", Some(6)), ("d", Some(10)), ("e", None), ("f", None)] {
            assert_eq!(of_argument(sls, id, "contens"), line, "{id}");
        }
        assert_eq!(of_id(sls, "e"), Some(13));
        let include = "include:\n  - a.b\n  - 'c'\n  - dev: d\n";
        for (item, line) in [("a.b", Some(2)), ("c", Some(3)), ("d", Some(4)), ("a", None)] {
            assert_eq!(of_item(include, item), line, "{item}");
        }
    }
}
