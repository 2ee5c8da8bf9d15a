//! The first frame of a GIF file on its canvas, as Pillow shows it.

use gif::{ColorOutput, DecodeOptions, Decoder, MemoryLimit};

use crate::error::{Error, Result};
use crate::image::Image;
use crate::limits::{DecodeLimits, check_size};
use crate::size::ImageSize;

/// A file after its header and the description of the first frame.
pub(crate) struct FirstFrame<'a> {
    decoder: Decoder<&'a [u8]>,
    left: usize,
    top: usize,
    frame: ImageSize,
    canvas: ImageSize,
    /// Palette index of transparent pixels.
    transparent: Option<u8>,
}

impl<'a> FirstFrame<'a> {
    /// Reads the file up to the pixels of its first frame.
    ///
    /// # Errors
    /// [`Error::Invalid`] without a frame or a palette, [`Error::TooManyPixels`], [`Error::SideTooLong`].
    pub(crate) fn open(bytes: &'a [u8], limits: &DecodeLimits) -> Result<Self> {
        let mut options = DecodeOptions::new();
        options.set_color_output(ColorOutput::Indexed);
        // The size is checked below, before memory for the pixels is allocated.
        options.set_memory_limit(MemoryLimit::Unlimited);
        let mut decoder = options.read_info(bytes).map_err(invalid)?;
        let screen = [decoder.width(), decoder.height()].map(usize::from);
        let Some(info) = decoder.next_frame_info().map_err(invalid)? else {
            return Err(invalid("it has no frame"));
        };
        let [left, top, width, height] = [info.left, info.top, info.width, info.height].map(usize::from);
        let transparent = info.transparent;
        if width == 0 || height == 0 {
            return Err(invalid("its first frame has no pixels"));
        }
        // A frame that leaves the screen enlarges it.
        let canvas = ImageSize::new(screen[0].max(left + width), screen[1].max(top + height));
        check_size(canvas, limits)?;
        Ok(Self { decoder, left, top, frame: ImageSize::new(width, height), canvas, transparent })
    }

    /// Size of the canvas.
    pub(crate) fn size(&self) -> ImageSize {
        self.canvas
    }

    /// Decodes the frame. The canvas around it has the colour of transparent pixels, or the first palette
    /// colour: the background colour of the file is not used.
    ///
    /// # Errors
    /// [`Error::Invalid`], also for a truncated file.
    pub(crate) fn decode(mut self) -> Result<Image> {
        let mut indexes = vec![0; self.frame.pixels()];
        self.decoder.read_into_buffer(&mut indexes).map_err(invalid)?;
        let palette = Palette::of(self.decoder.palette().map_err(invalid)?);
        let mut rgb = palette.color(self.transparent.unwrap_or(0)).repeat(self.canvas.pixels());
        for (row, indexes) in indexes.chunks_exact(self.frame.width).enumerate() {
            let start = (self.top + row) * self.canvas.width + self.left;
            let pixels = rgb[3 * start..].as_chunks_mut::<3>().0;
            for (pixel, &index) in pixels.iter_mut().zip(indexes) {
                *pixel = palette.color(index);
            }
        }
        Image::from_rgb(self.canvas, rgb)
    }
}

/// Colours of a frame.
struct Palette<'a> {
    colors: &'a [[u8; 3]],
    /// Every colour is the grey of its index: the indexes are the pixels.
    is_grey: bool,
}

impl<'a> Palette<'a> {
    fn of(bytes: &'a [u8]) -> Self {
        let colors = bytes.as_chunks::<3>().0;
        let is_grey = colors.iter().enumerate().all(|(index, color)| color.map(usize::from) == [index; 3]);
        Self { colors, is_grey }
    }

    /// The colour of an index; black for one past the end.
    fn color(&self, index: u8) -> [u8; 3] {
        let past_end = if self.is_grey { [index; 3] } else { [0; 3] };
        self.colors.get(usize::from(index)).copied().unwrap_or(past_end)
    }
}

fn invalid(error: impl ToString) -> Error {
    Error::Invalid { format: "GIF", message: error.to_string() }
}
