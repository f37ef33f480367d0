{{ pillar.lst.three }}
