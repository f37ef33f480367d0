s_net:
  syslog_ng.config:
    - write: False
    - config:
        source:
          - tcp:
            - ip: 127.0.0.1
            - port: 1233
            - tls:
              - peer-verify: required-trusted
              - key_file: ["'/a b'", "'/c'"]
            - flags: ''
          - internal: ''
d_file:
  syslog_ng.config:
    - write: False
    - name: destination.d_file
    - config:
        - file:
          - "'/var/log/x'"
          - template: "'$MSG'"
l_all:
  syslog_ng.config:
    - write: False
    - config:
        log:
          - source: s_net
          - junction:
            - channel:
              - filter: f_json
              - parser:
                - json-parser: "prefix('.json.')"
            - channel:
              - filter: f_other
              - flags: final
          - destination:
            - file:
              - "'/x'"
opts:
  syslog_ng.config:
    - write: False
    - name: options.
    - config:
        - time_reap: 30
        - use_dns: true
        - log_fifo_size: 1.5
snippet:
  syslog_ng.config:
    - write: False
    - config:
        config: |
          @include "scl.conf"
unwritten:
  syslog_ng.config:
    - write: False
    - name: filter.f
    - config:
        - level: info
