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

/// Page faults of this process so far that read no file, of all its threads: pages that were mapped when they
/// were first written. From Linux; `None` elsewhere.
pub fn page_faults() -> Option<u64> {
    minor_faults(&std::fs::read_to_string("/proc/self/stat").ok()?)
}

/// Field 10 of `stat`; the name in field 2 may hold spaces and brackets.
fn minor_faults(stat: &str) -> Option<u64> {
    let (_, fields) = stat.rsplit_once(')')?;
    fields.split_whitespace().nth(7)?.parse().ok()
}

fn field(status: &str, name: &str) -> Option<f64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    Some(line.trim().strip_suffix(" kB")?.parse::<f64>().ok()? * 1024.0)
}

#[cfg(test)]
mod tests {
    #[test]
    fn faults_are_the_tenth_field() {
        assert_eq!(super::minor_faults("12 (a) b) S 4 5 6 7 8 9 1000 11 12"), Some(1000));
        assert_eq!(super::minor_faults("12"), None);
    }

    #[test]
    fn fields_are_kibibytes() {
        let status = "Name:\tlm\nVmHWM:\t    2048 kB\nVmRSS:\t    1024 kB\n";
        assert_eq!(super::field(status, "VmRSS:"), Some(1_048_576.0));
        assert_eq!(super::field(status, "VmSwap:"), None);
    }
}
