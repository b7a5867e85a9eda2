//! What the targets share.

use skipstep_import::{Imported, Refused};
use skipstep_pfconf::{Context, load};
use skipstep_scenario::host;

/// What an importer prints is a pf.conf that its parser accepts, and what it refuses has a reason.
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
