/etc/balancer.conf:
  file.managed:
    - contents: |
        # managed
        {%- for id, address in salt['mine.get']('web*', 'address') | dictsort %}
        server {{ id }} {{ address }}
        {%- endfor %}
