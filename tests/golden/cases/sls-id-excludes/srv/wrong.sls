a: {test.nop: [watch: b]}
b: {test.nop: [require_in: [cmd: nobody]]}
