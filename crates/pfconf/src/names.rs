//! Names of services, protocols, users and groups, from the files in `/etc`.

use std::collections::HashMap;
use std::sync::LazyLock;

/// Names of services, protocols, users and groups.
#[derive(Debug, Clone, Default)]
pub struct Names {
    services: Vec<Service>,
    protocols: Vec<Protocol>,
    /// Port for TCP and port for UDP, by name and alias. The first of two services with one name
    /// counts.
    ports: HashMap<String, [Option<u16>; 2]>,
    /// Protocol numbers by name and alias. The first of two protocols with one name counts.
    numbers: HashMap<String, u8>,
    users: HashMap<String, u32>,
    groups: HashMap<String, u32>,
}

#[derive(Debug, Clone)]
struct Service {
    /// The official name, followed by the aliases.
    names: Vec<String>,
    port: u16,
    protocol: String,
}

#[derive(Debug, Clone)]
struct Protocol {
    /// The official name, followed by the aliases.
    names: Vec<String>,
    number: u8,
}

impl Names {
    /// Returns OpenBSD's names of all protocols and of the services that rule sets use most.
    pub fn builtin() -> &'static Names {
        static BUILTIN: LazyLock<Names> =
            LazyLock::new(|| Names::default().with(SERVICES, PROTOCOLS));
        &BUILTIN
    }

    /// Returns the built-in names, followed by those of the texts of `/etc/services` and
    /// `/etc/protocols`. Built-in names come first, so that a pf.conf means the same on most
    /// systems.
    pub fn parse(services: &str, protocols: &str) -> Names {
        Names::builtin().clone().with(services, protocols)
    }

    /// Takes users and groups from the texts of `/etc/passwd` and `/etc/group`. None are built in,
    /// because each system assigns its own numbers.
    pub fn with_owners(mut self, passwd: &str, group: &str) -> Names {
        self.users = owners(passwd);
        self.groups = owners(group);
        self
    }

    /// Returns the user id of a name.
    pub fn user(&self, name: &str) -> Option<u32> {
        self.users.get(name).copied()
    }

    /// Returns the group id of a name.
    pub fn group(&self, name: &str) -> Option<u32> {
        self.groups.get(name).copied()
    }

    /// Returns all names of users, for suggestions.
    pub fn user_names(&self) -> impl Iterator<Item = &str> {
        self.users.keys().map(String::as_str)
    }

    /// Returns all names of groups, for suggestions.
    pub fn group_names(&self) -> impl Iterator<Item = &str> {
        self.groups.keys().map(String::as_str)
    }

    fn with(mut self, services: &str, protocols: &str) -> Names {
        for mut words in lines(services) {
            let Some((port, protocol)) = words.get(1).and_then(|place| place.split_once('/'))
            else {
                continue;
            };
            let (Ok(port), protocol) = (port.parse(), protocol.to_string()) else {
                continue;
            };
            words.remove(1);
            if let Some(at) = ["tcp", "udp"].iter().position(|name| *name == protocol) {
                for name in &words {
                    let of_name = self.ports.entry(name.clone()).or_default();
                    of_name[at].get_or_insert(port);
                }
            }
            self.services.push(Service { names: words, port, protocol });
        }
        for mut words in lines(protocols) {
            let Some(Ok(number)) = words.get(1).map(|number| number.parse()) else {
                continue;
            };
            words.remove(1);
            for name in &words {
                self.numbers.entry(name.clone()).or_insert(number);
            }
            self.protocols.push(Protocol { names: words, number });
        }
        self
    }

    /// Returns the number of a protocol.
    pub fn protocol(&self, name: &str) -> Option<u8> {
        self.numbers.get(name).copied()
    }

    /// Returns the name of a protocol.
    pub fn protocol_name(&self, number: u8) -> Option<&str> {
        self.protocols
            .iter()
            .find(|protocol| protocol.number == number)
            .map(|p| p.names[0].as_str())
    }

    /// Returns the port of a service in host byte order: that for TCP, or else that for UDP.
    pub fn service(&self, name: &str) -> Option<u16> {
        let [tcp, udp] = *self.ports.get(name)?;
        tcp.or(udp)
    }

    /// Returns the name of the service at `port`, in host byte order. `protocol` is `tcp` or `udp`.
    pub fn service_name(&self, port: u16, protocol: &str) -> Option<&str> {
        self.services
            .iter()
            .find(|s| s.port == port && s.protocol == protocol)
            .map(|s| s.names[0].as_str())
    }

    /// Returns all names of protocols, for suggestions.
    pub fn protocol_names(&self) -> impl Iterator<Item = &str> {
        self.protocols.iter().flat_map(|protocol| &protocol.names).map(String::as_str)
    }

    /// Returns all names of services, for suggestions.
    pub fn service_names(&self) -> impl Iterator<Item = &str> {
        self.services.iter().flat_map(|service| &service.names).map(String::as_str)
    }
}

