//! Parses `set` (pf-features section 2).

use skipstep_ruleset::options::{Evaluator, FastForward, Optimization};
use skipstep_ruleset::{BlockPolicy, Syncookies, Timeout, Unattached};

use super::address::unsigned_number;
use super::rule::{choices, did_you_mean};
use super::{Parse, Parser, Reported};
use crate::ast::{Setting, StatementKind};
use crate::diagnostics::Severity;
use crate::settings;
use crate::token::TokenKind;

/// Default start of adaptive syncookies, in percent of the state limit. The default end is half of
/// the start.
const SYNCOOKIES_START: u8 = 25;
/// Names of settings that are reserved words.
const RESERVED: [&str; 14] = [
    "timeout",
    "limit",
    "optimization",
    "ruleset-optimization",
    "block-policy",
    "state-policy",
    "state-defaults",
    "loginterface",
    "skip",
    "reassemble",
    "hostid",
    "debug",
    "fingerprints",
    "syncookies",
];
/// Names of settings that only skipstep has. They are not reserved words.
const SKIPSTEP: [&str; 4] = ["evaluator", "fast-forward", "unattached", "xdp"];
/// Names of settings of FreeBSD, which OpenBSD refuses. They are not reserved words.
const FREEBSD: [&str; 3] = ["fail-policy", "keepcounters", "require-order"];

