//! What the docs say of the program is so.
#![allow(clippy::unwrap_used)]

fn doc(name: &str) -> String {
    std::fs::read_to_string(format!("{}/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

#[test]
fn every_metric_is_in_its_table() {
    let (text, shown) = (doc("docs/metrics.md"), brine_core::metrics::prometheus());
    let names: Vec<&str> = shown.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next()).collect();
    assert!(names.len() > 30, "{shown}");
    for name in names {
        assert!(text.contains(&format!("| `{name}` |")), "{name} is not in docs/metrics.md");
    }
}

#[test]
fn the_worked_examples_are_shown_as_they_are() {
    let text = doc("docs/rules.md");
    for name in ["logins", "reboots", "rollout"].map(|rule| format!("rules/{rule}")).iter().map(String::as_str).chain([
        "block",
        "not_back",
        "stop_rollout",
    ]) {
        let file = doc(&format!("reactor.d/{name}.sls"));
        let shown: Vec<String> = file.lines().map(|line| format!("    {line}").trim_end().to_owned()).collect();
        assert!(text.contains(&shown.join("\n")), "reactor.d/{name}.sls is not shown as it is");
    }
}
