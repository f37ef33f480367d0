chain:
  iptables.chain_present:
    - name: mine
chain_there:
  iptables.chain_present:
    - name: INPUT
    - family: ipv6
chain_nat:
  iptables.chain_present:
    - name: other
    - table: nat
there:
  iptables.append:
    - chain: INPUT
    - if: lo
    - jump: ACCEPT
new:
  iptables.append:
    - table: filter
    - chain: INPUT
    - jump: ACCEPT
    - match: state
    - connstate: NEW
    - dport: 80
    - protocol: tcp
    - sport: 1025:65535
    - save: ROOT/box/saved
several:
  iptables.append:
    - chain: mine
    - jump: ACCEPT
    - match:
      - state
      - comment
    - comment: "Allow HTTP and HTTPS"
    - connstate: NEW
    - dports: [80, 443]
    - proto: tcp
    - source: '!10.0.0.0/8'
ipv6:
  iptables.append:
    - chain: INPUT
    - family: ipv6
    - jump: DROP
    - source: fe80::/10
log:
  iptables.append:
    - chain: mine
    - jump: LOG
    - log-prefix: 'dropped: '
    - log-level: 4
refused:
  iptables.append:
    - chain: INPUT
    - jump: badtarget
no_chain:
  iptables.append:
    - chain: nowhere
    - jump: ACCEPT
first:
  iptables.insert:
    - position: 1
    - chain: INPUT
    - jump: ACCEPT
    - source: 10.1.1.1
last_but_one:
  iptables.insert:
    - position: -1
    - chain: INPUT
    - jump: ACCEPT
    - source: 10.2.2.2
insert_saved:
  iptables.insert:
    - position: 2
    - chain: mine
    - jump: RETURN
    - save: ROOT/box/saved
policy:
  iptables.set_policy:
    - chain: FORWARD
    - policy: DROP
policy_same:
  iptables.set_policy:
    - chain: OUTPUT
    - policy: ACCEPT
policy_bad:
  iptables.set_policy:
    - chain: nowhere
    - policy: DROP
