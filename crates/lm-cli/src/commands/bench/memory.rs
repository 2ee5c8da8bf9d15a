//! Resident memory of this process.

/// Resident bytes.
#[derive(Debug)]
pub struct Resident {
    pub now: f64,
    /// Peak since the process began.
    pub peak: f64,
}

/// Reads the values from Linux; `None` elsewhere.
pub fn resident() -> Option<Resident> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    Some(Resident { now: field(&status, "VmRSS:")?, peak: field(&status, "VmHWM:")? })
}

fn field(status: &str, name: &str) -> Option<f64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    Some(line.trim().strip_suffix(" kB")?.parse::<f64>().ok()? * 1024.0)
}

#[cfg(test)]
mod tests {
    #[test]
    fn fields_are_kibibytes() {
        let status = "Name:\tlm\nVmHWM:\t    2048 kB\nVmRSS:\t    1024 kB\n";
        assert_eq!(super::field(status, "VmRSS:"), Some(1_048_576.0));
        assert_eq!(super::field(status, "VmSwap:"), None);
    }
}
