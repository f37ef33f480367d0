fails: {test.fail_without_changes: [parallel: True, retry: {attempts: 2, interval: 0}]}
fails_once: {test.fail_with_changes: [parallel: True, retry: {attempts: 1, interval: 0}]}
never: {test.fail_without_changes: [parallel: True, retry: {attempts: 0, interval: 0}]}
until: {test.nop: [parallel: True, retry: {attempts: 2, interval: 0, until: False}]}
silent: {test.configurable_test_state: [parallel: True, result: False, comment: '', retry: {attempts: 2, interval: 0}]}
good: {test.nop: [parallel: True, retry: {attempts: 2, interval: 0}]}
not_beside: {test.fail_without_changes: [parallel: False, retry: {attempts: 2, interval: 0}]}
skipped: {test.fail_without_changes: [parallel: True, retry: {attempts: 2, interval: 0}, onlyif: 'false']}
checked: {test.fail_without_changes: [parallel: True, retry: {attempts: 2, interval: 0}, check_cmd: ['true']]}
made: {cmd.run: [name: exit 3, parallel: True, creates: /]}
