#compdef @TOOLS@
# Completions of brine and Salt's tools for zsh, by `brine completion zsh`.
_brine() {
    local -a values descriptions open
    local line
    for line in "${(@f)$(@BRINE@ completion --candidates -- "${(@Q)words[1,CURRENT]}" 2>/dev/null)}"; do
        case $line in
            :files) _files; return ;;
            :directories) _files -/; return ;;
            '') continue ;;
        esac
        values+=("${line%%$'\t'*}")
        descriptions+=("${line/$'\t'/  -- }")
    done
    (( $#values )) || return 1
    [[ $values[1] == *[.=] ]] && open=(-S '')
    compadd -Q $open -l -d descriptions -- "${values[@]}"
}
compdef _brine @TOOLS@ 2>/dev/null
[[ $funcstack[1] == _brine ]] && _brine "$@"
true
