{{ pillar.a.iteritems() }}
