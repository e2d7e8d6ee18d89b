"""All-reduces send by send: messages carry numbers, are timed by walks over links, and end in the sums everywhere.

Written from docs/network.md alone: nothing of `simulation.network` is called.
"""

from fractions import Fraction
from functools import cache
from itertools import chain, product

GB = 2**30


@cache
def walk_lengths(topology, n):
    """Return the hops from node 0 to each node, by breadth-first search over the links."""
    hub = n
    links = {
        "ring": [(a, (a + 1) % n) for a in range(n)],
        "fully_connected": [(a, b) for a in range(n) for b in range(a)],
        "switch": [(a, hub) for a in range(n)],
    }[topology]
    near = {node: set() for node in range(n + 1)}
    for a, b in links:
        near[a].add(b)
        near[b].add(a)
    found, border = {0: 0}, [0]
    while border:
        border = [b for a in border for b in near[a] if found.setdefault(b, found[a] + 1) == found[a] + 1]
    return [found[node] for node in range(n)]


def hops(topology, n, a, b):
    """All topologies look the same from each node."""
    return walk_lengths(topology, n)[(b - a) % n]


def flat(chunks):
    return list(chain.from_iterable(chunks))


class Line:
    """Nodes of one dimension; `chunks[node][position]` holds the numbers of a chunk, in the order of the positions."""

    def __init__(self, topology, algorithm, latency_ns, bandwidth_gb_s, unit_bytes):
        self.topology, self.algorithm, self.unit = topology, algorithm, Fraction(unit_bytes)
        self.latency_s = Fraction(latency_ns) / 10**9
        self.bytes_per_s = Fraction(bandwidth_gb_s) * GB
        self.seconds = Fraction(0)

    def send(self, n, messages):
        """One step: all messages (source, target, numbers) at once; the slowest one ends it."""
        kinds = {(hops(self.topology, n, source, target), len(numbers)) for source, target, numbers in messages}
        self.seconds += max(walked * self.latency_s + sent * self.unit / self.bytes_per_s for walked, sent in kinds)

    def reduce_scatter(self, chunks):
        """Node r ends with the sum of chunk r."""
        n = len(chunks)
        held = [[list(chunk) for chunk in chunks[node]] for node in range(n)]
        if self.algorithm == "ring":
            for step in range(1, n):
                sent = [(r, (r + 1) % n, (r - step) % n) for r in range(n)]
                messages = [(r, to, list(held[r][which])) for r, to, which in sent]
                self.send(n, messages)
                for (_, to, which), (_, _, numbers) in zip(sent, messages, strict=True):
                    held[to][which] = [a + b for a, b in zip(held[to][which], numbers, strict=True)]
            return [held[r][r] for r in range(n)]
        # Entry i of node r is its part of the chunk of node r + i; the upper half is sent away in each step.
        parts, size = [[held[r][(r + i) % n] for i in range(n)] for r in range(n)], n
        while size > 1:
            half = (size + 1) // 2
            messages = [(r, (r + half) % n, flat(parts[r][half:size])) for r in range(n)]
            upper = [parts[r][half:size] for r in range(n)]
            self.send(n, messages)
            for r, to, _ in messages:
                for i, numbers in enumerate(upper[r]):
                    parts[to][i] = [a + b for a, b in zip(parts[to][i], numbers, strict=True)]
            size = half
        return [parts[r][0] for r in range(n)]

    def all_gather(self, own):
        """Node r begins with chunk r; all end with all chunks."""
        n = len(own)
        if self.algorithm == "ring":
            held = [{r: own[r]} for r in range(n)]
            for step in range(n - 1):
                sent = [(r, (r + 1) % n, (r - step) % n) for r in range(n)]
                self.send(n, [(r, to, held[r][which]) for r, to, which in sent])
                for r, to, which in sent:
                    held[to][which] = held[r][which]
            return [[held[r][which] for which in range(n)] for r in range(n)]
        sizes = [n]
        while sizes[-1] > 1:
            sizes.append((sizes[-1] + 1) // 2)
        known = [[own[r]] for r in range(n)]  # chunks of nodes r, r + 1, ...
        for half, size in zip(sizes[::-1], sizes[-2::-1], strict=False):
            messages = [(r, (r - half) % n, known[r][: size - half]) for r in range(n)]
            self.send(n, [(r, to, flat(chunks)) for r, to, chunks in messages])
            for _, to, chunks in messages:
                known[to] = known[to] + chunks
        return [[known[r][(which - r) % n] for which in range(n)] for r in range(n)]


def all_reduce_s(dimensions, num_bytes, scheme):
    """Return the seconds of an all-reduce over dimensions (topology, size, bandwidth_gb_s, latency_ns, algorithm).

    Every GPU has one number for each GPU, to be summed over all of them; each is a power of 2 of its own, so that a
    number counted twice, or not at all, shows.
    """
    sizes = [size for _, size, *_ in dimensions]
    gpus = list(product(*(range(size) for size in sizes)))
    if len(gpus) == 1:
        return Fraction(0)
    count = len(gpus)
    held = {gpu: [(block + 1) << index for block in range(count)] for index, gpu in enumerate(gpus)}
    wanted = [(block + 1) * ((1 << count) - 1) for block in range(count)]
    lines = [
        Line(topology, algorithm, latency_ns, bandwidth_gb_s, Fraction(num_bytes) / count)
        for topology, _, bandwidth_gb_s, latency_ns, algorithm in dimensions
    ]

    def over(axis, held, collective):
        """Run a collective on each line of GPUs along an axis; lines run at once, and take equally long."""
        line, new = lines[axis], {}
        begin, ends = line.seconds, set()
        for start in (gpu for gpu in gpus if gpu[axis] == 0):
            members = [(*start[:axis], k, *start[axis + 1 :]) for k in range(sizes[axis])]
            line.seconds = begin
            new.update(zip(members, collective(line, [held[member] for member in members]), strict=True))
            ends.add(line.seconds)
        (line.seconds,) = ends
        return new

    def scatter(line, vectors):
        n = len(vectors)
        if n == 1:
            return vectors
        width = len(vectors[0]) // n
        return line.reduce_scatter([[v[k * width : (k + 1) * width] for k in range(n)] for v in vectors])

    def gather(line, vectors):
        return [flat(chunks) for chunks in line.all_gather(vectors)] if len(vectors) > 1 else vectors

    axes = range(len(sizes))
    if scheme == "flat":
        for axis in axes:
            held = over(axis, over(axis, held, scatter), gather)
    else:
        for axis in axes:
            held = over(axis, held, scatter)
        for axis in reversed(axes):
            held = over(axis, held, gather)
    assert all(held[gpu] == wanted for gpu in gpus)
    return sum(line.seconds for line in lines)


def recursive_halving_s(topology, n, bandwidth_gb_s, latency_ns, num_bytes):
    """Return the seconds of recursive halving and doubling between nodes r and r xor 2^k, for n a power of two."""
    line = Line(topology, None, latency_ns, bandwidth_gb_s, Fraction(num_bytes) / n)
    held = [dict.fromkeys(range(n), 1 << r) for r in range(n)]
    distances = [n >> k for k in range(1, n.bit_length())]
    for distance in distances:
        sent = [{b: v for b, v in held[r].items() if (b ^ r) & distance} for r in range(n)]
        line.send(n, [(r, r ^ distance, list(sent[r].values())) for r in range(n)])
        held = [{b: held[r][b] + sent[r ^ distance][b] for b in held[r] if b not in sent[r]} for r in range(n)]
    for distance in reversed(distances):
        line.send(n, [(r, r ^ distance, list(held[r].values())) for r in range(n)])
        held = [held[r] | held[r ^ distance] for r in range(n)]
    total = (1 << n) - 1
    assert all(values == dict.fromkeys(range(n), total) for values in held)
    return line.seconds
