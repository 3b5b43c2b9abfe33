"""The programs of a build with changed sources, made beside it: what depends on no change is taken from the build.

`MainBuild` knows the commands of Ninja (`ninja -t compdb`) and what each object was read from (`ninja -t deps`).
`Overlay` holds copies of src and include, of which some files are changed, and compiles and links again what depends on
them, with the commands of the build in which the paths are those of the copies.
"""

import concurrent.futures
import filecmp
import hashlib
import json
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

SOURCES = ("src", "include")
COMPILER = re.compile(r"(.*/)?(c|g|clang)\+\+[-\d.]*$")


def run(command, directory, **more):
    return subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False, **more)


class MainBuild:
    def __init__(self, root, directory):
        self.root, self.directory = root, directory
        listed = run(["ninja", "-t", "compdb"], directory)
        if listed.returncode != 0:
            sys.exit(f"error: no build in {directory}: cmake --preset release && cmake --build --preset release")
        self.commands = {e["output"]: e["command"] for e in json.loads(listed.stdout) if e["command"]}
        self.units = {o for o, c in self.commands.items() if o.endswith(".o") and " -c " in c}
        self.reads = {}  # object: files of src, include and test that it was made from
        mine = tuple(f"{root}/{folder}/" for folder in (*SOURCES, "test"))
        for block in run(["ninja", "-t", "deps"], directory).stdout.split("\n\n"):
            head, *files = block.split("\n")
            read = [f.strip() for f in files if f.strip().startswith(mine)]
            self.reads[head.split(": #deps")[0]] = {f[len(str(root)) + 1:] for f in read}

    def needed(self, programs):
        """The outputs that the programs are made of, in the order in which they can be made."""
        order, open_outputs = {}, list(reversed(programs))
        while open_outputs:
            output = open_outputs.pop()
            words = [] if output in self.units else shlex.split(self.commands[output])
            unmade = [w for w in words if w != output and w in self.commands and w not in order]
            if unmade:
                open_outputs += [output, *unmade]
            else:
                order[output] = None
        return list(order)

    def flags(self, file):
        """How a file of src is compiled by itself, for libclang; a header as one of the units that read it."""
        readers = sorted(o for o in self.units if file in self.reads.get(o, ()))
        own = [o for o in readers if self.is_source(o, file)] or [o for o in readers if "/syntax.dir/" not in o]
        if not own:
            return None
        words = shlex.split(self.commands[own[0]])
        words = words[next(i for i, word in enumerate(words) if COMPILER.match(word)) + 1:]
        flags = []
        while words:
            word = words.pop(0)
            if word in ("-o", "-c", "-MF", "-MT"):
                words.pop(0)
            elif word == "-include":
                words.pop(0)
            elif not word.startswith(("-W", "-M", "--param", "-fpch", "-O")):
                flags.append(word)
        return ["-w", *flags]

    def is_source(self, output, file):
        """Whether the unit is made of this file, by itself or with others."""
        return output in self.units and f"/{file}" in self.source_text(output)

    def names_trainer(self, output):
        """Whether what the unit reads has a macro that is the path of the trainer."""
        macros = re.findall(rf"-D(\w+)=\S*{re.escape(str(self.directory))}/trainer", self.commands[output])
        texts = ((self.root / name).read_text() for name in self.reads.get(output, ())) if macros else ()
        return any(macro in text for text in texts for macro in macros)

    def source_text(self, output):
        """The source that a command names, and those that a unity unit includes."""
        source = re.search(r" -c (\S+)", self.commands[output]).group(1)
        path = pathlib.Path(self.directory, source)
        return source + (path.read_text() if "/Unity/" in source else "")


