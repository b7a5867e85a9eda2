//! Parses `queue` (pf-features section 11).

use skipstep_ruleset::rule::InterfaceMatch;
use skipstep_ruleset::{Queue, ServiceCurve};

use super::{Parse, Parser};
use crate::ast::StatementKind;
use crate::token::{Place, TokenKind};

/// Most bytes of a queue's name.
const LONGEST_NAME: usize = 63;

impl Parser<'_> {
    /// Parses `queue name [on em0] [parent name] [bandwidth ...] [flows n] ...`.
    pub(super) fn queue(&mut self) -> Parse<StatementKind> {
        let place = self.place();
        self.expect("queue")?;
        let name = self.string()?;
        let interfaces = self.interfaces()?;
        let mut queue = Queue { line: place.line, ..Queue::named(&name) };
        self.queue_option(&mut queue)?;
        while self.peek().kind != TokenKind::NewLine {
            self.queue_option(&mut queue)?;
        }
        if interfaces.is_empty() && queue.parent.is_none() {
            return self.error_at("root queue without interface", place);
        }
        let mut on = Vec::new();
        for interface in interfaces {
            match interface.value {
                // only the first interface of a list must exist here; the load checks the others
                InterfaceMatch::Named(name)
                    if !on.is_empty() || self.context.host.interface(&name).is_some() =>
                {
                    on.push(Some(name))
                }
                _ => return self.error_at("not an interface", place),
            }
        }
        if on.is_empty() {
            on.push(None);
        }
        if queue.bandwidth.is_none() && queue.flows.is_none() {
            return self.error_at("no bandwidth or flow specification", place);
        }
        for (name, text) in
            [(Some(&queue.name), "queuename too long"), (queue.parent.as_ref(), "parent too long")]
        {
            if name.is_some_and(|name| name.len() > LONGEST_NAME) {
                return self.error_at(text, place);
            }
        }
        if queue.parent.is_some() {
            self.queues.insert(queue.name.clone());
        }
        let queues = on.into_iter().map(|interface| Queue { interface, ..queue.clone() });
        Ok(StatementKind::Queues(queues.collect()))
    }

    fn queue_option(&mut self, queue: &mut Queue) -> Parse<()> {
        let place = self.place();
        if self.accept("bandwidth") {
            let bandwidth = self.service_curve()?;
            let (mut min, mut max) = (None, None);
            loop {
                let comma = self.accept_sign(',');
                if min.is_none() && self.accept("min") {
                    min = Some(self.service_curve()?);
                } else if max.is_none() && self.accept("max") {
                    max = Some(self.service_curve()?);
                } else if comma {
                    return self.syntax_error();
                } else {
                    break;
                }
            }
            if queue.bandwidth.replace(bandwidth).is_some() {
                return self.error_at("bandwidth cannot be respecified", place);
            }
            (queue.min, queue.max) = (min, max);
        } else if self.accept("parent") {
            let parent = self.string()?;
            if queue.parent.replace(parent).is_some() {
                return self.error_at("parent cannot be respecified", place);
            }
        } else if self.accept("default") {
            if std::mem::replace(&mut queue.default, true) {
                return self.error_at("default cannot be respecified", place);
            }
        } else if self.accept("qlimit") {
            let limit = self.bounded(0, 65_535, "qlimit", queue.limit, "qlimit", place)?;
            queue.limit = Some(limit);
        } else if self.accept("flows") {
            let name = "number of flows";
            queue.flows = Some(self.bounded(1, 32_767, name, queue.flows, name, place)?);
        } else {
            self.expect("quantum")?;
            let known = queue.quantum;
            queue.quantum = Some(self.bounded(1, 65_535, "quantum", known, "quantum", place)?);
        }
        Ok(())
    }

    /// Parses a number from `low` to `high`.
    ///
    /// # Errors
    /// Fails if the option was there before, or if the number is out of range.
    fn bounded(
        &mut self,
        low: i64,
        high: i64,
        range: &str,
        known: Option<u32>,
        option: &str,
        place: Place,
    ) -> Parse<u32> {
        let number = self.number()?;
        if known.is_some() {
            return self.error_at(format!("{option} cannot be respecified"), place);
        }
        if !(low..=high).contains(&number) {
            return self.error_at(format!("{range} out of range: max {high}"), place);
        }
        Ok(number as u32)
    }

    /// Parses `10M` or `10M burst 20M for 100ms`.
    fn service_curve(&mut self) -> Parse<ServiceCurve> {
        let rate = self.bandwidth()?;
        if !self.accept("burst") {
            return Ok(ServiceCurve { rate, burst: None });
        }
        let burst = self.bandwidth()?;
        self.expect("for")?;
        let place = self.place();
        let time = self.string()?;
        match time.strip_suffix("ms").and_then(|digits| digits.parse().ok()) {
            Some(time) => Ok(ServiceCurve { rate, burst: Some((burst, time)) }),
            None => self.error_at("time in scspec must be in ms", place),
        }
    }

    /// Parses a bandwidth. Returns bits per second.
    fn bandwidth(&mut self) -> Parse<u64> {
        let place = self.place();
        if let TokenKind::Number(number) = self.peek().kind {
            self.skip();
            return u64::try_from(number)
                .or_else(|_| self.error_at("bandwidth number too big", place));
        }
        let text = self.string()?;
        let digits = text.len()
            - text.trim_start_matches(|c: char| c.is_ascii_digit() || ".+-".contains(c)).len();
        let (number, unit) = text.split_at(digits);
        let number: f64 = number.parse().unwrap_or(0.0);
        // "10Mb" and "10MBit" are "10M"
        let unit = match unit.char_indices().nth(1) {
            Some((at, _)) if ["Bit", "B", "bit", "b"].contains(&&unit[at..]) => &unit[..at],
            _ => unit,
        };
        let factor = match unit {
            "b" => 1.0,
            "K" => 1e3,
            "M" => 1e6,
            "G" => 1e9,
            "%" if (0.0..=100.0).contains(&number) => {
                return self.error_at("no bandwidth in % yet", place);
            }
            "%" => return self.error_at("bandwidth spec out of range", place),
            _ => {
                let help = Some("units are K, M and G: bits per second".to_string());
                return self.error_with_help(format!("unknown unit \"{unit}\""), place, help);
            }
        };
        let bits = number * factor;
        if bits < 0.0 || bits > i64::MAX as f64 {
            return self.error_at("bandwidth number too big", place);
        }
        Ok(bits as u64)
    }

    /// Parses one queue, or two queues in parentheses, behind `queue` or `set queue` of a rule.
    pub(super) fn queue_names(&mut self) -> Parse<(String, Option<String>)> {
        if !self.accept_sign('(') {
            return Ok((self.queue_name()?, None));
        }
        let first = self.queue_name()?;
        if self.accept_sign(')') {
            return Ok((first, None));
        }
        self.accept_sign(',');
        let second = self.queue_name()?;
        self.expect_sign(')')?;
        Ok((first, Some(second)))
    }

    fn queue_name(&mut self) -> Parse<String> {
        let place = self.place();
        let name = self.string()?;
        if !self.queues.contains(&name) {
            self.queues.extend((self.context.queues)());
        }
        if !self.queues.contains(&name) {
            let known = self.queues.iter().map(String::as_str);
            let help = super::rule::did_you_mean(&name, known);
            return self.error_with_help(format!("queue {name} is not defined"), place, help);
        }
        Ok(name)
    }
}
