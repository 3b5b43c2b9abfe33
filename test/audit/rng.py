"""Random choices of records, from the published algorithms: SplitMix64 (Steele, Lea & Flood 2014), Philox 4x32-10
(Salmon et al. 2011), a Feistel network as a permutation (Black & Rogaway 2002). numpy, 64 bits."""

import numpy as np

MASK = (1 << 64) - 1
GOLDEN = 0x9E3779B97F4A7C15
FOLDS = 32  # the purpose that names the stream of folds


def mix_bits(x):
    x = np.asarray(x, np.uint64)
    with np.errstate(over="ignore"):
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def mix(x):
    with np.errstate(over="ignore"):
        return mix_bits(np.asarray(x, np.uint64) + np.uint64(GOLDEN))


def hash_of_records(seed, count):
    """A number from 0 to 1 for each record."""
    return (mix(mix(seed) ^ np.arange(count, dtype=np.uint64)) >> np.uint64(11)) * 2.0**-53


def philox(counter, key):
    """The ten rounds: four words from four."""
    c, k = [int(x) for x in counter], [int(x) for x in key]
    for _ in range(10):
        a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(b >> 32) ^ c[1] ^ k[0], b & 0xFFFFFFFF, (a >> 32) ^ c[3] ^ k[1], a & 0xFFFFFFFF]
        k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return c


def stream(seed, purpose, count, a=0, b=0):
    """The first `count` 64-bit numbers of a stream."""
    name = int(mix(int(mix(int(mix(seed)) ^ purpose)) ^ a))
    words = []
    for block in range((2 * count + 3) // 4):
        words += philox((block, 0, b & 0xFFFFFFFF, b >> 32), (name & 0xFFFFFFFF, name >> 32))
    return [words[2 * i] << 32 | words[2 * i + 1] for i in range(count)]


def permutation(size, seed, purpose=FOLDS, a=0, b=0):
    """The image of each number; by itself, of each record in the order that decides folds."""
    bits = max(size - 1, 1).bit_length()
    half = np.uint64((bits + 1) // 2)
    mask = np.uint64((1 << int(half)) - 1)
    keys = [np.uint64(key) for key in stream(seed, purpose, 6, a, b)]
    image = np.arange(size, dtype=np.uint64)
    outside = np.ones(size, bool)
    while outside.any():
        left, right = image[outside] >> half, image[outside] & mask
        for key in keys:
            left, right = right, left ^ (mix(right ^ key) & mask)
        image[outside] = left << half | right
        outside = image >= size
    return image.astype(np.int64)
