//! What templates have, in words: the tables of `docs/jinja.md`. A test holds them against the environment.

/// One thing of the language: how it is written, and what it does.
pub type Entry = (&'static str, &'static str);

/// Tags of Jinja and of Salt.
pub static TAGS: &[Entry] = &[
    ("if x` `elif y` `else` `endif", "What is rendered only if something is so."),
    ("for x in y` `else` `endfor", "Each item in turn, with `loop.index`, `loop.first` and others; `else` for none."),
    ("break` `continue", "Ends a loop, or goes on with its next item."),
    ("set x = y", "Names a value. What is set inside a loop stays there: use a `namespace` or `do x.update(...)`."),
    ("set x` `endset", "Names the text between the tags."),
    ("do x", "Works an expression out and prints nothing."),
    ("macro m(a, b=1)` `endmacro", "A piece of template with arguments; `varargs`, `kwargs` and `caller` are there."),
    ("call m()` `endcall", "Calls a macro with the text between the tags as its `caller()`."),
    ("filter f` `endfilter", "Puts the text between the tags through a filter."),
    ("with x = y` `endwith", "Names that end with the tag."),
    ("raw` `endraw", "What is left as it is."),
    ("include 'f'", "The text of another template; `ignore missing`, `with context` (the default), `without context`."),
    ("import 'f' as x", "The macros and variables of another template; `with context` shows it the variables here."),
    ("from 'f' import a, b as c", "Some of them by their names."),
    ("extends 'f'` `block b` `endblock", "A template that fills the blocks of another one."),
    ("import_yaml 'f' as x", "A file under `salt://`, rendered and read as YAML."),
    ("import_json 'f' as x", "The same, as JSON."),
    ("import_text 'f' as x", "The same, as text."),
    ("load_yaml as x` `endload", "The text between the tags, read as YAML."),
    ("load_json as x` `endload", "The same, as JSON."),
    ("load_text as x` `endload", "The same, as text."),
    ("profile as x` `endprofile", "The text between the tags, as it is: no time is logged."),
];

/// Variables and functions that are there without an import.
pub static GLOBALS: &[Entry] = &[
    ("cycler(a, b)", "Gives its items in turn, one at each `next()`."),
    ("debug()", "All that is in scope, for looking at."),
    ("dict(a=1)", "A mapping."),
    (
        "ifelse(target, value, ..., otherwise)",
        "The value beside the first target that means this minion, as `match.ifelse`.",
    ),
    ("joiner(', ')", "Nothing at the first call, then the separator."),
    ("lipsum(n=5, html=True, min=20, max=100)", "Paragraphs of words by chance."),
    ("namespace(a=1)", "What can be set from inside a loop: `set ns.a = 2`."),
    ("odict(a=1)", "A mapping, as `dict`: all keep their order."),
    ("raise('why')", "Ends the rendering with an error."),
    ("range(start, stop, step)", "Whole numbers."),
    ("show_full_context()", "The data in scope."),
];

/// Variables that the parts of Brine hand to their templates.
pub static VARIABLES: &[Entry] = &[
    ("salt", "Functions: `salt['test.ping']()`, `salt.test.ping()`, `'test.ping' in salt`."),
    ("grains", "Facts about the minion."),
    ("pillar", "What the master tells this minion alone; in pillar files what `ext_pillar_first` has brought."),
    ("opts", "The configuration."),
    ("saltenv", "The environment, such as `base`."),
    ("sls", "In SLS files: the name, such as `web.nginx`."),
    ("slspath", "In SLS files: the folder, such as `web`; also `sls_path`, `slsdotpath` and `slscolonpath`."),
    ("tplfile", "In SLS files: the file, such as `web/nginx.sls`; also `tpldir`, `tpldot` and `tplpath`."),
    ("data", "In reactor files: the event's data; also `tag`."),
];

