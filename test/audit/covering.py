"""Covering arrays: few experiments that have every possible pair of levels among them.

Greedy, as AETG does it (Cohen et al. 1997): of many experiments that each begin with a missing pair, and then take the
level with the most missing pairs, the best one is kept. Those that are too many are left out, and the others are
changed until they have all pairs.
"""

import collections
import time

from factors import FACTORS, all_pairs, complete, pairs_of

ALONE = {level: frozenset([level]) for levels in FACTORS.values() for level in levels}


def possible_pairs(dice):
    """The pairs that some experiment has."""
    possible = set()
    for pair in sorted(all_pairs()):
        if pair not in possible and (found := complete(dict(pair), dice)):
            possible |= pairs_of(found)
    return possible


def candidate(missing, partners, dice):
    """An experiment that begins with a missing pair and goes on with levels that make many."""

    def gain(name, level, left):
        return sum(1 for other, its_level in partners[name, level] if left[other] == ALONE[its_level])

    return complete(dict(dice.choice(missing)), dice, gain)


def fill(rows, possible, dice, candidates):
    """Adds experiments until no pair is missing."""
    missing = set(possible).difference(*map(pairs_of, rows))
    partners = {(name, level): set() for name, levels in FACTORS.items() for level in levels}
    for a, b in missing:
        partners[a].add(b)
        partners[b].add(a)
    while missing:
        listed = sorted(missing)
        found = [candidate(listed, partners, dice) for _ in range(candidates)]
        best = max(found, key=lambda row: len(pairs_of(row) & missing))
        rows.append(best)
        for a, b in pairs_of(best) & missing:
            missing.discard((a, b))
            partners[a].discard(b)
            partners[b].discard(a)
    return rows


def repair(rows, possible, dice, steps):
    """Changes experiments so that fewer pairs are missing; returns the pairs that are missing at the end.

    In each step an experiment gets a missing pair and keeps what it can of its other levels, unless more pairs get lost
    so.
    """
    count = dict.fromkeys(possible, 0)
    for row in rows:
        for pair in pairs_of(row):
            count[pair] += 1
    missing = {pair for pair in possible if not count[pair]}
    for _ in range(steps):
        if not missing:
            break
        position = dice.randrange(len(rows))
        row = rows[position]
        changed = complete(dict(dice.choice(sorted(missing))), dice, lambda name, level, left: row[name] == level)
        lost, won = pairs_of(row) - pairs_of(changed), pairs_of(changed) - pairs_of(row)
        worse = sum(count[pair] == 1 for pair in lost) - sum(count[pair] == 0 for pair in won)
        if worse > 0 and dice.random() > 0.5 ** (4 * worse):
            continue
        rows[position] = changed
        for pairs, sign in ((lost, -1), (won, 1)):
            for pair in pairs:
                count[pair] += sign
                (missing.discard if count[pair] else missing.add)(pair)
    return missing


def cover(possible, dice, size, seconds, show):
    """So many experiments with all pairs; None if none are found in the time."""
    end = time.monotonic() + seconds
    rows = fill([], possible, dice, 10)
    while True:
        while len(rows) > size:
            # That one goes which has the fewest pairs for itself.
            count = collections.Counter(pair for row in rows for pair in pairs_of(row))
            rows.remove(min(rows, key=lambda row: sum(count[pair] == 1 for pair in pairs_of(row))))
        missing = repair(rows, possible, dice, 500)
        show(f"{len(missing)} of {len(possible)} pairs are missing in {len(rows)} experiments")
        if not missing:
            return rows
        if time.monotonic() > end:
            return None
