password:
  debconf.set:
    - name: nullmailer
    - data:
        nullmailer/pass: {type: password, value: geheim}