impl Parser<'_> {
    pub(super) fn set(&mut self) -> Parse<StatementKind> {
        self.expect("set")?;
        let word = match self.peek().kind.clone() {
            TokenKind::Keyword(word) => word.to_string(),
            TokenKind::String(word)
                if SKIPSTEP.contains(&word.as_str()) || FREEBSD.contains(&word.as_str()) =>
            {
                word
            }
            _ => {
                let all = RESERVED.into_iter().chain(SKIPSTEP).chain(FREEBSD);
                all.for_each(|word| self.expected.note(word));
                return self.syntax_error();
            }
        };
        let setting: fn(&mut Self) -> Parse<Setting> = match word.as_str() {
            "timeout" => return self.settings_list(Self::timeout),
            "limit" => return self.settings_list(Self::limit),
            "optimization" => Self::optimization,
            "ruleset-optimization" => Self::ruleset_optimization,
            "block-policy" => Self::block_policy,
            "state-policy" => |parser| parser.state_policy().map(Setting::StatePolicy),
            "state-defaults" => |parser| parser.state_options().map(Setting::StateDefaults),
            "loginterface" => Self::loginterface,
            "skip" => |parser| parser.interfaces().map(Setting::Skip),
            "reassemble" => Self::reassemble,
            // Differs from OpenBSD: linux.md, "Four more settings"
            "evaluator" => Self::evaluator,
            "fast-forward" => Self::fast_forward,
            "unattached" => Self::unattached,
            "xdp" => |parser| parser.interfaces().map(Setting::Xdp),
            "require-order" => Self::require_order,
            "fail-policy" => |parser| Ok(Setting::FailPolicy(parser.policy()?)),
            "keepcounters" => |_| Ok(Setting::KeepCounters),
            "hostid" => Self::hostid,
            "debug" => Self::debug,
            "fingerprints" => |parser| parser.string().map(Setting::Fingerprints),
            "syncookies" => Self::syncookies,
            _ => return self.syntax_error(),
        };
        if FREEBSD.contains(&word.as_str()) {
            let place = self.place();
            self.note_foreign_form(place)?;
        }
        self.skip();
        let setting = setting(self)?;
        if !matches!(setting, Setting::Reassemble { .. } | Setting::StateDefaults(_)) {
            self.settings.push(setting.clone());
        }
        Ok(StatementKind::Set(vec![setting]))
    }

    /// Parses one setting with `item`, or several in braces. `item` returns `None` for a setting of
    /// FreeBSD that has no effect here.
    fn settings_list(
        &mut self,
        item: fn(&mut Self) -> Parse<Option<Setting>>,
    ) -> Parse<StatementKind> {
        self.skip();
        let settings = self.list(|parser| {
            let setting = item(parser)?;
            parser.settings.extend(setting.clone());
            Ok(setting)
        });
        settings.map(|settings| StatementKind::Set(settings.into_iter().flatten().collect()))
    }

    fn timeout(&mut self) -> Parse<Option<Setting>> {
        let place = self.place();
        let name = self.string()?;
        let value = self.unsigned()?;
        if self.is_timeout_of_sctp(&name, place)? {
            return Ok(None);
        }
        let known = Timeout::ALL.into_iter().find(|one| one.name().eq_ignore_ascii_case(&name));
        match known {
            Some(timeout) => Ok(Some(Setting::Timeout(timeout, value, name))),
            None => {
                self.report_text(Severity::Error, "pfctl: Bad timeout name.");
                let help = did_you_mean(&name, Timeout::ALL.map(Timeout::name));
                self.error_with_help(format!("unknown timeout {name}"), place, help)
            }
        }
    }

    fn limit(&mut self) -> Parse<Option<Setting>> {
        let place = self.place();
        let name = self.string()?;
        let value = self.unsigned()?;
        if name.eq_ignore_ascii_case("eth-anchors") {
            self.note_foreign_form(place)?;
            let text = "limit eth-anchors is ignored: there are no rules for frames";
            self.report(Severity::Note, text, place, None);
            return Ok(None);
        }
        match settings::limit_by_name(&name) {
            Some(limit) => Ok(Some(Setting::Limit(limit, value, name))),
            None => {
                self.report_text(Severity::Error, "pfctl: Bad pool name.");
                let help = did_you_mean(&name, settings::LIMITS.map(|(name, _)| name));
                self.error_with_help(format!("unable to set limit {name} {value}"), place, help)
            }
        }
    }

    fn optimization(&mut self) -> Parse<Setting> {
        let place = self.place();
        // a reserved word, which pfctl prints without quotes
        let written = if self.accept("default") { "default".to_string() } else { self.string()? };
        match settings::profile(&written) {
            Some((name, _)) => Ok(Setting::Optimization(name, written)),
            None => {
                let text = "pfctl: invalid state timeouts optimization";
                self.report_text(Severity::Error, text);
                let names: Vec<_> = settings::PROFILES.iter().map(|(name, _)| *name).collect();
                let text = format!("unknown optimization {written}");
                self.error_with_help(text, place, Some(choices(&names)))
            }
        }
    }

    /// Parses `never`, `always` or `adaptive [(start n%, end n%)]`.
    fn syncookies(&mut self) -> Parse<Setting> {
        let place = self.place();
        let mode = self.string()?;
        let modes = ["never", "always", "adaptive"];
        if !modes.contains(&mode.as_str()) {
            let help = Some(choices(&modes));
            return self.error_with_help("illegal value for syncookies", place, help);
        }
        let (mut start, mut end) = (0, 0);
        let given = self.accept_sign('(');
        if given {
            self.until_parenthesis(|parser| parser.watermark(&mut start, &mut end))?;
        }
        let refused = match (mode.as_str(), given) {
            ("never", false) => return Ok(Setting::Syncookies(Syncookies::Never, false)),
            ("always", false) => return Ok(Setting::Syncookies(Syncookies::Always, false)),
            ("adaptive", _) => {
                let start = if start > 0 { start } else { SYNCOOKIES_START };
                let end = if end > 0 { end } else { start / 2 };
                if end < start {
                    let adaptive = Syncookies::Adaptive { start, end };
                    return Ok(Setting::Syncookies(adaptive, given));
                }
                "pfctl: start must be higher than end"
            }
            _ => "pfctl: syncookies start/end only apply to adaptive",
        };
        self.report_text(Severity::Error, refused);
        self.error_at("error setting syncookies", place)
    }

    /// Parses `start 25%` or `end 12%`. pf stores whole percents.
    fn watermark(&mut self, start: &mut u8, end: &mut u8) -> Parse<()> {
        let place = self.place();
        let name = self.string()?;
        let text = self.string()?;
        let Some(percent) = text.strip_suffix('%').and_then(|number| number.parse::<f64>().ok())
        else {
            return Err(Reported);
        };
        if !(percent > 0.0 && percent <= 100.0) {
            return self.error_at("illegal percentage value", place);
        }
        match name.as_str() {
            "start" => *start = percent as u8,
            "end" => *end = percent as u8,
            _ => return self.error_at("illegal syncookie option", place),
        }
        Ok(())
    }

    /// Parses `none`, `basic` or `profile`.
    fn ruleset_optimization(&mut self) -> Parse<Setting> {
        let place = self.place();
        let name = self.strings()?;
        match name.as_str() {
            "none" => Ok(Setting::RulesetOptimization(Optimization::None)),
            "basic" => Ok(Setting::RulesetOptimization(Optimization::Basic)),
            "profile" => Ok(Setting::RulesetOptimization(Optimization::Profile)),
            _ => {
                let help = Some(choices(&["none", "basic", "profile"]));
                self.error_with_help(format!("unknown ruleset-optimization {name}"), place, help)
            }
        }
    }

    fn block_policy(&mut self) -> Parse<Setting> {
        self.policy().map(Setting::BlockPolicy)
    }

    fn policy(&mut self) -> Parse<BlockPolicy> {
        if self.accept("drop") {
            return Ok(BlockPolicy::Drop);
        }
        if self.accept("return") {
            return Ok(BlockPolicy::Return);
        }
        self.syntax_error_of_choice(&["drop", "return"])
    }

    fn loginterface(&mut self) -> Parse<Setting> {
        let name = if self.accept("all") { "all".to_string() } else { self.interface_name()? };
        Ok(Setting::Loginterface(Some(name).filter(|name| name != "none")))
    }

    fn reassemble(&mut self) -> Parse<Setting> {
        let on = self.yes_or_no()?;
        Ok(Setting::Reassemble { on, no_df: self.accept("no-df") })
    }

    pub(super) fn yes_or_no(&mut self) -> Parse<bool> {
        let place = self.place();
        if self.accept("no") {
            return Ok(false);
        }
        match self.string()?.as_str() {
            "yes" => Ok(true),
            word => self.error_at(format!("invalid value '{word}', expected 'yes' or 'no'"), place),
        }
    }

    fn evaluator(&mut self) -> Parse<Setting> {
        let place = self.place();
        match self.string()?.as_str() {
            "linear" => Ok(Setting::Evaluator(Evaluator::Linear)),
            "skip-steps" => Ok(Setting::Evaluator(Evaluator::SkipSteps)),
            "compiled" => Ok(Setting::Evaluator(Evaluator::Compiled)),
            word => {
                let help = Some(choices(&["linear", "skip-steps", "compiled"]));
                self.error_with_help(format!("unknown evaluator {word}"), place, help)
            }
        }
    }

    fn unattached(&mut self) -> Parse<Setting> {
        let place = self.place();
        if self.accept("block") {
            return Ok(Setting::Unattached(Unattached::Block));
        }
        if self.accept("pass") {
            return Ok(Setting::Unattached(Unattached::Pass));
        }
        let word = self.string()?;
        self.error_with_help(
            format!("invalid value '{word}' for unattached"),
            place,
            Some(choices(&["block", "pass"])),
        )
    }

    fn fast_forward(&mut self) -> Parse<Setting> {
        let place = self.place();
        if self.accept("no") {
            return Ok(Setting::FastForward(FastForward::No));
        }
        match self.string()?.as_str() {
            "auto" => Ok(Setting::FastForward(FastForward::Auto)),
            "yes" => Ok(Setting::FastForward(FastForward::Yes)),
            word => self.error_with_help(
                format!("invalid value '{word}' for fast-forward"),
                place,
                Some(choices(&["auto", "yes", "no"])),
            ),
        }
    }

    fn hostid(&mut self) -> Parse<Setting> {
        let place = self.place();
        let text = self.word_or_number()?;
        let Some(number) = unsigned_number(&text) else {
            return self.error_at(format!("{text} is not a number"), place);
        };
        match u32::try_from(number) {
            Ok(number) if number > 0 => Ok(Setting::Hostid(number)),
            _ => self.error_at("hostid must be non-zero", place),
        }
    }

    fn debug(&mut self) -> Parse<Setting> {
        let place = self.place();
        let name = if self.accept("debug") { "debug".to_string() } else { self.string()? };
        match settings::debug_level(&name) {
            Some(level) => Ok(Setting::Debug(level)),
            None => {
                let help = Some(choices(&settings::DEBUG_LEVELS));
                self.error_with_help(format!("error setting debuglevel {name}"), place, help)
            }
        }
    }
}
