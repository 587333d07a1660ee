"""campaign.py - run a check of every scene (crash_scenes.py), for a short time or a long time."""
import argparse
import concurrent.futures
import json
import os
import pathlib
import sys
import tempfile
import time

from crash_scenes import Runner, all_scenes

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import tap  # noqa: E402

PROCESSES = 2


def parse_options(*more):
    parser = argparse.ArgumentParser()
    for name in ("heft", "commands", "shim", *more):
        parser.add_argument(name, type=os.path.abspath)
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--seconds", type=float, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="check scenes with this text in the title")
    return parser.parse_args()


def check_scene(check, scene, root, options):
    """Return (title, number of cases, complaints)."""
    try:
        cases, bad = check(scene, root, options)
    except (RuntimeError, OSError) as e:
        cases, bad = 0, [f"{type(e).__name__}: {e}"]
    return scene.title, cases, bad


def run_campaign(name, check, options):
    """Call check(scene, root, options) for every scene. The function returns the number of cases,
    and complaints; options.each_seconds is the time for the scene."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        try:
            recorder = getattr(options, "recorder", options.shim)
            scenes = all_scenes(Runner(options.heft, recorder), root)
        except RuntimeError as e:
            print(f"Bail out! {e}")
            return 1
        scenes = [s for s in scenes if options.only in s.title]
        options.each_seconds = PROCESSES * options.seconds / len(scenes)
        with concurrent.futures.ProcessPoolExecutor(PROCESSES) as pool:
            jobs = [pool.submit(check_scene, check, s, root, options) for s in scenes]
            results = [job.result() for job in jobs]
    status = tap.report((title, bad) for title, _, bad in results)
    figures = {
        "campaign": name, "cases": sum(cases for _, cases, _ in results),
        "seconds": round(time.monotonic() - began, 1),
        "failures": sum(bool(bad) for _, _, bad in results), "commands": len(results)
    }
    print("#", json.dumps(figures))
    return status
