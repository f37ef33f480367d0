use super::*;
use crate::clock::tests::{Hands, JUMPS};

/// A reactor's rules with clocks that are moved by hand, without a store.
struct Moved {
    hands: Hands,
    overtime: Overtime,
    seq: u64,
}

impl Moved {
    fn new(rules: &str) -> Self {
        let hands = Hands::new();
        let overtime = Overtime::new(None, hands.clock());
        let (rules, errors) = Rules::parse(&[("/r.sls".into(), brine_yaml::load_located(rules).unwrap())]);
        assert!(errors.is_empty(), "{errors:?}");
        overtime.set(rules).unwrap();
        Moved { hands, overtime, seq: 0 }
    }

    /// How many rules an event of this tag fires.
    async fn event(&mut self, tag: &str) -> usize {
        self.seq += 1;
        let stamp = jiff::Timestamp::from_microsecond(self.hands.stamp().cast_signed()).unwrap();
        let event = Event::from_map(tag, &Map::new()).unwrap();
        let event = event.stamped(self.seq, &brine_event::stamp_of(stamp)).unwrap();
        let none: GroupSize = Arc::new(|_| Box::pin(async { None }));
        self.overtime.event(&event, &none, &Mutex::default()).await.len()
    }

    async fn tick(&self) -> usize {
        self.overtime.tick(&Mutex::default()).await.len()
    }
}

#[tokio::test]
async fn jumps_of_the_wall_clock_neither_fire_nor_silence_rules() {
    let count = "x: {rule.count: [{tag: a}, {count: 3}, {within: 60}, {react: /x}]}";
    let absent = "x: {rule.absent: [{after: a}, {expect: b}, {within: 100}, {react: /x}]}";
    let every = "x: {timer.every: [{seconds: 100}, {react: /x}]}";
    for jump in JUMPS {
        // Three events within the time fire, wherever the jump falls; three that are further apart do not.
        for (pause, fires) in [(20, 1), (40, 0)] {
            for place in 0..3 {
                let mut moved = Moved::new(count);
                let mut fired = 0;
                for n in 0..3 {
                    fired += moved.event("a").await;
                    moved.hands.pass(pause);
                    if n == place {
                        moved.hands.jump(jump);
                    }
                }
                assert_eq!(fired, fires, "jump of {jump} s at {place}, {pause} s apart");
            }
        }
        for (rule, first) in [(absent, "a"), (every, "other")] {
            let mut moved = Moved::new(rule);
            moved.event(first).await;
            moved.hands.pass(50);
            moved.hands.jump(jump);
            assert_eq!(moved.event("other").await, 0, "{rule}: {jump}");
            moved.hands.pass(49);
            assert_eq!(
                (moved.tick().await, moved.overtime.next_due()),
                (0, Some(Duration::from_secs(1))),
                "{rule}: {jump}"
            );
            moved.hands.pass(1);
            assert_eq!(moved.tick().await, 1, "{rule}: {jump}");
        }
    }
}
