//! Input: any two streams of a control connection of FTP. An agreement on a data connection
//! survives writing and reading. The lowest bit of the first byte of each piece selects the side;
//! the other bits are the length.
#![no_main]

use libfuzzer_sys::fuzz_target;
use skipstep_ftp::{Command, Dialogue, Lines, endpoint};

fuzz_target!(|bytes: &[u8]| {
    let mut dialogue = Dialogue::new(([192, 0, 2, 1], 21).into());
    let (mut client, mut server) = (Lines::default(), Lines::default());
    let mut rest = bytes;
    while let Some((&head, behind)) = rest.split_first() {
        let (said, behind) = behind.split_at(usize::from(head >> 1).min(behind.len()));
        rest = behind;
        if head & 1 == 0 {
            client.push(said);
        } else {
            server.push(said);
        }
        while let Ok(Some(line)) = client.next_line() {
            let command = Command::parse(&line);
            assert!(command.shown().is_ascii());
            if dialogue.command(&command, ()).is_err() {
                return;
            }
        }
        while let Ok(Some(line)) = server.next_line() {
            let Some(agreement) = dialogue.reply(&line).and_then(|answer| answer.agreement) else {
                continue;
            };
            let to = agreement.to;
            assert_eq!(endpoint::parse_extended(&endpoint::to_extended(to)), Some(to));
        }
    }
});
