//! A load of frames: sizes, varying fields, number of flows.

use std::fmt;
use std::fs;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::{Context, bail, ensure};
use fwlab_net::family::Family;
use fwlab_net::transport::Transport;
use serde::{Deserialize, Serialize};
use skipstep_kernel::lab::{Field, PATTERN, Template, VALUES, Variation};

use super::extension::Extension;
use super::frame::Flow;

/// Simple IMIX as counts and sizes in bytes: seven small frames, four of middle size, one large
/// frame.
const IMIX: [(usize, usize); 3] = [(7, 64), (4, 570), (1, 1518)];

/// The longest MTU in bytes at which veth accepts the frames of the kernel's generator.
pub const KERNEL_MTU: u32 = 3000;

/// The most networks of 256 addresses: as many as in RFC 2544 section 12.
const MOST_NETWORKS: u32 = 256;

/// The sizes of frames. Each pair has the number of frames in the repeated pattern, and their size
/// in bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Sizes(Vec<(usize, usize)>);

impl FromStr for Sizes {
    type Err = String;

    fn from_str(text: &str) -> Result<Sizes, String> {
        if text == "imix" {
            return Ok(Sizes(IMIX.to_vec()));
        }
        match text.parse() {
            Ok(size @ 8..=9018) => Ok(Sizes(vec![(1, size)])),
            _ => Err("must be 8 to 9018 bytes, or imix".to_owned()),
        }
    }
}

impl fmt::Display for Sizes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == IMIX {
            return f.write_str("imix");
        }
        let sizes: Vec<_> = self.0.iter().map(|(_, size)| size.to_string()).collect();
        f.write_str(&sizes.join(" "))
    }
}

impl TryFrom<String> for Sizes {
    type Error = String;

    fn try_from(text: String) -> Result<Sizes, String> {
        text.parse()
    }
}

impl From<Sizes> for String {
    fn from(sizes: Sizes) -> String {
        sizes.to_string()
    }
}

impl Sizes {
    /// Returns the sizes and their pattern: indexes of sizes in the order of sending. Sizes of a
    /// mix grow to `smallest`.
    pub fn pattern(&self, smallest: usize) -> (Vec<usize>, Vec<u8>) {
        let grown = |size: usize| if self.0.len() > 1 { size.max(smallest) } else { size };
        let sizes = self.0.iter().map(|&(_, size)| grown(size)).collect();
        let total: usize = self.0.iter().map(|&(count, _)| count).sum();
        // spreads each size over the pattern, so that no burst has a single size
        let mut slots: Vec<(usize, u8)> = Vec::new();
        for (place, &(count, _)) in self.0.iter().enumerate() {
            slots.extend((0..count).map(|turn| ((2 * turn + 1) * total / count, place as u8)));
        }
        slots.sort_unstable();
        (sizes, slots.into_iter().map(|(_, place)| place).take(PATTERN).collect())
    }

    /// Makes the sizes of frames that all have `size` bytes.
    pub fn one(size: usize) -> Sizes {
        Sizes(vec![(1, size)])
    }

    /// Returns the size in bytes. None for a mix.
    pub fn single(&self) -> Option<u32> {
        match self.0[..] {
            [(_, size)] => u32::try_from(size).ok(),
            _ => None,
        }
    }
}

/// The variation of a field: `fixed`, `N` (N values in rotation), `random:N`, `networks:N`,
/// `list:FILE`, `random-list:FILE`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Vary {
    /// One value.
    Fixed,
    /// This number of values, one after the other.
    Count(u32),
    /// A random one of this number of values.
    Random(u32),
    /// The same host in a random one of this number of networks of 256 addresses.
    Networks(u32),
    /// The values of a file, one a line, one after the other.
    List(PathBuf),
    /// A random one of the values of a file.
    RandomList(PathBuf),
}

