v: plain
plain: 1
