changes: test.succeed_with_changes
by_id: {test.nop: [listen: [id: changes]]}
by_word: {test.nop: [listen: [changes]]}
by_unknown_word: {test.nop: [listen: [nobody]]}
by_unknown: {test.nop: [listen: [id: nobody, test: nobody]]}
several:
  test.succeed_with_changes:
    - names: [one, two]
by_name: {cmd.wait: [name: echo heard, listen: [two]]}
first: {test.nop: [order: 1, listen: [sls: t]]}
