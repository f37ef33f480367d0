//! Replay protection by increasing serial numbers.

/// The size of the window: a late serial number is accepted if it is less than this below the highest one.
const WIDTH: u64 = 1024;

/// A sliding window over serial numbers: accepts each once, in nearly any order, with bounded memory.
#[derive(Debug, Clone)]
pub struct ReplayWindow {
    highest: u64,
    seen: [u64; (WIDTH / 64) as usize],
}

impl Default for ReplayWindow {
    fn default() -> Self {
        ReplayWindow { highest: 0, seen: [0; (WIDTH / 64) as usize] }
    }
}

impl ReplayWindow {
    /// Accepts a serial number; returns `false` if it was seen before or is too far below the highest. Numbers start at
    /// 1.
    pub fn is_new(&mut self, serial: u64) -> bool {
        if serial == 0 || serial.saturating_add(WIDTH) <= self.highest {
            return false;
        }
        if serial > self.highest {
            // Clears the bits of numbers that left the window.
            for number in (self.highest + 1..=serial).take(WIDTH as usize) {
                self.clear(number);
            }
            if serial - self.highest >= WIDTH {
                self.seen = [0; (WIDTH / 64) as usize];
            }
            self.highest = serial;
        }
        let (word, bit) = Self::bit_of(serial);
        let new = self.seen[word] & bit == 0;
        self.seen[word] |= bit;
        new
    }

    fn clear(&mut self, serial: u64) {
        let (word, bit) = Self::bit_of(serial);
        self.seen[word] &= !bit;
    }

    fn bit_of(serial: u64) -> (usize, u64) {
        ((serial % WIDTH / 64) as usize, 1 << (serial % 64))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_serial_number_is_accepted_once() {
        let mut window = ReplayWindow::default();
        for (serial, new) in [
            (0, false),
            (1, true),
            (1, false),
            (3, true),
            (2, true),
            (2, false),
            (5000, true),
            (3, false),
            (3977, true),
            (3976, false),
        ] {
            assert_eq!(window.is_new(serial), new, "{serial}");
        }
    }

    proptest! {
        #[test]
        fn the_window_agrees_with_an_unbounded_one(serials in prop::collection::vec(1u64..4000, 0..300)) {
            let (mut window, mut seen, mut highest) = (ReplayWindow::default(), HashSet::new(), 0);
            for serial in serials {
                let too_old = serial + WIDTH <= highest;
                highest = highest.max(serial);
                prop_assert_eq!(window.is_new(serial), !too_old && seen.insert(serial));
            }
        }
    }
}
