p: from there
