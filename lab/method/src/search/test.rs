//! The benchmarks that the RFCs describe.

use clap::ValueEnum;
use serde::Serialize;

/// A test of `fwlab search`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Test {
    /// RFC 2544 26.1: the highest rate without loss
    Throughput,
    /// RFC 2544 26.3: the loss at 100 %, 90 %, …
    LossRate,
    /// RFC 9004: the longest burst without loss
    BackToBack,
    /// RFC 8219 7.2: typical and worst latency at the throughput
    Latency,
    /// RFC 2544 26.5: time from an overload to the last loss
    SystemRecovery,
    /// RFC 2544 26.6: time without frames around a reset
    Reset,
    /// RFC 5180 5.3: effect of hop-by-hop options on the device
    HopByHop,
    /// RFC 3511 5.2: maximum number of simultaneous TCP connections
    TcpCapacity,
    /// RFC 3511 5.3: highest rate of TCP connection setup
    TcpRate,
    /// RFC 3511 5.4: highest rate of TCP connection teardown
    TcpTearDown,
    /// RFC 3511 5.5: TCP connections beside a flood of SYNs
    TcpFlood,
    /// RFC 3511 5.6: HTTP transfer rate in bits per second, by size of the page
    HttpTransfer,
    /// RFC 3511 5.7: highest rate of HTTP transactions
    HttpRate,
    /// RFC 3511 5.8: TCP connections beside connections that a rule forbids
    TcpIllegal,
    /// RFC 3511 5.9: TCP connections beside fragmented datagrams
    TcpFragments,
    /// RFC 9971: MLRsearch with the goals of RFC 2544 and TST 009
    Mlr,
}

impl Test {
    /// Returns true if the test needs a known throughput.
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

    /// Returns true if the test is about connections, and not about frames.
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

    /// Returns the name on the command line.
    pub(super) fn name(self) -> String {
        self.to_possible_value().map_or(String::new(), |value| value.get_name().to_owned())
    }

    /// Returns the standard and section that describe the test.
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
