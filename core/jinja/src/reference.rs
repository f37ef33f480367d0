//! The documentation of tags, functions, variables, filters and tests, from which docs/reference/jinja.md is
//! generated. A test compares it with the environment.

/// An element of the language: its syntax and its meaning.
pub type Entry = (&'static str, &'static str);

/// Tags of Jinja and of Salt.
pub static TAGS: &[Entry] = &[
    ("if x` `elif y` `else` `endif", "Renders the branch whose condition is true."),
    (
        "for x in y` `else` `endfor",
        "Renders the body for each item, with `loop.index`, `loop.first` and others; `else` for an empty sequence.",
    ),
    ("break` `continue", "Leaves a loop, or continues with its next item."),
    (
        "set x = y",
        "Assigns a variable. An assignment in a loop ends with the iteration: use a `namespace` or `do x.update(...)`.",
    ),
    ("set x` `endset", "Assigns the text between the tags to a variable."),
    ("do x", "Evaluates an expression without output."),
    ("macro m(a, b=1)` `endmacro", "Defines a macro; `varargs`, `kwargs` and `caller` are available in it."),
    ("call m()` `endcall", "Calls a macro with the text between the tags as its `caller()`."),
    ("filter f` `endfilter", "Applies a filter to the text between the tags."),
    ("with x = y` `endwith", "Assigns variables that end with the tag."),
    ("raw` `endraw", "Outputs the text between the tags without rendering it."),
    ("include 'f'", "Renders another template; `ignore missing`, `with context` (the default), `without context`."),
    (
        "import 'f' as x",
        "Imports the macros and variables of another template; `with context` passes the current variables to it.",
    ),
    ("from 'f' import a, b as c", "Imports some macros and variables by name."),
    ("extends 'f'` `block b` `endblock", "Extends another template by overriding its blocks."),
    ("import_yaml 'f' as x", "Loads a file below `salt://`, rendered and parsed as YAML."),
    ("import_json 'f' as x", "Loads a file as JSON."),
    ("import_text 'f' as x", "Loads a file as a string."),
    ("load_yaml as x` `endload", "Parses the text between the tags as YAML."),
    ("load_json as x` `endload", "Parses the text between the tags as JSON."),
    ("load_text as x` `endload", "Assigns the text between the tags."),
    ("profile as x` `endprofile", "Renders the text between the tags; no time is logged."),
];

/// Global functions.
pub static GLOBALS: &[Entry] = &[
    ("cycler(a, b)", "An object that returns its arguments in turn, one for each `next()`."),
    ("debug()", "All variables in scope, for debugging."),
    ("dict(a=1)", "A mapping."),
    (
        "ifelse(target, value, ..., otherwise)",
        "The value after the first target that matches this minion, as `match.ifelse`.",
    ),
    ("joiner(', ')", "A function that returns an empty string at its first call, then the separator."),
    ("lipsum(n=5, html=True, min=20, max=100)", "Paragraphs of random words."),
    ("namespace(a=1)", "An object whose attributes can be assigned in loops: `set ns.a = 2`."),
    ("odict(a=1)", "A mapping, as `dict`: all mappings keep their order."),
    ("raise('why')", "Fails the render with an error."),
    ("range(start, stop, step)", "A sequence of integers."),
    ("show_full_context()", "The variables in scope as a mapping."),
];

/// Variables of templates.
pub static VARIABLES: &[Entry] = &[
    ("salt", "Functions: `salt['test.ping']()`, `salt.test.ping()`, `'test.ping' in salt`."),
    ("grains", "The grains of the minion."),
    ("pillar", "The pillar of the minion; in pillar files the external pillar, with `ext_pillar_first`."),
    ("opts", "The configuration."),
    ("saltenv", "The environment, such as `base`."),
    ("sls", "In SLS files: the name, such as `web.nginx`."),
    ("slspath", "In SLS files: the directory, such as `web`; also `sls_path`, `slsdotpath` and `slscolonpath`."),
    ("tplfile", "In SLS files: the file, such as `web/nginx.sls`; also `tpldir`, `tpldot` and `tplpath`."),
    ("data", "In reactor files: the data of the event; also `tag`."),
];

