# Completions of brine and Salt's tools for fish, by `brine completion fish`.
function __brine_candidates
    set -l lines (@BRINE@ completion --candidates -- (commandline -opc) (commandline -ct) 2>/dev/null)
    switch "$lines[1]"
        case ':files'
            __fish_complete_path (commandline -ct)
        case ':directories'
            __fish_complete_directories (commandline -ct)
        case '*'
            printf '%s\n' $lines
    end
end
for tool in @TOOLS@
    complete -c $tool -f -a '(__brine_candidates)'
end
