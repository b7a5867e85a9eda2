//! Kinds of frames that a search is done with, one after the other: sizes (RFC 2544, 9.1),
//! destinations in one network and in many (section 12), extension headers of IPv6 (RFC 5180, 5.3).

use std::str::FromStr;

use clap::ValueEnum;

use super::Variety;
use crate::family::Family;
use crate::raw::extension::Extension;
use crate::raw::frame::Transport;
use crate::raw::load::{Engine, Load, Sizes, Vary};

/// Sizes of frames on Ethernet, RFC 2544 section 9.1.
const SIZES: [u32; 7] = [64, 128, 256, 512, 1024, 1280, 1518];

/// Bytes of a frame around its IP packet.
const ETHERNET: u32 = 18;

/// Networks of destinations, RFC 2544 section 12.
const NETWORKS: [u32; 2] = [1, 256];

/// What RFC 5180 section 5.3 has throughput and the like measured with; hop-by-hop options have a
/// test of their own.
const EXTENSIONS: [Extension; 5] = [
    Extension::None,
    Extension::Destination,
    Extension::Routing,
    Extension::Fragment,
    Extension::Chain,
];

/// Bytes of the smallest frame that has room for what the laboratory writes into it.
pub fn smallest(ip6: bool, extension: Extension) -> u32 {
    if ip6 { 84 + extension.length() as u32 } else { 64 }
}

/// What frames are like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frames {
    /// Bytes of one, with its checksum.
    pub size: u32,
    /// IP of theirs.
    pub ip: Family,
    /// Their extension headers.
    pub extension: Extension,
    /// Networks that destinations are drawn from.
    pub networks: u32,
}

impl Frames {
    /// A load of them, of 256 flows in each network.
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

    /// What tells them from others.
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

/// Several values of a flag, or all that standards ask for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Several<T> {
    /// These.
    These(Vec<T>),
    /// `all`.
    All,
}

impl<T: Copy> Several<T> {
    /// They, where these are all.
    fn of(&self, all: &[T]) -> Vec<T> {
        match self {
            Several::These(some) => some.clone(),
            Several::All => all.to_vec(),
        }
    }
}

/// Something that a flag takes several of.
pub trait Value: Sized {
    /// One of them.
    ///
    /// # Errors
    /// It is none.
    fn read(text: &str) -> Result<Self, String>;
}

/// Bytes of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size(u32);

impl Value for Size {
    fn read(text: &str) -> Result<Size, String> {
        match text.parse() {
            Ok(bytes @ 64..=9018) => Ok(Size(bytes)),
            _ => Err("between 64 and 9018 bytes, several of them, or all".to_owned()),
        }
    }
}

/// Networks of destinations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Networks(u32);

impl Value for Networks {
    fn read(text: &str) -> Result<Networks, String> {
        match text.parse() {
            Ok(count @ 1..=256) => Ok(Networks(count)),
            _ => Err("1 to 256 networks, several numbers of them, or all".to_owned()),
        }
    }
}

impl Value for Extension {
    fn read(text: &str) -> Result<Extension, String> {
        Extension::from_str(text, false).map_err(|_| {
            format!(
                "{text}: no extension headers: none, destination, routing, fragment, chain, or all"
            )
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

/// Kinds of frames, by flags.
#[derive(Debug, Clone, clap::Args)]
pub struct Kinds {
    /// Bytes of frames with their checksums, one after the other, or all: the seven of RFC 2544;
    /// the least there can be by default
    #[arg(long, value_name = "BYTES,...")]
    size: Option<Several<Size>>,
    /// Networks that destinations are drawn from, one after the other, or all: 1 and 256
    #[arg(long, value_name = "NUMBER,...", default_value = "1")]
    networks: Several<Networks>,
    /// IP of the frames: 4, or 6, as RFC 5180 wants it
    #[arg(long, value_name = "VERSION", default_value = "4")]
    pub ip: Family,
    /// Extension headers of frames over IPv6, one after the other, or all: none, each alone and a
    /// chain; for all tests but hop-by-hop, which has its own
    #[arg(long, value_name = "HEADERS,...", default_value = "none")]
    extension: Several<Extension>,
}

impl Kinds {
    /// Whether anything but the family was asked for.
    pub fn are_special(&self) -> bool {
        self.size.is_some()
            || self.networks != Several::These(vec![Networks(1)])
            || self.has_extensions()
    }

    /// Whether nothing was asked for but sizes.
    pub fn knows_sizes_alone(&self) -> bool {
        !Kinds { size: None, ..self.clone() }.are_special() && self.ip == Family::V4
    }

    /// The longest IP packet among them, or what cables have anyway.
    pub fn mtu(&self) -> u32 {
        let longest = self.each().iter().map(|one| one.size - ETHERNET).max();
        longest.unwrap_or_default().max(1500)
    }

    /// Whether there are extension headers among them.
    pub fn has_extensions(&self) -> bool {
        self.extension != Several::These(vec![Extension::None])
    }

    /// Whether these extension headers are among those that were asked for.
    pub fn has(&self, extension: Extension) -> bool {
        self.extension.of(&EXTENSIONS).contains(&extension)
    }

    /// Of one family, with these extension headers alone.
    pub fn only(&self, ip: Family, extension: Extension) -> Kinds {
        Kinds { ip, extension: Several::These(vec![extension]), ..self.clone() }
    }

    /// All of them; frames of all extension headers have the same size, so that they can be
    /// compared.
    pub fn each(&self) -> Vec<Frames> {
        let ip = self.ip;
        let extensions = self.extension.of(&EXTENSIONS);
        let least = extensions.iter().map(|&one| smallest(ip == Family::V6, one)).max();
        let least = least.unwrap_or_default();
        let sizes = match &self.size {
            None => vec![least],
            Some(Several::These(some)) => some.iter().map(|size| size.0).collect(),
            Some(Several::All) => SIZES.map(|size| size.max(least)).to_vec(),
        };
        let networks = self.networks.of(&NETWORKS.map(Networks));
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

    /// What of the kinds that standards ask for is among them.
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
    fn what_standards_ask_for_is_known_to_be_there() {
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
    fn what_is_none_is_refused() {
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