/// Tests: `x is defined`.
pub static TESTS: &[Entry] = &[
    ("boolean", "Is a boolean."),
    ("callable", "Is a function or a macro."),
    ("defined", "Is defined."),
    ("divisibleby(n)", "Is divisible by `n`."),
    ("endingwith(s)", "Is a string that ends with `s`."),
    ("eq(x)", "Is equal; also `==` and `equalto`."),
    ("escaped", "Is a string marked as safe; also `safe`."),
    ("even", "Is an even number."),
    ("false", "Is `False`."),
    ("filter", "Is the name of a filter."),
    ("float", "Is a floating-point number."),
    ("ge(x)", "Is greater or equal; also `>=`."),
    ("gt(x)", "Is greater; also `>` and `greaterthan`."),
    ("in(x)", "Is an item of `x`."),
    ("integer", "Is an integer; also `int`."),
    ("iterable", "Can be iterated over."),
    ("le(x)", "Is less or equal; also `<=`."),
    ("list", "Is a list."),
    ("lower", "Is a lower-case string."),
    ("lt(x)", "Is less; also `<` and `lessthan`."),
    ("mapping", "Is a mapping."),
    ("match(pattern, ignorecase, multiline)", "Is a string that matches a regular expression at its start."),
    ("ne(x)", "Is not equal; also `!=`."),
    ("none", "Is `None`."),
    ("number", "Is a number."),
    ("odd", "Is an odd number."),
    ("sameas(x)", "Is the same object, or an equal scalar of the same type."),
    ("sequence", "Is a list, a mapping or a string."),
    ("startingwith(s)", "Is a string that starts with `s`."),
    ("string", "Is a string."),
    ("test", "Is the name of a test."),
    ("true", "Is `True`."),
    ("undefined", "Is not defined."),
    ("upper", "Is an upper-case string."),
];

