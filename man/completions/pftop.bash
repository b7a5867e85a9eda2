# bash completion for pftop, made from crates/pftop/src/options.rs
_pftop() {
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}
    case $before in
        -d|-[!-]*d) return ;;
        -f|-[!-]*f) return ;;
        -l|-[!-]*l) COMPREPLY=($(compgen -f -- "$word")); return ;;
        -o|-[!-]*o) COMPREPLY=($(compgen -W "addresses age bytes dest dport drops exp none peak pkt rate sport src states" -- "$word")); return ;;
        -p|-[!-]*p) return ;;
        -s|-[!-]*s) return ;;
        -v|-[!-]*v) COMPREPLY=($(compgen -W "default long state time size rules label speed queue interfaces tables drops" -- "$word")); return ;;
        -w|-[!-]*w) return ;;
    esac
    COMPREPLY=($(compgen -W "-a -b -d -f -h -i -l -o -p -r -s -v -w --help --version" -- "$word"))
}
complete -F _pftop pftop
