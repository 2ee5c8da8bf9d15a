//! Colours of BMP files with 16 bits per pixel, widened to eight bits each as in Pillow.

use crate::contents::Contents;
use crate::rgb::into_rgb;

/// Finds the numbers of bits of the colours.
pub(crate) fn contents(bytes: &[u8]) -> Result<Contents<'_>, &'static str> {
    const BIT_COUNT: usize = 28;
    const MASKS: usize = 54;
    let plain = Contents::plain(bytes);
    // A header of twelve bytes has its fields elsewhere.
    let is_16_bit = bytes.get(14) != Some(&12) && bytes.get(BIT_COUNT..BIT_COUNT + 2) == Some(&[16, 0]);
    Ok(match bytes.get(MASKS..MASKS + 8) {
        Some([0, 0xf8, 0, 0, 0xe0, 7, 0, 0]) if is_16_bit && bytes[30] == 3 => {
            Contents { reduce: |color, pixels| truncated([31, 63, 31], into_rgb(color, pixels)?), ..plain }
        }
        _ if is_16_bit => {
            Contents { reduce: |color, pixels| truncated([31; 3], into_rgb(color, pixels)?), ..plain }
        }
        _ => plain,
    })
}

/// RGB bytes as `maximum` parts of 255, rounded down; the decoder rounds to nearest.
fn truncated(maximum: [u16; 3], mut rgb: Vec<u8>) -> Option<Vec<u8>> {
    for pixel in rgb.as_chunks_mut::<3>().0 {
        for (byte, maximum) in pixel.iter_mut().zip(maximum) {
            let part = (u16::from(*byte) * maximum + 127) / 255;
            *byte = (part * 255 / maximum) as u8;
        }
    }
    Some(rgb)
}
