//! Parses tokens to a program. After an error the parser skips the statement and continues.

use std::collections::{HashMap, HashSet};
use std::net::Ipv4Addr;

use skipstep_pfconf::suggest;

use super::lexer::{Kind, Lexer, Token};
use super::{Action, Application, Filter, Program, Statement, Target, Tests};
use crate::messages::{Messages, Place};
use crate::ranges::{ADDRESS, PORT, PROTOCOL, Ranges};

/// Longest name of a filter, in bytes: it becomes part of a tag.
const LONGEST_NAME: usize = 48;
/// Longest name of a network interface, in bytes.
const LONGEST_INTERFACE: usize = 15;
/// Highest fragment offset, in units of 8 bytes.
const OFFSET: u32 = 0x1fff;

/// The mark of an error that is already among the messages.
struct Wrong;

type Parse<T> = Result<T, Wrong>;

/// Parses a program. Adds errors to `messages`.
pub fn parse(text: &str, messages: &mut Messages) -> Program {
    let mut lexer = Lexer::new(text);
    let token = lexer.token();
    let mut parser = Parser { lexer, token, previous_end: 0, messages };
    let mut program = Program::default();
    while parser.token.kind != Kind::End && !parser.messages.is_full() {
        match parser.token.kind {
            Kind::Word("filter") => {
                if let Ok(filter) = parser.filter(text) {
                    program.filters.push(filter);
                }
            }
            Kind::Word("apply") => match parser.application() {
                Ok(application) => program.applications.push(application),
                Err(Wrong) => parser.recover(),
            },
            _ => {
                let help =
                    Some("a filter (`filter NAME … end`) or `apply NAME on …;` is expected here");
                let place = parser.next().place;
                parser.messages.error(place, "syntax error", help);
                parser.recover();
            }
        }
    }
    check_names(&program, messages);
    program
}

/// Checks that filter names are unique, and that applied filters are defined. Warns of unused
/// filters.
fn check_names(program: &Program, messages: &mut Messages) {
    let mut names = HashMap::new();
    for filter in &program.filters {
        if let Some(first) = names.insert(filter.name.as_str(), filter.place.line) {
            let message = format!("filter '{}' is already defined in line {first}", filter.name);
            messages.error(filter.place, message, None);
        }
    }
    for application in &program.applications {
        if names.contains_key(application.filter.as_str()) {
            continue;
        }
        let message = format!("filter '{}' is not defined", application.filter);
        let near = suggest::nearest(&application.filter, names.keys().copied());
        let help = near.map(|name| format!("did you mean `{name}`?"));
        messages.error(application.place, message, help.as_deref());
    }
    let applied: HashSet<&str> = program.applications.iter().map(|a| a.filter.as_str()).collect();
    for filter in program.filters.iter().filter(|f| !applied.contains(f.name.as_str())) {
        messages.warning(filter.place, format!("filter '{}' is not applied", filter.name), None);
    }
}

struct Parser<'a, 'm, 't> {
    lexer: Lexer<'a>,
    /// Next token.
    token: Token<'a>,
    /// Byte offset at which the previous token ends.
    previous_end: usize,
    messages: &'m mut Messages<'t>,
}

