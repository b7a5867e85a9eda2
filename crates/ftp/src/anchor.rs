//! Rules for data connections. Those of each session are in an anchor of its own, `PROGRAM/PID.ID`,
//! which the rule set calls by `anchor "PROGRAM/*"`. A thread changes them, one after the other.

use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;

use anyhow::{Context as _, Result, anyhow, bail};
use skipstep_kernel::{Instance, host};
use skipstep_pfconf::Context;
use tokio::sync::oneshot;

/// The anchors of this process.
#[derive(Clone)]
pub struct Anchors {
    changes: Sender<Change>,
}

/// What is to be done, and who waits for it.
struct Change {
    what: What,
    done: oneshot::Sender<Result<()>>,
}

enum What {
    Replace(u32, String),
    Remove(u32),
    RemoveAll,
}

/// Whether the filter called `name` is there for programs that need it.
///
/// # Errors
/// It is not, or it does not run.
pub fn check_filter(name: &str) -> Result<()> {
    if !Instance::open(name)?.running() {
        bail!("the filter is disabled (pfctl -e enables it)");
    }
    Ok(())
}

impl Anchors {
    /// For `program`, in the filter called `name`.
    ///
    /// # Errors
    /// There is no such filter, or it may not be changed.
    pub fn open(program: &'static str, name: &str) -> Result<Anchors> {
        let (changes, wanted) = mpsc::channel();
        let (opened, result) = mpsc::channel();
        let name = name.to_owned();
        thread::spawn(move || match Instance::open(&name) {
            Ok(instance) => {
                let _ = opened.send(Ok(()));
                Filter { program, name, instance }.serve(&wanted);
            }
            Err(problem) => _ = opened.send(Err(problem)),
        });
        result.recv().context("the thread of the filter is gone")??;
        Ok(Anchors { changes })
    }

    /// Puts `rules`, a text in the language of pf.conf(5), in the place of those of session `id`.
    ///
    /// # Errors
    /// They are wrong, or the filter does not take them.
    pub async fn replace(&self, id: u32, rules: String) -> Result<()> {
        self.change(What::Replace(id, rules)).await
    }

    /// Removes the rules of session `id`. States that they have made stay.
    ///
    /// # Errors
    /// The filter does not let go.
    pub async fn remove(&self, id: u32) -> Result<()> {
        self.change(What::Remove(id)).await
    }

    /// Removes the rules of all sessions.
    ///
    /// # Errors
    /// The filter does not let go.
    pub async fn remove_all(&self) -> Result<()> {
        self.change(What::RemoveAll).await
    }

    async fn change(&self, what: What) -> Result<()> {
        let (done, result) = oneshot::channel();
        let _ = self.changes.send(Change { what, done });
        result.await.context("the thread of the filter is gone")?
    }
}

/// The filter, opened once for many changes.
struct Filter {
    program: &'static str,
    name: String,
    instance: Instance,
}

impl Filter {
    fn serve(mut self, changes: &Receiver<Change>) {
        for Change { what, done } in changes {
            // who has gone meanwhile need not know
            let _ = done.send(self.do_it(what));
        }
    }

    fn do_it(&mut self, what: What) -> Result<()> {
        if !self.instance.is_current() {
            self.instance = Instance::open(&self.name).context("the filter is gone")?;
        }
        match what {
            What::Replace(id, rules) => self.replace(&self.path(id), &rules),
            What::Remove(id) => Ok(self.instance.clear_anchor(&self.path(id))?),
            What::RemoveAll => {
                let prefix = self.prefix();
                let anchors = self.instance.loaded()?.ruleset.anchors;
                let own = anchors.keys().filter(|path| path.starts_with(&prefix));
                own.into_iter().try_for_each(|path| Ok(self.instance.clear_anchor(path)?))
            }
        }
    }

    fn replace(&mut self, path: &str, rules: &str) -> Result<()> {
        let host = host::read()?;
        let context = Context { file_name: path, anchor: path, ..Context::new(&host) };
        let loaded = skipstep_pfconf::load(rules, &context);
        let loaded = loaded.map_err(|rejected| match rejected.diagnostics.first() {
            Some(diagnostic) => anyhow!("{diagnostic}"),
            None => anyhow!("rules of {path}"),
        })?;
        Ok(self.instance.load_anchor(path, &loaded.ruleset, &host)?)
    }

    fn path(&self, id: u32) -> String {
        format!("{}{id}", self.prefix())
    }

    /// What the names of this process's anchors begin with.
    fn prefix(&self) -> String {
        format!("{}/{}.", self.program, std::process::id())
    }
}
