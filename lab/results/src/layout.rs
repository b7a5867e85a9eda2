//! The layout of result files. Short values stand on one line, so that files with thousands of
//! samples are readable and compact.

/// The longest line of values that can be split over several lines.
const WIDTH: usize = 120;

/// Lays out JSON without white space between its values.
pub(super) fn lay_out(compact: &str) -> String {
    let tokens = tokens(compact);
    let ends = ends(&tokens);
    let mut page = Page { text: String::with_capacity(2 * compact.len()), depth: 0, column: 0 };
    // true for an open list with short values, which are packed into lines
    let mut packs = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let token = tokens[at];
        match token {
            "{" | "[" if short(&tokens[at..=ends[at]]) => {
                page.value(&line(&tokens[at..=ends[at]]));
                at = ends[at];
            }
            "{" | "[" => {
                page.value(token);
                page.depth += 1;
                page.new_line();
                packs.push(token == "[");
            }
            "}" | "]" => {
                page.depth -= 1;
                page.new_line();
                page.value(token);
                packs.pop();
            }
            "," => {
                page.value(token);
                let next = &tokens[at + 1..=ends[at + 1]];
                let fits = short(next) && page.column + line(next).len() + 2 < WIDTH;
                match packs.last() {
                    Some(true) if fits => page.value(" "),
                    _ => page.new_line(),
                }
            }
            ":" => page.value(": "),
            _ => page.value(token),
        }
        at += 1;
    }
    page.text.push('\n');
    page.text
}

/// The laid-out text.
struct Page {
    text: String,
    depth: usize,
    column: usize,
}

impl Page {
    fn value(&mut self, text: &str) {
        self.text.push_str(text);
        self.column += text.len();
    }

    fn new_line(&mut self) {
        self.text.push('\n');
        self.text.extend(std::iter::repeat_n(' ', self.depth));
        self.column = self.depth;
    }
}

/// Splits JSON into strings, numbers, words and punctuation.
fn tokens(compact: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let mut rest = compact;
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '"' => string_length(rest),
            '{' | '}' | '[' | ']' | ',' | ':' => 1,
            _ => rest.find(['}', ']', ',', ':']).unwrap_or(rest.len()),
        };
        let (token, after) = rest.split_at(length);
        tokens.push(token);
        rest = after;
    }
    tokens
}

/// Returns the bytes of the string at the beginning of `text`, with its quotes.
fn string_length(text: &str) -> usize {
    let mut is_escaped = false;
    for (place, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'"' => return place + 1,
            _ => {}
        }
    }
    text.len()
}

/// Returns for each token the index of the token that closes it: its own index, unless the token
/// opens a list or object.
fn ends(tokens: &[&str]) -> Vec<usize> {
    let mut ends: Vec<usize> = (0..tokens.len()).collect();
    let mut open = Vec::new();
    for (place, &token) in tokens.iter().enumerate() {
        match token {
            "{" | "[" => open.push(place),
            "}" | "]" => {
                if let Some(begin) = open.pop() {
                    ends[begin] = place;
                }
            }
            _ => {}
        }
    }
    ends
}

/// Returns true if these tokens fit into a line.
fn short(tokens: &[&str]) -> bool {
    let mut left = WIDTH;
    tokens.iter().all(|token| {
        let fits = token.len() < left;
        left = left.saturating_sub(token.len());
        fits
    })
}

fn line(tokens: &[&str]) -> String {
    let spaced = |&token: &&str| match token {
        "," | ":" => [token, " "].concat(),
        _ => token.to_owned(),
    };
    tokens.iter().map(spaced).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn short_values_stand_on_one_line() {
        let said = "a \"quote\", a {brace} and a \\, and more, so that two of them do not fit";
        let sample = json!({"round": 1, "says": said});
        let text = lay_out(&json!({"samples": [sample, sample, sample]}).to_string());
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!((lines.len(), lines[0], lines[1]), (7, "{", " \"samples\": ["), "{text}");
        assert!(
            lines[2].starts_with(r#"  {"round": 1, "says": "a \"quote\", a {brace} and"#),
            "{text}"
        );
        assert_eq!(lines[5..], [" ]", "}"]);
        let buckets: Vec<Value> = (0..100).map(|ns| json!({"count": 1, "ns": ns})).collect();
        let text = lay_out(&json!(buckets).to_string());
        assert!(
            text.lines().count() < 30 && text.lines().all(|line| line.len() <= WIDTH),
            "{text}"
        );
        assert_eq!(lay_out("[]"), "[]\n");
    }

    fn values() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<i32>().prop_map(Value::from),
            "[a-z\\\\\"{}:,\n]{0,60}".prop_map(Value::from),
        ];
        leaf.prop_recursive(5, 100, 8, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..8).prop_map(Value::from),
                prop::collection::btree_map("[a-z\"]{1,9}", inner, 0..8)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn nothing_is_changed(value in values()) {
            let text = lay_out(&value.to_string());
            prop_assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
        }
    }
}
