//! Something that moves on a terminal while long work runs.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// How long work runs before it is called long.
const PATIENCE: Duration = Duration::from_millis(800);

/// A spinner with the elapsed time on standard error, if that is a terminal and the work takes
/// long. It goes when it is dropped.
pub(crate) struct Progress {
    done: Option<mpsc::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Progress {
    pub(crate) fn start(text: String) -> Self {
        let (done, wait) = mpsc::channel();
        let thread = std::thread::Builder::new().spawn(move || {
            if wait.recv_timeout(PATIENCE) != Err(RecvTimeoutError::Timeout) {
                return;
            }
            // Hidden by itself when standard error is no terminal.
            let bar = ProgressBar::new_spinner().with_message(text);
            if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} ({elapsed})") {
                bar.set_style(style);
            }
            bar.enable_steady_tick(Duration::from_millis(120));
            let _ = wait.recv();
            bar.finish_and_clear();
        });
        // Without a thread there is no spinner, and the work goes on.
        Progress { done: Some(done), thread: thread.ok() }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        // Closing the channel is the signal.
        self.done = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