/// Writes the variation as on the command line.
impl fmt::Display for Vary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Vary::Fixed => f.write_str("fixed"),
            Vary::Count(count) => write!(f, "{count}"),
            Vary::Random(count) => write!(f, "random:{count}"),
            Vary::Networks(count) => write!(f, "networks:{count}"),
            Vary::List(file) => write!(f, "list:{}", file.display()),
            Vary::RandomList(file) => write!(f, "random-list:{}", file.display()),
        }
    }
}

impl FromStr for Vary {
    type Err = String;

    fn from_str(text: &str) -> Result<Vary, String> {
        let number = |text: &str| match text.parse() {
            Ok(count @ 1..=0x0100_0000) => Ok(count),
            _ => Err("must be fixed, NUMBER, random:NUMBER, networks:NUMBER, list:FILE or \
                 random-list:FILE; numbers are 1 to 16777216"
                .to_owned()),
        };
        match text.split_once(':') {
            None if text == "fixed" => Ok(Vary::Fixed),
            Some(("random", count)) => number(count).map(Vary::Random),
            Some(("networks", count)) => match count.parse() {
                Ok(count @ 1..=MOST_NETWORKS) => Ok(Vary::Networks(count)),
                _ => {
                    Err(format!("must be networks:NUMBER with a number from 1 to {MOST_NETWORKS}"))
                }
            },
            Some(("list", file)) => Ok(Vary::List(file.into())),
            Some(("random-list", file)) => Ok(Vary::RandomList(file.into())),
            _ => number(text).map(Vary::Count),
        }
    }
}

impl TryFrom<String> for Vary {
    type Error = String;

    fn try_from(text: String) -> Result<Vary, String> {
        text.parse()
    }
}

impl From<Vary> for String {
    fn from(how: Vary) -> String {
        how.to_string()
    }
}

/// The generator of frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Engine {
    /// a BPF program in the kernel, at the speed of XDP
    Xdp,
    /// fwlab itself, through a packet socket: slower, but it works with any kernel and interface
    /// and sends longer frames
    Packet,
}

/// The flags for a load of frames.
#[derive(Debug, Clone, PartialEq, Eq, clap::Args, Serialize, Deserialize)]
pub struct Load {
    /// Generator of the frames
    #[arg(long, value_enum, default_value = "xdp")]
    pub engine: Engine,
    /// Transport protocol of the frames
    #[arg(long, value_enum, default_value = "udp")]
    pub transport: Transport,
    /// IP version of the frames: 4 or 6
    #[arg(long, value_name = "VERSION", default_value = "4")]
    pub ip: Family,
    /// Extension headers of IPv6 frames
    #[arg(long, value_enum, default_value = "none")]
    pub extension: Extension,
    /// Bytes of a frame with its checksum, 8 to 9018, or imix; bytes of the payload with --traffic
    #[arg(long, value_name = "BYTES", default_value = "64")]
    pub size: Sizes,
    /// Variation of source addresses, beginning with the client's: fixed, NUMBER, random:NUMBER,
    /// networks:NUMBER, list:FILE or random-list:FILE
    #[arg(long, value_name = "VARIATION", default_value = "fixed")]
    pub sources: Vary,
    /// Variation of destination addresses, beginning with the server's, as for --sources
    #[arg(long, value_name = "VARIATION", default_value = "fixed")]
    pub destinations: Vary,
    /// Variation of source ports, beginning with 1024: fixed, NUMBER or random:NUMBER
    #[arg(long, value_name = "VARIATION", default_value = "256")]
    pub source_ports: Vary,
    /// Variation of destination ports, beginning with 9: fixed, NUMBER or random:NUMBER
    #[arg(long, value_name = "VARIATION", default_value = "fixed")]
    pub destination_ports: Vary,
    /// Seed of all random values
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

/// A load in the generator's form.
pub struct Prepared {
    /// The templates, by index of the size. Empty for the packet socket.
    pub templates: Vec<Template>,
    /// The frames of each size, before fields vary.
    pub frames: Vec<Vec<u8>>,
    /// The order of the sizes, as indexes.
    pub pattern: Vec<u8>,
    /// The variation of source address, destination address, source port and destination port.
    pub fields: [Field; 4],
    /// The values of lists.
    pub values: Vec<u32>,
}

impl Load {
    /// Returns the number of different flows. None if fields vary at random or by lists.
    pub fn flows(&self) -> Option<u64> {
        let all = [&self.sources, &self.destinations, &self.source_ports, &self.destination_ports];
        let count = |how: &Vary| match how {
            Vary::Fixed => Some(1),
            Vary::Count(count) => Some(u64::from(*count)),
            _ => None,
        };
        all.into_iter().try_fold(1u64, |product, how| product.checked_mul(count(how)?))
    }

