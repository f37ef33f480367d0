//! The disk space of rows that are written in the order of their keys.

/// The page size of the store.
pub(crate) const PAGE: u64 = 4096;
/// The overhead in bytes of a leaf, of a row in it, and of its entry in the branch above.
const LEAF: u64 = 4;
const ROW: u64 = 8;
const BRANCH: u64 = 40;

/// The maximum size of a row, with its key, that shares a page with others or fills one.
pub(crate) const LARGEST_SHARED_ROW: usize = 4084;
const _: () = assert!(LARGEST_SHARED_ROW as u64 + ROW + LEAF == PAGE);

/// Counts the bytes of pages. Rows in key order share leaves of one page; a larger row has its own pages, whose number
/// is a power of two.
#[derive(Debug)]
pub(crate) struct Pages {
    /// The bytes of all pages so far.
    pub bytes: u64,
    leaf: u64,
}

impl Pages {
    /// Continues after pages with these bytes; the next row begins a page.
    pub fn after(bytes: u64) -> Self {
        Pages { bytes, leaf: PAGE }
    }

    /// Adds a row.
    pub fn add(&mut self, key_and_value: usize) {
        let row = key_and_value as u64 + ROW;
        if row + LEAF > PAGE {
            self.bytes += (row + LEAF).div_ceil(PAGE).next_power_of_two() * PAGE + BRANCH;
            self.leaf = PAGE;
        } else if self.leaf + row > PAGE {
            self.bytes += PAGE + BRANCH;
            self.leaf = LEAF + row;
        } else {
            self.leaf += row;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_take_whole_pages() {
        let taken = |rows: &[usize]| {
            let mut pages = Pages::after(0);
            for row in rows {
                pages.add(*row);
            }
            pages.bytes / PAGE
        };
        for (rows, pages) in [
            (&[100][..], 1),
            (&[100; 37], 1),
            (&[100; 38], 2),
            (&[2100, 2100], 2),
            (&[4084], 1),
            (&[4085], 2),
            (&[33_000], 16),
            (&[33_000, 10], 17),
        ] {
            assert_eq!(taken(rows), pages, "{rows:?}");
        }
    }
}
