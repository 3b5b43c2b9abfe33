"""Cases of compare-outputs: documents, configs, and what data are read."""

import pathlib
import tomllib

from .case import CONFIGS, ROOT, case
from .configs import ARRAYS, IMAGES, PLAIN_TABLE, REPEATABLE, SEQUENCES, SERIES, TEXT
from .data import has_stand_in


def of_help(keys):
    topics = sorted(path.stem for path in (CONFIGS / "guides").glob("*.md"))
    commands = """sweep cv plan bench eval predict importance export inspect init compare report export-metrics status watch trace
        reference help""".split()
    yield case("help/pages", f"""
        trainer --help
        trainer --help-all
        ! trainer
        trainer help
        for topic in {" ".join(topics)}; do trainer help $topic; done
        for command in {" ".join(commands)}; do trainer help $command; trainer $command --help; done
        ! trainer help train.lrr
        trainer help nothing
        trainer --version
        trainer --version --json version.json
        """)
    yield case("help/keys", f"for key in {' '.join(keys)}; do trainer help $key; done")
    yield case("help/reference", """
        for format in markdown man bash zsh; do trainer reference --format $format > reference.$format; done
        ! trainer reference --format none
        """)


def of_configs():
    """Each config of configs/ on small stand-ins for its data."""
    for path in sorted(CONFIGS.glob("*.toml")):
        config = tomllib.loads(path.read_text())
        data, strategy = config["data"], config["distribute"].get("strategy")
        files = {key: f"data/{pathlib.PurePath(data[key]).name}"
                 for key in ("train", "test", "train_labels", "test_labels") if key in data}
        flags = " ".join(f"--data.{key} {file}" for key, file in files.items())
        short = f"{flags} --train.global_batch 32 --train.steps 4 --run.dir run --checkpoint.wait true"
        if strategy in ("allreduce", "local_sgd"):
            short += " --distribute.algorithm mpi"
        if strategy == "local_sgd":
            short += " --distribute.local_after '1 steps' --distribute.average_every 2"
        yield case(f"configs/{path.stem}", f"""
            trainer plan --config config.toml {flags} --np 1,2,4,8
            mpirun -np 2 trainer --config config.toml {short}
            trainer eval --model run --json eval.json
            trainer predict --model run --input {files.get("test", files["train"])} --output predictions.csv
            """, needs="" if has_stand_in(data) else "scripts/fetch-data", config=path.read_text())