    /// Returns true if values are in files.
    pub fn has_lists(&self) -> bool {
        let all = [&self.sources, &self.destinations, &self.source_ports, &self.destination_ports];
        all.into_iter().any(|how| matches!(how, Vary::List(_) | Vary::RandomList(_)))
    }

    /// Returns the parameters that a repetition needs, as text for results.
    pub fn details(&self) -> String {
        let engine = match self.engine {
            Engine::Xdp => "xdp",
            Engine::Packet => "packet",
        };
        let extension = match self.extension {
            Extension::None => String::new(),
            one => format!("extension headers {}, ", one.name()),
        };
        format!(
            "engine {engine}, {extension}size {}, sources {}, destinations {}, source ports {}, destination ports {}, seed {}",
            self.size,
            self.sources,
            self.destinations,
            self.source_ports,
            self.destination_ports,
            self.seed
        )
    }

    /// Makes the frames, the pattern and the fields for a flow.
    ///
    /// # Errors
    /// Fails if a size is impossible for the flow, if too many ports are asked for, or if a list
    /// cannot be read.
    pub fn prepare(&self, flow: &Flow) -> anyhow::Result<Prepared> {
        let (sizes, pattern) = self.size.pattern(flow.smallest());
        let templates = match self.engine {
            Engine::Xdp => sizes.iter().map(|&size| flow.template(size)).collect(),
            Engine::Packet => Ok(Vec::new()),
        };
        let templates = templates?;
        let frames = sizes.iter().map(|&size| flow.frame(size));
        let frames = frames.collect::<anyhow::Result<Vec<_>>>()?;
        let mut values = Vec::new();
        let words = [
            low_word(flow.addresses[0]),
            low_word(flow.addresses[1]),
            flow.ports[0].into(),
            flow.ports[1].into(),
        ];
        let how = [&self.sources, &self.destinations, &self.source_ports, &self.destination_ports];
        let mut fields = [Field::FIXED; 4];
        let mut every: u64 = 1;
        for place in [2, 3, 0, 1] {
            let is_port = place >= 2;
            let (field, count) = field(how[place], words[place], is_port, every, &mut values)?;
            fields[place] = field;
            // a field advances when the previous one has had all values, so that all combinations
            // occur
            every = every.saturating_mul(count);
        }
        Ok(Prepared { templates, frames, pattern, fields, values })
    }
}

/// Returns a field in the generator's form, and the number of its values in rotation.
fn field(
    how: &Vary,
    first: u32,
    is_port: bool,
    every: u64,
    values: &mut Vec<u32>,
) -> anyhow::Result<(Field, u64)> {
    let every = u32::try_from(every).unwrap_or(u32::MAX);
    let fits = |count: u32| {
        let room = if is_port { 65_536 - first } else { u32::MAX - first };
        ensure!(count <= room, "{count} ports beginning with {first}: at most {room}");
        Ok(count)
    };
    Ok(match how {
        Vary::Fixed => (Field::FIXED, 1),
        Vary::Count(count) => {
            (Field::new(Variation::Counted, first, fits(*count)?, every), u64::from(*count))
        }
        Vary::Random(count) => (Field::new(Variation::Drawn, first, fits(*count)?, 1), 1),
        Vary::Networks(count) => {
            ensure!(!is_port, "networks: is for addresses, not for ports");
            let start = values.len() as u32;
            values.extend((0..*count).map(|number| first.wrapping_add(number << 8)));
            (Field::new(Variation::ListedDrawn, start, *count, 1), 1)
        }
        Vary::List(file) | Vary::RandomList(file) => {
            let list = read_list(file, is_port)?;
            let (start, count) = (values.len() as u32, list.len() as u32);
            values.extend(list);
            ensure!(
                values.len() <= VALUES as usize,
                "all lists together have more than {VALUES} values"
            );
            match how {
                Vary::List(_) => {
                    (Field::new(Variation::Listed, start, count, every), u64::from(count))
                }
                _ => (Field::new(Variation::ListedDrawn, start, count, 1), 1),
            }
        }
    })
}

/// Reads the values of a file, one a line. Of an address only the last 32 bits count.
fn read_list(path: &Path, is_port: bool) -> anyhow::Result<Vec<u32>> {
    let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
    let mut values = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default().trim();
        let value = match line {
            "" => continue,
            port if is_port => port.parse::<u16>().ok().map(u32::from),
            address => address.parse().ok().map(low_word),
        };
        let kind = if is_port { "port" } else { "address" };
        match value {
            Some(value) => values.push(value),
            None => bail!("{}:{}: no {kind}: {line}", path.display(), number + 1),
        }
    }
    ensure!(!values.is_empty(), "{}: no values in it", path.display());
    Ok(values)
}

