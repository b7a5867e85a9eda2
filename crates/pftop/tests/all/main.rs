//! pftop on a terminal in memory, with a filter in memory.

mod fake;

use std::time::{Duration, Instant};

use fake::{Fake, state};
use pftop::app::App;
use pftop::glyphs::Glyphs;
use pftop::keys::{Effect, press};
use pftop::options::{self, Options};
use pftop::screen::{Look, draw};
use pftop::view::View;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::style::{Color, Modifier};
use skipstep_abi::LogRecord;
use skipstep_abi::verdict::{action, direction};
use skipstep_kernel::DroppedPacket;
use skipstep_ruleset::Reason;
use skipstep_views::StateView;
use skipstep_wire::build::{Tcp, ipv4};
use skipstep_wire::pcap::{FileHeader, PFLOG, PFLOG_HEADER, RecordHeader};
use zerocopy::FromZeros;

const LOOK: Look = Look { glyphs: Glyphs::UNICODE, has_colours: true };

/// pftop, its filter and its terminal.
struct Session {
    app: App,
    filter: Fake,
    terminal: Terminal<TestBackend>,
    look: Look,
    now: Instant,
}

impl Session {
    /// Starts pftop with a command line on a terminal of 80x24.
    fn start(line: &str, states: Vec<StateView>) -> Session {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        Session::with(&options::parse(&words).unwrap(), states)
    }

    fn with(options: &Options, states: Vec<StateView>) -> Session {
        let mut session = Session {
            app: App::new(options),
            filter: Fake::new(states),
            terminal: Terminal::new(TestBackend::new(80, 24)).unwrap(),
            look: LOOK,
            now: Instant::now(),
        };
        session.read();
        session
    }

    /// Reads the filter five seconds after the last reading.
    fn read(&mut self) {
        self.now += Duration::from_secs(5);
        self.app.refresh(&mut self.filter, self.now).unwrap();
    }

    fn key(&mut self, code: KeyCode, modifiers: KeyModifiers) -> Effect {
        let effect = press(&mut self.app, KeyEvent::new(code, modifiers), Some(&mut self.filter));
        if effect == Effect::Read {
            self.read();
        }
        effect
    }

    /// Types characters; `\n` is Enter and `\x1b` is Esc.
    fn types(&mut self, text: &str) {
        for character in text.chars() {
            let code = match character {
                '\n' => KeyCode::Enter,
                '\u{1b}' => KeyCode::Esc,
                other => KeyCode::Char(other),
            };
            self.key(code, KeyModifiers::NONE);
        }
    }

    fn buffer(&mut self) -> Buffer {
        let (app, look) = (&mut self.app, self.look);
        self.terminal.draw(|frame| draw(frame, app, look)).unwrap();
        self.terminal.backend().buffer().clone()
    }

    /// Returns the lines of the screen without blanks at their ends.
    fn screen(&mut self) -> Vec<String> {
        let buffer = self.buffer();
        let width = usize::from(buffer.area.width);
        let symbols: Vec<&str> = buffer.content.iter().map(|cell| cell.symbol()).collect();
        symbols.chunks(width).map(|line| line.concat().trim_end().to_owned()).collect()
    }

    fn line(&mut self, index: usize) -> String {
        self.screen()[index].clone()
    }

    fn last(&mut self) -> String {
        self.screen().pop().unwrap()
    }

    /// Returns the third column of the rows on the screen.
    fn sources(&mut self) -> Vec<String> {
        let lines = self.screen()[3..21].to_vec();
        let words = lines.iter().filter_map(|line| line.split_whitespace().nth(2));
        words.map(|word| word.split(':').next().unwrap().to_owned()).collect()
    }
}

fn three_states() -> Vec<StateView> {
    vec![
        state(1, "10.0.1.7", 22, 5_000),
        state(2, "10.0.1.5", 80, 900_000),
        state(3, "10.0.1.6", 22, 70_000_000),
    ]
}

