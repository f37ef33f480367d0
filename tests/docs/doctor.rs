//! The table of findings in docs/doctor.md is that of `brine doctor`.

use brine_doctor::KINDS;

use super::doc;

const HEADING: &str = "| finding | severity | meaning | mend |\n|---|---|---|---|\n";

/// Returns the page with the table of the program.
fn page() -> String {
    let text = doc("docs/doctor.md");
    let (before, rest) = text.split_once(HEADING).unwrap();
    let after = rest.split_once("\n\n").map_or("", |(_, after)| after);
    let row = |kind: &&brine_doctor::Kind| {
        let (name, severity) = (kind.name, kind.severity.name());
        format!("| `{name}` | {severity} | {} | {} |\n", kind.about, kind.mend)
    };
    let rows: String = KINDS.iter().map(row).collect();
    format!("{before}{HEADING}{rows}\n{after}")
}

#[test]
fn all_findings_are_documented() {
    assert!(
        page() == doc("docs/doctor.md"),
        "docs/doctor.md is out of date: cargo test --workspace --test docs -- --ignored"
    );
}

#[test]
#[ignore = "writes the table of docs/doctor.md"]
fn write_findings() {
    std::fs::write(format!("{}/docs/doctor.md", env!("CARGO_MANIFEST_DIR")), page()).unwrap();
}