/// Tests: `x is defined`.
pub static TESTS: &[Entry] = &[
    ("boolean", "Is `True` or `False`."),
    ("callable", "Is a function or a macro."),
    ("defined", "Is there."),
    ("divisibleby(n)", "Has no rest when divided."),
    ("endingwith(s)", "Is a text that ends so."),
    ("eq(x)", "Is equal; also `==` and `equalto`."),
    ("escaped", "Is a text that needs no escaping; also `safe`."),
    ("even", "Is an even number."),
    ("false", "Is `False`."),
    ("filter", "Is the name of a filter."),
    ("float", "Is a number with a point."),
    ("ge(x)", "Is greater or equal; also `>=`."),
    ("gt(x)", "Is greater; also `>` and `greaterthan`."),
    ("in(x)", "Is one of the items."),
    ("integer", "Is a whole number; also `int`."),
    ("iterable", "Has items that can be gone through."),
    ("le(x)", "Is less or equal; also `<=`."),
    ("list", "Is a list."),
    ("lower", "Is a text in small letters."),
    ("lt(x)", "Is less; also `<` and `lessthan`."),
    ("mapping", "Is a mapping."),
    ("match(pattern, ignorecase, multiline)", "Is a text that begins as a regular expression says."),
    ("ne(x)", "Is not equal; also `!=`."),
    ("none", "Is `None`."),
    ("number", "Is a number."),
    ("odd", "Is an odd number."),
    ("sameas(x)", "Is the same value of the same type."),
    ("sequence", "Is a list, a mapping or a text."),
    ("startingwith(s)", "Is a text that begins so."),
    ("string", "Is a text."),
    ("test", "Is the name of a test."),
    ("true", "Is `True`."),
    ("undefined", "Is not there."),
    ("upper", "Is a text in capital letters."),
];

