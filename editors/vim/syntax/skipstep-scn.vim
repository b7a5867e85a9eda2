" Scenario files: rules, packets and their fates (docs/howto/scenarios.md).

if exists("b:current_syntax")
	finish
endif

runtime! syntax/skipstep-pf.vim
unlet! b:current_syntax

syn keyword scnStep scenario rules interfaces routes in out forward wait random check
syn keyword scnWord received-on tag prio hex tcp udp icmp icmp6 proto seq ack win urg mss wscale
	\ tcp-options code id quoting ttl tos ipid df no-df len data ip-options hop-by-hop
	\ destination-options routing fragment truncate ip-len header-len data-offset
	\ udp-len bad-sum
syn keyword scnFate pass block consumed rule default skipped orphan reason counted none new state no also
	\ unchanged reply rst log match by for to expired removed states sources status rtable
syn match scnBecomes "=>"
syn match scnEndpoint "\[\d\+\]"

hi def link scnStep Statement
hi def link scnWord Keyword
hi def link scnFate Type
hi def link scnBecomes Operator
hi def link scnEndpoint Number

let b:current_syntax = "skipstep-scn"
