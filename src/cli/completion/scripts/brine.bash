# Completions of brine and Salt's tools for bash, by `brine completion bash`.
_brine() {
    local line=${COMP_LINE:0:COMP_POINT} cur=${COMP_WORDS[COMP_CWORD]} candidate IFS=$'\n'
    # Bash splits words at `=` and `:`; the program gets them whole, and only the part behind them is replaced.
    local word=${line##*[[:space:]]} words=() entry glued=
    for entry in "${COMP_WORDS[@]:0:COMP_CWORD+1}"; do
        if [[ ${#words[@]} -gt 0 && ( $entry == [=:] || $glued ) && $line == *"${words[-1]}$entry"* ]]; then
            words[-1]+=$entry
        else
            words+=("$entry")
        fi
        glued=
        [[ $entry == [=:] ]] && glued=1
    done
    [[ $word ]] || { [[ ${words[-1]} ]] && words+=(""); }
    [[ $cur == [=:] ]] && cur=
    local prefix=${words[-1]%"$cur"}
    COMPREPLY=()
    for candidate in $(@BRINE@ completion --candidates -- "${words[@]}" 2>/dev/null); do
        case $candidate in
            :files) compopt -o filenames; COMPREPLY=($(compgen -f -- "$cur")); return ;;
            :directories) compopt -o filenames; COMPREPLY=($(compgen -d -- "$cur")); return ;;
        esac
        candidate=${candidate%%$'\t'*}
        COMPREPLY+=("${candidate#"$prefix"}")
    done
    [[ ${COMPREPLY[0]} == *[.=] ]] && compopt -o nospace
}
complete -F _brine @TOOLS@
