before: {test.succeed_with_changes: [prereq: [test: tried], require: [test: fails]]}
tried: {test.succeed_with_changes: [parallel: True, check_cmd: ['true']]}
fails: {test.fail_without_changes: []}
next_before: {test.nop: [prereq: [test: next_tried]]}
next_tried: {test.fail_with_changes: [parallel: True]}