/// Filters: `x | upper`.
pub static FILTERS: &[Entry] = &[
    ("abs", "The absolute value of a number."),
    (
        "append_dict_key_value(path, value, delimiter=':')",
        "A copy of a mapping with a value appended to the list at a path.",
    ),
    ("attr(name)", "An attribute by name."),
    ("avg", "The average of numbers."),
    ("base64_decode", "Decodes base64."),
    ("base64_encode", "Encodes a string as base64."),
    ("batch(size, fill)", "Splits a sequence into lists of `size` items."),
    ("bool", "The truth of a value."),
    ("capitalize", "A string with an upper-case first letter and lower-case others."),
    ("center(width=80)", "Centres a string in `width` columns."),
    ("chain(...)", "Concatenates sequences."),
    (
        "check_whitelist_blacklist(whitelist, blacklist)",
        "Whether a string is in the whitelist and not in the blacklist.",
    ),
    ("combinations(n)", "All combinations of `n` items."),
    ("combinations_with_replacement(n)", "All combinations of `n` items with repetitions."),
    ("compare_dicts(other)", "The differences of mappings: `{key: {old, new}}`."),
    ("compare_lists(other)", "The differences of lists: `{old, new}`."),
    ("compress(chosen)", "The items whose counterpart in the other sequence is true."),
    ("contains_whitespace", "Whether a string contains whitespace."),
    ("date_format(format='%Y-%m-%d')", "Formats a time, in seconds since 1970 or as a string; also `strftime`."),
    (
        "default(value, boolean=False)",
        "The value, or `value` if it is undefined, or with `boolean` also if it is false; also `d`.",
    ),
    ("dict_to_sls_yaml_params(flow_style=False)", "Formats a mapping as the arguments of a state."),
    ("dictsort(case_sensitive=False, by='key', reverse=False)", "The items of a mapping, sorted."),
    ("difference(other)", "The items that are not in the other list."),
    ("dns_check(port, safe=False, ipv6)", "An address of a host that accepts connections at a port."),
    ("escape", "Escapes a string for HTML; also `e`."),
    ("exactly_n_true(n=1)", "Whether exactly `n` items are true."),
    ("exactly_one_true", "Whether exactly one item is true."),
    ("extend_dict_key_value(path, value, delimiter=':')", "A copy of a mapping with the list at a path extended."),
    ("file_hashsum(form='sha256')", "The digest of a file."),
    ("filesizeformat(binary=False)", "Formats a number of bytes with its unit."),
    ("filter_by_networks(networks)", "The addresses in one of the networks."),
    ("first", "The first item."),
    ("flatten(levels, preserve_nulls=False)", "Flattens nested lists."),
    ("float(default=0.0)", "Converts to a floating-point number."),
    ("forceescape", "Escapes a string for HTML, even one marked as safe."),
    ("format(...)", "Formats a string with `%s` and the like."),
    ("from_entries", "A mapping of a list of `{key, value}`."),
    ("gen_mac", "A random MAC address with a prefix."),
    ("get_uid", "The UID of a user."),
    ("groupby(attribute)", "Groups items by an attribute."),
    ("hmac(secret, challenge)", "Whether the challenge is the HMAC-SHA256 of a string, in base64."),
    ("hmac_compute(secret)", "The HMAC-SHA256 of a string, in hexadecimal."),
    ("http_query(...)", "The response of a web server, as `http.query`."),
    ("human_to_bytes(default_unit='B', handle_metric=False)", "Parses a size such as `1.5MiB` to bytes."),
    ("indent(width=4, first=False, blank=False)", "Indents the lines of a string."),
    ("int(default=0, base=10)", "Converts to an integer."),
    ("intersect(other)", "The items of both lists."),
    ("ip_host(options, version)", "Addresses with their prefix length."),
    ("ipaddr(options, version)", "The values that are addresses; options such as `private` restrict them."),
    ("ipv4(options)", "The values that are IPv4 addresses."),
    ("ipv6(options)", "The values that are IPv6 addresses."),
    ("ipwrap", "Puts IPv6 addresses into brackets."),
    ("is_bin_file", "Whether a file exists and is binary."),
    ("is_empty", "Whether a file exists and is empty."),
    ("is_hex", "Whether a string is a hexadecimal number."),
    ("is_ip", "Whether a string is an IP address."),
    ("is_ipv4", "Whether a string is an IPv4 address."),
    ("is_ipv6", "Whether a string is an IPv6 address."),
    ("is_iter", "Whether a value is iterable and not a string."),
    ("is_list", "Whether a value is a list."),
    ("is_text_file", "Whether a file exists and is text."),
    ("items", "The items of a mapping."),
    ("join(separator='', attribute)", "Joins items to a string."),
    ("json(sort_keys=True, indent)", "Encodes a value as JSON."),
    ("json_encode_dict", "Encodes the strings of a mapping as bytes; also `json_decode_dict`."),
    ("json_encode_list", "Encodes the strings of a list as bytes; also `json_decode_list`."),
    ("json_query(expression)", "Evaluates a JMESPath expression."),
    ("last", "The last item."),
    ("length", "The number of items or characters; also `count`."),
    ("lines", "The lines of a string."),
    ("list", "Converts to a list; a string to its characters."),
    ("list_files", "A directory and all files below it."),
    ("load_json", "Parses JSON."),
    ("load_text", "The string itself."),
    ("load_yaml", "Parses YAML."),
    ("lower", "Converts to lower case."),
    ("mac_str_to_bytes", "The six bytes of a MAC address."),
    ("map(filter, ...)", "Applies a filter to each item, or with `attribute=` returns an attribute of each."),
    ("max", "The largest item."),
    ("md5", "The MD5 digest of a string."),
    ("method_call(name, ...)", "Calls a method by name."),
    ("min", "The smallest item."),
    ("mysql_to_dict(column)", "Parses a table of MySQL's client to a mapping by one column."),
    ("network_hosts", "The host addresses of a network."),
    ("network_size", "The number of addresses of a network."),
    ("path_join(...)", "Joins parts of a path."),
    ("permutations(n)", "All permutations of `n` items."),
    ("pprint", "Formats a value as Python's `pprint`."),
    ("product(..., repeat=1)", "The Cartesian product of sequences."),
    ("python", "Formats a value as a Python literal."),
    ("quote", "Quotes a string for a shell."),
    ("rand_str(length)", "A random string; also `random_str`."),
    ("random", "A random item."),
    ("random_hash(form='md5')", "The digest of a random number up to this one."),
    ("random_sample(size, seed)", "A random sample of items, reproducible with `seed`; also `sample`."),
    ("random_shuffle(seed)", "The items in random order, reproducible with `seed`; also `shuffle`."),
    ("regex_escape", "Escapes a string for a regular expression."),
    (
        "regex_match(pattern, ignorecase, multiline)",
        "The groups of a regular expression that matches at the start of a string, or `None`.",
    ),
    ("regex_replace(pattern, text, ignorecase, multiline)", "Replaces the matches of a regular expression."),
    (
        "regex_search(pattern, ignorecase, multiline)",
        "The groups of the first match of a regular expression, or `None`.",
    ),
    ("reject(test, ...)", "The items that fail a test."),
    ("rejectattr(attribute, test, ...)", "The items with an attribute that fails a test."),
    ("replace(old, new, count)", "Replaces a substring."),
    ("reverse", "Reverses a sequence or a string."),
    ("round(precision=0)", "Rounds a number."),
    ("safe", "Marks a string as safe for HTML."),
    ("select(test, ...)", "The items that pass a test."),
    ("selectattr(attribute, test, ...)", "The items with an attribute that passes a test."),
    ("sequence", "A list with the value, if it is not a list."),
    ("set_dict_key_value(path, value, delimiter=':')", "A copy of a mapping with a value set at a path."),
    ("sha1", "The SHA-1 digest of a string."),
    ("sha256", "The SHA-256 digest of a string."),
    ("sha512", "The SHA-512 digest of a string."),
    ("skip", "`None`, whatever the value."),
    ("slice(n, fill)", "Splits a sequence into `n` lists."),
    ("sort(reverse=False, case_sensitive=False, attribute)", "Sorts items."),
    ("sorted_ignorecase", "Sorts strings, ignoring case."),
    ("split(separator, max)", "Splits a string."),
    ("str_to_num", "Converts a string to a number if it is one. Also `to_num`."),
    ("string", "Converts to a string."),
    ("striptags", "Removes HTML tags."),
    ("substring_in_list(list)", "Whether a string is a substring of an item."),
    ("sum(attribute, start=0)", "The sum of numbers."),
    ("symmetric_difference(other)", "The items of exactly one of two lists."),
    ("title", "Capitalizes each word."),
    ("to_bool", "Converts to a boolean: `yes`, `1` and `true` are true."),
    ("to_bytes", "Encodes a string as bytes."),
    ("to_camelcase(uppercamel=False)", "Converts `a_name` to `aName`."),
    ("to_entries", "A list of `{key, value}` of a mapping."),
    ("to_snake_case", "Converts `aName` to `a_name`."),
    ("tojson(indent)", "Encodes a value as JSON for scripts in HTML."),
    ("traverse(path, default, delimiter=':')", "The value at a path of keys and indexes."),
    ("trim(chars)", "Removes whitespace at both ends."),
    ("truncate(length=255, killwords=False, end='...')", "Truncates a string."),
    ("union(other)", "The items of either list."),
    ("unique", "Removes duplicates."),
    ("update_dict_key_value(path, value, delimiter=':')", "A copy of a mapping with the mapping at a path updated."),
    ("upper", "Converts to upper case."),
    ("urlencode", "Encodes a string or mapping for a URL."),
    ("urlize(limit, nofollow=False, target, rel, extra_schemes)", "Converts URLs in a string to HTML links."),
    ("uuid", "The name-based UUID of a string."),
    ("which", "The path of a program."),
    ("wordcount", "The number of words."),
    ("wordwrap(width=79)", "Wraps a string at `width` columns."),
    ("xml", "Encodes a mapping as XML."),
    ("xmlattr", "Formats a mapping as XML attributes."),
    ("yaml(flow_style=True)", "Encodes a value as YAML; with `False` in block style."),
    ("yaml_dquote", "Encodes a string as double-quoted YAML."),
    ("yaml_encode", "Encodes a scalar as YAML."),
    ("yaml_squote", "Encodes a string as single-quoted YAML."),
    ("zip(...)", "Combines sequences to tuples."),
    ("zip_longest(..., fillvalue)", "Combines sequences to tuples up to the longest one."),
];

