//! Text of a file.

use serde::{Deserialize, Serialize};

use crate::encoding;
use crate::error::{Error, Result};
use crate::pdf;

/// Beginning of PDF files; some have other bytes before it.
const PDF_MARK: &[u8] = b"%PDF-";
/// Number of first bytes that are searched for [`PDF_MARK`], as other readers do.
const PDF_HEAD: usize = 1024;

/// Text of a file.
///
/// ```
/// use lm_documents::Document;
///
/// let document = Document::read(b"Gr\xf6\xdfe,Preis\r\n1,2\r\n")?;
/// assert_eq!(document.text, "Größe,Preis\n1,2\n");
/// assert_eq!(document.encoding.as_deref(), Some("windows-1252"));
/// # Ok::<(), lm_documents::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Document {
    /// The text, with `\n` as line breaks. Pages of a PDF file begin with a line `--- page 3 ---`.
    pub text: String,
    /// Encoding of a text file, unless that is UTF-8.
    pub encoding: Option<String>,
    /// Number of pages of a PDF file.
    pub pages: Option<usize>,
}

impl Document {
    /// Longest file, in bytes.
    pub const MAX_BYTES: usize = 32 << 20;

    /// Reads the text of a file in this process: [`Reader::isolated`](crate::Reader::isolated) bounds the
    /// memory and time of a PDF file.
    ///
    /// # Errors
    /// When the file is too large or has no text.
    pub fn read(bytes: &[u8]) -> Result<Self> {
        check_size(bytes)?;
        if is_pdf(bytes) {
            return pdf::read(bytes);
        }
        let (text, encoding) = encoding::decode(bytes)?;
        Ok(Self { text, encoding: encoding.map(str::to_owned), pages: None })
    }

    /// The file as a part of a prompt: its name, and its text between fences that the text does not have.
    ///
    /// ```
    /// let document = lm_documents::Document::read(b"a,b\n")?;
    /// assert_eq!(document.prompt("t.csv"), "File \"t.csv\":\n```\na,b\n```");
    /// # Ok::<(), lm_documents::Error>(())
    /// ```
    pub fn prompt(&self, name: &str) -> String {
        prompt(name, &self.text)
    }
}

/// A text as a part of a prompt.
pub(crate) fn prompt(name: &str, text: &str) -> String {
    let mut fence = "```".to_owned();
    while text.contains(&fence) {
        fence.push('`');
    }
    let end = if text.ends_with('\n') { "" } else { "\n" };
    format!("File {name:?}:\n{fence}\n{text}{end}{fence}")
}

/// Returns true if the bytes are those of a PDF file.
pub(crate) fn is_pdf(bytes: &[u8]) -> bool {
    let head = &bytes[..bytes.len().min(PDF_HEAD)];
    head.windows(PDF_MARK.len()).any(|window| window == PDF_MARK) && {
        // A text about PDF files may have the mark, but not at its beginning.
        bytes.starts_with(PDF_MARK) || bytes.contains(&0) || std::str::from_utf8(bytes).is_err()
    }
}

fn check_size(bytes: &[u8]) -> Result<()> {
    match bytes.len() {
        bytes if bytes > Document::MAX_BYTES => Err(Error::TooLarge { limit: Document::MAX_BYTES }),
        _ => Ok(()),
    }
}
