# Fingerprints of operating systems: what their first TCP segment looks like, in the format of
# OpenBSD's pf.os(5). Written for skipstep; installed as /etc/pf.os.
#
#   window:ttl:df:size:options:class:version:subtype:description
#
# window   a number, * (any), %n (a multiple of n), Sn (n times the MSS), Tn (n times the MTU)
# ttl      what the system sends; packets that have come up to 40 hops match
# df       1 if "don't fragment" is set. IPv6 counts as set
# size     of the whole IPv4 packet; over IPv6 it has 20 bytes more
# options  in order: N (nop), Mn (MSS), Wn (window scale), S (SACK permitted), T (timestamp), T0
#          (timestamp that is 0); n can be * or %n; a period stands for none
#
# An entry tells systems apart by what their kernels do when nobody has changed their settings. A
# firewall or a proxy on the way that makes its own segments shows itself.

# ---- Linux. The window is as many whole segments as fit into 65535 bytes, so it hangs on the MSS: 44
# over Ethernet, 45 over IPv6 or PPPoE, 46 through most tunnels. Measured on Linux 6.18 with IPv4 and
# IPv6; tcp_select_initial_window() has done so since 4.20.
S44:64:1:60:M*,S,T,N,W*:Linux:4.20::Linux 4.20 and later
S44:64:1:60:M*,S,T,N,W*:Linux:5.0-5.19::Linux 4.20 and later
S44:64:1:60:M*,S,T,N,W*:Linux:6.0-6.18::Linux 4.20 and later
S45:64:1:60:M*,S,T,N,W*:Linux:4.20::Linux 4.20 and later (IPv6, PPPoE)
S45:64:1:60:M*,S,T,N,W*:Linux:5.0-5.19::Linux 4.20 and later (IPv6, PPPoE)
S45:64:1:60:M*,S,T,N,W*:Linux:6.0-6.18::Linux 4.20 and later (IPv6, PPPoE)
S46:64:1:60:M*,S,T,N,W*:Linux:4.20::Linux 4.20 and later (tunnels)
S46:64:1:60:M*,S,T,N,W*:Linux:5.0-5.19::Linux 4.20 and later (tunnels)
S46:64:1:60:M*,S,T,N,W*:Linux:6.0-6.18::Linux 4.20 and later (tunnels)
# without tcp_timestamps; measured
S44:64:1:52:M*,N,N,S,N,W*:Linux:::Linux 4.20 and later without timestamps
S45:64:1:52:M*,N,N,S,N,W*:Linux:::Linux 4.20 and later without timestamps (IPv6, PPPoE)
# twenty segments: twice TCP_INIT_CWND, in tcp_default_init_rwnd()
S20:64:1:60:M*,S,T,N,W*:Linux:3.10-3.19::Linux 3.10 to 4.19
S20:64:1:60:M*,S,T,N,W*:Linux:4.0-4.19::Linux 3.10 to 4.19
# ten: TCP_INIT_CWND
S10:64:1:60:M*,S,T,N,W*:Linux:3.0-3.9::Linux 2.6.39 to 3.9
# four, before
S4:64:1:60:M*,S,T,N,W*:Linux:2.6::Linux 2.6

# ---- OpenBSD, after tcp_output() of its kernel
16384:64:1:64:M*,N,N,S,N,W*,N,N,T:OpenBSD:::OpenBSD 3.5 and later

# ---- FreeBSD, after tcp_addoptions() of its kernel
65535:64:1:60:M*,N,W*,S,T:FreeBSD:::FreeBSD 7 and later

# ---- Apple, after tcp_output() of XNU
65535:64:1:64:M*,N,W*,N,N,T,S:MacOS:X::macOS and iOS

# ---- Windows. Its kernel cannot be read: this is what published captures show, not measured here
65535:128:1:48:M*,N,N,S:Windows:XP::Windows XP and 2000
8192:128:1:52:M*,N,W*,N,N,S:Windows:7::Windows Vista to 8.1
8192:128:1:52:M*,N,W*,N,N,S:Windows:8::Windows Vista to 8.1
64240:128:1:52:M*,N,W*,N,N,S:Windows:10::Windows 10 and 11
65535:128:1:52:M*,N,W*,N,N,S:Windows:10::Windows 10 and 11
64800:128:1:52:M*,N,W*,N,N,S:Windows:10::Windows 10 and 11 (IPv6)
