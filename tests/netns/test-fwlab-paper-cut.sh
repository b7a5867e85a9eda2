# A paper is repeated without systems that this machine lacks, and the report names them. An
# interrupted paper keeps its results so far.
# alone
# long: 74 s beside five others
. "$(dirname "$0")/lab.sh"

mkdir "$WORK/few"
for program in ip nsenter nft; do
	ln -s "$(command -v $program)" "$WORK/few/$program"
done
PATH="$WORK/few" "$BIN/fwlab" paper adamo-tablo --smoke --systems iptables-legacy,nft-flat \
	--out "$WORK/some" >"$WORK/text" 2>"$WORK/errors"
same "without iptables" 0 $?
holds "what is left out is said" grep -q "left out: iptables-legacy: no such program" "$WORK/errors"
same "and written down" True \
	"$(said "$WORK/some/adamo-tablo.json" \
	'any("iptables-legacy: no such" in text for text in run["paper"]["differences"])')"

setpriv --reuid 65534 --regid 65534 --clear-groups "$BIN/fwlab" paper gigabit --smoke \
	>"$WORK/text" 2>&1
same "without root" 1 $?
holds "why is said" grep -q "paper: must run as root" "$WORK/text"

interrupted paper 5 gigabit
holds "says so" grep -q "not complete: interrupted" "$WORK/text"
at_least 1 "keeps its rows" "$(said "$result" 'len(run["paper"]["tables"][0]["rows"])')"
verdict
