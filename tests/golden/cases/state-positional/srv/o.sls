{{ opts['test'] }} {{ opts.get('saltenv') }}: test.nop
