ROOT/box/new.key:
  x509.private_key_managed:
    - algo: rsa
    - keysize: 2048
    - mode: '0600'
ca:
  x509.certificate_managed:
    - name: ROOT/box/ca.crt
    - signing_private_key: ROOT/box/ca.key
    - CN: ca.example.com
    - C: US
    - O: Example
    - basicConstraints: "critical CA:true"
    - keyUsage: "critical cRLSign, keyCertSign"
    - subjectKeyIdentifier: hash
    - serial_number: 4660
    - not_before: '2026-01-01 00:00:00'
    - not_after: '2126-01-01 00:00:00'
    - days_remaining: 0
web:
  x509.certificate_managed:
    - name: ROOT/box/web.crt
    - signing_private_key: ROOT/box/ca.key
    - signing_cert: ROOT/box/ca.crt
    - private_key: ROOT/box/web.key
    - CN: www.example.com
    - basicConstraints: "critical CA:false"
    - keyUsage: "critical keyEncipherment"
    - subjectKeyIdentifier: hash
    - authorityKeyIdentifier: "keyid,issuer:always"
    - subjectAltName: "DNS:www.example.com, IP:10.0.0.1"
    - serial_number: 22136
    - not_before: '2026-01-01 00:00:00'
    - not_after: '2126-01-01 00:00:00'
    - days_remaining: 0
    - mode: '0640'
    - require: [x509: ca]
csr:
  x509.csr_managed:
    - name: ROOT/box/web.csr
    - private_key: ROOT/box/web.key
    - CN: www.example.com
    - O: Example
    - keyUsage: "digitalSignature"
