//! Python's error messages for filters, tests and methods that are called with wrong arguments.

use super::formatting::items;

/// A function of Python behind a filter or a test.
struct Function {
    /// Its name in templates.
    called: &'static str,
    /// Its name in Python.
    name: &'static str,
    /// The number of arguments before the value.
    before: usize,
    /// The required arguments after the value.
    required: &'static [&'static str],
    /// The number of optional positional arguments.
    optional: usize,
}

const fn takes(
    called: &'static str,
    name: &'static str,
    before: usize,
    required: &'static [&'static str],
    optional: usize,
) -> Function {
    Function { called, name, before, required, optional }
}

static FUNCTIONS: &[Function] = &[
    takes("attr", "do_attr", 1, &["name"], 0),
    takes("base64_decode", "base64_b64decode", 0, &[], 0),
    takes("base64_encode", "base64_b64encode", 0, &[], 0),
    takes("batch", "do_batch", 0, &["linecount"], 1),
    takes("capitalize", "do_capitalize", 0, &[], 0),
    takes("center", "do_center", 0, &[], 1),
    takes("contains_whitespace", "contains_whitespace", 0, &[], 0),
    takes("difference", "difference", 0, &["lst2"], 0),
    takes("divisibleby", "test_divisibleby", 0, &["num"], 0),
    takes("even", "test_even", 0, &[], 0),
    takes("filesizeformat", "do_filesizeformat", 0, &[], 1),
    takes("first", "sync_do_first", 1, &[], 0),
    takes("float", "do_float", 0, &[], 1),
    takes("forceescape", "do_forceescape", 0, &[], 0),
    takes("from_entries", "from_entries", 0, &[], 0),
    takes("groupby", "sync_do_groupby", 1, &["attribute"], 2),
    takes("intersect", "intersect", 0, &["lst2"], 0),
    takes("ipwrap", "ipwrap", 0, &[], 0),
    takes("is_hex", "is_hex", 0, &[], 0),
    takes("is_list", "is_list", 0, &[], 0),
    takes("items", "do_items", 0, &[], 0),
    takes("join", "sync_do_join", 1, &[], 2),
    takes("json_query", "json_query", 0, &["expr"], 0),
    takes("last", "do_last", 1, &[], 0),
    takes("list", "sync_do_list", 0, &[], 0),
    takes("lower", "do_lower", 0, &[], 0),
    takes("max", "lst_max", 0, &[], 0),
    takes("md5", "md5_digest", 0, &[], 0),
    takes("min", "lst_min", 0, &[], 0),
    takes("odd", "test_odd", 0, &[], 0),
    takes("pprint", "do_pprint", 0, &[], 0),
    takes("quote", "quote", 0, &[], 0),
    takes("random", "do_random", 1, &[], 0),
    takes("regex_escape", "regex_escape", 0, &[], 0),
    takes("regex_match", "regex_match", 0, &["rgx"], 2),
    takes("regex_replace", "regex_replace", 0, &["rgx", "val"], 2),
    takes("regex_search", "regex_search", 0, &["rgx"], 2),
    takes("replace", "do_replace", 1, &["old", "new"], 1),
    takes("reverse", "do_reverse", 0, &[], 0),
    takes("round", "do_round", 0, &[], 2),
    takes("safe", "do_mark_safe", 0, &[], 0),
    takes("sameas", "test_sameas", 0, &["other"], 0),
    takes("sequence", "ensure_sequence_filter", 0, &[], 0),
    takes("sha1", "sha1_digest", 0, &[], 0),
    takes("sha256", "sha256_digest", 0, &[], 0),
    takes("sha512", "sha512_digest", 0, &[], 0),
    takes("slice", "sync_do_slice", 0, &["slices"], 1),
    takes("sort", "do_sort", 1, &[], 3),
    takes("sorted_ignorecase", "sorted_ignorecase", 0, &[], 0),
    takes("str_to_num", "to_num", 0, &[], 0),
    takes("strftime", "strftime", 0, &[], 1),
    takes("string", "soft_str", 0, &[], 0),
    takes("striptags", "do_striptags", 0, &[], 0),
    takes("substring_in_list", "substr_in_list", 0, &["list_to_search"], 0),
    takes("symmetric_difference", "symmetric_difference", 0, &["lst2"], 0),
    takes("title", "do_title", 0, &[], 0),
    takes("to_bool", "to_bool", 0, &[], 0),
    takes("to_entries", "to_entries", 0, &[], 0),
    takes("to_num", "to_num", 0, &[], 0),
    takes("to_snake_case", "camel_to_snake_case", 0, &[], 0),
    takes("traverse", "traverse_dict_and_list", 0, &["key"], 2),
    takes("trim", "do_trim", 0, &[], 1),
    takes("union", "union", 0, &["lst2"], 0),
    takes("unique", "unique", 0, &[], 0),
    takes("upper", "do_upper", 0, &[], 0),
    takes("urlencode", "do_urlencode", 0, &[], 0),
    takes("uuid", "uuid_", 0, &[], 0),
    takes("wordcount", "do_wordcount", 0, &[], 0),
    takes("xmlattr", "do_xmlattr", 1, &[], 1),
    takes("yaml_dquote", "yaml_dquote", 0, &[], 0),
    takes("yaml_encode", "yaml_encode", 0, &[], 0),
    takes("yaml_squote", "yaml_squote", 0, &[], 0),
];

