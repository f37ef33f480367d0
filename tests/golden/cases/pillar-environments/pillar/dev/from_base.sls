from_base: {{ saltenv }}
