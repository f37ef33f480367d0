//! Unified diffs with the matching of Python's `difflib`, so that a diff equals Salt's.

use std::collections::HashMap;

/// Context lines around a change.
const CONTEXT: usize = 3;
/// From this many lines on, a line that makes up over 1 % of the text is not matched (difflib's autojunk).
const POPULAR_FROM: usize = 200;

/// A range of lines: `a` is replaced by `b`.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Step {
    equal: bool,
    a: (usize, usize),
    b: (usize, usize),
}

/// Returns the unified diff without file names; empty if the texts are equal. A missing newline at the end is kept.
pub fn unified(before: &str, after: &str) -> String {
    let (a, b): (Vec<&str>, Vec<&str>) =
        (before.split_inclusive('\n').collect(), after.split_inclusive('\n').collect());
    unified_lines(&a, &b)
}

/// Returns the diff as [`unified`], of lines that include their ends.
pub fn unified_lines(a: &[&str], b: &[&str]) -> String {
    let groups = groups(&steps(a, b));
    let mut out = String::new();
    for group in &groups {
        let (Some(first), Some(last)) = (group.first(), group.last()) else { continue };
        if out.is_empty() {
            out.push_str("--- \n+++ \n");
        }
        out.push_str(&format!("@@ -{} +{} @@\n", range(first.a.0, last.a.1), range(first.b.0, last.b.1)));
        for step in group {
            let (old, new) = (&a[step.a.0..step.a.1], &b[step.b.0..step.b.1]);
            if step.equal {
                out.extend(old.iter().flat_map(|line| [" ", line]));
            } else {
                out.extend(old.iter().flat_map(|line| ["-", line]));
                out.extend(new.iter().flat_map(|line| ["+", line]));
            }
        }
    }
    out
}

fn range(from: usize, to: usize) -> String {
    match to - from {
        0 => format!("{from},0"),
        1 => (from + 1).to_string(),
        length => format!("{},{length}", from + 1),
    }
}

/// Returns the equal and the replaced ranges that turn `a` into `b`, in order.
fn steps(a: &[&str], b: &[&str]) -> Vec<Step> {
    let mut places: HashMap<&str, Vec<usize>> = HashMap::new();
    for (index, line) in b.iter().enumerate() {
        places.entry(line).or_default().push(index);
    }
    if b.len() >= POPULAR_FROM {
        places.retain(|_, places| places.len() <= b.len() / 100 + 1);
    }
    let mut blocks = Vec::new();
    let mut open = vec![(0, a.len(), 0, b.len())];
    while let Some((a_from, a_to, b_from, b_to)) = open.pop() {
        let (i, j, size) = longest(a, b, &places, (a_from, a_to), (b_from, b_to));
        if size > 0 {
            blocks.push((i, j, size));
            open.push((a_from, i, b_from, j));
            open.push((i + size, a_to, j + size, b_to));
        }
    }
    blocks.sort_unstable();
    blocks.push((a.len(), b.len(), 0));
    let (mut steps, mut i, mut j): (Vec<Step>, usize, usize) = (Vec::new(), 0, 0);
    for (next_i, next_j, size) in blocks {
        if i < next_i || j < next_j {
            steps.push(Step { equal: false, a: (i, next_i), b: (j, next_j) });
        }
        match steps.last_mut().filter(|step| step.equal) {
            Some(step) if i == next_i && j == next_j => (step.a.1, step.b.1) = (next_i + size, next_j + size),
            _ if size > 0 => steps.push(Step { equal: true, a: (next_i, next_i + size), b: (next_j, next_j + size) }),
            _ => {}
        }
        (i, j) = (next_i + size, next_j + size);
    }
    steps
}

