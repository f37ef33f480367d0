changes: {test.succeed_with_changes: []}
fails: {test.fail_with_changes: [failhard: True]}
hears: {test.nop: [listen: [test: changes, test: nobody]]}
hears_failure: {cmd.wait: [name: echo heard, listen: [test: fails]]}
