a: {test.nop: [require_in: [c, cmd: c]]}
b: {test.nop: [require: [cmd: c]]}
c: test.nop