class Overlay:
    def __init__(self, build, directory):
        self.build, self.directory = build, directory
        self.made = {}  # output of the build: the path of what stands in for it

    def copy_sources(self, changed):
        """`changed`: texts of files, by name. All others are as they are."""
        for folder in SOURCES:
            names = run(["git", "ls-files", folder], self.build.root).stdout.split("\n")
            for name in filter(None, names):
                self.write(name, changed.get(name))

    def write(self, name, text=None):
        copy, original = self.directory / name, self.build.root / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        if text is not None:
            copy.write_bytes(text.encode("latin-1"))
        elif not copy.exists() or not filecmp.cmp(original, copy, shallow=False):
            shutil.copy(original, copy)

    def make_switch(self, count, folder):
        """The switch of `count` errors: its header, and its object, which stands in the library."""
        shutil.copy(folder / "lockstep_error.h", self.directory)
        (self.directory / "build").mkdir(parents=True, exist_ok=True)
        files = f"{folder}/lockstep_error.cpp -o {self.directory}/build/lockstep_error.o"
        self.must(f"c++ -std=c++20 -O2 -DLOCKSTEP_ERROR_COUNT={count} -c {files}")

    def must(self, command):
        done = run(command, self.build.directory, shell=True)
        if done.returncode != 0:
            sys.exit(f"error: this fails: {command}\n{done.stderr[:2000]}")

    def trainer(self):
        return str(self.directory / "build" / "trainer")

    def out_of_date(self, changed, programs):
        """What must be made again: outputs that read a changed file, name the trainer, or are made of such outputs."""
        stale = {}
        for output in self.build.needed(programs):
            if output in self.build.units:
                is_stale = bool(self.build.reads.get(output, set()) & changed) or self.build.names_trainer(output)
            else:
                words = shlex.split(self.build.commands[output])
                is_stale = output == "liblockstep.a" or any(word in stale for word in words)
            if is_stale:
                stale[output] = str(self.directory / "build" / output)
        self.made = stale
        return list(stale)

    def command(self, output, extra=""):
        """The build's command with the copies' paths; `extra` are flags of a compilation."""
        root, text = str(self.build.root), self.build.commands[output].replace(" -Werror", "")
        if output in self.build.units:
            text = self.own_unity(text)
            text = re.sub(rf"(?<=[ I\"]){re.escape(root)}/(?=(src|include)\b)", f"{self.directory}/", text)
            text = re.sub(r" -c ", f" {extra} -w -I{self.directory} -c ", text)
            text = text.replace(f"{self.build.directory}/trainer", self.trainer())
        names = "|".join(re.escape(o) for o in sorted(self.made, key=len, reverse=True))
        return re.sub(rf"(?<![^\s=])({names})(?=(\.d)?(\s|$))", lambda m: self.made[m.group(1)], text)

    def own_unity(self, command):
        """A unity unit's own list of files, those of the copy."""
        source = re.search(r" -c (\S+/Unity/\S+)", command)
        if not source:
            return command
        path = pathlib.Path(source.group(1))
        copy = self.directory / "unity" / path.relative_to(self.build.directory)
        copy.parent.mkdir(parents=True, exist_ok=True)
        original = rf"\"{re.escape(str(self.build.root))}/(?=src/)"
        copy.write_text(re.sub(original, f"\"{self.directory}/", path.read_text()))
        return command.replace(str(path), str(copy))

    def make(self, outputs, jobs):
        """Makes the outputs; what the compiler says of those that fail."""
        units = [o for o in outputs if o in self.build.units]
        for path in (self.made[o] for o in outputs):
            pathlib.Path(path).parent.mkdir(parents=True, exist_ok=True)
        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            said = [s for s in pool.map(self.make_one, units) if s]
            if said:
                return said
            libraries = [o for o in outputs if o.endswith(".a")]
            said = [s for s in map(self.make_one, libraries) if s]
            programs = [o for o in outputs if o not in self.build.units and o not in libraries]
            return said or [s for s in pool.map(self.make_one, programs) if s]

    def make_one(self, output):
        """Objects whose command and files are as they were when they were made last are left as they are."""
        command, mark = self.command(output), pathlib.Path(self.made[output] + ".made")
        if output == "liblockstep.a":
            command = re.sub(r"( qc \S+)", rf"\1 {self.directory}/build/lockstep_error.o", command)
        made_of = self.fingerprint(output, command) if output in self.build.units else ""
        if made_of and mark.exists() and mark.read_text() == made_of and pathlib.Path(self.made[output]).exists():
            return ""
        mark.unlink(missing_ok=True)
        done = run(command, self.build.directory, shell=True)
        if done.returncode != 0:
            return done.stdout + done.stderr or f"{output} cannot be made"
        mark.write_text(made_of)
        return ""

    def fingerprint(self, output, command):
        whole = hashlib.sha256(command.encode())
        for name in sorted(self.build.reads.get(output, ())):
            copy = self.directory / name
            path = copy if copy.exists() else self.build.root / name
            whole.update(path.read_bytes())
        return whole.hexdigest()
