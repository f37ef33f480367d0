rule:
  iptables.delete:
    - chain: INPUT
    - if: lo
    - jump: ACCEPT
never:
  iptables.delete:
    - chain: INPUT
    - source: 10.9.9.9
    - jump: ACCEPT
at:
  iptables.delete:
    - chain: mine
    - position: 1
    - onlyif: grep -q '^-A mine' ROOT/box/iptables
saved:
  iptables.delete:
    - chain: INPUT
    - source: 10.1.1.1
    - jump: ACCEPT
    - save: ROOT/box/saved2
chain:
  iptables.chain_absent:
    - name: mine
chain_never:
  iptables.chain_absent:
    - name: never
flush:
  iptables.flush:
    - chain: OUTPUT
flush_all:
  iptables.flush:
    - table: filter
flush_bad:
  iptables.flush:
    - table: nat
