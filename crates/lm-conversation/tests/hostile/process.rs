//! Child process and its resource usage.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Resource usage of an input.
pub struct Usage {
    /// Short form of the result.
    pub outcome: String,
    pub seconds: f64,
    /// Peak resident set size of the process.
    pub peak_mib: u64,
    /// Number of threads that the input started and did not end.
    pub threads_left: u64,
    /// True if it ended in time.
    pub ended: bool,
}

/// Runs one input in a child process, which is killed after `limit` of CPU time.
pub fn measure(input: &str, limit: Duration) -> Usage {
    let this = std::env::current_exe().expect("the path of this test");
    let started = Instant::now();
    let mut child = Command::new(this)
        .args(["hostile::child", "--exact", "--ignored", "--nocapture"])
        .env(super::INPUT, input)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("a child process");
    let (mut peak_mib, mut ended) = (0, true);
    while child.try_wait().expect("the child's state").is_none() {
        peak_mib = peak_mib.max(status(&child.id().to_string(), "VmHWM:") >> 10);
        if cpu_seconds(&child.id().to_string()) > limit.as_secs_f64() {
            child.kill().expect("an end of the child");
            ended = false;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let output = child.wait_with_output().expect("the child's output");
    let text = String::from_utf8_lossy(&output.stdout);
    let mut fields = text.lines().find_map(|line| line.strip_prefix("usage: ")).unwrap_or("").split('\t');
    let mut field = || fields.next().unwrap_or_default().to_owned();
    let (outcome, seconds, peak, threads_left) = (field(), field(), field(), field());
    Usage {
        outcome: if outcome.is_empty() { format!("did not end: {}", output.status) } else { outcome },
        seconds: seconds.parse().unwrap_or(started.elapsed().as_secs_f64()),
        peak_mib: peak_mib.max(peak.parse().unwrap_or(0)),
        threads_left: threads_left.parse().unwrap_or(0),
        ended: ended && output.status.success(),
    }
}

/// Result line that a child prints for its parent.
pub fn report(outcome: &str, threads_before: u64) -> String {
    let outcome: String = outcome.replace(['\n', '\t', '|'], " ").chars().take(160).collect();
    let peak = status("self", "VmHWM:") >> 10;
    let seconds = cpu_seconds("self");
    let left = threads_left(threads_before);
    format!("usage: {outcome}\t{seconds:.2}\t{peak}\t{left}")
}

/// Number of threads beyond `before` that still exist after some seconds.
fn threads_left(before: u64) -> u64 {
    for _ in 0..100 {
        if threads() <= before {
            return 0;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    threads().saturating_sub(before)
}

/// Number of threads of this process.
pub fn threads() -> u64 {
    status("self", "Threads:")
}

/// CPU time of a process. (Wall-clock time is unreliable on a busy machine.)
fn cpu_seconds(process: &str) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let fields: Vec<f64> =
        stat.rsplit(')').next().unwrap_or("").split(' ').filter_map(|n| n.parse().ok()).collect();
    // User and system time, in hundredths of a second.
    fields.get(10..12).map_or(0.0, |times| times.iter().sum::<f64>() / 100.0)
}

/// A number of a process' status, in the unit of the file.
fn status(process: &str, field: &str) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(field)).unwrap_or_default();
    line.split_whitespace().next().and_then(|number| number.parse().ok()).unwrap_or(0)
}
