late: {test.succeed_with_changes: [order: last, listen_in: [id: hears, sls: in]]}
changes: {test.succeed_with_changes: [listen_in: [test: hears, cmd: nobody]]}
hears: test.nop
