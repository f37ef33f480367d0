//! Metrics in Python's pickle format: a list of `(path, (time, value))`, behind its length in four bytes.

use super::Metric;

/// Returns messages of at most `page` metrics each, in protocol 2.
pub(super) fn messages(metrics: &[Metric], page: usize) -> Vec<u8> {
    let mut messages = Vec::new();
    for page in metrics.chunks(page) {
        let body = list(page);
        messages.extend((body.len() as u32).to_be_bytes());
        messages.extend(body);
    }
    messages
}

fn list(metrics: &[Metric]) -> Vec<u8> {
    // The version, an empty list, and the mark of its items.
    let mut out = b"\x80\x02](".to_vec();
    for metric in metrics {
        out.push(b'X');
        out.extend((metric.path.len() as u32).to_le_bytes());
        out.extend(metric.path.as_bytes());
        // An integer of eight bytes.
        out.extend([0x8a, 8]);
        out.extend(metric.time.to_le_bytes());
        out.push(b'G');
        out.extend(metric.value.to_be_bytes());
        // Two tuples of two items each.
        out.extend([0x86, 0x86]);
    }
    // The items join the list; the end.
    out.extend(b"e.");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_length_prefixed() {
        let metric = |path: &str| Metric { path: path.to_owned(), value: 1.5, time: 7 };
        let one = b"\0\0\0\x23\x80\x02](X\x03\0\0\0a.b\x8a\x08\x07\0\0\0\0\0\0\0G\x3f\xf8\0\0\0\0\0\0\x86\x86e.";
        assert_eq!(messages(&[metric("a.b")], 500), one);
        assert_eq!(messages(&[metric("a.b"), metric("a.b")], 1), [&one[..], &one[..]].concat());
        assert_eq!(messages(&[], 1), b"");
    }
}
