" Rule sets of pf: OpenBSD's language and FreeBSD's.
" A test of crates/pfconf holds the reserved words against the parser's.

if exists("b:current_syntax")
	finish
endif

setlocal iskeyword=@,48-57,_,-,.
syn case match

syn keyword pfStatement anchor antispoof block include load match pass queue set table
syn keyword pfOldStatement nat rdr binat nat-anchor rdr-anchor binat-anchor altq ether limiter source
syn keyword pfKeyword af-to all allow-opts any bandwidth binat-to bitmask block-policy burst code
	\ debug default delay divert-packet divert-reply divert-to drop dup-to file
	\ fingerprints flags floating flows flush for fragment from global group hostid
	\ icmp-type icmp6-type if-bound in inet inet6 keep label least-states limit log
	\ loginterface matches max max-mss max-pkt-rate max-src-conn max-src-conn-rate
	\ max-src-nodes max-src-states min min-ttl modulate nat-to no no-df no-route
	\ no-sync on once optimization os out overload parent pflow port prio probability
	\ proto qlimit quantum quick random random-id rdomain rdr-to reassemble
	\ received-on reply-to return return-icmp return-icmp6 return-rst round-robin
	\ route route-to rtable rule ruleset-optimization scrub skip sloppy source-hash
	\ source-track state state-defaults state-policy static-port sticky-address
	\ syncookies synproxy tag tagged timeout to tos ttl urpf-failed user weight
syn keyword pfProtocol tcp udp icmp icmp6 ipv6-icmp igmp esp ah gre sctp ospf carp pfsync

syn match pfMacro "\$[A-Za-z0-9_]\+"
syn match pfDefinition "^\s*[A-Za-z_][A-Za-z0-9_]*\ze\s*=[^=]"
syn match pfTable "<\s*[A-Za-z_][A-Za-z0-9_.:-]*\s*>"
syn match pfOperator "!=\|<=\|>=\|><\|<>\|[!=]"
syn match pfNumber "\<\d\+[KMG%]\?\>"
syn match pfNumber "\<0x\x\+\>"
syn match pfAddress "\<\d\{1,3}\(\.\d\{1,3}\)\{1,3}\(/\d\+\)\?"
syn match pfAddress "\<\x\{0,4}\(:\x\{0,4}\)\{2,7}\(%\w\+\)\?\(/\d\+\)\?"
syn region pfString start=+"+ skip=+\\"+ end=+"+ contains=pfMacro
syn region pfString start=+'+ skip=+\\'+ end=+'+
syn match pfContinuation "\\$"
" a backslash carries a comment on to the next line
syn region pfComment start="#" skip="\\$" end="$" contains=pfTodo,@Spell
syn keyword pfTodo contained TODO FIXME XXX

hi def link pfStatement Statement
hi def link pfOldStatement Statement
hi def link pfKeyword Keyword
hi def link pfProtocol Type
hi def link pfMacro PreProc
hi def link pfDefinition Identifier
hi def link pfTable Identifier
hi def link pfOperator Operator
hi def link pfNumber Number
hi def link pfAddress Constant
hi def link pfString String
hi def link pfContinuation Special
hi def link pfComment Comment
hi def link pfTodo Todo

let b:current_syntax = "skipstep-pf"