#[test]
fn states_have_addresses_ages_and_counters() {
    let mut session = Session::start("", three_states());
    let screen = session.screen();
    assert!(screen[0].starts_with("pftop: 1-3 of 3, view default, order none, every 5 s"));
    assert_eq!(screen[1], "3 of 100000 states");
    assert_eq!(
        screen[2],
        "PR   DIR SRC                  DEST                 STATE   AGE   EXP  PKTS BYTES"
    );
    assert_eq!(
        screen[4],
        "tcp  In  10.0.1.5:40002       10.0.1.1:80          4:4      1h   22h  9001  878K"
    );
    assert_eq!(screen[21], "em0 tcp 10.0.1.1:22 <- 10.0.1.7:40001 ESTABLISHED:ESTABLISHED");
    assert_eq!(
        screen[22],
        "rule 1 (pf.conf:3, label ssh), 50:1 packets, 5000:0 bytes, id 0000000000000001"
    );
    session.terminal.backend_mut().resize(120, 24);
    let wide = session.screen();
    assert!(wide[4].contains("ESTABLISHED:ESTABLISHED  01:00:21  22:57:57"), "{}", wide[4]);
}

#[test]
fn keys_sort_states() {
    let mut session = Session::start("-o bytes", three_states());
    assert_eq!(session.sources(), ["10.0.1.6", "10.0.1.5", "10.0.1.7"]);
    session.types("r");
    assert_eq!(session.sources(), ["10.0.1.7", "10.0.1.5", "10.0.1.6"]);
    session.types("rF");
    assert_eq!(session.sources(), ["10.0.1.5", "10.0.1.6", "10.0.1.7"]);
    session.types("A");
    assert_eq!(session.sources(), ["10.0.1.7", "10.0.1.5", "10.0.1.6"], "the oldest first");
    session.types("D");
    assert_eq!(session.sources(), ["10.0.1.7", "10.0.1.6", "10.0.1.5"], "ports 22, 22 and 80");
    session.types("N");
    assert_eq!(session.sources(), ["10.0.1.7", "10.0.1.5", "10.0.1.6"]);
    session.types("o");
    assert!(session.line(0).contains("order bytes"));
    session.types("X");
    assert_eq!(session.last(), "the view default has no order X");
}

#[test]
fn rates_are_those_since_the_last_reading() {
    let mut session = Session::start("-v speed -o rate", three_states());
    let row = session.line(3);
    assert_eq!(row.split_whitespace().nth(4), Some("-"), "{row}");
    session.filter.states[1].bytes = [950_000, 0];
    session.read();
    let row = session.line(3);
    assert!(row.starts_with("tcp  In  10.0.1.5:40002"), "{row}");
    assert_eq!(row.split_whitespace().nth(4), Some("10000"), "{row}");
}

#[test]
fn a_filter_has_words_of_pf() {
    let mut session = Session::start("", three_states());
    for (words, sources) in [
        ("proto tcp port 22", &["10.0.1.7", "10.0.1.6"][..]),
        ("in on em0 from 10.0.1.5", &["10.0.1.5"]),
        ("on em1", &[]),
        ("out", &[]),
        ("from <bad>", &[]),
        ("to port { 80 443 }", &["10.0.1.5"]),
        ("rule 1", &["10.0.1.7", "10.0.1.6"]),
        ("rule web/0", &["10.0.1.5"]),
        ("label ssh from ! 10.0.1.6", &["10.0.1.7"]),
        ("label none", &[]),
        ("", &["10.0.1.7", "10.0.1.5", "10.0.1.6"]),
    ] {
        session.types("f");
        session.key(KeyCode::Char('u'), KeyModifiers::CONTROL);
        session.types(words);
        assert_eq!(session.last(), format!("filter: {words}_"));
        session.types("\n");
        if sources.is_empty() {
            let remedy = match words.split_whitespace().any(|word| word == "on") {
                true => "Floating states are on no interface: set state-policy",
                false => "f changes the filter.",
            };
            assert_eq!(session.line(3), format!("The filter has no state. {remedy}"));
        } else {
            assert_eq!(session.sources(), sources, "{words}");
        }
        let shown = session.line(1).contains(&format!("filter: {words},"));
        assert_eq!(shown, !words.is_empty(), "{words}");
    }
}

