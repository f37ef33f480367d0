//! Templates over variables of any type: each renders or fails with an error.

use brine_jinja::{Context, Host, Template};
use brine_value::json::from_json;
use brine_value::map;

use super::text_of;
use crate::fingerprint;

/// Expressions over one or two variables.
const EXPRESSIONS: &[&str] = &[
    "a + b",
    "a - b",
    "a * b",
    "a / b",
    "a // b",
    "a % b",
    "a ** b",
    "a ~ b",
    "a == b",
    "a < b",
    "a in b",
    "not a",
    "-a",
    "a[b]",
    "a[b:]",
    "a[:b]",
    "a[::b]",
    "a and b or a",
    "a if b else a",
    "a.b",
    "a.items()",
    "a.get(b)",
    "a.update(b)",
    "a.append(b)",
    "a.split(b)",
    "a.format(b)",
    "a.replace(b, b)",
    "a.join(b)",
    "a % (b,)",
    "range(a)",
    "dict(a)",
    "a | json",
    "a | yaml",
    "a | yaml_encode",
    "a | tojson(b)",
    "a | join(b)",
    "a | sort",
    "a | sort(attribute=b)",
    "a | unique",
    "a | length",
    "a | int",
    "a | float",
    "a | round(b)",
    "a | sum",
    "a | min",
    "a | first",
    "a | last",
    "a | list",
    "a | reverse",
    "a | batch(b) | list",
    "a | slice(b) | list",
    "a | indent(b)",
    "a | wordwrap(b)",
    "a | truncate(b)",
    "a | center(b)",
    "a | format(b)",
    "a | replace(a, b)",
    "a | regex_replace(a, b)",
    "a | regex_search(b)",
    "a | regex_match(b)",
    "a | groupby(b) | list",
    "a | map(attribute=b) | list",
    "a | map(b) | list",
    "a | select(b) | list",
    "a | selectattr(b) | list",
    "a | dictsort",
    "a | default(b)",
    "a | combine(b)",
    "a | union(b)",
    "a | difference(b)",
    "a | is_ip",
    "a | ipaddr",
    "a | strftime(b)",
    "a | filesizeformat",
    "a | to_bool",
    "a | random",
    "a | quote",
    "a | tojson | load_json",
    "a | load_yaml",
    "a | sequence",
    "a | compare_lists(b)",
    "a | compare_dicts(b)",
    "a is divisibleby(b)",
    "a is iterable",
    "a is match(b)",
    "a | traverse(b)",
    "a | human_to_bytes",
    "a | base64_decode",
    "a | md5",
    "a | zip(b) | list",
];

/// The first byte selects the expression. The following lines are two variables, and the expression for the last
/// selection.
pub fn run(bytes: &[u8]) -> u64 {
    let (which, text) = bytes.split_first().map_or((0, ""), |(which, text)| (*which, text_of(text)));
    let mut lines = text.splitn(3, '\n');
    let (a, b, own) = (lines.next().unwrap_or(""), lines.next().unwrap_or(""), lines.next().unwrap_or("a"));
    let expression = EXPRESSIONS.get(usize::from(which)).copied().unwrap_or(own);
    // A line that is not JSON is a string.
    let variable = |text: &str| from_json(text).unwrap_or_else(|_| text.into());
    let host = Host::new();
    let mut context = Context::new("base");
    context.set_all(&map! {"a" => variable(a), "b" => variable(b)});
    let mut seen = 0;
    for source in [
        format!("{{% for x in a %}}{{{{ x }}}}{{% endfor %}}{{{{ {expression} }}}}"),
        format!("{{{{ {expression} }}}}"),
    ] {
        match Template::compile("fuzz", &source) {
            Ok(template) => seen ^= fingerprint(which, template.render(&context, &host)),
            Err(error) => seen ^= fingerprint(255, Err::<(), _>(error)),
        }
    }
    seen
}