impl<'a> Parser<'a, '_, '_> {
    fn next(&mut self) -> Token<'a> {
        let next = self.lexer.token();
        self.previous_end = self.token.place.offset + self.token.place.width;
        std::mem::replace(&mut self.token, next)
    }

    /// Reports an error at the next token.
    fn wrong<T>(&mut self, message: &str, help: Option<&str>) -> Parse<T> {
        self.messages.error(self.token.place, message, help);
        Err(Wrong)
    }

    /// Skips to behind the next `;`, or to the next word that begins or ends a block.
    fn recover(&mut self) {
        loop {
            match self.token.kind {
                Kind::End | Kind::Word("filter" | "apply" | "end") => return,
                Kind::Sign(';') => {
                    self.next();
                    return;
                }
                _ => self.next(),
            };
        }
    }

    fn accept(&mut self, kind: Kind) -> bool {
        let there = self.token.kind == kind;
        if there {
            self.next();
        }
        there
    }

    fn sign(&mut self, sign: char) -> Parse<()> {
        if self.accept(Kind::Sign(sign)) {
            return Ok(());
        }
        self.wrong(&format!("`{sign}` expected"), None)
    }

    fn keyword(&mut self, word: &str) -> Parse<()> {
        if self.accept(Kind::Word(word)) {
            return Ok(());
        }
        self.wrong(&format!("`{word}` expected"), None)
    }

    /// Reads a name of at most `longest` bytes. `what` is the kind of thing it names, for messages.
    fn name(&mut self, what: &str, longest: usize) -> Parse<(String, Place)> {
        match self.token.kind {
            Kind::Word(word) if word.len() <= longest => Ok((word.to_string(), self.next().place)),
            Kind::Word(_) => self.wrong(&format!("the name is longer than {longest} bytes"), None),
            _ => self.wrong(&format!("name of {what} expected"), None),
        }
    }

    fn filter(&mut self, text: &str) -> Parse<Filter> {
        self.next();
        let named = self.name("a filter", LONGEST_NAME);
        let mut statements = Vec::new();
        loop {
            match self.token.kind {
                Kind::Word("end") => {
                    self.next();
                    break;
                }
                Kind::End | Kind::Word("filter" | "apply") => {
                    return self.wrong("`end` of the filter expected", None);
                }
                _ if self.messages.is_full() => return Err(Wrong),
                _ => match self.statement(text) {
                    Ok(statement) => statements.push(statement),
                    Err(Wrong) => self.recover(),
                },
            }
        }
        let (name, place) = named?;
        Ok(Filter { name, place, statements })
    }

    fn statement(&mut self, text: &str) -> Parse<Statement> {
        let place = self.token.place;
        let mut tests = Tests::none();
        let action = loop {
            match self.token.kind {
                Kind::Word("fail") => {
                    self.next();
                    break Action::Fail;
                }
                Kind::Word("succeed") => {
                    self.next();
                    break Action::Succeed;
                }
                Kind::Word("log") => {
                    self.next();
                    break Action::Log(self.address()?);
                }
                _ => self.test(&mut tests)?,
            }
        };
        let text = &text[place.offset..self.previous_end];
        self.sign(';')?;
        let text = text.lines().map(|line| line.split('#').next().unwrap_or_default());
        let words: Vec<&str> = text.flat_map(str::split_whitespace).collect();
        Ok(Statement { place, text: words.join(" "), tests, action })
    }

    fn test(&mut self, tests: &mut Tests) -> Parse<()> {
        let field = self.token;
        let narrow = |set: &mut Ranges, to: Ranges| *set = set.intersection(&to);
        match field.kind {
            Kind::Word("ip_sa") => narrow(&mut tests.source, self.addresses()?),
            Kind::Word("ip_da") => narrow(&mut tests.destination, self.addresses()?),
            Kind::Word("ip_protocol") => narrow(&mut tests.protocols, self.numbers(PROTOCOL)?),
            Kind::Word("tcp_sp") => narrow(&mut tests.tcp_source, self.numbers(PORT)?),
            Kind::Word("tcp_dp") => narrow(&mut tests.tcp_destination, self.numbers(PORT)?),
            Kind::Word("udp_sp") => narrow(&mut tests.udp_source, self.numbers(PORT)?),
            Kind::Word("udp_dp") => narrow(&mut tests.udp_destination, self.numbers(PORT)?),
            Kind::Word("ipfrag") => {
                let offsets = self.numbers(OFFSET)?;
                let before = tests.fragments.take().map_or(Ranges::all(OFFSET), |(_, set)| set);
                tests.fragments = Some((field.place, before.intersection(&offsets)));
            }
            Kind::Word("tcpflags") => {
                self.next();
                self.sign('/')?;
                let mask = self.number(0xff)? as u8;
                self.sign('=')?;
                tests.flags = tests.flags.and(mask, self.number(0xff)? as u8);
            }
            _ => {
                let help = "tests are ip_sa, ip_da, ip_protocol, ipfrag, tcp_sp, tcp_dp, udp_sp, \
                            udp_dp and tcpflags; actions are fail, succeed and log HOST";
                return self.wrong("test or action expected", Some(help));
            }
        }
        Ok(())
    }

    /// Reads `FIELD in (…)`, with items that `item` reads.
    fn set(&mut self, item: fn(&mut Self) -> Parse<(u32, u32)>) -> Parse<Ranges> {
        self.next();
        self.keyword("in")?;
        self.sign('(')?;
        let mut ranges = vec![item(self)?];
        while self.accept(Kind::Sign(',')) {
            ranges.push(item(self)?);
        }
        self.sign(')')?;
        Ok(Ranges::union(ranges))
    }

    fn numbers(&mut self, highest: u32) -> Parse<Ranges> {
        match highest {
            PROTOCOL => self.set(|parser| parser.range(|parser| parser.number(PROTOCOL))),
            PORT => self.set(|parser| parser.range(|parser| parser.number(PORT))),
            _ => self.set(|parser| parser.range(|parser| parser.number(OFFSET))),
        }
    }

    fn addresses(&mut self) -> Parse<Ranges> {
        self.set(|parser| match *parser.network()?.pieces() {
            [(low, high)] if low == high && parser.token.kind == Kind::To => {
                let place = parser.next().place;
                let last = u32::from(parser.address()?);
                parser.ascending(low, last, place)
            }
            [piece] => Ok(piece),
            _ => unreachable!("a network is one range"),
        })
    }

    /// Reads `A` or `A..B`, both inclusive.
    fn range(&mut self, item: fn(&mut Self) -> Parse<u32>) -> Parse<(u32, u32)> {
        let low = item(self)?;
        if self.token.kind != Kind::To {
            return Ok((low, low));
        }
        let place = self.next().place;
        let high = item(self)?;
        self.ascending(low, high, place)
    }

    fn ascending(&mut self, low: u32, high: u32, place: Place) -> Parse<(u32, u32)> {
        if low <= high {
            return Ok((low, high));
        }
        self.messages.error(place, "the range ends before it begins", None);
        Err(Wrong)
    }

    /// Reads a number up to `highest`, decimal or hexadecimal with `0x`.
    fn number(&mut self, highest: u32) -> Parse<u32> {
        let Kind::Word(word) = self.token.kind else {
            return self.wrong("number expected", None);
        };
        let number = match word.strip_prefix("0x") {
            Some(digits) => u32::from_str_radix(digits, 16),
            None => word.parse(),
        };
        match number {
            Ok(number) if number <= highest => {
                self.next();
                Ok(number)
            }
            Ok(_) => self.wrong(&format!("the number is larger than {highest}"), None),
            Err(_) => self.wrong("number expected", None),
        }
    }

    fn address(&mut self) -> Parse<Ipv4Addr> {
        match self.token.kind {
            Kind::Word(word) if let Ok(address) = word.parse() => {
                self.next();
                Ok(address)
            }
            _ => self.wrong("IPv4 address expected", None),
        }
    }

    /// Reads `A`, `A/MASK` or `A/LENGTH`.
    fn network(&mut self) -> Parse<Ranges> {
        let address = u32::from(self.address()?);
        if !self.accept(Kind::Sign('/')) {
            return Ok(Ranges::one(address));
        }
        let mask = match self.token.kind {
            Kind::Word(word) if word.contains('.') => {
                let place = self.token.place;
                let mask = u32::from(self.address()?);
                if mask.count_zeros() != mask.trailing_zeros() {
                    let help = Some("a mask has all its ones in front of its zeros");
                    self.messages.error(place, "the mask has gaps", help);
                    return Err(Wrong);
                }
                mask
            }
            _ => ADDRESS.checked_shl(32 - self.number(32)?).unwrap_or(0),
        };
        Ok(Ranges::union(vec![(address & mask, address | !mask)]))
    }

    fn application(&mut self) -> Parse<Application> {
        self.next();
        let (filter, place) = self.name("a filter", LONGEST_NAME)?;
        self.keyword("on")?;
        let on = match self.token.kind {
            Kind::Word("first") => {
                self.next();
                Target::First
            }
            Kind::Word(word) if word.parse::<Ipv4Addr>().is_ok() => {
                let from = self.network()?;
                self.keyword("to")?;
                Target::Between(from, self.network()?)
            }
            _ => {
                let (interface, _) = self.name("an interface", LONGEST_INTERFACE)?;
                match self.token.kind {
                    Kind::Word("incoming") => Target::Incoming(interface),
                    Kind::Word("outgoing") => Target::Outgoing(interface),
                    _ => return self.wrong("`incoming` or `outgoing` expected", None),
                }
            }
        };
        if matches!(on, Target::Incoming(_) | Target::Outgoing(_)) {
            self.next();
        }
        self.sign(';')?;
        Ok(Application { filter, place, on })
    }
}
