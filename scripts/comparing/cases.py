"""The cases of compare-outputs: a case is a folder, files that are written into it, and commands that run in it one by one.

A command is a line for bash; one after `! ` is to fail. `trainer` is the program that is compared, `data` the folder that data.py fills. Runs are short
and repeat their bits: fixed `replicas`, and an exchange that is not chosen by measuring.
"""

import dataclasses
import pathlib
import tomllib

from .configs import ARRAYS, IMAGES, PLAIN_TABLE, SEQUENCES, SERIES, SYNTHETIC, TABLE, TEXT

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
CONFIGS = ROOT / "configs"
FAILS = "! "


@dataclasses.dataclass
class Case:
    name: str
    commands: list
    files: dict


def case(name, commands, **files):
    """`files` maps a name without its ending to the text of NAME.toml."""
    lines = [line.strip() for line in commands.strip().splitlines()]
    return Case(name, [line for line in lines if line], {f"{file}.toml": text for file, text in files.items()})


def failing(commands):
    return "\n".join(FAILS + line.strip() for line in commands.strip().splitlines())


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
        files = {key: f"data/{pathlib.PurePath(data[key]).name}" for key in ("train", "test", "train_labels", "test_labels") if key in data}
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
            """, config=path.read_text())


def of_data():
    yield case("data/inspect", """
        trainer inspect data/people.csv --label income --weight persons --json people.json
        trainer inspect data/people_bad.csv --label price --data.test data/people_test.csv --json -
        trainer inspect data/german.csv --label preis
        trainer inspect data/german.csv --label preis --data.skip_lines 2
        trainer inspect data/bare.tsv.gz --label c4
        ! trainer inspect data/parts --label kind,visits
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
        "! trainer init data/parts --label kind --output parts.toml",
        "trainer init data/parts/part-1.csv --label kind --output parts.toml",
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
[distribute]
reduction = "ordered"
[checkpoint]
wait = true
""")


LOSSES = {
    "softmax_cross_entropy": ("classes", 3, "--train.label_smoothing 0.1 --eval.top_k 2"),
    "softmax_cross_entropy soft": ("soft", 3, "--train.calibrate temperature --data.train_weights data/weights.npy"),
    "softmax_focal": ("classes", 3, "--eval.metrics auc,brier,ece,average_precision,f1,mcc"),
    "multiclass_hinge": ("classes", 3, "--eval.metrics auc,average_precision,balanced_accuracy"),
    "binary_cross_entropy": ("yes", 1, "--eval.threshold youden --data.train_weights data/weights.npy"),
    "binary_focal": ("yes", 1, "--train.focal_alpha 0.3 --train.class_weights '0: 1,1: 3' --eval.class_weights true"),
    "binary_hinge": ("yes", 1, "--eval.metrics auc,f1"),
    "mean_squared_error": ("pair", 2, "--eval.metrics r2,spearman,root_mean_squared_error,mean_absolute_percentage_error"),
    "mean_absolute_error": ("values", 1, ""),
    "huber": ("values", 1, "--train.huber_delta 0.5 --data.train_weights data/weights.npy"),
    "quantile": ("values", 3, "--train.quantiles 0.1,0.5,0.9"),
    "poisson": ("counts", 1, ""),
    "tweedie": ("counts", 1, "--train.tweedie_power 1.3"),
    "gamma": ("positive", 1, ""),
    "cosine_distance": ("soft", 3, ""),
}
OPTIMIZERS = {
    "sgd": "--train.momentum 0.9 --train.nesterov true --train.weight_decay 0.01 --train.schedule step --train.decay_every '3 steps'",
    "adam": "--train.schedule plateau --train.plateau_patience '1 evaluations' --eval.every '2 steps'",
    "adamw": "--train.weight_decay 0.1 --train.schedule wsd --train.weight_decay_multiplier 'bias: 1'",
    "adagrad": "--train.schedule exponential --train.decay_every '4 steps'",
    "rmsprop": "--train.momentum 0.5 --train.schedule polynomial --train.decay_power 2",
    "lamb": "--train.schedule inverse_sqrt --train.warmup '3 steps'",
    "lion": "--train.lr 0.001 --train.schedule milestones --train.milestones '4 steps,8 steps'",
    "nadam": "--train.schedule one_cycle --train.lr_multiplier '0.*: 0.1'",
    "adafactor": "--train.scale_parameter true --train.clip_value 0.01 --train.lr_scaling sqrt",
    "muon": "--model.layers 'dense(8) relu dense(8) relu dense(3)' --train.swa_from '4 steps' --eval.every '4 steps'",
}
MODELS = {
    "layers": "concat(slice(0, 3) dense(4) | slice(3, 3) dense(4) tanh) layer_norm gelu residual(dense(8) silu) dropout(0.3) dense(3)",
    "activations": "dense(6) elu dense(6) leaky_relu dense(6) softplus dense(6) sigmoid dense(6, tie=6) batch_norm dense(3, init=xavier)",
    "periodic": "periodic(3, frequencies=4) dense(6) relu dense(3)",
    "ensemble": "scale tabm(2) tabm_dense(6) relu tabm_dense(6) tabm_heads(3)",
    "wide_deep": "wide_deep(dense(3) | dense(8) relu dense(3))",
}
EXPORTS = "safetensors npz onnx onnx_features"


def of_training():
    for name, (labels, outputs, flags) in LOSSES.items():
        yield case(f"losses/{name.replace(' ', '_')}", f"""
            trainer --config run.toml --train.loss {name.split()[0]} --data.train_labels data/{labels}.npy --model.layers 'dense(10) relu dense({outputs})' {flags}
            trainer eval --model run --json eval.json
            trainer predict --model run --input data/x.npy --output predictions.csv
            trainer export --model run --format onnx --output model.onnx
            """, run=ARRAYS)
    for name, flags in OPTIMIZERS.items():
        yield case(f"optimizers/{name}", f"trainer --config run.toml --train.optimizer {name} {flags}", run=ARRAYS)
    for name, layers in MODELS.items():
        yield case(f"models/{name}", f"""
            trainer plan --config run.toml --model.layers '{layers}' --np 1,2
            trainer --config run.toml --model.layers '{layers}' --train.lr_multiplier '0.*: 0.5' --report.tensorboard true
            for format in {EXPORTS}; do trainer export --model run --format $format --output model.$format; done
            """, run=ARRAYS)
    yield case("models/images", f"""
        trainer --config run.toml --model.layers 'conv2d(4, 3, stride=2, groups=1) batch_norm relu avgpool(2) residual(conv2d(6, 3, padding=same) tanh) global_avgpool dense(3)' --eval.precise_bn 4
        trainer --config preset.toml --run.dir lenet --model.preset lenet5 --model.outputs 10 --train.steps 2 --data.train data/train-images-idx3-ubyte.gz --data.train_labels data/train-labels-idx1-ubyte.gz
        for format in {EXPORTS}; do trainer export --model run --format $format --output model.$format; done
        trainer eval --model lenet
        """, run=IMAGES, preset="\n".join(line for line in IMAGES.splitlines() if not line.startswith("layers")))
    yield case("models/processor", """
        trainer --config run.toml --run.dir bf16 --train.precision bf16 --debug.emulate_bf16 true
        trainer --config run.toml --run.dir threads --train.threads 2
        """, run=IMAGES)


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


def of_keys():
    """What other cases leave at its default: a run for each of several keys at a time, and plans."""
    yield case("keys/tables", """
        trainer --config run.toml --data.missing 'constant(0)' --data.scale minmax --data.encode index --model.layers 'dense(6) relu dense(3)'
        trainer --config run.toml --run.dir hash --data.missing mean --data.scale 'robust bins(4)' --data.encode 'hash(5)' --run.seed 7
        trainer --config run.toml --run.dir words --data.missing_values ',NA,?,Voss' --data.vocabulary 3 --data.scale none --data.fold_case true
        trainer --config run.toml --run.dir bins --data.scale 'bins(6, by=label, leaf=20)' --train.tail drop --run.log_every 3
        trainer --config run.toml --run.dir yes --data.label income --data.ignore id,joined,seen,stamp,zip,salary,rate,area,customer,part,persons,kind,t1,t2 --data.categorical city,income --data.positive low --model.layers 'dense(5) relu dense(1)' --train.loss binary_cross_entropy --eval.at_start true
        trainer --config run.toml --run.dir german --data.train data/german.csv --data.skip_lines 2 --data.separator ';' --data.decimal ',' --data.label art --data.numeric 'fläche,abstand' --data.categorical art --data.ignore preis --data.test '' --model.layers 'dense(3)'
        trainer --config run.toml --run.dir bare --data.train data/bare.tsv.gz --data.header no --data.label c4 --data.numeric c1,c2 --data.categorical c3,c4 --data.ignore '' --data.test '' --model.layers 'dense(2)' --data.quotes false
        ! trainer --config run.toml --run.dir none --data.header yes --data.train data/bare.tsv.gz
        for run in run hash words bins yes german bare; do trainer predict --model $run --input data/people_test.csv --output $run.csv; done; true
        trainer compare run hash words bins yes german bare --all
        """, run=PLAIN_TABLE)
    yield case("keys/records", """
        mpirun -np 2 trainer --config run.toml --data.shard_order contiguous --data.reshuffle shard --train.epochs 3
        mpirun -np 2 trainer --config own.toml --run.dir strided --data.shard_order strided --train.per_replica_batch 8 --train.epochs 2
        mpirun -np 2 trainer --config own.toml --run.dir batch --data.reshuffle batch --train.tail drop --train.samples 200 --train.global_batch 32
        mpirun -np 2 trainer --config run.toml --run.dir full --data.mode full --train.epochs 1 --eval.batch 7
        mpirun -np 2 trainer --config run.toml --run.dir own --data.validation data/x.npy --data.validation_labels data/classes.npy --data.validation_weights data/weights.npy --data.test data/x.npy --data.test_labels data/classes.npy --data.test_weights data/weights.npy
        mpirun -np 3 trainer --config run.toml --run.dir stream --data.memory stream --data.shard_by record --data.shuffle_buffer 30 --train.replicas 3 --train.global_batch 30
        trainer --config run.toml --run.dir audit --data.audit true --train.epochs 1
        trainer plan --config own.toml --np 1,2 --data.mode full --train.per_replica_batch 4 --train.epochs 2
        ! trainer plan --config run.toml --np 2 --data.memory_limit 0.000001
        trainer compare run strided batch full own stream
        """, run=ARRAYS, own="\n".join(line for line in ARRAYS.splitlines() if not line.startswith(("steps", "global_batch"))))
    yield case("keys/training", """
        trainer --config run.toml --model.init normal --model.init_std 0.2 --train.optimizer adam --train.beta1 0.8 --train.beta2 0.95 --train.epsilon 1e-3
        trainer --config run.toml --run.dir rms --train.optimizer rmsprop --train.rho 0.7 --train.warmup '6 steps' --train.warmup_from 0.4 --train.schedule polynomial --train.end_lr 0.005
        trainer --config run.toml --run.dir nadam --train.optimizer nadam --train.momentum_decay 0.01 --train.epsilon 1e-3 --train.lr_scaling linear --train.lr_reference_batch 60 --train.schedule exponential --train.decay_every '3 steps' --train.decay_factor 0.7
        trainer --config run.toml --run.dir ada --train.optimizer adafactor --train.beta2_decay 0.5 --train.schedule one_cycle --train.warmup_share 0.4
        trainer --config run.toml --run.dir muon --train.optimizer muon --train.adamw_lr_multiplier 0.1 --train.epsilon 1e-3 --train.schedule wsd --train.decay_share 0.5
        trainer --config run.toml --run.dir plateau --train.schedule plateau --train.plateau_patience '1 evaluations' --train.plateau_min_delta 10 --eval.every '3 steps' --train.lr_multiplier '0.*: 0.5' --eval.at_start true --report.html false
        trainer --config run.toml --run.dir focal --train.loss softmax_focal --train.focal_gamma 3 --train.keep best --train.early_stopping '2 evaluations' --train.early_stopping_min_delta 5 --eval.every '2 steps'
        trainer --config run.toml --run.dir from --train.init run/model.safetensors --train.init_partial true --model.layers 'dense(12) relu dense(5) relu dense(3)'
        ! trainer --config run.toml --run.dir other --train.init run/model.safetensors --model.layers 'dense(9) relu dense(3)'
        trainer --config run.toml --run.dir renamed --train.init run/model.safetensors --train.init_rename '0=0,2=2'
        trainer --config run.toml --run.dir nan --debug.nan_replica 1 --debug.nan_steps 3 --debug.nan_step 2 --train.on_nan skip --train.skip_limit 5
        ! trainer --config run.toml --run.dir many --debug.nan_replica 1 --debug.nan_steps 3 --debug.nan_step 2 --train.on_nan skip --train.skip_limit 2
        trainer --config run.toml --run.dir quiet --run.progress none --run.time_limit '50 minutes' --data.synthetic_features 5 --data.synthetic_noise 0.9
        trainer compare run rms nadam ada muon plateau focal from renamed nan many quiet --all
        trainer report plateau focal nan --output page.html
        trainer status run many nan
        """, run=SYNTHETIC)
    yield case("keys/strategies", """
        mpirun -np 3 trainer --config run.toml --distribute.strategy parameter_server --distribute.servers 2 --distribute.bucket_kib 1 --train.replicas 1
        mpirun -np 2 trainer --config run.toml --run.dir async --distribute.strategy parameter_server --distribute.mode async --train.replicas 1 --distribute.staleness_lr true --distribute.reduction native
        mpirun -np 2 trainer --config run.toml --run.dir bounded --distribute.strategy parameter_server --distribute.mode bounded --distribute.staleness 2 --train.replicas 1 --distribute.reduction native
        mpirun -np 2 trainer --config run.toml --run.dir top_k --distribute.strategy allreduce --distribute.compression top_k --distribute.top_k 0.1 --distribute.reduction native --distribute.error_feedback false
        mpirun -np 2 trainer --config run.toml --run.dir fp16 --distribute.strategy allreduce --distribute.compression fp16 --distribute.reduction native --distribute.bucket_kib 1
        mpirun -np 4 trainer --config run.toml --run.dir tree --distribute.strategy allreduce --distribute.algorithm hierarchical --debug.ranks_per_node 2
        mpirun -np 2 trainer --config run.toml --run.dir local --distribute.strategy local_sgd --distribute.algorithm mpi --distribute.average_every 2 --distribute.average_state true --distribute.block_lr 0.8 --distribute.block_momentum 0.2 --distribute.block_nesterov true --train.momentum 0.9
        mpirun -np 4 trainer --config run.toml --run.dir stages --distribute.stages 2 --distribute.cut 1 --distribute.placement spread --distribute.strategy allreduce --distribute.algorithm mpi --checkpoint.every '6 steps'
        mpirun -np 4 trainer --config run.toml --run.dir more --distribute.stages 2 --distribute.cut 1 --distribute.placement spread --distribute.strategy allreduce --distribute.algorithm mpi --checkpoint.every '6 steps' --run.resume stages/checkpoints/step-000000012 --run.resume_allow train.epochs --train.epochs 3
        mpirun -np 2 trainer --config run.toml --run.dir one --run.resume stages --train.epochs 4 --run.resume_allow train.epochs,distribute.stages,distribute.cut,distribute.placement
        ! mpirun -np 2 trainer --config run.toml --run.dir flip --distribute.strategy allreduce --distribute.algorithm mpi --debug.flip_rank 1 --debug.flip_step 4 --comm.verify_every 3
        mpirun -np 3 trainer --config run.toml --run.dir heal --distribute.strategy allreduce --distribute.algorithm mpi --debug.flip_rank 1 --debug.flip_step 4 --comm.verify_every 3 --comm.on_desync rebroadcast --train.replicas 3
        ! mpirun -np 2 trainer --config run.toml --run.dir fails --debug.fail_rank 1 --debug.fail_step 3
        trainer plan --config run.toml --np 2,3,5 --distribute.strategy parameter_server --distribute.servers 1 --distribute.bucket_kib 1 --train.replicas 4
        trainer plan --config run.toml --np 2,4 --distribute.strategy zero1 --train.optimizer adam --distribute.bucket_kib 2
        trainer plan --config run.toml --np 2,8 --distribute.strategy allreduce --distribute.algorithm rabenseifner --distribute.reduction native
        trainer plan --config run.toml --np 4 --distribute.strategy local_sgd --train.optimizer adam --distribute.average_state true --distribute.reduction native
        trainer plan --config run.toml --np 2,4,8 --distribute.stages 2 --distribute.strategy allreduce --train.optimizer adam --distribute.schedule gpipe
        trainer plan --config run.toml --np 4 --distribute.stages auto --distribute.memory_per_rank 0.00002 --distribute.strategy allreduce
        """, run=SYNTHETIC)


def of_ranks():
    for name, flags in {
        "allreduce": "--distribute.strategy allreduce --distribute.algorithm mpi",
        "ring": "--distribute.strategy allreduce --distribute.algorithm ring --distribute.reduction native",
        "bf16": "--distribute.strategy zero1 --distribute.reduction native --distribute.compression bf16",
        "zero1": "--distribute.strategy zero1 --train.optimizer adam --model.layers 'dense(12, split=rows) relu dense(3)'",
        "central_storage": "--distribute.strategy central_storage --train.ema 0.9",
        "parameter_server": "--distribute.strategy parameter_server",
        "local_sgd": "--distribute.strategy local_sgd --distribute.algorithm mpi --distribute.average_every 3 --distribute.block_momentum 0.3",
    }.items():
        yield case(f"ranks/{name}", f"""
            trainer plan --config run.toml {flags} --np 2,4 --run.plan full
            mpirun -np 2 trainer --config run.toml {flags} --run.plan full
            """, run=SYNTHETIC)
    tied = "dense(6) tanh dense(6) relu dense(6, tie=2) relu dense(6, tie=2) batch_norm(mode=averaged) dense(3)"
    yield case("ranks/stages", f"""
        trainer plan --config run.toml --model.layers '{tied}' --distribute.stages 2 --np 2,4
        mpirun -np 4 trainer --config run.toml --model.layers '{tied}' --distribute.stages 2 --distribute.schedule gpipe --distribute.strategy allreduce --distribute.algorithm mpi
        mpirun -np 4 trainer --config run.toml --run.dir three --model.layers '{tied}' --distribute.stages 4 --train.momentum 0.9 --distribute.strategy zero1
        ! mpirun -np 3 trainer --config run.toml --run.dir wrong --model.layers '{tied}' --distribute.stages 2
        mpirun -np 2 trainer eval --model run --json eval.json
        trainer eval --model three
        """, run=SYNTHETIC)
    yield case("ranks/resume", """
        mpirun -np 2 trainer --config run.toml --checkpoint.every '5 steps' --checkpoint.keep 2 --train.keep best
        rm -r run/checkpoints/step-000000020
        trainer eval --model run@step-15
        mpirun -np 3 trainer --config run.toml --checkpoint.every '5 steps' --checkpoint.keep 2 --train.keep best
        ! trainer --config run.toml --train.lr 0.1
        ! trainer --config run.toml --train.lr 0.1 --run.dir again --run.resume run/checkpoints/step-000000015
        trainer --config run.toml --train.lr 0.1 --run.dir again --run.resume run/checkpoints/step-000000015 --run.resume_allow train.lr
        trainer --config run.toml --run.resume restart --train.steps 5
        mkdir stopped && touch stopped/stop && trainer --config run.toml --run.dir stopped
        trainer --config run.toml --run.dir elsewhere --checkpoint.dir kept --train.init run/model.safetensors
        for model in run@best run@last again@last elsewhere@step-20; do trainer eval --model $model; done
        """, run=SYNTHETIC)
    yield case("ranks/not_finite", """
        ! trainer --config run.toml --debug.nan_replica 1 --debug.nan_step 6
        trainer --config run.toml --run.dir skip --debug.nan_replica 1 --debug.nan_step 6 --train.on_nan skip
        trainer status run skip
        trainer report run skip --output page.html
        """, run=SYNTHETIC)
    yield case("ranks/trace", """
        mpirun -np 2 trainer --config run.toml --report.trace 'first 3, last 2 steps' --model.layers 'dense(3)' --data.prefetch 0 --distribute.strategy allreduce --distribute.algorithm mpi
        trainer trace run
        trainer trace run --output trace.json.gz
        """, run=SYNTHETIC)


def of_searches():
    yield case("searches/sweep", """
        mpirun -np 2 trainer sweep --config run.toml --run.dir grid --grid train.lr=0.01,0.1 --grid 'model.layers=dense(3)|dense(0)' --ranks-per-trial 2
        trainer sweep --config run.toml --run.dir halving --random 'train.lr=log(1e-4,1e-1)' --random 'train.optimizer=choice(sgd|adam)' --trials 4 --halving 2 --train.epochs 4
        mpirun -np 2 trainer sweep --config run.toml --run.dir pair --grid train.lr=0.01,0.1,0.2 | sort
        ! trainer sweep --config run.toml --run.dir pair --grid train.lr=0.01
        trainer compare grid halving --sort train.lr
        trainer status grid
        trainer report halving --output page.html
        """, run=SYNTHETIC)
    yield case("searches/cv", """
        mpirun -np 2 trainer cv --config run.toml --run.dir cv --folds 3 --stratified --refit --ranks-per-trial 2 --data.test ''
        trainer cv --config run.toml --run.dir group --folds 2 --group customer --data.test '' --train.epochs 1 --train.calibrate temperature
        trainer cv --config run.toml --run.dir time --folds 2 --time joined --data.test '' --train.epochs 1
        trainer cv --config run.toml --run.dir column --folds 3 --fold-column part --data.test '' --train.epochs 1 --data.train data/people_bad.csv --data.on_bad_record skip --data.max_bad_share 0.1
        trainer compare cv group time column --csv compare.csv
        """, run=PLAIN_TABLE.replace('validation = "share(0.2)"\n', ""))


def of_runs():
    """One run with everything, and what looks at it."""
    yield case("runs/table", f"""
        trainer plan --config run.toml --np 1,2,4
        mpirun -np 2 trainer --config run.toml --run.plan full
        trainer eval --model run
        mpirun -np 2 trainer eval --model run --data.test data/people.csv --json eval.json
        trainer eval --model run@last --json - > last.eval.json
        trainer predict --model run --input data/people_test.csv --output test.csv --keep id,city
        trainer predict --model run --input data/people_bad.csv --output bad.csv
        mpirun -np 2 trainer predict --model run --input data/people_bad.csv --output bad.csv --overwrite --data.on_bad_record skip --data.max_bad_share 0.1
        trainer predict --model run --input data/people_test.csv --output test.jsonl --threshold 0.3
        trainer predict --model run --input data/people_test.csv --output test.npy --proba
        ! trainer predict --model run --input data/people_test.csv --output top.csv --top 2
        head -n 5 data/people_test.csv | trainer predict --model run --input - --output - --format jsonl
        ! trainer predict --model run --input data/new.csv --output new.csv
        for format in {EXPORTS}; do trainer export --model run --format $format --output model.$format; done
        ! trainer export --model run --format keras --output model.keras
        mpirun -np 2 trainer importance --model run --repeats 2 --csv importance.csv --json importance.json
        trainer importance --model run --metric log_loss --repeats 1
        trainer importance --model run --partial hours --points 5
        trainer importance --model run --partial city --json partial.json --csv partial.csv
        ! trainer importance --model run --partial none
        trainer --config run.toml --run.dir second --train.lr 0.01 --train.calibrate none --eval.threshold 0.4 --train.keep last --train.early_stopping ''
        trainer compare run second
        trainer compare run second --sort auc --csv compare.csv --json compare.json
        trainer status run second
        trainer watch run --once
        trainer watch run second --once
        trainer report run --output page.html
        trainer report run second --output pages.html
        ! trainer report run --output page.html
        trainer export-metrics run second --format csv --output metrics.csv
        trainer status run second --json status.json
        trainer watch run --once --json watch.json
        trainer report run second --json page.json
        trainer compare run second --all
        trainer compare run second --sort train.lr
        ! trainer compare run second --sort none
        trainer --config run/config.toml --run.dir third --train.epochs 1
        """, run=TABLE)
    yield case("runs/labels", """
        trainer --config run.toml
        trainer --config run.toml --run.dir yes --data.ignore id,joined,seen,stamp,zip,salary,rate,area,customer,part,persons,income,kind,price,visits --data.label t1,t2 --train.loss binary_cross_entropy --eval.metrics auc,brier,ece,f1 --data.columns ''
        trainer --config run.toml --run.dir number --data.label price --data.columns 'price: log' --model.layers 'dense(8) relu dense(1)'
        trainer --config run.toml --run.dir number --data.label price --data.columns 'price: log' --model.layers 'dense(8) relu dense(1)' --train.loss huber --run.resume restart
        for run in run yes number; do trainer eval --model $run; done
        for run in run yes number; do trainer predict --model $run --input data/people_test.csv --output $run.csv --keep id; done
        for run in run yes number; do trainer export --model $run --format onnx --output $run.onnx; done
        trainer importance --model number --metric r2 --repeats 2
        trainer --config run.toml --run.dir quantiles --train.loss quantile --train.quantiles 0.2,0.7 --model.layers 'dense(6) relu dense(4)'
        trainer importance --model quantiles --partial hours --points 3
        trainer importance --model run --partial city --csv -
        trainer compare run yes number
        """, run=PLAIN_TABLE.replace('label = ["kind"]', 'label = ["price", "visits"]\ncolumns = ["price: log", "visits: standard"]')
        .replace(', "kind"]', "]").replace('"price",\n  "visits", ', '"kind",\n  ').replace(', "t1", "t2"]', "]")
        .replace("dense(3)", "dense(2)").replace('optimizer = "adam"', 'optimizer = "adam"\nloss = "mean_squared_error"'))


def of_errors():
    yield case("errors/config", failing("""
        trainer --config run.toml --train.lrr 0.1
        trainer --config run.toml --train.lr fast
        trainer --config run.toml --train.lr -1
        trainer --config run.toml --train.optimizer adamm
        trainer --config run.toml --model.layers 'dense(12) relo dense(3)'
        trainer --config run.toml --model.layers 'dense(12) relu dense(2)'
        trainer --config run.toml --model.layers 'dense(12 relu'
        trainer --config run.toml --train.warmup '5 apples'
        trainer --config run.toml --train.ema 0.9 --train.swa_from '1 epochs'
        trainer --config run.toml --distribute.mode async
        trainer --config run.toml --eval.metrics r2
        trainer --config run.toml --train.class_weights '9: 2'
        trainer --config run.toml --data.synthetic_validation_rows 0 --train.calibrate temperature
        trainer --config run.toml --report.trace '3 steps'
        mpirun -np 2 trainer --config run.toml --train.batch_size 3
        trainer --config missing.toml
        trainer --config broken.toml
        trainer --config unknown.toml
        trainer plan --config run.toml --np 0
        trainer plann --config run.toml
        trainer eval --model nothing
        trainer eval
        trainer predict --model nothing --input x.csv
        trainer sweep --config run.toml
        trainer cv --config run.toml --folds 1
        trainer compare nothing
        trainer status nothing
        trainer watch nothing --once
        trainer trace nothing
        trainer report nothing --output page.html
        """), run=SYNTHETIC, broken="[train\nlr = 1", unknown="[train]\nlearning_rate = 0.1\n[modle]\nlayers = 3\n")
    yield case("errors/files", """
        ! trainer --config table.toml --data.train data/people_bad.csv
        ! mpirun -np 2 trainer --config table.toml --data.train data/people_bad.csv
        ! trainer --config table.toml --data.train data/people_bad.csv --data.on_bad_record skip
        ! trainer --config table.toml --data.train data/nothing.csv
        ! trainer --config table.toml --data.label none
        ! trainer --config table.toml --data.numeric age,hours,city
        trainer --config table.toml --data.test data/new.csv
        ! trainer --config table.toml --data.strict true --data.ignore id
        ! trainer --config arrays.toml --data.train data/short.npy
        ! trainer --config arrays.toml --data.train_labels data/small-labels.idx
        ! trainer --config arrays.toml --data.train_labels data/values.npy
        ! trainer --config arrays.toml --data.train data/arrays.npz:z
        ! trainer --config images.toml --data.train data/short-images.idx
        ! trainer --config images.toml --data.train_labels data/train-labels-idx1-ubyte.gz
        trainer --config table.toml
        ! head -c 300 run/model.safetensors > short && cp short run/model.safetensors && trainer eval --model run
        ! echo '{' > run/schema.json && trainer predict --model run --input data/new.csv --output new.csv
        ! trainer export --model run --format onnx --output model.onnx
        ! touch full && trainer --config table.toml --run.dir full
        """, table=PLAIN_TABLE, arrays=ARRAYS, images=IMAGES)


def of_damage():
    """What commands say of a run whose files are gone, cut off or not its own."""
    damages = {
        "gone": "rm $r/run.json",
        "cut": "head -c 200 run/run.json > $r/run.json",
        "metrics": "head -c 700 run/metrics.jsonl > $r/metrics.jsonl",
        "words": "sed -i 's/\"loss\"/\"lost\"/' $r/metrics.jsonl",
        "model": "rm $r/model.safetensors",
        "short": "head -c 500 run/model.safetensors > $r/model.safetensors",
        "schema": "rm $r/schema.json",
        "columns": "sed -i 's/\"age\"/\"aged\"/' $r/schema.json",
        "config": "sed -i 's/dense(12)/dense(7)/' $r/config.toml",
        "state": "head -c 100 run/checkpoints/*28/state-00000.bin > $(echo $r/checkpoints/*28/state-00000.bin)",
        "manifest": "rm $r/checkpoints/*/manifest.json",
        "summary": "echo '{}' > $r/summary.json",
    }
    looks = ["status $r", "compare run $r", "eval --model $r", "predict --model $r --input data/new.csv --output -", "trace $r",
             "report $r --output $r.html", "export --model $r --format npz --output $r.npz", "watch $r --once",
             "--config run.toml --run.dir $r --train.epochs 5 --run.resume_allow train.epochs"]
    commands = [f"r={name}; cp -r run $r; {damage}" for name, damage in damages.items()]
    commands += [f"for r in {' '.join(damages)}; do trainer {look}; echo $?; done" for look in looks]
    yield case("errors/runs", "\n".join(["trainer --config run.toml", *commands]), run=PLAIN_TABLE)
    yield case("errors/keys", failing("""
        trainer --config run.toml --data.validation 'share(1.5)'
        trainer --config run.toml --data.validation 'group(none, 0.2)'
        trainer --config run.toml --data.validation 'time(city, 0.2)'
        trainer --config run.toml --data.columns 'none: standard'
        trainer --config run.toml --data.numeric age,age
        trainer --config run.toml --data.label kind,kind
        trainer --config run.toml --data.label age --train.loss binary_cross_entropy
        trainer --config run.toml --data.weight city
        trainer --config run.toml --data.positive none --data.label income
        trainer --config run.toml --train.quantiles 0.9,0.1 --train.loss quantile
        trainer --config run.toml --train.class_weights 'none: 2'
        trainer --config run.toml --train.lr_multiplier '9.*: 2'
        trainer --config run.toml --train.schedule milestones
        trainer --config run.toml --train.milestones '5 steps'
        trainer --config run.toml --model.layers 'conv2d(3, 3) dense(3)'
        trainer --config run.toml --model.layers 'dropout(1.5) dense(3)'
        trainer --config run.toml --model.layers 'dense(3, ini=zero)'
        trainer --config run.toml --model.layers 'dense(12) dense(3, tie=0)'
        trainer --config run.toml --model.preset none
        trainer --config run.toml --model.layers 'lstm(4) dense(3)'
        trainer --config run.toml --distribute.stages 2
        trainer --config run.toml --distribute.strategy local_sgd --distribute.local_after '2 apples'
        trainer --config run.toml --eval.threshold 0.5
        trainer --config run.toml --checkpoint.every '3 steps' --checkpoint.keep -1
        trainer --config run.toml --run.resume nowhere
        trainer --config run.toml --train.init nowhere.safetensors
        trainer --config run.toml --train.early_stopping '2 evaluations' --train.early_stopping_metric speed
        trainer --config run.toml --report.trace 'last 3 steps, middle 2 steps'
        mpirun -np 3 trainer --config run.toml --train.replicas 2
        mpirun -np 2 trainer --config run.toml --distribute.strategy parameter_server --distribute.servers 2
        trainer sweep --config run.toml --run.dir s --grid train.lr=0.1,fast
        trainer sweep --config run.toml --run.dir s --grid train.lrr=0.1
        trainer sweep --config run.toml --run.dir s --random 'train.lr=log(1,0.1)' --trials 2
        trainer sweep --config run.toml --run.dir s --grid train.lr=0.1,0.2 --part 3/2
        trainer cv --config run.toml --run.dir c --folds 3 --group none
        trainer cv --config run.toml --run.dir c --folds 3 --group city --stratified
        trainer init data/people.csv --label kind --preset none --output -
        trainer plan --config run.toml --np 1,x
        trainer bench --config missing.toml
        trainer export-metrics nothing --output -
        trainer help --config run.toml --np 2 nothing at all
        """), run=PLAIN_TABLE)


def all_cases(keys):
    return [*of_help(keys), *of_configs(), *of_data(), *of_training(), *of_texts(), *of_series(), *of_keys(), *of_ranks(), *of_searches(), *of_runs(), *of_errors(), *of_damage()]
