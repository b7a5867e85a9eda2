//! Functions that several targets use.

use skipstep_import::{Imported, Refused};
use skipstep_pfconf::{Context, load};
use skipstep_scenario::host;

/// The nonce of the frames of skipstepd's devices.
pub const NONCE: u64 = 0x0706_0504_0302_0100;

/// Splits an input into frames. Each frame stands behind a byte of hints for the target, and its
/// length in two bytes, little-endian. The last frame may be truncated.
pub fn frames(input: &[u8]) -> impl Iterator<Item = (u8, &[u8])> {
    let mut rest = input;
    std::iter::from_fn(move || {
        let ([how, length @ ..], behind) = rest.split_first_chunk::<3>()?;
        let length = usize::from(u16::from_le_bytes(*length)).min(behind.len());
        let (frame, behind) = behind.split_at(length);
        rest = behind;
        Some((*how, frame))
    })
}

/// Writes frames in the form that [`frames`] reads.
pub fn input(frames: &[(u8, Vec<u8>)]) -> Vec<u8> {
    let write = |(how, frame): &(u8, Vec<u8>)| {
        [&[*how][..], &(frame.len() as u16).to_le_bytes(), frame].concat()
    };
    frames.iter().flat_map(write).collect()
}

/// Checks that an importer's output is a pf.conf that the parser accepts, or that a refusal has a
/// reason.
pub fn is_accepted_or_refused(imported: Result<Imported, Refused>) {
    match imported {
        Ok(imported) => {
            let host = host::standard();
            if let Err(refused) = load(&imported.conf, &Context::new(&host)) {
                panic!("{}\n{}", refused.diagnostics[0].explain(), imported.conf);
            }
        }
        Err(messages) => {
            assert!(messages.iter().any(|message| !message.kind.is_harmless()));
            for message in messages {
                message.explain();
            }
        }
    }
}
