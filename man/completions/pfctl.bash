# bash completion for pfctl, made from crates/pfctl/src/flags.rs
_pfctl() {
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}
    case $before in
        -D|-[!-]*D) return ;;
        -F|-[!-]*F) COMPREPLY=($(compgen -W "rules states info Tables all" -- "$word")); return ;;
        -f|-[!-]*f) COMPREPLY=($(compgen -f -- "$word")); return ;;
        -i|-[!-]*i) COMPREPLY=($(compgen -W "$(ls /sys/class/net)" -- "$word")); return ;;
        -k|-[!-]*k) return ;;
        -o|-[!-]*o) COMPREPLY=($(compgen -W "none" -- "$word")); return ;;
        -p|-[!-]*p) return ;;
        -s|-[!-]*s) COMPREPLY=($(compgen -W "rules states info Interfaces labels timeouts memory Tables all" -- "$word")); return ;;
        -T|-[!-]*T) COMPREPLY=($(compgen -W "flush add delete replace show test zero" -- "$word")); return ;;
        -t|-[!-]*t) return ;;
        -x|-[!-]*x) COMPREPLY=($(compgen -W "debug info notice warning error crit alert emerg" -- "$word")); return ;;
        --junit) COMPREPLY=($(compgen -f -- "$word")); return ;;
        test|import) COMPREPLY=($(compgen -f -- "$word")); return ;;
    esac
    COMPREPLY=($(compgen -W "-D -d -e -F -f -g -h -i -k -N -n -o -p -q -s -T -t -v -x -z --json --junit --remove explain test import" -- "$word"))
}
complete -F _pfctl pfctl
