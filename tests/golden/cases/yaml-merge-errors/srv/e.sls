x: "unclosed
