{{ nope.attr }}
