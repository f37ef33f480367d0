//! A report as an HTML page of nested tables. Styles are attributes of the elements, because readers of mail ignore style
//! sheets.

use brine_value::Value;

const TABLE: &str = "border-collapse:collapse;width:100%;";
const CELL: &str = "vertical-align:top;font-family:Helvetica,Arial,sans-serif;font-size:9pt;";
/// The edges of a row's name and of its value; the first row has no edge at its top.
const NAME_EDGES: [&str; 2] = ["border-top:0;border-left:0;", "border-left:0;border-top:1px solid #9e9e9e;"];
const VALUE_EDGES: [&str; 2] =
    ["border-top:0;border-left:1px solid #9e9e9e;", "border-top:1px solid #9e9e9e;border-left:1px solid #9e9e9e;"];

fn color(style: &str) -> &'static str {
    match style {
        "failed" => "color:red;",
        "changed" => "color:green;",
        "unchanged" => "color:blue;",
        _ => "",
    }
}

/// Returns a page with the report.
pub(super) fn page(report: &Value) -> String {
    let mut out = "<html>\n<body>\n".to_owned();
    table(report.as_list().unwrap_or(std::slice::from_ref(report)), "", &mut out);
    out + "</body>\n</html>\n"
}

fn escaped(value: &Value) -> String {
    let mut out = String::new();
    for c in value.to_string().chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#x27;"),
            c => out.push(c),
        }
    }
    out
}

/// Writes a table with a row for each item: a name and its value, or a value alone.
fn table(items: &[Value], inherited: &str, out: &mut String) {
    out.push_str(&format!("<table style=\"{TABLE}\">\n"));
    for (index, item) in items.iter().enumerate() {
        let edge = usize::from(index > 0);
        out.push_str("<tr>\n");
        match item.as_map() {
            Some(map) => {
                let style = map.get("__style__").and_then(Value::as_str).map_or(inherited, |style| color(style));
                for (name, value) in map.iter().filter(|(name, _)| name.as_str() != Some("__style__")) {
                    let edges = NAME_EDGES[edge];
                    out.push_str(&format!("<td style=\"{CELL}{edges}width:70pt;{style}\">{}</td>\n", escaped(name)));
                    cell(value, VALUE_EDGES[edge], style, out);
                }
            }
            None => cell(item, NAME_EDGES[edge], inherited, out),
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</table>\n");
}

fn cell(value: &Value, edges: &str, style: &str, out: &mut String) {
    match value.as_list() {
        Some(items) => {
            out.push_str(&format!("<td style=\"{CELL}{edges}padding:0;{style}\">\n"));
            table(items, style, out);
            out.push_str("</td>\n");
        }
        None => out.push_str(&format!("<td style=\"{CELL}{edges}{style}\">{}</td>\n", escaped(value))),
    }
}
