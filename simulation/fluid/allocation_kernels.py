"""Compiled allocation rules: each writes `given` of the jobs that get GPUs, and lists them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...formulations.compiled import compiled
from .arrays import CHOSEN, SCRATCH, SERVED, WINNERS

# Codes of FluidCode: compiled loops read globals as constants.
_FIFO, _SRSF, _SRTF, _LAS, _FS, _AFS, _AFS_L, _THEMIS, _WFQ = range(9)
_NONE_GPUS = 1e-3
_NONE_FRACTION = 1e-6
_SAME = 1e-9
_MARGIN_S = 1e-7


@compiled(error_model="numpy")
def speed(job: Any, table: Any, gpus: float) -> float:
    """Return the speedup of a job on any number of GPUs."""
    if gpus >= job.max_gpus:
        return float(table[job.first + job.max_gpus])
    down, up = math.floor(gpus), math.ceil(gpus)
    slope = table[job.first + up] - table[job.first + down]
    return float(slope * gpus + (table[job.first + up] - slope * up))


@compiled(error_model="numpy")
def in_order(jobs: Any, order: Any, queues: Any, state: Any, table: Any, lists: Any) -> int:
    """Serve jobs by ascending key; only the keys of jobs in service change, and an arrival stands last."""
    engine, queue = state[0], queues[0]
    head, tail, prefix = queue.head, queue.tail, engine.prefix
    if engine.code != _FIFO:
        for place in range(head, head + prefix):
            job = jobs[order[0, place]]
            left_s = job.work_s * job.factor
            if engine.code == _LAS:
                job.key = job.known_s - left_s
            else:
                time_s = left_s / table[job.first + job.max_gpus]
                job.key = job.max_gpus * time_s if engine.code == _SRSF else time_s
        # Sort the jobs in service; merge them with the others, which are sorted; insert the arrival.
        for place in range(head + 1, head + prefix):
            moving = order[0, place]
            at = place
            while at > head and jobs[order[0, at - 1]].key > jobs[moving].key:
                order[0, at] = order[0, at - 1]
                at -= 1
            order[0, at] = moving
        last = tail - 1 if engine.event == 2 else tail
        for place in range(prefix):
            lists[SCRATCH, place] = order[0, head + place]
        at, mine, others = head, 0, head + prefix
        while mine < prefix:
            if others < last and jobs[order[0, others]].key < jobs[lists[SCRATCH, mine]].key:
                order[0, at] = order[0, others]
                others += 1
            else:
                order[0, at] = lists[SCRATCH, mine]
                mine += 1
            at += 1
        if last < tail:
            moving = order[0, last]
            at = last
            while at > head and jobs[order[0, at - 1]].key > jobs[moving].key:
                order[0, at] = order[0, at - 1]
                at -= 1
            order[0, at] = moving
    count, rest = 0, engine.gpus
    while rest > 0 and head + count < tail:
        index = order[0, head + count]
        jobs[index].given = min(rest, jobs[index].max_gpus)
        rest -= min(rest, jobs[index].max_gpus)
        lists[CHOSEN, count] = index
        count += 1
    engine.prefix = count
    return count


@compiled(error_model="numpy")
def fair_share(jobs: Any, order: Any, queues: Any, state: Any, lists: Any) -> int:
    """Share the GPUs evenly, again and again what jobs leave that have enough."""
    head, tail = queues[0].head, queues[0].tail
    rest, left = float(state[0].gpus), 0.0
    for place in range(head, tail):
        job = jobs[order[0, place]]
        job.a, job.b = state[0].gpus / (tail - head), float(job.max_gpus)
        left += job.b
        lists[CHOSEN, place - head] = order[0, place]
    for _ in range(100):
        total = 0.0
        for place in range(head, tail):
            job = jobs[order[0, place]]
            given = min(job.a, job.b)
            job.given += given
            job.b -= given
            rest -= given
            left -= given
            if job.b == 0.0:
                job.a = 0.0
            total += job.a
        if rest <= _NONE_FRACTION or left <= _NONE_FRACTION or total <= 0.0:
            break
        for place in range(head, tail):
            job = jobs[order[0, place]]
            job.a = rest * job.a / total
    for place in range(head, tail):
        job = jobs[order[0, place]]
        job.given = min(job.given, float(job.max_gpus))
    return int(tail - head)


@compiled(error_model="numpy")
def weigh(job: Any, table: Any, code: int) -> None:
    """Compute what a tournament compares: time left, and the gains of one more GPU as a short and as a long job."""
    gpus = int(job.given)
    here, there = table[job.first + gpus], table[job.first + gpus + 1]
    left_s = job.work_s * job.factor
    job.a = left_s / here if here > 0.0 else np.inf
    if code == _AFS_L:
        job.b, job.c = there / here, here / there
        return
    now, then = 1.0 / (job.a + _MARGIN_S), 1.0 / (left_s / there + _MARGIN_S)
    job.b = (then - now) / now if now > 0.0 else np.inf
    job.c, job.d = (then - now) / then, then


@compiled(error_model="numpy")
def first_served(jobs: Any, order: Any, queues: Any, state: Any, lists: Any) -> int:
    """List as many jobs as there are GPUs in the order in which tournaments give them their first GPU.

    AFS prefers the largest S(1), and of equal jobs the last to arrive; AFS-L the least work, and the first to arrive.
    """
    engine, afs, count = state[0], state[0].code == _AFS, 0
    # Jobs in service come first: few others then displace one of them.
    for place in range(engine.served + queues[0].tail - queues[0].head):
        waits = place >= engine.served
        index = order[0, queues[0].head + place - engine.served] if waits else lists[SERVED, place]
        job = jobs[index]
        if waits and job.gpus > 0.0:
            continue
        left_s = job.work_s * job.factor
        job.key = -1.0 / (left_s + _MARGIN_S) if afs else left_s
        at = count
        while at > 0:
            before = lists[SCRATCH, at - 1]
            if jobs[before].key < job.key or (jobs[before].key == job.key and (before > index) == afs):
                break
            at -= 1
        if at == engine.gpus:
            continue
        count = min(count + 1, engine.gpus)
        for later in range(count - 1, at, -1):
            lists[SCRATCH, later] = lists[SCRATCH, later - 1]
        lists[SCRATCH, at] = index
    return count


@compiled(error_model="numpy")
def tournament(jobs: Any, order: Any, queues: Any, state: Any, table: Any, lists: Any) -> int:
    """Give GPUs one by one to the winner among the jobs below their maximum demand."""
    head, tail, code, rest = queues[0].head, queues[0].tail, state[0].code, state[0].gpus
    present, count = tail - head, first_served(jobs, order, queues, state, lists)
    # In AFS a job in service loses to any job without GPUs, unless one more GPU more than doubles its speed.
    for place in range(count):
        index = lists[SCRATCH, place]
        job = jobs[index]
        job.given = 1.0
        lists[CHOSEN, place] = index
        rest -= 1
        if code == _AFS and job.max_gpus > 1:
            weigh(job, table, code)
            if job.b > 1.0:
                break
    if rest == 0:
        return int(count)
    for place in range(present):
        lists[CHOSEN, place] = order[0, head + place]
    count = 0
    for place in range(present):
        if jobs[lists[CHOSEN, place]].given < jobs[lists[CHOSEN, place]].max_gpus:
            weigh(jobs[lists[CHOSEN, place]], table, code)
            lists[SCRATCH, count] = lists[CHOSEN, place]
            count += 1
    # lists[WINNERS, p] is the winner among the first p + 1: a GPU changes only those from the winner's place on.
    since = 0
    while rest > 0 and count > 0:
        for place in range(since, count):
            if place == 0:
                lists[WINNERS, place] = 0
                continue
            held, rival = jobs[lists[SCRATCH, lists[WINNERS, place - 1]]], jobs[lists[SCRATCH, place]]
            if rival.a < held.a:
                short, long, short_place, long_place = rival, held, place, lists[WINNERS, place - 1]
            else:
                short, long, short_place, long_place = held, rival, lists[WINNERS, place - 1], place
            if code == _AFS_L:
                wins = short.b + long.c > 2.0
            elif short.a == np.inf:
                wins = short.d > long.d
            else:
                wins = short.b > long.c
            lists[WINNERS, place] = short_place if wins else long_place
        since = lists[WINNERS, count - 1]
        winner = jobs[lists[SCRATCH, since]]
        winner.given += 1.0
        rest -= 1
        if winner.given == winner.max_gpus:
            for place in range(since, count - 1):
                lists[SCRATCH, place] = lists[SCRATCH, place + 1]
            count -= 1
        else:
            weigh(winner, table, code)
    count = 0
    for place in range(present):
        if jobs[lists[CHOSEN, place]].given > 0.0:
            lists[CHOSEN, count] = lists[CHOSEN, place]
            count += 1
    return count


@compiled(error_model="numpy")
def worst_first(jobs: Any, order: Any, queues: Any, state: Any, lists: Any) -> int:
    """Give the job of the largest ratio of time to fair time its maximum demand, or what is left; then the next.

    Jobs stay in descending order of their ratios `key`, ties by arrival, so that little is to be sorted. `a`, `b` and
    `c` are the age, the work left and the fair time.
    """
    engine = state[0]
    head, tail, rest, count, widest = queues[0].head, queues[0].tail, engine.gpus, 0, 1
    for place in range(head, tail):
        index = order[0, place]
        job = jobs[index]
        demand = min(rest, job.max_gpus)
        widest = max(widest, demand)
        contention = (engine.seen - job.seen) / (engine.events - job.events)
        job.a, job.b = (engine.now - job.arrival) / engine.ticks_per_s, job.work_s * job.factor
        job.c = job.estimate_s / min(engine.gpus / contention, float(job.max_gpus))
        ratio = (job.a + job.b / demand) / job.c
        job.key = ratio
        at = place
        while at > head:
            before = order[0, at - 1]
            if jobs[before].key > ratio or (jobs[before].key == ratio and before < index):
                break
            order[0, at] = before
            at -= 1
        order[0, at] = index
    # As long as no job demands more than is left, no ratio changes.
    while head < tail and rest >= widest:
        index = order[0, head]
        jobs[index].given = float(min(rest, jobs[index].max_gpus))
        rest -= min(rest, jobs[index].max_gpus)
        lists[CHOSEN, count] = index
        count += 1
        head += 1
    while rest > 0:
        # The fewer GPUs raise no ratio by more than this, with a margin for rounding.
        most = (1.0 + _SAME) * widest / rest
        worst, largest = -1, -np.inf
        for place in range(head, tail):
            job = jobs[order[0, place]]
            if largest > most * max(job.key, 0.0):
                break
            if job.given > 0.0:
                continue
            ratio = (job.a + job.b / rest) / job.c if job.max_gpus > rest else job.key
            if ratio > largest or (ratio == largest and order[0, place] < worst):
                worst, largest = order[0, place], ratio
        if worst < 0:
            break
        jobs[worst].given = float(min(rest, jobs[worst].max_gpus))
        rest -= min(rest, jobs[worst].max_gpus)
        lists[CHOSEN, count] = worst
        count += 1
    return count


@compiled(error_model="numpy")
def by_queue(jobs: Any, order: Any, queues: Any, sums: Any, state: Any, lists: Any, caps: Any) -> int:
    """Divide the GPUs over the queues by weight, and inside each in order of arrival up to a cap that is relaxed.

    `kept` of the engine counts the jobs at the head of the list that keep their GPUs, which are not listed again.
    """
    rest, left = 0.0, 0.0
    for number in range(len(queues)):
        queue = queues[number]
        queue.gpus, queue.rest, queue.wanted = 0.0, queue.share, float(queue.demand)
        rest += queue.share
        left += queue.demand
    for _ in range(101):
        if rest <= 0.0 or left <= 0.0:
            break
        total = 0.0
        for number in range(len(queues)):
            queue = queues[number]
            amount = min(queue.rest, queue.wanted)
            if amount <= _NONE_GPUS:
                amount = 0.0
            queue.gpus += amount
            queue.wanted -= amount
            rest -= amount
            left -= amount
            if queue.wanted <= _NONE_GPUS:
                queue.rest, queue.wanted = 0.0, 0.0
            total += queue.rest
        if rest <= _NONE_GPUS or left <= _NONE_GPUS or total <= 0.0:
            break
        for number in range(len(queues)):
            queues[number].rest = rest * queues[number].rest / total
    engine, count = state[0], 0
    keeps = engine.code == _WFQ and not engine.least
    for number in range(len(queues)):
        queue = queues[number]
        # Rounding must not give a job a trace of a GPU where the exact amount is whole.
        if abs(queue.gpus - np.rint(queue.gpus)) <= _SAME:
            queue.gpus = np.rint(queue.gpus)
        # The sum of a queue's caps rises as the level falls: the first that uses all its GPUs.
        level = 0
        while level + 1 < sums.shape[1] and sums[number, level] < queue.gpus:
            level += 1
        place, used = queue.head, 0.0
        # The jobs that hold as many GPUs as their caps go on to do so; unless the queue before lost a job, they stand
        # where they stood in the list.
        same = keeps and level == queue.level and queue.held <= queue.gpus and queue.full > 0
        if same and count < engine.served and lists[SERVED, count] == order[number, place]:
            place, used = place + queue.full, queue.held
            count += queue.full
            engine.kept = count
        while used < queue.gpus and place < queue.tail:
            index = order[number, place]
            job = jobs[index]
            cap = float(caps[job.curve, level])
            given = min(queue.gpus - used, cap)
            keeps = keeps and count < engine.served and lists[SERVED, count] == index and job.gpus == given
            if not keeps:
                job.given = given
                lists[CHOSEN, count] = index
            count += 1
            if keeps:
                engine.kept = count
            if given < cap:
                break
            used += given
            place += 1
        queue.level, queue.full, queue.held = level, place - queue.head, used
    return count
