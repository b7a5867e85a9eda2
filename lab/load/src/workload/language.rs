//! The language of workload files: `command`, `sequential`, `parallel`, `random` and comments.
//! docs/reference/workload.md has its grammar.

use std::fmt;

/// Deepest nesting of jobs.
const DEEPEST: usize = 500;

/// Largest number of repeats of one job.
const MOST_REPEATS: u32 = 1_000_000;

/// Longest gap between starts in seconds: a day.
const LONGEST_GAP: f64 = 86_400.0;

/// A job of a workload.
#[derive(Debug, Clone, PartialEq)]
pub enum Job {
    /// A program with its arguments.
    Command {
        /// The words, at least one.
        words: Vec<String>,
        /// The line in the file, from 1.
        line: usize,
    },
    /// Jobs that run one after the other.
    Sequential {
        /// Number of times that all jobs run.
        repeat: u32,
        /// The jobs, at least one.
        jobs: Vec<Job>,
    },
    /// Jobs that run at once. The job ends when all of them have ended.
    Parallel {
        /// Number of times that each job is started.
        repeat: u32,
        /// The jobs, at least one.
        jobs: Vec<Job>,
    },
    /// Jobs with pseudorandom gaps between their starts. The job ends when all of them have ended.
    Random {
        /// Number of times that each job is started.
        repeat: u32,
        /// Seed of the gaps.
        seed: u32,
        /// Shortest gap in seconds.
        low: f64,
        /// Longest gap in seconds.
        high: f64,
        /// The jobs, at least one.
        jobs: Vec<Job>,
    },
}

impl Job {
    /// Returns the number of commands in all, with repeats.
    pub fn commands(&self) -> u64 {
        match self {
            Job::Command { .. } => 1,
            Job::Sequential { repeat, jobs }
            | Job::Parallel { repeat, jobs }
            | Job::Random { repeat, jobs, .. } => {
                let once = jobs.iter().fold(0_u64, |sum, job| sum.saturating_add(job.commands()));
                once.saturating_mul(u64::from(*repeat))
            }
        }
    }
}

/// Prints the job in the language of workload files, on one line.
impl fmt::Display for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let jobs = match self {
            Job::Command { words, .. } => return write!(f, "command \"{}\"", words.join(" ")),
            Job::Sequential { repeat, jobs } => {
                write!(f, "sequential {repeat}")?;
                jobs
            }
            Job::Parallel { repeat, jobs } => {
                write!(f, "parallel {repeat}")?;
                jobs
            }
            Job::Random { repeat, seed, low, high, jobs } => {
                write!(f, "random {repeat} {seed} {low} {high}")?;
                jobs
            }
        };
        f.write_str(" {")?;
        for job in jobs {
            write!(f, " {job}")?;
        }
        f.write_str(" }")
    }
}

/// A mistake in a file, with its position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistake {
    /// Line, from 1.
    pub line: usize,
    /// Column, from 1, in characters.
    pub column: usize,
    /// Description of the mistake.
    pub what: String,
    /// Advice on the correction, if there is any.
    pub help: Option<&'static str>,
}

impl Mistake {
    /// Returns the message: position, mistake, the line with a caret, and advice.
    pub fn explain(&self, name: &str, text: &str) -> String {
        let line = text.lines().nth(self.line - 1).unwrap_or_default();
        // A tab keeps its width in front of the caret.
        let space: String = line
            .chars()
            .take(self.column - 1)
            .map(|c| if c == '\t' { '\t' } else { ' ' })
            .collect();
        let mut out =
            format!("{name}:{}:{}: {}\n{line}\n{space}^\n", self.line, self.column, self.what);
        if let Some(help) = self.help {
            out.push_str(&format!("help: {help}\n"));
        }
        out
    }
}

/// Parses a workload.
///
/// # Errors
/// Returns the first mistake.
pub fn parse(text: &str) -> Result<Job, Mistake> {
    let mut parser = Parser { tokens: tokens(text)?, next: 0 };
    let job = parser.job(0)?;
    match parser.take() {
        Token { kind: TokenKind::End, .. } => Ok(job),
        token => Err(token.mistake(
            &format!("a workload is one job, but {} follows the job", token.kind),
            Some("enclose the jobs in \"sequential { … }\" or \"parallel { … }\""),
        )),
    }
}

#[derive(Debug, Clone, PartialEq)]
enum TokenKind {
    Word(String),
    Text(String),
    Open,
    Close,
    End,
}

impl fmt::Display for TokenKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TokenKind::Word(word) => f.write_str(word),
            TokenKind::Text(text) => write!(f, "\"{text}\""),
            TokenKind::Open => f.write_str("{"),
            TokenKind::Close => f.write_str("}"),
            TokenKind::End => f.write_str("the end of the file"),
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
struct Token {
    kind: TokenKind,
    line: usize,
    column: usize,
}

impl Token {
    fn mistake(&self, what: &str, help: Option<&'static str>) -> Mistake {
        Mistake { line: self.line, column: self.column, what: what.to_string(), help }
    }

    fn expected(&self, what: &str) -> Mistake {
        self.mistake(&format!("expected {what}, not {}", self.kind), None)
    }
}

