"""Which records a replica takes in each step of the first epoch, of samples in memory, and how much of its batches is
padding (configs/guides/batches-and-steps.md and sequences.md)."""

import numpy as np

from .length import length_of
from .rng import permutation

SHARD, SHUFFLE, BUCKETS = 2, 3, 11  # the purposes that name streams
STEPS = 1000  # of which the share of padding is drawn, at most


def records_of(run, length, replica):
    """In the order of the replica."""
    seed, rows, replicas = run.config.get("run.seed", 1), length.rows, length.replicas
    if run.config.get("data.reshuffle") == "batch":
        return permutation(rows, seed, SHARD)[permutation(rows, seed, SHUFFLE, 0, 0)[replica::replicas]]
    own = permutation(rows if length.full else -(-(rows - replica) // replicas), seed, SHUFFLE, 0, replica)
    order = run.config.get("data.shard_order", "shuffled")
    if length.full:
        return own
    if order == "contiguous":
        return own + replica * (rows // replicas) + min(replica, rows % replicas)
    cards = replica + own * replicas
    return permutation(rows, seed, SHARD)[cards] if order == "shuffled" else cards


def batches_of(run, length, replica, bucket):
    """The records of the replica in each step; `bucket`: batches of which those of similar lengths are made, 0:
    none."""
    records, lengths = records_of(run, length, replica), run.sets["train"].lengths
    ends = [min(step * length.batch, length.positions) for step in range(length.batches + 1)]
    cuts = [(end + length.replicas - 1 - replica) // length.replicas for end in ends]
    batches = [records[a:b] for a, b in zip(cuts, cuts[1:])]
    for first in range(0, len(batches), bucket) if bucket else ():
        run_of = batches[first : first + bucket]
        together = np.concatenate(run_of)
        together = together[np.argsort(lengths[together], kind="stable")]
        for place in permutation(len(run_of), run.config.get("run.seed", 1), BUCKETS, 0, first // bucket):
            batches[first + place], together = np.split(together, [len(run_of[place])])
    return batches


def share_of_padding(run, bucket):
    length, lengths = length_of(run), run.sets["train"].lengths
    each = (batches_of(run, length, replica, bucket)[:STEPS] for replica in range(length.replicas))
    steps = [lengths[batch] for batches in each for batch in batches if len(batch)]
    return 100 * (1 - sum(own.sum() for own in steps) / sum(own.max() * len(own) for own in steps))
