//! What the machine can give: memory, by its own account and by that of the control group that a batch system or a container has
//! put the process into.

use std::path::{Path, PathBuf};

/// Memory that this process can still get, in GB: what the system calls available, or 8 where it does not say, and no more than
/// its control groups leave to it.
pub fn available_gigabytes() -> f64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find(|l| l.starts_with("MemAvailable:"));
    let kilobytes = line.and_then(|l| l.split_whitespace().nth(1)).and_then(|n| n.parse::<f64>().ok());
    let machine = kilobytes.map_or(8.0, |k| k * 1024e-9);
    let groups = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let left = memory_groups(&groups, Path::new("/sys/fs/cgroup")).into_iter().filter_map(|g| g.bytes_left());
    left.map(|bytes| 1e-9 * bytes).fold(machine, f64::min)
}

/// The files of one control group that bounds memory.
#[derive(Debug, PartialEq)]
struct MemoryGroup {
    limit: PathBuf,
    used: PathBuf,
    statistics: PathBuf,
}

impl MemoryGroup {
    /// Its limit less what is used. Contents of files that are kept for later reads are given back when they are in the way.
    fn bytes_left(&self) -> Option<f64> {
        let number = |path: &Path| std::fs::read_to_string(path).ok()?.trim().parse::<f64>().ok();
        let limit = number(&self.limit)?;
        let statistics = std::fs::read_to_string(&self.statistics).unwrap_or_default();
        let of = |word: &str| {
            let line = statistics.lines().find_map(|line| line.strip_prefix(word)?.strip_prefix(' '));
            line.and_then(|number| number.trim().parse::<f64>().ok())
        };
        let files = of("total_inactive_file").or_else(|| of("inactive_file")).unwrap_or(0.0);
        Some((limit - (number(&self.used)? - files).max(0.0)).max(0.0))
    }
}

/// The control groups of a process (the text of `/proc/self/cgroup`) that bound memory, and all groups above them.
fn memory_groups(groups: &str, root: &Path) -> Vec<MemoryGroup> {
    let mut all = Vec::new();
    for line in groups.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else { continue };
        let (place, files) = match controllers {
            "" => (root.to_path_buf(), ["memory.max", "memory.current"]),
            list if list.split(',').any(|name| name == "memory") => {
                (root.join("memory"), ["memory.limit_in_bytes", "memory.usage_in_bytes"])
            }
            _ => continue,
        };
        let mut group = Path::new(path.trim_start_matches('/'));
        loop {
            let [limit, used] = files.map(|file| place.join(group).join(file));
            all.push(MemoryGroup { limit, used, statistics: place.join(group).join("memory.stat") });
            match group.parent() {
                Some(above) => group = above,
                None => break,
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_some_memory() {
        assert!(available_gigabytes() > 0.01);
    }

    #[test]
    fn the_groups_of_both_versions_and_those_above_them_are_found() {
        let root = Path::new("/cg");
        let limits = |text: &str| -> Vec<PathBuf> {
            memory_groups(text, root).into_iter().map(|group| group.limit).collect()
        };
        let two = ["/cg/system.slice/job_7/memory.max", "/cg/system.slice/memory.max", "/cg/memory.max"];
        assert_eq!(limits("0::/system.slice/job_7\n"), two.map(PathBuf::from));
        let one = ["/cg/memory/slurm/memory.limit_in_bytes", "/cg/memory/memory.limit_in_bytes"];
        assert_eq!(limits("5:cpu:/slurm\n4:memory:/slurm\n"), one.map(PathBuf::from));
        assert!(limits("nonsense").is_empty());
    }

    #[test]
    fn a_limit_leaves_what_is_not_used_and_none_leaves_everything() {
        let folder = std::env::temp_dir().join(format!("didact-groups-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let group = || memory_groups("0::/\n", &folder).remove(0);
        let write = |name: &str, text: &str| std::fs::write(folder.join(name), text).unwrap();
        write("memory.max", "max\n");
        write("memory.current", "900\n");
        assert_eq!(group().bytes_left(), None);
        write("memory.max", "1000\n");
        assert_eq!(group().bytes_left(), Some(100.0));
        write("memory.stat", "anon 600\ninactive_file 300\n");
        assert_eq!(group().bytes_left(), Some(400.0));
        std::fs::remove_dir_all(folder).unwrap();
    }
}
