//! Maps positions in rewritten text to positions in the template.

/// The parts of a rewritten text that are copies of its template, in order.
#[derive(Debug, Clone, Default)]
pub(crate) struct SourceMap(Vec<Segment>);

/// A copy: its position in the rewritten text and in the template, and its length, in bytes.
#[derive(Debug, Clone, Copy)]
struct Segment {
    emitted: usize,
    source: usize,
    length: usize,
}

impl SourceMap {
    /// Adds a copy that follows all earlier ones.
    pub(super) fn copied(&mut self, emitted: usize, source: usize, length: usize) {
        if let Some(last) = self.0.last_mut()
            && (last.emitted + last.length, last.source + last.length) == (emitted, source)
        {
            last.length += length;
            return;
        }
        self.0.push(Segment { emitted, source, length });
    }

    /// Returns the position in the template of a position in the rewritten text. Inserted text is at the end of the
    /// copy before it.
    pub(crate) fn source(&self, emitted: usize) -> usize {
        let after = self.0.partition_point(|segment| segment.emitted <= emitted);
        let before = after.checked_sub(1).and_then(|at| self.0.get(at));
        before.map_or(0, |segment| segment.source + (emitted - segment.emitted).min(segment.length))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inserted_text_maps_to_the_position_before_it() {
        // "ab" + "XX" + "cd" of the source "abcd", then "f" of "abcdef".
        let mut map = SourceMap::default();
        for (emitted, source, length) in [(0, 0, 1), (1, 1, 1), (4, 2, 2), (6, 5, 1)] {
            map.copied(emitted, source, length);
        }
        let positions: Vec<usize> = (0..8).map(|at| map.source(at)).collect();
        assert_eq!(positions, [0, 1, 2, 2, 2, 3, 5, 6]);
        assert_eq!(map.0.len(), 3);
        assert_eq!(SourceMap::default().source(5), 0);
    }
}
