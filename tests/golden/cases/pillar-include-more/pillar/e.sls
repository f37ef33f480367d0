e: {{ word | default('none') }}