/// Returns the words of each line without comments. Lines of fewer than two words are left out.
fn lines(text: &str) -> impl Iterator<Item = Vec<String>> {
    text.lines()
        .map(|line| {
            line.split('#')
                .next()
                .unwrap_or_default()
                .split_whitespace()
                .map(str::to_string)
                .collect()
        })
        .filter(|words: &Vec<String>| words.len() >= 2)
}

/// Parses a text such as `/etc/passwd` or `/etc/group` to names and numbers. The first of two
/// entries with one name counts.
fn owners(text: &str) -> HashMap<String, u32> {
    let mut owners = HashMap::new();
    for line in text.lines() {
        let mut fields = line.split(':');
        let (Some(name), Some(number)) = (fields.next(), fields.nth(1)) else {
            continue;
        };
        if let Ok(number) = number.parse() {
            owners.entry(name.to_string()).or_insert(number);
        }
    }
    owners
}

/// Built-in protocols, in the format of `/etc/protocols`.
const PROTOCOLS: &str = "
ip 0 IP
icmp 1 ICMP
igmp 2 IGMP
ggp 3 GGP
ipencap 4 IP-ENCAP
st2 5 ST2
tcp 6 TCP
cbt 7 CBT
egp 8 EGP
igp 9 IGP
bbn-rcc-mon 10 BBN-RCC-MON
nvp-ii 11 NVP-II
pup 12 PUP
argus 13 ARGUS
emcon 14 EMCON
xnet 15 XNET
chaos 16 CHAOS
udp 17 UDP
mux 18 MUX
dcn-meas 19 DCN-MEAS
hmp 20 HMP
prm 21 PRM
xns-idp 22 XNS-IDP
trunk-1 23 TRUNK-1
trunk-2 24 TRUNK-2
leaf-1 25 LEAF-1
leaf-2 26 LEAF-2
rdp 27 RDP
irtp 28 IRTP
iso-tp4 29 ISO-TP4
netblt 30 NETBLT
mfe-nsp 31 MFE-NSP
merit-inp 32 MERIT-INP
dccp 33 DCCP
3pc 34 3PC
idpr 35 IDPR
xtp 36 XTP
ddp 37 DDP
idpr-cmtp 38 IDPR-CMTP
tp++ 39 TP++
il 40 IL
ipv6 41 IPv6 IPV6
sdrp 42 SDRP
ipv6-route 43 IPv6-Route
ipv6-frag 44 IPv6-Frag
idrp 45 IDRP
rsvp 46 RSVP
gre 47 GRE
dsr 48 DSR
bna 49 BNA
esp 50 ESP
ah 51 AH
i-nlsp 52 I-NLSP
swipe 53 SWIPE
narp 54 NARP
mobile 55 MOBILE
tlsp 56 TLSP
skip 57 SKIP
ipv6-icmp 58 IPv6-ICMP ICMPV6 icmpv6 icmp6
ipv6-nonxt 59 IPv6-NoNxt
ipv6-opts 60 IPv6-Opts
any 61
cftp 62 CFTP
any 63
sat-expak 64 SAT-EXPAK
kryptolan 65 KRYPTOLAN
rvd 66 RVD
ippc 67 IPPC
any 68
sat-mon 69 SAT-MON
visa 70 VISA
ipcv 71 IPCV
cpnx 72 CPNX
cphb 73 CPHB
wsn 74 WSN
pvp 75 PVP
br-sat-mon 76 BR-SAT-MON
sun-nd 77 SUN-ND
wb-mon 78 WB-MON
wb-expak 79 WB-EXPAK
iso-ip 80 ISO-IP
vmtp 81 VMTP
secure-vmtp 82 SECURE-VMTP
vines 83 VINES
ttp 84 TTP
nsfnet-igp 85 NSFNET-IGP
dgp 86 DGP
tcf 87 TCF
eigrp 88 EIGRP
ospf 89 OSPF OSPFIGP
sprite-rpc 90 SPRITE-RPC
larp 91 LARP
mtp 92 MTP
ax.25 93 AX.25
ipip 94 IPIP
micp 95 MICP
scc-sp 96 SCC-SP
etherip 97 ETHERIP
encap 98 ENCAP
any 99
gmtp 100 GMTP
ifmp 101 IFMP
pnni 102 PNNI
pim 103 PIM
aris 104 ARIS
scps 105 SCPS
qnx 106 QNX
a/n 107 A/N
ipcomp 108 IPComp
snp 109 SNP
compaq-peer 110 COMPAQ-PEER
ipx-in-ip 111 IPX-IN-IP
carp 112 CARP vrrp
pgm 113 PGM
l2tp 115 L2TP
sctp 132 SCTP
udplite 136 UDPLite
mpls 137 MPLS
hip 139 HIP
shim6 140 SHIM6
pfsync 240 PFSYNC
divert 254 DIVERT
reserved 255 RESERVED
";