def of_data():
    yield case("data/inspect", """
        trainer inspect data/people.csv --label income --weight persons --json people.json
        trainer inspect data/people_bad.csv --label price --data.test data/people_test.csv --json -
        trainer inspect data/german.csv --label preis
        trainer inspect data/german.csv --label preis --data.skip_lines 2
        trainer inspect data/bare.tsv.gz --label c4
        trainer inspect data/parts --label kind,visits
        trainer inspect data/people_windows.csv --label kind --data.encoding windows-1252
        trainer inspect data/parts/part-0.csv --label kind,visits
        ! trainer inspect data/people.csv --label none
        """)
    presets = ("mlp", "wide_deep", "tabular", "tabular_large")
    yield case("data/init", "\n".join([
        *(f"trainer init data/people.csv --label income --weight persons --preset {name} --output {name}.toml" for name in presets),
        *(f"trainer plan --config {name}.toml --np 1,2" for name in presets),
        "trainer --config tabular.toml --train.epochs 2 --train.replicas 1 --run.dir runs/second",
        "trainer init data/people.csv --label price --output price.toml",
        "trainer init data/people.csv --label t1,t2 --output pair.toml",
        "trainer init data/people.csv --label visits --task numbers --output visits.toml --data.ignore id --train.lr 0.01",
        "! trainer init data/people.csv --label visits --output visits.toml",
        "trainer init data/people.csv --label visits --task classes --output -",
        "trainer init data/german.csv --label preis --data.skip_lines 2 --output german.toml",
        "trainer init data/parts --label kind --output parts.toml",
        "trainer init data/parts/part-1.csv --label kind --output part-1.toml",
        "trainer init data/clicks.libsvm --output clicks.toml",
        "trainer init data/x.npy --label data/classes.npy --output arrays.toml",
        "trainer init data/arrays.npz:x --label values --output archive.toml",
        "trainer init data/train-images-idx3-ubyte.gz --output images.toml",
        "! trainer init data/people.csv --label income --output - --task images",
        "for file in price pair visits german parts clicks arrays archive images; do trainer plan --config $file.toml; done",
    ]))
    yield case("data/corpus", f"""
        cp -r {ROOT}/test/fuzz/corpus corpus
        for f in corpus/csv/* corpus/columns/*; do trainer inspect $f --data.format csv --label c1; echo "$f: $?"; done 2>&1
        for f in corpus/libsvm/*; do trainer init $f --data.format libsvm --output -; echo "$f: $?"; done 2>&1
        for f in corpus/numpy/*; do trainer init $f --data.format numpy --label $f --output -; echo "$f: $?"; done 2>&1
        for f in corpus/idx/*; do trainer init $f --data.format idx --label $f --output -; echo "$f: $?"; done 2>&1
        for f in corpus/hdf5/*; do trainer init $f --data.format hdf5 --label y --output -; echo "$f: $?"; done 2>&1
        ! trainer plan --config corpus/config/run.toml
        rm -r corpus
        """)
    yield case("data/formats", """
        trainer --config table.toml --data.train data/parts --data.chunk_kib 1
        trainer --config table.toml --run.dir stream --data.memory stream --data.shuffle_buffer 40 --data.validation ''
        trainer --config table.toml --run.dir windows --data.train data/people_windows.csv --data.encoding windows-1252
        trainer --config table.toml --run.dir full --data.mode full --data.audit true --train.epochs 1
        trainer --config table.toml --run.dir group --data.validation 'group(customer, 0.2)'
        trainer --config table.toml --run.dir time --data.validation 'time(joined, 0.2)'
        trainer --config arrays.toml --run.dir archive --data.train data/arrays.npz:x --data.train_labels data/arrays.npz:classes
        trainer --config images.toml --run.dir idx --data.augment 'crop(1) flip cutout(2)' --data.mean 0.3 --data.std 0.2
        trainer --config raw.toml --run.dir raw --data.format raw --data.raw_layout 'label:u8 features:u8[8,8,1]' --data.train data/small.bin
        trainer --config raw.toml --run.dir cifar --data.format cifar10 --data.train data/data_batch_1.bin --model.layers 'maxpool(4) flatten dense(10)'
        trainer predict --model idx --input data/small-images.idx --output images.npy
        trainer predict --model run --input data/people.csv --output people.csv
        trainer predict --model run --input data/new.csv --output new.csv --top 2 --keep city
        trainer compare run windows full group time
        """, table=PLAIN_TABLE, arrays=ARRAYS, images=IMAGES, raw=IMAGES.replace('train_labels = "data/small-labels.idx"\n', ""))
    yield case("data/sparse", """
        mpirun -np 2 trainer --config sparse.toml
        ! mpirun -np 2 trainer --config sparse.toml --run.dir bad --data.train data/clicks_bad.libsvm
        mpirun -np 2 trainer --config sparse.toml --run.dir bad --data.train data/clicks_bad.libsvm --data.on_bad_record skip --data.max_bad_share 0.1
        mpirun -np 2 trainer predict --model bad --input data/clicks_bad.libsvm --output bad.csv --data.on_bad_record skip --data.max_bad_share 0.1
        trainer predict --model run --input data/clicks_test.libsvm --output clicks.jsonl
        trainer eval --model run
        """, sparse="""
[run]
dir = "run"
[data]
train = "data/clicks.libsvm"
test = "data/clicks_test.libsvm"
validation = "stratified(0.15)"
columns = ["label: categorical"]
[model]
layers = "dense(8) relu dense(3)"
[train]
lr = 0.1
epochs = 2
global_batch = 20
replicas = 2
""" + REPEATABLE)
    yield case("data/findings", """
        trainer inspect data/odd.csv --label y --json odd.json
        trainer inspect data/odd.csv --label y --data.test data/odd_test.csv
        trainer init data/odd.csv --label y --output odd.toml
        trainer --config odd.toml --train.epochs 2 --train.replicas 2 --run.dir run
        trainer eval --model run --data.test data/odd_test.csv
        trainer predict --model run --input data/odd_test.csv --output odd.jsonl
        trainer init data/odd.csv --label code --output -
        trainer init data/odd.csv --label long --task numbers --output -
        trainer inspect data/odd.csv --label when
        trainer importance --model run --repeats 2 --json importance.json
        """)