/// Returns the last 32 bits of an address.
fn low_word(address: IpAddr) -> u32 {
    match address {
        IpAddr::V4(address) => address.to_bits(),
        IpAddr::V6(address) => address.to_bits() as u32,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn imix_is_seven_four_one_and_spread() {
        let (sizes, pattern) = "imix".parse::<Sizes>().unwrap().pattern(64);
        assert_eq!(sizes, [64, 570, 1518]);
        let count = |place| pattern.iter().filter(|&&one| one == place).count();
        assert_eq!([count(0), count(1), count(2)], [7, 4, 1]);
        assert_ne!(&pattern[..7], &[0; 7]);
        assert_eq!("imix".parse::<Sizes>().unwrap().pattern(96).0, [96, 570, 1518]);
        assert!("7".parse::<Sizes>().is_err());
    }

    #[test]
    fn variations_are_printed_as_they_are_parsed() {
        for how in ["fixed", "7", "random:9", "networks:256", "list:a b", "random-list:/x"] {
            assert_eq!(how.parse::<Vary>().unwrap().to_string(), how);
        }
        for size in ["imix", "64", "9018"] {
            assert_eq!(size.parse::<Sizes>().unwrap().to_string(), size);
        }
    }

    #[test]
    fn lists_say_which_line_is_wrong() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("list");
        fs::write(&path, "198.18.0.7 # first\n\n2001:2::7\n").unwrap();
        assert_eq!(read_list(&path, false).unwrap(), [0xc612_0007, 7]);
        assert!(read_list(&path, true).unwrap_err().to_string().contains("list:1: no port"));
        fs::write(&path, "# nothing\n").unwrap();
        assert!(read_list(&path, true).is_err());
    }

    #[test]
    fn networks_have_the_same_host_each() {
        let mut values = vec![1];
        let (field, _) = field(&Vary::Networks(3), 0xc613_0002, false, 1, &mut values).unwrap();
        assert_eq!(field, Field::new(Variation::ListedDrawn, 1, 3, 1));
        assert_eq!(values, [1, 0xc613_0002, 0xc613_0102, 0xc613_0202]);
        assert!(super::field(&Vary::Networks(3), 9, true, 1, &mut values).is_err());
        assert!("networks:257".parse::<Vary>().is_err());
    }

    #[test]
    fn all_combinations_come() {
        let mut values = Vec::new();
        let (port, count) = field(&Vary::Count(10), 1024, true, 1, &mut values).unwrap();
        assert_eq!((port, count), (Field::new(Variation::Counted, 1024, 10, 1), 10));
        let (address, _) = field(&Vary::Count(3), 7, false, count, &mut values).unwrap();
        assert_eq!(address, Field::new(Variation::Counted, 7, 3, 10));
        assert!(field(&Vary::Count(65_000), 1024, true, 1, &mut values).is_err());
    }
}
