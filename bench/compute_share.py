# SPDX-License-Identifier: Apache-2.0
"""Sections of bench/compute.py: a slice alone under a limit, and slices beside each other."""

from compute_rig import MS, S, busy_part, together, whole_periods

LIMITS = [5, 10, 25, 30, 50, 75, 90]
KERNELS_US = [20, 200, 5000, 50000]
SHAPES = ["stream", "streams4", "graph", "coop", "processes4"]
SIDE_BY_SIDE = ("streams4", "processes4")
BLOCKS = [("1 block", 1), ("full grid", 0)]
WARM_S = 0.5  # what was saved up is gone by then
LONGEST_S = 12
GOAL_POINTS = 1.0
GOAL_BESIDE_POINTS = 2.0
GOAL_SUM = 0.96
GOAL_SECOND_POINTS = 2.0
GOAL_DELIVERED = 0.98
GOAL_JAIN = 0.99


def graph_kernels(kernel_us):
    """A graph is launched as a whole: of long kernels it has few, or it would be busy for seconds."""
    return 20 if kernel_us <= 5000 else 2


def options(rig, kernel_us, blocks, shape):
    found = {"duration_us": kernel_us, "blocks": blocks, "shape": shape}
    if shape == "processes4":
        # the device leaves one process's kernels for another's: time is no measure of their work
        found.update(shape="stream", rate=rig.rate())
    if shape == "graph":
        found["graph"] = graph_kernels(kernel_us)
    return found


def matrix():
    """Every row: (limit in percent, kernel in µs, name of blocks, blocks, shape)."""
    return [(limit, kernel_us, name, blocks, shape) for kernel_us in KERNELS_US
            for shape in SHAPES for name, blocks in BLOCKS for limit in LIMITS]


def quick_matrix():
    """Each kernel with each shape and blocks once, and with each limit."""
    rows, shift = [], 0
    for kernel_us in KERNELS_US:
        for place, shape in enumerate(SHAPES):
            for other, (name, blocks) in enumerate(BLOCKS):
                limit = LIMITS[(2 * place + other + shift) % len(LIMITS)]
                rows.append((limit, kernel_us, name, blocks, shape))
        shift += 3
    return rows


def row_seconds(limit, unit_us, processes, least_s):
    """Long enough for six whole periods of what runs at once."""
    return min(LONGEST_S, max(least_s, 6 * processes * unit_us / 1e6 / (limit / 100)))


def warm_seconds(limit, unit_us, at_once):
    """Until what was saved up is gone, and the first of each, whose length nobody knows, are paid for."""
    return WARM_S + min(LONGEST_S, 2 * at_once * unit_us / 1e6 / (limit / 100))


def furthest(share, limit, span, long_ns):
    """How many points the share of any stretch so long is from the limit, at most."""
    return max((abs(share(at, at + long_ns) - limit)
                for at in range(span[0], span[1] - long_ns + 1, long_ns)), default=0)


