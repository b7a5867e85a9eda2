//! The kinds of frames of a search: sizes (RFC 2544 section 9.1), destinations in one network and
//! in many (section 12), and IPv6 extension headers. The last are from RFC 5180 section 5.3.

use std::str::FromStr;

use clap::ValueEnum;
use fwlab_load::raw::extension::Extension;
use fwlab_load::raw::load::{Engine, Load, Sizes, Vary};
use fwlab_net::family::Family;
use fwlab_net::transport::Transport;

use super::Variety;

/// Frame sizes of Ethernet in bytes, RFC 2544 section 9.1.
const SIZES: [u32; 7] = [64, 128, 256, 512, 1024, 1280, 1518];

/// Bytes of an Ethernet frame around its IP packet: header and checksum.
const ETHERNET: u32 = 18;

/// Numbers of destination networks, RFC 2544 section 12.
const NETWORKS: [u32; 2] = [1, 256];

/// Extension headers of RFC 5180 section 5.3 for throughput and similar tests. Hop-by-hop options
/// have a test of their own.
const EXTENSIONS: [Extension; 5] = [
    Extension::None,
    Extension::Destination,
    Extension::Routing,
    Extension::Fragment,
    Extension::Chain,
];

/// Returns the bytes of the smallest frame that has room for the headers and fwlab's tag.
pub fn smallest(ip6: bool, extension: Extension) -> u32 {
    if ip6 { 84 + extension.length() as u32 } else { 64 }
}

/// A kind of frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frames {
    /// Bytes of a frame, with its checksum.
    pub size: u32,
    /// IPv4 or IPv6.
    pub ip: Family,
    /// The extension headers.
    pub extension: Extension,
    /// Number of networks from which destinations are drawn.
    pub networks: u32,
}

impl Frames {
    /// Returns the load of such frames, with 256 flows in each network.
    pub fn load(self, engine: Engine) -> Load {
        let Frames { size, ip, extension, networks } = self;
        Load {
            engine,
            transport: Transport::Udp,
            ip,
            extension,
            size: Sizes::one(size as usize),
            sources: Vary::Fixed,
            destinations: if networks > 1 { Vary::Networks(networks) } else { Vary::Fixed },
            source_ports: Vary::Count(256),
            destination_ports: Vary::Fixed,
            seed: 1,
        }
    }

    /// Returns the name of the kind in reports.
    pub fn name(self) -> String {
        let Frames { size, networks, extension, .. } = self;
        let to = if networks > 1 { format!(" to {networks} networks") } else { String::new() };
        let with = match extension {
            Extension::None => String::new(),
            one => format!(" with the extension headers {}", one.name()),
        };
        format!("frames of {size} bytes{to}{with}")
    }
}

/// The values of a flag, or all values of the standards.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Several<T> {
    /// The values given.
    These(Vec<T>),
    /// The word `all`.
    All,
}

impl<T: Copy> Several<T> {
    /// Returns the values, or `all` for the word `all`.
    fn or_all(&self, all: &[T]) -> Vec<T> {
        match self {
            Several::These(some) => some.clone(),
            Several::All => all.to_vec(),
        }
    }
}

/// A value of a flag that takes several.
pub trait Value: Sized {
    /// Parses one value.
    ///
    /// # Errors
    /// Fails if the text is no value, with a message that names the valid ones.
    fn read(text: &str) -> Result<Self, String>;
}

/// Bytes of a frame, with its checksum: 64 to 9018.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size(u32);

impl Value for Size {
    fn read(text: &str) -> Result<Size, String> {
        match text.parse() {
            Ok(bytes @ 64..=9018) => Ok(Size(bytes)),
            _ => Err("must be 64 to 9018 bytes, several such sizes, or all".to_owned()),
        }
    }
}

/// Number of networks of destinations: 1 to 256.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Networks(u32);

impl Value for Networks {
    fn read(text: &str) -> Result<Networks, String> {
        match text.parse() {
            Ok(count @ 1..=256) => Ok(Networks(count)),
            _ => Err("must be 1 to 256 networks, several such numbers, or all".to_owned()),
        }
    }
}

impl Value for Extension {
    fn read(text: &str) -> Result<Extension, String> {
        Extension::from_str(text, false).map_err(|_| {
            format!("{text}: must be none, destination, routing, fragment, chain, or all")
        })
    }
}

impl<T: Value> FromStr for Several<T> {
    type Err = String;

    fn from_str(text: &str) -> Result<Several<T>, String> {
        if text == "all" {
            return Ok(Several::All);
        }
        text.split(',').map(T::read).collect::<Result<_, _>>().map(Several::These)
    }
}

/// The flags for kinds of frames.
#[derive(Debug, Clone, clap::Args)]
pub struct Kinds {
    /// Frame sizes in bytes with the checksum, tested one after the other, or all: the seven sizes
    /// of RFC 2544; by default the smallest possible size
    #[arg(long, value_name = "BYTES,...")]
    size: Option<Several<Size>>,
    /// Numbers of destination networks, 1 to 256, tested one after the other, or all: 1 and 256
    #[arg(long, value_name = "NUMBER,...", default_value = "1")]
    networks: Several<Networks>,
    /// IP version of the frames: 4, or 6 as RFC 5180 requires
    #[arg(long, value_name = "VERSION", default_value = "4")]
    pub ip: Family,
    /// Extension headers of IPv6 frames, tested one after the other, or all: none, each alone and a
    /// chain; not for the test hop-by-hop, which sets its own
    #[arg(long, value_name = "HEADERS,...", default_value = "none")]
    extension: Several<Extension>,
}