/// Returns Python's message for a call, such as `replace('a')` of a filter and `.pop()` of a method.
pub(super) fn refused(call: &str) -> Option<String> {
    let (called, _) = call.split_once('(').unwrap_or((call, ""));
    let arguments: Vec<&str> = items(call).into_iter().filter(|item| !item.is_empty()).collect();
    match called.trim().strip_prefix('.') {
        Some(method) => of_method(method, arguments.len()),
        None => FUNCTIONS.iter().find(|function| function.called == called.trim())?.refused(&arguments),
    }
}

impl Function {
    fn refused(&self, args: &[&str]) -> Option<String> {
        let Function { name, before, required, optional, .. } = self;
        let named: Vec<&str> = args.iter().filter_map(|item| keyword(item)).collect();
        let positional = args.len() - named.len();
        if required.is_empty()
            && *optional == 0
            && let Some(unknown) = named.first()
        {
            return Some(format!("{name}() got an unexpected keyword argument '{unknown}'"));
        }
        let missing: Vec<String> = required
            .iter()
            .skip(positional)
            .filter(|name| !named.contains(name))
            .map(|name| format!("'{name}'"))
            .collect();
        if !missing.is_empty() {
            let count = missing.len();
            let arguments = if count == 1 { "argument" } else { "arguments" };
            return Some(format!(
                "{name}() missing {count} required positional {arguments}: {}",
                missing.join(" and ")
            ));
        }
        let least = before + 1 + required.len();
        let (most, has) = (least + optional, before + 1 + positional);
        let takes = match (*optional, most) {
            (0, 1) => "1 positional argument".to_owned(),
            (0, _) => format!("{most} positional arguments"),
            _ => format!("from {least} to {most} positional arguments"),
        };
        (has > most).then(|| format!("{name}() takes {takes} but {has} were given"))
    }
}

/// Returns the name in `name=value`.
fn keyword(argument: &str) -> Option<&str> {
    let (name, value) = argument.split_once('=')?;
    let name = name.trim();
    let is_name = !name.is_empty() && name.chars().all(|c| c == '_' || c.is_alphanumeric());
    (is_name && !value.starts_with('=')).then_some(name)
}

/// Returns Python's message for a method with this number of arguments.
fn of_method(method: &str, count: usize) -> Option<String> {
    let arguments = |count: usize| if count == 1 { "argument" } else { "arguments" };
    let (least, most) = match method {
        "replace" => (2, 3),
        "get" | "setdefault" | "center" | "ljust" | "rjust" => (1, 2),
        "pop" if count == 0 => (1, 2),
        "pop" => (0, 1),
        "insert" => return Some(format!("insert expected 2 arguments, got {count}")),
        "startswith" | "endswith" | "find" | "rfind" | "index" | "rindex" | "count" if count == 0 => {
            return Some(format!("{method}() takes at least 1 argument (0 given)"));
        }
        "append" | "extend" | "remove" => return Some(exactly_one("list", method, count)),
        "join" | "zfill" | "partition" | "rpartition" | "removeprefix" | "removesuffix" => {
            return Some(exactly_one("str", method, count));
        }
        "items" | "keys" | "values" | "popitem" => {
            return Some(format!("dict.{method}() takes no arguments ({count} given)"));
        }
        "upper" | "lower" | "title" | "capitalize" | "swapcase" | "casefold" => {
            return Some(format!("str.{method}() takes no arguments ({count} given)"));
        }
        name if name.starts_with("is") => return Some(format!("str.{method}() takes no arguments ({count} given)")),
        _ => return None,
    };
    if count < least {
        return Some(format!("{method} expected at least {least} {}, got {count}", arguments(least)));
    }
    (count > most).then(|| format!("{method} expected at most {most} {}, got {count}", arguments(most)))
}

fn exactly_one(of: &str, method: &str, count: usize) -> String {
    format!("{of}.{method}() takes exactly one argument ({count} given)")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_calls_have_pythons_messages() {
        for (call, reported) in [
            ("upper(1)", "do_upper() takes 1 positional argument but 2 were given"),
            ("upper(x=1)", "do_upper() got an unexpected keyword argument 'x'"),
            ("replace", "do_replace() missing 2 required positional arguments: 'old' and 'new'"),
            ("replace('a, b')", "do_replace() missing 1 required positional argument: 'new'"),
            ("first(1)", "sync_do_first() takes 2 positional arguments but 3 were given"),
            ("center(1, 2)", "do_center() takes from 1 to 2 positional arguments but 3 were given"),
            ("sort(1, 2, 3, 4, 5)", "do_sort() takes from 2 to 5 positional arguments but 7 were given"),
            ("divisibleby", "test_divisibleby() missing 1 required positional argument: 'num'"),
            (".replace('a')", "replace expected at least 2 arguments, got 1"),
            (".get(1, 2, 3)", "get expected at most 2 arguments, got 3"),
            (".append()", "list.append() takes exactly one argument (0 given)"),
            (".upper(1)", "str.upper() takes no arguments (1 given)"),
            (".startswith()", "startswith() takes at least 1 argument (0 given)"),
        ] {
            assert_eq!(refused(call).as_deref(), Some(reported), "{call}");
        }
        for call in ["nope(1)", ".nope(1)", "center(1)", "replace('a', new='b')"] {
            assert_eq!(refused(call), None, "{call}");
        }
    }
}
