use super::*;

fn message(bytes: usize) -> Published {
    Published { audience: Audience::of_topics(Vec::new()), frames: vec![0; bytes].into() }
}

fn usage(backlog: &Backlog) -> (usize, usize) {
    let buffer = backlog.kept.lock();
    (buffer.messages.len(), buffer.bytes)
}

#[tokio::test]
async fn a_message_is_kept_until_the_last_cursor_has_passed_it() {
    let backlog = Arc::new(Backlog::default());
    assert_eq!(backlog.push(message(5)), 0);
    let (mut one, mut other) = (backlog.open_cursor(), backlog.open_cursor());
    assert_eq!((backlog.push(message(1)), backlog.push(message(2))), (2, 2));
    for bytes in [1, 2] {
        assert_eq!(one.message().await.unwrap().frames.len(), bytes);
        one.advance();
    }
    assert_eq!(usage(&backlog), (2, 3));
    let third = backlog.open_cursor();
    assert_eq!(other.message().await.unwrap().frames.len(), 1);
    other.advance();
    assert_eq!(usage(&backlog), (1, 2));
    drop(other);
    assert_eq!(usage(&backlog), (0, 0));
    assert_eq!(backlog.push(message(7)), 2);
    drop(one);
    assert_eq!(third.message().await.unwrap().frames.len(), 7);
    drop(third);
    assert_eq!((usage(&backlog), backlog.cursors()), ((0, 0), 0));
}

#[tokio::test]
async fn a_cursor_behind_the_message_or_byte_limit_lags() {
    for (bytes, count, behind) in [(1, MESSAGES + 3, 3), (BYTES / 4, 6, 2), (BYTES + 1, 2, 1)] {
        let backlog = Arc::new(Backlog::default());
        let mut cursor = backlog.open_cursor();
        for _ in 0..count {
            backlog.push(message(bytes));
        }
        assert_eq!(cursor.message().await.unwrap_err(), Lagged(behind));
        assert_eq!(cursor.dropped().await, Lagged(behind));
        cursor.skip_all();
        backlog.push(message(9));
        assert_eq!(cursor.message().await.unwrap().frames.len(), 9);
    }
}
