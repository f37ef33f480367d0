own:
  pkgrepo.absent:
    - name: deb http://own.example.org/ ./
comps:
  pkgrepo.absent:
    - name: deb http://deb.example.org/debian stable contrib
suite:
  pkgrepo.absent:
    - name: deb http://one.example.org/debian testing main contrib
other_arch:
  pkgrepo.absent:
    - name: deb http://arch.example.org/debian stable main
arch:
  pkgrepo.absent:
    - name: deb [arch=amd64] http://arch.example.org/debian/ stable main
never:
  pkgrepo.absent:
    - name: deb http://never.example.org/debian stable main
