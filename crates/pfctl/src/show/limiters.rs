//! `-s LimiterStates` and `-s LimiterSrcs`: print state limiters and source limiters.

use serde_json::{Value, json};
use skipstep_views::{LimitedView, LimiterView};

use super::Detail;

/// Prints a heading and a line for each state limiter, in OpenBSD's columns.
pub fn state_limiters_text(limiters: &[LimiterView]) -> String {
    let mut text = format!(
        "{:>3} {:>8}/{:<8} {:>5}/{:<5} {:>8} {:>8} {:>8}\n",
        "ID", "USE", "LIMIT", "RATE", "SECS", "ADMIT", "HARDLIM", "RATELIM"
    );
    for view in limiters.iter().filter(|view| !view.limiter.source) {
        let (states, seconds) = rate(view);
        text += &format!(
            "{:>3} {:>8}/{:<8} {states:>5}/{seconds:<5} {:>8} {:>8} {:>8}\n",
            view.limiter.id,
            view.states,
            view.limiter.limit,
            view.counts.admitted,
            view.counts.hard_limited,
            view.counts.rate_limited,
        );
    }
    text
}

/// Prints a heading and a line for each source limiter; with `-v` also its sources.
pub fn source_limiters_text(limiters: &[LimiterView], detail: Detail) -> String {
    let mut text = format!(
        "{:>3} {:>8}/{:<8} {:>5} {:>5}/{:<5} {:>8} {:>8} {:>8} {:>8}\n",
        "ID", "USE", "ADDRS", "LIMIT", "RATE", "SECS", "ADMIT", "ADDRLIM", "HARDLIM", "RATELIM"
    );
    for view in limiters.iter().filter(|view| view.limiter.source) {
        let (states, seconds) = rate(view);
        text += &format!(
            "{:>3} {:>8}/{:<8} {:>5} {states:>5}/{seconds:<5} {:>8} {:>8} {:>8} {:>8}\n",
            view.limiter.id,
            view.sources.len(),
            view.limiter.entries.unwrap_or(0),
            view.limiter.limit,
            view.counts.admitted,
            view.sources_limited + view.sources_lost,
            view.counts.hard_limited,
            view.counts.rate_limited,
        );
        for source in view.sources.iter().filter(|_| detail.verbose()) {
            text += &format!(
                "\t{} rdomain {} inuse {}/{} admit {} hardlim {} ratelim {}\n",
                source.net,
                source.rdomain,
                source.states,
                view.limiter.limit,
                source.counts.admitted,
                source.counts.hard_limited,
                source.counts.rate_limited,
            );
        }
    }
    text
}

/// Returns the rate's states and seconds; without a rate both are `nil`, as in pf.
fn rate(view: &LimiterView) -> (String, String) {
    match view.limiter.rate {
        Some((states, seconds)) => (states.to_string(), seconds.to_string()),
        None => ("nil".to_owned(), "nil".to_owned()),
    }
}

fn address(source: &LimitedView) -> String {
    let (net, whole) = (source.net, source.net.max_prefix_len());
    if net.prefix_len() == whole { net.addr().to_string() } else { net.to_string() }
}

/// Returns a list with an object for each state limiter, or for each source limiter.
pub fn json(limiters: &[LimiterView], of_sources: bool) -> Value {
    let limiters = limiters.iter().filter(|view| view.limiter.source == of_sources);
    limiters.map(|view| if of_sources { source_limiter(view) } else { limiter(view) }).collect()
}

fn limiter(view: &LimiterView) -> Value {
    let rate = view.limiter.rate;
    json!({
        "id": view.limiter.id,
        "name": view.limiter.name,
        "limit": view.limiter.limit,
        "rate": rate.map(|(states, seconds)| json!({ "states": states, "seconds": seconds })),
        "states": view.states,
        "admitted": view.counts.admitted,
        "hardlimited": view.counts.hard_limited,
        "ratelimited": view.counts.rate_limited,
    })
}

fn source_limiter(view: &LimiterView) -> Value {
    let sources = view.sources.iter().map(|source| {
        json!({
            "source": address(source),
            "rdomain": source.rdomain,
            "states": source.states,
            "admitted": source.counts.admitted,
            "hardlimited": source.counts.hard_limited,
            "ratelimited": source.counts.rate_limited,
        })
    });
    let mut value = limiter(view);
    value["entries"] = json!(view.limiter.entries);
    value["sources"] = sources.collect();
    value["sources_made"] = json!(view.sources_made);
    value["sources_limited"] = json!(view.sources_limited);
    value["sources_lost"] = json!(view.sources_lost);
    value
}
