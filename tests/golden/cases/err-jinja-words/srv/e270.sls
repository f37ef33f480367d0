{{ 'a'.foo.bar }}
