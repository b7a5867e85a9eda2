//! The handshake of controller and agent. Each sends a hello: its version and a random number. Then
//! both prove by the Noise protocol, pattern NNpsk0, that they have the same key
//! (<https://noiseprotocol.org/noise.html>, revision 34). Both hellos are the prologue of Noise, so
//! a proof is valid for one connection. All later messages are encrypted. Somebody who learns the
//! shared key afterwards cannot decrypt them.
//!
//! ```text
//! agent                                       controller
//! hello: version, number  ------------------>
//!                         <------------------  hello: version, number; its proof
//! verdict; its proof      ------------------>
//! ```
//!
//! The controller proves first that it has the key, so an agent reveals only its version to a
//! stranger. All parts have a fixed length.

use snow::params::NoiseParams;
use snow::{Builder, HandshakeState, TransportState};

use super::key::Key;

/// The protocol of Noise: no static keys, a shared key from the first message on.
const NOISE: &str = "Noise_NNpsk0_25519_ChaChaPoly_BLAKE2s";

/// The first bytes of a hello. The last one is the number of the protocol.
const MAGIC: [u8; 8] = *b"fwlab-a\x02";

/// The sizes of a random number and of a version, in bytes. A version is padded with zeros.
const NUMBER: usize = 32;
const VERSION: usize = 24;

/// The size of a proof, in bytes: a public key of Curve25519, and the tag of an empty message.
pub const PROOF: usize = 32 + 16;

/// The size of a hello, in bytes.
pub const HELLO: usize = MAGIC.len() + VERSION + NUMBER;
/// The size of a controller's hello with its proof, in bytes.
pub const OPENING: usize = HELLO + PROOF;
/// The size of a verdict with the agent's proof, in bytes.
pub const VERDICT: usize = 1 + PROOF;

/// The version that both sides must have.
const OWN_VERSION: &str = env!("CARGO_PKG_VERSION");
const _: () = assert!(OWN_VERSION.len() <= VERSION);

/// The first message of each side: magic, version and random number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hello([u8; HELLO]);

/// The reason for which a handshake failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The peer is not fwlab, or speaks another protocol.
    #[error("the peer does not speak the protocol of this version of fwlab agent")]
    Stranger,
    /// The peer has this other version.
    #[error("the peer is fwlab {0}, this is fwlab {OWN_VERSION}: install one version on both")]
    Version(String),
    /// The peer has another key.
    #[error("the peer has another key: copy the key file to both ends")]
    Key,
}

impl Hello {
    /// Makes the hello of this program with a random number.
    pub fn new(number: [u8; NUMBER]) -> Hello {
        let mut bytes = [0; HELLO];
        let (magic, rest) = bytes.split_at_mut(MAGIC.len());
        magic.copy_from_slice(&MAGIC);
        rest[..OWN_VERSION.len()].copy_from_slice(OWN_VERSION.as_bytes());
        rest[VERSION..].copy_from_slice(&number);
        Hello(bytes)
    }

    /// Returns the bytes of the hello.
    pub fn bytes(&self) -> &[u8; HELLO] {
        &self.0
    }

    /// Reads the peer's hello.
    ///
    /// # Errors
    /// Fails if the bytes are no hello, or if the version differs from this program's.
    pub fn read(bytes: &[u8; HELLO]) -> Result<Hello, Refusal> {
        let (magic, rest) = bytes.split_at(MAGIC.len());
        if magic != MAGIC {
            return Err(Refusal::Stranger);
        }
        let version = rest[..VERSION].split(|&byte| byte == 0).next().unwrap_or_default();
        if version != OWN_VERSION.as_bytes() {
            // escaped, because the version is printed on a terminal
            return Err(Refusal::Version(version.escape_ascii().to_string()));
        }
        Ok(Hello(*bytes))
    }
}

/// One side's part of the handshake after both hellos.
pub struct Greeting(HandshakeState);

impl Greeting {
    /// Begins the part of the controller, which proves first.
    pub fn for_controller(key: &Key, agent: &Hello, own: &Hello) -> Greeting {
        Greeting::begin(key, agent, own, |noise| noise.build_initiator())
    }

    /// Begins the part of the agent, which first checks the controller's proof.
    pub fn for_agent(key: &Key, own: &Hello, controller: &Hello) -> Greeting {
        Greeting::begin(key, own, controller, |noise| noise.build_responder())
    }

    fn begin(
        key: &Key,
        agent: &Hello,
        controller: &Hello,
        side: impl FnOnce(Builder) -> Result<HandshakeState, snow::Error>,
    ) -> Greeting {
        let protocol: NoiseParams = NOISE.parse().expect("a protocol that the library has");
        let hellos = [&agent.0[..], &controller.0].concat();
        let noise = Builder::new(protocol).psk(0, key.bytes());
        let noise = noise.and_then(|noise| side(noise.prologue(&hellos)?));
        Greeting(noise.expect("the protocol wants a key and no more"))
    }

