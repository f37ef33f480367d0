keys: {module.run: [test.echo: [hi]]}
word_beside: {module.run: [test.echo: [hi], returner: local]}
word_beside_name: {module.run: [name: test.echo, text: hi, test.ping: []]}
words_of_the_run: {module.run: [test.echo: [hi], onlyif: 'true', order: last, check_cmd: ['true']]}
none: module.run
