//! Counters of the last hour, in memory.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use axum::Json;
use axum::extract::{Query, State};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::time::MissedTickBehavior;

use super::access::Viewer;
use super::broker::{Broker, Failure};
use super::serve::Server;
use crate::request::Request;

/// Time between two samples.
const INTERVAL: Duration = Duration::from_secs(2);
/// Number of samples of an hour.
const SAMPLES: usize = 1800;

/// The counters at one time. All but `states` count up.
#[derive(Debug, Clone, Serialize)]
pub struct Sample {
    /// Seconds since 1970.
    time: f64,
    /// Number of states.
    states: u64,
    /// States that were created.
    inserts: u64,
    /// Bytes that passed in and out, on all interfaces.
    bytes: [u64; 2],
    /// Packets that were blocked by rules in and out, on all interfaces.
    blocked: [u64; 2],
    /// Dropped packets by reason, without reasons that count none.
    reasons: BTreeMap<String, u64>,
}

/// The samples of the last hour.
#[derive(Debug, Default)]
pub struct History(Mutex<VecDeque<Sample>>);

impl History {
    fn add(&self, sample: Sample) {
        let mut samples = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if samples.len() == SAMPLES {
            samples.pop_front();
        }
        samples.push_back(sample);
    }

    /// Returns the samples after a time.
    fn after(&self, time: f64) -> Vec<Sample> {
        let samples = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        samples.iter().filter(|sample| sample.time > time).cloned().collect()
    }
}

/// Takes samples until the process ends.
pub async fn take_samples(server: Arc<Server>) {
    let mut ticks = tokio::time::interval(INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        // without a broker or a filter there is a gap in the history
        if let Ok(sample) = sample(&server.broker).await {
            server.history.add(sample);
        }
    }
}

async fn sample(broker: &Broker) -> Result<Sample, Failure> {
    let info = value(broker, Request::Info).await?;
    let interfaces = value(broker, Request::Interfaces).await?;
    let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let traffic = |verdict: &str, unit: &str| {
        ["in", "out"].map(|direction| sum(&interfaces, direction, verdict, unit))
    };
    let reasons = info["counters"].as_object().into_iter().flatten();
    let reasons = reasons.filter_map(|(name, count)| Some((name.clone(), count.as_u64()?)));
    Ok(Sample {
        time: time.as_secs_f64(),
        states: info["states"]["current"].as_u64().unwrap_or_default(),
        inserts: info["states"]["inserts"].as_u64().unwrap_or_default(),
        bytes: traffic("pass", "bytes"),
        blocked: traffic("block", "packets"),
        reasons: reasons.filter(|(name, count)| *count > 0 && name != "match").collect(),
    })
}

async fn value(broker: &Broker, request: Request) -> Result<Value, Failure> {
    let answer = broker.ask(None, request).await?;
    Ok(serde_json::from_slice(&answer.body).map_err(std::io::Error::from)?)
}

/// Adds a counter of all interfaces that the filter is attached to, for both address families.
fn sum(interfaces: &Value, direction: &str, verdict: &str, unit: &str) -> u64 {
    let attached = interfaces.as_array().into_iter().flatten();
    let attached = attached.filter(|interface| !interface["hook"].is_null());
    let counters = attached.flat_map(|interface| {
        ["inet", "inet6"].map(|family| &interface["traffic"][family][direction][verdict][unit])
    });
    counters.filter_map(Value::as_u64).sum()
}

/// Which samples the page wants.
#[derive(Deserialize)]
pub struct After {
    #[serde(default)]
    after: f64,
}

/// Answers with the samples after a time.
pub async fn read(
    State(server): State<Arc<Server>>,
    _: Viewer,
    Query(After { after }): Query<After>,
) -> Json<Vec<Sample>> {
    Json(server.history.after(after))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_hour_is_kept() {
        let history = History::default();
        for index in 0..SAMPLES + 10 {
            history.add(Sample {
                time: index as f64,
                states: 0,
                inserts: 0,
                bytes: [0; 2],
                blocked: [0; 2],
                reasons: BTreeMap::new(),
            });
        }
        assert_eq!(history.after(0.0).len(), SAMPLES);
        assert_eq!(history.after((SAMPLES + 7) as f64).len(), 2);
    }

    #[test]
    fn counters_of_interfaces_are_added() {
        let traffic = json!({
            "inet": {"in": {"pass": {"bytes": 5}}},
            "inet6": {"in": {"pass": {"bytes": 7}}},
        });
        let interfaces = json!([
            {"name": "all", "hook": null, "traffic": traffic},
            {"name": "em0", "hook": "tc", "traffic": traffic},
            {"name": "em1", "hook": "xdp", "traffic": traffic},
        ]);
        assert_eq!(sum(&interfaces, "in", "pass", "bytes"), 24);
        assert_eq!(sum(&interfaces, "out", "pass", "bytes"), 0);
    }
}
