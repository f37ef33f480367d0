use std::sync::atomic::{AtomicUsize, Ordering};

use brine_value::map;

use super::*;

fn counted() -> (Arc<AtomicUsize>, Grains) {
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    let grains = Grains::uncollected(move || {
        counted.fetch_add(1, Ordering::Relaxed);
        map! {"os" => "Debian", "master" => "salt"}
    });
    (count, grains)
}

#[test]
fn grains_are_collected_once_when_they_are_read() {
    let (count, grains) = counted();
    assert_eq!(count.load(Ordering::Relaxed), 0, "before");
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| assert_eq!(grains.get().get("os"), Some(&"Debian".into())));
        }
    });
    assert_eq!(count.load(Ordering::Relaxed), 1, "after four readers");
}

#[test]
fn replaced_grains_are_never_collected() {
    let (count, grains) = counted();
    grains.set(map! {"os" => "Plan9"});
    assert_eq!((count.load(Ordering::Relaxed), grains.get().get("os")), (0, Some(&"Plan9".into())));
}

#[test]
fn one_replaced_grain_keeps_the_others() {
    let (_, grains) = counted();
    let before = grains.get();
    grains.set_one("master", "other");
    let after = grains.get();
    assert_eq!((before.get("master"), after.get("master")), (Some(&"salt".into()), Some(&"other".into())));
    assert_eq!(after.get("os"), Some(&"Debian".into()));
}
