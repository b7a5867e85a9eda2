//! The shape of a configuration in TOML, before words are interpreted.

use serde::Deserialize;
use toml::Spanned;

/// A word and its position in the text.
pub type Word = Spanned<String>;
/// A number and its position in the text.
pub type Number = Spanned<u64>;

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Text {
    #[serde(default)]
    pub listen: Vec<Word>,
    #[serde(default)]
    pub transparent: Vec<Word>,
    pub user: Option<String>,
    pub accounts: Option<Word>,
    pub shovel: Option<Word>,
    pub data_ports: Option<Word>,
    pub server_data: Option<Word>,
    #[serde(default)]
    pub source: Vec<Word>,
    #[serde(default)]
    pub limits: Limits,
    #[serde(default)]
    pub timeouts: Timeouts,
    #[serde(default)]
    pub rule: Vec<Rule>,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Limits {
    pub sessions: Option<Number>,
    pub sessions_per_client: Option<Number>,
    pub login_failures: Option<Number>,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Timeouts {
    pub connect: Option<Number>,
    pub login: Option<Number>,
    pub idle: Option<Number>,
    pub data: Option<Number>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Rule {
    pub action: Word,
    pub from: Option<Vec<Word>>,
    pub accounts: Option<Vec<Word>>,
    pub to: Option<Vec<Word>>,
    pub ports: Option<Vec<Number>>,
    pub users: Option<Vec<Word>>,
    pub commands: Option<Vec<Word>>,
}