/// Returns the names of all filters.
#[cfg(test)]
pub(crate) fn filters() -> std::collections::BTreeSet<String> {
    tests::registered().1
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Returns the names of all entries, including those after `also`.
    fn names(table: &[Entry]) -> BTreeSet<String> {
        let also = |text: &str| {
            let rest = text.split_once("lso `").map_or("", |(_, rest)| rest);
            rest.split("` and `").filter_map(|name| name.split('`').next()).map(str::to_owned).collect::<Vec<_>>()
        };
        let first = |usage: &str| usage.split('(').next().unwrap_or_default().to_owned();
        let names = table.iter().flat_map(|(usage, text)| also(text).into_iter().chain([first(usage)]));
        names.filter(|name| !name.is_empty()).collect()
    }

    /// Returns the names of the tests and filters that the environment has.
    pub(super) fn registered() -> (BTreeSet<String>, BTreeSet<String>) {
        // Only the debug output of the environment lists them.
        let shown = format!("{:?}", *super::super::ENVIRONMENT);
        let (_, rest) = shown.split_once(", tests: [").unwrap();
        let (tests, rest) = rest.split_once("], filters: [").unwrap();
        let (filters, _) = rest.split_once("], templates").unwrap();
        let known = |list: &str| -> BTreeSet<String> {
            let names = list.split(", ").map(|name| name.trim_matches('"').to_owned());
            names.filter(|name| !name.starts_with("__")).collect()
        };
        (known(tests), known(filters))
    }

    #[test]
    fn every_filter_test_and_global_is_documented() {
        let (tests, filters) = registered();
        assert_eq!(names(FILTERS), filters);
        assert_eq!(names(TESTS), tests);
        let globals = super::super::ENVIRONMENT.globals().map(|(name, _)| name.to_owned());
        assert_eq!(names(GLOBALS), globals.filter(|name| !name.starts_with("__")).collect());
    }

    #[test]
    fn documented_tags_compile() {
        for (usage, _) in TAGS {
            let source = format!("{{% {} %}}", usage.replace("` `", " %}{% "));
            let error = super::super::Template::compile("t", &source).err();
            let message = error.map(|error| error.message).unwrap_or_default();
            assert!(!message.contains("unknown"), "{source}: {message}");
        }
    }
}
