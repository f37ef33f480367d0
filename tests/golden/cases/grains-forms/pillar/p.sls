inpillar: {x: y}
role: pillar role
