//! The benchmarks that the RFCs describe. A test has frames or connections, and finds its rate
//! itself or needs a known one.

use clap::ValueEnum;
use clap::builder::PossibleValue;
use serde::{Serialize, Serializer};

/// A test of `fwlab search`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Test {
    /// Frames, at rates that the test chooses.
    Frames(FrameTest),
    /// Frames, at a throughput that is given or searched for first.
    FramesAtThroughput(FrameTestAtThroughput),
    /// Connections, at rates that the test chooses.
    Connections(ConnectionTest),
    /// Connections, at a setup rate that is given or searched for first.
    ConnectionsAtRate(ConnectionTestAtRate),
}

/// A test with frames that needs no known throughput.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FrameTest {
    /// RFC 2544 26.1: the highest rate without loss
    Throughput,
    /// RFC 2544 26.3: the loss at 100 %, 90 %, …
    LossRate,
    /// RFC 5180 5.3: effect of hop-by-hop options on the device
    HopByHop,
    /// RFC 9971: MLRsearch with the goals of RFC 2544 and TST 009
    Mlr,
}

/// A test with frames at the throughput.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FrameTestAtThroughput {
    /// RFC 9004: the longest burst without loss
    BackToBack,
    /// RFC 8219 7.2: typical and worst latency at the throughput
    Latency,
    /// RFC 2544 26.5: time from an overload to the last loss
    SystemRecovery,
    /// RFC 2544 26.6: time without frames around a reset
    Reset,
}

/// A test of connections that needs no known setup rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ConnectionTest {
    /// RFC 3511 5.2: maximum number of simultaneous TCP connections
    TcpCapacity,
    /// RFC 3511 5.3: highest rate of TCP connection setup
    TcpRate,
    /// RFC 3511 5.4: highest rate of TCP connection teardown
    TcpTearDown,
    /// RFC 3511 5.6: HTTP transfer rate in bits per second, by size of the page
    HttpTransfer,
    /// RFC 3511 5.7: highest rate of HTTP transactions
    HttpRate,
}

/// A test of connections at their setup rate, beside other traffic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ConnectionTestAtRate {
    /// RFC 3511 5.5: TCP connections beside a flood of SYNs
    #[value(name = "tcp-flood")]
    Flood,
    /// RFC 3511 5.8: TCP connections beside connections that a rule forbids
    #[value(name = "tcp-illegal")]
    Illegal,
    /// RFC 3511 5.9: TCP connections beside fragmented datagrams
    #[value(name = "tcp-fragments")]
    Fragments,
}

/// All tests in the order of the help.
const ALL: [Test; 16] = [
    Test::Frames(FrameTest::Throughput),
    Test::Frames(FrameTest::LossRate),
    Test::FramesAtThroughput(FrameTestAtThroughput::BackToBack),
    Test::FramesAtThroughput(FrameTestAtThroughput::Latency),
    Test::FramesAtThroughput(FrameTestAtThroughput::SystemRecovery),
    Test::FramesAtThroughput(FrameTestAtThroughput::Reset),
    Test::Frames(FrameTest::HopByHop),
    Test::Connections(ConnectionTest::TcpCapacity),
    Test::Connections(ConnectionTest::TcpRate),
    Test::Connections(ConnectionTest::TcpTearDown),
    Test::ConnectionsAtRate(ConnectionTestAtRate::Flood),
    Test::Connections(ConnectionTest::HttpTransfer),
    Test::Connections(ConnectionTest::HttpRate),
    Test::ConnectionsAtRate(ConnectionTestAtRate::Illegal),
    Test::ConnectionsAtRate(ConnectionTestAtRate::Fragments),
    Test::Frames(FrameTest::Mlr),
];

impl ValueEnum for Test {
    fn value_variants<'a>() -> &'a [Test] {
        &ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        match self {
            Test::Frames(test) => test.to_possible_value(),
            Test::FramesAtThroughput(test) => test.to_possible_value(),
            Test::Connections(test) => test.to_possible_value(),
            Test::ConnectionsAtRate(test) => test.to_possible_value(),
        }
    }
}

/// Writes the name on the command line.
impl Serialize for Test {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.name())
    }
}

impl Test {
    /// Returns true if the user may give a known rate.
    pub(super) fn takes_rate(self) -> bool {
        match self {
            Test::Frames(_) => false,
            Test::FramesAtThroughput(_) | Test::ConnectionsAtRate(_) => true,
            Test::Connections(test) => {
                matches!(test, ConnectionTest::TcpCapacity | ConnectionTest::TcpTearDown)
            }
        }
    }

    /// Returns true if the test is about connections, and not about frames.
    pub(super) fn is_about_connections(self) -> bool {
        matches!(self, Test::Connections(_) | Test::ConnectionsAtRate(_))
    }

    /// Returns the name on the command line.
    pub(super) fn name(self) -> String {
        self.to_possible_value().map_or(String::new(), |value| value.get_name().to_owned())
    }

    /// Returns the standard and section that describe the test.
    pub(super) fn standard(self) -> &'static str {
        match self {
            Test::Frames(test) => match test {
                FrameTest::Throughput => "RFC 2544, 26.1",
                FrameTest::LossRate => "RFC 2544, 26.3",
                FrameTest::HopByHop => "RFC 5180, 5.3",
                FrameTest::Mlr => "RFC 9971",
            },
            Test::FramesAtThroughput(test) => match test {
                FrameTestAtThroughput::BackToBack => "RFC 9004",
                FrameTestAtThroughput::Latency => "RFC 8219, 7.2",
                FrameTestAtThroughput::SystemRecovery => "RFC 2544, 26.5",
                FrameTestAtThroughput::Reset => "RFC 2544, 26.6",
            },
            Test::Connections(test) => match test {
                ConnectionTest::TcpCapacity => "RFC 3511, 5.2",
                ConnectionTest::TcpRate => "RFC 3511, 5.3",
                ConnectionTest::TcpTearDown => "RFC 3511, 5.4",
                ConnectionTest::HttpTransfer => "RFC 3511, 5.6",
                ConnectionTest::HttpRate => "RFC 3511, 5.7",
            },
            Test::ConnectionsAtRate(test) => match test {
                ConnectionTestAtRate::Flood => "RFC 3511, 5.5",
                ConnectionTestAtRate::Illegal => "RFC 3511, 5.8",
                ConnectionTestAtRate::Fragments => "RFC 3511, 5.9",
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_has_all_tests() {
        for test in ALL {
            assert_eq!(Test::from_str(&test.name(), false), Ok(test));
        }
        let count = FrameTest::value_variants().len()
            + FrameTestAtThroughput::value_variants().len()
            + ConnectionTest::value_variants().len()
            + ConnectionTestAtRate::value_variants().len();
        assert_eq!(count, ALL.len());
    }
}
