"""Records small JPEG files of each way to store colours, with the pixels that Pillow (libjpeg-turbo) reads:
python3 record_jpegs.py > test/fixtures/jpegs/jpegs.json. Run by hand; needs Pillow."""

import base64
import io
import json

from PIL import Image, features


def pixels(size, mode):
    image = Image.new(mode, size)
    bands = len(image.getbands())
    width, height = size
    # Slopes, which survive compression, with each band its own.
    values = [
        tuple(255 * ((x * (band + 1) + y * (3 - band)) % 16) // 15 for band in range(bands))
        for y in range(height)
        for x in range(width)
    ]
    image.putdata([value[0] if bands == 1 else value for value in values])
    return image


def saved(image, **options):
    file = io.BytesIO()
    image.save(file, "JPEG", quality=95, subsampling=0, **options)
    return file.getvalue()


def segment(data, marker):
    """Start and end of the first segment with a marker."""
    at = 2
    while data[at + 1] != marker:
        at += 2 + int.from_bytes(data[at + 2 : at + 4], "big")
    return at, at + 2 + int.from_bytes(data[at + 2 : at + 4], "big")


def without(data, marker):
    start, end = segment(data, marker)
    return data[:start] + data[end:]


def with_adobe(data, transform):
    body = b"Adobe" + bytes([0, 100, 0, 0, 0, 0, transform])
    return data[:2] + b"\xff\xee" + (len(body) + 2).to_bytes(2, "big") + body + data[2:]


JFIF, ADOBE = 0xE0, 0xEE
size = (16, 8)
colour = pixels(size, "RGB")
jfif = saved(colour)
rgb = saved(colour, keep_rgb=True)
files = {
    "JFIF": jfif,
    "JFIF, progressive": saved(colour, progressive=True),
    "grey": saved(pixels(size, "L")),
    "RGB, Adobe transform 0, ids R G B": rgb if b"Adobe" in rgb else with_adobe(rgb, 0),
    "RGB, ids R G B alone": without(rgb, ADOBE) if b"Adobe" in rgb else rgb,
    "Adobe transform 1": with_adobe(without(jfif, JFIF), 1),
    "Adobe transform 0, ids 1 2 3": with_adobe(without(jfif, JFIF), 0),
    "no marker, ids 1 2 3": without(jfif, JFIF),
    "JFIF, which counts more than Adobe transform 0": jfif[: segment(jfif, JFIF)[1]]
    + with_adobe(b"\xff\xd8", 0)[2:]
    + jfif[segment(jfif, JFIF)[1] :],
    "CMYK": saved(pixels(size, "CMYK")),
}
print(
    json.dumps(
        {
            "pillow": Image.__version__ if hasattr(Image, "__version__") else __import__("PIL").__version__,
            "libjpeg": features.version("jpg"),
            "files": {
                name: {
                    "bytes": base64.b64encode(data).decode(),
                    "pixels": base64.b64encode(Image.open(io.BytesIO(data)).convert("RGB").tobytes()).decode(),
                }
                for name, data in files.items()
            },
        },
        indent=1,
    )
)
