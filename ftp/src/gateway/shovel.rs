//! Copies the bytes of a data connection, in blocks of a configured size or within the kernel.

use std::io::{self, ErrorKind};
use std::os::fd::AsFd;
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, SpliceFFlags, fcntl, splice};
use nix::unistd::pipe2;
use socket2::SockRef;
use tokio::io::{AsyncReadExt, AsyncWriteExt, Interest};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Allowed block sizes, in bytes.
const SIZES: std::ops::RangeInclusive<usize> = 512..=1 << 20;

/// Number of bytes that the pipe of a splice can store.
const PIPE: usize = 256 * 1024;

/// The method that copies bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shovel {
    /// Reads and writes blocks of this many bytes.
    Blocks(usize),
    /// Uses splice(2): bytes stay in the kernel and are not copied.
    Splice,
}

/// 64 KiB, because no other size is faster (docs/reference/performance.md).
impl Default for Shovel {
    fn default() -> Shovel {
        Shovel::Blocks(64 * 1024)
    }
}

/// The text names no method, or a size that is not allowed.
#[derive(Debug, PartialEq, Eq)]
pub struct NoShovel;

impl FromStr for Shovel {
    type Err = NoShovel;

    fn from_str(text: &str) -> Result<Shovel, NoShovel> {
        if text == "splice" {
            return Ok(Shovel::Splice);
        }
        let (digits, unit) = match text.strip_suffix(['k', 'K']) {
            Some(digits) => (digits, 1 << 10),
            None => text.strip_suffix('M').map_or((text, 1), |digits| (digits, 1 << 20)),
        };
        let number: usize = digits.parse().map_err(|_| NoShovel)?;
        let size = number.checked_mul(unit).filter(|size| SIZES.contains(size));
        size.filter(|_| !digits.starts_with('+')).map(Shovel::Blocks).ok_or(NoShovel)
    }
}

/// The two connections of a transfer. Dropping an unfinished transfer resets both, so that no peer
/// mistakes a part for the whole file.
pub struct Load {
    from: TcpStream,
    to: TcpStream,
    finished: bool,
}

impl Drop for Load {
    fn drop(&mut self) {
        if !self.finished {
            for stream in [&self.from, &self.to] {
                // a connection that is closed already needs no reset
                let _ = SockRef::from(stream).set_linger(Some(Duration::ZERO));
            }
        }
    }
}

impl Load {
    /// Creates a transfer from one connection to the other.
    pub fn new(from: TcpStream, to: TcpStream) -> Load {
        Load { from, to, finished: false }
    }

    /// Copies all bytes and counts them in `moved`.
    ///
    /// # Errors
    /// Fails if a connection breaks, or if one is idle for `patience`.
    pub async fn carry(
        mut self,
        shovel: Shovel,
        patience: Duration,
        moved: &AtomicU64,
    ) -> io::Result<()> {
        match shovel {
            Shovel::Blocks(size) => self.blocks(size, patience, moved).await?,
            Shovel::Splice => self.splice(patience, moved).await?,
        }
        self.to.shutdown().await?;
        self.finished = true;
        Ok(())
    }

    async fn blocks(
        &mut self,
        size: usize,
        patience: Duration,
        moved: &AtomicU64,
    ) -> io::Result<()> {
        let mut block = vec![0; size];
        loop {
            let length = timeout(patience, self.from.read(&mut block)).await??;
            if length == 0 {
                return Ok(());
            }
            let mut rest = &block[..length];
            while !rest.is_empty() {
                let written = timeout(patience, self.to.write(rest)).await??;
                rest = &rest[written..];
                moved.fetch_add(written as u64, Relaxed);
            }
        }
    }

