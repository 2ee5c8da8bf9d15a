//! Identity of the processor.

/// Returns true on a processor of Intel's.
#[cfg(target_arch = "x86_64")]
pub(super) fn is_intel() -> bool {
    let leaf = std::arch::x86_64::__cpuid(0);
    [leaf.ebx, leaf.edx, leaf.ecx].map(u32::to_le_bytes).concat() == b"GenuineIntel"
}

#[cfg(not(target_arch = "x86_64"))]
pub(super) fn is_intel() -> bool {
    false
}

/// Name, family, model and stepping of this processor, as `Intel(R) Xeon(R) Platinum 8481C, 6-143-8`;
/// `None` where the processor does not tell.
pub fn processor_name() -> Option<String> {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::__cpuid;
        if __cpuid(0x8000_0000).eax < 0x8000_0004 {
            return None;
        }
        let leaves = [0x8000_0002, 0x8000_0003, 0x8000_0004].map(__cpuid);
        let words = leaves.iter().flat_map(|leaf| [leaf.eax, leaf.ebx, leaf.ecx, leaf.edx]);
        let bytes: Vec<u8> = words.flat_map(u32::to_le_bytes).take_while(|&byte| byte != 0).collect();
        let name = String::from_utf8_lossy(&bytes).trim().to_owned();
        let [family, model, stepping] = signature(__cpuid(1).eax);
        Some(format!("{name}, {family}-{model}-{stepping}"))
    }
    #[cfg(not(target_arch = "x86_64"))]
    None
}

/// Family, model and stepping of a processor signature.
#[cfg(target_arch = "x86_64")]
fn signature(eax: u32) -> [u32; 3] {
    let (family, model) = (eax >> 8 & 15, eax >> 4 & 15);
    let extended = |at: u32, bits: u32| eax >> at & ((1 << bits) - 1);
    let family_sum = if family == 15 { 15 + extended(20, 8) } else { family };
    let has_extended_model = family == 15 || family == 6;
    [family_sum, if has_extended_model { extended(16, 4) << 4 | model } else { model }, eax & 15]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn signatures_are_read_as_the_system_shows_them() {
        assert_eq!(signature(0x00a1_0f11), [25, 17, 1], "a Zen 4");
        assert_eq!(signature(0x0008_06f8), [6, 143, 8], "a Sapphire Rapids");
        assert_eq!(signature(0x0000_0f29), [15, 2, 9], "a Pentium 4");
    }

    #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
    #[test]
    fn processor_is_the_one_that_the_system_shows() {
        let Ok(text) = std::fs::read_to_string("/proc/cpuinfo") else {
            return println!("skipped: this system does not show its processors");
        };
        let value = |key: &str| {
            let line = text.lines().find(|line| line.split(':').next().is_some_and(|k| k.trim() == key));
            line.and_then(|line| line.split_once(": ")).map(|(_, value)| value.to_owned()).unwrap_or_default()
        };
        let [family, model, stepping] = ["cpu family", "model", "stepping"].map(value);
        let expected = format!("{}, {family}-{model}-{stepping}", value("model name"));
        assert_eq!(processor_name(), Some(expected));
        assert_eq!(is_intel(), text.contains("GenuineIntel"));
    }
}
