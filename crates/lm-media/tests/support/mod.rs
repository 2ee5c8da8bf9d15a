//! Parts of PNG files.

/// A chunk of a PNG file.
pub fn chunk(name: &[u8; 4], data: &[u8]) -> Vec<u8> {
    let step = |crc: u32, _| if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 };
    let crc = |crc: u32, byte: &u8| (0..8).fold(crc ^ u32::from(*byte), step);
    let named = [&name[..], data].concat();
    let sum = !named.iter().fold(u32::MAX, crc);
    [&(data.len() as u32).to_be_bytes(), &named[..], &sum.to_be_bytes()].concat()
}
