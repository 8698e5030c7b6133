//! A child process that is killed when its handle is dropped.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};
use tokio::task::JoinHandle;

use super::ServerError;
use super::files;

/// Time limit from start to announcement: Azurite with a large store takes seconds.
pub const READY_TIMEOUT: Duration = Duration::from_secs(120);

/// A child process, killed on drop.
pub struct Process {
    name: String,
    id: Option<u32>,
    child: Child,
    lines: Option<Lines<BufReader<ChildStdout>>>,
    kept: Option<JoinHandle<String>>,
}

impl Process {
    /// Starts a prepared command with its output piped.
    pub fn start(
        mut command: Command,
        program: &Path,
        arguments: &[String],
    ) -> Result<Self, ServerError> {
        let name = program.file_name().unwrap_or(program.as_os_str());
        let name = name.to_string_lossy().into_owned();
        let started = command
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .kill_on_drop(true)
            .spawn();
        let mut child = started.map_err(|error| ServerError::Start(name.clone(), error))?;
        let lines = child.stdout.take().map(|out| BufReader::new(out).lines());
        Ok(Process {
            name,
            id: child.id(),
            child,
            lines,
            kept: None,
        })
    }

    /// Returns the next line of the output.
    ///
    /// # Errors
    /// When the process ends or stays silent instead.
    pub async fn line(&mut self) -> Result<String, ServerError> {
        let not_ready = |why: &str| ServerError::NotReady(self.name.clone(), why.to_owned());
        let Some(lines) = &mut self.lines else {
            return Err(not_ready("its output is not being read"));
        };
        match tokio::time::timeout(READY_TIMEOUT, lines.next_line()).await {
            Ok(Ok(Some(line))) => Ok(line),
            Ok(_) => Err(not_ready("it ended")),
            Err(_) => Err(not_ready("it printed nothing in time")),
        }
    }

    /// Reads and discards the rest of the output, so that the process never blocks on a full pipe.
    pub fn ignore_output(&mut self) {
        if let Some(mut lines) = self.lines.take() {
            tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        }
    }

    /// Collects the rest of the output; [`Process::ended`] returns it.
    pub fn keep_output(&mut self) {
        if let Some(mut lines) = self.lines.take() {
            self.kept = Some(tokio::spawn(async move {
                let mut text = String::new();
                while let Ok(Some(line)) = lines.next_line().await {
                    text.push_str(&line);
                    text.push('\n');
                }
                text
            }));
        }
    }

    /// Waits for the end and returns the exit code and the collected output. The code is `None`
    /// when a signal ended the process.
    pub async fn ended(mut self) -> Result<(Option<i32>, String), ServerError> {
        let status = self.child.wait().await.map_err(ServerError::call)?;
        let text = match self.kept.take() {
            Some(kept) => kept.await.map_err(ServerError::call)?,
            None => String::new(),
        };
        Ok((status.code(), text))
    }

    /// Returns the process id, also after the process has ended.
    pub fn id(&self) -> Option<u32> {
        self.id
    }

    /// Returns the resident memory in MiB; `None` on systems without `/proc`.
    pub fn resident_mib(&self) -> Option<f64> {
        let bytes = files::resident_bytes(self.child.id()?)?;
        Some(bytes as f64 / (1024.0 * 1024.0))
    }

    /// Returns the peak resident memory in bytes; `None` on systems without `/proc`.
    pub fn peak_resident_bytes(&self) -> Option<u64> {
        files::peak_resident_bytes(self.child.id()?)
    }

    /// Returns the processor time; `None` on systems without `/proc`.
    pub fn cpu_time(&self) -> Option<Duration> {
        files::cpu_time(self.child.id()?)
    }

    /// Whether the process still runs.
    pub fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Kills the process with SIGKILL and waits for its end.
    pub async fn kill(mut self) -> Result<(), ServerError> {
        self.child.kill().await.map_err(ServerError::call)
    }
}

/// Returns a loopback address whose port is free at the moment.
pub fn free_address() -> Result<SocketAddr, ServerError> {
    let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
    listener
        .and_then(|listener| listener.local_addr())
        .map_err(ServerError::call)
}
