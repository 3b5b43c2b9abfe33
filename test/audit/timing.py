"""Times: shares that add up to one, the times of each rank, and what became of the gradients of workers."""

TIMES = ("data", "compute", "communication", "waiting", "idle")


def check_shares(sheet, place, shares):
    for name in ("data", "compute", "forward", "optimizer", "communication", "waiting", "idle", "hidden"):
        if name in shares and name != "hidden":
            sheet.check(f"{place}.{name}", shares[name], "0 to 1", lambda a, b: a is not None and 0 <= a <= 1 + 1e-9)
        elif name in shares:
            sheet.check(f"{place}.{name}", shares[name], "at most 1", lambda a, b: a <= 1 + 1e-9)
    total = sum(shares.get(name, 0) for name in TIMES)
    sheet.check(f"{place} together", total, 1.0, lambda a, b: abs(a - b) < 1e-6)
    sheet.check(f"{place} parts of compute", shares["forward"] + shares["optimizer"], shares["compute"], lambda a, b: a <= b + 1e-6)


def check_ranks(sheet, place, json, dot="."):
    """Lists with an entry for each rank, rounded to microseconds."""
    count = len(json["host"])
    micro = 1.5e-6
    at = lambda name, i: f"{place}{dot}{name}[{i}]"
    own = [json["data"][i] + json["compute"][i] for i in range(count)]
    steps = [own[i] + json["exchange"][i] + json["waiting"][i] for i in range(count)]
    sheet.check(f"{place}{dot}seconds", json["seconds"], max(steps), lambda a, b: abs(a - b) <= 4 * micro)
    sheet.check(f"{place}{dot}windows", json["windows"], 1, lambda a, b: a >= b)
    least = min(own)
    for i in range(count):
        for name in ("data", "compute", "exchange", "waiting", "delay"):
            sheet.check(at(name, i), json[name][i], "0 or more", lambda a, b: 0 <= a <= json["seconds"] + 4 * micro)
        right = own[i] / least if least > 0 else 1
        sheet.check(at("to_best", i), json["to_best"][i], right, lambda a, b: abs(a - b) <= 4 * micro * (1 + b) / max(least, micro) + micro)
        sheet.check(at("to_own", i), json["to_own"][i], "1 or more", lambda a, b: a == 0 or a >= 1 - micro)
        sheet.check(at("slow_windows", i), json["slow_windows"][i], json["windows"], lambda a, b: 0 <= a <= b)
        slow, windows = json["slow_windows"][i], json["windows"]
        right = "chronic" if 2 * slow >= windows and slow else "transient" if slow else ""
        sheet.equal(at("slow", i), json["slow"][i], right)
    for i, host in enumerate(json["hosts"]):
        ranks = [k for k in range(count) if json["host"][k] == host["host"]]
        sheet.equal(f"{place}{dot}hosts[{i}].ranks", host["ranks"], len(ranks))
        delay = sum(json["delay"][k] for k in ranks)
        sheet.check(f"{place}{dot}hosts[{i}].delay", host["delay"], delay, lambda a, b: abs(a - b) <= micro * (1 + len(ranks)))
        cost = delay / json["seconds"] if json["seconds"] > 0 else 0
        sheet.check(f"{place}{dot}hosts[{i}].cost", host["cost"], cost, lambda a, b: abs(a - b) <= micro * (1 + len(ranks)) / max(json["seconds"], micro) + micro)


def check_workers(sheet, place, json, samples_seen, dot="."):
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
