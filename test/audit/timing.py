"""Times: shares that add up to one, the times of each rank, and what became of the gradients of workers."""

import os

from .length import length_of

TIMES = ("data", "compute", "communication", "waiting", "idle")


def check_shares(sheet, run, place, shares):
    for name in ("data", "compute", "forward", "optimizer", "communication", "waiting", "idle", "hidden"):
        if name in shares and name != "hidden":
            sheet.check(f"{place}.{name}", shares[name], 0, lambda a, b: a is not None and b <= a <= 1 + 1e-9)
        elif name in shares:
            sheet.check(f"{place}.{name}", shares[name], "at most 1", lambda a, b: a <= 1 + 1e-9)
    total = sum(shares.get(name, 0) for name in TIMES)
    # Rank 0 tells the times of asynchronous workers, and may have made no step since the line before.
    sheet.check(f"{place} together", total, 1.0,
                lambda a, b: abs(a - b) < 1e-6 or a == 0 and length_of(run).asynchronous)
    parts = shares["forward"] + shares["optimizer"]
    sheet.check(f"{place} parts of compute", shares["compute"], parts, lambda a, b: a >= b - 1e-6)


def gradients_of(run, json):
    """That each worker has pushed since the last start; None where all ranks make the same steps."""
    if "workers" not in json:
        return None
    whole = sum(worker["samples"] for worker in json["workers"]) == json["samples_seen"]
    start = run.started_at(json.get("step"))
    before = [m["workers"] for m in run.metrics if whole and start and m["kind"] == "workers" and m["step"] == start]
    return [worker["computed"] - (before[0][i]["computed"] if before else 0)
            for i, worker in enumerate(json["workers"])]


def check_ranks(sheet, run, place, json, length, gradients=None, dot="."):
    """Lists with an entry for each rank, rounded to microseconds. `gradients`: of each asynchronous worker."""
    count = len(json["host"])
    micro = 1.5e-6
    at = lambda name, i: f"{place}{dot}{name}[{i}]"
    own = [json["data"][i] + json["compute"][i] for i in range(count)]
    steps = [own[i] + json["exchange"][i] + json["waiting"][i] for i in range(count)]
    sheet.check(f"{place}{dot}seconds", json["seconds"], max(steps), lambda a, b: abs(a - b) <= 4 * micro)
    sheet.check(f"{place}{dot}windows", json["windows"], 1, lambda a, b: a >= b)
    if "load" in json:
        sheet.check(f"{place}{dot}load", json["load"], "1 or more", lambda a, b: a >= 1)
        sheet.check(f"{place}{dot}cores", json["cores"], os.cpu_count(), lambda a, b: a == b)
    # Ranks without replicas make no steps; stages make different ones, so that none is compared.
    compared = range(count - length.servers) if run.config.get("distribute.stages", 1) == 1 else ()
    each = gradients or [1] * len(compared)
    paces = {i: own[i] / each[i] for i in compared if each[i] > 0}
    least, shortest = min(paces.values(), default=0), max(min((own[i] for i in paces), default=0), micro)
    for i in range(count):
        sheet.check(at("delay", i), json["delay"][i], json["seconds"], lambda a, b: 0 <= a <= b + 4 * micro)
        for name in ("data", "compute", "exchange", "waiting"):
            sheet.check(at(name, i), json[name][i], 0, lambda a, b: b <= a <= json["seconds"] + 4 * micro)
        right = paces[i] / least if least > 0 and i in paces else 1
        sheet.check(at("to_best", i), json["to_best"][i], right,
                    lambda a, b: abs(a - b) <= 4 * micro * (1 + b) / shortest + micro)
        sheet.check(at("to_own", i), json["to_own"][i], "1 or more", lambda a, b: a == 0 or a >= 1 - micro)
        sheet.check(at("slow_windows", i), json["slow_windows"][i], json["windows"], lambda a, b: 0 <= a <= b)
        slow, windows = json["slow_windows"][i], json["windows"]
        right = "chronic" if 2 * slow >= windows and slow else "transient" if slow else ""
        sheet.equal(at("slow", i), json["slow"][i], right)
    for i, host in enumerate(json["hosts"]):
        ranks = [k for k in range(count) if json["host"][k] == host["host"]]
        sheet.equal(f"{place}{dot}hosts[{i}].ranks", host["ranks"], len(ranks))
        # A host delays the others: while its last rank is alone, and while only ranks of it are to come.
        delay = sum(json["delay"][k] for k in ranks) if len(json["hosts"]) > 1 else 0
        sheet.check(f"{place}{dot}hosts[{i}].delay", host["delay"], delay,
                    lambda a, b: a >= b - micro * (1 + len(ranks)) and (a == 0 or b > 0))
        cost = host["delay"] / json["seconds"] if json["seconds"] > 0 else 0
        sheet.check(f"{place}{dot}hosts[{i}].cost", host["cost"], cost,
                    lambda a, b: abs(a - b) <= micro * (1 + len(ranks)) / max(json["seconds"], micro) + micro)


def check_workers(sheet, run, place, json, samples_seen, dot="."):
    """All counts are since the run began."""
    staleness, total = [], 0
    for i, worker in enumerate(json["workers"]):
        at = f"{place}{dot}workers[{i}]."
        total += worker["samples"]
        sheet.check(at + "computed", worker["computed"], worker["steps"] + worker["dropped"], lambda a, b: a >= b)
        sheet.check(at + "steps", worker["steps"], worker["computed"], lambda a, b: 0 <= a <= b)
        sheet.check(at + "dropped", worker["dropped"], worker["computed"], lambda a, b: 0 <= a <= b)
        for name in ("samples", "dropped_samples", "max_ahead"):
            sheet.check(at + name, worker[name], "0 or more", lambda a, b: a >= 0)
        for k, count in enumerate(worker["staleness"]):
            sheet.check(f"{at}staleness[{k}]", count, "0 or more", lambda a, b: a >= 0)
            staleness += [k] * count
    sheet.equal(f"{place}{dot}samples of all workers", total, samples_seen)
    if staleness:
        sheet.number(f"{place}{dot}mean_staleness", json["mean_staleness"], sum(staleness) / len(staleness))
        ordered = sorted(staleness)
        sheet.equal(f"{place}{dot}staleness_95", json["staleness_95"], ordered[-(-95 * len(ordered) // 100) - 1])
    else:
        sheet.number(f"{place}{dot}mean_staleness", json["mean_staleness"], 0)
        sheet.equal(f"{place}{dot}staleness_95", json["staleness_95"], 0)