def of_texts():
    yield case("texts/story", """
        trainer inspect data/story.txt --json story.json
        trainer inspect data/story.txt --data.tokens 'words(30)'
        trainer inspect data/story.txt --data.tokens 'pieces(270)'
        trainer inspect data/story.txt --data.tokens bytes --data.fold_case true
        trainer init data/story.txt --output -
        trainer plan --config run.toml --np 1,2
        mpirun -np 2 trainer --config run.toml
        trainer eval --model run --json eval.json
        ! trainer eval --model run --data.test data/other.txt
        ! trainer eval --model run --data.test data/other.txt --data.unknown replace
        trainer generate --model run --prompt 'Ann ' --length 40 --json generated.json
        trainer generate --model run --prompt 'the old fox' --length 30 --samples 3 --temperature 0.7 --top_k 4 --seed 5
        trainer generate --model run --prompt 'Ann' --length 25 --temperature 0 --top_p 0.5
        ! trainer generate --model run --prompt 'Zebra' --length 5
        ! trainer generate --model run --prompt '' --length 5
        ! trainer generate --model run --prompt 'Ann' --samples 0
        trainer --config run.toml --run.dir words --data.tokens 'words(30)' --data.unknown replace --data.draw 'in turn' --train.steps 6
        trainer generate --model words --prompt 'Ann buys' --length 12
        trainer eval --model words --data.test data/other.txt --json words.json
        trainer predict --model words --input data/other.txt --output words.csv --top 2
        trainer --config run.toml --run.dir pieces --data.tokens 'pieces(270)' --model.layers 'embedding(270, 8) gru(8) dense(270)' --train.steps 6
        ! trainer generate --model pieces --prompt 'nobody' --length 12 --top_p 0.8
        trainer compare run words pieces
        trainer report run pieces --output page.html --json page.json
        """, run=TEXT)
    yield case("texts/reviews", """
        trainer inspect data/reviews.csv --label stars
        trainer init data/reviews.csv --label stars --task classes --output first.toml
        trainer --config first.toml --train.epochs 2 --run.dir run --train.replicas 2
        trainer predict --model run --input data/reviews.csv --output stars.csv --top 3 --keep shop
        trainer importance --model run --repeats 1
        trainer init data/reviews.csv --label stars --task numbers --output numbers.toml --json numbers.json
        trainer plan --config numbers.toml
        """)


def of_series():
    yield case("series/shops", """
        trainer inspect data/shops.csv --label sold --time day --series shop --json shops.json
        trainer init data/shops.csv --label sold --time day --series shop --horizon 5 --output first.toml
        ! trainer init data/shops.csv --label sold --time day --horizon 5 --output alone.toml
        trainer init data/sensor.csv --label load --time time --horizon 24 --output sensor.toml
        trainer plan --config first.toml
        trainer plan --config run.toml --np 1,2
        mpirun -np 2 trainer --config run.toml
        trainer eval --model run --json eval.json
        trainer predict --model run --input data/shops.csv --output forecast.csv
        trainer predict --model run --input data/shops.csv --output forecast.jsonl
        ! trainer predict --model run --input data/shops.csv --output kept.csv --keep guests
        trainer --config run.toml --run.dir quantiles --train.loss quantile --train.quantiles 0.1,0.5,0.9 --model.layers 'dense(15)'
        trainer predict --model quantiles --input data/shops.csv --output quantiles.csv
        trainer --config run.toml --run.dir scaled --data.window_scale last --data.season 1 --data.fill_gaps zero
        trainer predict --model scaled --input data/shops.csv --output scaled.csv
        trainer init data/shops.csv --label sold,guests --time day --series shop --horizon 3 --future open --output several.toml
        mpirun -np 2 trainer --config several.toml --train.epochs 2 --train.replicas 2 --run.dir several
        ! trainer predict --model several --input data/shops.csv --output several.csv
        trainer importance --model several --repeats 1
        trainer compare run quantiles scaled --all
        trainer report run --output page.html
        ! trainer --config run.toml --run.dir long --data.window 200
        ! trainer predict --model run --input data/sensor.csv --output none.csv
        """, run=SERIES)
    yield case("series/sequences", """
        trainer plan --config run.toml --np 2
        trainer --config run.toml
        trainer predict --model run --input data/steps.npy --lengths data/how_long.npy --output with.csv
        trainer predict --model run --input data/steps.npy --output without.csv
        trainer --config run.toml --run.dir conv --model.layers 'conv1d(5, 3, padding=same) relu gru(4, last=true) dense(3)'
        trainer --config run.toml --run.dir lstm --model.layers 'lstm(4) layer_norm lstm(3, last=true, bidirectional=true) dense(3)' --train.clip_norm 0.5
        trainer init data/steps.npy --label data/kinds.npy --lengths data/how_long.npy --output first.toml
        trainer compare run conv lstm
        """, run=SEQUENCES)
