#!yaml|gpg
broken:
  word: |
    -----BEGIN PGP MESSAGE-----

    bm90aGluZw==
    -----END PGP MESSAGE-----
