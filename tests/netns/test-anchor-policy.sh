# Anchors that disagree about a packet, nested anchors, anchors that call each other, and `once`
# rules. The same rule decides with each evaluator and on each path through the gateway.
#
#   client ----------------- gateway ----------------- server
#                  lan0                wan0            203.0.113.1 to .12
. "$(dirname "$0")/short-way.sh"
gateway_between_client_and_server
between_drivers
# a case is an address of the server, in each family
names=(simple nesting list quick absolute relative loop loop_relative once nesting_once wildcard
	same_name)
addresses=()
for number in "${!names[@]}"; do
	addresses+=(203.0.113.$((number + 1)) 2001:db8:113::$((number + 1)))
	on server ip address add "203.0.113.$((number + 1))/32" dev lo
	on server ip address add "2001:db8:113::$((number + 1))/128" dev lo
done
on gateway ip route add 203.0.113.0/24 via $SERVER4
on gateway ip route add 2001:db8:113::/64 via $SERVER6

# asks - prints the cases that are answered; a case of IPv6 has a 6
asks() {
	on client python3 "$HERE/echoes.py" $SERVER4 $SERVER6 -- "${addresses[@]}" | tr ' ' '\n' |
		while IFS= read -r address; do
			case $address in
			*:*) echo "${names[${address##*:} - 1]}6" ;;
			*) echo "${names[${address##*.} - 1]}" ;;
			esac
		done | xargs
}
# to NAME - prints the addresses of a case
to() {
	local number
	for number in "${!names[@]}"; do
		[ "${names[number]}" != "$1" ] ||
			echo "in on lan0 to { 203.0.113.$((number + 1)), 2001:db8:113::$((number + 1)) }"
	done
}
policies() { # SETTING...
	local loops
	filter gateway <<-END
		$(printf '%s\n' "$@")
		pass
		block in on lan0 to { 203.0.113.0/24, 2001:db8:113::/64 }
		block in proto tcp to port { 1, 2, 3, 4, 5, 6, 8, 9, 10, 11, 12, 13 }
		anchor "simple" $(to simple) {
			anchor "inner" {
				pass
			}
			block
		}
		anchor "nesting" $(to nesting) {
			anchor "outer" {
				anchor "inner" {
					pass
				}
				block
			}
		}
		anchor "list" $(to list) {
			anchor "first" {
				pass
			}
			anchor "second" {
				block
			}
		}
		anchor "quick" $(to quick) {
			anchor "first" {
				pass quick
			}
			anchor "second" {
				block
			}
		}
		anchor "absolute" $(to absolute) {
			anchor "first" {
				anchor "/absolute/second"
			}
			anchor "second" from 192.0.2.1 {
				pass quick
			}
			block
		}
		anchor "relative" $(to relative) {
			anchor "first" {
				anchor "../second"
			}
			anchor "second" from 192.0.2.1 {
				pass quick
			}
			block
		}
		anchor "loop" $(to loop) {
			pass
			anchor "one" {
				anchor "/loop/two"
			}
			anchor "two" from 192.0.2.1 {
				anchor "/loop/one"
			}
		}
		anchor "loop_relative" $(to loop_relative) {
			pass
			anchor "one" {
				anchor "../two"
			}
			anchor "two" from 192.0.2.1 {
				anchor "../one"
			}
		}
		anchor "once" $(to once) {
			pass quick inet once
			pass quick inet6 once
		}
		anchor "nesting_once" $(to nesting_once) {
			anchor "a" {
				anchor "b" {
					pass inet once
					pass inet6 once
				}
			}
		}
		anchor "wildcard/*" $(to wildcard)
		anchor "wildcard" from 192.0.2.1 {
			anchor "b" {
				pass
			}
			anchor "a" {
				block
			}
		}
		anchor "same_name" $(to same_name) {
			block
			anchor "wildcard" {
				pass
			}
		}
	END
	pf gateway -q -F states
	loops=$(reason gateway memory)
	same "$*: at first" "$before once once6 nesting_once nesting_once6 $behind" "$(asks)"
	pf gateway -q -F states
	same "$*: then" "$before $behind" "$(asks)"
	same "$*: anchors that call each other, counted as memory" $((loops + 8)) \
		"$(reason gateway memory)"
}
before="quick quick6 absolute absolute6 relative relative6"
behind="wildcard wildcard6 same_name same_name6"
each_way policies

# the same with rules that are loaded into an anchor
filter gateway <<-END
	pass
	block in on lan0 to { 203.0.113.0/24, 2001:db8:113::/64 }
	anchor "below/*"
END
pf gateway -q -a below/here -f - <<-END
	anchor "first" {
		anchor "/below/here/second" $(to absolute)
		anchor "../second" $(to relative)
		anchor "../first" $(to loop_relative)
	}
	anchor "second" from 192.0.2.1 {
		pass quick
	}
END
pf gateway -q -F states
loops=$(reason gateway memory)
same "rules of an anchor" "absolute absolute6 relative relative6" "$(asks)"
same "anchors that call each other, counted as memory" $((loops + 2)) "$(reason gateway memory)"
verdict
