# bash completion for pfctl, made from crates/pfctl/src/flags.rs and verbs.rs
_pfctl() {
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}
    case $before in
        -a|-[!-]*a) COMPREPLY=($(compgen -W "$(pfctl -q -s Anchors 2>/dev/null)" -- "$word")); return ;;
        -D|-[!-]*D) return ;;
        -F|-[!-]*F) COMPREPLY=($(compgen -W "rules nat Sources states info Tables osfp Reset all" -- "$word")); return ;;
        -f|-[!-]*f) COMPREPLY=($(compgen -f -- "$word")); return ;;
        --confirm) return ;;
        -I|-[!-]*I) return ;;
        -i|-[!-]*i) COMPREPLY=($(compgen -W "$(ls /sys/class/net)" -- "$word")); return ;;
        -K|-[!-]*K) return ;;
        -k|-[!-]*k) return ;;
        -L|-[!-]*L) COMPREPLY=($(compgen -f -- "$word")); return ;;
        -o|-[!-]*o) COMPREPLY=($(compgen -W "none basic profile" -- "$word")); return ;;
        -p|-[!-]*p) return ;;
        -R|-[!-]*R) return ;;
        -S|-[!-]*S) COMPREPLY=($(compgen -f -- "$word")); return ;;
        -s|-[!-]*s) COMPREPLY=($(compgen -W "queue rules nat Anchors Sources states info Interfaces labels timeouts memory Tables osfp LimiterStates LimiterSrcs References all confirm metrics" -- "$word")); return ;;
        -T|-[!-]*T) COMPREPLY=($(compgen -W "kill flush add delete load replace show test zero expire" -- "$word")); return ;;
        -t|-[!-]*t) COMPREPLY=($(compgen -W "$(pfctl -q -s Tables 2>/dev/null)" -- "$word")); return ;;
        -V|-[!-]*V) return ;;
        -w|-[!-]*w) COMPREPLY=($(compgen -f -- "$word")); return ;;
        -X|-[!-]*X) return ;;
        -x|-[!-]*x) COMPREPLY=($(compgen -W "debug info notice warning error crit alert emerg" -- "$word")); return ;;
        --junit) COMPREPLY=($(compgen -f -- "$word")); return ;;
        --examples) return ;;
        --room-for) COMPREPLY=($(compgen -f -- "$word")); return ;;
    esac
    case " ${COMP_WORDS[*]:1:COMP_CWORD-1} " in
        *" test "*|*" diff "*|*" fmt "*|*" import "*|*" log "*) [[ $word == -* ]] || { COMPREPLY=($(compgen -f -- "$word")); return; } ;;
    esac
    COMPREPLY=($(compgen -W "-a -D -d -E -e -F -f --confirm --keep-states -g -h -I -i -K -k -L -M -N -n -o -P -p -q -R -r -S -s -T -t -V -v -w -X -x -z --json --openbsd --help --version --junit --check --write --examples --all --explain --remove --room-for explain test diff fmt import log drops bridge confirm revert doctor" -- "$word"))
}
complete -F _pfctl pfctl
