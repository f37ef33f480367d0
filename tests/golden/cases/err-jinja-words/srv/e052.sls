{{ 5 in 'abc' }}
