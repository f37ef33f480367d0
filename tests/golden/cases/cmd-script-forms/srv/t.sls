words: {cmd.script: [name: 'salt://s.sh x y']}
source: {cmd.script: [name: 'salt://s.sh x y', source: 'salt://s.sh']}
args: {cmd.script: [name: 'any x y', source: 'salt://s.sh', args: z]}
no_path: {cmd.script: [name: other]}
no_file: {cmd.script: [name: /nowhere/at/all]}
watched: {test.succeed_with_changes: []}
waits: {cmd.wait_script: [name: 'salt://s.sh x', watch: [test: watched]]}
waits_for_source: {cmd.wait_script: [name: 'any x', source: 'salt://s.sh', watch: [test: watched]]}