#[test]
fn a_wrong_filter_stays_on_the_line() {
    let mut session = Session::start("", three_states());
    for (words, message) in [
        ("port 22 22", "syntax error"),
        ("rule x", "rule x: give the number of a rule, as in rule 3 or rule ssh/0"),
        ("label", "label: its value is missing"),
        ("on em0 label ssh", "a state has no such property: use in, out, on, inet, proto, from,"),
        ("proto tcp flags S/SA", "a state has no such property: use in, out,"),
        ("user root", "a state has no such property: use in, out,"),
        ("from <good>", "good: no such table"),
    ] {
        session.types("f");
        session.types(words);
        session.types("\n");
        assert_eq!(session.last(), format!("filter: {words}_"));
        let error = session.line(22);
        assert!(error.starts_with(message), "{error}");
        assert_eq!(session.sources().len(), 3);
        session.types("\u{1b}");
        assert!(session.last().starts_with("Enter rule"), "{}", session.last());
    }
}

#[test]
fn the_end_of_a_long_input_is_seen() {
    let mut session = Session::start("", three_states());
    session.types("f");
    session.types(&"10.0.0.1 ".repeat(20));
    session.types("end");
    let last = session.last();
    assert!(last.starts_with("filter: ") && last.ends_with("10.0.0.1 end_"), "{last}");
    assert_eq!(last.chars().count(), 80);
}

#[test]
fn a_state_is_killed_after_a_question() {
    let mut session = Session::start("-o bytes", three_states());
    session.key(KeyCode::Down, KeyModifiers::NONE);
    session.types("k");
    let question = "Kill it? [y/N] em0 tcp 10.0.1.1:80 <- 10.0.1.5:40002 ESTABLISHED:ESTABLISHED";
    assert_eq!(session.last(), question);
    session.types("n");
    assert_eq!(session.last(), "nothing was killed");
    session.types("k\n");
    assert!(session.filter.killed.borrow().is_empty());
    session.types("ky");
    assert_eq!(session.last(), "killed the state");
    assert_eq!(*session.filter.killed.borrow(), [2]);
    session.types("k");
    session.filter.states.remove(1);
    session.read();
    session.types("y");
    assert_eq!(session.last(), "the state has ended by itself");
    assert_eq!(*session.filter.killed.borrow(), [2, 2], "and no other state");
    session.types("5k");
    assert_eq!(session.last(), "put the cursor on a state, then k kills it");
}

#[test]
fn rules_have_bars_and_lead_to_their_states() {
    let mut session = Session::start("-v rules", three_states());
    let buffer = session.buffer();
    let screen = session.screen();
    assert!(screen[3].starts_with("0      ██       "), "{}", screen[3]);
    assert!(screen[3].contains("block drop log all"), "{}", screen[3]);
    assert!(screen[4].contains("████") && screen[4].contains(" pass in on em0"), "{}", screen[4]);
    assert!(screen[5].starts_with("2               "), "no packet: {}", screen[5]);
    assert!(screen[6].starts_with("web/0 "), "{}", screen[6]);
    assert_eq!(screen[7].split_whitespace().next(), Some("web/1"));
    assert_eq!(screen[8].split_whitespace().next(), Some("3"));
    let text = screen[3].find("block").map(|at| screen[3][..at].chars().count()).unwrap();
    assert_eq!(buffer[(text as u16, 3)].fg, Color::Red);
    assert_eq!(buffer[(text as u16, 4)].fg, Color::Green);
    assert!(buffer[(0, 3)].modifier.contains(Modifier::REVERSED), "the cursor");

    session.key(KeyCode::Down, KeyModifiers::NONE);
    assert!(
        session
            .line(22)
            .starts_with("rule 1 (pf.conf:3, label ssh): packets 200, evaluations 1000, ")
    );
    session.types("\n");
    assert!(session.line(0).contains("view default") && session.line(1).contains("filter: rule 1"));
    assert_eq!(session.sources(), ["10.0.1.7", "10.0.1.6"]);
    session.types("\n");
    assert!(session.line(0).contains("view rules"), "the rule of a state");
    let rule = session.line(22);
    assert!(rule.starts_with("rule 1 (pf.conf:3, label ssh)"), "{rule}");
    session.types("\u{1b}\u{1b}");
    assert!(session.line(0).contains("view rules") && session.line(22).starts_with("rule 1 "));
    session.types("0");
    assert_eq!(session.sources().len(), 3, "the filter is as before");
}

