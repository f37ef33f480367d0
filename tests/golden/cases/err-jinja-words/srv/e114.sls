{{ pillar.word.nokey }}
