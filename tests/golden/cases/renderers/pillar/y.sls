#!yaml
y: '{{ 1 }}'
