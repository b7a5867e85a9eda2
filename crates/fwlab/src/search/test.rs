//! The tests that the RFCs about benchmarking describe.

use clap::ValueEnum;
use serde::Serialize;

/// Which search.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Test {
    /// RFC 2544 26.1: the highest rate without loss
    Throughput,
    /// RFC 2544 26.3: what is lost at 100 %, 90 %, …
    LossRate,
    /// RFC 9004: the longest burst without loss
    BackToBack,
    /// RFC 8219 7.2: typical and worst latency at the throughput
    Latency,
    /// RFC 2544 26.5: until nothing is lost after too much
    SystemRecovery,
    /// RFC 2544 26.6: until frames come after a reset
    Reset,
    /// RFC 5180 5.3: what hop-by-hop options do to the device
    HopByHop,
    /// RFC 3511 5.2: how many TCP connections there can be at once
    TcpCapacity,
    /// RFC 3511 5.3: how many TCP connections a second can be made
    TcpRate,
    /// RFC 3511 5.4: how many TCP connections a second can be torn down
    TcpTearDown,
    /// RFC 3511 5.5: what becomes of TCP connections beside a flood of SYNs
    TcpFlood,
    /// RFC 3511 5.6: how many bits a second of pages can be fetched, by their size
    HttpTransfer,
    /// RFC 3511 5.7: how many pages a second can be fetched
    HttpRate,
    /// RFC 3511 5.8: what becomes of TCP connections that a rule forbids, beside others
    TcpIllegal,
    /// RFC 3511 5.9: what becomes of TCP connections and of datagrams in fragments beside them
    TcpFragments,
    /// RFC 9971: MLRsearch with the goals of RFC 2544 and TST 009
    Mlr,
}

impl Test {
    /// Whether the throughput has to be known for it.
    pub(super) fn is_done_at_throughput(self) -> bool {
        !matches!(
            self,
            Test::Throughput
                | Test::LossRate
                | Test::HopByHop
                | Test::TcpRate
                | Test::HttpTransfer
                | Test::HttpRate
                | Test::Mlr
        )
    }

    /// Whether it is about connections and not about frames.
    pub(super) fn is_about_connections(self) -> bool {
        matches!(
            self,
            Test::TcpCapacity
                | Test::TcpRate
                | Test::TcpTearDown
                | Test::TcpFlood
                | Test::HttpTransfer
                | Test::HttpRate
                | Test::TcpIllegal
                | Test::TcpFragments
        )
    }

    /// As it is given on the command line.
    pub(super) fn name(self) -> String {
        self.to_possible_value().map_or(String::new(), |value| value.get_name().to_owned())
    }

    /// What says how it is done.
    pub(super) fn standard(self) -> &'static str {
        match self {
            Test::Throughput => "RFC 2544, 26.1",
            Test::LossRate => "RFC 2544, 26.3",
            Test::BackToBack => "RFC 9004",
            Test::Latency => "RFC 8219, 7.2",
            Test::SystemRecovery => "RFC 2544, 26.5",
            Test::Reset => "RFC 2544, 26.6",
            Test::HopByHop => "RFC 5180, 5.3",
            Test::TcpCapacity => "RFC 3511, 5.2",
            Test::TcpRate => "RFC 3511, 5.3",
            Test::TcpTearDown => "RFC 3511, 5.4",
            Test::TcpFlood => "RFC 3511, 5.5",
            Test::HttpTransfer => "RFC 3511, 5.6",
            Test::HttpRate => "RFC 3511, 5.7",
            Test::TcpIllegal => "RFC 3511, 5.8",
            Test::TcpFragments => "RFC 3511, 5.9",
            Test::Mlr => "RFC 9971",
        }
    }
}