/// Built-in services, in the format of `/etc/services`.
const SERVICES: &str = "
echo 7/tcp
echo 7/udp
discard 9/tcp
discard 9/udp
daytime 13/tcp
daytime 13/udp
ftp-data 20/tcp
ftp 21/tcp
ssh 22/tcp
telnet 23/tcp
smtp 25/tcp mail
time 37/tcp
time 37/udp
whois 43/tcp nicname
tacacs 49/tcp
domain 53/tcp
domain 53/udp
bootps 67/udp
bootpc 68/udp
tftp 69/udp
gopher 70/tcp
finger 79/tcp
www 80/tcp http
kerberos 88/tcp
kerberos 88/udp
pop3 110/tcp
sunrpc 111/tcp portmap rpcbind
sunrpc 111/udp portmap rpcbind
auth 113/tcp authentication tap ident
nntp 119/tcp readnews untp
ntp 123/tcp
ntp 123/udp
netbios-ns 137/tcp
netbios-ns 137/udp
netbios-dgm 138/tcp
netbios-dgm 138/udp
netbios-ssn 139/tcp
netbios-ssn 139/udp
imap 143/tcp imap2
snmp 161/udp
snmp-trap 162/udp snmptrap
bgp 179/tcp
irc 194/tcp
ldap 389/tcp
ldap 389/udp
https 443/tcp
https 443/udp
smtps 465/tcp submissions
microsoft-ds 445/tcp
microsoft-ds 445/udp
isakmp 500/udp
exec 512/tcp
biff 512/udp comsat
login 513/tcp
who 513/udp whod
shell 514/tcp cmd
syslog 514/udp
printer 515/tcp spooler
route 520/udp router routed
dhcpv6-client 546/udp
dhcpv6-server 547/udp
rtsp 554/tcp
submission 587/tcp
ipp 631/tcp
ldaps 636/tcp
domain-s 853/tcp
domain-s 853/udp
rsync 873/tcp
imaps 993/tcp
pop3s 995/tcp
socks 1080/tcp
openvpn 1194/udp
l2tp 1701/udp
pptp 1723/tcp
radius 1812/udp
radacct 1813/udp
nfsd 2049/tcp nfs
nfsd 2049/udp nfs
cvspserver 2401/tcp
iscsi 3260/tcp
mysql 3306/tcp
rdp 3389/tcp
svn 3690/tcp
ipsec-nat-t 4500/udp ipsec-msft
sip 5060/tcp
sip 5060/udp
sips 5061/tcp
postgresql 5432/tcp
x11 6000/tcp
ircd 6667/tcp
ftp-proxy 8021/tcp
spamd 8025/tcp
spamd-cfg 8026/tcp
git 9418/tcp
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_system_adds_names() {
        let names = Names::parse("fancy 4711/udp fncy # no such thing\nbroken\n", "odd 253 ODD");
        assert_eq!(names.service("fncy"), Some(4711));
        assert_eq!(names.service("http"), Some(80));
        assert_eq!(names.protocol("ODD"), Some(253));
        assert_eq!(names.protocol_name(58), Some("ipv6-icmp"));
        assert_eq!(names.service_name(53, "udp"), Some("domain"));
    }

    #[test]
    fn owners_are_those_of_the_system() {
        let passwd =
            "root:x:0:0:root:/root:/bin/sh\nftp:*:21:22::/:\n#ftp:*:1:1::/:\nbroken\nftp::7:7\n";
        let names = Names::default().with_owners(passwd, "wheel:*:10:root\n");
        assert_eq!(
            (names.user("root"), names.user("ftp"), names.user("bin")),
            (Some(0), Some(21), None)
        );
        assert_eq!((names.group("wheel"), names.group("root")), (Some(10), None));
    }
}
