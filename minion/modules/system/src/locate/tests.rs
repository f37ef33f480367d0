use brine_value::{list, map};

use super::*;
use crate::testing::{Scripted, answers, context_with};

const TRANSCRIPT: &str = "
        $ locate -V
        | plocate 1.1.18
        | Copyright
        $ locate -S
        | Database /var/lib/mlocate/mlocate.db:
        |         9,211 directories
        |         2,002,341 bytes in file names
        $ updatedb
        ! updatedb: permission denied
        = 1
        $ locate ...
        | /etc/hosts
    ";

#[test]
fn the_database_is_searched_and_described() {
    let programs = Scripted::new(TRANSCRIPT);
    let context = context_with(map! {"os_family" => "Debian"}, programs.clone());
    let flags = map! {"ignore" => true, "count" => false, "basename" => true, "regex" => true, "limit" => 5};
    let calls = [
        ("locate.version", list![], Map::new()),
        ("locate.stats", list![], Map::new()),
        ("locate.updatedb", list![], Map::new()),
        ("locate.locate", list!["hosts", "/srv/db"], flags),
        ("locate.locate", list!["a b; reboot"], Map::new()),
        ("locate.locate", list!["--help"], Map::new()),
        ("locate.locate", list!["a", "-x"], Map::new()),
    ];
    insta::assert_snapshot!(answers(&context, &calls), @r#"
        locate.version: ["plocate 1.1.18", "Copyright"]
        locate.stats: {"database": "/var/lib/mlocate/mlocate.db", "directories": "9,211", "bytes in file names": "2,002,341"}
        locate.updatedb: ["updatedb: permission denied"]
        locate.locate: ["/etc/hosts"]
        locate.locate: ["/etc/hosts"]
        locate.locate: ERROR: '--help' cannot be used: it starts with '-' or is empty
        locate.locate: ERROR: '-x' cannot be used: it starts with '-' or is empty
        "#);
    insta::assert_snapshot!(programs.ran(), @r"
        locate -V
        locate -S
        updatedb
        locate -ib -d /srv/db -l 5 --regex hosts
        locate 'a b; reboot'
        ");
}
