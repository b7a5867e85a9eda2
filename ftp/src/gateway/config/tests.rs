use super::*;

fn mistake(text: &str) -> String {
    Config::parse("gw", text).unwrap_err().to_string()
}

#[test]
fn the_example_is_right() {
    let example = include_str!("../../../../examples/ftp-gw.conf");
    let config = Config::parse("ftp-gw.conf", example).unwrap();
    assert!(!config.listen.is_empty() && !config.transparent.is_empty());
}

#[test]
fn the_manual_page_has_every_key() {
    let page = include_str!("../../../../man/ftp-gw.conf.5");
    let keys = "listen transparent user accounts shovel data-ports server-data source sessions \
                sessions-per-client login-failures connect login idle data action from to ports \
                users commands";
    for key in keys.split_whitespace() {
        assert!(page.contains(&format!("\n.It Cm {key}")), "{key}");
    }
}

#[test]
fn missing_keys_have_defaults() {
    let config = Config::parse("gw", "listen = [\"[::1]:21\"]").unwrap();
    assert_eq!(config.data_ports, 49_152..=65_535);
    assert_eq!(config.server_data, Mode::Passive);
    assert_eq!(config.timeouts.idle, Duration::from_secs(900));
}

#[test]
fn a_mistake_says_where_it_is() {
    assert_eq!(
        mistake("listen = [\"127.0.0.1:21\"]\n[timeouts]\nidle = 0\n"),
        "gw:3: out of range\n  idle = 0\n         ^\nhelp: a number from 1 to 86400"
    );
    assert!(mistake("lisen = []").starts_with("gw:1: unknown field `lisen`"));
    assert!(
        mistake("listen = [\n\"127.0.0.1\"]")
            .starts_with("gw:2: '127.0.0.1' is not a valid address")
    );
    assert!(mistake("listen = [").starts_with("gw:1: "));
}

#[test]
fn every_word_has_its_mistakes() {
    for (wrong, what) in [
        ("shovel = \"511\"", "shovel"),
        ("shovel = \"2M\"", "shovel"),
        ("data-ports = \"80-90\"", "range of ports"),
        ("data-ports = \"2000-1999\"", "range of ports"),
        ("server-data = \"both\"", "way to data connections"),
        ("source = [\"::1\", \"::2\"]", "two sources"),
        ("[limits]\nsessions = 0", "out of range"),
        ("[limits]\nsession = 1", "unknown field"),
        ("[[rule]]", "missing field `action`"),
        ("[[rule]]\naction = \"pass\"", "action"),
        ("[[rule]]\naction = \"allow\"\nfrom = [\"10.0.0.0/33\"]", "network"),
        ("[[rule]]\naction = \"allow\"\nto = [\"a b\"]", "server"),
        ("[[rule]]\naction = \"allow\"\nports = [0]", "not a port"),
        ("[[rule]]\naction = \"allow\"\ncommands = [\"retr\"]", "command"),
        ("[[rule]]\naction = \"allow\"\naccounts = [\"a\"]", "there are no accounts"),
        ("[[rule]]\naction = \"deny\"\ncommands = [\"@read\"]", "that denies"),
        ("[[rule]]\naction = \"deny\"\nusers = [\"ftp\"]", "that denies"),
    ] {
        let said = mistake(&format!("listen = [\"[::1]:21\"]\n{wrong}"));
        assert!(said.contains(what), "{wrong}: {said}");
        assert!(said.contains("\nhelp: "), "{wrong}: {said}");
    }
    assert!(mistake("").contains("no address to listen on"));
}