    /// Copies through a pipe. The pipe is emptied before the next read, so a splice can only wait
    /// for the socket.
    async fn splice(&mut self, patience: Duration, moved: &AtomicU64) -> io::Result<()> {
        let (out, into) = pipe2(OFlag::O_CLOEXEC | OFlag::O_NONBLOCK)?;
        // the user's limit of pipe memory may refuse the size; a smaller pipe needs more steps
        let _ = fcntl(&into, FcntlArg::F_SETPIPE_SZ(PIPE as i32));
        loop {
            let coming = moving(&self.from, Interest::READABLE, &self.from, &into, PIPE);
            let mut within = timeout(patience, coming).await??;
            if within == 0 {
                return Ok(());
            }
            while within > 0 {
                let going = moving(&self.to, Interest::WRITABLE, &out, &self.to, within);
                let written = timeout(patience, going).await??;
                if written == 0 {
                    return Err(ErrorKind::WriteZero.into());
                }
                within -= written;
                moved.fetch_add(written as u64, Relaxed);
            }
        }
    }
}

/// Splices at most `most` bytes as soon as `waited` is ready.
async fn moving(
    waited: &TcpStream,
    interest: Interest,
    from: &impl AsFd,
    to: &impl AsFd,
    most: usize,
) -> io::Result<usize> {
    let flags = SpliceFFlags::SPLICE_F_MOVE | SpliceFFlags::SPLICE_F_NONBLOCK;
    waited
        .async_io(interest, || {
            loop {
                match splice(from, None, to, None, most, flags) {
                    Err(Errno::EINTR) => {}
                    other => return Ok(other?),
                }
            }
        })
        .await
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::net::TcpListener;

    #[test]
    fn sizes_are_written_in_three_ways() {
        let read = |text: &str| text.parse::<Shovel>();
        assert_eq!(read("512"), Ok(Shovel::Blocks(512)));
        assert_eq!(read("16k"), Ok(Shovel::Blocks(16_384)));
        assert_eq!(read("1M"), Ok(Shovel::Blocks(1 << 20)));
        assert_eq!(read("splice"), Ok(Shovel::Splice));
        for wrong in ["", "511", "1025k", "2M", "+512", "-1", "k", "18446744073709551615M"] {
            assert_eq!(read(wrong), Err(NoShovel), "{wrong}");
        }
    }

    async fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let connected = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        (connected, listener.accept().await.unwrap().0)
    }

    const PATIENCE: Duration = Duration::from_secs(10);

    #[tokio::test]
    async fn all_bytes_are_copied() {
        let bytes: Vec<u8> = (0..3_000_001u32).map(|number| (number % 251) as u8).collect();
        for shovel in [Shovel::Blocks(512), Shovel::Blocks(1 << 20), Shovel::Splice] {
            let ((mut source, from), (to, mut sink)) = (pair().await, pair().await);
            let moved = AtomicU64::new(0);
            let sent = bytes.clone();
            let sending = tokio::spawn(async move { source.write_all(&sent).await });
            let reading = tokio::spawn(async move {
                let mut got = Vec::new();
                sink.read_to_end(&mut got).await.map(|_| got)
            });
            Load::new(from, to).carry(shovel, PATIENCE, &moved).await.unwrap();
            sending.await.unwrap().unwrap();
            assert!(reading.await.unwrap().unwrap() == bytes, "{shovel:?}");
            assert_eq!(moved.into_inner(), bytes.len() as u64);
        }
    }

    #[tokio::test]
    async fn a_part_is_never_taken_for_the_whole() {
        for shovel in [Shovel::Blocks(512), Shovel::Splice] {
            let ((mut source, from), (to, mut sink)) = (pair().await, pair().await);
            source.write_all(b"half").await.unwrap();
            SockRef::from(&source).set_linger(Some(Duration::ZERO)).unwrap();
            drop(source);
            let moved = AtomicU64::new(0);
            assert!(Load::new(from, to).carry(shovel, PATIENCE, &moved).await.is_err());
            assert!(sink.read_to_end(&mut Vec::new()).await.is_err(), "{shovel:?}");
        }
    }

    #[tokio::test]
    async fn an_idle_peer_times_out() {
        for shovel in [Shovel::Blocks(512), Shovel::Splice] {
            let ((_source, from), (to, _sink)) = (pair().await, pair().await);
            let moved = AtomicU64::new(0);
            let carried = Load::new(from, to).carry(shovel, Duration::from_millis(10), &moved);
            assert_eq!(carried.await.unwrap_err().kind(), ErrorKind::TimedOut);
        }
    }
}