    /// Returns the proof that this side has the key.
    pub fn proof(&mut self) -> [u8; PROOF] {
        let mut proof = [0; PROOF];
        self.0.write_message(&[], &mut proof).expect("it is this side's turn");
        proof
    }

    /// Checks the proof of the other side.
    ///
    /// # Errors
    /// Fails if the other side does not have the key, or made the proof for another connection.
    pub fn check(&mut self, proof: &[u8]) -> Result<(), Refusal> {
        self.0.read_message(proof, &mut []).map(drop).map_err(|_| Refusal::Key)
    }

    /// Ends a handshake with both proofs. Returns the encryption of all later messages.
    pub fn encryption(self) -> TransportState {
        self.0.into_transport_mode().expect("both proofs were exchanged")
    }
}

/// Returns an agent's verdict on a controller: a byte for the result, and the agent's proof, which
/// is zero if the agent refuses.
pub fn verdict(greeting: Result<&mut Greeting, &Refusal>) -> [u8; VERDICT] {
    let mut bytes = [0; VERDICT];
    match greeting {
        Ok(greeting) => bytes[1..].copy_from_slice(&greeting.proof()),
        Err(Refusal::Stranger) => bytes[0] = 1,
        Err(Refusal::Version(_)) => bytes[0] = 2,
        Err(Refusal::Key) => bytes[0] = 3,
    }
    bytes
}

/// Reads an agent's verdict.
///
/// # Errors
/// Fails if the agent refuses, or if its proof shows that it does not have the key.
pub fn read_verdict(bytes: &[u8; VERDICT], greeting: &mut Greeting) -> Result<(), Refusal> {
    match bytes[0] {
        0 => greeting.check(&bytes[1..]),
        3 => Err(Refusal::Key),
        _ => Err(Refusal::Stranger),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HELLOS: [u8; 2] = [1, 2];

    /// Returns the parts of a controller with the first key, and of an agent with the second key.
    fn sides(keys: [u8; 2], agent_hears: [u8; 2]) -> [Greeting; 2] {
        let [agent, controller] = HELLOS.map(|number| Hello::new([number; NUMBER]));
        let heard = agent_hears.map(|number| Hello::new([number; NUMBER]));
        let keys = keys.map(|byte| Key::new([byte; 32]));
        [
            Greeting::for_controller(&keys[0], &agent, &controller),
            Greeting::for_agent(&keys[1], &heard[0], &heard[1]),
        ]
    }

    #[test]
    fn a_peer_with_the_key_is_accepted() {
        let [mut controller, mut agent] = sides([7, 7], HELLOS);
        agent.check(&controller.proof()).unwrap();
        read_verdict(&verdict(Ok(&mut agent)), &mut controller).unwrap();
        let (mut controller, mut agent) = (controller.encryption(), agent.encryption());
        let (mut sealed, mut opened) = ([0; 64], [0; 64]);
        let length = controller.write_message(b"order", &mut sealed).unwrap();
        let length = agent.read_message(&sealed[..length], &mut opened).unwrap();
        assert_eq!(&opened[..length], b"order");
    }

    #[test]
    fn a_peer_with_another_key_is_refused() {
        let [mut controller, mut agent] = sides([7, 8], HELLOS);
        assert_eq!(agent.check(&controller.proof()), Err(Refusal::Key));
        let refused = verdict(Err(&Refusal::Key));
        assert_eq!(read_verdict(&refused, &mut controller), Err(Refusal::Key));
        let mut forged = refused;
        forged[0] = 0;
        assert_eq!(read_verdict(&forged, &mut controller), Err(Refusal::Key));
    }

    #[test]
    fn a_proof_is_for_one_side_and_one_connection() {
        let [mut controller, mut agent] = sides([7, 7], [3, 2]);
        assert_eq!(agent.check(&controller.proof()), Err(Refusal::Key), "replayed");
        let [mut controller, _] = sides([7, 7], HELLOS);
        let own = controller.proof();
        assert_eq!(controller.check(&own), Err(Refusal::Key), "reflected");
    }

    #[test]
    fn another_version_is_named() {
        let hello = Hello::new([1; NUMBER]);
        assert_eq!(Hello::read(hello.bytes()), Ok(hello.clone()));
        let mut other = *hello.bytes();
        other[MAGIC.len()..MAGIC.len() + 6].copy_from_slice(b"9.9\x1b[m");
        let refusal = Hello::read(&other).unwrap_err();
        assert!(refusal.to_string().contains("fwlab 9.9\\x1b[m, this is"), "{refusal}");
        assert_eq!(Hello::read(&[0; HELLO]), Err(Refusal::Stranger));
        let mut later = *hello.bytes();
        later[7] += 1;
        assert_eq!(Hello::read(&later), Err(Refusal::Stranger));
    }
}