def measure_alone(rig, args, case):
    """
    What runs one by one is measured by what is done; what the device runs side by side, or divides
    among processes, by the time in which it is busy: that is what is limited, and done then is more or less.
    The simulated node does not tell when exactly that was.
    """
    limit, kernel_us, _, blocks, shape = case
    load = options(rig, kernel_us, blocks, shape)
    processes = 4 if shape == "processes4" else 1
    unit_us = kernel_us * (load["graph"] if shape == "graph" else 1)
    warm_s = warm_seconds(limit, unit_us, 4 if shape in SIDE_BY_SIDE else 1)
    native, native_busy = rig.native(**load)
    slice_ = rig.slice(cores=limit, turns=rig.turns if args.turns else None)
    run_s = row_seconds(limit, unit_us, processes, args.seconds)
    loads = rig.run([slice_] * processes, warm_s + run_s, **load)
    spans = together(loads)

    def done(start_ns, end_ns):
        return 100 * sum(one.rate(start_ns, end_ns) for one in loads) / native

    def busy(start_ns, end_ns):
        return 100 * busy_part(spans, start_ns, end_ns) / native_busy

    share_of = busy if shape in SIDE_BY_SIDE and not rig.is_sim else done
    from_ns = loads[0].start_ns + int(warm_s * S)
    period = whole_periods(loads, from_ns, loads[0].end_ns)
    share = share_of(*period)
    worst, worst_tenth = (furthest(share_of, limit, (from_ns, loads[0].end_ns), long_ns)
                          for long_ns in (S, S // 10))
    # a second holds whole kernels, so it is off by one of each process
    second_goal = GOAL_SECOND_POINTS + 100 * processes * unit_us / 1e6
    is_good = abs(share - limit) <= GOAL_POINTS and worst <= second_goal
    return {"share": share, "error": share - limit, "delivered": share / limit, "worst second": worst,
            "worst 100 ms": worst_tenth, "busy": busy(*period), "done": done(*period),
            "native busy": 100 * native_busy,
            "longest launch ms": max(one.launch_max_ms() for one in loads)}, \
        is_good and share / limit >= GOAL_DELIVERED, \
        "±%.1f, seconds ±%.1f, ≥ %d %%" % (GOAL_POINTS, second_goal, GOAL_DELIVERED * 100)


def alone(rig, args, report):
    report.section("alone", "a slice alone under a limit")
    cases = quick_matrix() if args.quick else matrix()
    part, parts = args.part
    for case in cases[part - 1::parts]:
        limit, kernel_us, name, _, shape = case
        report.row("%d %%, %d µs, %s, %s" % (limit, kernel_us, name, shape),
                   {"limit": limit, "kernel_us": kernel_us, "blocks": name, "shape": shape},
                   lambda: measure_alone(rig, args, case))


# name, for each slice: what it is sure of, its cap, its kernel in µs
LONG_WARM_S = 30  # the first long kernels are known to nobody, and their slices are barred for them
LONG_S = 60
WINDOW_S = 5
LONG = [
    ("50 + 50 of 300 ms", [(50, 50, 300000)] * 2),
    ("50 + 50 of 300 ms that lend", [(50, 100, 300000)] * 2),
    ("50 of 300 ms + 50 of 20 ms that lend", [(50, 100, 300000), (50, 100, 20000)]),
    ("70 of 300 ms + 30 of 0.2 ms that lend", [(70, 100, 300000), (30, 100, 200)]),
    ("30 of 300 ms + 70 of 0.2 ms that lend", [(30, 100, 300000), (70, 100, 200)]),
    ("30 + 70 of 300 ms that lend", [(30, 100, 300000), (70, 100, 300000)]),
    ("12 × 8 of 300 ms that lend", [(12, 100, 300000)] * 8),
    ("50 + 50 of 500 ms that lend", [(50, 100, 500000)] * 2),
    ("20 of 400 ms + 80 of 0.2 ms that lend", [(20, 100, 400000), (80, 100, 200)]),
    ("50 of 1 s + 50 of 0.2 ms that lend", [(50, 100, 1000000), (50, 100, 200)]),
]

# name, for each slice: what it is sure of (None: no limit) and its kernel in µs
BESIDE = [
    ("50 + 50", [(50, 200), (50, 200)]),
    ("30 + 60", [(30, 200), (60, 200)]),
    ("20 + 30 + 40", [(20, 200), (30, 200), (40, 200)]),
    ("25 × 4", [(25, 200)] * 4),
    ("12 × 8", [(12, 200)] * 8),
    ("50 of 20 µs + 50 of 5 ms", [(50, 20), (50, 5000)]),
    ("30 + no limit", [(30, 200), (None, 200)]),
]


def measure_beside(rig, args, slices):
    loads_of = [{"duration_us": us, "shape": "stream", "rate": rig.rate()} for _, us in slices]
    natives = [rig.native(**load)[0] for load in loads_of]
    children = [rig.start(rig.slice(turns=rig.turns, cores=limit), args.seconds + WARM_S, **load)
                for (limit, _), load in zip(slices, loads_of)]
    rig.begin(children)
    loads = [child.load() for child in children]
    from_ns, to_ns = loads[0].start_ns + int(WARM_S * S), loads[0].end_ns
    shares = [100 * load.rate(from_ns, to_ns) / native for load, native in zip(loads, natives)]
    limits = [limit for limit, _ in slices]
    limited = [(share, limit) for share, limit in zip(shares, limits) if limit]
    worst = max((share - limit for share, limit in limited), key=abs)
    jain = sum(shares) ** 2 / (len(shares) * sum(s * s for s in shares)) if any(shares) else 0
    measured = {"shares": " ".join("%.1f" % share for share in shares), "sum": sum(shares),
                "busy": " ".join("%.1f" % (100 * load.busy(from_ns, to_ns)) for load in loads),
                "worst error": worst, "delivered": min(s / l for s, l in limited),
                "longest launch ms": " ".join("%.1f" % load.launch_max_ms() for load in loads),
                "longest gap ms": max(l.longest_gap_ns(from_ns, to_ns) for l in loads) / MS}
    granted = sum(limit if limit else 100 - sum(l for l in limits if l) for limit in limits)
    measured["of granted"] = sum(shares) / granted
    is_good = abs(worst) <= GOAL_BESIDE_POINTS and sum(shares) >= GOAL_SUM * granted
    goal = "±%.1f, sum ≥ %d %%" % (GOAL_BESIDE_POINTS, GOAL_SUM * 100)
    if len(set(slices)) == 1:
        measured["jain"] = jain
        is_good, goal = is_good and jain >= GOAL_JAIN, goal + ", Jain ≥ %.2f" % GOAL_JAIN
    if None in limits:
        is_good = is_good and min(s for s, l in limited) >= limited[0][1] - 1
        goal += ", the limited one within 1"
    return measured, is_good, goal


def beside(rig, args, report):
    report.section("beside", "slices beside each other, each always busy")
    for name, slices in BESIDE:
        report.row(name, {}, lambda: measure_beside(rig, args, slices))


def measure_long(rig, slices):
    children = [rig.start(rig.slice(turns=rig.turns, cores=cores, cap=cap), LONG_WARM_S + LONG_S,
                          duration_us=us, shape="stream", rate=rig.rate())
                for cores, cap, us in slices]
    rig.begin(children)
    loads = [child.load() for child in children]
    starts = range(loads[0].start_ns + LONG_WARM_S * S, loads[0].end_ns - WINDOW_S * S + 1,
                   WINDOW_S * S)
    parts = [[load.rate(at, at + WINDOW_S * S) * us / 1e4 for at in starts]
             for load, (_, _, us) in zip(loads, slices)]
    means = [sum(part) / len(part) for part in parts]
    return {"shares": " ".join("%.1f" % mean for mean in means),
            "of 5 s": " ".join("%.0f–%.0f" % (min(part), max(part)) for part in parts),
            "sum": sum(means)}, True, ""


def long(rig, _args, report):
    report.section("long", "slices beside each other with kernels that are longer than a turn")
    for name, slices in LONG:
        report.row(name, {}, lambda: measure_long(rig, slices))