/// Returns the longest common range; of several, the first in `a`, then the first in `b`.
fn longest(
    a: &[&str],
    b: &[&str],
    places: &HashMap<&str, Vec<usize>>,
    (a_from, a_to): (usize, usize),
    (b_from, b_to): (usize, usize),
) -> (usize, usize, usize) {
    let (mut best_i, mut best_j, mut best) = (a_from, b_from, 0);
    // By index in `b`: the length of the common range that ends there and at the previous line of `a`.
    let mut lengths: HashMap<usize, usize> = HashMap::new();
    for (i, line) in a.iter().enumerate().take(a_to).skip(a_from) {
        let mut next = HashMap::new();
        for &j in places.get(line).map(Vec::as_slice).unwrap_or_default() {
            if j < b_from || j >= b_to {
                continue;
            }
            let length = j.checked_sub(1).and_then(|before| lengths.get(&before)).copied().unwrap_or(0) + 1;
            next.insert(j, length);
            if length > best {
                (best_i, best_j, best) = (i + 1 - length, j + 1 - length, length);
            }
        }
        lengths = next;
    }
    // Extends the range by adjacent popular lines, which were not matched above.
    while best_i > a_from && best_j > b_from && a[best_i - 1] == b[best_j - 1] {
        (best_i, best_j, best) = (best_i - 1, best_j - 1, best + 1);
    }
    while best_i + best < a_to && best_j + best < b_to && a[best_i + best] == b[best_j + best] {
        best += 1;
    }
    (best_i, best_j, best)
}

/// Groups changed ranges, each with context lines around it.
fn groups(steps: &[Step]) -> Vec<Vec<Step>> {
    let mut steps = steps.to_vec();
    if let Some(first) = steps.first_mut().filter(|step| step.equal) {
        first.a.0 = first.a.0.max(first.a.1.saturating_sub(CONTEXT));
        first.b.0 = first.b.0.max(first.b.1.saturating_sub(CONTEXT));
    }
    if let Some(last) = steps.last_mut().filter(|step| step.equal) {
        last.a.1 = last.a.1.min(last.a.0 + CONTEXT);
        last.b.1 = last.b.1.min(last.b.0 + CONTEXT);
    }
    let (mut groups, mut group) = (Vec::new(), Vec::new());
    for mut step in steps {
        if step.equal && step.a.1 - step.a.0 > 2 * CONTEXT {
            group.push(Step { equal: true, a: (step.a.0, step.a.0 + CONTEXT), b: (step.b.0, step.b.0 + CONTEXT) });
            groups.push(std::mem::take(&mut group));
            step.a.0 = step.a.1 - CONTEXT;
            step.b.0 = step.b.1 - CONTEXT;
        }
        group.push(step);
    }
    groups.push(group);
    groups.retain(|group: &Vec<Step>| group.iter().any(|step| !step.equal));
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn diffs_equal_pythons() {
        let numbers = |range: std::ops::Range<u32>| range.map(|n| n.to_string() + "\n").collect::<Vec<_>>().concat();
        for (before, after, diff) in [
            ("a\n", "a\n", ""),
            ("a\nb\n", "a\nc\n", "--- \n+++ \n@@ -1,2 +1,2 @@\n a\n-b\n+c\n"),
            ("", "x", "--- \n+++ \n@@ -0,0 +1 @@\n+x"),
            ("x", "x\n", "--- \n+++ \n@@ -1 +1 @@\n-x+x\n"),
            ("a\nb\nc\n", "", "--- \n+++ \n@@ -1,3 +0,0 @@\n-a\n-b\n-c\n"),
            // The longest range is kept, even if the shortest diff would keep another.
            ("a\nb\nc\nx\n", "x\na\nb\n", "--- \n+++ \n@@ -1,4 +1,3 @@\n+x\n a\n b\n-c\n-x\n"),
        ] {
            assert_eq!(unified(before, after), diff);
        }
        let (before, after) = (numbers(0..20), numbers(0..20).replace("3\n", "x\n"));
        let report = unified(&before, &after);
        assert_eq!(
            report.lines().filter(|line| line.starts_with("@@")).collect::<Vec<_>>(),
            ["@@ -1,7 +1,7 @@", "@@ -11,7 +11,7 @@"]
        );
    }

    proptest::proptest! {
        #[test]
        fn every_line_occurs_once(before in "([ab]\n){0,12}", after in "([ab]\n){0,12}") {
            let (a, b): (Vec<_>, Vec<_>) = (before.split_inclusive('\n').collect(), after.split_inclusive('\n').collect());
            let (mut i, mut j) = (0, 0);
            for step in steps(&a, &b) {
                assert_eq!((step.a.0, step.b.0), (i, j));
                (i, j) = (step.a.1, step.b.1);
                assert_eq!(step.equal, a[step.a.0..step.a.1] == b[step.b.0..step.b.1]);
            }
            assert_eq!((i, j), (a.len(), b.len()));
        }
    }
}