#[test]
fn no_text_commands_the_terminal() {
    for view in View::ALL {
        let options = Options { view, ..Options::default() };
        let mut session = Session::with(&options, three_states());
        session.filter.states[0].tag = Some("a\u{1b}]0;x\u{7}".into());
        session.filter.dropped = vec![dropped(Reason::Match, 0)];
        session.read();
        let buffer = session.buffer();
        for cell in &buffer.content {
            assert!(!cell.symbol().chars().any(char::is_control), "{}: {cell:?}", view.name());
        }
    }
    let mut session = Session::start("-v label", Vec::new());
    assert!(session.line(3).contains("evil\\u{1b}[2J"), "{}", session.line(3));
}

#[test]
fn colours_can_be_off() {
    for view in View::ALL {
        let options = Options { view, ..Options::default() };
        let mut session = Session::with(&options, three_states());
        session.look = Look { has_colours: false, ..LOOK };
        session.filter.running = false;
        session.read();
        let buffer = session.buffer();
        assert!(session.line(1).starts_with("filter disabled") || view.name() == "drops");
        for cell in &buffer.content {
            assert_eq!((cell.fg, cell.bg), (Color::Reset, Color::Reset), "{}", view.name());
        }
    }
}

#[test]
fn every_view_fits_every_terminal() {
    let many: Vec<_> = (0..300).map(|id| state(id, "10.0.1.9", 22, id * 1000)).collect();
    for view in View::ALL {
        let options = Options { view, ..Options::default() };
        let mut session = Session::with(&options, many.clone());
        for (width, height) in [(1, 1), (39, 24), (40, 7), (40, 8), (80, 24), (200, 60), (33, 300)]
        {
            session.terminal.backend_mut().resize(width, height);
            for keys in ["", "h", " ", "f", "\u{1b}"] {
                session.types(keys);
                let screen = session.screen();
                let is_small = width < 40 || height < 8;
                assert_eq!(screen.concat().contains("pftop:"), !is_small, "{width}x{height}");
                let says = screen.concat().replace('\n', "").contains("too small");
                assert_eq!(says, is_small && width * height > 40, "{width}x{height}: {screen:?}");
            }
        }
    }
}

#[test]
fn the_cursor_moves_the_page() {
    let many: Vec<_> = (0..100).map(|id| state(id, "10.0.1.9", 22, id * 1000)).collect();
    let mut session = Session::start("", many);
    assert!(session.line(0).starts_with("pftop: 1-18 of 100"));
    session.key(KeyCode::End, KeyModifiers::NONE);
    assert!(session.line(0).starts_with("pftop: 83-100 of 100"), "{}", session.line(0));
    session.key(KeyCode::Up, KeyModifiers::NONE);
    assert!(session.line(0).starts_with("pftop: 83-100 of 100"));
    session.key(KeyCode::PageUp, KeyModifiers::NONE);
    assert!(session.line(0).starts_with("pftop: 81-98 of 100"), "{}", session.line(0));
    session.key(KeyCode::Home, KeyModifiers::NONE);
    assert!(session.line(0).starts_with("pftop: 1-18 of 100"), "{}", session.line(0));
    session.key(KeyCode::Char('v'), KeyModifiers::CONTROL);
    assert!(session.line(0).starts_with("pftop: 2-19 of 100"), "{}", session.line(0));
    session.types("n5\n");
    assert!(session.line(0).contains(" of 100") && session.sources().len() == 5);
    session.types("n0\n");
    assert_eq!(session.sources().len(), 18);
    session.filter.states.truncate(4);
    session.read();
    assert!(session.line(0).starts_with("pftop: 1-4 of 4"), "{}", session.line(0));
}