impl Kinds {
    /// Returns true if a flag other than `--ip` was given.
    pub fn are_special(&self) -> bool {
        self.size.is_some()
            || self.networks != Several::These(vec![Networks(1)])
            || self.has_extensions()
    }

    /// Returns true if no flag other than `--size` was given.
    pub fn knows_sizes_alone(&self) -> bool {
        !Kinds { size: None, ..self.clone() }.are_special() && self.ip == Family::V4
    }

    /// Returns the longest IP packet of all kinds in bytes, and at least 1500.
    pub fn mtu(&self) -> u32 {
        let longest = self.each().iter().map(|one| one.size - ETHERNET).max();
        longest.unwrap_or_default().max(1500)
    }

    /// Returns true if some kinds have extension headers.
    pub fn has_extensions(&self) -> bool {
        self.extension != Several::These(vec![Extension::None])
    }

    /// Returns true if some kinds have this extension header.
    pub fn has(&self, extension: Extension) -> bool {
        self.extension.or_all(&EXTENSIONS).contains(&extension)
    }

    /// Returns the kinds of one family with one extension header.
    pub fn only(&self, ip: Family, extension: Extension) -> Kinds {
        Kinds { ip, extension: Several::These(vec![extension]), ..self.clone() }
    }

    /// Returns all kinds. The default size is the same for all extension headers, so that their
    /// results can be compared.
    pub fn each(&self) -> Vec<Frames> {
        let ip = self.ip;
        let extensions = self.extension.or_all(&EXTENSIONS);
        let least = extensions.iter().map(|&one| smallest(ip == Family::V6, one)).max();
        let least = least.unwrap_or_default();
        let sizes = match &self.size {
            None => vec![least],
            Some(Several::These(some)) => some.iter().map(|size| size.0).collect(),
            Some(Several::All) => SIZES.map(|size| size.max(least)).to_vec(),
        };
        let networks = self.networks.or_all(&NETWORKS.map(Networks));
        let mut all = Vec::new();
        for &size in &sizes {
            for &Networks(networks) in &networks {
                for &extension in &extensions {
                    all.push(Frames { size, ip, extension, networks });
                }
            }
        }
        all.dedup();
        all
    }

    /// Returns the varieties of the standards that the kinds include.
    pub fn variety(&self) -> Variety {
        let each = self.each();
        let least = each.iter().map(|one| smallest(self.ip == Family::V6, one.extension)).max();
        let least = least.unwrap_or_default();
        let has = |is: &dyn Fn(&Frames) -> bool| each.iter().any(is);
        Variety {
            sizes: SIZES.iter().all(|&size| has(&|one| one.size == size.max(least))),
            networks: NETWORKS.iter().all(|&count| has(&|one| one.networks == count)),
            extensions: EXTENSIONS.iter().all(|&extension| has(&|one| one.extension == extension)),
            ..Variety::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{Args, FromArgMatches};

    fn kinds(words: &[&str]) -> Result<Kinds, String> {
        let command = Kinds::augment_args(clap::Command::new("search").no_binary_name(true));
        let matches = command.try_get_matches_from(words).map_err(|error| error.to_string())?;
        Kinds::from_arg_matches(&matches).map_err(|error| error.to_string())
    }

    #[test]
    fn the_least_that_all_kinds_can_have_is_their_size() {
        let one = |words| kinds(words).unwrap().each();
        let sizes = |words| one(words).iter().map(|frames| frames.size).collect::<Vec<_>>();
        assert_eq!(sizes(&[]), [64]);
        assert_eq!(sizes(&["--ip", "6"]), [84]);
        assert_eq!(sizes(&["--ip", "6", "--extension", "all"]), [124; 5]);
        assert_eq!(sizes(&["--size", "all"]), SIZES);
        assert_eq!(sizes(&["--ip", "6", "--size", "all"])[..2], [84, 128]);
        assert_eq!(sizes(&["--size", "64,9018", "--networks", "all"]), [64, 64, 9018, 9018]);
    }

    #[test]
    fn the_variety_of_kinds_is_detected() {
        let variety = |words| kinds(words).unwrap().variety();
        assert_eq!(variety(&[]), Variety::default());
        assert_eq!(variety(&["--size", "all"]), Variety { sizes: true, ..Variety::default() });
        let all = ["--ip", "6", "--size", "all", "--networks", "1,256", "--extension", "all"];
        assert_eq!(
            variety(&all),
            Variety { sizes: true, networks: true, extensions: true, ..Variety::default() }
        );
        assert!(!variety(&["--networks", "256"]).networks, "one network was asked for besides");
    }

    #[test]
    fn invalid_values_are_refused() {
        for wrong in [
            ["--size", "63"],
            ["--size", "64,"],
            ["--networks", "257"],
            ["--extension", "none,chains"],
        ] {
            assert!(kinds(&wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn a_name_tells_kinds_apart() {
        let all = ["--ip", "6", "--size", "all", "--networks", "1,256", "--extension", "all"];
        let all = kinds(&all).unwrap().each();
        let names: std::collections::BTreeSet<String> = all.iter().map(|one| one.name()).collect();
        assert_eq!(names.len(), all.len());
        assert!(
            names.contains("frames of 512 bytes to 256 networks with the extension headers chain")
        );
        let load = all[2].load(Engine::Xdp);
        assert_eq!((load.ip, load.extension), (Family::V6, all[2].extension));
    }
}
