z: {test.nop: [{order: 5}]}
a: {test.nop: [{order: 5}]}
m: {cmd.run: [{order: 5}, {name: x}]}
l1: {test.nop: [{order: last}]}
l2: {test.nop: [{order: last}]}
f2: {test.nop: [{order: first}]}
f1: {test.nop: [{order: first}]}
n1: {test.nop: [{order: -5}]}
neg: {test.nop: [{order: -1}]}
big: {test.nop: [{order: 20000}]}
plain: {test.nop: []}
str: {test.nop: [{order: odd}]}
