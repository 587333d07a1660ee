# Completion of heft for fish. `heft __complete` knows the words; this file passes the command line.

function __heft_complete
    set -l typed (commandline -opc)
    set -l current (commandline -ct)
    set -l program $typed[1]
    set -e typed[1]
    set typed (string replace -r '^~/' "$HOME/" -- $typed)
    set -l found (command $program __complete fish 0 $typed "$current" 2>/dev/null | string split0)
    switch "$found[1]"
        case files
            __fish_complete_path (string replace -r '^--[a-z-]+=' '' -- $current)
        case folders
            __fish_complete_directories $current ''
        case '*'
            string join0 -- $found[2..-1] | string split0
    end
end

complete -c heft -f -a '(__heft_complete)'