fn tokens(text: &str) -> Result<Vec<Token>, Mistake> {
    let mut tokens = Vec::new();
    let (mut lines, mut columns) = (1, 1);
    for (index, line) in text.lines().enumerate() {
        lines = index + 1;
        let mut rest = line.char_indices().enumerate().peekable();
        columns = line.chars().count() + 1;
        while let Some((column, (start, letter))) = rest.next() {
            let kind = match letter {
                '#' => break,
                '{' => TokenKind::Open,
                '}' => TokenKind::Close,
                '"' => {
                    let inside = &line[start + 1..];
                    let Some(length) = inside.find('"') else {
                        let at = Token { kind: TokenKind::End, line: lines, column: column + 1 };
                        return Err(at.mistake("the string has no closing quote on its line", None));
                    };
                    let end = start + 1 + length;
                    while rest.next_if(|(_, (place, _))| *place <= end).is_some() {}
                    TokenKind::Text(inside[..length].to_string())
                }
                _ if letter.is_whitespace() => continue,
                _ => {
                    let more = |c: char| !c.is_whitespace() && !matches!(c, '#' | '{' | '}' | '"');
                    let mut word = String::from(letter);
                    while let Some((_, (_, letter))) = rest.next_if(|(_, (_, c))| more(*c)) {
                        word.push(letter);
                    }
                    TokenKind::Word(word)
                }
            };
            tokens.push(Token { kind, line: lines, column: column + 1 });
        }
    }
    tokens.push(Token { kind: TokenKind::End, line: lines, column: columns });
    Ok(tokens)
}

struct Parser {
    tokens: Vec<Token>,
    next: usize,
}

impl Parser {
    /// Takes the next token. The last token, the end, can be taken any number of times.
    fn take(&mut self) -> Token {
        let token = self.tokens[self.next].clone();
        self.next = (self.next + 1).min(self.tokens.len() - 1);
        token
    }

    fn peek(&self) -> &TokenKind {
        &self.tokens[self.next].kind
    }

    fn job(&mut self, depth: usize) -> Result<Job, Mistake> {
        let token = self.take();
        if depth > DEEPEST {
            return Err(
                token.mistake(&format!("jobs are nested deeper than {DEEPEST} levels"), None)
            );
        }
        let TokenKind::Word(keyword) = &token.kind else {
            return Err(token.expected("a job: command, sequential, parallel or random"));
        };
        match keyword.as_str() {
            "command" => self.command(),
            "sequential" => {
                let repeat = self.optional_repeat()?;
                Ok(Job::Sequential { repeat, jobs: self.jobs(depth)? })
            }
            "parallel" => {
                let repeat = self.optional_repeat()?;
                Ok(Job::Parallel { repeat, jobs: self.jobs(depth)? })
            }
            "random" => {
                let repeat = self.repeat()?;
                let seed = self.number("the seed, a number")?;
                let (low, high) = self.gaps()?;
                Ok(Job::Random { repeat, seed, low, high, jobs: self.jobs(depth)? })
            }
            _ => Err(token.expected("a job: command, sequential, parallel or random")),
        }
    }

    fn command(&mut self) -> Result<Job, Mistake> {
        let token = self.take();
        let TokenKind::Text(text) = &token.kind else {
            return Err(token.mistake(
                &format!("expected a command in quotes, not {}", token.kind),
                Some("command \"program argument …\""),
            ));
        };
        let words: Vec<String> = text.split_whitespace().map(str::to_string).collect();
        if words.is_empty() {
            return Err(token.mistake("this command names no program", None));
        }
        if text.contains('\0') {
            return Err(token.mistake("a command cannot contain a NUL", None));
        }
        Ok(Job::Command { words, line: token.line })
    }

    fn jobs(&mut self, depth: usize) -> Result<Vec<Job>, Mistake> {
        let open = self.take();
        if open.kind != TokenKind::Open {
            return Err(open.expected("{"));
        }
        let mut jobs = Vec::new();
        loop {
            match self.peek() {
                TokenKind::Close if jobs.is_empty() => {
                    return Err(self.take().mistake("there must be a job between { and }", None));
                }
                TokenKind::Close => {
                    self.take();
                    return Ok(jobs);
                }
                TokenKind::End => return Err(open.mistake("this { is not closed", None)),
                _ => jobs.push(self.job(depth + 1)?),
            }
        }
    }

    fn optional_repeat(&mut self) -> Result<u32, Mistake> {
        if *self.peek() == TokenKind::Open { Ok(1) } else { self.repeat() }
    }

    fn repeat(&mut self) -> Result<u32, Mistake> {
        let token = self.tokens[self.next].clone();
        match self.number("the number of repetitions")? {
            repeat @ 1..=MOST_REPEATS => Ok(repeat),
            _ => Err(token.mistake(&format!("expected 1 to {MOST_REPEATS} times"), None)),
        }
    }

    fn number(&mut self, what: &str) -> Result<u32, Mistake> {
        let token = self.take();
        match &token.kind {
            // Rust's parser accepts a sign, the language does not.
            TokenKind::Word(word) if word.bytes().all(|byte| byte.is_ascii_digit()) => word
                .parse()
                .map_err(|_| token.mistake(&format!("{word} is larger than {}", u32::MAX), None)),
            _ => Err(token.expected(what)),
        }
    }

    fn gaps(&mut self) -> Result<(f64, f64), Mistake> {
        let low = self.gap("the shortest gap in seconds")?;
        let token = self.tokens[self.next].clone();
        let high = self.gap("the longest gap in seconds")?;
        if high < low {
            return Err(token.mistake("the longest gap is shorter than the shortest", None));
        }
        Ok((low, high))
    }

    fn gap(&mut self, what: &str) -> Result<f64, Mistake> {
        let token = self.take();
        let number = match &token.kind {
            TokenKind::Word(word) if word.bytes().all(|b| b.is_ascii_digit() || b == b'.') => {
                word.parse::<f64>().ok()
            }
            _ => None,
        };
        match number {
            Some(seconds) if seconds <= LONGEST_GAP => Ok(seconds),
            Some(_) => Err(token.mistake(&format!("a gap is at most {LONGEST_GAP} seconds"), None)),
            None => Err(token.expected(what)),
        }
    }
}

#[cfg(test)]
#[path = "language_tests.rs"]
mod tests;
