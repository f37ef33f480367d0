//! Plain causes of errors whose messages name classes of Python, such as `pillar has no key 'x'`.

use super::messages::UNDEFINED;

/// The part of Salt's message between the class and the missing name.
const LACKS: &str = "' has no attribute ";

/// Returns the plain cause of Salt's message about a missing name. `expression` is the failed part of the template.
pub(super) fn cause(message: &str, expression: Option<&str>) -> Option<String> {
    let (class, name) = message.strip_prefix(UNDEFINED)?.strip_prefix('\'')?.split_once(LACKS)?;
    let name = name.trim().trim_matches(['\'', '"']);
    let parent = expression.and_then(|expression| parent(expression, name));
    match class {
        "salt.utils.templates.AliasedLoader object" => Some(format!("there is no execution function '{name}'")),
        "salt.loader.lazy.LoadedMod object" => {
            let module = parent?.trim_start_matches("salt").trim_matches(['.', '[', ']', '\'', '"']);
            Some(format!("there is no execution function '{module}.{name}'"))
        }
        "salt.utils.optsdict.OptsDict object" => Some(format!("opts has no key '{name}'")),
        "salt.utils.optsdict.DictProxy object" => {
            let root =
                ["pillar", "grains"].into_iter().find(|root| expression.is_some_and(|text| text.starts_with(root)));
            Some(format!("{} has no key '{name}'", parent.or(root)?))
        }
        "dict object" | "collections.OrderedDict object" => {
            Some(format!("{} has no key '{name}'", parent.unwrap_or("the mapping")))
        }
        _ => None,
    }
}

/// Returns the part of an expression in which a name is looked up.
fn parent<'t>(expression: &'t str, name: &str) -> Option<&'t str> {
    let mut rest = expression.trim();
    loop {
        let item = rest.strip_suffix(']').and_then(|rest| rest.rsplit_once('['));
        let (before, last) = item.or_else(|| rest.rsplit_once('.'))?;
        if last.trim_matches(['\'', '"']) == name {
            let is_path = !before.is_empty() && before.chars().all(|c| c.is_alphanumeric() || "_.[]'\"-:".contains(c));
            return is_path.then_some(before);
        }
        rest = before;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_name_the_container_without_the_key() {
        for (class, name, expression, expected) in [
            ("salt.utils.optsdict.DictProxy object", "nokey", Some("pillar.nokey"), Some("pillar has no key 'nokey'")),
            ("salt.utils.optsdict.DictProxy object", "a", Some("pillar['a']['b']"), Some("pillar has no key 'a'")),
            ("salt.utils.optsdict.DictProxy object", "x", Some("grains[name]"), Some("grains has no key 'x'")),
            ("salt.utils.optsdict.DictProxy object", "x", None, None),
            ("salt.utils.optsdict.OptsDict object", "x", Some("opts.x"), Some("opts has no key 'x'")),
            ("collections.OrderedDict object", "b", Some("pillar['a'].b.c"), Some("pillar['a'] has no key 'b'")),
            ("dict object", "c", Some("d.a.c"), Some("d.a has no key 'c'")),
            ("dict object", "c", Some("f(d, 'x').c"), Some("the mapping has no key 'c'")),
            ("dict object", "c", None, Some("the mapping has no key 'c'")),
            (
                "salt.utils.templates.AliasedLoader object",
                "no.such",
                Some("salt['no.such']"),
                Some("there is no execution function 'no.such'"),
            ),
            (
                "salt.loader.lazy.LoadedMod object",
                "pong",
                Some("salt.test.pong"),
                Some("there is no execution function 'test.pong'"),
            ),
            ("str object", "x", Some("name.x"), None),
        ] {
            let message = format!("{UNDEFINED}'{class}' has no attribute '{name}'");
            assert_eq!(cause(&message, expression).as_deref(), expected, "{class} {expression:?}");
        }
        assert_eq!(cause("Jinja variable 'x' is undefined", Some("x")), None);
    }
}
