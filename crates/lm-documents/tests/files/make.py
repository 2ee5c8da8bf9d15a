"""Makes the PDF files of the tests, and what poppler's pdftotext reads in them.

Needs reportlab 4, pypdf 5 and pdftotext: python3 make.py
"""

import subprocess
import zlib
from pathlib import Path

from pypdf import PdfReader, PdfWriter
from reportlab.lib.pagesizes import A4
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.ttfonts import TTFont
from reportlab.pdfgen.canvas import Canvas
from reportlab.platypus import BaseDocTemplate, Frame, PageTemplate, Paragraph, Table
from reportlab.lib.styles import getSampleStyleSheet

HERE = Path(__file__).parent
DEJAVU = "/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf"
WORDS = "The quick brown fox jumps over the lazy dog and runs on through fields of barley until the evening comes. "


def canvas(name):
    return Canvas(str(HERE / name), pagesize=A4, invariant=1, pageCompression=1)


def columns():
    """Two columns over two pages, with a heading."""
    style = getSampleStyleSheet()
    document = BaseDocTemplate(str(HERE / "columns.pdf"), pagesize=A4, invariant=1, pageCompression=1)
    frames = [Frame(40, 40, 250, 760), Frame(305, 40, 250, 760)]
    document.addPageTemplates(PageTemplate(frames=frames))
    story = [Paragraph("A Study of Foxes", style["Title"])]
    story += [Paragraph(f"Paragraph {number}. " + WORDS * 5, style["BodyText"]) for number in range(1, 19)]
    document.build(story)


def table():
    """A table, and a page that is turned."""
    style = getSampleStyleSheet()
    document = BaseDocTemplate(str(HERE / "table.pdf"), pagesize=A4, invariant=1, pageCompression=1)
    document.addPageTemplates(PageTemplate(frames=[Frame(40, 40, 500, 760)]))
    rows = [["Item", "Quantity", "Price"], ["Apples", "3", "1.20"], ["Pears and plums", "12", "4.80"]]
    document.build([Paragraph("Prices", style["Title"]), Table(rows, colWidths=[200, 100, 100])])
    writer = PdfWriter(clone_from=PdfReader(HERE / "table.pdf"))
    writer.pages[0].rotate(90)
    writer.write(HERE / "rotated.pdf")


def scripts():
    """Scripts of an embedded font, no space characters, and a line that is drawn twice."""
    pdfmetrics.registerFont(TTFont("DejaVu", DEJAVU))
    page = canvas("scripts.pdf")
    page.setFont("DejaVu", 12)
    page.drawString(72, 720, "Größe, naïve café, Привет мир, Καλημέρα κόσμε, ﬁne ﬂow")
    page.setFont("Helvetica", 12)
    for index, word in enumerate(["set", "word", "by", "word"]):
        page.drawString(72 + 40 * index, 660, word)
    for offset in (0, 0.3):
        page.drawString(72 + offset, 630, "bold by overprinting")
    page.save()


def scanned():
    page = canvas("scanned.pdf")
    page.rect(100, 100, 300, 300, fill=1)
    page.showPage()
    page.rect(100, 100, 300, 300, fill=1)
    page.save()


def encrypted():
    for name, password in [("encrypted.pdf", "secret"), ("restricted.pdf", "")]:
        writer = PdfWriter(clone_from=PdfReader(HERE / "table.pdf"))
        writer.encrypt(password, owner_password="owner", algorithm="AES-256")
        writer.write(HERE / name)


def bomb():
    """A content stream of 4 GiB, deflated twice."""
    inner = zlib.compressobj(9)
    once = b"".join(inner.compress(b"\n" * (1 << 24)) for _ in range(256)) + inner.flush()
    stream = zlib.compress(once, 9)
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]/Contents 4 0 R>>",
        b"<</Filter[/FlateDecode/FlateDecode]/Length %d>>stream\n%s\nendstream" % (len(stream), stream),
    ]
    file = b"%PDF-1.7\n"
    for number, content in enumerate(objects, 1):
        file += b"%d 0 obj%s\nendobj\n" % (number, content)
    (HERE / "bomb.pdf").write_bytes(file + b"trailer<</Root 1 0 R/Size 5>>\n%%EOF\n")


def reference(name):
    text = subprocess.run(["pdftotext", "-raw", HERE / f"{name}.pdf", "-"], check=True, capture_output=True).stdout
    (HERE / f"{name}.txt").write_bytes(text)


for make in (columns, table, scripts, scanned, encrypted, bomb):
    make()
for name in ("columns", "table", "rotated", "scripts", "restricted"):
    reference(name)