#[test]
fn without_rules_pftop_says_what_to_do() {
    let mut app = App::new(&Options::default());
    let mut terminal = Terminal::new(TestBackend::new(80, 24)).unwrap();
    terminal.draw(|frame| draw(frame, &mut app, LOOK)).unwrap();
    let text: String =
        terminal.backend().buffer().content.iter().map(|cell| cell.symbol()).collect();
    assert!(
        text.contains("No rules are loaded. Load rules and enable the filter: pfctl -ef /etc/pf")
    );
    let key = KeyEvent::new(KeyCode::Char('k'), KeyModifiers::NONE);
    assert_eq!(press(&mut app, key, None), Effect::Draw);
    let key = KeyEvent::new(KeyCode::Char('q'), KeyModifiers::NONE);
    assert_eq!(press(&mut app, key, None), Effect::Quit);
}

#[test]
fn seconds_and_pauses() {
    let mut session = Session::start("-s 2", three_states());
    assert!(session.line(0).contains("every 2 s"));
    session.types("s0\n");
    assert_eq!(session.last(), "seconds between updates: 0_");
    assert_eq!(session.line(22), "seconds 0: too small");
    session.types("\u{1b}s10\n");
    assert!(session.line(0).contains("every 10 s"));
    session.types("p");
    assert!(session.line(0).contains("PAUSED"));
    session.types("p?");
    assert_eq!(session.last(), "any key goes back");
    assert!(session.screen().iter().any(|line| line.starts_with("k               kill the state")));
    session.types("x");
    assert!(session.line(3).starts_with("tcp "));
}

#[test]
fn queues_interfaces_and_tables_have_rows() {
    let mut session = Session::start("-v queue", three_states());
    assert_eq!(session.line(3).split_whitespace().collect::<Vec<_>>()[..2], ["main", "em0"]);
    let words: Vec<String> = session.line(4).split_whitespace().map(str::to_owned).collect();
    assert_eq!(words[..6], ["std", "em0", "12", "3456", "7", "2/50"]);
    session.types("9P");
    let words: Vec<String> = session.line(3).split_whitespace().map(str::to_owned).collect();
    assert_eq!(words[..3], ["em0", "3", "1"], "states and rules");
    assert_eq!(words[5..8], ["1180", "2000", "3"], "{words:?}");
    session.types("\n");
    assert!(session.line(1).contains("filter: on em0"), "{}", session.line(1));
    assert_eq!(session.sources().len(), 3);
    session.types("t");
    let words: Vec<String> = session.line(3).split_whitespace().map(str::to_owned).collect();
    assert_eq!(words[..7], ["bad", "--a-r--", "1", "4", "5", "48", "56"]);
}

fn dropped(reason: Reason, rule: i32) -> DroppedPacket {
    let mut record = LogRecord::new_zeroed();
    record.ifname[..3].copy_from_slice(b"em0");
    (record.rule, record.anchor_rule) = (rule, -1);
    (record.family, record.direction) = (skipstep_abi::INET, direction::IN);
    (record.reason, record.action) = (reason as u8, action::BLOCK);
    let data = ipv4([10, 0, 1, 5], [10, 0, 1, 1]).tcp(&Tcp::new(4000, 23).flags("S"));
    record.wirelen = data.len() as u32;
    DroppedPacket { record, data }
}

#[test]
fn drops_are_counted_by_kind() {
    let mut session = Session::start("-v drops", Vec::new());
    assert_eq!(session.line(3), "No packet was dropped since this view is open.");
    session.filter.dropped =
        vec![dropped(Reason::Match, 0), dropped(Reason::Match, 0), dropped(Reason::Short, -1)];
    session.app.take_drops(&mut session.filter).unwrap();
    session.types("P ");
    let screen = session.screen();
    assert!(
        screen[3].starts_with("     2     0 match     In  em0    0 pf.conf:2"),
        "{}",
        screen[3]
    );
    assert!(screen[4].starts_with("     1     0 short     In  em0    -  "), "{}", screen[4]);
    assert!(screen[21].starts_with("tcp 10.0.1.5:4000 > 10.0.1.1:23 S"), "{}", screen[21]);
    session.types("freason short\n");
    assert!(session.line(3).starts_with("No packet of the filter"), "a new filter counts anew");
    session.filter.dropped = vec![dropped(Reason::Match, 0), dropped(Reason::Short, -1)];
    session.read();
    assert!(session.line(0).starts_with("pftop: 1-1 of 1"), "{}", session.line(0));
    session.types("f");
    session.key(KeyCode::Char('u'), KeyModifiers::CONTROL);
    session.types("reason long\n");
    assert!(session.line(22).starts_with("reason long: no such reason"), "{}", session.line(22));
    session.types("\u{1b}f");
    session.key(KeyCode::Char('u'), KeyModifiers::CONTROL);
    session.types("\n");
    session.filter.dropped = vec![dropped(Reason::Match, 0)];
    session.read();
    session.types("\n");
    assert!(session.line(22).starts_with("rule 0 (pf.conf:2, label evil"), "{}", session.line(22));
    assert!(!session.filter.watches_drops, "nobody looks any more");
    session.types("\u{1b}");
    assert!(session.line(0).contains("view drops") && session.filter.watches_drops);
}

