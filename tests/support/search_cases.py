"""Evaluators of searches that are slow, or end the process they run in; worker processes load them from this file."""

import os
import signal
import time
from functools import partial
from pathlib import Path

import numpy as np

from equipoise.validation.contract.fronts import problem_of

BOX = {"bounds": (-1.0, 3.0), "reference": (4.0, 4.0)}


def schaffer(x):
    return np.hstack((x**2, (x - 2.0) ** 2))


def slowly(seconds, x):
    time.sleep(seconds)
    return schaffer(x)


def slow_problem(seconds, **more):
    return problem_of(partial(slowly, seconds), **BOX, **more)


def ends_once(flag, how, x):
    """End the process at the first evaluation at all, and leave a file behind."""
    try:
        Path(flag).touch(exist_ok=False)
    except FileExistsError:
        return schaffer(x)
    time.sleep(0.05)
    if how == "exit":
        os._exit(3)
    os.kill(os.getpid(), getattr(signal, how))
    return schaffer(x)


def fails(x):
    raise ZeroDivisionError


def one_thread(x):
    """Scores that are the numbers of BLAS threads of the process."""
    from threadpoolctl import threadpool_info

    return np.array([[float(max(each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"))]])


def names_its_process(folder, x):
    """Leave a file named as the process, and end it once where a file "ends" is in the folder."""
    if (Path(folder) / "ends").exists():
        return ends_once(Path(folder) / "ended", "exit", x)
    (Path(folder) / str(os.getpid())).touch()
    return schaffer(x)