/// Filters: `x | upper`.
pub static FILTERS: &[Entry] = &[
    ("abs", "A number without its sign."),
    (
        "append_dict_key_value(path, value, delimiter=':')",
        "A copy of a mapping in which a list at a path has one more item.",
    ),
    ("attr(name)", "An attribute by its name."),
    ("avg", "The average of numbers."),
    ("base64_decode", "The text that base64 stands for."),
    ("base64_encode", "A text as base64."),
    ("batch(size, fill)", "Items in lists of a size."),
    ("bool", "Whether a value counts as true."),
    ("capitalize", "A text whose first letter alone is a capital."),
    ("center(width=80)", "A text in the middle of a width."),
    ("chain(...)", "Several sequences as one."),
    ("check_whitelist_blacklist(whitelist, blacklist)", "Whether a text is on one list and not on the other."),
    ("combinations(n)", "All choices of so many items."),
    ("combinations_with_replacement(n)", "The same, where an item may come twice."),
    ("compare_dicts(other)", "What differs between mappings: `{key: {old, new}}`."),
    ("compare_lists(other)", "What differs between lists: `{old, new}`."),
    ("compress(chosen)", "The items beside which the other sequence has something true."),
    ("contains_whitespace", "Whether a text has blanks in it."),
    ("date_format(format='%Y-%m-%d')", "A time in words; also `strftime`. Seconds since 1970, or a date as text."),
    (
        "default(value, boolean=False)",
        "Another value for what is not there, or with `boolean` for what is not true; also `d`.",
    ),
    ("dict_to_sls_yaml_params(flow_style=False)", "A mapping as the arguments of a state."),
    ("dictsort(case_sensitive=False, by='key', reverse=False)", "The entries of a mapping in order."),
    ("difference(other)", "Items that the other list does not have."),
    ("dns_check(port, safe=False, ipv6)", "An address of a host that takes connections at a port."),
    ("escape", "A text for HTML; also `e`."),
    ("exactly_n_true(n=1)", "Whether so many items are true."),
    ("exactly_one_true", "Whether one item is true."),
    (
        "extend_dict_key_value(path, value, delimiter=':')",
        "A copy of a mapping in which a list at a path has more items.",
    ),
    ("file_hashsum(form='sha256')", "The digest of the file at a path."),
    ("filesizeformat(binary=False)", "A number of bytes in words."),
    ("filter_by_networks(networks)", "The addresses that are in one of the networks."),
    ("first", "The first item."),
    ("flatten(levels, preserve_nulls=False)", "Lists inside of lists as one."),
    ("float(default=0.0)", "A number with a point."),
    ("forceescape", "A text for HTML, even one that needs no escaping."),
    ("format(...)", "A text with `%s` filled in."),
    ("from_entries", "A mapping from a list of `{key, value}`."),
    ("gen_mac", "A MAC address by chance that begins so."),
    ("get_uid", "The number of a user."),
    ("groupby(attribute)", "Items by an attribute."),
    ("hmac(secret, challenge)", "Whether the challenge is this text's HMAC-SHA256 in base64."),
    ("hmac_compute(secret)", "A text's HMAC-SHA256 in hexadecimal."),
    ("http_query(...)", "What a web server answers, as `http.query`."),
    ("human_to_bytes(default_unit='B', handle_metric=False)", "Bytes from words such as `1.5MiB`."),
    ("indent(width=4, first=False, blank=False)", "A text moved to the right."),
    ("int(default=0, base=10)", "A whole number."),
    ("intersect(other)", "Items that both lists have."),
    ("ip_host(options, version)", "Addresses with the length of their networks."),
    ("ipaddr(options, version)", "What is an address; options such as `private`."),
    ("ipv4(options)", "What is an address of version 4."),
    ("ipv6(options)", "What is an address of version 6."),
    ("ipwrap", "Addresses of version 6 in brackets."),
    ("is_bin_file", "Whether a file is there and no text."),
    ("is_empty", "Whether a file is there and empty."),
    ("is_hex", "Whether a text is a hexadecimal number."),
    ("is_ip", "Whether a text is an address."),
    ("is_ipv4", "Whether a text is an address of version 4."),
    ("is_ipv6", "Whether a text is an address of version 6."),
    ("is_iter", "Whether something can be gone through and is no text."),
    ("is_list", "Whether something is a list."),
    ("is_text_file", "Whether a file is there and a text."),
    ("items", "The entries of a mapping."),
    ("join(separator='', attribute)", "Items as one text."),
    ("json(sort_keys=True, indent)", "JSON."),
    ("json_encode_dict", "A mapping whose texts are bytes; also `json_decode_dict`."),
    ("json_encode_list", "A list whose texts are bytes; also `json_decode_list`."),
    ("json_query(expression)", "What an expression of JMESPath finds."),
    ("last", "The last item."),
    ("length", "How many items or letters; also `count`."),
    ("lines", "The lines of a text."),
    ("list", "The items as a list; the letters of a text."),
    ("list_files", "A folder and all that is below it."),
    ("load_json", "The value that a text in JSON stands for."),
    ("load_text", "The text."),
    ("load_yaml", "The value that a text in YAML stands for."),
    ("lower", "A text in small letters."),
    ("mac_str_to_bytes", "The six bytes of a MAC address."),
    ("map(filter, ...)", "Each item through a filter, or with `attribute=` a part of each."),
    ("max", "The greatest item."),
    ("md5", "A text's MD5."),
    ("method_call(name, ...)", "What a method gives that is named by a text."),
    ("min", "The least item."),
    ("mysql_to_dict(column)", "The rows of a table as MySQL's client draws it, by what is in one column."),
    ("network_hosts", "The addresses of hosts in a network."),
    ("network_size", "How many addresses a network has."),
    ("path_join(...)", "Parts of a path as one."),
    ("permutations(n)", "All orders of so many items."),
    ("pprint", "A value as Python prints it for reading."),
    ("product(..., repeat=1)", "All combinations of one item of each sequence."),
    ("python", "A value as Python prints it."),
    ("quote", "A text as one word of a shell."),
    ("rand_str(length)", "A text by chance; also `random_str`."),
    ("random", "One item by chance."),
    ("random_hash(form='md5')", "The digest of a number by chance, at most this one."),
    ("random_sample(size, seed)", "Some items by chance, the same for the same seed; also `sample`."),
    ("random_shuffle(seed)", "All items in an order by chance, the same for the same seed; also `shuffle`."),
    ("regex_escape", "A text as a regular expression that means it."),
    (
        "regex_match(pattern, ignorecase, multiline)",
        "The groups of a regular expression at the start of a text, or nothing.",
    ),
    (
        "regex_replace(pattern, text, ignorecase, multiline)",
        "A text in which what a regular expression means is replaced.",
    ),
    (
        "regex_search(pattern, ignorecase, multiline)",
        "The groups of a regular expression anywhere in a text, or nothing.",
    ),
    ("reject(test, ...)", "Items for which a test does not hold."),
    ("rejectattr(attribute, test, ...)", "The same for an attribute of the items."),
    ("replace(old, new, count)", "A text in which something is replaced."),
    ("reverse", "The other way round."),
    ("round(precision=0)", "A number with so many digits after the point."),
    ("safe", "A text that needs no escaping."),
    ("select(test, ...)", "Items for which a test holds."),
    ("selectattr(attribute, test, ...)", "The same for an attribute of the items."),
    ("sequence", "A list of one for what is no list."),
    ("set_dict_key_value(path, value, delimiter=':')", "A copy of a mapping with a value at a path."),
    ("sha1", "A text's SHA-1."),
    ("sha256", "A text's SHA-256."),
    ("sha512", "A text's SHA-512."),
    ("skip", "Nothing."),
    ("slice(n, fill)", "Items in so many lists."),
    ("sort(reverse=False, case_sensitive=False, attribute)", "Items in order."),
    ("sorted_ignorecase", "Items in order, capital or not."),
    ("split(separator, max)", "The parts of a text."),
    ("str_to_num", "The number that a text is; other texts as they are. Also `to_num`."),
    ("string", "A value as text."),
    ("striptags", "A text without tags of HTML."),
    ("substring_in_list(list)", "Whether a text is a part of one of the items."),
    ("sum(attribute, start=0)", "Numbers added."),
    ("symmetric_difference(other)", "Items that one of two lists has."),
    ("title", "A text in which each word has a capital."),
    ("to_bool", "Whether a value says yes: `yes`, `1` and `true` do."),
    ("to_bytes", "A text as bytes."),
    ("to_camelcase(uppercamel=False)", "`a_name` as `aName`."),
    ("to_entries", "A mapping as a list of `{key, value}`."),
    ("to_snake_case", "`aName` as `a_name`."),
    ("tojson(indent)", "JSON for scripts in HTML."),
    ("traverse(path, default, delimiter=':')", "What is at a path of keys and indexes."),
    ("trim(chars)", "A text without blanks at its ends."),
    ("truncate(length=255, killwords=False, end='...')", "The start of a text."),
    ("union(other)", "The items of both lists."),
    ("unique", "Each item once."),
    (
        "update_dict_key_value(path, value, delimiter=':')",
        "A copy of a mapping in which a mapping at a path has more entries.",
    ),
    ("upper", "A text in capital letters."),
    ("urlencode", "A text or a mapping for a URL."),
    ("urlize(limit, nofollow=False, target, rel, extra_schemes)", "A text of HTML whose addresses are links."),
    ("uuid", "A UUID made of a text."),
    ("which", "Where a program is."),
    ("wordcount", "How many words."),
    ("wordwrap(width=79)", "A text in lines of a width."),
    ("xml", "A mapping as XML."),
    ("xmlattr", "A mapping as attributes of XML."),
    ("yaml(flow_style=True)", "YAML; with `False` over several lines."),
    ("yaml_dquote", "A text in double quotes of YAML."),
    ("yaml_encode", "A word or number as YAML."),
    ("yaml_squote", "A text in single quotes of YAML."),
    ("zip(...)", "Items of several sequences side by side."),
    ("zip_longest(..., fillvalue)", "The same, up to the end of the longest."),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// What an entry has names for: the word it is written by, and those behind `also`.
    fn names(table: &[Entry]) -> BTreeSet<String> {
        let also = |text: &str| {
            let rest = text.split_once("lso `").map_or("", |(_, rest)| rest);
            rest.split("` and `").filter_map(|name| name.split('`').next()).map(str::to_owned).collect::<Vec<_>>()
        };
        let first = |usage: &str| usage.split('(').next().unwrap_or_default().to_owned();
        let names = table.iter().flat_map(|(usage, text)| also(text).into_iter().chain([first(usage)]));
        names.filter(|name| !name.is_empty()).collect()
    }

    #[test]
    fn each_filter_test_and_global_is_told() {
        // Only its debug form tells the names of all filters and tests.
        let shown = format!("{:?}", *super::super::ENVIRONMENT);
        let (_, rest) = shown.split_once(", tests: [").unwrap();
        let (tests, rest) = rest.split_once("], filters: [").unwrap();
        let (filters, _) = rest.split_once("], templates").unwrap();
        let known = |list: &str| -> BTreeSet<String> {
            let names = list.split(", ").map(|name| name.trim_matches('"').to_owned());
            names.filter(|name| !name.starts_with("__")).collect()
        };
        assert_eq!(names(FILTERS), known(filters));
        assert_eq!(names(TESTS), known(tests));
        let globals = super::super::ENVIRONMENT.globals().map(|(name, _)| name.to_owned());
        assert_eq!(names(GLOBALS), globals.filter(|name| !name.starts_with("__")).collect());
    }

    #[test]
    fn each_tag_is_one_that_is_understood() {
        for (usage, _) in TAGS {
            let source = format!("{{% {} %}}", usage.replace("` `", " %}{% "));
            let error = super::super::Template::compile("t", &source).err();
            let message = error.map(|error| error.message).unwrap_or_default();
            assert!(!message.contains("unknown"), "{source}: {message}");
        }
    }
}
