use std::cell::Cell;

use super::*;

#[test]
fn lost_connections_are_opened_again_and_other_errors_are_returned() {
    for (failures, lost, attempts, succeeds) in
        [(0, true, 1, true), (2, true, 3, true), (3, true, 3, false), (1, false, 1, false)]
    {
        let (connection, opened, left) = (Connection::new(), Cell::new(0), Cell::new(failures));
        let connect = || {
            opened.set(opened.get() + 1);
            Ok::<_, &str>(())
        };
        let operation = |(): &mut ()| match left.get() {
            0 => Ok(()),
            more => {
                left.set(more - 1);
                Err("broken")
            }
        };
        let result = connection.run("server", connect, |_| lost, operation);
        assert_eq!((result.is_ok(), opened.get()), (succeeds, attempts), "{failures} failures, lost {lost}");
    }
}

#[test]
fn a_working_connection_is_reused() {
    let (connection, opened) = (Connection::new(), Cell::new(0));
    for _ in 0..3 {
        let connect = || {
            opened.set(opened.get() + 1);
            Ok::<_, &str>(())
        };
        connection.run("server", connect, |_| true, |()| Ok(())).unwrap();
    }
    assert_eq!(opened.get(), 1);
}
