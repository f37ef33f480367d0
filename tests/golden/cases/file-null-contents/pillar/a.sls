nul: null
