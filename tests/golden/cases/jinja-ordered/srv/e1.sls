{{ pillar.a.nosuch.x }}
