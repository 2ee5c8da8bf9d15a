//! Memory available to this process.

use std::fs;
use std::path::Path;

/// Returns the bytes that this process can allocate without swapping or evicting others: the minimum of the
/// system's available memory and the remainders of its cgroup and address space limits. `None` if the system
/// does not report it.
///
/// Reclaimable file caches count as available. Swap does not.
pub fn available_memory() -> Option<u64> {
    if cfg!(target_os = "linux") { available_on_linux(Path::new("/")) } else { available_elsewhere() }
}

#[cfg(target_os = "linux")]
fn available_elsewhere() -> Option<u64> {
    None
}

#[cfg(not(target_os = "linux"))]
fn available_elsewhere() -> Option<u64> {
    let mut system = sysinfo::System::new();
    system.refresh_memory();
    Some(system.available_memory()).filter(|&bytes| bytes > 0)
}

/// Reads the available memory from Linux's files below `root`.
fn available_on_linux(root: &Path) -> Option<u64> {
    let system = kibibytes(&read(root, "proc/meminfo")?, "MemAvailable:");
    let limits = [system, cgroup_headroom(root), address_space_headroom(root)];
    limits.into_iter().flatten().min()
}

/// Minimum remainder of the limits of this process's cgroups, of both versions.
fn cgroup_headroom(root: &Path) -> Option<u64> {
    let groups = read(root, "proc/self/cgroup")?;
    let headrooms = groups.lines().filter_map(|line| {
        let (controllers, group) = line.split_once(':')?.1.split_once(':')?;
        match controllers {
            "" => CgroupVersion::V2.headroom(root, group),
            _ if controllers.split(',').any(|name| name == "memory") => {
                CgroupVersion::V1.headroom(root, group)
            }
            _ => None,
        }
    });
    headrooms.min()
}

/// Version of cgroups.
#[derive(Clone, Copy)]
enum CgroupVersion {
    V1,
    V2,
}

impl CgroupVersion {
    /// Folder, limit, usage, and the line of `memory.stat` with the reclaimable part.
    fn files(self) -> [&'static str; 4] {
        match self {
            Self::V1 => [
                "sys/fs/cgroup/memory",
                "memory.limit_in_bytes",
                "memory.usage_in_bytes",
                "total_inactive_file",
            ],
            Self::V2 => ["sys/fs/cgroup", "memory.max", "memory.current", "inactive_file"],
        }
    }

    /// Minimum remainder of the limits of the cgroup and its ancestors. Inside a container the path is that
    /// of the host, and only the root exists.
    fn headroom(self, root: &Path, group: &str) -> Option<u64> {
        let [mount, ..] = self.files();
        let mount = root.join(mount);
        let inner = mount.join(group.trim_start_matches('/'));
        inner
            .ancestors()
            .take_while(|folder| folder.starts_with(&mount))
            .filter_map(|folder| self.group_headroom(folder))
            .min()
    }

    fn group_headroom(self, folder: &Path) -> Option<u64> {
        let [_, limit, usage, inactive] = self.files();
        // `max` means no limit.
        let limit: u64 = read(folder, limit)?.trim().parse().ok()?;
        let usage: u64 = read(folder, usage)?.trim().parse().ok()?;
        let stat = read(folder, "memory.stat").unwrap_or_default();
        let line = stat.lines().find_map(|line| line.strip_prefix(inactive)?.strip_prefix(' '));
        let inactive: u64 = line.and_then(|line| line.trim().parse().ok()).unwrap_or(0);
        Some(limit.saturating_sub(usage.saturating_sub(inactive)))
    }
}

/// Remaining address space under `ulimit -v`.
fn address_space_headroom(root: &Path) -> Option<u64> {
    let limits = read(root, "proc/self/limits")?;
    let line = limits.lines().find_map(|line| line.strip_prefix("Max address space"))?;
    let limit: u64 = line.split_whitespace().next()?.parse().ok()?;
    let size = kibibytes(&read(root, "proc/self/status")?, "VmSize:")?;
    Some(limit.saturating_sub(size))
}

fn kibibytes(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().strip_suffix(" kB")?.parse::<u64>().ok()?.checked_mul(1024)
}

fn read(root: &Path, file: &str) -> Option<String> {
    fs::read_to_string(root.join(file)).ok()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    /// Available memory according to these files.
    fn found(files: &[(&str, &str)]) -> Option<u64> {
        let root = tempfile::tempdir().expect("a temporary folder");
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().expect("a folder")).expect("can be made");
            fs::write(path, text).expect("can be written");
        }
        available_on_linux(root.path())
    }

    const SYSTEM: (&str, &str) = ("proc/meminfo", "MemTotal: 16777216 kB\nMemAvailable: 8388608 kB\n");

    #[test]
    fn unlimited_process_uses_system_memory() {
        assert_eq!(found(&[SYSTEM]), Some(8 * GIB));
        assert_eq!(found(&[]), None);
        let unlimited = (
            "proc/self/limits",
            "Max address space         unlimited            unlimited            bytes\n",
        );
        assert_eq!(found(&[SYSTEM, unlimited]), Some(8 * GIB));
        let group = [("proc/self/cgroup", "0::/a\n"), ("sys/fs/cgroup/a/memory.max", "max\n")];
        assert_eq!(found(&[SYSTEM, group[0], group[1]]), Some(8 * GIB));
    }

    #[test]
    fn cgroup_ancestors_exclude_reclaimable_memory() {
        let files = [
            SYSTEM,
            ("proc/self/cgroup", "0::/outer/inner\n"),
            ("sys/fs/cgroup/outer/memory.max", "3221225472"),
            ("sys/fs/cgroup/outer/memory.current", "2147483648"),
            ("sys/fs/cgroup/outer/memory.stat", "anon 1\ninactive_file 1073741824\ninactive_file_x 7\n"),
            ("sys/fs/cgroup/outer/inner/memory.max", "max"),
            ("sys/fs/cgroup/outer/inner/memory.current", "1"),
        ];
        assert_eq!(found(&files), Some(2 * GIB));
        // In a container the path does not exist, its root does.
        let inside = [
            SYSTEM,
            ("proc/self/cgroup", "0::/docker/1234\n"),
            ("sys/fs/cgroup/memory.max", "1073741824"),
            ("sys/fs/cgroup/memory.current", "2147483648"),
        ];
        assert_eq!(found(&inside), Some(0), "nothing is left, and nothing wraps");
    }

    #[test]
    fn cgroup_v1_limits_count() {
        let files = [
            SYSTEM,
            ("proc/self/cgroup", "5:cpu,memory:/job\n1:cpuset:/\n"),
            ("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "1073741824"),
            ("sys/fs/cgroup/memory/job/memory.usage_in_bytes", "536870912"),
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712"),
            ("sys/fs/cgroup/memory/memory.usage_in_bytes", "536870912"),
        ];
        assert_eq!(found(&files), Some(GIB / 2));
    }

    #[test]
    fn address_space_limit_includes_mapped_memory() {
        let files = [
            SYSTEM,
            (
                "proc/self/limits",
                "Max address space         2147483648           2147483648           bytes\n",
            ),
            ("proc/self/status", "VmSize:\t 1048576 kB\n"),
        ];
        assert_eq!(found(&files), Some(GIB));
    }

    #[test]
    fn this_machine_reports_memory() {
        assert!(available_memory().is_some_and(|bytes| bytes > 0));
    }
}
