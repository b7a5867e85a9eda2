//! Series of papers before a measurement: the load and the measured quantity, without points.

use std::time::Duration;

use fwlab_load::raw::load::Load;
use fwlab_load::sockets::Talk;
use fwlab_net::family::Family;
use fwlab_net::topology::End;
use fwlab_net::traffic::{ServerAddress, TrafficKind};
use fwlab_net::transport::Transport;
use fwlab_results::{Dimension, Quantity, Series};

/// Makes the conversation of one client with the server, with a payload of `size` bytes.
pub(crate) fn talk(
    kind: TrafficKind,
    transport: Transport,
    family: Family,
    size: usize,
    seconds: f64,
) -> Talk {
    let duration = Duration::from_secs_f64(seconds);
    let (to, way) = (End::Server, ServerAddress::Straight);
    Talk { kind, transport, family, size, duration, clients: 1, active: false, to, way }
}

/// Makes a series of forwarding rates, without points.
pub(crate) fn rates(title: String, load: &Load, seconds: f64, dimension: &str) -> Series {
    Series {
        title,
        load: fwlab_results::Load {
            kind: "raw".to_owned(),
            protocol: Some(load.transport.to_string()),
            family: Some(if load.ip == Family::V4 { "inet" } else { "inet6" }.to_owned()),
            size: load.size.single().map(u64::from),
            flows: load.flows(),
            seconds,
            details: load.details(),
            ..fwlab_results::Load::default()
        },
        quantity: Quantity {
            name: "forwarding rate".to_owned(),
            unit: "frames/s".to_owned(),
            better: fwlab_results::Better::Higher,
            additive: false,
        },
        dimension: Some(Dimension { name: dimension.to_owned(), unit: String::new() }),
        points: Vec::new(),
    }
}

/// Makes a series of times per frame, without points.
pub(crate) fn costs(title: String, load: &Load, seconds: f64, dimension: &str) -> Series {
    let quantity = Quantity {
        name: "time per packet".to_owned(),
        unit: "ns".to_owned(),
        better: fwlab_results::Better::Lower,
        additive: true,
    };
    Series { quantity, ..rates(title, load, seconds, dimension) }
}

/// Makes a series of a sockets load, without points.
pub(crate) fn series(title: String, talk: &Talk, dimension: Option<&str>) -> Series {
    let (name, unit) = talk.kind.quantity();
    Series {
        title,
        load: fwlab_results::Load {
            kind: talk.kind.name().to_owned(),
            protocol: Some(talk.transport.to_string()),
            family: Some(if talk.family == Family::V4 { "inet" } else { "inet6" }.to_owned()),
            size: Some(talk.size as u64),
            flows: Some(1),
            parallel: Some(talk.clients as u64).filter(|&clients| clients > 1),
            seconds: talk.duration.as_secs_f64(),
            ..fwlab_results::Load::default()
        },
        quantity: Quantity {
            name: name.to_owned(),
            unit: unit.to_owned(),
            better: if unit == "ns" {
                fwlab_results::Better::Lower
            } else {
                fwlab_results::Better::Higher
            },
            additive: unit == "ns",
        },
        dimension: dimension.map(|name| Dimension { name: name.to_owned(), unit: String::new() }),
        points: Vec::new(),
    }
}
