//! The terminal: raw mode and the alternate screen. The terminal is as before when pftop ends, also
//! after a panic, and while pftop is suspended.

use anyhow::{Context, Result};
use nix::sys::signal::{Signal, raise};
use ratatui::DefaultTerminal;

use crate::app::App;
use crate::screen::{Look, draw};

/// The terminal while pftop uses it.
pub struct Terminal {
    terminal: DefaultTerminal,
    look: Look,
}

impl Terminal {
    /// Takes the terminal. From now on, a panic restores it before it prints its message.
    ///
    /// # Errors
    /// Fails if standard output is no terminal, or if it cannot be written.
    pub fn take(look: Look) -> Result<Terminal> {
        Ok(Terminal { terminal: take()?, look })
    }

    /// Draws the program.
    ///
    /// # Errors
    /// Fails if the terminal cannot be written.
    pub fn draw(&mut self, app: &mut App) -> Result<()> {
        let look = self.look;
        self.terminal.draw(|frame| draw(frame, app, look)).context("terminal")?;
        Ok(())
    }

    /// Writes the whole screen again at the next [`Terminal::draw`].
    ///
    /// # Errors
    /// Fails if the terminal cannot be written.
    pub fn repaint(&mut self) -> Result<()> {
        self.terminal.clear().context("terminal")
    }

    /// Gives the terminal back, and stops until the shell continues the process.
    ///
    /// # Errors
    /// Fails if the terminal cannot be taken again.
    pub fn suspend(&mut self) -> Result<()> {
        self.terminal.show_cursor().context("terminal")?;
        ratatui::try_restore().context("terminal")?;
        raise(Signal::SIGSTOP).context("suspend")?;
        self.terminal = take()?;
        self.repaint()
    }
}

/// Begins raw mode and the alternate screen, or leaves the terminal as before.
fn take() -> Result<DefaultTerminal> {
    ratatui::try_init().context("terminal").inspect_err(|_| {
        let _ = ratatui::try_restore();
    })
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // the terminal may be gone
        let _ = ratatui::try_restore();
    }
}
