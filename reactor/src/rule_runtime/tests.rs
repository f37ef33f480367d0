use super::*;
use crate::clock::tests::{JUMPS, ManualClock};

/// A runtime without a store, whose clocks are set by the test.
struct Fixture {
    clock: ManualClock,
    runtime: RuleRuntime,
    seq: u64,
}

impl Fixture {
    fn new(rules: &str) -> Self {
        let clock = ManualClock::new();
        let runtime = RuleRuntime::new(None, clock.clock());
        let (rules, errors) = Rules::parse(&[("/r.sls".into(), brine_yaml::load_located(rules).unwrap())]);
        assert!(errors.is_empty(), "{errors:?}");
        runtime.set(rules).unwrap();
        Fixture { clock, runtime, seq: 0 }
    }

    /// Returns the number of firings of an event of this tag.
    async fn event(&mut self, tag: &str) -> usize {
        self.seq += 1;
        let stamp = jiff::Timestamp::from_microsecond(self.clock.stamp().cast_signed()).unwrap();
        let event = Event::from_map(tag, &Map::new()).unwrap();
        let event = event.stamped(self.seq, &brine_event::stamp_of(stamp)).unwrap();
        let none: GroupSize = Arc::new(|_| Box::pin(async { None }));
        self.runtime.event(&event, &none, &Mutex::default()).await.len()
    }

    async fn tick(&self) -> usize {
        self.runtime.advance(&Mutex::default()).await.len()
    }
}

#[tokio::test]
async fn jumps_of_the_wall_clock_neither_fire_nor_silence_rules() {
    let count = "x: {rule.count: [{tag: a}, {count: 3}, {within: 60}, {react: /x}]}";
    let absent = "x: {rule.absent: [{after: a}, {expect: b}, {within: 100}, {react: /x}]}";
    let every = "x: {timer.every: [{seconds: 100}, {react: /x}]}";
    for jump in JUMPS {
        // Three events within the window fire, wherever the clock jumps; three events further apart do not.
        for (pause, fires) in [(20, 1), (40, 0)] {
            for place in 0..3 {
                let mut fixture = Fixture::new(count);
                let mut fired = 0;
                for n in 0..3 {
                    fired += fixture.event("a").await;
                    fixture.clock.pass(pause);
                    if n == place {
                        fixture.clock.jump(jump);
                    }
                }
                assert_eq!(fired, fires, "jump of {jump} s at {place}, {pause} s apart");
            }
        }
        for (rule, first) in [(absent, "a"), (every, "other")] {
            let mut fixture = Fixture::new(rule);
            fixture.event(first).await;
            fixture.clock.pass(50);
            fixture.clock.jump(jump);
            assert_eq!(fixture.event("other").await, 0, "{rule}: {jump}");
            fixture.clock.pass(49);
            assert_eq!(
                (fixture.tick().await, fixture.runtime.next_due()),
                (0, Some(Duration::from_secs(1))),
                "{rule}: {jump}"
            );
            fixture.clock.pass(1);
            assert_eq!(fixture.tick().await, 1, "{rule}: {jump}");
        }
    }
}
