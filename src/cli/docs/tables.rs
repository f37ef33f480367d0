//! Tables of Markdown: writes those of the reference, and reads them again to find a row.

/// Returns a row of a table. Bars in cells are escaped.
pub fn row(cells: &[&str]) -> String {
    let cells: Vec<String> = cells.iter().map(|cell| cell.replace('|', "\\|")).collect();
    format!("| {} |\n", cells.join(" | "))
}

/// Returns a table with these columns.
pub fn table(columns: &[&str], rows: impl IntoIterator<Item = String>) -> String {
    format!("{}|{}\n{}", row(columns), "---|".repeat(columns.len()), rows.into_iter().collect::<String>())
}

/// Returns text as code.
pub fn code(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!("`{text}`") }
}

/// Returns the cells of a row; `None` of other lines.
pub fn cells(line: &str) -> Option<Vec<String>> {
    let inner = line.trim().strip_prefix('|')?;
    let inner = inner.strip_suffix('|').filter(|inner| !inner.ends_with('\\')).unwrap_or(inner);
    let (mut cells, mut cell, mut is_escaped) = (Vec::new(), String::new(), false);
    for c in inner.chars() {
        match c {
            '|' if is_escaped => {
                cell.pop();
                cell.push('|');
            }
            '|' => cells.push(std::mem::take(&mut cell).trim().to_owned()),
            c => cell.push(c),
        }
        is_escaped = c == '\\' && !is_escaped;
    }
    cells.push(cell.trim().to_owned());
    Some(cells)
}

/// Whether a row separates the names of columns from the rows.
pub fn is_rule(cells: &[String]) -> bool {
    cells.iter().all(|cell| !cell.is_empty() && cell.chars().all(|c| matches!(c, '-' | ':')))
}

/// Returns the pieces of code in a text.
pub fn codes(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}
