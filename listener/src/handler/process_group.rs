//! A child process whose own children are stopped with it.

use tokio::process::{Child, Command};

/// A running child. On Unix it leads its own process group, and dropping this kills the whole
/// group; elsewhere only the child is killed.
pub(crate) struct ProcessGroup {
    pub(crate) child: Child,
    #[cfg(unix)]
    group: Option<rustix::process::Pid>,
}

impl ProcessGroup {
    pub(crate) fn spawn(mut command: Command) -> std::io::Result<Self> {
        command.kill_on_drop(true);
        #[cfg(unix)]
        command.process_group(0);
        let child = command.spawn()?;
        #[cfg(unix)]
        let group = child
            .id()
            .and_then(|id| i32::try_from(id).ok())
            .and_then(rustix::process::Pid::from_raw);
        Ok(ProcessGroup {
            child,
            #[cfg(unix)]
            group,
        })
    }

    /// Sends SIGTERM to the group; elsewhere kills the child.
    pub(crate) fn terminate(&mut self) {
        #[cfg(unix)]
        self.signal(rustix::process::Signal::TERM);
        #[cfg(not(unix))]
        let _ = self.child.start_kill();
    }

    /// Disarms the kill after the child has ended; its background processes may continue.
    pub(crate) fn release(mut self) {
        #[cfg(unix)]
        {
            self.group = None;
        }
        #[cfg(not(unix))]
        let _ = &mut self;
    }

    #[cfg(unix)]
    fn signal(&self, signal: rustix::process::Signal) {
        if let Some(group) = self.group {
            // An error means that the group has already ended.
            let _ = rustix::process::kill_process_group(group, signal);
        }
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        #[cfg(unix)]
        self.signal(rustix::process::Signal::KILL);
    }
}