#[test]
fn a_rule_leads_to_its_log() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("pflog").display().to_string();
    let options = Options { view: View::Rules, log: log.clone(), ..Options::default() };
    let mut session = Session::with(&options, Vec::new());
    session.key(KeyCode::Down, KeyModifiers::NONE);
    session.types("l");
    assert!(session.last().starts_with("rule 1 does not log: add log to it"), "{}", session.last());

    let record = |rule: u32, port: u16| {
        let mut header = vec![0; PFLOG_HEADER];
        (header[2], header[60]) = (1, 1);
        header[4..7].copy_from_slice(b"em0");
        header[36..40].copy_from_slice(&rule.to_be_bytes());
        header[40..44].fill(0xff);
        let packet = ipv4([10, 0, 1, 5], [10, 0, 1, 1]).tcp(&Tcp::new(4000, port).flags("S"));
        let bytes = [header, packet].concat();
        let length = bytes.len() as u32;
        let time = Duration::from_secs(1_700_000_000);
        let header = RecordHeader { time, captured: length, length };
        [&header.to_bytes()[..], &bytes].concat()
    };
    let header = FileHeader::new(PFLOG, 260).to_bytes().to_vec();
    let contents = [header, record(0, 23), record(1, 24), record(0, 25)].concat();
    std::fs::write(format!("{log}0"), contents).unwrap();
    session.key(KeyCode::Up, KeyModifiers::NONE);
    session.types("l");
    let screen = session.screen();
    assert!(screen[0].starts_with("pftop: 1-2 of 2, view log of rule 0, "), "{}", screen[0]);
    assert!(
        screen[3]
            .ends_with(" block  in  em0    match    tcp 10.0.1.5:4000 > 10.0.1.1:25 S seq 0 win…"),
        "{}",
        screen[3]
    );
    assert!(screen[4].contains("> 10.0.1.1:23"), "{}", screen[4]);
    session.types("\u{1b}");
    assert!(session.line(0).contains("view rules"));
}

#[test]
fn a_load_is_followed() {
    let mut session = Session::start("-v rules", Vec::new());
    assert!(session.line(0).contains(" of 6,"), "{}", session.line(0));
    session.filter.ruleset.rules.truncate(1);
    session.read();
    assert!(session.line(0).contains(" of 6,"), "the generation is the same");
    session.filter.generation += 1;
    session.read();
    assert!(session.line(0).contains(" of 3,"), "{}", session.line(0));
}

#[test]
fn batch_output_has_the_same_lines() {
    let words = ["-b", "-v", "size", "-o", "bytes", "2"].map(str::to_owned);
    let options = options::parse(&words).unwrap();
    let mut session = Session::with(&options, three_states());
    let text = pftop::batch::text(&mut session.app, &options);
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].starts_with("pftop: 1-2 of 3, view size, order bytes"), "{text}");
    assert!(
        lines[2]
            .starts_with("PR   DIR SRC                  DEST                  PKTS BYTES STATE")
    );
    assert!(lines[3].starts_with("tcp  In  10.0.1.6:40003") && lines.len() == 5, "{text}");
    let all = Options { all: true, ..options };
    assert_eq!(pftop::batch::text(&mut session.app, &all).lines().count(), 6);
}
