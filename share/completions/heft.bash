# Completion of heft for bash. `heft __complete` knows the words; this file passes the command line.

_heft()
{
    local line=$COMP_LINE piece gap kept=0 what i words=()
    ((COMP_POINT >= ${#line})) || line=${line:0:COMP_POINT}
    # Put together what COMP_WORDBREAKS cuts into pieces: pieces without a gap are one word.
    for ((i = 0; i <= COMP_CWORD; i++)); do
        piece=${COMP_WORDS[i]} gap=${line%%[![:space:]]*} line=${line#"$gap"}
        ((i < COMP_CWORD)) || piece=${line:0:${#piece}}
        if ((i == 0)) || [[ -n $gap ]]; then
            words+=("$piece") kept=0
        else
            kept=${#words[-1]} words[-1]+=$piece
        fi
        # A piece of nothing but separators is not replaced.
        [[ -z $piece || $piece == *[!"$COMP_WORDBREAKS"]* || $piece == *[\'\"]* ]] ||
            kept=${#words[-1]}
        line=${line#"$piece"}
    done
    for ((i = 1; i < ${#words[@]}; i++)); do
        [[ ${words[i]} != "~/"* ]] || words[i]=$HOME${words[i]:1}
    done
    {
        IFS= read -r what
        mapfile -t COMPREPLY
    } < <(command "${words[0]/#\~/$HOME}" __complete bash "$kept" "${words[@]:1}" 2>/dev/null)
    case $what in
    words) compopt +o default ;;
    stems) compopt +o default -o nospace ;;
    folders) compopt +o default -o dirnames ;;
    esac 2>/dev/null
}

complete -o default -F _heft heft
