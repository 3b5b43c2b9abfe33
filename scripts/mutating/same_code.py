"""Which errors change nothing: their file gives the same machine code with the error fixed on as with it fixed off."""

import concurrent.futures
import hashlib
import pathlib
import re
import shlex
import subprocess


def object_of(overlay, file, number):
    """A hash of the file's code by itself, with error `number` on and all others off."""
    output = next((o for o in sorted(overlay.made) if overlay.build.is_source(o, file)), None)
    if output is None:
        return None
    source = overlay.directory / file
    made = overlay.directory / "same_code" / f"{number}-{file.replace('/', '_')}.s"
    made.parent.mkdir(parents=True, exist_ok=True)
    command = overlay.command(output, f"-DLOCKSTEP_FIXED_ERROR={number}")
    command = re.sub(r" -(MT|MF|o|c) \S+| -MD", "", command)
    command += f" -o {shlex.quote(str(made))} -S {shlex.quote(str(source))}"
    done = subprocess.run(command, cwd=overlay.build.directory, shell=True, capture_output=True, check=False)
    if done.returncode != 0:
        return None
    code = hashlib.sha256(pathlib.Path(made).read_bytes()).hexdigest()
    made.unlink()
    return code


def find(overlay, errors, jobs):
    """The numbers of those errors that change nothing."""
    files = sorted({e.place.file for e in errors if e.place.file.endswith(".cpp")})
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        without = dict(zip(files, pool.map(lambda f: object_of(overlay, f, 0), files)))
        tried = [e for e in errors if without.get(e.place.file)]
        codes = pool.map(lambda e: object_of(overlay, e.place.file, e.number), tried)
        return [e.number for e, code in zip(tried, codes) if code == without[e.place.file]]
