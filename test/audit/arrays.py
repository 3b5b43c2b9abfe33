"""Records of other formats than tables: arrays of numpy and HDF5, IDX, CIFAR, raw records, sparse text. Each reader
gives features, labels and weights as the files hold them; bytes of features are scaled to 0..1
(configs/guides/data.md)."""

import io
import math
import re
import struct

import numpy as np

from .files import files_of, read_bytes

RAW = {f"{kind}{8 * size}": f"<{kind}{size}" for kind in "uif" for size in (1, 2, 4, 8)} | {"bool": "?"}


def scaled(features):
    features = np.asarray(features)
    return features.astype(np.float32) / np.float32(255) if features.dtype == np.uint8 else features.astype(np.float32)


def idx(path):
    data = read_bytes(path)
    kinds = {8: ">u1", 9: ">i1", 11: ">i2", 12: ">i4", 13: ">f4", 14: ">f8"}
    dims = struct.unpack(f">{data[3]}I", data[4 : 4 + 4 * data[3]])
    return np.frombuffer(data, kinds[data[2]], offset=4 + 4 * data[3]).reshape(dims)


def split_name(text):
    """ "data.npz:x_train" as file and name."""
    found = re.fullmatch(r"(.*\.(?:npz|npy|h5|hdf5)):(.*)", text)
    return (found[1], found[2]) if found else (text, "")


def numpy_array(path, name, without=()):
    data = read_bytes(path)
    array = np.load(io.BytesIO(data), allow_pickle=False)
    if not isinstance(array, np.ndarray):
        first, _, rest = name.partition(":")
        array, name = array[first or array.files[0]], rest
    if array.dtype.names:
        names = name.split("+") if name else [n for n in array.dtype.names if n not in without]
        array = np.concatenate([array[n].reshape(len(array), -1).astype(float) for n in names], axis=1)
    return array


def hdf5_array(path, name, _=()):
    import h5py

    with h5py.File(path) as file:
        if name:
            return file[name][()]
        arrays = []
        file.visititems(lambda key, item: arrays.append(key) if isinstance(item, h5py.Dataset) else None)
        return file[arrays[0]][()]


def stacked(text, cwd, read):
    """The arrays of all files that a text names, one behind the other, and the number of records of each."""
    file, name = split_name(text)
    arrays = [read(path, name) for path in files_of(file, cwd)]
    return np.concatenate(arrays), [len(a) for a in arrays], files_of(file, cwd)


def split_arrays(config, cwd, split, read):
    x, sizes, files = stacked(config.get(f"data.{split}"), cwd, read)
    labels = config.get(f"data.{split}_labels")
    weights = config.get(f"data.{split}_weights")
    y = stacked(labels, cwd, read)[0] if labels else None
    w = stacked(weights, cwd, read)[0] if weights else None
    if config.get("data.record") == "sequence" and x.ndim == 2:
        x = x[:, :, None]  # one number at each position
    return scaled(x), y, w, sizes, files


def read_lengths(config, cwd, split):
    """How many positions of each record count; None where all of them do."""
    if not (text := config.get(f"data.{split}_lengths")):
        return None
    return stacked(text, cwd, hdf5_array if config["data.format"] == "hdf5" else numpy_array)[0].reshape(-1).astype(int)


def cifar(config, cwd, split):
    names = 2 if config["data.format"] == "cifar100" else 1
    files = files_of(config[f"data.{split}"], cwd)
    parts = [np.frombuffer(read_bytes(f), np.uint8).reshape(-1, names + 3072) for f in files]
    records = np.concatenate(parts)
    x = records[:, names:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
    return scaled(x), records[:, names - 1], None, [len(p) for p in parts], files


def raw(config, cwd, split):
    fields = []
    found = re.findall(r"(\w+):(\w+)(?:\[([\d, ]+)\])?", config["data.raw_layout"])
    for number, (word, kind, dims) in enumerate(found):
        fields.append((f"{word}{number}", RAW[kind], tuple(int(d) for d in dims.split(",")) if dims else ()))
    files = files_of(config[f"data.{split}"], cwd)
    parts = [np.frombuffer(read_bytes(f), np.dtype(fields)) for f in files]
    records = np.concatenate(parts)
    feature = next(n for n, *_ in fields if n.startswith("features"))
    label = next(n for n, *_ in fields if n.startswith("label"))
    return scaled(records[feature]), records[label], None, [len(p) for p in parts], files


def sparse_line(line):
    """Label and {index: value}; None where the line is bad."""
    words = line.split("#")[0].split()
    values, before = {}, -1
    for word in words[1:]:
        key, _, value = word.partition(":")
        if key == "qid":
            continue
        try:
            index, number = int(key), float(value)
        except ValueError:
            return None
        if index <= before or not math.isfinite(number):
            return None
        values[index] = number
        before = index
    return words[0], values


def sparse(text, cwd):
    """Labels as texts and values by index, of each line; None for a bad one."""
    records, file_of, files = [], [], files_of(text, cwd)
    for number, path in enumerate(files):
        for line in read_bytes(path).decode(errors="replace").splitlines():
            if line.split("#")[0].strip():
                records.append(sparse_line(line))
                file_of.append(number)
    return records, file_of, files


def read_arrays(config, cwd, split):
    kind = config["data.format"]
    if kind in ("numpy", "hdf5", "idx"):
        reader = {"numpy": numpy_array, "hdf5": hdf5_array, "idx": lambda path, name: idx(path)}[kind]
        return split_arrays(config, cwd, split, reader)
    return raw(config, cwd, split) if kind == "raw" else cifar(config, cwd, split)
