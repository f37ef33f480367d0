{{ 'abc }}
