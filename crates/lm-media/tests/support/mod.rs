//! Parts of PNG files, and the memory of a process.

/// A zlib stream of zeros: a literal, and copies of 258 bytes in thirteen bits each.
pub fn compressed_zeros(copies: usize) -> Vec<u8> {
    // The last block, with the fixed code; codes are written from their highest bit on.
    let start = [true, true, false, false, false, true, true, false, false, false, false];
    let copy = [true, true, false, false, false, true, false, true, false, false, false, false, false];
    let bits: Vec<bool> =
        start.into_iter().chain(copy.into_iter().cycle().take(13 * copies)).chain([false; 7]).collect();
    let byte = |bits: &[bool]| bits.iter().rev().fold(0, |byte, &bit| byte << 1 | u8::from(bit));
    let adler = ((1 + 258 * copies as u32) % 65_521) << 16 | 1;
    [&[0x78, 0x9c][..], &bits.chunks(8).map(byte).collect::<Vec<_>>(), &adler.to_be_bytes()].concat()
}

/// A chunk of a PNG file.
pub fn chunk(name: &[u8; 4], data: &[u8]) -> Vec<u8> {
    let step = |crc: u32, _| if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 };
    let crc = |crc: u32, byte: &u8| (0..8).fold(crc ^ u32::from(*byte), step);
    let named = [&name[..], data].concat();
    let sum = !named.iter().fold(u32::MAX, crc);
    [&(data.len() as u32).to_be_bytes(), &named[..], &sum.to_be_bytes()].concat()
}

/// The process's largest memory so far in bytes.
pub fn peak() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").expect("the status of the process");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a peak");
    line.trim().trim_end_matches(" kB").parse::<usize>().expect("a number") << 10
}
