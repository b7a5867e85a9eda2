//! pf.conf(5) against what it describes.

use skipstep_pfconf::{Context, Names, load};
use skipstep_ruleset::interface::{Host, Interface};
use skipstep_ruleset::support::refusals;
use skipstep_ruleset::{Timeout, Timeouts};

const PAGE: &str = include_str!("../../../man/pf.conf.5");

/// The page from the head of section `name` to that of the next one.
fn section(name: &str) -> &'static str {
    let heading = format!(".Sh {name}\n");
    let (_, text) = PAGE.split_once(&heading).expect("the section is there");
    text.split("\n.Sh ").next().unwrap_or_default()
}

/// The texts that a section shows as they are written in a file.
fn shown(section: &str) -> Vec<String> {
    let blocks = section.split(".Bd -literal").skip(1);
    let texts = blocks.filter_map(|block| block.split_once('\n')?.1.split(".Ed").next());
    texts.map(|text| text.replace("\\e", "\\")).collect()
}

#[test]
fn what_it_shows_can_be_loaded() {
    let em0 = Interface { name: "em0".to_string(), index: 1, ..Interface::default() };
    let host = Host { interfaces: vec![em0], routes: Vec::new() };
    let context = Context::new(&host);
    for (name, count) in [
        ("LEXICAL MATTERS", 1),
        ("ANTISPOOF", 1),
        ("ANCHORS", 1),
        ("QUEUES", 1),
        ("LIMITERS", 1),
        ("EXAMPLES", 3),
    ] {
        let texts = shown(section(name));
        assert_eq!(texts.len(), count, "{name}");
        for text in texts {
            if let Err(refused) = load(&text, &context) {
                panic!("{name}: {}\n{text}", refused.diagnostics[0].explain());
            }
        }
    }
}

#[test]
fn timeouts_have_the_values_it_says() {
    let words: Vec<&str> = section("OPTIONS").split_whitespace().collect();
    let defaults = Timeouts::default();
    for timeout in Timeout::ALL {
        let value = defaults.get(timeout).to_string();
        let said = words.windows(3).any(|three| {
            // `.Cm udp.first Ta 60` in the table, `.Cm adaptive.start` and `.Pq 60000` in the text
            three[0] == timeout.name() && (three[1] == "Ta" && three[2] == value)
        });
        let adaptive = matches!(timeout, Timeout::AdaptiveStart | Timeout::AdaptiveEnd);
        assert!(said || adaptive && words.contains(&value.as_str()), "{}", timeout.name());
    }
}

/// Who builds something takes it off the page, and who refuses something puts it there.
#[test]
fn what_it_calls_not_built_is_what_is_refused() {
    let em0 = Interface { name: "em0".to_string(), index: 1, ..Interface::default() };
    let host = Host { interfaces: vec![em0], routes: Vec::new() };
    let names = Names::builtin().clone().with_owners("root::0:", "wheel::0:");
    let read_file = |_: &str| Ok(String::new());
    let context = Context { names: &names, read_file: &read_file, ..Context::new(&host) };
    let page = section("NOT BUILT");
    let commands = page.lines().filter_map(|line| line.strip_prefix(".Cm "));
    let named: Vec<&str> =
        commands.flat_map(|line| line.split([',', ';'])).map(str::trim).collect();
    for (feature, text) in [
        ("nat-to", "match out nat-to 10.0.0.1"),
        ("rdr-to", "pass in rdr-to 10.0.0.1"),
        ("nat-to", "pass from 10.0.0.1 binat-to 10.0.0.2"),
        ("af-to", "pass in inet af-to inet6 from ::1"),
        ("route-to", "pass in route-to 10.0.0.1"),
        ("reply-to", "pass in reply-to 10.0.0.1"),
        ("dup-to", "pass in dup-to 10.0.0.1"),
        ("rtable", "pass rtable 1"),
        ("rdomain", "pass on rdomain 1"),
        ("divert-to", "pass in divert-to 10.0.0.1 port 1"),
        ("divert-reply", "pass out divert-reply"),
        ("divert-packet", "pass divert-packet port 1"),
        ("user", "pass proto tcp user root"),
        ("group", "pass proto tcp group wheel"),
        ("queue", "queue a on em0 bandwidth 1M default"),
        ("set delay", "match set delay 10"),
        ("source-track", "pass keep state (source-track)"),
        ("source-track", "pass keep state (max-src-conn 1, overload <t>)"),
        ("modulate state", "pass modulate state"),
        ("synproxy state", "pass in proto tcp synproxy state"),
        ("pflow", "pass keep state (pflow)"),
        ("syncookies", "set syncookies always"),
        ("once", "pass once"),
        ("max-pkt-rate", "pass max-pkt-rate 1/1"),
        ("log (user)", "pass log (user)"),
        ("max-pkt-size", "pass max-pkt-size 100"),
        ("port of sctp", "pass proto sctp to port 9"),
        ("endpoint-independent", "nat on em0 from any to any -> 10.0.0.1 endpoint-independent"),
        ("map-e-portset", "nat on em0 from any to any -> 10.0.0.1 map-e-portset 6/8/0x34"),
        ("prefer-ipv6-nexthop", "pass in route-to ::1 prefer-ipv6-nexthop"),
        ("reassemble tcp", "match scrub (reassemble tcp)"),
    ] {
        // `log Pq Cm user` is how the page writes `log (user)`.
        let written = feature.replace("log (user)", "log Pq Cm user");
        let as_setting = format!("set {written}");
        let not_built = named.iter().any(|name| *name == written || *name == as_setting);
        let loaded = load(&format!("pass\n{text}\n"), &context).expect(text);
        let features: Vec<_> =
            refusals(&loaded.ruleset).into_iter().map(|refusal| refusal.feature).collect();
        assert_eq!(features.contains(&feature), not_built, "{text}: {features:?}");
    }
}
