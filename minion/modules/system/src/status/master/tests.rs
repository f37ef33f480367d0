use std::net::{TcpListener, TcpStream};
use std::sync::Arc;

use brine_config::MinionConfig;
use brine_function::Args;

use super::*;
use crate::testing;

#[test]
#[cfg(target_endian = "little")]
fn tables_of_the_kernel_are_read() {
    let table = "  sl  local_address rem_address   st\n   \
        0: 0100007F:8AE2 0100007F:1199 01 00000000:00000000\n   \
        1: 0100007F:8AE3 0200007F:1199 06 00000000:00000000\n   \
        2: 0100007F:8AE4 0300007F:119A 01 00000000:00000000\n   \
        3: 0000000000000000FFFF00000100007F:A1 0000000000000000FFFF00000400007F:1199 01 x\n   \
        4: 00000000000000000000000001000000:A2 00000000000000000000000001000000:1199 01 x\n";
    let addresses: Vec<String> = peers(table, 4505).map(|peer| peer.to_string()).collect();
    assert_eq!(addresses, ["127.0.0.1", "127.0.0.4", "::1"]);
}

#[test]
fn status_master_reports_a_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let mut context = testing::context(&[]);
    let config = MinionConfig { publish_port: Some(port), ..Default::default() };
    Arc::get_mut(&mut context.minion).unwrap().config = Arc::new(config);
    let call = |args: Vec<Value>| context.call("status.master", Args::positional(args)).unwrap();
    assert_eq!(call(vec![]), Value::Nil);
    assert_eq!(call(vec!["127.0.0.1".into()]), false.into());
    let _connection = TcpStream::connect(("127.0.0.1", port)).unwrap();
    assert_eq!(call(vec!["127.0.0.1".into()]), true.into());
    assert_eq!(call(vec!["127.0.0.9".into()]), false.into());
}

#[test]
fn ping_master_without_an_answer_is_false() {
    let unused = brine_system::ports::free_port().unwrap();
    let mut context = testing::context(&[]);
    let config = MinionConfig { master_port: unused, ..Default::default() };
    Arc::get_mut(&mut context.minion).unwrap().config = Arc::new(config);
    for host in ["", "127.0.0.1"] {
        assert_eq!(context.call("status.ping_master", Args::positional([host.into()])), Ok(false.into()), "{host}");
    }
}
