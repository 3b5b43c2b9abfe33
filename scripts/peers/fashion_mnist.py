"""Fashion-MNIST as arrays, from Debian's dataset-fashion-mnist."""
import gzip
import pathlib

import numpy as np

DIRECTORY = pathlib.Path("/usr/share/datasets/fashion-mnist")


def read(name, header):
    return np.frombuffer(gzip.decompress((DIRECTORY / name).read_bytes()), np.uint8, offset=header)


def load(part):
    """Images of 784 numbers from 0 to 1, and their labels; `part` is train or t10k."""
    labels = read(f"{part}-labels-idx1-ubyte.gz", 8)
    images = read(f"{part}-images-idx3-ubyte.gz", 16).reshape(len(labels), -1)
    return images.astype(np.float32) / 255, labels.astype(np.int64)
